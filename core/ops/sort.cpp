// Owns sorting and what is made of it. All sorts are stable; NaN is greater than every number.
#include <algorithm>
#include <numeric>

#include "core/device/threads.h"
#include "core/ops/op.h"
#include "core/tensor/dims.h"

namespace rushlight {
namespace {

// A number as an unsigned integer of the same order.
template <class T>
uint64_t ordered_key(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return ordered_key(to_float(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    constexpr Bits sign = Bits(1) << (8 * sizeof(T) - 1);
    if (value != value) return Bits(-1);
    Bits bits = std::bit_cast<Bits>(value + T(0));  // -0 becomes 0
    return bits & sign ? Bits(~bits) : Bits(bits | sign);
  } else if constexpr (std::is_signed_v<T>) {
    return uint64_t(int64_t(value)) ^ uint64_t(1) << 63;
  } else {
    return uint64_t(value);
  }
}

// An element of a row that is sorted: its key, and its place, which decides between equals.
struct Ranked {
  uint64_t key;
  int64_t place;
  friend bool operator<(const Ranked& a, const Ranked& b) {
    return a.key < b.key || (a.key == b.key && a.place < b.place);
  }
};

// Sorts by one byte of the key after the other, the lowest first; bytes that are all equal cost
// one look.
void radix_sort(std::vector<Ranked>& row, std::vector<Ranked>& spare) {
  constexpr int kBytes = sizeof(uint64_t);
  std::vector<std::array<int64_t, 256>> counts(kBytes);
  for (auto& count : counts) count.fill(0);
  for (const Ranked& r : row)
    for (int b = 0; b < kBytes; ++b) ++counts[size_t(b)][r.key >> 8 * b & 255];
  spare.resize(row.size());
  for (int b = 0; b < kBytes; ++b) {
    std::array<int64_t, 256>& count = counts[size_t(b)];
    if (count[row[0].key >> 8 * b & 255] == int64_t(row.size())) continue;
    std::exclusive_scan(count.begin(), count.end(), count.begin(), int64_t(0));
    for (const Ranked& r : row) spare[size_t(count[r.key >> 8 * b & 255]++)] = r;
    row.swap(spare);
  }
}

constexpr size_t kRadixFrom = 512;  // shorter rows are sorted faster by comparison

struct Sorted {
  Tensor values, indices;
};

// Sorts each row along dim with `arrange(row, spare)`, which must put the first `keep` in place.
template <class Arrange>
Sorted sort_rows(const Tensor& input, int64_t dim, int64_t keep, bool descending, Arrange arrange) {
  int64_t d = wrap_dim(dim, input.dim());
  int64_t length = input.dim() ? input.size(d) : 1, stride = input.dim() ? input.stride(d) : 1;
  Shape sizes = input.sizes(), outer = input.sizes(), steps = input.strides();
  if (input.dim()) {
    sizes[size_t(d)] = keep;
    outer.erase(size_t(d));
    steps.erase(size_t(d));
  }
  Tensor values = empty(sizes, input.dtype(), input.device()), indices = empty(sizes, DType::int64);
  if (values.numel() == 0) return {values, indices};
  Shape to_steps = values.strides();
  int64_t to_stride = input.dim() ? to_steps[size_t(d)] : 1;
  if (input.dim()) to_steps.erase(size_t(d));
  visit_dtype(input.dtype(), [&]<class T>(Tag<T>) {
    if constexpr (!std::is_same_v<T, std::complex<float>> &&
                  !std::is_same_v<T, std::complex<double>>) {
      const T* from = input.data<T>();
      parallel_for(0, checked_numel(outer), 4096 / length + 1, [&](int64_t begin, int64_t end) {
        Odometer<2> at(outer, {steps, to_steps}, begin);
        std::vector<Ranked> row, spare;
        for (int64_t r = begin; r < end; ++r, at.next()) {
          row.resize(size_t(length));
          for (int64_t i = 0; i < length; ++i) {
            uint64_t key = ordered_key(from[at.at(0) + i * stride]);
            row[size_t(i)] = {descending ? ~key : key, i};
          }
          arrange(row, spare);
          for (int64_t i = 0; i < keep; ++i) {
            values.data<T>()[at.at(1) + i * to_stride] =
                from[at.at(0) + row[size_t(i)].place * stride];
            indices.data<int64_t>()[at.at(1) + i * to_stride] = row[size_t(i)].place;
          }
        }
      });
    }
  });
  return {values, indices};
}

Sorted sort_along(const Tensor& input, int64_t dim, bool descending) {
  int64_t length = input.dim() ? input.size(dim) : 1;
  return sort_rows(input, dim, length, descending,
                   [](std::vector<Ranked>& row, std::vector<Ranked>& spare) {
                     if (row.size() >= kRadixFrom) radix_sort(row, spare);
                     else std::sort(row.begin(), row.end());
                   });
}

// The first k of each sorted row.
Sorted first_along(const Tensor& input, int64_t dim, int64_t k, bool descending) {
  int64_t length = input.dim() ? input.size(dim) : 1;
  CHECK(k >= 0 && k <= length, "selected index k out of range: k = ", k, " for ", length,
        " elements along dim ", dim);
  return sort_rows(input, dim, k, descending, [k](std::vector<Ranked>& row, std::vector<Ranked>&) {
    auto kth = row.begin() + k;
    if (k < int64_t(row.size()) / 8) {
      // A heap of the first k so far: few of the rest are better than its worst.
      std::make_heap(row.begin(), kth);
      for (auto r = kth; k > 0 && r != row.end(); ++r) {
        if (r->key >= row.front().key) continue;
        std::pop_heap(row.begin(), kth);
        kth[-1] = *r;
        std::push_heap(row.begin(), kth);
      }
    } else if (k < int64_t(row.size())) {
      std::nth_element(row.begin(), kth, row.end());
    }
    std::sort(row.begin(), kth);
  });
}

// The gradient of values that were taken from `indices` along dim.
Tensor taken_backward(const Tensor& g, const Tensor& indices, const Shape& shape, int64_t dim) {
  return call<"scatter_add_", Tensor>(zeros(shape, g.dtype()), dim, indices, g);
}

using Pair = std::tuple<Tensor, Tensor>;

}  // namespace

OP(sort, "(Tensor input, int dim=-1, bool descending=False, *, "
         "bool stable=False) -> (Tensor values, Tensor indices)", {
  .doc     = R"(The elements along dim in order, and where they were.

Equal elements keep their order.)",
  .dtypes  = real,
  .forward = [](const Tensor& input, int64_t dim, bool descending, bool) {
    Sorted sorted = sort_along(input, dim, descending);
    return Pair(sorted.values, sorted.indices);
  },
  .saves   = saves<"indices", "input.shape">,
  .grads   = grads(d<"input">([](TensorList g, const Tensor& indices, const Shape& shape,
                                 int64_t dim, bool, bool) {
    return taken_backward(g[0], indices, shape, dim);
  })),
})

OP(argsort, "(Tensor input, int dim=-1, bool descending=False, *, bool stable=False) -> Tensor", {
  .doc     = R"(Where the elements along dim are, in order. Equal elements keep their order.)",
  .dtypes  = real,
  .forward = [](const Tensor& input, int64_t dim, bool descending, bool) {
    return sort_along(input, dim, descending).indices;
  },
})

OP(msort, "(Tensor input) -> Tensor", {
  .doc     = R"(The elements along the first dim in order.)",
  .dtypes  = real,
  .forward = [](const Tensor& input) {
    return std::get<0>(call<"sort", Pair>(input, int64_t(0), false, true));
  },
})

OP(topk, "(Tensor input, int k, int dim=-1, bool largest=True, "
         "bool sorted=True) -> (Tensor values, Tensor indices)", {
  .doc     = R"(The k largest (or smallest) elements along dim in order, and where they were.)",
  .dtypes  = real,
  .forward = [](const Tensor& input, int64_t k, int64_t dim, bool largest, bool) {
    Sorted first = first_along(input, dim, k, largest);
    return Pair(first.values, first.indices);
  },
  .saves   = saves<"indices", "input.shape">,
  .grads   = grads(d<"input">([](TensorList g, const Tensor& indices, const Shape& shape, int64_t,
                                 int64_t dim,
                                 bool, bool) {
    return taken_backward(g[0], indices, shape, dim);
  })),
})

OP(kthvalue, "(Tensor input, int k, int dim=-1, bool keepdim=False) -> (Tensor values, "
             "Tensor indices)", {
  .doc     = R"(The k-th smallest element along dim, and where it was.)",
  .dtypes  = real,
  .forward = [](const Tensor& input, int64_t k, int64_t dim, bool keepdim) {
    CHECK(k >= 1, "selected number k out of range for dimension ", dim, ": ", k,
          "; k counts from 1");
    auto [values, indices] = call<"topk", Pair>(input, k, dim, false, true);
    Tensor value = input.dim() ? narrow(values, dim, k - 1, 1) : values;
    Tensor index = input.dim() ? narrow(indices, dim, k - 1, 1) : indices;
    return keepdim || input.dim() == 0 ? Pair(value, index) : Pair(squeeze(value, dim),
                                                                   squeeze(index, dim));
  },
})

OP(_unique, "(Tensor input) -> (Tensor values, Tensor inverse, Tensor counts)", {
  .home    = "private",
  .doc     = R"(The different elements, which of them each element is, and how often each occurs.)",
  .dtypes  = real,
  .forward = [](const Tensor& input) {
    GradModeGuard unrecorded(false);
    Tensor flat = reshape(input, Shape{-1});
    Sorted sorted = sort_along(flat, 0, false);
    const int64_t* place = sorted.indices.data<int64_t>();
    Tensor inverse = empty(input.sizes(), DType::int64);
    std::vector<int64_t> starts;  // of the runs of equal elements
    visit_dtype(input.dtype(), [&]<class T>(Tag<T>) {
      if constexpr (!std::is_same_v<T, std::complex<float>> && !std::is_same_v<T,
          std::complex<double>>) {
        const T* value = sorted.values.data<T>();
        for (int64_t i = 0; i < flat.numel(); ++i) {
          bool nan = false;
          if constexpr (std::is_floating_point_v<T>) nan =
              value[i] != value[i];  // differs from itself
          if (i == 0 || nan ||
              ordered_key(value[i]) != ordered_key(value[i - 1])) starts.push_back(i);
          inverse.data<int64_t>()[place[i]] = int64_t(starts.size()) - 1;
        }
      }
    });
    int64_t count = int64_t(starts.size());
    Tensor values = empty(Shape{count}, input.dtype()), counts = empty(Shape{count}, DType::int64);
    starts.push_back(flat.numel());
    for (int64_t i = 0; i < count; ++i) {
      int64_t start = starts[size_t(i)];
      copy_into(alias(values, {}, {}, i), alias(sorted.values, {}, {}, start));
      counts.data<int64_t>()[i] = starts[size_t(i) + 1] - start;
    }
    return std::tuple(values, inverse, counts);
  },
})

}  // namespace rushlight
