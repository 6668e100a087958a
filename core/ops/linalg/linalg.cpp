// Owns the checks and layouts that the families of linear algebra share.
#include "core/ops/linalg/linalg.h"

#include <limits>

#include "core/autograd/grad_mode.h"
#include "core/autograd/needs.h"
#include "core/tensor/dims.h"

namespace rushlight {
namespace {

// Of these, a row of a tile loop would be too short to be worth its overhead.
constexpr int64_t kSmallMatrix = 32;

// Element by element: matrices of a batch in row-major order to column-major ones.
template <class T>
void turn_matrices(const T* from, T* to, int64_t count, int64_t rows, int64_t columns) {
  parallel_for(0, count, (1 << 15) / (rows * columns) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const T* source = from + k * rows * columns;
      T* target = to + k * rows * columns;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) target[j * rows + i] = source[i * columns + j];
    }
  });
}

}  // namespace

void check_matrices(const Tensor& t, const char* name) {
  CHECK(t.dim() >= 2, "The input tensor ", name, " must have at least 2 dimensions, but has shape ",
        t.sizes(), ".");
}

void check_square(const Tensor& t, const char* name) {
  check_matrices(t, name);
  CHECK(t.size(-1) == t.size(-2), name, " must be batches of square matrices, but they are ",
        t.size(-2), " by ", t.size(-1), " matrices");
}

void check_alike(const Tensor& a, const char* a_name, const Tensor& b, const char* b_name) {
  CHECK(a.dtype() == b.dtype(), "Expected ", a_name, " and ", b_name,
        " to have the same dtype, but found ", a_name, " of type ", dtype_name(a.dtype()), " and ",
        b_name, " of type ", dtype_name(b.dtype()), ". Convert one with .to(dtype).");
  common_device(std::array{&a, &b});
}

Shape batch_sizes(const Tensor& t) { return Shape(t.sizes().begin(), t.sizes().end() - 2); }

Shape with_matrix(Shape batch, int64_t rows, int64_t columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

Shape with_vector(Shape batch, int64_t length) {
  batch.push_back(length);
  return batch;
}

int64_t smaller_side(const Tensor& t) { return std::min(t.size(-2), t.size(-1)); }

Tensor column_major(const Shape& sizes, DType dtype, Device device) {
  size_t n = sizes.size();
  Shape strides = sizes;
  std::swap(strides[n - 1], strides[n - 2]);
  strides = contiguous_strides(strides);
  std::swap(strides[n - 1], strides[n - 2]);
  return empty_strided(sizes, strides, dtype, device);
}

Tensor no_matrices(const Tensor& A, DType dtype) {
  return empty(with_matrix(batch_sizes(A), 0, 0), dtype, A.device());
}

Tensor column_major_copy(const Tensor& t) {
  Tensor copy = column_major(t.sizes(), t.dtype(), t.device());
  int64_t rows = t.size(-2), columns = t.size(-1);
  bool is_small = rows <= kSmallMatrix && columns <= kSmallMatrix;
  if (t.device().is_cpu() && t.is_contiguous() && t.numel() > 0 && is_small) {
    visit_item(int64_t(t.itemsize()), [&]<class T>(Tag<T>) {
      turn_matrices(t.data<T>(), copy.data<T>(), t.numel() / (rows * columns), rows, columns);
    });
  } else {
    copy_into(copy, t);
  }
  return copy;
}

Tensor readable(const Tensor& t) {
  return to_contiguous(t.device().is_cuda() ? needs::to_device(t, {}) : t);
}

Tensor no_exchanges(const Tensor& pivots) {
  return call<"arange_start", Tensor>(Scalar(1), Scalar(pivots.size(-1) + 1), Scalar(1),
                                      std::optional(DType::int32), std::optional(pivots.device()));
}

std::string in_batch(const Tensor& info, int64_t index) {
  return info.dim() == 0 ? "" : "(Batch element " + std::to_string(index) + "): ";
}

void check_converged(const Tensor& info, const char* values) {
  check_info(info, [&](int64_t i, int code) {
    CHECK(code > 0, ErrorKind::kLinAlg, in_batch(info, i),
          "The algorithm failed to converge because the input matrix contained non-finite values.");
    CHECK(false, ErrorKind::kLinAlg, in_batch(info, i),
          "The algorithm failed to converge because the input matrix is ill-conditioned or has too "
          "many repeated ",
          values, " (error code: ", code, ").");
  });
}

bool are_vectors(const Tensor& A, const Tensor& B) {
  return B.dim() == 1 || (B.dim() == A.dim() - 1 &&
                          same_shape(B.sizes(), ShapeRef(A.sizes()).first(A.sizes().size() - 1)));
}

Tensor pinv_gradient(const Tensor& g, const Tensor& A, const Tensor& P) {
  Tensor Ph = adjoint(P), gh = adjoint(g);
  Tensor inner = matmul(gh, P);  // (m, m)
  Tensor outer = matmul(P, gh);  // (n, n)
  Tensor grad = -matmul(matmul(Ph, g), Ph);
  grad = grad + matmul(inner - matmul(A, matmul(P, inner)), Ph);
  return grad + matmul(Ph, outer - matmul(matmul(outer, P), A));
}

void check_phases(const Tensor& changes, const char* op, const char* vectors) {
  if (!is_complex(changes.dtype()) || !has_values(changes)) return;
  GradModeGuard unrecorded(false);
  constexpr double kTolerance = 1e-2;  // PyTorch's: far above what rounding leaves
  CHECK(all_true(abs(changes) <= 2 * kTolerance), op, "_backward: The ", vectors,
        " in the complex case are specified up to multiplication by e^{i phi}. The specified loss "
        "function depends on this phase term, making it ill-defined.");
}

bool is_differentiated(const Tensor& A) {
  if (is_grad_enabled() && gradient_edge_exists(A)) return true;
  for (const Tensor* t = &A; is_lifted(*t); t = &t->impl()->lift->value)
    if (level_of(*t).kind == LevelKind::dual) return true;
  return false;
}

double rounding_error(DType dtype) {
  bool is_single = real_dtype(dtype) == DType::float32;
  return is_single ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
}

}  // namespace rushlight
