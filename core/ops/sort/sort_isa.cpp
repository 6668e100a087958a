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

template <class T>
void short_rows(const void* const* rows, int64_t stride, int64_t length, bool descending,
                uint8_t* order) {
  using Key = typename KeyOf<(sizeof(T) > 4)>::type;
  Key keys[kShortRow][kRowsTogether], ranks[kShortRow][kRowsTogether];
  Key flip = descending ? Key(-1) : Key(0);
  for (int64_t j = 0; j < length; ++j) {
    T elements[kRowsTogether];
    for (int64_t r = 0; r < kRowsTogether; ++r) elements[r] = element_at<T>(rows[r], j * stride);
    Key own[kRowsTogether], rank[kRowsTogether];
#pragma omp simd
    for (int64_t r = 0; r < kRowsTogether; ++r) {
      own[r] = key_of<Key>(elements[r]) ^ flip;
      rank[r] = Key(j);
    }
    for (int64_t i = 0; i < j; ++i)
#pragma omp simd
      for (int64_t r = 0; r < kRowsTogether; ++r) {
        Key before = own[r] < keys[i][r];
        rank[r] -= before;
        ranks[i][r] += before;
      }
    __builtin_memcpy(keys[j], own, sizeof(own));
    __builtin_memcpy(ranks[j], rank, sizeof(rank));
  }
  for (int64_t j = 0; j < length; ++j)
    for (int64_t r = 0; r < kRowsTogether; ++r)
      order[int64_t(ranks[j][r]) * kRowsTogether + r] = uint8_t(j);
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
