// Declares what the kernels of CUDA share: the matrices of a batch, one by one and by address.
#pragma once

#include "core/device/cuda.h"
#include "core/device/cusolver.h"
#include "core/ops/linalg/linalg.h"

namespace rushlight {

inline int64_t count_of(const Tensor& batch) { return checked_numel(batch_sizes(batch)); }

template <class T>
T* matrix_at(const Tensor& batch, int64_t i) {
  return static_cast<T*>(batch.address()) + i * batch.size(-2) * batch.size(-1);
}
template <class T>
T* vector_at(const Tensor& batch, int64_t i) {
  return static_cast<T*>(batch.address()) + i * batch.size(-1);
}
template <class T>
T* number_at(const Tensor& batch, int64_t i) {
  return static_cast<T*>(batch.address()) + i;
}

// Calls f(Tag<T>) for the dtype of a tensor, with its device as the current one.
template <class F>
void visit_on_device(const Tensor& t, F&& f) {
  cuda::DeviceGuard guard(t.device().index);
  visit_lapack_type(t.dtype(), f);
}
// Calls f(Tag<T>, i) for each matrix of a batch.
template <class F>
void for_each_on_device(const Tensor& batch, F&& f) {
  visit_on_device(batch, [&]<class T>(Tag<T> type) {
    for (int64_t i = 0; i < count_of(batch); ++i) f(type, i);
  });
}

inline void clear(const Tensor& t) { call<"zero_", Tensor>(t); }
// Where info is 0, it becomes i for the first i - 1 at which `is_wrong`, (*, n), is true.
void mark_first(const Tensor& info, const Tensor& is_wrong);

}  // namespace rushlight
