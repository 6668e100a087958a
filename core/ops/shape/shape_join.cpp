// Owns the ops that join tensors, and those that bring several to shapes that fit each other.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/autograd/needs.h"
#include "core/device/threads.h"
#include "core/ops/op.h"
#include "core/ops/shape/shape.h"
#include "core/tensor/default_device.h"
#include "core/tensor/memory_order.h"

namespace rushlight {
namespace {

void check_list(TensorList tensors) {
  CHECK(!tensors.empty(), "expected a non-empty list of Tensors");
  for (size_t i = 0; i < tensors.size(); ++i)
    CHECK(tensors[i].defined(), ErrorKind::kType, "expected Tensor as element ", i,
          ", but got None");
}

void check_devices(TensorList tensors) {
  for (size_t i = 1; i < tensors.size(); ++i)
    CHECK(tensors[i].device() == tensors[0].device(),
          "Expected all tensors to be on the same device, but tensor 0 is on ", tensors[0].device(),
          " and tensor ", i, " on ", tensors[i].device(), ". Move one with .to(device).");
}

// Shape (0,) joins with everything, as it always has.
bool is_nothing(ShapeRef sizes) { return sizes.size() == 1 && sizes[0] == 0; }

// The format that all tensors with elements suggest.
MemoryFormat common_format(TensorList tensors) {
  std::optional<MemoryFormat> common;
  for (const Tensor& t : tensors) {
    if (is_nothing(t.sizes())) continue;
    MemoryFormat format = suggested_format(t);
    if (common.value_or(format) != format) return MemoryFormat::contiguous;
    common = format;
  }
  return common.value_or(MemoryFormat::contiguous);
}

// Copies tensors to where they lie in `out`, one after another along dim d.
void copy_parts(TensorList tensors, const Tensor& out, size_t d) {
  const Shape& strides = out.strides();
  int64_t at = 0;
  for (const Tensor& t : tensors) {
    if (t.numel() == 0) continue;
    copy_into(alias(out, t.sizes(), strides, at * strides[d]), t);
    at += t.sizes()[d];
  }
}

// The same for the outermost dim: threads take ranges of it, and so are started once, not for each
// tensor.
void copy_outermost(TensorList tensors, const Tensor& out) {
  int64_t row_stride = out.strides()[0];
  parallel_for(0, out.sizes()[0], 1, [&](int64_t begin, int64_t end) {
    int64_t first = 0;
    for (const Tensor& t : tensors) {
      if (t.numel() == 0) continue;
      int64_t last = first + t.sizes()[0];
      int64_t from = std::max(begin, first), to = std::min(end, last);
      if (from < to) {
        Shape sizes = t.sizes();
        sizes[0] = to - from;
        copy_into(alias(out, sizes, out.strides(), from * row_stride),
                  alias(t, sizes, t.strides(), t.offset() + (from - first) * t.strides()[0]));
      }
      first = last;
    }
  });
}

// The same for an inner dim, in blocks of the outermost one that stay in the cache: what lies side
// by side in `out` is written at about the same time.
void copy_blocks(TensorList tensors, const Tensor& out, size_t d) {
  constexpr size_t kBlock = 1 << 18, kEach = 1 << 12;  // bytes of a block, and at least of a tensor
  int64_t rows = out.sizes()[0];
  size_t row_bytes = size_t(out.numel() / rows) * out.itemsize();
  int64_t most = int64_t(std::max(kBlock, tensors.size() * kEach) / row_bytes) + 1;
  parallel_for(0, rows, most, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row += most) {
      int64_t at = row * out.strides()[0];
      for (const Tensor& t : tensors) {
        if (t.numel() == 0) continue;
        Shape sizes = t.sizes();
        sizes[0] = std::min(most, end - row);
        copy_into(alias(out, sizes, out.strides(), at),
                  alias(t, sizes, t.strides(), t.offset() + row * t.strides()[0]));
        at += t.sizes()[d] * out.strides()[d];
      }
    }
  });
}

