// Owns the ops of index tensors and masks: reading, writing, adding, and finding places.
#include "core/ops/index/index.h"

#include "core/ops/lift.h"
#include "core/ops/op.h"
#include "core/ops/real_number.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/same_device.h"
#include "core/tensor/values.h"

namespace rushlight {
namespace {

constexpr DTypeSet integers([](DType t) { return is_integral(t); });

// `index` at dim, whole dims before it.
std::vector<Tensor> at_dim(const Tensor& input, int64_t dim, const Tensor& index) {
  size_t d = size_t(wrap_dim(dim, input.dim()));
  check_index_vector(index);
  std::vector<Tensor> indices(d + 1);
  indices[d] = index.dim() ? index : reshape(index, Shape{1});
  return indices;
}

// input as it is, or a 0-d one as a vector of one element that shares its memory.
Tensor as_vector(const Tensor& input) { return input.dim() ? input : view(input, Shape{1}); }

[[noreturn, gnu::cold]] void refuse_places() {
  CHECK(false,
        "the number of places depends on the sample of vmap. Use torch.where(mask, a, b) "
        "or nonzero_static.");
  __builtin_unreachable();
}

// Adds or writes the slices of `source` at the places that `index` names along dim.
Tensor put_slices(const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source,
                  bool accumulate) {
  check_writable(input);
  Tensor target = as_vector(input);
  std::vector<Tensor> indices = at_dim(target, dim, index);
  Shape expected = target.sizes();
  expected[indices.size() - 1] = indices.back().numel();
  // A wrong number of slices is an index that does not fit the source.
  bool fits = source.dim() == input.dim() && as_vector(source).size(dim) == indices.back().numel();
  CHECK(as_vector(source).sizes() == expected,
        fits || accumulate ? ErrorKind::kRuntime : ErrorKind::kIndex, "source of shape ",
        source.sizes(), " does not match: input of shape ", input.sizes(), " with an index of ",
        indices.back().numel(), " elements at dim ", dim, " takes a source of shape ", expected);
  CHECK(source.dtype() == input.dtype(), "input (", dtype_name(input.dtype()), ") and source (",
        dtype_name(source.dtype()), ") must have the same dtype");
  check_same_device(input, index, "index");
  check_same_device(input, source, "source");
  index_put_(target, indices, as_vector(source), accumulate);
  return input;
}

void warn_of_repeats(const char* op) {
  if (!warn_user) return;
  warn_user(std::string("Use of ") + op +
            " on expanded tensors is deprecated: what is written shows in all repeats of an "
            "element. Please clone() the tensor before performing this operation.");
}

// The flat tensor, for masks and for take; a view where that is possible.
Tensor flat(const Tensor& input) { return reshape(input, Shape{-1}); }

Tensor expanded_mask(const Tensor& mask, ShapeRef sizes) {
  CHECK(is_bool(mask.dtype()), "expected BoolTensor for mask, got ", dtype_name(mask.dtype()));
  return same_shape(mask.sizes(), sizes) ? mask : expand(mask, sizes);
}

// What index_put refuses, while x[index] = values casts.
void check_put_dtypes(const Tensor& input, const Tensor& values) {
  CHECK(input.dtype() == values.dtype(),
        "Index put requires the source and destination dtypes match, got ",
        dtype_name(input.dtype()), " for the destination and ", dtype_name(values.dtype()),
        " for the source. Convert values with .to(dtype).");
}

// Whether nobody knows how many elements the indices name: those of masks on meta.
bool are_uncounted(TensorList indices) {
  return std::ranges::any_of(
      indices, [](const Tensor& index) { return is_mask(index) && index.device().is_meta(); });
}

// The mask that is all indices of one number to write, which then takes no list of places.
Tensor whole_mask(const Tensor& input, TensorList indices, const Tensor& values) {
  if (indices.size() != 1 || values.numel() != 1 || !indices[0].defined()) return {};
  Tensor mask = indices[0];
  if (!is_whole_mask(mask, input)) return {};
  if (mask.device() != input.device() || values.device() != input.device()) return {};
  while (mask.dim() < input.dim()) mask = unsqueeze(mask, -1);
  return mask;
}

// masked_scatter_ for a mask that differs between samples: the number of true elements before one
// says which element of source it takes.
Tensor scatter_where(const Tensor& input, const Tensor& mask, const Tensor& source) {
  Tensor count = call<"cumsum", Tensor>(flat(mask), int64_t(0), std::optional<DType>());
  const Tensor places[] = {call<"clamp_min", Tensor>(count - Scalar(1), wrapped_number(0))};
  Tensor values = source.numel() ? reshape(index(flat(source), places), input.sizes()) : input;
  return copy_(input, where(mask, values, input));
}

// An index tensor as int64: uint8 would be a mask.
Tensor places_of(const Tensor& index) {
  CHECK(is_integral(index.dtype()), "Expected a long tensor for index, got ",
        dtype_name(index.dtype()));
  return cast(index, DType::int64);
}

// Index tensors by dim for places in the flat input, which may be negative.
std::vector<Tensor> unraveled(const Tensor& input, const Tensor& index) {
  Tensor rest = places_of(index);
  rest = where(rest < Scalar(0), rest + Scalar(input.numel()), rest);
  std::vector<Tensor> indices(size_t(input.dim()));
  for (int64_t d = input.dim(); d-- > 1;) {
    Tensor size = wrapped_number(Scalar(std::max<int64_t>(input.size(d), 1)));
    indices[size_t(d)] = remainder(rest, size);
    rest = floor_divide(rest, size);
  }
  indices[0] = rest;
  return indices;
}

}  // namespace

bool is_whole_mask(const Tensor& index, const Tensor& input) {
  const Shape &mask = index.sizes(), &sizes = input.sizes();
  return is_bool(index.dtype()) && !mask.empty() && mask.size() <= sizes.size() &&
         std::equal(mask.begin(), mask.end(), sizes.begin());
}

Tensor in_row_major(const Tensor& t) { return t.is_contiguous() ? t : contiguous(t); }

OP(_index, "(Tensor input, Tensor?[] indices) -> Tensor", {
  .home    = "core",
  .doc     = R"(input[indices] for index tensors by dim; None takes the whole dim.)",
  .batch   = index_samples,
  .forward = [](const Tensor& input, TensorList indices) {
    return read_picked(input, pick(input, indices));
  },
  .saves   = saves<"indices", "input.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const std::vector<Tensor>& indices,
                                 const Shape& shape) {
                     return index_put_(new_zeros(g, shape), indices, g, true);
                   }),
                   no_grad<"indices">),
})

