// Owns sorting one row on the CPU, whole or in part, through keys: unsigned integers in the order
// of the elements. Equal elements keep their order, so that every result is determined.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/device/allocator.h"
#include "core/ops/sort/sort_loops.h"
#include "core/tensor/tensor.h"

namespace rushlight {

// An element of a row: its key, and its place, which decides between equals.
struct Ranked {
  uint64_t key;
  int64_t place;
  friend bool operator<(const Ranked& a, const Ranked& b) {
    return a.key < b.key || (a.key == b.key && a.place < b.place);
  }
};

// Gives vectors memory that was used before, and leaves new elements uninitialized.
template <class T>
struct ReusedMemory {
  using value_type = T;
  T* allocate(size_t n) { return static_cast<T*>(cpu_allocate(n * sizeof(T))); }
  void deallocate(T* data, size_t n) { cpu_free(data, n * sizeof(T)); }
  template <class U>
  void construct(U* element) {
    ::new (static_cast<void*>(element)) U;
  }
  friend bool operator==(ReusedMemory, ReusedMemory) { return true; }
};
template <class T>
using ReusedVector = std::vector<T, ReusedMemory<T>>;
using RankedRow = ReusedVector<Ranked>;

// Where the longest run of equals ends among n > 0 elements in order, the first of several such;
// goes_on(i) says whether element i equals the one before.
template <class F>
int64_t end_of_longest_run(int64_t n, F goes_on) {
  int64_t end = 0;
  for (int64_t i = 1, run = 0, longest = 0; i < n; ++i) {
    run = goes_on(i) ? run + 1 : 0;
    if (run <= longest) continue;
    longest = run;
    end = i;
  }
  return end;
}

// The rank of the median of a sorted row: of its numbers where NaN is ignored, else of all, but NaN
// itself where there is one.
inline int64_t median_rank(int64_t length, int64_t numbers, bool ignore_nan) {
  if (ignore_nan) return std::max<int64_t>(numbers - 1, 0) / 2;
  return numbers == length ? (length - 1) / 2 : numbers;
}

class RowSorter {
 public:
  RowSorter(DType dtype, int64_t length, int64_t stride, bool descending);

  // The places of the first `keep` elements of the row that starts at `row`, in order.
  std::span<const uint64_t> first(const void* row, int64_t keep);
  // Writes the places of the elements that a sorted row has at these ranks, which ascend.
  void at_ranks(const void* row, std::span<const int64_t> ranks, int64_t* out);
  // The place of the median: of two elements in the middle the lower, of a row with NaN the first
  // NaN, unless they are ignored.
  int64_t median(const void* row, bool ignore_nan);
  // The place of the last of the most frequent elements; of several values the first in order
  // counts.
  int64_t mode(const void* row);

 private:
  // Calls f with a Tag of what this row's keys are.
  template <class F>
  decltype(auto) with_keys(F f) const {
    return dtype_size(dtype_) > 4 ? f(Tag<uint64_t>{}) : f(Tag<uint32_t>{});
  }
  template <class Key>
  Key* keys() {
    return reinterpret_cast<Key*>(keys_.data());
  }
  template <class Key>
  KeyBounds read_keys(const void* row, int64_t begin, int64_t n, Key* to) const;
  // The keys become those of the first n elements. What follows reads them there, unless it has
  // the row.
  template <class Key>
  KeyBounds read_first(const void* row, int64_t n);
  template <class Key>
  void take_first(int64_t n);
  template <class Key>
  void take_groups(const void* row, int64_t n, int64_t keep);
  // These write places in order.
  template <class Key>
  void take_few(const void* row, int64_t keep);
  template <class Key>
  void take_many(KeyBounds bounds, int64_t keep);
  template <class Key>
  void sort_all(KeyBounds bounds);
  template <class Key>
  void sort_places(KeyBounds bounds);
  // And these the places of elements at ranks.
  template <class Key>
  void find_ranks(KeyBounds bounds, std::span<const int64_t> ranks, int64_t* out);
  template <class Key>
  void find_in_bins(KeyBounds bounds, std::span<const int64_t> ranks, int64_t* out);
  void bisect(KeyBounds bounds, std::span<const int64_t> ranks, int64_t* out);

  DType dtype_;
  int64_t length_, stride_;
  bool descending_;
  RankedRow taken_;
  ReusedVector<uint64_t> places_, spare_, keys_;
};

}  // namespace rushlight
