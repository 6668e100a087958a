// Owns the ops that multiply vectors and matrices. The kernels are in matmul_kernel.cpp.
//
// Three ops compute: mm, _matmul (batches) and linear. The others are made of them, so that their
// gradients come for free; no gradient copies a transposed matrix.
#include "core/ops/matmul/matmul.h"

#include "core/ops/op.h"
#include "core/tensor/pointwise.h"

namespace rushlight {
namespace {

Tensor adjoint(const Tensor& matrices) {
  Tensor turned = transpose(matrices, -2, -1);
  return is_complex(turned.dtype()) ? conj(turned) : turned;
}

// All dims but the last as one.
Tensor as_rows(const Tensor& tensor) {
  if (tensor.dim() == 2) return tensor;
  int64_t rows = checked_numel(ShapeRef(tensor.sizes()).first(tensor.sizes().size() - 1));
  return reshape(tensor, Shape{rows, tensor.size(-1)});
}

void check_dim(const Tensor& tensor, const char* name, int64_t dim) {
  static constexpr const char* kinds[] = {"a number", "a vector", "a matrix",
                                          "a 3D tensor, a batch of matrices"};
  CHECK(tensor.dim() == dim, name, " must be ", kinds[dim], ", but has shape ", tensor.sizes(),
        ".");
}

// The same of samples.
void check_ranks(int64_t left, int64_t right, int64_t dim) {
  CHECK(left == dim && right == dim, dim, "D tensors expected, but got ", left, "D and ", right,
        "D tensors.");
}

void check_batches(const Tensor& batch1, const Tensor& batch2) {
  check_dim(batch1, "batch1", 3);
  check_dim(batch2, "batch2", 3);
  CHECK(batch1.size(0) == batch2.size(0) && batch1.size(2) == batch2.size(1),
        "Expected size for first two dimensions of batch2 tensor to be: [", batch1.size(0), ", ",
        batch1.size(2), "] but got: [", batch2.size(0), ", ", batch2.size(1), "].");
}

// The dims before the last two must broadcast.
void check_batch_dims(const Tensor& a, const Tensor& b) {
  size_t a_dims = a.sizes().size() - 2, b_dims = b.sizes().size() - 2;
  for (size_t d = 1; d <= std::min(a_dims, b_dims); ++d) {
    int64_t left = a.sizes()[a_dims - d], right = b.sizes()[b_dims - d];
    CHECK(left == right || left == 1 || right == 1, "the batch dims of shapes ", a.sizes(), " and ",
          b.sizes(), " do not broadcast: ", left, " and ", right,
          " must be equal, or one of them 1.");
  }
}

bool is_number(Scalar scalar, double value) { return scalar.to<std::complex<double>>() == value; }
Tensor times(const Tensor& tensor, Scalar factor) {
  return is_number(factor, 1) ? tensor : tensor * factor;
}

// Whether the input is a bias, which `linear` adds to each row of the product and rounds once.
bool is_bias(const Tensor& input, const Tensor& mat1, const Tensor& mat2) {
  bool is_dense = !input.is_sparse() && !mat1.is_sparse() && !mat2.is_sparse();
  return is_dense && input.dim() == 1 && input.size(0) == mat2.size(1) &&
         input.dtype() == mat1.dtype() && input.dtype() == mat2.dtype();
}

// The input in the shape of a product.
Tensor expand_to_product(const Tensor& input, const Shape& sizes) {
  bool fits =
      input.dim() <= int64_t(sizes.size()) && broadcast_shapes(input.sizes(), sizes) == sizes;
  CHECK(fits, "input of shape ", input.sizes(), " does not broadcast to the product's shape ",
        sizes, ".");
  return input.is_sparse() ? input : expand(input, sizes);
}

// beta * input + alpha * product, where beta = 0 hides even a NaN in input.
Tensor add_scaled(const Tensor& input, const Tensor& product, Scalar beta, Scalar alpha) {
  if (is_bool(product.dtype()))
    for (Scalar* factor : {&beta, &alpha}) {
      CHECK(factor->is_integral(), "booleans are multiplied by ", *factor,
            ". Use beta and alpha of True or False.");
      *factor = factor->to<bool>();
    }
  if (is_integral(product.dtype()))  // as in PyTorch, without a word
    for (Scalar* factor : {&beta, &alpha}) *factor = factor->to<int64_t>();
  CHECK(input.dtype() == product.dtype(), "input is ", dtype_name(input.dtype()),
        ", but the product is ", dtype_name(product.dtype()),
        ". They must have the same dtype; convert one with .to(dtype).");
  if (is_number(beta, 0)) return times(product, alpha);
  Tensor added = expand_to_product(input, product.sizes());
  return add(times(added, beta), times(product, alpha));
}

// beta * input + alpha * matmul(left, right) of two matrices, or two batches of as many.
Tensor add_product(const Tensor& input, const Tensor& left, const Tensor& right, Scalar beta,
                   Scalar alpha) {
  bool is_real = is_floating(left.dtype()) && !beta.is_complex() && !alpha.is_complex();
  bool is_dense = !input.is_sparse() && !left.is_sparse() && !right.is_sparse();
  bool is_empty = left.size(-1) == 0;  // a sum of no products
  if (!is_real || !is_dense || is_empty || input.dtype() != left.dtype())
    return add_scaled(input, matmul(left, right), beta, alpha);
  check_kinds(left, right);
  Shape sizes = left.sizes();
  sizes.back() = right.size(-1);
  return call<"_add_product", Tensor>(expand_to_product(input, sizes), left, right, beta, alpha);
}

// Of matrices, or batches of them whose dims broadcast.
Tensor matrix_product(const Tensor& input, const Tensor& other) {
  if (input.dim() == 2 && other.dim() == 2) return mm(input, other);
  check_batch_dims(input, other);
  return call<"_matmul", Tensor>(input, other);
}

}  // namespace

void check_kinds(const Tensor& a, const Tensor& b, const char* a_name, const char* b_name) {
  bool is_for_class = a.dtype() != b.dtype() && (is_dispatched(a) || is_dispatched(b));
  CHECK(is_for_class || a.dtype() == b.dtype(), a_name, " and ", b_name,
        " must have the same dtype, but got ", dtype_name(a.dtype()), " and ",
        dtype_name(b.dtype()), ". Convert one with .to(dtype).");
  common_device(std::array{&a, &b});
}

void check_inner(const Tensor& a, const Tensor& b) {
  int64_t rows = a.dim() == 1 ? 1 : a.size(-2), columns = b.dim() == 1 ? 1 : b.size(-1);
  int64_t left = a.size(-1), right = b.dim() == 1 ? b.size(0) : b.size(-2);
  CHECK(left == right, "mat1 and mat2 shapes cannot be multiplied (", rows, "x", left, " and ",
        right, "x", columns, "). The last dim of mat1 (", left,
        ") must equal the first dim of mat2 (", right, ").");
}

OP(mm, "(Tensor input, Tensor mat2) -> Tensor", {
  .doc     = R"(The matrix product of two matrices: (n, m) and (m, p) give (n, p).

Example:
    >>> torch.mm(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0]])).tolist()
    [[11.0]])",
  .dtypes  = numeric,
  .autocast = autocast::lower,
  .sparse  = sparse_mm,
  .batch   = [](const Batch& batch, const Tensor& input, const Tensor& mat2) {
    check_ranks(batch.rank("input"), batch.rank("mat2"), 2);
    return matmul(input, mat2);
  },
  .forward = [](const Tensor& input, const Tensor& mat2) {
    check_dim(input, "input", 2);
    check_dim(mat2, "mat2", 2);
    check_kinds(input, mat2);
    check_inner(input, mat2);
    return matmul_kernel(input, mat2);
  },
  .saves   = saves<"input", "mat2">,
  .grads   = grads(
    d<"input">(uses<"mat2">, [](const Tensor& g, const Tensor& mat2) {
      return mm(g, adjoint(mat2));
    }),
    d<"mat2">(uses<"input">, [](const Tensor& g, const Tensor& input) {
      return mm(adjoint(input), g);
    })),
})