OP(_index_put_, "(Tensor! input, Tensor?[] indices, Tensor values, bool accumulate) -> Tensor", {
  .home    = "core",
  .doc     = R"(input[indices] = values, or += with accumulate.)",
  .fills   = true,
  .batch   = index_put_samples,
  .forward = [](const Tensor& input, TensorList indices, const Tensor& values, bool accumulate) {
    if (has_internal_overlap(input)) {
      if (accumulate) check_writable(input);
      warn_of_repeats("index_put_");
    } else if (Tensor mask = accumulate ? Tensor() : whole_mask(input, indices, values);
               mask.defined()) {
      return call<"_fill_where_", Tensor>(input, mask, reshape(values, Shape{}));
    }
    if (!input.device().is_meta() || !are_uncounted(indices))
      write_picked(input, pick(input, indices), values, accumulate);
    return input;
  },
  .saves   = saves<"indices">,
  .grads   = grads(d<"input">([](const Tensor& g, const std::vector<Tensor>& indices,
                                 bool accumulate) {
                     if (accumulate) return g;
                     return index_put_(clone(g), indices, zeros({}, g.dtype(), g.device()), false);
                   }),
                   no_grad<"indices">,
                   d<"values">([](const Tensor& g, const std::vector<Tensor>& indices) {
                     return index(g, indices);
                   })),
})

