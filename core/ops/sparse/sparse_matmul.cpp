// Owns the products of sparse matrices with dense and sparse ones, and their gradients. The kernels
// are in sparse_cpu.cpp.
#include "core/ops/matmul/matmul.h"
#include "core/ops/op.h"
#include "core/ops/sparse/sparse.h"
#include "core/ops/sparse/sparse_kernels.h"

namespace rushlight {
namespace {

Tensor adjoint_of(const Tensor& matrix) { return conj(transpose(matrix, 0, 1)); }

// A pattern and values, transposed or not, times a dense matrix.
Tensor sparse_dense(const Tensor& values, const Tensor& pattern, const Tensor& dense,
                    bool transposed) {
  return call<"_sparse_dense_mm", Tensor>(values, pattern, dense, transposed);
}

const SparsePattern::Ptr& expect_pattern(const Tensor& tensor) {
  CHECK(tensor.is_sparse(), "expected a sparse matrix, but got one of layout strided.");
  return pattern_of(tensor);
}

void check_matrix(const Tensor& tensor, const char* name) {
  CHECK(tensor.dim() == 2, name, " must be a matrix, but has shape ", tensor.sizes(), ".");
  CHECK(!tensor.is_sparse() || pattern_of(tensor)->sparse_dim() == 2, name, " has ",
        tensor.is_sparse() ? 2 - pattern_of(tensor)->sparse_dim() : 0,
        " dense dims. A sparse matrix in a product must have none.");
}

// All rows of a batch of matrices, as one matrix.
Tensor joined_rows(const Tensor& batch) {
  int64_t rows = checked_numel(ShapeRef(batch.sizes()).first(size_t(batch.dim() - 1)));
  return reshape(batch, Shape{rows, batch.size(-1)});
}

// A sparse matrix without blocks.
Tensor without_blocks(const Tensor& matrix) {
  return has_blocks(layout_of(matrix)) ? to_layout(matrix, Layout::sparse_coo) : matrix;
}

}  // namespace

Tensor sparse_mm(const Tensor& input, const Tensor& mat2) {
  check_matrix(input, "input");
  check_matrix(mat2, "mat2");
  check_kinds(input, mat2);
  check_inner(input, mat2);
  if (!mat2.is_sparse())
    return sparse_dense(sparse_values(input), bare_pattern(input), mat2, false);
  if (!input.is_sparse()) {
    Tensor turned =
        sparse_dense(sparse_values(mat2), bare_pattern(mat2), transpose(input, 0, 1), true);
    return transpose(turned, 0, 1);
  }
  Tensor left = without_blocks(input), right = without_blocks(mat2);
  Tensor product = call<"_sparse_sparse_mm", Tensor>(sparse_values(left), bare_pattern(left),
                                                     sparse_values(right), bare_pattern(right));
  if (!has_blocks(layout_of(input))) return to_layout(product, layout_of(input));
  int64_t columns = has_blocks(layout_of(mat2)) ? pattern_of(mat2)->block()[1] : 1;
  return to_layout(product, layout_of(input), {}, Shape{pattern_of(input)->block()[0], columns});
}

// A batch of sparse matrices multiplies as one matrix with them along its diagonal.
Tensor sparse_bmm(const Tensor& input, const Tensor& mat2) {
  CHECK(input.is_sparse() && !mat2.is_sparse(), ErrorKind::kNotImplemented,
        "a batch of products takes a sparse tensor and a dense one, but got layouts ",
        layout_name(layout_of(input)), " and ", layout_name(layout_of(mat2)), ".");
  const SparsePattern& pattern = *pattern_of(input);
  CHECK(input.dim() == 3 && pattern.sparse_dim() == 3 && mat2.dim() == 3 &&
            input.size(0) == mat2.size(0) && input.size(2) == mat2.size(1),
        "batches of shapes ", input.sizes(), " with ", pattern.sparse_dim(), " sparse dims and ",
        mat2.sizes(), " do not multiply.");
  check_kinds(input, mat2);
  Tensor product =
      sparse_dense(sparse_values(input), bare_pattern(input), joined_rows(mat2), false);
  return reshape(product, Shape{input.size(0), input.size(1), mat2.size(2)});
}

Tensor sparse_linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  check_matrix(weight, "weight");
  CHECK(input.dim() > 0 && input.size(-1) == weight.size(1), "input ", input.sizes(),
        " does not have the ", weight.size(1), " features that weight ", weight.sizes(), " takes.");
  if (!input.is_sparse() && input.dim() != 2) {
    Shape sizes = input.sizes();
    sizes.pop_back();
    Tensor rows = reshape(input, Shape{checked_numel(sizes), weight.size(1)});
    sizes.push_back(weight.size(0));
    return reshape(sparse_linear(rows, weight, bias), sizes);
  }
  check_matrix(input, "input");
  // The weight from the left: it need not be turned for that.
  Tensor product = weight.is_sparse() && !input.is_sparse()
                       ? contiguous(transpose(mm(weight, transpose(input, 0, 1)), 0, 1))
                       : mm(input, transpose(weight, 0, 1));
  return bias.defined() ? add(bias, product) : product;
}

