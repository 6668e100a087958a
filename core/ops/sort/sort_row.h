// Owns sorting one row on the CPU, whole or in part, through keys: unsigned integers in the order
// of the elements. Equal elements keep their order, so that every result is determined.
#pragma once

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
using RankedRow = std::vector<Ranked, ReusedMemory<Ranked>>;

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

class RowSorter {
 public:
  RowSorter(DType dtype, int64_t length, int64_t stride, bool descending);

  // The first `keep` elements of the row that starts at `row`, in order.
  std::span<const Ranked> first(const void* row, int64_t keep);
  // The elements that a sorted row has at these ranks, which ascend; written to `out`.
  void at_ranks(const void* row, std::span<const int64_t> ranks, Ranked* out);
  // The last of the most frequent elements; of several values the first in order counts.
  Ranked mode(const void* row);

 private:
  // The first elements, and the bounds of their keys.
  KeyBounds take_all(const void* row, int64_t length);
  template <class Key>
  KeyBounds read_keys(const void* row, int64_t begin, int64_t n, Key* to) const;
  template <class Key>
  void take_groups(const void* row, int64_t n, int64_t keep);
  template <class Key>
  void take_few(const void* row, int64_t keep);
  template <class Key>
  void take_many(const void* row, int64_t keep);
  void bisect(const void* row, std::span<const int64_t> ranks, Ranked* out);
  template <class Key>
  void at_ranks_of(const void* row, std::span<const int64_t> ranks, Ranked* out);

  DType dtype_;
  int64_t length_, stride_;
  bool descending_;
  RankedRow taken_, spare_;
  std::vector<uint64_t> keys_;
};

}  // namespace rushlight
