// Owns Tensor, the handle that everything passes around, and TensorImpl behind it: sizes, strides,
// offset and dtype over a shared Storage. Knows nothing of ops; autograd hangs its data on it.
//
// One Python object per impl: the bindings keep a borrowed or owned pointer here.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/lazy_ptr.h"
#include "core/base/scalar.h"
#include "core/base/shape.h"
#include "core/tensor/storage.h"

namespace rushlight {

// What autograd keeps with a tensor; defined in autograd/node.h.
class AutogradMetaBase {
 public:
  virtual ~AutogradMetaBase() = default;
};

// What sparse and lifted tensors have instead of elements in their storage; defined in
// tensor/sparse.h and tensor/lift.h.
class SparseParts;
class Lift;

// Why an op leaves its usual path for a tensor: its elements are not in its storage, or its class
// has a __torch_dispatch__, which runs in place of ops; see Note [Dispatch to Python] in
// tensor/dispatch.h. A wrapper is a tensor of such a class that has no elements of its own.
enum Detour : uint8_t { kIsSparse = 1, kIsLifted = 2, kIsDispatched = 4, kIsWrapper = 8 };

class TensorImpl : public RefCounted {
 public:
  static void destroy(TensorImpl* impl);

  Storage storage;
  int64_t offset = 0;  // in elements
  int64_t numel = 0;
  Shape sizes;
  Shape strides;
  DType dtype = DType::float32;
  bool contiguous = true;      // row-major without gaps
  bool requires_grad = false;  // a leaf that collects a gradient, or the result of a recorded op
  // A Python number in tensor's clothes: it takes part in promotion by category only.
  bool wrapped_number = false;
  // Made under inference_mode: never recorded.
  bool inference = false;
  // Made by .data: writes through it do not count as versions.
  bool untracked = false;
  // One of the saved_windows of the storage.
  bool saved = false;
  // A set of Detour; empty for a plain dense tensor.
  uint8_t detours = 0;
  LazyPtr<AutogradMetaBase> autograd;
  // Both null for a dense tensor. With either, the storage has no memory.
  IntrusivePtr<SparseParts> sparse;
  IntrusivePtr<Lift> lift;

  // Managed by the bindings. See Note [One Python object per tensor] in bindings/tensor.cpp.
  void* py_object = nullptr;
  bool owns_py_object = false;
  inline static void (*release_py_object)(void* py_object) = nullptr;

  // Recomputes numel and contiguous after sizes or strides changed.
  void layout_changed();
  // Notes in `detours` what `sparse` and `lift` are now.
  void parts_changed();
};

// What kinds of memory order a tensor can be asked for.
enum class MemoryFormat : uint8_t { contiguous, preserve, channels_last, channels_last_3d };

class Tensor {
 public:
  Tensor() = default;
  // A 0-d tensor that acts as a number in promotion: how formulas write constants.
  explicit Tensor(double value);
  explicit Tensor(IntrusivePtr<TensorImpl> impl) : impl_(std::move(impl)) {}

  bool defined() const { return bool(impl_); }
  TensorImpl* impl() const { return impl_.get(); }
  const IntrusivePtr<TensorImpl>& ptr() const { return impl_; }
  bool is(const Tensor& other) const { return impl_ == other.impl_; }

  // Lets go of an impl that is gone already.
  void forget() { impl_.detach(); }

  const Shape& sizes() const { return impl_->sizes; }
  const Shape& strides() const { return impl_->strides; }
  int64_t dim() const { return int64_t(impl_->sizes.size()); }
  int64_t size(int64_t dim) const { return impl_->sizes[wrap_dim(dim, this->dim())]; }
  int64_t stride(int64_t dim) const { return impl_->strides[wrap_dim(dim, this->dim())]; }
  int64_t numel() const { return impl_->numel; }
  int64_t offset() const { return impl_->offset; }
  DType dtype() const { return impl_->dtype; }
  size_t itemsize() const { return dtype_size(impl_->dtype); }
  Device device() const { return impl_->storage->device(); }
  const Storage& storage() const { return impl_->storage; }
  bool is_contiguous() const { return impl_->contiguous; }
  bool is_contiguous(MemoryFormat format) const;
  // Every element has its own place and there are no gaps, in whatever order of dims.
  bool is_dense() const;
  bool requires_grad() const { return impl_->requires_grad; }
  // In any of the sparse layouts.
  bool is_sparse() const { return bool(impl_->sparse); }
  // Whether ops leave their usual path: sparse, lifted, or of a class that ops are dispatched to.
  bool is_hollow() const { return impl_->detours; }
  // Whether the elements are in the storage.
  bool has_elements() const { return !(impl_->detours & ~kIsDispatched); }

  // The first element, in the memory of the CPU. Raises for a tensor of another device and for a
  // sparse or lifted one, so that no loop of the CPU ever sees an address of something else.
  void* data() const {
    if (!impl_->storage->on_cpu()) [[unlikely]]
      refuse_data();
    return address();
  }
  template <class T>
  T* data() const {
    return static_cast<T*>(data());
  }
  // The first element in the memory of its device; meaningless on meta.
  void* address() const {
    return static_cast<char*>(impl_->storage->data()) + impl_->offset * int64_t(itemsize());
  }

 private:
  [[noreturn]] void refuse_data() const;

  IntrusivePtr<TensorImpl> impl_;
};

using TensorList = std::span<const Tensor>;

// The dtype of float tensors made without one: float32 until set_default_dtype.
DType default_dtype();
void set_default_dtype(DType dtype);

// Uninitialized, row-major.
Tensor empty(ShapeRef sizes, DType dtype, Device device = {});
// Uninitialized with the given strides over just enough memory.
Tensor empty_strided(ShapeRef sizes, ShapeRef strides, DType dtype, Device device = {});
// The strides of a dense tensor of these sizes in the given order of dims.
Shape strides_for(ShapeRef sizes, MemoryFormat format);
// A window on a storage, whose bounds are not checked.
Tensor on_storage(Storage storage, ShapeRef sizes, ShapeRef strides, DType dtype);
// A 0-d CPU tensor.
Tensor scalar_tensor(const Scalar& value, DType dtype);
// A number as an operand: bool, int64, float64 or complex128, marked wrapped_number.
Tensor wrapped_number(const Scalar& value);
// Another window on the same storage; no autograd history. Checks that it stays inside.
Tensor alias(const Tensor& tensor, ShapeRef sizes, ShapeRef strides, int64_t offset);
// The same window as another impl: what detach() and saved results need.
Tensor shallow_copy(const Tensor& tensor);
// Reads the one element.
Scalar item(const Tensor& tensor);

// Bytes from the start of the storage to past the last element that sizes and strides reach. Raises
// when this, or what a view could compute from the strides, overflows.
int64_t storage_bytes_needed(ShapeRef sizes, ShapeRef strides, int64_t offset, size_t itemsize);
// Whether two tensors can touch the same byte.
bool may_overlap(const Tensor& a, const Tensor& b);
// Whether a dim repeats elements, as in an expanded tensor. Other strides by which two elements
// share memory are not looked for.
bool has_internal_overlap(const Tensor& tensor);
// Refuses what must not be written in place: read-only memory, or elements that share memory,
// unless all get one value.
void check_writable(const Tensor& tensor, bool fills = false);

}  // namespace rushlight