OP(_sparse_dense_mm, "(Tensor values, Tensor pattern, Tensor dense, bool transposed) -> Tensor", {
  .home    = "core",
  .doc     = R"(The product of a sparse matrix, given as a pattern and values, and a dense one.)",
  .seen    = Seen::never,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& values, const Tensor& pattern, const Tensor& dense,
                bool transposed) {
    return multiply_sparse_dense(*expect_pattern(pattern), values, dense, transposed);
  },
  .saves   = saves<"values", "pattern", "dense">,
  .grads   = grads(
      d<"values">(uses<"pattern", "dense">, [](const Tensor& g, const Tensor& pattern,
                                               const Tensor& dense, bool transposed) {
        Tensor right = conj(dense);
        return call<"_sparse_dots", Tensor>(pattern, transposed ? right : g,
                                            transposed ? g : right);
      }),
      no_grad<"pattern">,
      d<"dense">(uses<"values", "pattern">, [](const Tensor& g, const Tensor& values,
                                               const Tensor& pattern, bool transposed) {
        return sparse_dense(conj(values), pattern, g, !transposed);
      })),
})

OP(_sparse_dots, "(Tensor pattern, Tensor left, Tensor right) -> Tensor", {
  .home    = "core",
  .doc     = R"(left[r, :] . right[c, :] for each entry (r, c) of a sparse matrix.)",
  .seen    = Seen::never,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& pattern, const Tensor& left, const Tensor& right) {
    return dots_of_entries(*expect_pattern(pattern), left, right);
  },
  .saves   = saves<"pattern", "left", "right">,
  .grads   = grads(
      no_grad<"pattern">,
      d<"left">(uses<"pattern", "right">, [](const Tensor& g, const Tensor& pattern,
                                             const Tensor& right) {
        return sparse_dense(g, pattern, conj(right), false);
      }),
      d<"right">(uses<"pattern", "left">, [](const Tensor& g, const Tensor& pattern,
                                             const Tensor& left) {
        return sparse_dense(g, pattern, conj(left), true);
      })),
})

