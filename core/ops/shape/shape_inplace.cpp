// Owns the ops that give a tensor itself another shape: as a view of what it was, or in memory that
// grows.
#include "core/autograd/node.h"
#include "core/ops/op.h"
#include "core/ops/shape/shape.h"
#include "core/tensor/memory_order.h"

namespace rushlight {
namespace {

// Gives input the layout and the history of a view of it; the elements stay as they are, but who
// saved the tensor must not see another shape: it counts as a write.
Tensor become(const Tensor& input, const Tensor& view, const char* writer) {
  check_rewrite(input, gradient_edge_exists(input));
  if (is_lifted(input)) {
    take_lift(input, view);
    return input;
  }
  if (input.is_sparse()) {
    detail::replace(input, view);
    return input;
  }
  NodePtr history = grad_fn_of(view);
  TensorImpl& impl = *input.impl();
  impl.sizes = view.sizes();
  impl.strides = view.strides();
  impl.offset = view.offset();
  impl.layout_changed();
  if (!impl.untracked) impl.storage->bump_version(writer);
  if (history) set_history(input, history, find_meta(view)->slot);
  return input;
}

// Gives input other sizes in the given order of dims; its storage grows as needed. Without an order
// it stays as it is if it has these sizes.
Tensor resized(const Tensor& input, ShapeRef size, std::optional<MemoryFormat> format,
               const char* writer) {
  CHECK(!gradient_edge_exists(input), "cannot resize variables that require grad");
  CHECK(!is_lifted(input), "cannot resize a tensor inside vmap or forward mode");
  Shape sizes(size);
  checked_numel(sizes);
  if (!format && sizes == input.sizes()) return input;
  Shape strides = strides_for(sizes, format.value_or(MemoryFormat::contiguous));
  TensorImpl& impl = *input.impl();
  int64_t needed = storage_bytes_needed(sizes, strides, impl.offset, input.itemsize());
  if (needed > int64_t(impl.storage->bytes())) impl.storage->resize(size_t(needed));
  impl.sizes = sizes;
  impl.strides = strides;
  impl.layout_changed();
  if (!impl.untracked) impl.storage->bump_version(writer);
  return input;
}

}  // namespace

OP(squeeze_, "(Tensor! input) -> Tensor", {
  .doc     = R"(Drops all dims of size 1 of the tensor itself.)",
  .variants = method,
  .seen    = Seen::whole,
  .forward = [](const Tensor& input) {
    return become(input, call<"squeeze", Tensor>(input), "squeeze_");
  },
})

OP(squeeze_dim_, "squeeze_.dim(Tensor! input, int dim) -> Tensor", {
  .doc     = R"(Drops a dim of the tensor itself when its size is 1.)",
  .variants = method,
  .seen    = Seen::whole,
  .forward = [](const Tensor& input, int64_t dim) {
    return become(input, squeeze(input, dim), "squeeze_");
  },
})

OP(squeeze_dims_, "squeeze_.dims(Tensor! input, int[] dim) -> Tensor", {
  .doc     = R"(Drops those of the given dims of the tensor itself whose size is 1.)",
  .variants = method,
  .seen    = Seen::whole,
  .forward = [](const Tensor& input, ShapeRef dim) {
    return become(input, call<"squeeze_dims", Tensor>(input, dim), "squeeze_");
  },
})

OP(unsqueeze_, "(Tensor! input, int dim) -> Tensor", {
  .doc     = R"(Inserts a dim of size 1 before dim of the tensor itself.)",
  .variants = method,
  .seen    = Seen::whole,
  .forward = [](const Tensor& input, int64_t dim) {
    return become(input, unsqueeze(input, dim), "unsqueeze_");
  },
})

OP(transpose_, "(Tensor! input, int dim0, int dim1) -> Tensor", {
  .doc     = R"(Swaps two dims of the tensor itself.)",
  .variants = method,
  .aliases = "swapdims_",
  .seen    = Seen::whole,
  .sparse  = by_forward,
  .forward = [](const Tensor& input, int64_t dim0, int64_t dim1) {
    return become(input, transpose(input, dim0, dim1), "transpose_");
  },
})

OP(t_, "(Tensor! input) -> Tensor", {
  .doc     = R"(Transposes the matrix itself.)",
  .variants = method,
  .seen    = Seen::whole,
  .sparse  = by_forward,
  .forward = [](const Tensor& input) { return become(input, call<"t", Tensor>(input), "t_"); },
})

OP(swapaxes_, "(Tensor! input, int axis0, int axis1) -> Tensor", {
  .doc     = R"(Swaps two dims of the tensor itself; NumPy's name for transpose_.)",
  .variants = method,
  .seen    = Seen::whole,
  .sparse  = by_forward,
  .forward = [](const Tensor& input, int64_t axis0, int64_t axis1) {
    return become(input, transpose(input, axis0, axis1), "swapaxes_");
  },
})

OP(as_strided_, "(Tensor! input, int[] size, int[] stride, int? storage_offset=None) -> Tensor", {
  .doc     = R"(Gives the tensor itself any sizes, strides and offset inside its storage.)",
  .seen    = Seen::whole,
  .forward = [](const Tensor& input, ShapeRef size, ShapeRef stride,
                std::optional<int64_t> storage_offset) {
    return become(input, as_strided(input, size, stride, storage_offset), "as_strided_");
  },
})

OP(resize_, "(Tensor! input, int[] size, *, memory_format? memory_format=None) -> Tensor", {
  .doc     = R"(Gives the tensor itself another shape; new elements are undefined.)",
  .variants = method,
  .seen    = Seen::whole,
  .forward = [](const Tensor& input, ShapeRef size, std::optional<MemoryFormat> memory_format) {
    return resized(input, size, memory_format, "resize_");
  },
})

OP(resize_as_, "(Tensor! input, Tensor the_template, *, memory_format? memory_format=None) "
               "-> Tensor", {
  .doc     = R"(Gives the tensor itself the shape of another; new elements are undefined.)",
  .seen    = Seen::whole,
  .forward = [](const Tensor& input, const Tensor& the_template,
                std::optional<MemoryFormat> memory_format) {
    if (memory_format == MemoryFormat::preserve) memory_format = suggested_format(the_template);
    return resized(input, the_template.sizes(), memory_format, "resize_as_");
  },
})

}  // namespace rushlight
