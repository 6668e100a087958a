// Defines sorting one row on the CPU: radix sort, the best few of many, and elements by rank.
#include "core/ops/sort/sort_row.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/ceil_div.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(SortLoops, sort_loops)

namespace {

constexpr int64_t kBinsFrom = 512;  // shorter rows are searched for ranks faster without bins
constexpr int64_t kBlock = 128;     // keys that are looked at together
constexpr int64_t kPart = 2048;     // keys among which the first few are looked for by groups
constexpr int kBinBits = 11;        // of the keys that ranks are looked for in
constexpr int64_t kInserted = 32;   // places that are sorted by insertion
constexpr int kDigitBits = 10;      // that places are sorted by at a time, at most
constexpr int kBitsBeyond = 8;      // of the keys that are sorted by, beyond those that count them

// Sorts places in a row by the keys there; those of equals keep their order.
template <class Key>
class PlaceSort {
 public:
  // The spare words are as many as the places.
  PlaceSort(const Key* keys, int64_t length, uint64_t* spare)
      : keys_(keys), spare_(spare), place_bits_(std::bit_width(uint64_t(length))) {}

  void sort(uint64_t* places, int64_t n, KeyBounds bounds) const {
    sort_words(places, n, bounds);
    for (int64_t i = 0; i < n; ++i) places[i] = place(places[i]);
  }

 private:
  // Words have a place in their lower bits, and above it what fits of its key.
  uint64_t place(uint64_t word) const { return word & ((uint64_t(1) << place_bits_) - 1); }
  Key key(uint64_t word) const { return keys_[place(word)]; }

  // Sorts by about as many bits as keys without a pattern need to differ, the lowest digit of them
  // first, then those alone where these bits are equal.
  void sort_words(uint64_t* words, int64_t n, KeyBounds bounds) const {
    if (bounds.least == bounds.greatest) return;
    const int bits = std::bit_width(bounds.greatest - bounds.least),
              dropped = std::max(0, bits + place_bits_ - 64), end = place_bits_ + bits - dropped,
              begin = std::max(place_bits_, end - int(std::bit_width(uint64_t(n))) - kBitsBeyond);
    for (int64_t i = 0; i < n; ++i)
      words[i] = (key(words[i]) - bounds.least) >> dropped << place_bits_ | place(words[i]);
    uint64_t *from = words, *to = spare_;
    for (int shift = begin, digits = ceil_div(end - begin, kDigitBits); digits > 0; --digits) {
      const int width = ceil_div(end - shift, digits);
      const size_t bins = size_t(1) << width;
      auto digit = [shift, bins](uint64_t word) { return word >> shift & (bins - 1); };
      shift += width;
      // Both halves at a time, so that fewer elements wait for the count of the one before.
      auto for_all = [from, n](auto f) {
        for (int64_t i = 0; i < n / 2; ++i) {
          f(size_t(0), from[i]);
          f(size_t(1), from[n / 2 + i]);
        }
        if (n % 2) f(size_t(1), from[n - 1]);
      };
      std::array<std::array<int64_t, 2>, size_t(1) << kDigitBits> next;
      std::fill_n(next.begin(), bins, std::array<int64_t, 2>{});
      for_all([&](size_t half, uint64_t word) { ++next[digit(word)][half]; });
      if (auto [lower, upper] = next[digit(from[0])]; lower + upper == n) continue;
      int64_t before = 0;
      for (auto& bin : std::span(next).first(bins))
        for (int64_t& count : bin) before += std::exchange(count, before);
      for_all([&](size_t half, uint64_t word) { to[next[digit(word)][half]++] = word; });
      std::swap(from, to);
    }
    if (from != words) std::copy_n(from, n, words);
    if (begin == place_bits_ && dropped == 0) return;
    for (int64_t first = 0, i = 0; i < n; first = i) {
      while (++i < n && (words[i] ^ words[first]) >> begin == 0) {
      }
      sort_equal_words(words + first, i - first);
    }
  }

