// Owns the ops that put the elements of one tensor in another order or number: flips, repeats and
// triangles.
#include <cstring>

#include "core/autograd/needs.h"
#include "core/device/threads.h"
#include "core/ops/index/index.h"
#include "core/ops/op.h"
#include "core/ops/shape/shape.h"
#include "core/tensor/dims.h"
#include "core/tensor/memory_order.h"

namespace rushlight {
namespace {

Tensor flipped(const Tensor& input, ShapeRef dims) {
  Shape reversed = unique_dims(dims, input.dim());
  Tensor out = empty_after(input);
  if (out.numel() == 0) return out;
  // The same elements from the other end: strides are negative for this one copy.
  Tensor source = shallow_copy(input);
  TensorImpl& impl = *source.impl();
  for (int64_t dim : reversed) {
    if (input.dim() == 0) continue;
    impl.offset += (input.size(dim) - 1) * input.stride(dim);
    impl.strides[size_t(dim)] = -input.stride(dim);
  }
  impl.layout_changed();
  copy_into(out, source);
  return out;
}

// The dims (repeats[0], sizes[0], repeats[1], sizes[1], ...) that a repeated tensor can be seen in.
Shape interleaved(ShapeRef repeats, ShapeRef sizes) {
  size_t lead = repeats.size() - sizes.size();
  Shape dims;
  for (size_t d = 0; d < repeats.size(); ++d) {
    dims.push_back(repeats[d]);
    dims.push_back(d < lead ? 1 : sizes[d - lead]);
  }
  return dims;
}

Tensor repeated(const Tensor& input, ShapeRef repeats) {
  CHECK(repeats.size() >= input.sizes().size(),
        "Number of dimensions of repeat dims can not be smaller "
        "than number of dimensions of tensor: got ",
        ShapeText{repeats}, " for shape ", input.sizes());
  Shape once = interleaved(Shape(repeats.size(), 1), input.sizes());
  Shape often = interleaved(repeats, input.sizes()), sizes;
  for (size_t d = 0; d < often.size(); d += 2) {
    int64_t size;
    CHECK(often[d] >= 0, "repeats must not be negative, got ", ShapeText{repeats});
    CHECK(!__builtin_mul_overflow(often[d], often[d + 1], &size), "repeats ", ShapeText{repeats},
          " of shape ", input.sizes(), " overflow");
    sizes.push_back(size);
  }
  Tensor out = empty(sizes, input.dtype(), input.device());
  if (out.numel() == 0) return out;
  Tensor source =
      alias(input, once, *view_strides(input.sizes(), input.strides(), once), input.offset());
  copy_into(alias(out, row_major(often)), source);
  return out;
}

int64_t dim_of(const Tensor& input, int64_t dim) {
  CHECK(input.dim() > 0, ErrorKind::kIndex, "Dimension specified as ", dim,
        " but tensor has no dimensions");
  return wrap_dim(dim, input.dim());
}

// The index that takes element i repeats[i] times.
Tensor repeated_index(const Tensor& repeats, std::optional<int64_t> output_size) {
  CHECK(repeats.dim() <= 1, "only accept 1D vector as repeat, got shape ", repeats.sizes());
  CHECK(is_integral(repeats.dtype()), ErrorKind::kNotImplemented,
        "repeats has to be an integer tensor, got ", dtype_name(repeats.dtype()));
  check_has_values(repeats);
  // The sum decides the shape, so that the counts are needed here wherever they are.
  Tensor counts = to_contiguous(needs::to_device(to_dtype(repeats, DType::int64), {}));
  const int64_t* count = counts.data<int64_t>();
  int64_t total = 0;
  for (int64_t i = 0; i < counts.numel(); ++i) {
    CHECK(count[i] >= 0, "repeats can not be negative, got ", count[i]);
    CHECK(!__builtin_add_overflow(total, count[i], &total), "repeats overflow");
  }
  CHECK(!output_size || *output_size == total,
        "allocated size does not match required size: output_size is ", output_size.value_or(0),
        ", but repeats sum to ", total);
  Tensor index = empty(Shape{total}, DType::int64);
  int64_t *to = index.data<int64_t>(), *end = to + total;
  for (int64_t i = 0; i < counts.numel(); ++i)  // another thread may write counts meanwhile
    to = std::fill_n(to, std::min<int64_t>(count[i], end - to), i);
  return needs::to_device(index, repeats.device());
}

Tensor triangle_by_mask(const Tensor& input, int64_t diagonal, bool lower) {
  auto numbers = [&](int64_t dim) {
    return call<"arange", Tensor>(Scalar(input.size(dim)), std::optional(DType::int64),
                                  std::optional(input.device()));
  };
  Tensor above = numbers(-1) - unsqueeze(numbers(-2), 1);  // columns right of the main diagonal
  Tensor kept = lower ? above <= Scalar(diagonal) : above >= Scalar(diagonal);
  return where(kept, input, zeros({}, input.dtype(), input.device()));
}

// A row of a triangle: the elements before `split`, or those from there on, are kept, which are
// there already unless they come from elsewhere. Others become zero.
template <class T>
void triangle_row(const T* from, T* to, int64_t split, int64_t columns, bool lower) {
  constexpr int64_t kShort = 16;
  const int64_t begin = lower ? 0 : split, end = lower ? split : columns;
  if (columns > kShort) {
    if (from != to) std::memcpy(to + begin, from + begin, size_t(end - begin) * sizeof(T));
    std::memset(to + (lower ? end : 0), 0, size_t(columns - (end - begin)) * sizeof(T));
  } else {
    for (int64_t c = 0; c < columns; ++c) to[c] = c >= begin && c < end ? from[c] : T{};
  }
}

// Keeps columns up to (lower) or from (upper) the diagonal, zero elsewhere.
Tensor triangle(const Tensor& input, int64_t diagonal, bool lower) {
  CHECK(input.dim() >= 2, "input tensor must have at least 2 dimensions, got shape ",
        input.sizes());
  if (!input.device().is_cpu()) return triangle_by_mask(to_contiguous(input), diagonal, lower);
  Tensor out = empty(input.sizes(), input.dtype(), input.device());
  const int64_t rows = input.size(-2), columns = input.size(-1);
  if (out.numel() == 0) return out;
  diagonal = std::clamp(diagonal, -rows, columns);
  // The diagonal goes through the rows from `first` on and before `last`; on one side of them all
  // elements are kept, on the other none.
  const int64_t first = std::clamp<int64_t>(!lower - diagonal, 0, rows),
                last = std::clamp(columns - diagonal - lower, first, rows);
  const bool is_copied = !input.is_contiguous();
  if (is_copied) {  // where elements are kept
    auto kept = [&](const Tensor& whole) {
      return lower ? narrow(whole, -1, 0, std::clamp<int64_t>(rows + diagonal, 0, columns))
                   : narrow(whole, -2, 0, last);
    };
    copy_into(kept(out), kept(input));
  }
  visit_item(int64_t(input.itemsize()), [&]<class T>(Tag<T>) {
    T* to = static_cast<T*>(out.data());
    const T* from = is_copied ? to : static_cast<const T*>(input.data());
    auto whole_rows = [&](bool kept, int64_t begin, int64_t end) {
      const size_t bytes = size_t((end - begin) * columns) * sizeof(T);
      if (!kept) std::memset(to + begin * columns, 0, bytes);
      else if (from != to) std::memcpy(to + begin * columns, from + begin * columns, bytes);
    };
    parallel_for(0, out.numel() / columns, 32768 / columns + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end;) {
        const int64_t top = i / rows * rows, stop = std::min(end, top + rows),
                      split_begin = std::clamp(top + first, i, stop),
                      split_end = std::clamp(top + last, split_begin, stop);
        whole_rows(!lower, i, split_begin);
        for (int64_t r = split_begin; r < split_end; ++r)
          triangle_row(from + r * columns, to + r * columns, r - top + diagonal + lower, columns,
                       lower);
        whole_rows(lower, split_end, stop);
        i = stop;
      }
    });
  });
  return out;
}