// The same where all are row-major and have the dtype of `out`: by runs of at least kLeastRun
// bytes, a few rows of `out` at a time. Returns whether it was that.
bool copy_runs(TensorList tensors, const Tensor& out, size_t d) {
  constexpr int64_t kLeastRun = 8, kBlock = 1 << 12;  // bytes, the second stay in the L1 cache,
  constexpr int64_t kGrain = 1 << 17;                 // and these are worth a thread
  struct Run {
    const char* from;
    int64_t bytes;
  };
  if (d == 0 || !out.device().is_cpu() || !out.is_contiguous()) return false;
  int64_t rows = 1, item = int64_t(out.itemsize());
  for (size_t k = 0; k < d; ++k) rows *= out.sizes()[k];
  std::vector<Run> runs;
  for (const Tensor& t : tensors) {
    if (t.numel() == 0) continue;
    Run run{t.data<char>(), t.numel() / rows * item};
    if (t.dtype() != out.dtype() || !t.is_contiguous() || run.bytes < kLeastRun) return false;
    runs.push_back(run);
  }
  if (runs.empty()) return true;
  int64_t row_bytes = out.numel() / rows * item;
  int64_t together = std::max<int64_t>(kBlock / row_bytes, 1);
  char* to = out.data<char>();
  parallel_for(0, rows, kGrain / row_bytes + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row += together) {
      char* at = to + row * row_bytes;
      for (const Run& run : runs) {
        copy_rows(at, {row_bytes, item}, run.from + row * run.bytes, {run.bytes, item}, item,
                  std::min(together, end - row), run.bytes / item);
        at += run.bytes;
      }
    }
  });
  return true;
}

Tensor joined(TensorList tensors, int64_t dim, MemoryFormat format) {
  const Tensor* like = &tensors[0];
  DType dtype = tensors[0].dtype();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    CHECK(t.dim() > 0, "zero-dimensional tensor (at position ", i,
          ") cannot be concatenated. Use stack.");
    dtype = promote(dtype, t.dtype());
    if (is_nothing(t.sizes())) continue;
    if (is_nothing(like->sizes())) like = &t;
  }
  size_t d = is_nothing(like->sizes()) ? 0 : size_t(wrap_dim(dim, like->dim()));
  Shape sizes = like->sizes();
  sizes[d] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Shape& one = tensors[i].sizes();
    if (is_nothing(one)) continue;
    CHECK(one.size() == sizes.size(), "Tensors must have same number of dimensions: got ",
          sizes.size(), " and ", one.size());
    for (size_t k = 0; k < one.size(); ++k)
      CHECK(k == d || one[k] == sizes[k], "Sizes of tensors must match except in dimension ", d,
            ". Expected size ", sizes[k], " but got size ", one[k], " in dim ", k,
            " for tensor number ", i, " in the list.");
    CHECK(!__builtin_add_overflow(sizes[d], one[d], &sizes[d]), "the size of dim ", d,
          " overflows");
  }
  checked_numel(sizes);
  check_devices(tensors);
  Shape strides = strides_for(sizes, format);
  Tensor out = empty_strided(sizes, strides, dtype, like->device());
  if (copy_runs(tensors, out, d)) return out;
  constexpr size_t kWorthThreads = 1 << 18;  // bytes
  if (!out.device().is_cpu() || sizes[0] < 2 * num_threads() ||
      size_t(out.numel()) * out.itemsize() <= kWorthThreads)
    copy_parts(tensors, out, d);
  else if (d == 0) copy_outermost(tensors, out);
  else copy_blocks(tensors, out, d);
  return out;
}

// Whether a stack along a new last dim lets the elements of two tensors alternate.
bool alternates(TensorList tensors, size_t dim) {
  if (tensors.size() != 2 || dim != tensors[0].sizes().size()) return false;
  return tensors[0].device().is_cpu() && tensors[0].numel() > 0 &&
         tensors[0].dtype() == tensors[1].dtype() && tensors[0].is_contiguous() &&
         tensors[1].is_contiguous();
}

