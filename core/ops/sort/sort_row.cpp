// Defines sorting one row on the CPU: radix sort, the best few of many, and elements by rank.
#include "core/ops/sort/sort_row.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(SortLoops, sort_loops)

namespace {

constexpr int64_t kBinsFrom = 512;  // shorter rows are searched for ranks faster without bins
constexpr int64_t kBlock = 128;     // keys that are looked at together
constexpr int64_t kPart = 2048;     // keys among which the first few are looked for by groups
constexpr int kBinBits = 11;        // of the keys that ranks are looked for in
constexpr size_t kPerByte = 16;     // elements that are worth counting the values of a byte

// Sorts by one byte after the other of what the keys are above the least, the lowest that differs
// first; few elements of keys that differ in many bytes by comparison.
void sort(RankedRow& row, RankedRow& spare, KeyBounds bounds) {
  uint64_t differing = 0;
  for (const Ranked& r : row) differing |= r.key ^ row[0].key;
  if (differing == 0) return;
  const int first = std::countr_zero(differing) / 8,
            end = (std::bit_width(bounds.greatest - bounds.least) + 7) / 8;
  if (row.size() < kPerByte * size_t(end - first)) return std::sort(row.begin(), row.end());
  spare.resize(row.size());
  for (int shift = 8 * first; shift < 8 * end; shift += 8) {
    std::array<int64_t, 256> count{};
    auto byte = [shift, least = bounds.least](const Ranked& r) {
      return (r.key - least) >> shift & 255;
    };
    for (const Ranked& r : row) ++count[byte(r)];
    std::exclusive_scan(count.begin(), count.end(), count.begin(), int64_t(0));
    for (const Ranked& r : row) spare[size_t(count[byte(r)]++)] = r;
    row.swap(spare);
  }
}

// Writes the elements at ranks that ascend; the ranks count from `before`.
void pick_ranks(RankedRow& row, int64_t before, std::span<const int64_t> ranks, Ranked* out) {
  auto done = row.begin();
  for (size_t i = 0; i < ranks.size(); ++i) {
    auto at = row.begin() + (ranks[i] - before);
    if (at >= done) {
      std::nth_element(done, at, row.end());
      done = at + 1;
    }
    out[i] = *at;
  }
}

}  // namespace

const SortLoops& sort_loops() { return active(sort_loops_sets); }

RowSorter::RowSorter(DType dtype, int64_t length, int64_t stride, bool descending)
    : dtype_(dtype), length_(length), stride_(stride), descending_(descending) {}

template <class Key>
KeyBounds RowSorter::read_keys(const void* row, int64_t begin, int64_t n, Key* to) const {
  const char* from = static_cast<const char*>(row) + begin * stride_ * int64_t(dtype_size(dtype_));
  return sort_loops().keys[int(dtype_)](from, stride_, n, descending_, to);
}

KeyBounds RowSorter::take_all(const void* row, int64_t length) {
  auto take = [&]<class Key>(Tag<Key>) {
    Key keys[kBlock];
    KeyBounds all{UINT64_MAX, 0};
    taken_.resize(size_t(length));
    for (int64_t i = 0; i < length; i += kBlock) {
      int64_t n = std::min(kBlock, length - i);
      KeyBounds bounds = read_keys(row, i, n, keys);
      all = {std::min(all.least, bounds.least), std::max(all.greatest, bounds.greatest)};
      for (int64_t k = 0; k < n; ++k) taken_[size_t(i + k)] = {keys[k], i + k};
    }
    return all;
  };
  return dtype_size(dtype_) > 4 ? take(Tag<uint64_t>{}) : take(Tag<uint32_t>{});
}

