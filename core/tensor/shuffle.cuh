// Owns shuffles of values of any size within a warp whose lanes are all present.
#pragma once

namespace rushlight::on_cuda {

namespace detail {

// Moves a value word by word.
template <class T, class Shuffle>
T shuffled(T value, Shuffle shuffle) {
  static_assert(sizeof(T) % sizeof(uint32_t) == 0);
  struct Words {
    uint32_t at[sizeof(T) / sizeof(uint32_t)];
  };
  Words words = __builtin_bit_cast(Words, value);  // a union would lie in local memory
#pragma unroll
  for (uint32_t& word : words.at) word = shuffle(word);
  return __builtin_bit_cast(T, words);
}

}  // namespace detail

// What lane (own ^ lanes) gives.
template <class T>
T shuffle_xor(T value, unsigned lanes) {
  return detail::shuffled(value, [=](uint32_t x) { return __shfl_xor_sync(~0u, x, int(lanes)); });
}

// What lane (own - lanes) gives; the own value where there is none.
template <class T>
T shuffle_up(T value, unsigned lanes) {
  return detail::shuffled(value, [=](uint32_t x) { return __shfl_up_sync(~0u, x, lanes); });
}

// What one lane of each so many neighbors gives to all of them.
template <class T>
T shuffle_from(T value, unsigned lane, int neighbors = 32) {
  return detail::shuffled(value,
                          [=](uint32_t x) { return __shfl_sync(~0u, x, int(lane), neighbors); });
}

}  // namespace rushlight::on_cuda