OP(_sparse_sparse_mm, "(Tensor a_values, Tensor a, Tensor b_values, Tensor b) -> Tensor", {
  .home    = "core",
  .doc     = R"(The product of two sparse matrices, given as patterns and values: a COO matrix.)",
  .seen    = Seen::never,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& a_values, const Tensor& a, const Tensor& b_values,
                const Tensor& b) {
    const SparsePattern &left = *expect_pattern(a), &right = *expect_pattern(b);
    SparseProduct product = multiply_sparse(left, a_values, right, b_values);
    Shape sizes{a.size(0), b.size(1)};
    return make_sparse(SparsePattern::coo(product.indices, sizes, true), product.values);
  },
  .saves   = saves<"a_values", "a", "b_values", "b">,
  .grads   = grads(
      d<"a_values">(uses<"a", "b_values", "b">, [](const Tensor& g, const Tensor& a,
                                                   const Tensor& b_values, const Tensor& b) {
        return elements_at(mm(g, adjoint_of(sparse_like(b_values, b))), a);
      }),
      no_grad<"a">,
      d<"b_values">(uses<"a_values", "a", "b">, [](const Tensor& g, const Tensor& a_values,
                                                   const Tensor& a, const Tensor& b) {
        return elements_at(mm(adjoint_of(sparse_like(a_values, a)), g), b);
      }),
      no_grad<"b">),
})

OP(sspaddmm,
   "(Tensor input, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", {
  .doc     = R"(beta * input + alpha * mm(mat1, mat2) as a sparse matrix.)",
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input, const Tensor& mat1, const Tensor& mat2, Scalar beta,
                Scalar alpha) {
    Tensor product = to_layout(mm(mat1, mat2), Layout::sparse_coo);
    return add(to_layout(input, Layout::sparse_coo) * beta, product, alpha);
  },
})

OP(smm, "(Tensor input, Tensor mat) -> Tensor", {
  .doc     = R"(The product of a sparse and a dense matrix as a sparse one.)",
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input, const Tensor& mat) {
    return to_layout(mm(input, mat), Layout::sparse_coo);
  },
})

OP(hspmm, "(Tensor mat1, Tensor mat2) -> Tensor", {
  .doc     = R"(The product of a sparse and a dense matrix as a matrix with sparse rows.)",
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& mat1, const Tensor& mat2) {
    return to_layout(mm(mat1, mat2), Layout::sparse_coo, 1);
  },
})

OP(sampled_addmm,
   "(Tensor input, Tensor mat1, Tensor mat2, *, Scalar beta=1.0, Scalar alpha=1.0) -> Tensor", {
  .home    = "sparse",
  .doc     = R"(beta * input + alpha * matmul(mat1, mat2) at the entries of sparse matrices only.

The product is not computed elsewhere. All three are matrices, or batches of as many.)",
  .dtypes  = floating_or_complex,
  .gpu     = none<"sparse tensors live on the CPU">,
  .sparse  = by_forward,
  .forward = [](const Tensor& input, const Tensor& mat1, const Tensor& mat2, Scalar beta,
                Scalar alpha) {
    CHECK(input.is_sparse(), "input must be a sparse matrix, but its layout is strided.");
    int64_t dims = pattern_of(input)->sparse_dim();
    CHECK(dims >= 2 && dims == input.dim() && (dims == 2 || !pattern_of(input)->is_coo()),
          "input of shape ", input.sizes(), " and layout ", layout_name(layout_of(input)),
          " must be a matrix without dense dims, or a batch in a compressed layout.");
    for (const Tensor* factor : {&mat1, &mat2})
      CHECK(!factor->is_sparse() && factor->dim() == dims && factor->dtype() == input.dtype(),
            "mat1 and mat2 must be dense tensors of ", dims, " dims, as input, and dtype ",
            dtype_name(input.dtype()), ", but one has layout ", layout_name(layout_of(*factor)),
            ", shape ", factor->sizes(), " and dtype ", dtype_name(factor->dtype()), ".");
    Shape left = input.sizes(), right = left;
    left.back() = right[size_t(dims) - 2] = mat1.size(-1);
    CHECK(mat1.sizes() == left && mat2.sizes() == right, "shapes ", mat1.sizes(), " and ",
          mat2.sizes(), " do not multiply to that of input, ", input.sizes(), ".");
    Tensor dots = call<"_sparse_dots", Tensor>(bare_pattern(input), joined_rows(mat1),
                                               joined_rows(transpose(mat2, -2, -1)));
    return sparse_like(sparse_values(input) * beta + dots * alpha, input);
  },
})

}  // namespace rushlight
