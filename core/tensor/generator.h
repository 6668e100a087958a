// Owns Generator: which random numbers were drawn already.
//
// Its state is a seed and an offset into the stream of that seed; a draw takes a piece of the
// stream, see Note [Random numbers] in device/philox.h. Safe from any thread.
#pragma once

#include <memory>
#include <mutex>

#include "core/device/philox.h"
#include "core/tensor/tensor.h"

namespace rushlight {
namespace cuda {
struct DrawSource;
}

class Generator : public std::enable_shared_from_this<Generator> {
 public:
  // A fresh one gives the same numbers in every process until it is seeded.
  static constexpr uint64_t kDefaultSeed = 67280421310721;

  using Draw = PhiloxDraw;
  // Takes a piece of the stream for a draw on a device. One that is captured into a CUDA graph
  // moves the generator when the graph is replayed.
  Draw take(uint64_t counters, Device device);

  // Starts the stream of a seed.
  void manual_seed(uint64_t seed);
  // Starts the stream of a seed that the operating system chose, and returns it.
  uint64_t seed();
  uint64_t initial_seed() const;

  // How many counters of the stream are used up.
  uint64_t offset() const;
  void set_offset(uint64_t offset);

  // Seed and offset as a uint8 tensor.
  Tensor get_state() const;
  void set_state(const Tensor& state);

 private:
  mutable std::mutex mutex_;
  struct State {
    uint64_t seed, offset;
  };
  Draw advance(uint64_t counters);

  State state_{kDefaultSeed, 0};
};

// The generator as a graph draws from it; whoever lists it keeps the generator alive.
cuda::DrawSource draw_source(Generator& generator);

// The generator of ops that are not given one.
Generator& default_generator();

}  // namespace rushlight
