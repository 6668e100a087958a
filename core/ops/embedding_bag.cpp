// Owns embedding_bag: sums, means and maxima of bags of rows. A sum is the product of a sparse
// matrix, which has a line for each bag, with the table: the rows are never gathered.
#include <algorithm>

#include "core/autograd/needs.h"
#include "core/device/threads.h"
#include "core/ops/batch.h"
#include "core/ops/embedding_bag_loops.h"
#include "core/ops/index/index_loops.h"
#include "core/ops/op.h"
#include "core/ops/operands.h"
#include "core/ops/sparse/sparse.h"
#include "core/ops/sparse/sparse_kernels.h"
#include "core/tensor/lift.h"

namespace rushlight {

ISA_TABLES(BagLoops, bag_loops)

namespace {

constexpr int64_t kGrain = 1 << 15;  // elements that are worth a thread

const BagLoops& bag_loops() { return active(bag_loops_sets); }

enum class BagMode : int64_t { sum, mean, max };

// The entries of all bags, one bag after the other.
struct Bags {
  Tensor rows;    // the row of each entry
  Tensor starts;  // where each bag begins, and the end of the last
  Tensor kept;    // the place of each entry in the input, unless these are all
  Tensor bag_of;  // the bag of each element of the input, padding too

  int64_t count() const { return starts.size(0) - 1; }
  // The elements of a list by input that are entries.
  Tensor of_entries(const Tensor& list) const {
    return rows.numel() == list.numel() ? list : take_entries(list, kept);
  }
  Tensor numbers() const { return of_entries(bag_of); }
  Tensor sizes() const { return narrow(starts, 0, 1, count()) - narrow(starts, 0, 0, count()); }
};

Bags read_bags(const Tensor& indices, const Tensor& offsets, int64_t rows, bool include_last_offset,
               std::optional<int64_t> padding_idx) {
  auto [of_row, starts, kept, bag_of] =
      call<"_embedding_bag_entries", std::tuple<Tensor, Tensor, Tensor, Tensor>>(
          indices, offsets, rows, include_last_offset, padding_idx);
  return {of_row, starts, kept, bag_of};
}

// A matrix whose line for a bag has the entries' factors at their rows. It shares no memory.
Tensor matrix_of(const Bags& bags, int64_t rows, const Tensor& factors) {
  EntryOrder lines{bags.starts, bags.rows, {}};
  return make_sparse(
      SparsePattern::compressed(Layout::sparse_csr, lines, Shape{bags.count(), rows}, false),
      factors);
}

Tensor factors_or_ones(const Tensor& factors, const Tensor& rows, const Tensor& weight) {
  return factors.defined() ? factors : full(rows.sizes(), 1.0, weight.dtype());
}

// The sums of factors times rows, by bag.
Tensor sums_of_bags(const Tensor& weight, const Bags& bags, const Tensor& factors,
                    bool scale_grad_by_freq, bool sparse) {
  bool plain = weight.device().is_cpu() && !is_lifted(weight) && !is_lifted(bags.rows) &&
               !is_lifted(factors);
  if (plain && !scale_grad_by_freq) {
    if (sparse)
      return call<"_sparse_bag_sums", Tensor>(weight, factors, bags.rows, bags.starts,
                                              bags.numbers());
    Tensor values = factors_or_ones(factors, bags.rows, weight);
    Tensor pattern = bare_pattern(matrix_of(bags, weight.size(0), detach(values)));
    return call<"_sparse_dense_mm", Tensor>(values, pattern, weight, false);
  }
  Tensor entries =
      call<"embedding", Tensor>(bags.rows, weight, std::optional<int64_t>(),
                                std::optional<double>(), 2.0, scale_grad_by_freq, sparse);
  if (factors.defined()) entries = entries * unsqueeze(factors, -1);
  const Tensor at[] = {bags.numbers()};
  return index_put_(new_zeros(entries, Shape{bags.count(), weight.size(1)}), at, entries, true);
}

// 1 / the number of entries in the bag of each entry.
Tensor shares(const Bags& bags, DType dtype) {
  const Tensor at[] = {bags.numbers()};
  return reciprocal(index(cast(bags.sizes(), dtype), at));
}

// The largest element of each column of a bag, and its row; no row (-1) and 0 for empty bags.
void maxima_of_bags(const Tensor& table, const Tensor& rows, const Tensor& starts,
                    const Tensor& values, const Tensor& places) {
  int64_t columns = table.size(1), bytes = columns * int64_t(table.itemsize());
  const int64_t *row = rows.data<int64_t>(), *start = starts.data<int64_t>();
  auto* loop = bag_loops().maxima[table.dtype() == DType::float64];
  int64_t bags = starts.numel() - 1, work = (rows.numel() / bags + 1) * columns;
  parallel_for(0, bags, kGrain / work + 1, [&](int64_t begin, int64_t end) {
    for (int64_t bag = begin; bag < end; ++bag) {
      char* best = values.data<char>() + bag * bytes;
      int64_t *place = places.data<int64_t>() + bag * columns, count = start[bag + 1] - start[bag];
      if (count > 0) {
        loop(table.data(), row + start[bag], count, columns, best, place);
      } else {
        std::fill_n(best, bytes, char(0));
        std::fill_n(place, columns, -1);
      }
    }
  });
}

}  // namespace

OP(_embedding_bag_entries,
   "(Tensor indices, Tensor offsets, int rows, bool include_last_offset, int? padding_idx) -> "
   "(Tensor rows, Tensor starts, Tensor kept, Tensor bag_of)", {
  .home    = "core",
  .doc     = R"(The entries of bags, without those of the padding, once they have been checked.

Returns the row of each entry, where the bags begin and the last one ends, where the entries stand
in `indices`, and the bag of each element of these.)",
  .seen    = Seen::never,
  .forward = [](const Tensor& indices, const Tensor& offsets, int64_t rows,
                bool include_last_offset, std::optional<int64_t> padding_idx) {
    int64_t count = offsets.numel() - include_last_offset, entries = indices.numel();
    Device device = indices.device();
    auto list = [](int64_t n) { return empty(Shape{n}, DType::int64); };
    bool keeps_all = !padding_idx && !include_last_offset;
    Tensor of_row = list(entries), starts = list(count + 1),
           kept = list(keeps_all ? 0 : entries), bag_of = list(entries);
    if (device.is_meta()) {
      auto moved = [&](const Tensor& t) { return empty(t.sizes(), DType::int64, device); };
      return std::tuple(moved(of_row), moved(starts), moved(kept), moved(bag_of));
    }
    auto on_host = [](const Tensor& t) {
      return to_contiguous(needs::to_device(to_dtype(t, DType::int64), {}));
    };
    Tensor index_list = on_host(indices), offset_list = on_host(offsets);
    const int64_t *index = index_list.data<int64_t>(), *offset = offset_list.data<int64_t>();
    int64_t padding = !padding_idx ? -1 : *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
    int64_t *row = of_row.data<int64_t>(), *start = starts.data<int64_t>();
    int64_t *place = kept.data<int64_t>(), *bag_at = bag_of.data<int64_t>(), used = 0, covered = 0;
    bool copies = keeps_all && index_loops().in_range(index, entries, rows);
    for (int64_t bag = 0; bag < count; ++bag) {
      start[bag] = used;
      int64_t begin = offset[bag];
      int64_t end = bag + 1 < offsets.numel() ? offset[bag + 1] : entries;
      CHECK(bag > 0 || begin == 0, "offsets[0] has to be 0, i.e., the first sequence in the ",
            "mini-batch has to start from position 0. However, got ", begin);
      CHECK(begin <= entries && end <= entries,
            "offsets[-1] can not be greater than input's length ", entries,
            " but got offsets[-1] of ", std::max(begin, end));
      CHECK(begin <= end, "offsets must not decrease, but offset ", bag, " is ", begin,
            " and the next one ", end, ".");
      std::fill(bag_at + begin, bag_at + end, bag);
      covered = end;
      if (copies) {
        used = end;
        continue;
      }
      for (int64_t i = begin; i < end; ++i) {
        CHECK(uint64_t(index[i]) < uint64_t(rows), "Index ", i, " of input takes value ", index[i],
              " which is not in the valid range [0, ", rows, ")");
        if (index[i] == padding) continue;
        if (!keeps_all) place[used] = i;
        row[used++] = index[i];
      }
    }
    start[count] = used;
    if (copies) std::copy(index, index + used, row);
    // What lies behind the last bag counts as its own, as in PyTorch.
    std::fill(bag_at + covered, bag_at + entries, std::max<int64_t>(count - 1, 0));
    // Clones of what is used, so that memory of unused entries is not kept.
    auto moved = [&](const Tensor& t, int64_t n) {
      return needs::to_device(n == t.numel() ? t : to_contiguous(alias(t, Shape{n}, Shape{1}, 0)),
                              device);
    };
    return std::tuple(moved(of_row, used), moved(starts, count + 1),
                      moved(kept, keeps_all ? 0 : used), moved(bag_of, entries));
  },
  .saves   = saves<>,
  .grads   = grads(no_grad<"indices">, no_grad<"offsets">),
})

