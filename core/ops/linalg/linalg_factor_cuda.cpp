// Defines for CUDA the factorizations of linalg.h, and the solutions by them, by cuSOLVER and
// cuBLAS.
//
// A batch of small matrices goes to a routine for many where there is one; others are queued matrix
// by matrix. What LAPACK does beside them, as clearing the other triangle, is made of ops.
#include "core/ops/linalg/linalg_cuda.h"

namespace rushlight {

using cusolver::Cusolver;

namespace {

// From here on a matrix should keep the device busy by itself; nobody has measured where that is.
constexpr int64_t kLarge = 512;

bool go_together(const Tensor& batch) { return count_of(batch) > 1 && batch.size(-2) < kLarge; }

// The addresses of the matrices of a batch, written on the device.
template <class T>
class Addresses {
 public:
  explicit Addresses(const Tensor& batch) : count_(count_of(batch)) {
    Tensor places = call<"arange", Tensor>(Scalar(count_), std::optional(DType::int64),
                                           std::optional(batch.device()));
    int64_t bytes = batch.size(-2) * batch.size(-1) * int64_t(sizeof(T));
    addresses_ = places * Scalar(bytes) + Scalar(int64_t(uintptr_t(batch.address())));
  }
  operator cusolver::Many<T>() const {  // NOLINT
    return {static_cast<T* const*>(addresses_.address()), count_};
  }