// masked_fill_ of an expanded tensor: an element is written when any of its repeats is asked for.
OP(_masked_fill_repeats_, "(Tensor! input, Tensor mask, Tensor value) -> Tensor", {
  .home    = "core",
  .doc     = R"(Writes a 0-d value where mask is true to an input that repeats its elements.)",
  .fills   = true,
  .forward = [](const Tensor& input, const Tensor& mask, const Tensor& value) {
    warn_of_repeats("masked_fill_");
    Tensor once = input, where_any = expand(mask, input.sizes());
    for (int64_t d = 0; d < input.dim(); ++d) {
      if (input.strides()[size_t(d)] != 0 || input.size(d) < 2) continue;
      once = narrow(once, d, 0, 1);
      const int64_t dims[] = {d};
      where_any = call<"any", Tensor>(where_any, Dims(ShapeRef(dims)), true);
    }
    copy_into(once, select(where_any, value, once));
    return input;
  },
})

OP(index_put_, "(Tensor! input, Tensor?[] indices, Tensor values, "
               "bool accumulate=False) -> Tensor", {
  .doc     = R"(Writes values where the index tensors say, or adds them with accumulate.)",
  .forward = [](const Tensor& input, TensorList indices, const Tensor& values, bool accumulate) {
    check_put_dtypes(input, values);
    return index_put_(input, indices, values, accumulate);
  },
})

OP(index_put, "(Tensor input, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor", {
  .doc     = R"(A copy of input with values written at the places that the index tensors name.)",
  .seen    = Seen::whole_unrecorded,
  .autocast = autocast::on_cuda(autocast::widest),
  .forward = [](const Tensor& input, TensorList indices, const Tensor& values, bool accumulate) {
    check_put_dtypes(input, values);
    std::vector<Tensor> others(indices.begin(), indices.end());
    others.push_back(values);
    return index_put_(copy_to_write(input, others), indices, values, accumulate);
  },
})

OP(index_select, "(Tensor input, int dim, Tensor index) -> Tensor", {
  .doc     = R"(The slices along dim that a vector of indices names.)",
  .seen    = Seen::whole_unrecorded,
  .sparse  = sparse_index_select,
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index) {
    Tensor source = as_vector(input);
    Tensor out = in_row_major(rushlight::index(source, at_dim(source, dim, index)));
    return input.dim() ? out : view(out, Shape{});
  },
})

OP(index_add_, "(Tensor! input, int dim, Tensor index, Tensor source, *, "
               "Scalar alpha=1) -> Tensor", {
  .doc     = R"(Adds alpha times slice i of source to slice index[i] of input, along dim.)",
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source,
                Scalar alpha) {
    bool scaled = (is_complex(source.dtype()) && alpha.is_complex()) ||
                  real_number(alpha, "alpha") != 1;
    return put_slices(input, dim, index, scaled ? cast(source * alpha, source.dtype()) : source,
                      true);
  },
})

OP(index_add, "(Tensor input, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", {
  .doc     = R"(input with alpha times slice i of source added to slice index[i], along dim.)",
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source,
                Scalar alpha) {
    Tensor out = copy_to_write(in_row_major(input), {index, source});
    return call<"index_add_", Tensor>(out, dim, index, source, alpha);
  },
})

OP(index_copy_, "(Tensor! input, int dim, Tensor index, Tensor source) -> Tensor", {
  .doc     = R"(Writes slice i of source over slice index[i] of input, along dim.)",
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source) {
    return put_slices(input, dim, index, source, false);
  },
})

OP(index_copy, "(Tensor input, int dim, Tensor index, Tensor source) -> Tensor", {
  .doc     = R"(A copy of input in which slice index[i] along dim is slice i of source.)",
  .seen    = Seen::whole_unrecorded,
  .autocast = autocast::widest,
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& source) {
    Tensor out = copy_to_write(in_row_major(input), {index, source});
    return put_slices(out, dim, index, source, false);
  },
})