OP(_sparse_bag_sums,
   "(Tensor weight, Tensor? factors, Tensor rows, Tensor starts, Tensor numbers) -> Tensor", {
  .home    = "core",
  .doc     = R"(Sums of factors times rows, by bag, with a sparse gradient of weight.)",
  .seen    = Seen::never,
  .gpu     = none<"sparse tensors live on the CPU">,
  .forward = [](const Tensor& weight, const Tensor& factors, const Tensor& rows,
                const Tensor& starts, const Tensor&) {
    Tensor values = factors_or_ones(factors, rows, weight);
    Tensor matrix = matrix_of({rows, starts, {}, {}}, weight.size(0), values);
    return multiply_sparse_dense(*pattern_of(matrix), values, weight, false);
  },
  .saves   = saves<"weight", "factors", "rows", "numbers", "weight.shape">,
  .grads   = grads(
      d<"weight">(uses<"factors", "rows", "numbers", "weight.shape">,
                  [](const Tensor& g, const Tensor& factors, const Tensor& rows,
                     const Tensor& numbers, const Shape& shape) {
        Tensor values = take_entries(g, numbers);
        if (factors.defined()) values = values * unsqueeze(factors, -1);
        return sparse_coo(clone(unsqueeze(rows, 0)), values, Shape{shape[0]}, false);
      }),
      d<"factors">(uses<"weight", "rows", "numbers">,
                   [](const Tensor& g, const Tensor& weight, const Tensor& rows,
                      const Tensor& numbers) {
        return sum(take_entries(g, numbers) * take_entries(weight, rows), Shape{1});
      }),
      no_grad<"rows">, no_grad<"starts">, no_grad<"numbers">),
})

