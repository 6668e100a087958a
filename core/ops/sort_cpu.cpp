// Defines sorting and searching on the CPU.
#include <algorithm>
#include <numeric>

#include "core/device/threads.h"
#include "core/ops/sort.h"
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

// Puts the first `keep` of a row in place.
void arrange(std::vector<Ranked>& row, std::vector<Ranked>& spare, int64_t keep) {
  auto length = int64_t(row.size());
  if (keep == length) {
    if (row.size() >= kRadixFrom) radix_sort(row, spare);
    else std::sort(row.begin(), row.end());
    return;
  }
  auto kth = row.begin() + keep;
  if (keep < length / 8) {
    // A heap of the first so far: few of the rest are better than its worst.
    std::make_heap(row.begin(), kth);
    for (auto r = kth; keep > 0 && r != row.end(); ++r) {
      if (r->key >= row.front().key) continue;
      std::pop_heap(row.begin(), kth);
      kth[-1] = *r;
      std::push_heap(row.begin(), kth);
    }
  } else {
    std::nth_element(row.begin(), kth, row.end());
  }
  std::sort(row.begin(), kth);
}

template <class T>
T to_comparable(T value) {
  return value;
}
float to_comparable(Half value) { return to_float(value); }
float to_comparable(BFloat16 value) { return to_float(value); }

}  // namespace

Sorted sort_rows_cpu(const Tensor& input, int64_t dim, int64_t keep, bool descending) {
  size_t d = size_t(dim);
  int64_t length = input.dim() ? input.sizes()[d] : 1,
          stride = input.dim() ? input.strides()[d] : 1;
  Shape sizes = input.sizes(), outer = input.sizes(), steps = input.strides();
  if (input.dim()) {
    sizes[d] = keep;
    outer.erase(d);
    steps.erase(d);
  }
  Tensor values = empty(sizes, input.dtype(), input.device()), indices = empty(sizes, DType::int64);
  Shape to_steps = values.strides();
  int64_t to_stride = input.dim() ? to_steps[d] : 1;
  if (input.dim()) to_steps.erase(d);
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
          arrange(row, spare, keep);
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

void search_rows_cpu(const Tensor& places, const Tensor& sorted, const Tensor& values, bool right) {
  bool one_row = sorted.dim() == 1;
  int64_t length = sorted.size(-1), width = one_row ? values.numel() : values.size(-1);
  int64_t* to = places.data<int64_t>();
  visit_dtype(values.dtype(), [&]<class T>(Tag<T>) {
    if constexpr (!std::is_same_v<T, std::complex<float>> &&
                  !std::is_same_v<T, std::complex<double>>) {
      parallel_for(0, values.numel(), 1024, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* row = sorted.data<T>() + (one_row ? 0 : i / width * length);
          T value = values.data<T>()[i];
          auto from = [](T x, T y) { return !(to_comparable(x) >= to_comparable(y)); };
          auto above = [](T y, T x) { return to_comparable(x) > to_comparable(y); };
          to[i] = right ? std::upper_bound(row, row + length, value, above) - row
                        : std::lower_bound(row, row + length, value, from) - row;
        }
      });
    }
  });
}

}  // namespace rushlight