  void sort_equal_words(uint64_t* words, int64_t n) const {
    if (n > kInserted) {
      KeyBounds bounds{UINT64_MAX, 0};
      for (int64_t i = 0; i < n; ++i)
        bounds = {std::min<uint64_t>(bounds.least, key(words[i])),
                  std::max<uint64_t>(bounds.greatest, key(words[i]))};
      return sort_words(words, n, bounds);
    }
    for (int64_t i = 1; i < n; ++i) {
      const uint64_t word = words[i];
      int64_t at = i;
      for (; at > 0 && key(word) < key(words[at - 1]); --at) words[at] = words[at - 1];
      words[at] = word;
    }
  }

  const Key* keys_;
  uint64_t* spare_;
  int place_bits_;
};

// Writes the places of the elements at ranks that ascend; the ranks count from `before`.
void pick_ranks(RankedRow& row, int64_t before, std::span<const int64_t> ranks, int64_t* out) {
  auto done = row.begin();
  for (size_t i = 0; i < ranks.size(); ++i) {
    auto at = row.begin() + (ranks[i] - before);
    if (at >= done) {
      std::nth_element(done, at, row.end());
      done = at + 1;
    }
    out[i] = at->place;
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

template <class Key>
KeyBounds RowSorter::read_first(const void* row, int64_t n) {
  keys_.resize(size_t(n));
  return read_keys(row, 0, n, keys<Key>());
}

template <class Key>
void RowSorter::take_first(int64_t n) {
  taken_.resize(size_t(n));
  for (int64_t i = 0; i < n; ++i) taken_[size_t(i)] = {keys<Key>()[i], i};
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
  if (start <= kPart) {
    take_groups<Key>(row, start, keep);
  } else {
    read_first<Key>(row, start);
    take_first<Key>(start);
  }
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
  places_.resize(taken_.size());
  for (size_t i = 0; i < taken_.size(); ++i) places_[i] = uint64_t(taken_[i].place);
}

// Finds one rank after the other by the bits of its key, which is faster than bins in short rows.
void RowSorter::bisect(KeyBounds bounds, std::span<const int64_t> ranks, int64_t* out) {
  const uint32_t* all = keys<uint32_t>();
  for (size_t r = 0; r < ranks.size(); ++r) {
    auto [key, before] = sort_loops().at_rank(all, length_, bounds, ranks[r]);
    int64_t place = -1;
    for (int64_t equals = ranks[r] - before; equals >= 0; equals -= all[place] == key) ++place;
    out[r] = place;
  }
}

template <class Key>
void RowSorter::sort_places(KeyBounds bounds) {
  spare_.resize(places_.size());
  PlaceSort<Key>(keys<Key>(), length_, spare_.data())
      .sort(places_.data(), int64_t(places_.size()), bounds);
}

template <class Key>
void RowSorter::sort_all(KeyBounds bounds) {
  places_.resize(size_t(length_));
  std::iota(places_.begin(), places_.end(), 0);
  if (std::is_sorted(keys<Key>(), keys<Key>() + length_)) return;
  sort_places<Key>(bounds);
}

// Collects what is not behind the element of rank keep - 1.
template <class Key>
void RowSorter::take_many(KeyBounds bounds, int64_t keep) {
  const int64_t rank[] = {keep - 1};
  int64_t place;
  find_ranks<Key>(bounds, rank, &place);
  const Key* all = keys<Key>();
  const Ranked last{all[place], place};
  places_.resize(size_t(length_));
  size_t taken = 0;
  for (int64_t i = 0; i < length_; ++i) {
    places_[taken] = uint64_t(i);
    taken += !(last < Ranked{all[i], i});
  }
  places_.resize(taken);
  sort_places<Key>({bounds.least, last.key});
}

std::span<const uint64_t> RowSorter::first(const void* row, int64_t keep) {
  if (keep == 0) return {};
  with_keys([&]<class Key>(Tag<Key>) {
    if (keep < length_ / 16) return take_few<Key>(row, keep);
    KeyBounds bounds = read_first<Key>(row, length_);
    if (keep < length_ / 2) take_many<Key>(bounds, keep);
    else sort_all<Key>(bounds);
  });
  return std::span(places_).first(size_t(keep));
}

// Counts the elements by the upper bits of their keys; only those of the bins in which ranks fall
// are looked at again.
template <class Key>
void RowSorter::find_in_bins(KeyBounds bounds, std::span<const int64_t> ranks, int64_t* out) {
  const Key* all = keys<Key>();
  Key least = Key(bounds.least);
  int shift = std::max(0, int(std::bit_width(bounds.greatest - bounds.least)) - kBinBits);
  std::vector<int64_t> counts(size_t(1) << kBinBits);
  auto bin_of = [=](int64_t i) { return size_t(Key(all[i] - least) >> shift); };
  for (int64_t i = 0; i < length_; ++i) ++counts[bin_of(i)];
  int64_t before = 0;
  size_t bin = 0;
  for (size_t r = 0; r < ranks.size();) {
    while (before + counts[bin] <= ranks[r]) before += counts[bin++];
    size_t end = r;
    while (end < ranks.size() && ranks[end] < before + counts[bin]) ++end;
    taken_.resize(size_t(counts[bin]) + 1);  // the last is overwritten
    size_t taken = 0;
    for (int64_t i = 0; i < length_; ++i) {
      taken_[taken] = {all[i], i};
      taken += bin_of(i) == bin;
    }
    taken_.pop_back();
    if (shift > 0) pick_ranks(taken_, before, ranks.subspan(r, end - r), out + r);
    else  // equals, which are in order
      for (size_t i = r; i < end; ++i) out[i] = taken_[size_t(ranks[i] - before)].place;
    r = end;
  }
}

template <class Key>
void RowSorter::find_ranks(KeyBounds bounds, std::span<const int64_t> ranks, int64_t* out) {
  // Each bin costs another look at the keys; from some number on sorting all is less work.
  constexpr size_t kManyRanks = 32, kFewRanks = 4;
  if (ranks.size() > kManyRanks) {
    sort_all<Key>(bounds);
    for (size_t i = 0; i < ranks.size(); ++i) out[i] = int64_t(places_[size_t(ranks[i])]);
  } else if (length_ >= kBinsFrom) {
    find_in_bins<Key>(bounds, ranks, out);
  } else if (ranks.size() <= kFewRanks && sizeof(Key) == 4) {
    bisect(bounds, ranks, out);
  } else {
    take_first<Key>(length_);
    pick_ranks(taken_, 0, ranks, out);
  }
}

void RowSorter::at_ranks(const void* row, std::span<const int64_t> ranks, int64_t* out) {
  with_keys(
      [&]<class Key>(Tag<Key>) { find_ranks<Key>(read_first<Key>(row, length_), ranks, out); });
}

int64_t RowSorter::median(const void* row, bool ignore_nan) {
  return with_keys([&]<class Key>(Tag<Key>) {
    KeyBounds bounds = read_first<Key>(row, length_);
    int64_t nans = 0, place;
    if (is_floating(dtype_) && bounds.greatest == Key(-1))
      nans = std::count(keys<Key>(), keys<Key>() + length_, Key(-1));
    const int64_t rank[] = {median_rank(length_, length_ - nans, ignore_nan)};
    find_ranks<Key>(bounds, rank, &place);
    return place;
  });
}

int64_t RowSorter::mode(const void* row) {
  return with_keys([&]<class Key>(Tag<Key>) {
    sort_all<Key>(read_first<Key>(row, length_));
    const Key* all = keys<Key>();
    const bool has_nan = is_floating(dtype_);  // of which none equals another
    int64_t mode = end_of_longest_run(length_, [&](int64_t i) {
      Key key = all[places_[size_t(i)]];
      return key == all[places_[size_t(i - 1)]] && !(has_nan && key == Key(-1));
    });
    return int64_t(places_[size_t(mode)]);
  });
}

}  // namespace rushlight