// Stacks them as a matrix of two rows is transposed, whose rows lie where the tensors are.
Tensor alternating(TensorList tensors) {
  Shape sizes = tensors[0].sizes();
  sizes.push_back(2);
  Tensor out = empty(sizes, tensors[0].dtype());
  const char *first = tensors[0].data<char>(), *second = tensors[1].data<char>();
  int64_t item = int64_t(out.itemsize());
  copy_strided(Shape{tensors[0].numel(), 2}, item, out.data<char>(), Shape{2 * item, item}, first,
               Shape{item, second - first});
  return out;
}

Tensor stacked(TensorList tensors, int64_t dim) {
  check_list(tensors);
  const Shape& each = tensors[0].sizes();
  for (size_t i = 1; i < tensors.size(); ++i)
    CHECK(tensors[i].sizes() == each, "expects each tensor to be equal size, but got ", each,
          " at entry 0 and ", tensors[i].sizes(), " at entry ", i);
  auto at = size_t(wrap_dim(dim, tensors[0].dim() + 1));
  if (alternates(tensors, at)) return alternating(tensors);
  MemoryFormat format = common_format(tensors);
  if (format != MemoryFormat::contiguous && at < each.size()) {
    // In their own number of dims, the only one in which the format has a meaning.
    Tensor out = joined(tensors, int64_t(at), format);
    Shape sizes = each, strides = out.strides();
    sizes.insert(at, int64_t(tensors.size()));
    strides.insert(at, each[at] * strides[at]);
    return alias(out, sizes, strides, 0);
  }
  std::vector<Tensor> rows;
  for (const Tensor& t : tensors) rows.push_back(alias(t, unsqueeze_window(window_of(t), dim)));
  return joined(rows, int64_t(at), MemoryFormat::contiguous);
}

Tensor at_least(const Tensor& input, int64_t ndim) {
  Tensor out = input;
  if (out.dim() == 0 && ndim > 0) out = reshape(out, Shape{1});
  if (out.dim() == 1 && ndim > 1) out = unsqueeze(out, 0);
  if (out.dim() == 2 && ndim > 2) out = unsqueeze(out, 2);
  return out;
}
std::vector<Tensor> all_at_least(TensorList tensors, int64_t ndim) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(at_least(t, ndim));
  return out;
}

Tensor stacked_sideways(TensorList tensors) {
  check_list(tensors);
  std::vector<Tensor> parts = all_at_least(tensors, 1);
  return cat(parts, parts[0].dim() == 1 ? 0 : 1);
}

std::vector<Tensor> broadcast_all(TensorList tensors) {
  check_list(tensors);
  Shape sizes;
  for (const Tensor& t : tensors) sizes = broadcast_shapes(sizes, t.sizes());
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(t.sizes() == sizes ? t : expand(t, sizes));
  return out;
}

// A tensor of at most two dims as the matrix that block_diag takes it for.
Shape block_sizes(ShapeRef sizes) {
  CHECK(sizes.size() <= 2, "Input tensors must have 2 or fewer dimensions. Got shape ",
        ShapeText{sizes});
  return {sizes.size() < 2 ? 1 : sizes[0], sizes.empty() ? 1 : sizes.back()};
}

// How many choices of r among n there are.
int64_t choice_count(int64_t n, int64_t r, bool with_replacement) {
  if (r > n && (n == 0 || !with_replacement)) return 0;
  constexpr double kMost = std::numeric_limits<int32_t>::max();
  double count = 1, among = double(n) + (with_replacement ? double(r) - 1 : 0);
  for (double i = 0; i < std::min(double(r), among - double(r)) && count <= kMost; ++i)
    count *= (among - i) / (i + 1);
  CHECK(count * double(r) <= kMost, ErrorKind::kOutOfMemory, "no memory for the choices of ", r,
        " among ", n, " elements");
  return int64_t(std::round(count));
}