// Collects those of the first n elements that are not behind the best of `keep` groups. Where
// many groups have the same best, of its elements only as many as are wanted.
template <class Key>
void RowSorter::take_groups(const void* row, int64_t n, int64_t keep) {
  Key keys[kPart], best[kPart], limit = Key(-1);
  read_keys(row, 0, n, keys);
  int64_t groups = std::min(n, std::max(int64_t(std::sqrt(n * keep)) & -16, int64_t(16)));
  if constexpr (sizeof(Key) > 4) sort_loops().least64(keys, n, groups, best);
  else sort_loops().least32(keys, n, groups, best);
  if (groups >= keep) {
    keys_.assign(best, best + groups);
    std::nth_element(keys_.begin(), keys_.begin() + keep - 1, keys_.end());
    limit = Key(keys_[size_t(keep - 1)]);
  }
  const bool tied = limit == Key(-1) || std::count(best, best + groups, limit) > keep;
  const Key end = tied ? limit : limit + 1;
  taken_.clear();
  for (int64_t g = 0; g < groups; ++g) {
    if (best[g] >= end) continue;
    for (int64_t k = g; k < n; k += groups)
      if (keys[k] < end) taken_.push_back({keys[k], k});
  }
  if (tied)
    for (int64_t k = 0; k < n && int64_t(taken_.size()) < keep; ++k)
      if (keys[k] == limit) taken_.push_back({limit, k});
}

// Collects what is better than the worst of the best so far, of which there are about `keep`.
template <class Key>
void RowSorter::take_few(const void* row, int64_t keep) {
  Key keys[kBlock];
  uint8_t better[kBlock];
  size_t capacity = size_t(2 * keep) + 16;
  auto drop_worse = [&] {
    std::nth_element(taken_.begin(), taken_.begin() + keep - 1, taken_.end());
    taken_.resize(size_t(keep));
    return taken_.back().key;
  };
  int64_t start = std::min(length_, std::max(kPart, 2 * keep));
  if (start <= kPart) take_groups<Key>(row, start, keep);
  else take_all(row, start);
  uint64_t limit = drop_worse();
  for (int64_t i = start; i < length_; i += kBlock) {
    int64_t n = std::min(kBlock, length_ - i), count = 0;
    if (read_keys(row, i, n, keys).least >= limit) continue;
    for (int64_t k = 0; k < n; ++k) {
      better[count] = uint8_t(k);
      count += keys[k] < limit;
    }
    for (int64_t k = 0; k < count; ++k) taken_.push_back({keys[better[k]], i + better[k]});
    if (taken_.size() >= capacity) limit = drop_worse();
  }
  std::sort(taken_.begin(), taken_.end());
}

// Finds one rank after the other by the bits of its key, which is faster than bins in short rows.
void RowSorter::bisect(const void* row, std::span<const int64_t> ranks, Ranked* out) {
  keys_.resize(size_t(length_));
  uint32_t* keys = reinterpret_cast<uint32_t*>(keys_.data());
  KeyBounds bounds = read_keys(row, 0, length_, keys);
  for (size_t r = 0; r < ranks.size(); ++r) {
    auto [key, before] = sort_loops().at_rank(keys, length_, bounds, ranks[r]);
    int64_t place = -1;
    for (int64_t equals = ranks[r] - before; equals >= 0; equals -= keys[place] == key) ++place;
    out[r] = {key, place};
  }
}

// Collects what is not behind the element of rank keep - 1.
template <class Key>
void RowSorter::take_many(const void* row, int64_t keep) {
  if (sizeof(Key) > 4 && length_ < kBinsFrom) {
    take_all(row, length_);
    std::nth_element(taken_.begin(), taken_.begin() + keep - 1, taken_.end());
    taken_.resize(size_t(keep));
    return std::sort(taken_.begin(), taken_.end());
  }
  Ranked last;
  const int64_t rank[] = {keep - 1};
  if (length_ < kBinsFrom) bisect(row, rank, &last);
  else at_ranks_of<Key>(row, rank, &last);
  const Key* keys = reinterpret_cast<const Key*>(keys_.data());
  KeyBounds bounds{last.key, last.key};
  taken_.clear();
  for (int64_t i = 0; i < length_; ++i) {
    Ranked element{keys[i], i};
    if (last < element) continue;
    taken_.push_back(element);
    bounds.least = std::min(bounds.least, element.key);
  }
  sort(taken_, spare_, bounds);
}

