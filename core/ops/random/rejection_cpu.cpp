// Defines the draws by rejection for the CPU: ranges of elements for the threads.
#include "core/device/threads.h"
#include "core/ops/random/rejection.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(RejectionLoops, rejection_loops)

void reject_cpu(const Tensor& out, Rejection what, const Tensor& a, const Tensor& b,
                Generator::Draw draw) {
  constexpr int64_t kGrain = 1024;  // elements that are worth a thread
  RejectionLoop loop = active(rejection_loops_sets).of[int(what)];
  const double* first = a.data<double>();
  const double* second = b.defined() ? b.data<double>() : nullptr;
  double* to = out.data<double>();
  parallel_for(0, out.numel(), kGrain, [&](int64_t begin, int64_t end) {
    loop({draw.seed, draw.offset + uint64_t(begin)}, end - begin, first + begin,
         second ? second + begin : nullptr, to + begin);
  });
}

}  // namespace rushlight
