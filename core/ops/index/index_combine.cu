// Owns the kernels that combine values of a row-major tensor with the picked elements.
#include "core/ops/index/index_combine.cuh"

namespace rushlight::on_cuda {

constexpr int64_t kNowhere = -1;  // no offset is this

// `single`: one value serves for all.
extern "C" __global__ void combine_picked(PickedArgs args, const DTYPE* dense, bool single,
                                          Wide* parts, int64_t chunks) {
  auto value = [&](const PickedElement& element, int64_t position) {
    return convert<Wide>(dense[single ? 0 : dense_number(args, element, position)]);
  };
  combine_run(args, kNowhere, value, parts, chunks);
}
extern "C" __global__ void combine_parts(PickedArgs args, PickedArgs by_chunk, const Wide* parts) {
  combine_parts_of_runs(args, by_chunk, kNowhere, parts);
}

}  // namespace rushlight::on_cuda