Tensor embedded_diagonal(const Tensor& input, int64_t offset, int64_t dim1, int64_t dim2) {
  CHECK(input.dim() >= 1, "input must be at least 1-dimensional");
  int64_t ndim = input.dim() + 1, length;
  bool overflow =
      offset == INT64_MIN || __builtin_add_overflow(input.size(-1), std::abs(offset), &length);
  CHECK(!overflow, "offset ", offset, " is too far from the main diagonal");
  int64_t row = wrap_dim(dim1, ndim), column = wrap_dim(dim2, ndim);
  CHECK(row != column, "the dimensions cannot be identical ", dim1, ", ", dim2);
  Shape sizes;
  for (int64_t d = 0, next = 0; d < ndim; ++d)
    sizes.push_back(d == row || d == column ? length : input.size(next++));
  checked_numel(sizes);
  return window_backward(input, sizes, diagonal_window(row_major(sizes), offset, row, column));
}

void check_pixels(const Tensor& input, int64_t factor) {
  CHECK(input.dim() >= 3, "expects input to have at least 3 dimensions, but got input with ",
        input.dim(), " dimension(s)");
  CHECK(factor > 0, "expects a positive factor, but got ", factor);
}

// Splits the dims from `first` to `end` into pieces, which it joins in another order.
Tensor rearranged(const Tensor& input, int64_t first, int64_t end, const Shape& split,
                  std::initializer_list<int64_t> order, const Shape& joined) {
  const Shape& sizes = input.sizes();
  auto with_others = [&](const Shape& middle) {
    Shape all(sizes.begin(), sizes.begin() + first);
    for (int64_t size : middle) all.push_back(size);
    for (int64_t d = end; d < input.dim(); ++d) all.push_back(sizes[size_t(d)]);
    return all;
  };
  Shape pieces = with_others(split), dims;
  for (int64_t d = 0; d < int64_t(pieces.size()); ++d) dims.push_back(d);
  for (size_t i = 0; i < split.size(); ++i) dims[size_t(first) + i] = first + order.begin()[i];
  return reshape(permute(reshape(input, pieces), dims), with_others(joined));
}