namespace {

// The maxima of bags that differ from sample to sample: all bags of all samples, in one table.
std::tuple<Tensor, Tensor> maxima_of_all_bags(const Batch& batch) {
  Tensor tables = batch.full("weight"), rows = batch.full("rows"), numbers = batch.full("numbers"),
         starts = batch.full("starts");
  int64_t samples = batch.size(), height = tables.size(1), columns = tables.size(2),
          entries = rows.size(1), bags = starts.size(1) - 1;
  Tensor sample = batch.numbers(rows);
  Tensor begins = reshape(narrow(starts, 1, 0, bags) + sample * entries, Shape{samples * bags});
  const Tensor bounds[] = {
      begins, full(Shape{1}, Scalar(samples * entries), DType::int64, begins.device())};
  auto [values, places] = call<"_bag_maxima", std::tuple<Tensor, Tensor>>(
      reshape(tables, Shape{samples * height, columns}),
      reshape(rows + sample * height, Shape{samples * entries}),
      reshape(numbers + sample * bags, Shape{samples * entries}), cat(bounds, 0));
  Shape sizes{samples, bags, columns};
  Tensor place = reshape(places, sizes);
  return {reshape(values, sizes), where(place < 0, place, place - batch.numbers(place) * height)};
}

}  // namespace