OP(_matmul, "(Tensor input, Tensor other) -> Tensor", {
  .home    = "core",
  .doc     = R"(Products of the matrices in the last two dims; the dims before them broadcast.)",
  .dtypes  = numeric,
  .node    = "bmm",
  .batch   = by_elements,
  .forward = [](const Tensor& input, const Tensor& other) {
    CHECK(input.dim() >= 2 && other.dim() >= 2, "both must have at least two dims, got shapes ",
          input.sizes(), " and ", other.sizes(), ".");
    check_kinds(input, other);
    check_inner(input, other);
    return matmul_kernel(input, other);
  },
  .saves   = saves<"input", "other">,
  .grads   = grads(
    d<"input">(uses<"other">, [](const Tensor& g, const Tensor& other) {
      return matmul(g, adjoint(other));
    }),
    d<"other">([](const Tensor& g, const Tensor& input, const Tensor& other) {
      // Against a single matrix all rows are one matrix: no batch of gradients to sum.
      if (other.dim() == 2) return mm(adjoint(as_rows(input)), as_rows(g));
      return matmul(adjoint(input), g);
    })),
})

OP(_add_product,
   "(Tensor input, Tensor left, Tensor right, Scalar beta, Scalar alpha) -> Tensor", {
  .home    = "private",
  .doc     = R"(beta * input + alpha * matmul(left, right) of real floats, rounded once.

The input has the shape of the result.)",
  .dtypes  = floating,
  .node    = "addmm",
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&, const Tensor&, Scalar beta,
                Scalar alpha) {
    return call<"_add_product", Tensor>(batch.full("input"), batch.full("left"),
                                        batch.full("right"), beta, alpha);
  },
  .forward = [](const Tensor& input, const Tensor& left, const Tensor& right, Scalar beta,
                Scalar alpha) {
    common_device(std::array{&input, &left, &right});
    return add_product_kernel(input, left, right, beta.to<double>(), alpha.to<double>());
  },
  .saves   = saves<"left", "right">,
  .grads   = grads(
    d<"input">(uses<>, [](const Tensor& g, Scalar beta, Scalar) { return scaled(g, beta); }),
    d<"left">(uses<"right">, [](const Tensor& g, const Tensor& right, Scalar, Scalar alpha) {
      return scaled(matmul(g, adjoint(right)), alpha);
    }),
    d<"right">(uses<"left">, [](const Tensor& g, const Tensor& left, Scalar, Scalar alpha) {
      return scaled(matmul(adjoint(left), g), alpha);
    })),
})