// channels_last memory is rearranged as rows of channels, so that results and gradients stay so.
Tensor channels_at_end(const Tensor& input) {
  return call<"movedim", Tensor>(input, ShapeRef(Shape{1}), ShapeRef(Shape{-1}));
}
Tensor channels_back(const Tensor& rows) {
  return call<"movedim", Tensor>(rows, ShapeRef(Shape{-1}), ShapeRef(Shape{1}));
}

}  // namespace

OP(flip, "(Tensor input, int[] dims) -> Tensor", {
  .doc     = R"(Reverses the order of elements along the given dims; a copy.)",
  .batch   = by_dims,
  .forward = [](const Tensor& input, ShapeRef dims) { return flipped(input, dims); },
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& dims) {
    return call<"flip", Tensor>(g, ShapeRef(dims));
  })),
})

OP(fliplr, "(Tensor input) -> Tensor", {
  .doc     = R"(Reverses the order of columns.)",
  .forward = [](const Tensor& input) {
    CHECK(input.dim() >= 2, "Input must be >= 2-d.");
    return call<"flip", Tensor>(input, ShapeRef(Shape{1}));
  },
})

OP(flipud, "(Tensor input) -> Tensor", {
  .doc     = R"(Reverses the order of rows.)",
  .forward = [](const Tensor& input) {
    CHECK(input.dim() >= 1, "Input must be >= 1-d.");
    return call<"flip", Tensor>(input, ShapeRef(Shape{0}));
  },
})

OP(rot90, "(Tensor input, int k=1, int[] dims=(0, 1)) -> Tensor", {
  .doc     = R"(Turns the plane of two dims by k quarter turns, from dims[0] towards dims[1].)",
  .forward = [](const Tensor& input, int64_t k, ShapeRef dims) {
    CHECK(dims.size() == 2, "expected total rotation dims == 2, but got dims = ", dims.size());
    CHECK(input.dim() >= 2, "expected total dims >= 2, but got total dims = ", input.dim());
    Shape plane = unique_dims(dims, input.dim());
    switch ((k % 4 + 4) % 4) {
      case 1: return transpose(call<"flip", Tensor>(input, ShapeRef(Shape{plane[1]})), plane[0],
                               plane[1]);
      case 2: return call<"flip", Tensor>(input, ShapeRef(plane));
      case 3: return transpose(call<"flip", Tensor>(input, ShapeRef(Shape{plane[0]})), plane[0],
                               plane[1]);
      default: return clone(input);
    }
  },
})