// The places of every choice of r among n, in order: (count, r).
Tensor choices(int64_t n, int64_t r, bool with_replacement) {
  int64_t count = choice_count(n, r, with_replacement);
  Tensor index = empty(Shape{count, r}, DType::int64);
  if (count == 0) return index;
  int64_t* to = index.data<int64_t>();
  Shape places(size_t(r), 0);
  if (!with_replacement) std::iota(places.begin(), places.end(), 0);
  auto last = [&](size_t i) { return with_replacement ? n - 1 : n - r + int64_t(i); };
  for (int64_t row = 0; row < count; ++row) {
    to = std::ranges::copy(places, to).out;
    size_t i = size_t(r);
    while (i > 0 && places[i - 1] >= last(i - 1)) --i;
    if (i == 0) break;
    ++places[i - 1];
    for (; i < size_t(r); ++i) places[i] = places[i - 1] + !with_replacement;
  }
  return index;
}

}  // namespace

OP(cat, "(Tensor[] tensors, int dim=0) -> Tensor", {
  .doc     = R"(Joins tensors along a dim; all other sizes must be equal.

The dtype of the result is the common one.)",
  .aliases = "concat concatenate",
  .autocast = autocast::widest,
  .sparse  = sparse_cat,
  .batch   = [](const Batch& batch, TensorList tensors, int64_t dim) {
    std::vector<Tensor> parts;
    int64_t rank = 0;
    for (size_t k = 0; k < tensors.size(); ++k) {
      Shape sizes(ShapeRef(tensors[k].sizes()).subspan(batch.has("tensors", k)));
      if (is_nothing(sizes)) {
        parts.push_back(reshape(tensors[k], sizes));  // joins with samples of any rank
      } else {
        rank = int64_t(sizes.size());
        parts.push_back(expand(tensors[k], batch.with_samples(sizes)));
      }
    }
    bool nothing = std::ranges::all_of(parts, [](auto& t) { return is_nothing(t.sizes()); });
    return nothing ? expand(cat(parts, dim), batch.with_samples(Shape{0}))
                   : cat(parts, Batch::dim(dim, rank));
  },
  .forward = [](TensorList tensors, int64_t dim) {
    CHECK(!tensors.empty(), ErrorKind::kValue, "expected a non-empty list of Tensors");
    check_list(tensors);
    return joined(tensors, dim, common_format(tensors));
  },
  .saves   = saves<"tensors.shape">,
  .grads   = grads(d<"tensors">([](const Tensor& g, const std::vector<Shape>& shapes, int64_t dim) {
    std::vector<Tensor> pieces;
    int64_t at = 0;
    for (const Shape& shape : shapes) {
      if (is_nothing(shape)) {
        pieces.push_back(zeros(shape, g.dtype(), g.device()));
        continue;
      }
      int64_t length = shape[size_t(wrap_dim(dim, g.dim()))];
      pieces.push_back(narrow(g, dim, at, length));
      at += length;
    }
    return pieces;
  })),
})

OP(stack, "(Tensor[] tensors, int dim=0) -> Tensor", {
  .doc     = R"(Joins tensors of one shape along a new dim.)",
  .autocast = autocast::widest,
  .sparse  = sparse_stack,
  .batch   = by_new_dim,
  .forward = [](TensorList tensors, int64_t dim) { return stacked(tensors, dim); },
  .grads   = grads(d<"tensors">([](const Tensor& g, int64_t dim) {
    return call<"unbind", std::vector<Tensor>>(g, dim);
  })),
})

OP(hstack, "(Tensor[] tensors) -> Tensor", {
  .doc     = R"(Joins tensors side by side: along dim 1, or dim 0 when they have one dim.)",
  .forward = [](TensorList tensors) { return stacked_sideways(tensors); },
})

OP(vstack, "(Tensor[] tensors) -> Tensor", {
  .doc     = R"(Joins tensors row by row: along dim 0, after 1-d ones became rows.)",
  .aliases = "row_stack",
  .forward = [](TensorList tensors) {
    check_list(tensors);
    return cat(all_at_least(tensors, 2), 0);
  },
})

OP(dstack, "(Tensor[] tensors) -> Tensor", {
  .doc     = R"(Joins tensors along dim 2, after all got three dims.)",
  .forward = [](TensorList tensors) {
    check_list(tensors);
    return cat(all_at_least(tensors, 3), 2);
  },
})

