// Owns shuffles of values of any size within a warp whose lanes are all present.
#pragma once

namespace rushlight::on_cuda {

namespace detail {

// A shuffle moves words.
template <class T>
union Words {
  T value;
  uint32_t words[(sizeof(T) + 3) / 4];
  Words(T value) : value(value) {}
};

}  // namespace detail

// What lane (own ^ lanes) gives.
template <class T>
T shuffle_xor(T value, unsigned lanes) {
  detail::Words<T> moved(value);
#pragma unroll
  for (uint32_t& word : moved.words) word = __shfl_xor_sync(~0u, word, int(lanes));
  return moved.value;
}

// What lane (own - lanes) gives; the own value where there is none.
template <class T>
T shuffle_up(T value, unsigned lanes) {
  detail::Words<T> moved(value);
#pragma unroll
  for (uint32_t& word : moved.words) word = __shfl_up_sync(~0u, word, lanes);
  return moved.value;
}

// What one lane gives to all.
template <class T>
T shuffle_from(T value, unsigned lane) {
  detail::Words<T> moved(value);
#pragma unroll
  for (uint32_t& word : moved.words) word = __shfl_sync(~0u, word, int(lane));
  return moved.value;
}

}  // namespace rushlight::on_cuda