OP(_roll, "(Tensor input, int[] shifts, int[] dims) -> Tensor", {
  .home    = "core",
  .doc     = R"(roll, along as many dims as there are shifts.)",
  .batch   = by_dims,
  .forward = [](const Tensor& input, ShapeRef shifts, ShapeRef dims) {
    Tensor out = input;
    for (size_t i = 0; i < shifts.size(); ++i) {
      int64_t dim = dim_of(input, dims[i]), size = input.size(dim);
      int64_t shift = size ? (shifts[i] % size + size) % size : 0;
      if (shift == 0) continue;
      const Tensor parts[] = {narrow(out, dim, size - shift, shift),
                              narrow(out, dim, 0, size - shift)};
      out = cat(parts, dim);
    }
    return out.is(input) ? clone(input) : out;
  },
  .grads   = grads(d<"input">([](const Tensor& g, Shape shifts, const Shape& dims) {
    for (int64_t& shift : shifts) shift = -shift;
    return call<"_roll", Tensor>(g, ShapeRef(shifts), ShapeRef(dims));
  })),
})

OP(roll, "(Tensor input, int[1] shifts, int[1]? dims=None) -> Tensor", {
  .doc     = R"(Moves elements along dims, those that leave come back at the other end.

Without dims the tensor is rolled as if it were flat.)",
  .forward = [](const Tensor& input, ShapeRef shifts, std::optional<ShapeRef> dims) {
    CHECK(!shifts.empty(), "`shifts` required");
    if (!dims || dims->empty()) {
      CHECK(shifts.size() == 1, "shifts and dimensions must align. shifts: ", shifts.size(),
            ", dims: 0");
      Tensor flat = reshape(input, Shape{-1});
      return view(call<"_roll", Tensor>(flat, shifts, ShapeRef(Shape{0})), input.sizes());
    }
    CHECK(shifts.size() == dims->size(), "shifts and dimensions must align. shifts: ",
          shifts.size(),
          ", dims: ", dims->size());
    return call<"_roll", Tensor>(input, shifts, *dims);
  },
})

OP(repeat, "(Tensor input, int[] repeats) -> Tensor", {
  .doc     = R"(Copies of input next to each other: repeats[d] times along dim d.)",
  .variants = method,
  .batch   = [](const Batch& batch, const Tensor& input, ShapeRef repeats) {
    Shape all = batch.with_samples(repeats);
    all[0] = 1;
    return call<"repeat", Tensor>(batch.padded(input, int64_t(repeats.size())), ShapeRef(all));
  },
  .forward = [](const Tensor& input, ShapeRef repeats) { return repeated(input, repeats); },
  .saves   = saves<"input.shape">,
  .grads   = grads(d<"input">([](const Tensor& g, const Shape& shape, const Shape& repeats) {
    Shape copies;
    for (size_t d = 0; d < repeats.size(); ++d) copies.push_back(int64_t(2 * d));
    if (copies.empty()) return g;
    return reshape(sum(reshape(g, interleaved(repeats, shape)), copies), shape);
  })),
})

OP(tile, "(Tensor input, int[] dims) -> Tensor", {
  .doc     = R"(Copies of input next to each other; dims may be fewer than those of input.)",
  .forward = [](const Tensor& input, ShapeRef dims) {
    Shape repeats(dims);
    while (repeats.size() < input.sizes().size()) repeats.insert(0, 1);
    return call<"repeat", Tensor>(input, ShapeRef(repeats));
  },
})

