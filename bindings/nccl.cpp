// Owns what Python sees of NCCL; rushlight/distributed/nccl.py uses it. Tensors are contiguous and
// on the communicator's GPU. What may wait for other ranks lets other Python threads run.
#include "bindings/nccl.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>

#include "core/device/cuda_report.h"
#include "core/device/nccl.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace rushlight::python {
namespace {

using nccl::Communicator;
using nccl::Reduction;
using NoGil = nb::call_guard<ReleaseGil>;

nccl::Id id_of(const nb::bytes& bytes) {
  nccl::Id id;
  CHECK(bytes.size() == id.size(), ErrorKind::kValue, "the id of a communicator has ", id.size(),
        " bytes, not ", bytes.size());
  std::copy_n(bytes.c_str(), id.size(), id.begin());
  return id;
}

const Tensor& checked_tensor(const Communicator& ranks, nb::handle object) {
  const Tensor& tensor = expect_tensor(object.ptr(), "tensor");
  CHECK(
      tensor.device() == Device(DeviceType::cuda, int8_t(ranks.device())) && tensor.is_contiguous(),
      ErrorKind::kValue, "NCCL needs contiguous tensors on cuda:", ranks.device(), ", not on ",
      tensor.device(), ".");
  return tensor;
}

// A tensor with room for another one of each rank.
const Tensor& checked_whole(const Communicator& ranks, nb::handle object, const Tensor& part) {
  const Tensor& whole = checked_tensor(ranks, object);
  CHECK(whole.dtype() == part.dtype() && whole.numel() == ranks.size() * part.numel(),
        ErrorKind::kValue, "a tensor of ", whole.numel(), " elements has no room for ",
        part.numel(), " of each of ", ranks.size(), " ranks.");
  return whole;
}

}  // namespace

void add_nccl(PyObject* module) {
  nb::module_ m = nb::borrow<nb::module_>(module);
  m.def("_nccl_problem", &nccl::problem, "Why NCCL cannot be used, or ''.");
  m.def("_nccl_version", &nccl::version, "The version of NCCL, 22105 for 2.21.5.");
  m.def(
      "_nccl_make_id",
      [] {
        nccl::Id id = nccl::make_id();
        return nb::bytes(id.data(), id.size());
      },
      "A name for a communicator.");
  m.def("_nccl_begin_group", &nccl::begin_group, "Collects what is called, to do it together.");
  m.def("_nccl_end_group", &nccl::end_group, NoGil(), "Does it.");
  m.def("_cuda_report", &cuda::report, "text"_a, "What the next wait for the GPU raises.");

  nb::class_<Communicator>(m, "_NcclCommunicator")
      .def(
          "__init__",
          [](Communicator* self, const nb::bytes& bytes, int size, int rank, int device) {
            nccl::Id id = id_of(bytes);
            ReleaseGil release;
            new (self) Communicator(id, size, rank, device);
          },
          "id"_a, "size"_a, "rank"_a, "device"_a)
      .def_prop_ro("rank", &Communicator::rank)
      .def("all_reduce",
           [](Communicator& ranks, nb::handle tensor, int op) {
             const Tensor& data = checked_tensor(ranks, tensor);
             ReleaseGil release;
             ranks.all_reduce(data.address(), data.numel(), data.dtype(), Reduction(op));
           })
      .def("reduce",
           [](Communicator& ranks, nb::handle tensor, int op, int root) {
             const Tensor& data = checked_tensor(ranks, tensor);
             ReleaseGil release;
             ranks.reduce(data.address(), data.numel(), data.dtype(), Reduction(op), root);
           })
      .def("broadcast",
           [](Communicator& ranks, nb::handle tensor, int root) {
             const Tensor& data = checked_tensor(ranks, tensor);
             ReleaseGil release;
             ranks.broadcast(data.address(), data.numel(), data.dtype(), root);
           })
      .def("all_gather",
           [](Communicator& ranks, nb::handle whole, nb::handle part) {
             const Tensor& in = checked_tensor(ranks, part);
             const Tensor& out = checked_whole(ranks, whole, in);
             ReleaseGil release;
             ranks.all_gather(in.address(), out.address(), in.numel(), in.dtype());
           })
      .def("reduce_scatter",
           [](Communicator& ranks, nb::handle whole, nb::handle part, int op) {
             const Tensor& out = checked_tensor(ranks, part);
             const Tensor& in = checked_whole(ranks, whole, out);
             ReleaseGil release;
             ranks.reduce_scatter(in.address(), out.address(), out.numel(), out.dtype(),
                                  Reduction(op));
           })
      .def("send",
           [](Communicator& ranks, nb::handle tensor, int peer) {
             const Tensor& data = checked_tensor(ranks, tensor);
             ReleaseGil release;
             ranks.send(data.address(), data.numel(), data.dtype(), peer);
           })
      .def("receive",
           [](Communicator& ranks, nb::handle tensor, int peer) {
             const Tensor& data = checked_tensor(ranks, tensor);
             ReleaseGil release;
             ranks.receive(data.address(), data.numel(), data.dtype(), peer);
           })
      .def("error", &Communicator::error)
      .def("abort", &Communicator::abort, NoGil())
      .def("destroy", &Communicator::destroy, NoGil());
}

}  // namespace rushlight::python
