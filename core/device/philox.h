// Owns the random bits: Philox4x32-10, a keyed function of a counter, with no state to share.
//
// See Note [Random numbers]. The header is plain C++ without library calls, so the loops vectorize
// and the same text compiles for a GPU.
#pragma once

#include <cstdint>

namespace rushlight {

// Note [Random numbers]
// ~~~~~~~~~~~~~~~~~~~~~
// A draw of n numbers is a function of (seed, offset) alone; threads and devices do not show.
// - The key is the 64-bit seed, low word first.
// - One call of philox4x32 gives four 32-bit lanes. Element i of a 32-bit draw is lane i % 4 of
//   counter offset + i / 4; element i of a 64-bit draw is the lane pair 2 * (i % 2), + 1 of
//   counter offset + i / 2.
// - A draw moves the generator's offset by philox_counters(n, words per element), so two draws
//   never use one counter twice.
// - Counters are 64 bits, low word first; the upper two counter words are zero.
// - Where the number of words depends on the words (rejection.h), an element takes one counter, and
//   the upper two counter words number its attempts.

struct Philox4 {
  uint32_t x, y, z, w;
};

struct PhiloxKey {
  uint32_t x, y;
};

// Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 3.4: ten rounds.
// Words are the lower halves of 64-bit numbers, or of vectors of them; the upper halves of the
// results mean nothing. multiply(word, factor) is the 64-bit product of the lower halves.
template <class Word, class Multiply>
constexpr void philox_rounds(Word& x, Word& y, Word& z, Word& w, PhiloxKey key, Multiply multiply) {
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    Word a = multiply(x, 0xD2511F53u), b = multiply(z, 0xCD9E8D57u);
    x = (b >> 32) ^ y ^ uint64_t(key.x);
    y = b;
    z = (a >> 32) ^ w ^ uint64_t(key.y);
    w = a;
    key.x += 0x9E3779B9;  // golden ratio
    key.y += 0xBB67AE85;  // sqrt(3) - 1
  }
}

constexpr Philox4 philox4x32(Philox4 counter, PhiloxKey key) {
  uint64_t x = counter.x, y = counter.y, z = counter.z, w = counter.w;
  philox_rounds(x, y, z, w, key,
                [](uint64_t word, uint32_t factor) { return uint64_t(uint32_t(word)) * factor; });
  return {uint32_t(x), uint32_t(y), uint32_t(z), uint32_t(w)};
}

// The four lanes of counter number `counter` of the stream that `seed` names.
constexpr Philox4 philox(uint64_t seed, uint64_t counter) {
  return philox4x32({uint32_t(counter), uint32_t(counter >> 32), 0, 0},
                    {uint32_t(seed), uint32_t(seed >> 32)});
}

// A piece of the stream: counters from `offset` on belong to one draw. In a CUDA graph the device's
// memory has the seed, start[0], and the counter that offsets are counted from, start[1]; see Note
// [CUDA graphs].
struct PhiloxDraw {
  uint64_t seed, offset;
  const uint64_t* start = nullptr;

  constexpr PhiloxDraw from(uint64_t counter) const { return {seed, offset + counter, start}; }
  // The draw with its own seed and offset, where `start` can be read.
  constexpr PhiloxDraw settled() const {
    return start ? PhiloxDraw{start[0], start[1] + offset} : *this;
  }
  // The four lanes of its counter number `counter`, likewise.
  constexpr Philox4 words(uint64_t counter) const {
    PhiloxDraw draw = settled();
    return philox(draw.seed, draw.offset + counter);
  }
};

// How many counters a draw of n elements uses up, each element taking 1 or 2 words.
constexpr uint64_t philox_counters(uint64_t n, uint64_t words_per_element) {
  return (n * words_per_element + 3) / 4;
}

// Uniform in [0, 1): the upper bits, at most as many as a float holds, so that 1 is never reached.
// Signed conversions, because the processor has no vector instruction for unsigned ones before
// AVX-512.
[[gnu::always_inline]] constexpr float uniform_float(uint32_t word, int bits = 24) {
  return float(int32_t(word >> (32 - bits))) * (1.0f / float(1 << bits));
}

// Uniform in [0, 1): 53 bits out of two lanes.
constexpr double uniform_double(uint32_t low, uint32_t high) {
  return double(int64_t((uint64_t(high) << 32 | low) >> 11)) * 0x1p-53;
}

// A uniform number from `from` to `most`, the last one below the end of the range: rounding could
// reach the end, which is not part of it.
template <class T>
[[gnu::always_inline]] constexpr T scaled_uniform(T unit, T from, T width, T most) {
  T x = from + unit * width;
  return x < most ? x : most;
}

}  // namespace rushlight