OP(column_stack, "(Tensor[] tensors) -> Tensor", {
  .doc     = R"(Joins tensors side by side, after 1-d ones became columns.)",
  .forward = [](TensorList tensors) {
    check_list(tensors);
    std::vector<Tensor> columns;
    for (const Tensor& t : tensors)
      columns.push_back(t.dim() < 2 ? reshape(t, Shape{t.numel(), 1}) : t);
    return stacked_sideways(columns);
  },
})

OP(atleast_1d, "(Tensor input) -> Tensor", {
  .doc     = R"(input with at least one dim.)",
  .variants = function,
  .forward = [](const Tensor& input) { return at_least(input, 1); },
})

OP(atleast_1d_list, "atleast_1d.list(Tensor[] *tensors) -> Tensor[]", {
  .doc     = R"(The tensors with at least one dim each.)",
  .forward = [](TensorList tensors) { return all_at_least(tensors, 1); },
})

OP(atleast_2d, "(Tensor input) -> Tensor", {
  .doc     = R"(input with at least two dims.)",
  .variants = function,
  .forward = [](const Tensor& input) { return at_least(input, 2); },
})

OP(atleast_2d_list, "atleast_2d.list(Tensor[] *tensors) -> Tensor[]", {
  .doc     = R"(The tensors with at least two dims each.)",
  .forward = [](TensorList tensors) { return all_at_least(tensors, 2); },
})

OP(atleast_3d, "(Tensor input) -> Tensor", {
  .doc     = R"(input with at least three dims.)",
  .variants = function,
  .forward = [](const Tensor& input) { return at_least(input, 3); },
})

OP(atleast_3d_list, "atleast_3d.list(Tensor[] *tensors) -> Tensor[]", {
  .doc     = R"(The tensors with at least three dims each.)",
  .forward = [](TensorList tensors) { return all_at_least(tensors, 3); },
})

OP(broadcast_tensors, "(Tensor[] *tensors) -> Tensor[]", {
  .doc     = R"(The tensors in their common shape: views of those that do not have it.)",
  .forward = [](TensorList tensors) {
    return tensors.empty() ? std::vector<Tensor>() : broadcast_all(tensors);
  },
})

OP(meshgrid, "(Tensor[] *tensors, *, str? indexing=None) -> Tensor[]", {
  .doc     = R"(Grids of coordinates: result i holds tensors[i] along dim i, and repeats it.

indexing='xy' swaps the first two dims, as NumPy does; 'ij' is the default.)",
  .forward = [](TensorList tensors, std::optional<std::string_view> indexing) {
    check_list(tensors);
    check_devices(tensors);
    bool swap = indexing == "xy" && tensors.size() > 1;
    CHECK(!indexing || indexing == "xy" || indexing == "ij",
          "indexing must be one of \"xy\" or \"ij\", but received '", *indexing, "'.");
    if (!indexing && warn_user)
      warn_user("torch.meshgrid: in an upcoming release, it will be required to pass the indexing "
                "argument. Pass indexing='ij' for what it does now.");
    std::vector<Tensor> grids;
    Shape sizes;
    for (const Tensor& t : tensors) {
      CHECK(t.dim() <= 1, "Expected 0D or 1D tensor in the tensor list but got shape ", t.sizes());
      CHECK(t.dtype() == tensors[0].dtype(), "expects all tensors to have the same dtype");
      sizes.push_back(t.numel());
    }
    if (swap) std::swap(sizes[0], sizes[1]);
    for (size_t i = 0; i < tensors.size(); ++i) {
      Shape one(tensors.size(), 1);
      size_t place = swap && i < 2 ? 1 - i : i;
      one[place] = tensors[i].numel();
      grids.push_back(expand(reshape(tensors[i], one), sizes));
    }
    return grids;
  },
})

OP(cartesian_prod, "(Tensor[] *tensors) -> Tensor", {
  .doc     = R"(All tuples of one element of each vector: (count, vectors). One vector is returned
as it is.

Example:
    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]]))",
  .forward = [](TensorList tensors) {
    check_list(tensors);
    for (const Tensor& t : tensors)
      CHECK(t.dim() == 1, "Expect a 1D vector, but got shape ", t.sizes());
    if (tensors.size() == 1) return tensors[0];
    std::vector<Tensor> columns;
    for (const Tensor& grid :
         call<"meshgrid", std::vector<Tensor>>(tensors, std::optional<std::string_view>("ij")))
      columns.push_back(reshape(grid, Shape{grid.numel()}));
    return stack(columns, 1);
  },
})