OP(matmul, "(Tensor input, Tensor other) -> Tensor", {
  .home    = "torch linalg",
  .doc     = R"(The matrix product of two tensors.

Vectors give their dot product; a vector on the left is a row and on the right a column, a dim that
the result drops; with more than two dims the last two are matrices and those before broadcast.

Example:
    >>> torch.matmul(torch.ones(5, 2, 3), torch.ones(3, 4)).shape
    torch.Size([5, 2, 4]))",
  .dtypes  = numeric,
  .seen    = Seen::whole_unrecorded,
  .autocast = autocast::lower,
  .sparse  = by_forward,
  .forward = [](const Tensor& input, const Tensor& other) {
    int64_t left = input.dim(), right = other.dim();
    CHECK(left > 0 && right > 0, "both arguments to matmul need to be at least 1D, but they are ",
          left, "D and ", right, "D");
    check_kinds(input, other);
    check_inner(input, other);
    if (left == 1 && right == 1) return dot(input, other);
    if (left == 1) return squeeze(matrix_product(unsqueeze(input, 0), other), -2);
    if (right == 1) return squeeze(matrix_product(input, unsqueeze(other, 1)), -1);
    return matrix_product(input, other);
  },
})

OP(bmm, "(Tensor input, Tensor mat2) -> Tensor", {
  .doc     = R"(The products of two batches of matrices: (b, n, m) and (b, m, p) give (b, n, p).)",
  .dtypes  = numeric,
  .autocast = autocast::lower,
  .sparse  = sparse_bmm,
  .forward = [](const Tensor& input, const Tensor& mat2) {
    check_batches(input, mat2);
    return matmul(input, mat2);
  },
})

