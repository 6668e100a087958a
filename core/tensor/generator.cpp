// Defines the state of generators.
#include "core/tensor/generator.h"

#include <cstring>
#include <random>

#include "core/tensor/tile_loop.h"

namespace rushlight {

Generator::Draw Generator::take(uint64_t counters) {
  std::lock_guard lock(mutex_);
  Draw draw = state_;
  state_.offset += counters;
  return draw;
}

void Generator::manual_seed(uint64_t seed) {
  std::lock_guard lock(mutex_);
  state_ = {seed, 0};
}

uint64_t Generator::seed() {
  std::random_device device;
  uint64_t seed = uint64_t(device()) << 32 | device();
  seed &= INT64_MAX;  // a Python caller may pass it back as an int64
  manual_seed(seed);
  return seed;
}

uint64_t Generator::initial_seed() const {
  std::lock_guard lock(mutex_);
  return state_.seed;
}

uint64_t Generator::offset() const {
  std::lock_guard lock(mutex_);
  return state_.offset;
}

void Generator::set_offset(uint64_t offset) {
  std::lock_guard lock(mutex_);
  state_.offset = offset;
}

Tensor Generator::get_state() const {
  Tensor state = empty(Shape{sizeof(Draw)}, DType::uint8);
  std::lock_guard lock(mutex_);
  std::memcpy(state.data(), &state_, sizeof(Draw));
  return state;
}

void Generator::set_state(const Tensor& state) {
  CHECK(state.dtype() == DType::uint8 && state.device().is_cpu(), ErrorKind::kType,
        "RNG state must be a torch.ByteTensor on the CPU, got a tensor of ",
        dtype_name(state.dtype()), " on ", state.device());
  CHECK(state.numel() == sizeof(Draw), "the state of a generator has ", sizeof(Draw),
        " bytes, got ", state.numel(), ". Pass what get_state() returned.");
  Tensor bytes = to_contiguous(state);
  std::lock_guard lock(mutex_);
  std::memcpy(&state_, bytes.data(), sizeof(Draw));
}

Generator& default_generator() {
  static Generator generator;
  return generator;
}

}  // namespace rushlight