std::span<const Ranked> RowSorter::first(const void* row, int64_t keep) {
  if (keep == 0) return {};
  bool wide = dtype_size(dtype_) > 4;
  if (keep < length_ / 16) {
    if (wide) take_few<uint64_t>(row, keep);
    else take_few<uint32_t>(row, keep);
  } else if (keep < (length_ < kBinsFrom ? length_ / 4 : length_)) {
    if (wide) take_many<uint64_t>(row, keep);
    else take_many<uint32_t>(row, keep);
  } else {
    KeyBounds bounds = take_all(row, length_);
    if (length_ > 0) sort(taken_, spare_, bounds);
  }
  return std::span(taken_).first(size_t(keep));
}

// Counts the elements by the upper bits of their keys; only those of the bins in which ranks fall
// are looked at again.
template <class Key>
void RowSorter::at_ranks_of(const void* row, std::span<const int64_t> ranks, Ranked* out) {
  keys_.resize(size_t(length_));
  Key* keys = reinterpret_cast<Key*>(keys_.data());
  KeyBounds bounds = read_keys(row, 0, length_, keys);
  Key least = Key(bounds.least);
  int shift = std::max(0, int(std::bit_width(bounds.greatest - bounds.least)) - kBinBits);
  std::vector<int64_t> counts(size_t(1) << kBinBits);
  for (int64_t i = 0; i < length_; ++i) ++counts[size_t(Key(keys[i] - least) >> shift)];
  int64_t before = 0;
  size_t bin = 0;
  for (size_t r = 0; r < ranks.size();) {
    while (before + counts[bin] <= ranks[r]) before += counts[bin++];
    size_t end = r;
    while (end < ranks.size() && ranks[end] < before + counts[bin]) ++end;
    taken_.clear();
    for (int64_t i = 0; i < length_; ++i)
      if (size_t(Key(keys[i] - least) >> shift) == bin) taken_.push_back({keys[i], i});
    if (shift > 0) pick_ranks(taken_, before, ranks.subspan(r, end - r), out + r);
    else  // equals, which are in order
      for (size_t i = r; i < end; ++i) out[i] = taken_[size_t(ranks[i] - before)];
    r = end;
  }
}

Ranked RowSorter::mode(const void* row) {
  uint64_t nan = dtype_size(dtype_) > 4 ? UINT64_MAX : UINT32_MAX;  // no NaN equals another
  bool has_nan = is_floating(dtype_);
  std::span<const Ranked> sorted = first(row, length_);
  int64_t mode = end_of_longest_run(int64_t(sorted.size()), [&](int64_t i) {
    uint64_t key = sorted[size_t(i)].key;
    return key == sorted[size_t(i - 1)].key && !(has_nan && key == nan);
  });
  return sorted[size_t(mode)];
}

void RowSorter::at_ranks(const void* row, std::span<const int64_t> ranks, Ranked* out) {
  // Each bin costs another look at the keys; from some number on sorting all is less work.
  constexpr size_t kManyRanks = 32, kFewRanks = 4;
  if (ranks.size() > kManyRanks) {
    std::span<const Ranked> sorted = first(row, length_);
    for (size_t i = 0; i < ranks.size(); ++i) out[i] = sorted[size_t(ranks[i])];
  } else if (length_ < kBinsFrom && ranks.size() <= kFewRanks && dtype_size(dtype_) <= 4) {
    bisect(row, ranks, out);
  } else if (length_ < kBinsFrom) {
    take_all(row, length_);
    pick_ranks(taken_, 0, ranks, out);
  } else if (dtype_size(dtype_) > 4) {
    at_ranks_of<uint64_t>(row, ranks, out);
  } else {
    at_ranks_of<uint32_t>(row, ranks, out);
  }
}

}  // namespace rushlight