 private:
  int64_t count_;
  Tensor addresses_;
};

// Whether the row exchanges turn the sign of a determinant, as -1 or 1: (*).
Tensor sign_of_exchanges(const Tensor& pivots, DType dtype) {
  Tensor exchanges = sum(pivots != no_exchanges(pivots), Shape{-1});
  Tensor odd = remainder(exchanges, wrapped_number(2));
  return cast(1 - odd * 2, dtype);
}

}  // namespace

void mark_first(const Tensor& info, const Tensor& is_wrong) {
  Tensor first =
      call<"argmax", Tensor>(cast(is_wrong, DType::int32), std::optional<int64_t>(-1), false);
  Tensor any = call<"any", Tensor>(is_wrong, std::optional<ShapeRef>(Shape{-1}), false);
  copy_into(info, where(any & (info == 0), cast(first + 1, DType::int32), info));
}

void cholesky_cuda(const Tensor& a, bool upper, const Tensor& info) {
  int64_t n = a.size(-1);
  if (a.numel() == 0) return clear(info);
  if (go_together(a)) {
    visit_on_device(a, [&]<class T>(Tag<T>) {
      Cusolver<T>::potrf(upper, n, Addresses<T>(a), number_at<int>(info, 0));
    });
  } else {
    for_each_on_device(a, [&]<class T>(Tag<T>, int64_t i) {
      Cusolver<T>::potrf(upper, n, matrix_at<T>(a, i), number_at<int>(info, i));
    });
  }
  copy_into(a, upper ? triu(a) : tril(a));
  mark_first(info, !(real_part(diagonal_of(a)) > 0));  // NaN is not positive
}

void lu_cuda(const Tensor& a, const Tensor& pivots, const Tensor& info) {
  int64_t m = a.size(-2), n = a.size(-1);
  if (a.numel() == 0) return clear(info);
  auto exchanged = [&](int64_t i) {
    return pivots.defined() ? vector_at<int>(pivots, i) : nullptr;
  };
  if (m == n && go_together(a)) {
    visit_on_device(a, [&]<class T>(Tag<T>) {
      Cusolver<T>::getrf(n, Addresses<T>(a), exchanged(0), number_at<int>(info, 0));
    });
  } else {
    for_each_on_device(a, [&]<class T>(Tag<T>, int64_t i) {
      Cusolver<T>::getrf(m, n, matrix_at<T>(a, i), exchanged(i), number_at<int>(info, i));
    });
  }
}

void identity_cuda(const Tensor& a) {
  Tensor one = call<"eye", Tensor>(a.size(-2), std::optional(a.size(-1)), std::optional(a.dtype()),
                                   std::optional(a.device()));
  copy_into(a, expand(one, a.sizes()));
}

void lu_solve_cuda(const Tensor& lu, const Tensor& pivots, const Tensor& b, char trans) {
  int64_t n = lu.size(-1), columns = b.size(-1);
  if (b.numel() == 0) return;
  if (go_together(b)) {
    visit_on_device(b, [&]<class T>(Tag<T>) {
      Cusolver<T>::getrs(trans, n, columns, Addresses<T>(lu), vector_at<int>(pivots, 0),
                         Addresses<T>(b));
    });
  } else {
    for_each_on_device(b, [&]<class T>(Tag<T>, int64_t i) {
      Cusolver<T>::getrs(trans, n, columns, matrix_at<T>(lu, i), vector_at<int>(pivots, i),
                         matrix_at<T>(b, i));
    });
  }
}

void det_cuda(const Tensor& lu, const Tensor& pivots, const Tensor& result) {
  Tensor product =
      call<"prod_dim", Tensor>(diagonal_of(lu), int64_t(-1), false, std::optional<DType>());
  copy_into(result, product * sign_of_exchanges(pivots, lu.dtype()));
}

void slogdet_cuda(const Tensor& lu, const Tensor& pivots, const Tensor& sign,
                  const Tensor& logabsdet) {
  Tensor diagonal = diagonal_of(lu);
  Tensor product =
      call<"prod_dim", Tensor>(sgn(diagonal), int64_t(-1), false, std::optional<DType>());
  copy_into(sign, product * sign_of_exchanges(pivots, lu.dtype()));
  copy_into(logabsdet, sum(log(abs(diagonal)), Shape{-1}));
}

void solve_triangular_cuda(const Tensor& a, const Tensor& b, bool upper, bool unitriangular) {
  int64_t n = a.size(-1), columns = b.size(-1);
  if (b.numel() == 0) return;
  bool by_rows = a.is_contiguous();
  Tensor dense = by_rows || turned(a).is_contiguous() ? a : column_major_copy(a);
  char trans = by_rows ? 'T' : 'N';
  if (go_together(b)) {
    visit_on_device(b, [&]<class T>(Tag<T>) {
      Cusolver<T>::trsm(upper != by_rows, trans, unitriangular, n, columns, Addresses<T>(dense),
                        Addresses<T>(b));
    });
  } else {
    for_each_on_device(b, [&]<class T>(Tag<T>, int64_t i) {
      Cusolver<T>::trsm(upper != by_rows, trans, unitriangular, n, columns, matrix_at<T>(dense, i),
                        matrix_at<T>(b, i));
    });
  }
}

void ldl_cuda(const Tensor& a, const Tensor& pivots, const Tensor& info, bool hermitian) {
  int64_t n = a.size(-1);
  if (a.numel() == 0) return clear(info);
  if (hermitian && is_complex(a.dtype())) {
    Tensor wide = empty(pivots.sizes(), DType::int64, a.device());
    for_each_on_device(a, [&]<class T>(Tag<T>, int64_t i) {
      Cusolver<T>::hetrf(n, matrix_at<T>(a, i), vector_at<int64_t>(wide, i),
                         number_at<int>(info, i));
    });
    copy_into(pivots, cast(wide, DType::int32));
  } else {
    for_each_on_device(a, [&]<class T>(Tag<T>, int64_t i) {
      Cusolver<T>::sytrf(n, matrix_at<T>(a, i), vector_at<int>(pivots, i), number_at<int>(info, i));
    });
  }
}

void ldl_solve_cuda(const Tensor& ld, const Tensor& pivots, const Tensor& b, bool hermitian) {
  if (b.numel() == 0) return;
  Tensor wide = cast(pivots, DType::int64);
  for_each_on_device(b, [&]<class T>(Tag<T>, int64_t i) {
    Cusolver<T>::sytrs(hermitian, ld.size(-1), b.size(-1), matrix_at<T>(ld, i),
                       vector_at<int64_t>(wide, i), matrix_at<T>(b, i));
  });
}

void geqrf_cuda(const Tensor& a, const Tensor& tau) {
  if (a.numel() == 0) return;
  for_each_on_device(a, [&]<class T>(Tag<T>, int64_t i) {
    Cusolver<T>::geqrf(a.size(-2), a.size(-1), matrix_at<T>(a, i), vector_at<T>(tau, i));
  });
}

void householder_cuda(const Tensor& a, const Tensor& tau) {
  if (a.numel() == 0) return;
  if (tau.numel() == 0) return identity_cuda(a);
  for_each_on_device(a, [&]<class T>(Tag<T>, int64_t i) {
    Cusolver<T>::orgqr(a.size(-2), a.size(-1), tau.size(-1), matrix_at<T>(a, i),
                       vector_at<T>(tau, i));
  });
}

void ormqr_cuda(const Tensor& a, const Tensor& tau, const Tensor& c, bool left, bool adjoint) {
  if (c.numel() == 0 || tau.numel() == 0) return;
  for_each_on_device(c, [&]<class T>(Tag<T>, int64_t i) {
    Cusolver<T>::ormqr(left, adjoint, c.size(-2), c.size(-1), tau.size(-1), matrix_at<T>(a, i),
                       vector_at<T>(tau, i), matrix_at<T>(c, i));
  });
}

}  // namespace rushlight
