// Defines the sequences of arange, linspace and logspace for the CPU.
#include "core/device/threads.h"
#include "core/ops/random/generate.h"
#include "core/ops/random/generate_loops.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(GenerateLoops, generate_loops)

namespace {

constexpr int64_t kGrain = 32768;  // elements that are worth a thread

template <class Sequence>
void run(const Tensor& out, const Sequence& sequence,
         GenerateLoop<Sequence> const (&loops)[kRealTypes]) {
  if (int(out.dtype()) >= kRealTypes) refuse_stored_dtype(out.dtype());
  GenerateLoop<Sequence> loop = loops[int(out.dtype())];
  parallel_for(0, out.numel(), kGrain,
               [&](int64_t begin, int64_t end) { loop(sequence, begin, end, out.data()); });
}

}  // namespace

void generate_cpu(const Tensor& out, const Range& range) {
  run(out, range, active(generate_loops_sets).range);
}
void generate_cpu(const Tensor& out, const Spaced& spaced) {
  run(out, spaced, active(generate_loops_sets).spaced);
}

}  // namespace rushlight
