// Owns the products of matrices on CUDA where cuBLASLt does not serve. Macros name a variant:
//   ELEMENT                  the type in memory; unsigned integers stand for signed ones
//   LEFT_INNER, RIGHT_INNER  whether the columns of a, the rows of b, lie side by side: 1 or 0
//   SMALL_TILES              defined for tiles of 32 x 32 elements
#include "core/ops/matmul/gemm.cuh"

namespace rushlight::on_cuda {

struct Gemm {
  using Element = ELEMENT;
  using Sum = SumOf<ELEMENT>::type;
  static constexpr int kLeftRun = LEFT_INNER, kRightRun = RIGHT_INNER;
  static constexpr bool kTensorCores = kShort<ELEMENT>;

  const GemmArgs& args;
  int64_t rows, columns, inner;
  int64_t batch, piece;

  Gemm(const GemmArgs& args, const GemmPlace& place)
      : args(args),
        rows(args.m),
        columns(args.n),
        inner(args.k),
        batch(place.batch),
        piece(place.piece) {}

  const ELEMENT* line_of_left(int64_t i) const {
    return static_cast<const ELEMENT*>(args.a) + batch * args.a_step + i * args.a_row;
  }
  const ELEMENT* line_of_right(int64_t j) const {
    return static_cast<const ELEMENT*>(args.b) + batch * args.b_step + j * args.b_column;
  }
  int64_t at(int64_t p) const { return p; }
  const ELEMENT* left(const ELEMENT* row, int64_t p) const { return row + p * args.a_column; }
  const ELEMENT* right(const ELEMENT* column, int64_t p) const { return column + p * args.b_row; }

  int64_t place(int64_t j) const { return j; }
  void store(int64_t i, int64_t j, Sum sum) const {
    int64_t place = (batch * rows + i) * columns + j;
    if (args.grid.pieces > 1) {
      static_cast<Sum*>(args.partial)[piece * args.grid.batch * rows * columns + place] = sum;
      return;
    }
    finish(args, place, sum);
  }

  static void finish(const GemmArgs& args, int64_t place, Sum sum) {
    if (args.alpha != 1) sum = convert<Sum>(args.alpha) * sum;
    if (args.beta != 0)
      sum =
          sum + convert<Sum>(args.beta) * convert<Sum>(static_cast<const ELEMENT*>(args.c)[place]);
    if (args.bias) sum = sum + convert<Sum>(static_cast<const ELEMENT*>(args.bias)[place % args.n]);
    static_cast<ELEMENT*>(args.c)[place] = convert<ELEMENT>(sum);
  }
};

extern "C" __global__ void __launch_bounds__(kGemmThreads) tiles(GemmArgs args) {
  GemmPlace place(args.grid, blockIdx.x, args.k);
  constexpr int kPer = kSumsPerThread<Gemm::Sum>, kTile = kSide * kPer;
  multiply_tile<kPer>(Gemm(args, place), place.row * kTile, place.column * kTile, place.begin,
                      place.end);
}

extern "C" __global__ void __launch_bounds__(kGemmThreads) vectors(GemmArgs args) {
  GemmPlace place(args.grid, blockIdx.x, args.k);
  multiply_by_block(Gemm(args, place), place.row, place.column, place.begin, place.end);
}

extern "C" __global__ void __launch_bounds__(kGemmThreads) add_pieces(GemmArgs args) {
  int64_t place = int64_t(blockIdx.x) * kGemmThreads + threadIdx.x;
  int64_t count = args.grid.batch * args.m * args.n;
  if (place >= count) return;
  Gemm::Sum sum(0);
  for (int64_t piece = 0; piece < args.grid.pieces; ++piece)
    sum = sum + static_cast<const Gemm::Sum*>(args.partial)[piece * count + place];
  Gemm::finish(args, place, sum);
}

}  // namespace rushlight::on_cuda
