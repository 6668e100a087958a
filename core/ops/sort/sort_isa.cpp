// Owns the loops of sorting, compiled once per instruction set.
#include "core/base/half.h"
#include "core/ops/sort/sort_loops.h"
#include "core/tensor/lanes.h"

#include "core/tensor/convert.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

template <bool wide>
struct KeyOf {
  using type = uint32_t;
};
template <>
struct KeyOf<true> {
  using type = uint64_t;
};

template <class Key, class T>
[[gnu::always_inline]] inline Key key_of(T value) {
  if constexpr (detail::kSame<T, Half> || detail::kSame<T, BFloat16>) {
    return key_of<Key>(to_float(value));
  } else if constexpr (detail::kSame<T, float> || detail::kSame<T, double>) {
    constexpr Key sign = Key(1) << (8 * sizeof(Key) - 1);
    Key bits = __builtin_bit_cast(Key, value + T(0));  // -0 becomes 0
    Key key = bits & sign ? Key(~bits) : Key(bits | sign);
    return value == value ? key : Key(-1);
  } else if constexpr (T(-1) < T(0)) {
    // The distance to the least number, so that keys of narrow numbers differ in few bytes.
    return Key(value) + (Key(1) << (8 * sizeof(T) - 1));
  } else {
    return Key(value);
  }
}

// at(i) is the place of element i. All that the loop reads is local, or it would not be vectorized
// as a loop over neighbors.
template <class T, class At>
[[gnu::always_inline]] inline KeyBounds keys_at(const void* from, At at, int64_t n, bool descending,
                                                void* to) {
  using Key = typename KeyOf<(sizeof(T) > 4)>::type;
  Key* out = static_cast<Key*>(to);
  Key flip = descending ? Key(-1) : Key(0), least = Key(-1), greatest = 0;
#pragma omp simd reduction(min : least) reduction(max : greatest)
  for (int64_t i = 0; i < n; ++i) {
    Key key = key_of<Key>(element_at<T>(from, at(i))) ^ flip;
    out[i] = key;
    least = key < least ? key : least;
    greatest = key > greatest ? key : greatest;
  }
  return {least, greatest};
}

template <class T>
KeyBounds keys(const void* from, int64_t stride, int64_t n, bool descending, void* to) {
  auto strided = [stride](int64_t i) __attribute__((always_inline)) { return i * stride; };
  auto neighbors = [](int64_t i) __attribute__((always_inline)) { return i; };
  return stride == 1 ? keys_at<T>(from, neighbors, n, descending, to)
                     : keys_at<T>(from, strided, n, descending, to);
}

template <class Key>
void least_of_groups(const Key* keys, int64_t n, int64_t groups, Key* to) {
  __builtin_memcpy(to, keys, size_t(groups) * sizeof(Key));
  for (int64_t i = groups; i < n; i += groups) {
    int64_t many = n - i < groups ? n - i : groups;
#pragma omp simd
    for (int64_t g = 0; g < many; ++g) to[g] = keys[i + g] < to[g] ? keys[i + g] : to[g];
  }
}

KeyOfRank at_rank(const uint32_t* keys, int64_t n, KeyBounds bounds, int64_t rank) {
  const uint32_t base = uint32_t(bounds.least);
  uint64_t width = bounds.greatest - bounds.least;
  int bits = width ? 64 - __builtin_clzll(width) : 0;
  // Above the least key, the greatest number that has no more than `rank` keys below it, bit by
  // bit, until only one of the keys begins with the bits found: it is the least from there on.
  uint32_t found = 0;
  int64_t before = 0, end = n;  // how many are below `found`, and below the next such beginning
  while (bits > 0 && end - before > 1) {
    const uint32_t larger = found | uint32_t(1) << --bits;
    int64_t below = sum<uint32_t>(n, [=](int64_t i) { return uint32_t(keys[i] - base < larger); });
    if (below > rank) {
      end = below;
    } else {
      found = larger;
      before = below;
    }
  }
  if (bits == 0) return {base + found, before};
  uint32_t least = uint32_t(-1);
#pragma omp simd reduction(min : least)
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t key = keys[i] - base >= found ? keys[i] : uint32_t(-1);
    least = key < least ? key : least;
  }
  return {least, before};
}

// Rows that are sorted side by side: of each element 32 bits of its key and, below them, its place.
using Columns = int64_t[kShortRow][kRowsTogether];

[[gnu::always_inline]] inline int64_t column_element(uint64_t key, int64_t place) {
  return int64_t((key << 32 | uint64_t(place)) ^ uint64_t(1) << 63);
}

[[gnu::always_inline]] inline void put_in_order(Columns& columns, int64_t i, int64_t j) {
#pragma omp simd
  for (int64_t r = 0; r < kRowsTogether; ++r) {
    const int64_t a = columns[i][r], b = columns[j][r];
    columns[i][r] = a < b ? a : b;
    columns[j][r] = a < b ? b : a;
  }
}

// Batcher's merge exchange: Knuth, The Art of Computer Programming 3, Algorithm 5.2.2M.
void merge_exchange(Columns& columns, int64_t length, int bits) {
  const int64_t top = (int64_t(1) << bits) / 2;
  for (int64_t p = top; p > 0; p /= 2)
    for (int64_t q = top, r = 0, d = p;; d = q - p, q /= 2, r = p) {
      for (int64_t begin = r; begin < length - d; begin += 2 * p) {
        const int64_t end = begin + p < length - d ? begin + p : length - d;
        for (int64_t i = begin; i < end; ++i) put_in_order(columns, i, i + d);
      }
      if (q == p) break;
    }
}