OP(index_fill_, "(Tensor! input, int dim, Tensor index, Tensor|Scalar value) -> Tensor", {
  .doc     = R"(Writes one value over the slices along dim that a vector of indices names.)",
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& value) {
    CHECK(value.dim() == 0, "only supports a 0-dimensional value tensor, but got "
                            "tensor with ",
          value.dim(), " dimension(s).");
    CHECK(is_complex(input.dtype()) || !is_complex(value.dtype()),
          "a complex value does not fit into input, which is ", dtype_name(input.dtype()),
          ". Pass its real part, or convert input to complex numbers.");
    CHECK(is_integral(index.dtype()), ErrorKind::kIndex,
          "Expected dtype int32 or int64 for index, got ", dtype_name(index.dtype()),
          ". Use index.long().");
    check_same_device(input, index, "index");
    Tensor target = as_vector(input);
    bool is_dual = is_lifted(value) && level_of(value).kind == LevelKind::dual;
    if (value.requires_grad() || is_dual) {  // an element that is named twice counts once
      size_t along = size_t(wrap_dim(dim, target.dim()));
      Shape sizes(target.sizes().size(), 1);
      sizes[along] = target.sizes()[along];
      Tensor chosen = zeros(Shape{sizes[along]}, DType::bool_, input.device());
      const Tensor places[] = {cast(index, DType::int64)};
      index_put_(chosen, places, scalar_tensor(true, DType::bool_), false);
      copy_(target, select(reshape(chosen, sizes), cast(value, input.dtype()), target));
      return input;
    }
    index_put_(target, at_dim(target, dim, index), value, false);
    return input;
  },
})

OP(index_fill, "(Tensor input, int dim, Tensor index, Tensor|Scalar value) -> Tensor", {
  .doc     = R"(A copy of input with one value over the slices along dim that index names.)",
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, int64_t dim, const Tensor& index, const Tensor& value) {
    return call<"index_fill_", Tensor>(copy_to_write(input, {index, value}), dim, index, value);
  },
})

OP(take, "(Tensor input, Tensor index) -> Tensor", {
  .doc     = R"(Elements of the flat input, in the shape of index.)",
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, const Tensor& index) {
    const Tensor indices[] = {places_of(index)};
    return rushlight::index(flat(input), indices);
  },
})

OP(put_, "(Tensor! input, Tensor index, Tensor source, bool accumulate=False) -> Tensor", {
  .doc     = R"(Writes source at places of the flat input, or adds it with accumulate.)",
  .variants = method,
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, const Tensor& index, const Tensor& source, bool accumulate) {
    CHECK(source.dtype() == input.dtype(),
          "self and source expected to have the same dtype, but got self.dtype = ",
          dtype_name(input.dtype()), " and source.dtype = ", dtype_name(source.dtype()));
    CHECK(source.numel() == index.numel(), ErrorKind::kIndex,
          "Expected source and index to have the same number of elements, but got ",
          source.numel(), " and ", index.numel());
    check_writable(input);
    Tensor values = reshape(source, index.sizes());
    if (!input.is_contiguous()) {
      index_put_(input, unraveled(input, index), values, accumulate);
      return input;
    }
    const Tensor places[] = {places_of(index)};
    index_put_(view(input, Shape{-1}), places, values, accumulate);
    return input;
  },
})

OP(put, "(Tensor input, Tensor index, Tensor source, bool accumulate=False) -> Tensor", {
  .doc     = R"(A copy of input with source written at places of it when flat.)",
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, const Tensor& index, const Tensor& source, bool accumulate) {
    return call<"put_", Tensor>(copy_to_write(input, {index, source}), index, source, accumulate);
  },
})

OP(unravel_index, "(Tensor indices, int[1] shape) -> Tensor[]", {
  .doc     = R"(Places in the flat form of a shape as one index tensor for each of its dims.

Example:
    >>> torch.unravel_index(torch.tensor([5, 6]), (4, 2))
    (tensor([2, 3]), tensor([1, 0])))",
  .variants = function,
  .forward = [](const Tensor& indices, ShapeRef shape) {
    CHECK(is_integral(indices.dtype()), ErrorKind::kType,
          "expected 'indices' to be integer dtype, but got ", dtype_name(indices.dtype()), ".");
    for (int64_t size : shape)
      CHECK(size >= 0, ErrorKind::kValue, "'shape' cannot have negative values, but got ",
            ShapeText{shape}, ".");
    checked_numel(shape);
    Tensor rest = cast(indices, DType::int64);
    std::vector<Tensor> columns(shape.size());
    for (size_t d = shape.size(); d-- > 0;) {
      Tensor size = wrapped_number(Scalar(std::max<int64_t>(shape[d], 1)));
      columns[d] = remainder(rest, size);
      rest = floor_divide(rest, size);
    }
    return columns;
  },
})