OP(mv, "(Tensor input, Tensor vec) -> Tensor", {
  .doc     = R"(The product of a matrix and a vector: (n, m) and (m,) give (n,).)",
  .dtypes  = numeric,
  .autocast = {CastTo::as_given, CastTo::lower},
  .sparse  = by_forward,
  .forward = [](const Tensor& input, const Tensor& vec) {
    check_dim(input, "input", 2);
    check_dim(vec, "vec", 1);
    return matmul(input, vec);
  },
})

OP(dot, "(Tensor input, Tensor tensor) -> Tensor", {
  .doc     = R"(The sum of the products of the elements of two vectors of one length.

Complex elements are not conjugated; vdot does that.)",
  .dtypes  = numeric,
  .autocast = autocast::on_cuda(autocast::widest),
  .batch   = [](const Batch& batch, const Tensor&, const Tensor&) {
    check_ranks(batch.rank("input"), batch.rank("tensor"), 1);
    Tensor rows = unsqueeze(batch.full("input"), 1), columns = unsqueeze(batch.full("tensor"), 2);
    return reshape(matmul(rows, columns), Shape{batch.size()});
  },
  .forward = [](const Tensor& input, const Tensor& tensor) {
    check_ranks(input.dim(), tensor.dim(), 1);
    check_kinds(input, tensor, "input", "tensor");
    CHECK(input.numel() == tensor.numel(), "inconsistent tensor size, expected tensor ",
          input.sizes(), " and src ", tensor.sizes(), " to have the same number of elements.");
    return dot_kernel(input, tensor);
  },
  .saves   = saves<"input", "tensor">,
  .grads   = grads(
    d<"input">(uses<"tensor">, [](const Tensor& g, const Tensor& tensor) {
      return g * conj(tensor);
    }),
    d<"tensor">(uses<"input">, [](const Tensor& g, const Tensor& input) {
      return g * conj(input);
    })),
})

OP(vdot, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = R"(The dot product of the complex conjugate of a vector with another vector.)",
  .dtypes  = numeric,
  .forward = [](const Tensor& input, const Tensor& other) {
    return dot(is_complex(input.dtype()) ? conj(input) : input, other);
  },
})

OP(outer, "(Tensor input, Tensor vec2) -> Tensor", {
  .doc     = R"(The products of all elements of two vectors: result[i, j] = input[i] * vec2[j].)",
  .aliases = "ger",
  .forward = [](const Tensor& input, const Tensor& vec2) {
    check_dim(input, "input", 1);
    check_dim(vec2, "vec2", 1);
    return unsqueeze(input, 1) * vec2;
  },
})

OP(inner, "(Tensor input, Tensor other) -> Tensor", {
  .doc     = R"(The sums of the products over the last dims: (*, k) and (**, k) give (*, **).

A 0-d tensor multiplies like a number.)",
  .dtypes  = numeric,
  .forward = [](const Tensor& input, const Tensor& other) {
    if (input.dim() == 0 || other.dim() == 0) return input * other;
    CHECK(input.size(-1) == other.size(-1),
          "the last dimension must match on both input tensors but got shapes ", input.sizes(),
          " and ", other.sizes());
    Shape sizes(input.sizes().begin(), input.sizes().end() - 1);
    for (size_t d = 0; d + 1 < other.sizes().size(); ++d) sizes.push_back(other.sizes()[d]);
    return reshape(mm(as_rows(input), transpose(as_rows(other), 0, 1)), sizes);
  },
})

OP(addmm, "(Tensor input, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", {
  .doc     = R"(beta * input + alpha * mm(mat1, mat2).

The input broadcasts, and with beta = 0 it is not read.)",
  .dtypes  = numeric,
  .variants = function | method | inplace,
  .seen    = Seen::whole_unrecorded,
  .autocast = autocast::lower,
  .sparse  = by_forward,
  .forward = [](const Tensor& input, const Tensor& mat1, const Tensor& mat2, Scalar beta,
                Scalar alpha) {
    check_dim(mat1, "mat1", 2);
    check_dim(mat2, "mat2", 2);
    check_inner(mat1, mat2);
    if (is_number(beta, 1) && is_number(alpha, 1) && is_bias(input, mat1, mat2))
      return call<"linear", Tensor>(mat1, transpose(mat2, 0, 1), input);
    return add_product(input, mat1, mat2, beta, alpha);
  },
})