void sort_columns(Columns& columns, int64_t length, int64_t keep) {
  const int bits = length > 1 ? 64 - __builtin_clzll(uint64_t(length - 1)) : 0;
  if (4 * keep >= bits * (bits - 1)) return merge_exchange(columns, length, bits);
  for (int64_t i = 1; i < length; ++i)  // a few are found with fewer comparisons by insertion
    for (int64_t j = 0; j < keep && j < i; ++j) put_in_order(columns, j, i);
}

// Writes the upper 32 of the bits in which the wide keys of each row differ.
void take_upper_bits(const uint64_t keys[][kRowsTogether], int64_t length, Columns& columns) {
  uint64_t least[kRowsTogether], greatest[kRowsTogether], shift[kRowsTogether];
  __builtin_memcpy(least, keys[0], sizeof(least));
  __builtin_memcpy(greatest, keys[0], sizeof(greatest));
  for (int64_t i = 1; i < length; ++i)
#pragma omp simd
    for (int64_t r = 0; r < kRowsTogether; ++r) {
      const uint64_t key = keys[i][r];
      least[r] = key < least[r] ? key : least[r];
      greatest[r] = key > greatest[r] ? key : greatest[r];
    }
  for (int64_t r = 0; r < kRowsTogether; ++r) {
    const uint64_t upper = (greatest[r] - least[r]) >> 32;
    shift[r] = upper ? 64 - uint64_t(__builtin_clzll(upper)) : 0;
  }
  for (int64_t i = 0; i < length; ++i)
#pragma omp simd
    for (int64_t r = 0; r < kRowsTogether; ++r)
      columns[i][r] = column_element((keys[i][r] - least[r]) >> shift[r], i);
}

// The rows in which of two neighbors in order the upper bits are equal, but not the keys: one bit
// for each.
uint32_t undecided(const uint64_t keys[][kRowsTogether], const Columns& columns, int64_t length) {
  uint32_t rows = 0;
  for (int64_t i = 1; i < length; ++i) {
    int64_t equal = 0;
#pragma omp simd reduction(| : equal)
    for (int64_t r = 0; r < kRowsTogether; ++r)
      equal |= int64_t(uint64_t(columns[i][r] ^ columns[i - 1][r]) >> 32 == 0);
    if (equal == 0) continue;
    for (int64_t r = 0; r < kRowsTogether; ++r) {
      const int64_t a = columns[i - 1][r], b = columns[i][r];
      if (uint64_t(a ^ b) >> 32 == 0 && keys[uint16_t(a)][r] != keys[uint16_t(b)][r])
        rows |= uint32_t(1) << r;
    }
  }
  return rows;
}

template <class T>
uint32_t short_rows(const void* const* rows, int64_t stride, int64_t length, int64_t keep,
                    bool descending, uint16_t* order) {
  constexpr bool wide = sizeof(T) > 4;
  using Key = typename KeyOf<wide>::type;
  Columns columns;
  uint64_t wide_keys[wide ? kShortRow : 1][kRowsTogether];
  const Key flip = descending ? Key(-1) : Key(0);
  for (int64_t i = 0; i < length; ++i) {
    T elements[kRowsTogether];
    for (int64_t r = 0; r < kRowsTogether; ++r) elements[r] = element_at<T>(rows[r], i * stride);
#pragma omp simd
    for (int64_t r = 0; r < kRowsTogether; ++r) {
      const Key key = key_of<Key>(elements[r]) ^ flip;
      if constexpr (wide) wide_keys[i][r] = key;
      else columns[i][r] = column_element(key, i);
    }
  }
  uint32_t unfinished = 0;
  if constexpr (wide) {
    const int64_t compared = keep < length ? keep + 1 : keep;
    take_upper_bits(wide_keys, length, columns);
    sort_columns(columns, length, compared);
    unfinished = undecided(wide_keys, columns, compared);
  } else {
    sort_columns(columns, length, keep);
  }
  for (int64_t i = 0; i < keep; ++i)
    for (int64_t r = 0; r < kRowsTogether; ++r)
      order[i * kRowsTogether + r] = uint16_t(columns[i][r]);
  return unfinished;
}

}  // namespace

extern const SortLoops sort_loops;
constexpr SortLoops sort_loops = {
    {keys<bool>, keys<uint8_t>, keys<int8_t>, keys<uint16_t>, keys<int16_t>, keys<uint32_t>,
     keys<int32_t>, keys<uint64_t>, keys<int64_t>, keys<Half>, keys<BFloat16>, keys<float>,
     keys<double>},
    least_of_groups<uint32_t>,
    least_of_groups<uint64_t>,
    at_rank,
    {short_rows<bool>, short_rows<uint8_t>, short_rows<int8_t>, short_rows<uint16_t>,
     short_rows<int16_t>, short_rows<uint32_t>, short_rows<int32_t>, short_rows<uint64_t>,
     short_rows<int64_t>, short_rows<Half>, short_rows<BFloat16>, short_rows<float>,
     short_rows<double>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
