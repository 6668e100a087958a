// Owns the norms and the copies of many tensors in one call.
#include <cmath>
#include <vector>

#include "core/ops/foreach/foreach_cuda.h"
#include "core/ops/op.h"
#include "core/ops/real_number.h"

namespace rushlight {
namespace {

// Which norm one launch takes of all the tensors, if there is one: none when it must be recorded.
std::optional<NormKind> kind_of_many(TensorList tensors, const Scalar& ord) {
  for (const Tensor& tensor : tensors) {
    bool alike = tensor.device() == tensors[0].device() && tensor.dtype() == tensors[0].dtype();
    if (!alike || !tensor.device().is_cuda() || !is_floating(tensor.dtype()) ||
        !tensor.is_dense() || tensor.numel() == 0 || (is_grad_enabled() && tensor.requires_grad()))
      return std::nullopt;
  }
  double order = real_number(ord, "ord");
  if (tensors.empty() || (order != 1 && order != 2 && order != HUGE_VAL)) return std::nullopt;
  return order == 2 ? NormKind::euclidean : order == 1 ? NormKind::sum : NormKind::largest;
}

}  // namespace

OP(_foreach_norm, "(Tensor[] tensors, Scalar ord=2, *, dtype? dtype=None) -> Tensor[]", {
  .doc     = R"(The norm of each tensor: see linalg.vector_norm.)",
  .forward = [](TensorList tensors, Scalar ord, std::optional<DType> dtype) {
    std::optional<NormKind> kind = kind_of_many(tensors, ord);
    if (kind && !dtype) return norms_cuda(tensors, *kind);
    std::vector<Tensor> norms;
    norms.reserve(tensors.size());
    for (const Tensor& tensor : tensors)
      norms.push_back(
          call<"vector_norm", Tensor>(tensor, ord, std::optional<ShapeRef>(), false, dtype));
    return norms;
  },
})

OP(_foreach_copy_, "(Tensor[] tensors, Tensor[] src, bool non_blocking=False) -> int", {
  .home    = "private",
  .doc     = R"(Copies each tensor of src into one of tensors; returns how many there were.)",
  .seen    = Seen::whole,
  .forward = [](TensorList tensors, TensorList src, bool non_blocking) {
    CHECK(tensors.size() == src.size(), "got ", src.size(), " tensors to copy into ",
          tensors.size(), ".");
    for (size_t i = 0; i < tensors.size(); ++i)
      call<"copy_", Tensor>(tensors[i], src[i], non_blocking);
    return int64_t(tensors.size());
  },
})

}  // namespace rushlight