OP(masked_select, "(Tensor input, Tensor mask) -> Tensor", {
  .doc     = R"(The elements where mask is True, in one dim; input and mask broadcast.)",
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, const Tensor& mask) {
    Shape sizes = broadcast_shapes(input.sizes(), mask.sizes());
    const Tensor places[] = {flat(expanded_mask(mask, sizes))};
    return rushlight::index(flat(expand(input, sizes)), places);
  },
})

OP(masked_scatter_, "(Tensor! input, Tensor mask, Tensor source) -> Tensor", {
  .doc     = R"(Writes the first elements of source, in order, where mask is True.)",
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, const Tensor& mask, const Tensor& source) {
    CHECK(source.dtype() == input.dtype(), "expected self and source to have same dtypes but got ",
          dtype_name(input.dtype()), " and ", dtype_name(source.dtype()));
    check_writable(input);
    Tensor target = as_vector(input);
    Tensor chosen = expanded_mask(mask, target.sizes());
    if (mask.device().is_meta()) {
      check_same_device(input, mask, "mask");
      return input;
    }
    if (is_lifted(mask) || !has_values(mask)) return scatter_where(target, chosen, source);
    if (target.is_contiguous()) {  // one index, then, instead of one for each dim
      target = view(target, Shape{-1});
      chosen = flat(chosen);
    }
    Tensor places = nonzero_places(chosen);
    CHECK(source.numel() >= places.size(0),
          "Number of elements of source < number of ones in mask: ",
          source.numel(), " < ", places.size(0));
    std::vector<Tensor> indices;
    for (int64_t d = 0; d < target.dim(); ++d) indices.push_back(select(places, 1, d));
    index_put_(target, indices, narrow(flat(source), 0, 0, places.size(0)), false);
    return input;
  },
})

OP(masked_scatter, "(Tensor input, Tensor mask, Tensor source) -> Tensor", {
  .doc     = R"(A copy of input with the first elements of source, in order, where mask is True.)",
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, const Tensor& mask, const Tensor& source) {
    Tensor whole = expand(input, broadcast_shapes(input.sizes(), mask.sizes()));
    Tensor out = copy_to_write(whole, {mask, source});
    return call<"masked_scatter_", Tensor>(contiguous(out), mask, source);
  },
})

OP(nonzero, "(Tensor input) -> Tensor", {
  .doc     = R"(The places of the elements that are not zero, one row each: shape (count, dims).)",
  .aliases = "argwhere",
  .batch   = [](const Batch&, const Tensor&) -> Tensor { refuse_places(); },
  .forward = [](const Tensor& input) { return nonzero_places(input); },
})

OP(nonzero_tuple, "nonzero.tuple(Tensor input, *, bool as_tuple) -> Tensor[]", {
  .doc     = R"(With as_tuple=True the places as one index tensor for each dim.)",
  .batch   = [](const Batch&, const Tensor&, bool) -> std::vector<Tensor> { refuse_places(); },
  .forward = [](const Tensor& input, bool as_tuple) {
    ASSERT(as_tuple);  // the parser takes the next overload otherwise
    Tensor source = as_vector(input), places = nonzero_places(source);
    std::vector<Tensor> columns;
    for (int64_t d = 0; d < source.dim(); ++d) columns.push_back(select(places, 1, d));
    return columns;
  },
})

OP(nonzero_untupled, "nonzero.untupled(Tensor input, *, bool as_tuple=False) -> Tensor", {
  .doc     = R"(With as_tuple=False the places one row each, as without it.)",
  .batch   = [](const Batch&, const Tensor&, bool) -> Tensor { refuse_places(); },
  .forward = [](const Tensor& input, bool) { return nonzero_places(input); },
})

OP(where_places, "where.places(Tensor condition) -> Tensor[]", {
  .doc     = R"(Of a condition alone, the places where it is true: nonzero(as_tuple=True).)",
  .variants = function,
  .batch   = [](const Batch&, const Tensor&) -> std::vector<Tensor> { refuse_places(); },
  .forward = [](const Tensor& condition) {
    return call<"nonzero_tuple", std::vector<Tensor>>(condition, true);
  },
})

}  // namespace rushlight
