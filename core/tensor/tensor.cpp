// Defines how tensors come to be and the questions asked about their layout.
#include "core/tensor/tensor.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <new>
#include <numeric>

#include "core/device/allocator.h"
#include "core/device/cuda.h"
#include "core/tensor/dispatch.h"
#include "core/tensor/element.h"
#include "core/tensor/fusion.h"
#include "core/tensor/lift.h"
#include "core/tensor/sparse.h"

namespace rushlight {
namespace {

std::atomic<DType> default_float{DType::float32};

TensorImpl* new_impl() { return new (cpu_allocate(sizeof(TensorImpl))) TensorImpl(); }

// Walks the dims from the innermost outwards and checks that strides are those of a packed layout.
template <class Order>
bool is_packed(ShapeRef sizes, ShapeRef strides, const Order& innermost_first) {
  int64_t expected = 1;
  for (auto d : innermost_first) {
    if (sizes[d] == 0) return true;
    if (sizes[d] == 1) continue;
    if (strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

// Whether a number can be stored in a dtype. Integers may wrap below zero, as -1 does for uint8.
bool fits(const Scalar& value, DType dtype) {
  if (is_complex(dtype) || is_bool(dtype)) return true;
  if (value.is_complex() && value.to<std::complex<double>>().imag() != 0) return false;
  if (is_floating(dtype) || is_float8(dtype)) {
    double number = value.to<double>();
    return !(std::abs(number) > largest_finite(dtype)) || std::isinf(number);
  }
  double bits = double(8 * dtype_size(dtype)) - !is_unsigned(dtype);
  double end = std::ldexp(1.0, int(bits));
  double lowest = !is_unsigned(dtype) ? -end : value.is_integral() ? 1 - end : 0;
  double number = std::trunc(value.to<double>());
  if (dtype_size(dtype) == 8 && value.is_integral())  // which double may round up to the end
    return is_unsigned(dtype) || !value.exceeds_int64();
  return number >= lowest && number < end;
}

}  // namespace

void TensorImpl::destroy(TensorImpl* impl) {
  if (impl->owns_py_object) {
    impl->retain();  // for the Python object, which somebody may have got by a weak reference
    release_py_object(impl->py_object);
    if (impl->release()) destroy(impl);
    return;
  }
  if (impl->saved) impl->storage->saved_windows.fetch_sub(1, std::memory_order_relaxed);
  impl->~TensorImpl();
  cpu_free(impl, sizeof(TensorImpl));
}

void TensorImpl::parts_changed() {
  uint8_t parts = uint8_t((sparse ? kIsSparse : 0) | (lift ? kIsLifted : 0));
  detours = uint8_t((detours & ~(kIsSparse | kIsLifted)) | parts);
}

void TensorImpl::layout_changed() {
  numel = 1;
  for (int64_t size : sizes) numel *= size;
  contiguous = true;
  int64_t expected = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1) continue;
    if (strides[d] != expected) {
      contiguous = numel == 0;
      return;
    }
    expected *= sizes[d];
  }
}

Tensor::Tensor(double value) : Tensor(wrapped_number(value)) {}

bool Tensor::is_contiguous(MemoryFormat format) const {
  if (format == MemoryFormat::contiguous || format == MemoryFormat::preserve)
    return is_contiguous();
  if (format == MemoryFormat::channels_last)
    return dim() == 4 && is_packed(sizes(), strides(), std::initializer_list<int>{1, 3, 2, 0});
  return dim() == 5 && is_packed(sizes(), strides(), std::initializer_list<int>{1, 4, 3, 2, 0});
}

bool Tensor::is_dense() const {
  if (is_contiguous()) return true;
  SmallVector<int64_t, 5> order(sizes().size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return strides()[a] < strides()[b]; });
  return is_packed(sizes(), strides(), order);
}

DType default_dtype() { return default_float; }

void set_default_dtype(DType dtype) {
  CHECK(is_floating(dtype), ErrorKind::kType,
        "only floating-point types are supported as the default type, got ", dtype_name(dtype));
  default_float = dtype;
}

Tensor empty(ShapeRef sizes, DType dtype, Device device) {
  int64_t numel = checked_numel(sizes), bytes;
  CHECK(!__builtin_mul_overflow(numel, int64_t(dtype_size(dtype)), &bytes), "sizes ",
        ShapeText{sizes}, " of ", dtype_name(dtype),
        " overflow: a tensor has at most 2^63 - 1 bytes");
  TensorImpl* impl = new_impl();
  Tensor out(IntrusivePtr<TensorImpl>::adopt(impl));
  impl->storage = StorageImpl::allocate(size_t(bytes), device);
  impl->sizes.assign(sizes.begin(), sizes.end());
  impl->strides = contiguous_strides(sizes);
  impl->dtype = dtype;
  impl->numel = numel;
  return out;
}

Tensor empty_strided(ShapeRef sizes, ShapeRef strides, DType dtype, Device device) {
  CHECK(sizes.size() == strides.size(), "sizes ", ShapeText{sizes}, " and strides ",
        ShapeText{strides}, " must have the same length");
  checked_numel(sizes);
  int64_t bytes = storage_bytes_needed(sizes, strides, 0, dtype_size(dtype));
  return on_storage(StorageImpl::allocate(size_t(bytes), device), sizes, strides, dtype);
}

Tensor on_storage(Storage storage, ShapeRef sizes, ShapeRef strides, DType dtype) {
  TensorImpl* impl = new_impl();
  Tensor out(IntrusivePtr<TensorImpl>::adopt(impl));
  impl->storage = std::move(storage);
  impl->sizes.assign(sizes.begin(), sizes.end());
  impl->strides.assign(strides.begin(), strides.end());
  impl->dtype = dtype;
  impl->layout_changed();
  return out;
}

Shape strides_for(ShapeRef sizes, MemoryFormat format) {
  checked_numel(sizes);
  if (format == MemoryFormat::contiguous || format == MemoryFormat::preserve)
    return contiguous_strides(sizes);
  size_t ndim = format == MemoryFormat::channels_last ? 4 : 5;
  CHECK(sizes.size() == ndim, "required rank ", ndim, " tensor to use ",
        ndim == 4 ? "channels_last" : "channels_last_3d", " format, got shape ", ShapeText{sizes});
  Shape strides(ndim);
  strides[1] = 1;
  int64_t stride = std::max<int64_t>(sizes[1], 1);
  for (size_t d = ndim; d-- > 2;) {
    strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  strides[0] = stride;
  return strides;
}

Tensor scalar_tensor(const Scalar& value, DType dtype) {
  CHECK(fits(value, dtype), "value cannot be converted to type ", dtype_name(dtype),
        " without overflow: ", value);
  Tensor out = empty({}, dtype);
  visit_stored_dtype(dtype, [&]<class T>(Tag<T>) { *out.data<T>() = value.to<T>(); });
  return out;
}

Tensor wrapped_number(const Scalar& value) {
  Tensor out = scalar_tensor(value, value.dtype());
  out.impl()->wrapped_number = true;
  return out;
}

Tensor alias(const Tensor& tensor, ShapeRef sizes, ShapeRef strides, int64_t offset) {
  if (tensor.is_sparse()) refuse_sparse(tensor);
  if (!tensor.has_elements()) throw NeedsElements(tensor);
  CHECK(sizes.size() == strides.size(),
        "mismatch in length of strides and shape: ", ShapeText{strides}, " and ", ShapeText{sizes});
  CHECK(offset >= 0, "storage offset must not be negative, got ", offset);
  checked_numel(sizes);
  int64_t needed = storage_bytes_needed(sizes, strides, offset, tensor.itemsize());
  CHECK(needed <= int64_t(tensor.storage()->bytes()), "setStorage: sizes ", ShapeText{sizes},
        ", strides ", ShapeText{strides}, ", storage offset ", offset, ", and itemsize ",
        tensor.itemsize(), " requiring a storage size of ", needed,
        " are out of bounds for storage of size ", tensor.storage()->bytes());
  TensorImpl* impl = new_impl();
  Tensor out(IntrusivePtr<TensorImpl>::adopt(impl));
  impl->storage = tensor.storage();
  impl->offset = offset;
  impl->sizes.assign(sizes.begin(), sizes.end());
  impl->strides.assign(strides.begin(), strides.end());
  impl->dtype = tensor.dtype();
  impl->untracked = tensor.impl()->untracked;
  impl->inference = tensor.impl()->inference;
  impl->layout_changed();
  return out;
}

Tensor shallow_copy(const Tensor& tensor) {
  const TensorImpl& from = *tensor.impl();
  if (is_dispatched(tensor)) [[unlikely]]
    return dispatch_hooks.detach(tensor);
  TensorImpl* impl = new_impl();
  Tensor out(IntrusivePtr<TensorImpl>::adopt(impl));
  impl->storage = from.storage;
  impl->offset = from.offset;
  impl->numel = from.numel;
  impl->sizes = from.sizes;
  impl->strides = from.strides;
  impl->dtype = from.dtype;
  impl->contiguous = from.contiguous;
  impl->wrapped_number = from.wrapped_number;
  impl->untracked = from.untracked;
  impl->inference = from.inference;
  if (from.detours) [[unlikely]] {
    impl->sparse = from.sparse;
    impl->lift = from.lift;
    impl->parts_changed();
  }
  return out;
}

void Tensor::refuse_data() const {
  if (is_sparse()) refuse_sparse(*this);
  if (!has_elements()) throw NeedsElements(*this);
  CHECK(!device().is_meta(), ErrorKind::kNotImplemented, "a Tensor on meta has no data to read.");
  detail::fail(ErrorKind::kNotImplemented, "not implemented for tensors on ", device(),
               ". Move them to the CPU with cpu().");
}

Scalar item(const Tensor& tensor) {
  if (is_lifted(tensor) && level_of(tensor).kind == LevelKind::dual)
    return item(tensor.impl()->lift->value);
  CHECK(tensor.numel() == 1, "a Tensor with ", tensor.numel(),
        " elements cannot be converted to Scalar. Only one-element tensors can.");
  if (tensor.device().is_cuda()) {
    Tensor here = empty({}, tensor.dtype());
    try {
      cuda::copy_bytes(here.data(), {}, tensor.address(), tensor.device(), tensor.itemsize());
    } catch (Error& error) {
      error.name_op("item");
      throw;
    }
    return item(here);
  }
  return visit_stored_dtype(tensor.dtype(),
                            [&]<class T>(Tag<T>) { return number_in<T>(tensor.data()); });
}

int64_t storage_bytes_needed(ShapeRef sizes, ShapeRef strides, int64_t offset, size_t itemsize) {
  int64_t end, unused = 0, bytes;
  bool overflow = __builtin_add_overflow(offset, 1, &end), empty = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    CHECK(strides[d] >= 0, "negative strides are not supported, got ", ShapeText{strides});
    // Each dim has its whole width, of size 0 too, so that views compute new strides and offsets
    // without overflow.
    int64_t width;
    overflow |= __builtin_mul_overflow(std::max<int64_t>(sizes[d], 1), strides[d], &width);
    overflow |= __builtin_add_overflow(end, width, &end);
    overflow |= __builtin_add_overflow(unused, strides[d], &unused);
    empty |= sizes[d] == 0;
  }
  overflow |= __builtin_mul_overflow(end, int64_t(itemsize), &bytes);
  CHECK(!overflow, "sizes ", ShapeText{sizes}, " with strides ", ShapeText{strides},
        " overflow: a storage has at most 2^63 - 1 bytes");
  return empty ? 0 : (end - unused) * int64_t(itemsize);
}

bool may_overlap(const Tensor& a, const Tensor& b) {
  if (!(a.storage() == b.storage()) || a.numel() == 0 || b.numel() == 0) return false;
  auto begin = [](const Tensor& t) { return t.offset() * int64_t(t.itemsize()); };
  auto end = [](const Tensor& t) {
    return storage_bytes_needed(t.sizes(), t.strides(), t.offset(), t.itemsize());
  };
  return begin(a) < end(b) && begin(b) < end(a);
}

bool has_internal_overlap(const Tensor& tensor) {
  if (tensor.is_contiguous()) return false;
  for (size_t d = 0; d < tensor.sizes().size(); ++d)
    if (tensor.strides()[d] == 0 && tensor.sizes()[d] > 1) return true;
  return false;
}

void check_writable(const Tensor& tensor, bool fills) {
  settle_before_write(*tensor.storage());
  CHECK(!tensor.storage()->readonly(),
        "the tensor shares read-only memory and cannot be changed in "
        "place. Call .clone() first.");
  CHECK(fills || !has_internal_overlap(tensor),
        "unsupported operation: more than one element of the written-to tensor refers to a single "
        "memory location. Please clone() the tensor before performing the operation.");
}

}  // namespace rushlight