OP(_bag_maxima,
   "(Tensor weight, Tensor rows, Tensor numbers, Tensor starts) -> "
   "(Tensor values, Tensor places)", {
  .home    = "core",
  .doc     = R"(The largest elements of the columns of each bag of rows, and the rows they are in.

Empty bags have zeros, of row -1. What _embedding_bag_entries returns says which rows are in which
bag.)",
  .dtypes  = floating,
  .seen    = Seen::never,
  .batch   = [](const Batch& batch, const Tensor& weight, const Tensor& rows,
                const Tensor& numbers, const Tensor& starts) {
    if (batch.has("rows") || batch.has("starts")) return maxima_of_all_bags(batch);
    // The samples' columns side by side.
    int64_t samples = weight.size(0), columns = weight.size(2);
    Tensor table =
        reshape(permute(weight, Shape{1, 0, 2}), Shape{weight.size(1), samples * columns});
    auto [values, places] =
        call<"_bag_maxima", std::tuple<Tensor, Tensor>>(table, rows, numbers, starts);
    auto parted = [&](const Tensor& t) {
      return permute(reshape(t, Shape{t.size(0), samples, columns}), Shape{1, 0, 2});
    };
    return std::tuple(parted(values), parted(places));
  },
  .forward = [](const Tensor& weight, const Tensor& rows, const Tensor& numbers,
                const Tensor& starts) {
    Shape sizes{starts.size(0) - 1, weight.size(1)};
    if (weight.device().is_cuda()) {
      // The first of the equal ones among the entries, as the loop takes it.
      auto reduced = [&](const Tensor& start, const Tensor& entries, std::string_view how) {
        Tensor bag = expand(unsqueeze(numbers, -1), entries.sizes());
        return call<"scatter_reduce", Tensor>(start, int64_t(0), bag, entries, how, true);
      };
      const Tensor of_row[] = {rows}, of_bag[] = {numbers};
      Tensor entries = index(weight, of_row);  // (entries, columns)
      Scalar least(-std::numeric_limits<double>::infinity());
      Tensor best = reduced(full(sizes, least, weight.dtype(), weight.device()), entries, "amax");
      int64_t none = rows.size(0);
      Tensor place = unsqueeze(call<"arange", Tensor>(Scalar(none), std::optional(DType::int64),
                                                      std::optional(weight.device())), -1);
      Tensor last = full({}, none, DType::int64, weight.device());
      Tensor first = reduced(full(sizes, none, DType::int64, weight.device()),
                             where(entries == index(best, of_bag), place, last), "amin");
      const Tensor parts[] = {rows, full(Shape{1}, -1, DType::int64, weight.device())};
      const Tensor at[] = {first};
      Tensor places = index(cat(parts, 0), at);
      Tensor zero = zeros({}, weight.dtype(), weight.device());
      return std::tuple(where(places < 0, zero, best), places);
    }
    DType compute = compute_dtype(weight.dtype());
    Tensor places = empty(sizes, DType::int64, weight.device());
    if (places.numel() == 0 || weight.device().is_meta())
      return std::tuple(empty(sizes, weight.dtype(), weight.device()), places);
    Tensor values = empty(sizes, compute);
    maxima_of_bags(prepared(weight, compute), to_contiguous(rows),
                   to_contiguous(starts), values, places);
    return std::tuple(to_dtype(values, weight.dtype()), places);
  },
  .saves   = saves<"places", "weight.shape">,
  .grads   = grads(d<"weight">([](TensorList g, const Tensor& places, const Shape& shape) {
                     Tensor is_empty = places < 0;
                     Tensor zero = zeros({}, g[0].dtype(), g[0].device());
                     return call<"scatter_add_", Tensor>(
                         new_zeros(g[0], shape), int64_t(0), places * logical_not(is_empty),
                         where(is_empty, zero, g[0]));
                   }),
                   no_grad<"rows">, no_grad<"numbers">, no_grad<"starts">),
})

