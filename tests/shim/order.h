// Owns the order in which the blocks of a launch, the warps of a block and the lanes of a warp run:
// RUSHLIGHT_SHIM_ORDER is forward, reverse or shuffle, with a seed as in shuffle:7.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string_view>

namespace shim {

class Order {
 public:
  // Whoever is at place i runs as number (*this)(i).
  struct Places {
    size_t count, factor, first;
    size_t operator()(size_t i) const {
      return size_t((unsigned __int128)(i)*factor % count + first) % count;
    }
  };

  // What is wanted now; the same numbers follow a seed in every launch.
  static Order wanted() {
    const char* setting = std::getenv("RUSHLIGHT_SHIM_ORDER");
    std::string_view name = setting ? setting : "";
    Order order;
    order.kind_ = name == "reverse"             ? Kind::kReverse
                  : name.starts_with("shuffle") ? Kind::kShuffle
                                                : Kind::kForward;
    if (name.starts_with("shuffle:"))
      order.state_ += uint64_t(std::atoll(setting + std::strlen("shuffle:")));
    return order;
  }

  Places of(size_t count) {
    if (count < 2 || kind_ == Kind::kForward) return {count ? count : 1, 1, 0};
    if (kind_ == Kind::kReverse) return {count, count - 1, count - 1};
    size_t factor = next() % count;
    while (std::gcd(factor, count) != 1) factor = next() % count;
    return {count, factor, next() % count};
  }

  // How many operations a warp does before another's turn comes.
  unsigned patience() { return kind_ == Kind::kShuffle ? 1 + next() % 4 : ~0u; }

 private:
  enum class Kind { kForward, kReverse, kShuffle };

  // Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
  size_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return size_t(z ^ z >> 31);
  }

  Kind kind_ = Kind::kForward;
  uint64_t state_ = 0;
};

}  // namespace shim
