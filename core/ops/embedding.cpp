// Owns embedding: rows of a table by number.
#include <cmath>

#include "core/autograd/grad_mode.h"
#include "core/autograd/needs.h"
#include "core/ops/index/index.h"
#include "core/ops/op.h"

namespace rushlight {
namespace {

// Refuses numbers that are no row, naming the first and its place.
void check_rows(const Tensor& input, int64_t rows) {
  if (input.numel() == 0 || input.device().is_meta()) return;
  Tensor numbers = to_contiguous(to_dtype(input, DType::int64));
  if (leaves_check_to_device(numbers, 0, rows)) return;
  if (input.device().is_cuda()) {
    Bounds bounds = bounds_of(numbers);
    if (bounds.least >= 0 && bounds.greatest < rows) return;
    numbers = needs::to_device(numbers, {});
  }
  const int64_t* number = numbers.data<int64_t>();
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    if (uint64_t(number[i]) < uint64_t(rows)) continue;
    Shape position(input.sizes().size());
    for (int64_t d = input.dim(), rest = i; d-- > 0; rest /= input.size(d))
      position[size_t(d)] = rest % input.size(d);
    CHECK(rows > 0, ErrorKind::kIndex, "index ", number[i], " at position ", position,
          " is out of range: the table has no rows");
    CHECK(false, ErrorKind::kIndex, "index ", number[i], " at position ", position,
          " is out of range for ", rows, " rows; valid indices are 0 to ", rows - 1, ".");
  }
}

// The rows of a table that are used, in float64 or complex128, of which those with a norm above
// max_norm are scaled down to it; and their numbers.
struct ScaledRows {
  Tensor numbers, rows;
};
ScaledRows scaled_rows(const Tensor& weight, const Tensor& input, double max_norm,
                       double norm_type) {
  CHECK(is_differentiable(weight.dtype()), "max_norm needs a floating-point table, got ",
        dtype_name(weight.dtype()));
  const Tensor numbers[] = {
      std::get<0>(call<"_unique", std::tuple<Tensor, Tensor, Tensor>>(input, false))};
  DType wide = is_complex(weight.dtype()) ? DType::complex128 : DType::float64;
  Tensor used = cast(index(weight, numbers), wide);
  Tensor norms = call<"vector_norm", Tensor>(
      used, Scalar(norm_type), std::optional(ShapeRef(Shape{1})), true, std::optional<DType>());
  Tensor scale = where(norms > Scalar(max_norm), Scalar(max_norm) / (norms + Scalar(1e-7)),
                       full({}, 1.0, DType::float64, weight.device()));
  return {numbers[0], used * scale};
}

// Writes them to the table, unrecorded.
void renormalize(const Tensor& weight, const Tensor& input, double max_norm, double norm_type) {
  check_writable(weight);
  GradModeGuard unrecorded(false);
  auto [numbers, rows] = scaled_rows(weight, input, max_norm, norm_type);
  const Tensor at[] = {numbers};
  write_picked(weight, pick(weight, at, true), rows, false);
  weight.storage()->bump_version("embedding");
}

void check_indices(const Tensor& input) {
  CHECK(input.dtype() == DType::int64 || input.dtype() == DType::int32,
        "Expected tensor for argument 'indices' to have one of the following scalar types: Long, "
        "Int; but got ",
        dtype_name(input.dtype()), ". Use input.long().");
}

// The gradient of the table with an entry for each row that was taken.
Tensor sparse_gradient(const Tensor& g, const Tensor& input, const Shape& shape,
                       std::optional<int64_t> padding_idx, bool scale_grad_by_freq) {
  CHECK(!scale_grad_by_freq, ErrorKind::kNotImplemented,
        "scale_grad_by_freq is not supported with sparse gradients. Leave one of them out.");
  int64_t count = input.numel();
  Tensor rows = reshape(cast(input, DType::int64), Shape{count});
  Tensor values = reshape(g, Shape{count, shape[1]});
  if (padding_idx) {
    Scalar padding = *padding_idx < 0 ? *padding_idx + shape[0] : *padding_idx;
    Tensor kept = squeeze(nonzero(rows != padding), 1);
    rows = take_entries(rows, kept);
    values = take_entries(values, kept);
  }
  bool coalesced = rows.numel() <= 1;  // as one entry always is
  return sparse_coo(clone(unsqueeze(rows, 0)), values, Shape{shape[0]}, coalesced);
}

}  // namespace

