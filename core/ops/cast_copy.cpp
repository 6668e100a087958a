// Owns the ops that copy elements: to another dtype, layout or tensor.
#include "core/device/cuda.h"
#include "core/ops/op.h"
#include "core/tensor/fusion.h"
#include "core/tensor/memory_order.h"

namespace rushlight {
namespace {

bool has_dtype(const Tensor& input, std::optional<DType> dtype) {
  return !dtype || *dtype == input.dtype();
}

// A GPU without an index is the current one.
bool is_on(const Tensor& input, Device device) {
  if (device.is_cuda() && !device.has_index() && input.device().is_cuda())
    return input.device().index == cuda::current_device();
  return input.device() == device;
}

}  // namespace

OP(_cast, "(Tensor input, dtype? dtype=None) -> Tensor", {
  .home    = "private",
  .doc     = R"(input in another dtype: a copy in the same layout, or input itself.)",
  .returns_input = [](const Tensor& input, const Value& dtype) {
    return has_dtype(input, detail::unbox<std::optional<DType>>(dtype));
  },
  .node    = "to_copy",
  .sparse  = by_entries,
  .batch   = by_elements,
  .forward = [](const Tensor& input, std::optional<DType> dtype) {
    if (has_dtype(input, dtype)) return input;
    if (defers(input.numel(), input.device())) [[unlikely]]
      return defer_cast(input, *dtype, strides_after(input));
    return to_dtype(input, *dtype);
  },
  .grads   = grads(d<"input">([](const Tensor& g) { return g; })),
})

OP(_to, "(Tensor input, device? device=None, bool non_blocking=False) -> Tensor", {
  .home    = "private",
  .doc     = R"(input on another device: a copy in the same layout, or input itself.)",
  .returns_input = [](const Tensor& input, const Value& device) {
    return is_on(input, detail::unbox<std::optional<Device>>(device).value_or(Device()));
  },
  .sparse  = by_entries,
  .batch   = by_elements,
  .forward = [](const Tensor& input, std::optional<Device> device, bool non_blocking) {
    Device to = device.value_or(Device());
    if (is_on(input, to)) return input;
    if (to.is_cuda()) to.index = int8_t(cuda::device_index(to));
    Tensor out = empty_strided(input.sizes(), strides_after(input), input.dtype(), to);
    copy_into(out, input, non_blocking);
    return out;
  },
  .grads   = grads(d<"input">([](const Tensor& g) { return g; })),
})

OP(type_as, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = R"(input in the dtype of other and on its device.)",
  .variants = method,
  .sparse  = by_forward,
  .forward = [](const Tensor& input, const Tensor& other) {
    Tensor same = cast(input, other.dtype());
    if (same.device() == other.device()) return same;
    return call<"_to", Tensor>(same, std::optional<Device>(other.device()), false);
  },
})

OP(clone, "(Tensor input, *, memory_format? memory_format=None) -> Tensor", {
  .doc     = R"(A copy in the same layout, unless another is asked for.)",
  .sparse  = by_entries,
  .batch   = by_elements,
  .forward = [](const Tensor& input, std::optional<MemoryFormat> memory_format) {
    return clone_dense(input, memory_format.value_or(MemoryFormat::preserve));
  },
  .grads   = grads(d<"input">([](const Tensor& g) { return g; })),
})

OP(_clone_strided, "(Tensor input, int[] stride) -> Tensor", {
  .home    = "core",
  .doc     = R"(A copy that lies in memory with the given strides.)",
  .batch   = [](const Batch&, const Tensor& input, ShapeRef stride) {
    Shape one(input.sizes().begin() + 1, input.sizes().end());
    Shape strides{std::max<int64_t>(storage_bytes_needed(one, stride, 0, 1), 1)};
    for (int64_t s : stride) strides.push_back(s);
    return call<"_clone_strided", Tensor>(input, ShapeRef(strides));
  },
  .forward = [](const Tensor& input, ShapeRef stride) {
    Tensor out = empty_strided(input.sizes(), stride, input.dtype(), input.device());
    copy_into(out, input);
    return out;
  },
  .grads   = grads(d<"input">([](const Tensor& g) { return g; })),
})

OP(contiguous, "(Tensor input, *, memory_format? memory_format=None) -> Tensor", {
  .doc     = R"(input itself when its memory is in that order, else a copy that is.)",
  .variants = method,
  .returns_input = [](const Tensor& input, const Value& memory_format) {
    auto format = detail::unbox<std::optional<MemoryFormat>>(memory_format);
    return input.is_contiguous(format.value_or(MemoryFormat::contiguous));
  },
  .node    = "clone",
  .sparse  = by_entries,
  .batch   = by_elements,
  .forward = [](const Tensor& input, std::optional<MemoryFormat> memory_format) {
    MemoryFormat format = memory_format.value_or(MemoryFormat::contiguous);
    CHECK(input.is_contiguous() || format != MemoryFormat::preserve,
          "preserve memory format is unsupported by the contiguous operator");
    return in_format(input, format);
  },
  .grads   = grads(d<"input">([](const Tensor& g) { return g; })),
})

OP(copy_, "(Tensor! input, Tensor|Scalar src, bool non_blocking=False) -> Tensor", {
  .doc     = R"(Writes src, broadcast and converted, over the elements of input.)",
  .variants = method,
  .sparse  = by_forward,
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& src, bool non_blocking) {
    if (input.is_sparse() || src.is_sparse()) {
      CHECK(layout_of(input) == layout_of(src) && input.sizes() == src.sizes(),
            "a tensor of layout ", layout_name(layout_of(src)), " and shape ", src.sizes(),
            " cannot be copied to one of layout ", layout_name(layout_of(input)), " and shape ",
            input.sizes(), ". Both must be alike; use to_dense() or to_sparse().");
      take_parts(input, clone(cast(src, input.dtype())));
      return input;
    }
    check_expands(src.sizes(), input.sizes());
    copy_into(input, src, non_blocking);
    return input;
  },
  .grads   = grads(d<"input">([](const Tensor& g) { return zeros_like(g); }),
                   d<"src">([](const Tensor& g) { return g; })),
})

}  // namespace rushlight