OP(addmv, "(Tensor input, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor", {
  .doc     = R"(beta * input + alpha * mv(mat, vec).

The input broadcasts, and with beta = 0 it is not read.)",
  .dtypes  = numeric,
  .variants = function | method | inplace,
  .seen    = Seen::whole_unrecorded,
  .autocast = {CastTo::as_given, CastTo::lower},
  .sparse  = by_forward,
  .forward = [](const Tensor& input, const Tensor& mat, const Tensor& vec, Scalar beta,
                Scalar alpha) {
    check_dim(mat, "mat", 2);
    check_dim(vec, "vec", 1);
    check_inner(mat, vec);
    if (mat.is_sparse()) return add_scaled(input, matmul(mat, vec), beta, alpha);
    Tensor column = unsqueeze(expand_to_product(input, Shape{mat.size(0)}), 1);
    return squeeze(add_product(column, mat, unsqueeze(vec, 1), beta, alpha), 1);
  },
})

OP(addr, "(Tensor input, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", {
  .doc     = R"(beta * input + alpha * outer(vec1, vec2).

The input broadcasts, and with beta = 0 it is not read. Of booleans, sums are ors.)",
  .variants = function | method | inplace,
  .autocast = autocast::on_cuda(autocast::lower),
  .forward = [](const Tensor& input, const Tensor& vec1, const Tensor& vec2, Scalar beta,
                Scalar alpha) {
    check_dim(vec1, "vec1", 1);
    check_dim(vec2, "vec2", 1);
    DType dtype = promote(input.dtype(), promote(vec1.dtype(), vec2.dtype()));
    for (const Scalar& factor : {beta, alpha}) {
      CHECK(!is_integral(dtype) || factor.is_integral(), "For integral input tensors, beta and "
            "alpha must not be a floating point number, got ", factor, ".");
      CHECK(factor.kind() != Scalar::Kind::kBool || is_bool(dtype), "Boolean beta and alpha are "
            "only supported for Boolean results.");
    }
    Tensor column = unsqueeze(vec1, 1);
    if (is_bool(dtype) || is_number(beta, 0))
      return add_scaled(cast(input, dtype), cast(column * vec2, dtype), beta, alpha);
    Tensor added = expand_to_product(cast(input, dtype), Shape{vec1.size(0), vec2.size(0)});
    return call<"addcmul", Tensor>(times(added, beta), column, vec2, alpha);
  },
})

OP(baddbmm,
   "(Tensor input, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", {
  .doc     = R"(beta * input + alpha * bmm(batch1, batch2).

The input broadcasts, and with beta = 0 it is not read.)",
  .dtypes  = numeric,
  .variants = function | method | inplace,
  .seen    = Seen::whole_unrecorded,
  .autocast = autocast::lower,
  .forward = [](const Tensor& input, const Tensor& batch1, const Tensor& batch2, Scalar beta,
                Scalar alpha) {
    check_batches(batch1, batch2);
    return add_product(input, batch1, batch2, beta, alpha);
  },
})

OP(addbmm,
   "(Tensor input, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", {
  .doc     = R"(beta * input + alpha * bmm(batch1, batch2).sum(0).

The input broadcasts, and with beta = 0 it is not read.)",
  .dtypes  = numeric,
  .variants = function | method | inplace,
  .seen    = Seen::whole_unrecorded,
  .autocast = autocast::lower,
  .forward = [](const Tensor& input, const Tensor& batch1, const Tensor& batch2, Scalar beta,
                Scalar alpha) {
    check_batches(batch1, batch2);
    int64_t inner = batch1.size(0) * batch1.size(2);
    // The sum over the batch is one product of matrices as wide as all of them together.
    Tensor left = reshape(permute(batch1, Shape{1, 0, 2}), Shape{batch1.size(1), inner});
    Tensor right = reshape(batch2, Shape{inner, batch2.size(2)});
    return add_product(input, left, right, beta, alpha);
  },
})