OP(repeat_interleave, "(Tensor input, int repeats, int? dim=None, *, "
                      "int? output_size=None) -> Tensor", {
  .doc     = R"(Repeats each element `repeats` times along dim; without dim, of the flat tensor.)",
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, int64_t repeats, std::optional<int64_t> dim,
                std::optional<int64_t>) {
    CHECK(repeats >= 0, "repeats must be non-negative, got ", repeats);
    Tensor source = dim ? input : reshape(input, Shape{-1});
    size_t d = size_t(dim_of(source, dim.value_or(0)));
    Shape pairs = source.sizes(), sizes = source.sizes();
    pairs.insert(d + 1, repeats);
    CHECK(!__builtin_mul_overflow(sizes[d], repeats, &sizes[d]), "size overflow: ", source.sizes(),
          " * ", repeats);
    Tensor expanded = expand(unsqueeze(source, int64_t(d) + 1), pairs);
    return reshape(call<"clone", Tensor>(expanded, std::optional(MemoryFormat::contiguous)), sizes);
  },
})

OP(repeat_interleave_tensor, "repeat_interleave.tensor(Tensor input, Tensor repeats, "
                             "int? dim=None, *, int? output_size=None) -> Tensor", {
  .doc     = R"(Repeats element i along dim repeats[i] times.)",
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& input, const Tensor& repeats, std::optional<int64_t> dim,
                std::optional<int64_t> output_size) {
    Tensor source = dim ? input : reshape(input, Shape{-1});
    int64_t d = dim_of(source, dim.value_or(0)), size = source.size(d);
    Tensor counts = repeats.numel() == 1 ? expand(reshape(repeats, Shape{1}),
                                                  Shape{size}) : repeats;
    CHECK(counts.numel() == size, "repeats must have the same size as input along dim, but got "
                                  "repeats.size(0) = ",
          counts.numel(), " and input.size(", d, ") = ", size);
    return call<"index_select", Tensor>(source, d, repeated_index(counts, output_size));
  },
})

OP(repeat_interleave_index, "repeat_interleave.index(Tensor repeats, *, "
                            "int? output_size=None) -> Tensor", {
  .doc     = R"(The indices that repeat element i repeats[i] times.)",
  .variants = function,
  .seen    = Seen::whole_unrecorded,
  .forward = [](const Tensor& repeats, std::optional<int64_t> output_size) {
    return repeated_index(repeats, output_size);
  },
})

OP(tril, "(Tensor input, int diagonal=0) -> Tensor", {
  .doc     = R"(The lower triangle of matrices, zero above the diagonal; diagonal > 0 keeps more.)",
  .variants = function | method | inplace,
  .batch   = by_last_dims,
  .forward = [](const Tensor& input, int64_t diagonal) { return triangle(input, diagonal, true); },
  .grads   = grads(d<"input">([](const Tensor& g,
                                 int64_t diagonal) { return call<"tril", Tensor>(g, diagonal); })),
})

OP(triu, "(Tensor input, int diagonal=0) -> Tensor", {
  .doc     = R"(The upper triangle of matrices, zero below the diagonal; diagonal > 0 keeps less.)",
  .variants = function | method | inplace,
  .batch   = by_last_dims,
  .forward = [](const Tensor& input, int64_t diagonal) { return triangle(input, diagonal, false); },
  .grads   = grads(d<"input">([](const Tensor& g,
                                 int64_t diagonal) { return call<"triu", Tensor>(g, diagonal); })),
})

OP(diag_embed, "(Tensor input, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", {
  .doc     = R"(Matrices with the last dim of input on a diagonal and zeros elsewhere.)",
  .forward = [](const Tensor& input, int64_t offset, int64_t dim1, int64_t dim2) {
    return embedded_diagonal(input, offset, dim1, dim2);
  },
})

OP(diag, "(Tensor input, int diagonal=0) -> Tensor", {
  .doc     = R"(The diagonal of a matrix, or the matrix that has a vector on its diagonal.)",
  .forward = [](const Tensor& input, int64_t diagonal) {
    CHECK(input.dim() == 1 || input.dim() == 2, "Supports 1D or 2D tensors. Got ", input.dim(),
          "D");
    if (input.dim() == 1) return embedded_diagonal(input, diagonal, 0, 1);
    return clone(call<"diagonal", Tensor>(input, diagonal, int64_t(0), int64_t(1)));
  },
})