OP(embedding_bag,
   "(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, "
   "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, "
   "int? padding_idx=None) -> (Tensor, Tensor, Tensor, Tensor)", {
  .doc     = R"(Sums (mode 0), means (1) or maxima (2) of bags of rows of weight.

Returns (bags, columns), the bag of each index, the number of entries of each bag, and for maxima
the rows they are in. See nn.functional.embedding_bag.)",
  .dtypes  = floating,
  .variants = function,
  .forward = [](const Tensor& weight, const Tensor& indices, const Tensor& offsets,
                bool scale_grad_by_freq, int64_t mode, bool sparse,
                const Tensor& per_sample_weights, bool include_last_offset,
                std::optional<int64_t> padding_idx) {
    for (const Tensor* t : {&indices, &offsets})
      CHECK(t->dtype() == DType::int64 || t->dtype() == DType::int32,
            "Expected tensor for argument 'indices' and 'offsets' to have one of the following ",
            "scalar types: Long, Int; but got ", dtype_name(t->dtype()));
    common_device(std::array{&weight, &indices, &offsets});
    CHECK(weight.dim() == 2 && indices.dim() == 1 && offsets.dim() == 1, "weight must be 2-D, ",
          "indices and offsets 1-D, but they have shapes ", weight.sizes(), ", ", indices.sizes(),
          " and ", offsets.sizes(), ".");
    CHECK(mode >= 0 && mode <= 2, "`mode` must be sum, mean, or max (0, 1 or 2), but is ", mode);
    CHECK(!include_last_offset || offsets.numel() > 0,
          "include_last_offset: number of offset should be at least 1");
    int64_t rows = weight.size(0);
    CHECK(!padding_idx || (*padding_idx >= -rows && *padding_idx < rows),
          "padding_idx must be within the number of embeddings, ", -rows, " through ", rows - 1,
          ", but got ", padding_idx.value_or(0));
    Tensor factors = per_sample_weights;
    if (factors.defined()) {
      common_device(std::array{&weight, &per_sample_weights});
      CHECK(mode == 0, "per_sample_weights is only supported with mode='sum'");
      CHECK(factors.dtype() == weight.dtype(), "Expected tensor for argument 'weight' to have the ",
            "same type as tensor for argument 'per_sample_weights'; but type ",
            dtype_name(weight.dtype()), " does not equal ", dtype_name(factors.dtype()));
      CHECK(factors.sizes() == indices.sizes(), "per_sample_weights must have the shape of ",
            "indices, ", indices.sizes(), ", but has ", factors.sizes(), ".");
    }
    Bags bags = read_bags(indices, offsets, rows, include_last_offset, padding_idx);
    Tensor sizes = bags.sizes();
    if (BagMode(mode) == BagMode::max) {
      CHECK(!sparse && !scale_grad_by_freq, "maxima have neither sparse gradients nor ",
            "scale_grad_by_freq.");
      auto [values, places] = call<"_bag_maxima", std::tuple<Tensor, Tensor>>(
          weight, bags.rows, bags.numbers(), bags.starts);
      Tensor none = zeros({}, DType::int64, weight.device());
      return std::tuple(values, bags.bag_of, sizes, maximum(places, none));
    }
    if (BagMode(mode) == BagMode::mean) factors = shares(bags, weight.dtype());
    else if (factors.defined()) factors = bags.of_entries(factors);
    Tensor sums = sums_of_bags(weight, bags, factors, scale_grad_by_freq, sparse);
    return std::tuple(sums, bags.bag_of, sizes, zeros_like(sizes));
  },
})

}  // namespace rushlight