OP(linear, "(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(An affine map of the last dim: input @ weight.T + bias.

Args:
    input: (*, in_features).
    weight: (out_features, in_features), or (in_features,) for one output without a dim.
    bias: (out_features,), or what broadcasts to the result.

Returns:
    (*, out_features), or (*).

Example:
    >>> weight, bias = torch.tensor([[3.0, 4.0]]), torch.tensor([0.5])
    >>> torch.nn.functional.linear(torch.ones(2), weight, bias).tolist()
    [7.5])",
  .dtypes  = numeric,
  .node    = "addmm",
  .autocast = autocast::lower,
  .sparse  = sparse_linear,
  .batch   = [](const Batch& batch, const Tensor& input, const Tensor& weight, const Tensor& bias) {
    if (!batch.has("weight") && !batch.has("bias"))
      return call<"linear", Tensor>(input, weight, bias);
    Tensor samples = batch.full("input");
    int64_t count = checked_numel(ShapeRef(samples.sizes()).subspan(1, samples.sizes().size() - 2));
    Tensor rows = reshape(samples, Shape{batch.size(), count, samples.size(-1)});
    bool is_row = batch.rank("weight") == 1;
    Tensor out = matmul(rows, transpose(is_row ? unsqueeze(weight, -2) : weight, -1, -2));
    Shape sizes = samples.sizes();
    sizes.back() = out.size(-1);
    if (is_row) sizes.pop_back();
    out = reshape(out, sizes);
    if (!bias.defined()) return out;
    return out + (batch.has("bias") ? Batch::padded(bias, out.dim() - 1) : bias);
  },
  .forward = [](const Tensor& input, const Tensor& weight, const Tensor& bias) {
    CHECK(weight.dim() == 1 || weight.dim() == 2,
          "weight must be a matrix (out_features, in_features) or a vector (in_features,), but has "
          "shape ", weight.sizes(), ".");
    check_kinds(input, weight, "input", "weight");
    CHECK(input.dim() > 0, "input must have at least one dim, the features, but is 0-d.");
    CHECK(input.size(-1) == weight.size(-1), "input ", input.sizes(), " has ", input.size(-1),
          " features, but weight ", weight.sizes(), " takes ", weight.size(-1), ".");
    if (bias.defined()) check_kinds(input, bias, "input", "bias");
    bool is_row = weight.dim() == 1;
    if (!is_row && (!bias.defined() || bias.sizes() == Shape{weight.size(0)}))
      return linear_kernel(input, weight, bias);
    Tensor out = linear_kernel(input, is_row ? unsqueeze(weight, 0) : weight, {});
    if (is_row) out = squeeze(out, -1);
    if (!bias.defined()) return out;
    Tensor sum = out + bias;
    CHECK(sum.sizes() == out.sizes(), "bias ", bias.sizes(), " does not broadcast to the result's ",
          "shape ", out.sizes(), ". Pass one number for each output of weight ", weight.sizes(),
          ".");
    return sum;
  },
  .saves   = saves<"input", "weight">,
  .grads   = grads(
    d<"input">(uses<"weight">, [](const Tensor& g, const Tensor& weight) {
      Tensor factor = is_complex(weight.dtype()) ? conj(weight) : weight;
      return weight.dim() == 1 ? unsqueeze(g, -1) * factor : matmul(g, factor);
    }),
    d<"weight">(uses<"input">, [](const Tensor& g, const Tensor& input) {
      bool is_row = g.dim() < input.dim();
      Tensor rows = as_rows(input), columns = as_rows(is_row ? unsqueeze(g, -1) : g);
      Tensor product =
          mm(transpose(columns, 0, 1), is_complex(rows.dtype()) ? conj(rows) : rows);
      return is_row ? squeeze(product, 0) : product;
    }),
    d<"bias">(uses<>, [](const Tensor& g) { return g; })),
})

}  // namespace rushlight
