// Defines the state of generators.
#include "core/tensor/generator.h"

#include <cstring>
#include <random>

#include "core/device/cuda.h"
#include "core/device/cuda_capture.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

// A replay draws from where the generator is by then, so a capture cannot move it.
void refuse_in_capture(const char* op) {
  if (cuda::any_capture())
    cuda::refuse_capture(cuda::current_stream(cuda::current_device()),
                         "changes the numbers that replays draw", op);
}

}  // namespace

Generator::Draw Generator::advance(uint64_t counters) {
  std::lock_guard lock(mutex_);
  Draw draw{state_.seed, state_.offset};
  state_.offset += counters;
  return draw;
}

Generator::Draw Generator::take(uint64_t counters, Device device) {
  if (device.is_cuda() && cuda::any_capture()) [[unlikely]] {
    if (auto capture = cuda::capture_of(cuda::current_stream(device.index))) {
      auto [start, offset] =
          cuda::draw_in(*capture, draw_source(*this), this == &default_generator(), counters);
      return {0, offset, start};
    }
  }
  return advance(counters);
}

cuda::DrawSource draw_source(Generator& generator) {
  return {&generator, [&generator](uint64_t counters) {
            Generator::Draw draw = generator.take(counters, Device());
            return std::array{draw.seed, draw.offset};
          }};
}

void Generator::manual_seed(uint64_t seed) {
  refuse_in_capture("manual_seed");
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
  refuse_in_capture("Generator.set_offset");
  std::lock_guard lock(mutex_);
  state_.offset = offset;
}

Tensor Generator::get_state() const {
  Tensor state = empty(Shape{sizeof(State)}, DType::uint8);
  std::lock_guard lock(mutex_);
  std::memcpy(state.data(), &state_, sizeof(State));
  return state;
}

void Generator::set_state(const Tensor& state) {
  CHECK(state.dtype() == DType::uint8 && state.device().is_cpu(), ErrorKind::kType,
        "RNG state must be a torch.ByteTensor on the CPU, got a tensor of ",
        dtype_name(state.dtype()), " on ", state.device());
  CHECK(state.numel() == sizeof(State), "the state of a generator has ", sizeof(State),
        " bytes, got ", state.numel(), ". Pass what get_state() returned.");
  refuse_in_capture("set_rng_state");
  Tensor bytes = to_contiguous(state);
  std::lock_guard lock(mutex_);
  std::memcpy(&state_, bytes.data(), sizeof(State));
}

Generator& default_generator() {
  static Generator generator;
  return generator;
}

}  // namespace rushlight