OP(embedding, "(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, float "
              "norm_type=2.0, "
              "bool scale_grad_by_freq=False, bool sparse=False) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(The rows of weight that input numbers: shape of input + (columns,).

padding_idx gets no gradient; max_norm first scales longer rows down, in place;
scale_grad_by_freq divides a row's gradient by how often it was used; sparse makes the gradient of
weight a sparse tensor of the rows that were used.)",
  .batch   = [](const Batch& batch, const Tensor& input, const Tensor& weight,
                std::optional<int64_t> padding_idx, std::optional<double> max_norm,
                double norm_type, bool scale_grad_by_freq, bool sparse) {
    if (!batch.has("weight"))
      return call<"embedding", Tensor>(input, weight, padding_idx, max_norm, norm_type,
                                       scale_grad_by_freq, sparse);
    CHECK(!max_norm && !scale_grad_by_freq && !sparse, ErrorKind::kNotImplemented,
          "max_norm, scale_grad_by_freq and sparse are not possible in vmap over weight.");
    Tensor places = batch.full("input");
    const Tensor indices[] = {batch.numbers(places), places};
    Tensor rows = index(weight, indices);
    if (!padding_idx) return rows;
    Scalar padding = *padding_idx < 0 ? *padding_idx + weight.size(1) : *padding_idx;
    return where(unsqueeze(places == padding, -1), detach(rows), rows);
  },
  .forward = [](const Tensor& input, const Tensor& weight, std::optional<int64_t> padding_idx,
                std::optional<double> max_norm, double norm_type, bool, bool) {
    check_indices(input);
    CHECK(weight.dim() == 2, "'weight' must be 2-D, got shape ", weight.sizes());
    int64_t rows = weight.size(0);
    CHECK(!padding_idx || (*padding_idx >= -rows && *padding_idx < rows), ErrorKind::kAssertion,
          "Padding_idx must be within num_embeddings: got ", *padding_idx, " for ", rows, " rows");
    check_rows(input, rows);
    if (max_norm) renormalize(weight, input, *max_norm, norm_type);
    const Tensor indices[] = {input};
    return read_picked(weight, pick(weight, indices, true));
  },
  .saves   = saves<"input", "weight.shape">,
  .grads   = grads(no_grad<"input">,
                   d<"weight">([](const Tensor& g, const Tensor& input, const Shape& shape,
                                  std::optional<int64_t> padding_idx, std::optional<double>, double,
                                  bool scale_grad_by_freq, bool sparse) {
    if (sparse) return sparse_gradient(g, input, shape, padding_idx, scale_grad_by_freq);
    Tensor used = g;
    if (padding_idx) {
      Scalar padding = *padding_idx < 0 ? *padding_idx + shape[0] : *padding_idx;
      used = where(unsqueeze(input == padding, -1), zeros({}, g.dtype(), g.device()), used);
    }
    if (scale_grad_by_freq) {
      const Tensor indices[] = {input};
      Tensor counts = zeros(Shape{shape[0]}, g.dtype(), g.device());
      index_put_(counts, indices, full({}, 1.0, g.dtype(), g.device()), true);
      used = used / unsqueeze(index(counts, indices), -1);
    }
    const Tensor indices[] = {input};
    return index_put_(new_zeros(g, shape), indices, used, true);
  })),
})

OP(embedding_renorm_,
   "(Tensor! input, Tensor indices, float max_norm, float norm_type) -> Tensor", {
  .doc     = R"(Scales rows that indices names down to max_norm where they are longer, in place.)",
  .dtypes  = floating_or_complex,
  .variants = function,
  .forward = [](const Tensor& input, const Tensor& indices, double max_norm, double norm_type) {
    check_indices(indices);
    CHECK(input.dim() == 2, "the table must be 2-D, got shape ", input.sizes());
    check_rows(indices, input.size(0));
    if (input.device().is_meta()) return input;
    auto [numbers, rows] = scaled_rows(input, indices, max_norm, norm_type);
    const Tensor at[] = {numbers};
    return index_put_(input, at, cast(rows, input.dtype()), false);
  },
})

}  // namespace rushlight