OP(diagflat, "(Tensor input, int offset=0) -> Tensor", {
  .doc     = R"(The matrix that has all elements of input on its diagonal.)",
  .forward = [](const Tensor& input, int64_t offset) {
    return embedded_diagonal(reshape(input, Shape{-1}), offset, 0, 1);
  },
})

OP(pixel_shuffle, "(Tensor input, int upscale_factor) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(Lays groups of channels out as pixels.

(..., C * r * r, H, W) becomes (..., C, H * r, W * r). Here r is
upscale_factor (Shi et al. 2016, arXiv:1609.05158).)",
  .variants = function,
  .forward = [](const Tensor& input, int64_t upscale_factor) {
    int64_t r = upscale_factor, square;
    check_pixels(input, r);
    bool divides = !__builtin_mul_overflow(r, r, &square) && input.size(-3) % square == 0;
    CHECK(divides, "expects its input's 'channel' dimension to be divisible by the square of "
                   "upscale_factor, but input.size(-3)=",
          input.size(-3), " is not divisible by ", r, " * ", r);
    int64_t channels = input.size(-3) / square, height = input.size(-2), width = input.size(-1);
    if (input.dim() == 4 && is_channels_last(input))
      return channels_back(rearranged(channels_at_end(input), 1, 4, {height, width, channels, r, r},
                                      {0, 3, 1, 4, 2}, {height * r, width * r, channels}));
    return rearranged(input, input.dim() - 3, input.dim(), {channels, r, r, height, width},
                      {0, 3, 1, 4, 2}, {channels, height * r, width * r});
  },
})

OP(pixel_unshuffle, "(Tensor input, int downscale_factor) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(Gathers blocks of pixels as channels.

(..., C, H * r, W * r) becomes (..., C * r * r, H, W). Here r is
downscale_factor; the inverse of pixel_shuffle.)",
  .variants = function,
  .forward = [](const Tensor& input, int64_t downscale_factor) {
    int64_t r = downscale_factor;
    check_pixels(input, r);
    for (int64_t dim : {-2, -1})
      CHECK(input.size(dim) % r == 0, "expects ", dim == -2 ? "height" : "width",
            " to be divisible by downscale_factor, but input.size(", dim, ")=", input.size(dim),
            " is not divisible by ", r);
    int64_t channels = input.size(-3);
    int64_t height = input.size(-2) / r, width = input.size(-1) / r;
    CHECK(r <= std::numeric_limits<int32_t>::max() || input.numel() > 0, "downscale_factor ", r,
          " is too large");
    if (input.dim() == 4 && is_channels_last(input))
      return channels_back(rearranged(channels_at_end(input), 1, 4, {height, r, width, r, channels},
                                      {0, 2, 4, 1, 3}, {height, width, channels * r * r}));
    return rearranged(input, input.dim() - 3, input.dim(), {channels, height, r, width, r},
                      {0, 2, 4, 1, 3}, {channels * r * r, height, width});
  },
})

OP(channel_shuffle, "(Tensor input, int groups) -> Tensor", {
  .home    = "torch nn.functional",
  .doc     = R"(Deals the channels of dim 1 out in turns: those of all groups alternate.

Zhang et al. 2018, arXiv:1707.01083.)",
  .variants = function,
  .aliases = "native_channel_shuffle",
  .forward = [](const Tensor& input, int64_t groups) {
    CHECK(input.dim() > 2, "expects input with > 2 dims, but got shape ", input.sizes());
    CHECK(groups > 0, "Number of groups to divide channels in must be positive. Value of groups: ",
          groups);
    CHECK(input.size(1) % groups == 0, "Number of channels must be divisible by groups. Got ",
          input.size(1), " channels and ", groups, " groups.");
    int64_t channels = input.size(1), last = input.dim() - 1;
    auto shuffled = [&](const Tensor& t, int64_t dim) {
      return rearranged(t, dim, dim + 1, {groups, channels / groups}, {1, 0}, {channels});
    };
    if (is_channels_last(input)) return channels_back(shuffled(channels_at_end(input), last));
    return shuffled(input, 1);
  },
})

}  // namespace rushlight