OP(combinations, "(Tensor input, int r=2, bool with_replacement=False) -> Tensor", {
  .doc     = R"(The choices of r elements of a vector, as itertools lists them: (count, r).

Example:
    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]]))",
  .variants = function,
  .forward = [](const Tensor& input, int64_t r, bool with_replacement) {
    CHECK(input.dim() == 1, "Expect a 1D vector, but got shape ", input.sizes());
    CHECK(r >= 0, "Expect a non-negative number, but got ", r);
    if (r == 0) return empty(Shape{0}, input.dtype(), input.device());
    Tensor index = choices(input.numel(), r, with_replacement);
    Tensor flat = needs::to_device(reshape(index, Shape{index.numel()}), input.device());
    return reshape(call<"index_select", Tensor>(input, int64_t(0), flat), index.sizes());
  },
})

OP(block_diag, "(Tensor[] *tensors) -> Tensor", {
  .doc     = R"(The matrix with these matrices along its diagonal and zeros elsewhere.

A vector counts as one row, a number as a 1 x 1 matrix.)",
  .batch   = [](const Batch& batch, TensorList tensors) {
    check_list(tensors);
    DType dtype = tensors[0].dtype();
    Shape columns;
    std::vector<Tensor> blocks;
    for (size_t k = 0; k < tensors.size(); ++k) {
      bool samples = batch.has("tensors", k);
      Shape block = block_sizes(ShapeRef(tensors[k].sizes()).subspan(samples));
      Tensor all = reshape(tensors[k], Shape{samples ? batch.size() : 1, block[0], block[1]});
      blocks.push_back(expand(all, batch.with_samples(block)));
      columns.push_back(block[1]);
      dtype = promote(dtype, tensors[k].dtype());
    }
    std::vector<Tensor> rows;
    int64_t width = std::accumulate(columns.begin(), columns.end(), int64_t(0)), before = 0;
    for (size_t k = 0; k < blocks.size(); ++k) {
      auto gap = [&](int64_t size) {
        return zeros(Shape{batch.size(), blocks[k].size(1), size}, dtype, blocks[k].device());
      };
      const Tensor row[] = {gap(before), blocks[k], gap(width - before - columns[k])};
      rows.push_back(cat(row, 2));
      before += columns[k];
    }
    return cat(rows, 1);
  },
  .forward = [](TensorList tensors) {
    if (tensors.empty()) return fresh(Shape{1, 0}, std::nullopt, std::nullopt);
    check_list(tensors);
    check_devices(tensors);
    int64_t rows = 0, columns = 0;
    DType dtype = tensors[0].dtype();
    for (const Tensor& t : tensors) {
      Shape block = block_sizes(t.sizes());
      rows += block[0];
      columns += block[1];
      dtype = promote(dtype, t.dtype());
    }
    Tensor out = zeros(Shape{rows, columns}, dtype, tensors[0].device());
    int64_t at = 0;
    for (const Tensor& t : tensors) {
      Shape block = block_sizes(t.sizes());
      if (t.numel()) copy_into(alias(out, block, out.strides(), at), t);
      at += block[0] * columns + block[1];
    }
    return out;
  },
  .saves   = saves<"tensors.shape">,
  .grads   = grads(d<"tensors">([](const Tensor& g, const std::vector<Shape>& shapes) {
    std::vector<Tensor> blocks;
    int64_t row = 0, column = 0;
    for (const Shape& shape : shapes) {
      Shape block = block_sizes(shape);
      Tensor part = narrow(narrow(g, 0, row, block[0]), 1, column, block[1]);
      blocks.push_back(reshape(part, shape));
      row += block[0];
      column += block[1];
    }
    return blocks;
  })),
})

}  // namespace rushlight
