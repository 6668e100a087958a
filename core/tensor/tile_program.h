// Owns programs for tiles: loops that run one after the other on about a thousand elements, as one
// kernel of the loop driver sees them. What goes from loop to loop stays in the L1 cache.
#pragma once

#include <vector>

#include "core/tensor/chain_loops.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

class TileProgram {
 public:
  static constexpr int64_t kTile = 1024;

  // Where a step finds or leaves elements. Lanes are the operands of the kernel; a step may write
  // one, too, if it is dense and in the order of the result.
  struct Place {
    enum Kind : uint8_t { lane, buffer, number, result } kind;
    int index = 0;       // of a lane or buffer; of a number, how many copies there are
    int64_t offset = 0;  // of a number among the numbers, or of a buffer in the scratch memory
    int64_t item = 0;    // bytes of an element; no matter for a number
  };
  struct Step {
    PointwiseLoop loop = nullptr;
    CastLoop cast = nullptr;          // in place of a loop
    Element widens = Element::whole;  // the halves that a cast makes floats of
    // What the loop does, where that is no more than arithmetic of floats or doubles; runs where
    // there is neither a loop nor a cast.
    Chain chain = {};
    // In place of `loop` when lane `single` is one element for a whole row; null when it cannot be.
    PointwiseLoop single_loop = nullptr;
    int single = -1;
    const void* scalars = nullptr;
    std::vector<Place> inputs;
    Place output;

    bool runs_chain() const { return !loop && !cast; }
  };

  // A buffer that one step writes and later ones read.
  Place new_buffer(DType dtype) {
    return {Place::buffer, buffers_++, 0, int64_t(dtype_size(dtype))};
  }
  // The one element of a tensor on the CPU; kTile copies of it for loops that want a tile.
  Place add_number(const TileOperand& operand, int64_t copies);
  void add(const Step& step) { steps_.push_back(step); }
  // The step that writes a buffer.
  const Step& writer_of(const Place& buffer) const;
  // Drops steps that nobody reads, joins others, and finds memory for the buffers. Nothing is added
  // afterwards.
  void finish();
  // Whether a finished program can take a lane, or give its result, as halves in place of the
  // floats they stand for: from then on it does.
  bool takes_halves(int lane, Element halves);
  bool gives_halves(Element halves);

  // Runs a finished TileProgram. The kernel takes a lane as single if all that read it can.
  PointwiseKernel kernel() const;

 private:
  void drop_unread();
  void join_chains();
  void widen_in_chains();
  // Has all that read floats read the halves that they were, if they are chains.
  bool read_halves(const Place& floats, const Place& from, Element halves);
  bool takes_single(int lane) const;
  template <int single>
  static void run(const void* const* lanes, const void* program, void* result, int64_t n);
  void run_on(const void* const* lanes, int single, char* result, int64_t n) const;

  std::vector<Step> steps_;
  std::vector<char> numbers_;
  int buffers_ = 0;
  int64_t scratch_ = 0;  // bytes for all buffers
};

}  // namespace rushlight
