// Owns the loop driver: it brings strided, broadcast and converted operands to kernels that see
// contiguous memory only.
//
// Operands that already lie right, whole or row by row, are passed without a copy; others go
// through tiles of a few thousand bytes that stay in the L1 cache. Threads split the elements,
// never the tiles.
#pragma once

#include <memory>
#include <span>
#include <type_traits>

#include "core/tensor/loops.h"
#include "core/tensor/tensor.h"

namespace rushlight {

struct TileOperand {
  const Tensor* tensor;
  DType kernel_dtype;  // what the kernel reads or writes; converted when the tensor's differs
};

inline constexpr int kMaxLanes = 48;  // formulas have fewer, fused ones may have as many operands

// Fills `result` from operands that broadcast to its shape. The result may be an operand itself,
// but must not overlap one in any other way.
void run_tile_loop(const TileOperand& result, std::span<const TileOperand> operands,
                   const PointwiseKernel& kernel, const void* scalars);

// The same loop, run range by range by whoever takes the elements on. The result is dense and need
// not have memory; its elements come in the order in which they would lie there. What the loop is
// made of must outlive it.
class RangedLoop {
 public:
  RangedLoop(const TileOperand& result, std::span<const TileOperand> operands,
             const PointwiseKernel& kernel, const void* scalars);
  ~RangedLoop();
  // Computes elements [begin, end) to `to`, on this thread.
  void run(int64_t begin, int64_t end, char* to) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Whether element i of both in memory is the same element; `out` is dense.
bool same_order(const Tensor& tensor, const Tensor& out);

// Converts with the fastest loop of this processor.
CastLoop cast_loop(DType from, DType to);

int active_isa_index();
// The table of the instruction set in use.
template <class Table>
const Table& active(IsaSets<Table>& sets) {
  return *sets[active_isa_index()];
}
// Its part for float or double.
template <class T, class Table>
const auto& active_of(IsaSets<Table>& sets) {
  if constexpr (std::is_same_v<T, float>) return active(sets).f32;
  else return active(sets).f64;
}

// Copies n elements of `item` bytes: element i from `from + i * from_stride` to `to + i *
// to_stride`.
void copy_run(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t item,
              int64_t n);
// The same for rows of n elements, whose distances are in bytes too.
void copy_rows(char* to, RowStrides to_strides, const char* from, RowStrides from_strides,
               int64_t item, int64_t rows, int64_t n);
// Copies between two layouts of the same sizes, none of which is zero. Strides are in bytes, and
// those of the source may be negative.
void copy_strided(ShapeRef sizes, int64_t item, char* to, ShapeRef to_strides, const char* from,
                  ShapeRef from_strides);
// dst[...] = src broadcast to dst's shape, converted to its dtype. They may overlap, and may be on
// different devices; see copy_bytes in device/cuda.h for what non_blocking means.
void copy_into(const Tensor& dst, const Tensor& src, bool non_blocking = false);
// A dense copy; `format` preserve keeps the order of dims of a dense source.
Tensor clone_dense(const Tensor& tensor, MemoryFormat format = MemoryFormat::contiguous);
// The tensor itself when it is row-major, else a row-major copy. No autograd.
Tensor to_contiguous(const Tensor& tensor);
// A dense copy in another dtype whose dims have the tensor's order, or the tensor itself when
// nothing changes. No autograd.
Tensor to_dtype(const Tensor& tensor, DType dtype);

}  // namespace rushlight
