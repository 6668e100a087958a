// Owns programs for CUDA: formulas that one kernel computes for each element, one after the other.
// What goes from formula to formula stays in registers.
//
// The kernel is written and compiled by NVRTC when such a program first comes, and kept: for any
// sizes, and for any numbers.
#pragma once

#include <compare>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/fused_args.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

class CudaProgram {
 public:
  // Where a step finds an operand: it is what another step gave, a tensor, or a number.
  struct Input {
    enum Kind : uint8_t { step, read, number } kind;
    int index;
    DType dtype;  // that the formula reads

    friend auto operator<=>(const Input&, const Input&) = default;
  };

  // The one element of a CPU tensor.
  Input number(const TileOperand& operand);
  // The next step: a formula with scalars in the compute dtype, or a conversion where it is null.
  void add(const Formula* formula, DType compute, DType result, std::span<const Input> inputs,
           const void* scalars);
  // Has the elements of the latest step written.
  void store() { source_.stored.push_back(int(source_.steps.size()) - 1); }
  // Queues the kernel on the current stream. The results are dense and in one order; the reads
  // broadcast to their sizes.
  void run(std::span<const TileOperand> reads, std::span<const Tensor> results);

 private:
  struct Step {
    const Formula* formula;
    DType compute, result;
    int first_scalar;
    std::vector<Input> inputs;

    friend auto operator<=>(const Step&, const Step&) = default;
  };
  enum class Order : uint8_t { same, other, single };
  struct Read {
    DType dtype;
    Order order;

    friend auto operator<=>(const Read&, const Read&) = default;
  };
  // What a kernel is compiled for.
  struct Source {
    std::vector<Step> steps;
    std::vector<int> stored;
    std::vector<Read> reads;

    friend auto operator<=>(const Source&, const Source&) = default;
    int vector() const;  // elements of a thread
    std::string name() const;
    std::string text() const;
    std::string value_of(const Step& step) const;
  };
  struct Kernels;

  void* slot();

  Source source_;
  FusedArgs args_;
  int numbers_ = 0;
};

}  // namespace rushlight
