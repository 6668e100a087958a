// Defines the copies that tile_loop.h declares. Layouts that differ by a transposition go through
// square blocks, so that both sides are read and written in whole cache lines.
#include <cstring>

#include "core/base/ceil_div.h"
#include "core/device/cuda.h"
#include "core/device/threads.h"
#include "core/tensor/dims.h"
#include "core/tensor/memory_order.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(LayoutLoops, layout_loops)

namespace {

constexpr int64_t kGrain = 1 << 17;  // bytes that are worth a thread
constexpr int64_t kBlock = 128;      // elements along each side of what is transposed at a time
constexpr int64_t kCacheLine = 64;   // bytes

const LayoutLoops& layout_loops() { return active(layout_loops_sets); }
int entry_of(int64_t item) { return __builtin_ctzll(uint64_t(item)); }

// Long runs go through loops that know where memcpy is slow.
constexpr int64_t kLong = 2048;
[[gnu::noinline]] void copy_long(char* to, const char* from, int64_t bytes) {
  layout_loops().copy_rows[0](to, {0, 1}, from, {0, 1}, 1, bytes);
}

void copy_bytes(char* to, const char* from, int64_t bytes) {
  parallel_for(0, bytes, kGrain, [&](int64_t begin, int64_t end) {
    copy_run(to + begin, 1, from + begin, 1, 1, end - begin);
  });
}

// The dim, besides the last, that the source walks element by element; -1 when there is none.
int64_t transposed_dim(const Shape& sizes, const Shape& to, const Shape& from, int64_t item) {
  if (to.back() != item || from.back() == 0) return -1;
  for (size_t d = sizes.size() - 1; d-- > 0;)
    if (from[d] == item) return int64_t(d);
  return -1;
}

// Writes the offsets of elements `first` to first + n - 1, in row-major order.
void list_offsets(ShapeRef sizes, ShapeRef strides, int64_t first, int64_t n, int64_t* to) {
  size_t last = sizes.size() - 1;
  int64_t inner = sizes[last], step = strides[last];
  Odometer<1> outer(sizes.first(last), {strides.first(last)}, first / inner);
  for (int64_t i = 0, k = first % inner; i < n; k = 0, outer.next())
    for (int64_t at = outer.at(0); k < inner && i < n; ++k, ++i) to[i] = at + k * step;
}

// The columns are the last dim of the target. Where they make less than a cache line, so are the
// dims before it that go on where they end.
void copy_transposed(Shape& sizes, int64_t item, char* to, Shape& to_strides, const char* from,
                     Shape& from_strides, size_t row_dim) {
  int64_t rows = sizes[row_dim], row_stride = to_strides[row_dim];
  for (Shape* shape : {&sizes, &to_strides, &from_strides}) shape->erase(row_dim);
  int64_t columns = 1;
  int64_t enough = sizes.back() * item >= kCacheLine ? 1 : kBlock;
  Shape column_sizes, column_strides;
  while (!sizes.empty() && columns <= enough && to_strides.back() == columns * item) {
    columns *= sizes.back();
    column_sizes.insert(0, sizes.back());
    column_strides.insert(0, from_strides.back());
    for (Shape* shape : {&sizes, &to_strides, &from_strides}) shape->pop_back();
  }
  const LayoutLoops& loops = layout_loops();
  TransposeLoop transpose = loops.transpose[entry_of(item)];
  TransposeListedLoop transpose_listed = loops.transpose_listed[entry_of(item)];
  int64_t row_blocks = ceil_div(rows, kBlock), column_blocks = ceil_div(columns, kBlock);
  int64_t blocks = row_blocks * column_blocks;
  int64_t count = blocks;
  for (int64_t size : sizes) count *= size;
  int64_t block_bytes = std::min(rows, kBlock) * std::min(columns, kBlock) * item;
  parallel_for(0, count, kGrain / block_bytes + 1, [&](int64_t begin, int64_t end) {
    Odometer<2> outer(sizes, {to_strides, from_strides}, begin / blocks);
    int64_t row = begin % blocks / column_blocks * kBlock, column = begin % column_blocks * kBlock;
    for (int64_t i = begin; i < end; ++i) {
      char* block = to + outer.at(0) + row * row_stride + column * item;
      const char* source = from + outer.at(1) + row * item;
      int64_t height = std::min(kBlock, rows - row), width = std::min(kBlock, columns - column);
      if (column_sizes.size() == 1) {
        int64_t stride = column_strides[0];
        transpose(source + column * stride, stride, block, row_stride, height, width);
      } else {
        int64_t offsets[kBlock];
        list_offsets(column_sizes, column_strides, column, width, offsets);
        transpose_listed(source, offsets, block, row_stride, height, width);
      }
      column += kBlock;
      if (column < columns) continue;
      column = 0;
      row += kBlock;
      if (row < rows) continue;
      row = 0;
      outer.next();
    }
  });
}

}  // namespace

void copy_run(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t item,
              int64_t n) {
  if (to_stride == item && from_stride == item) {
    int64_t bytes = n * item;
    if (bytes >= kLong) return copy_long(to, from, bytes);
    asm("" : "+r"(bytes));  // GCC would copy byte by byte itself what it knows to be short
    std::memcpy(to, from, size_t(bytes));
    return;
  }
  copy_rows(to, {0, to_stride}, from, {0, from_stride}, item, 1, n);
}

void copy_rows(char* to, RowStrides to_strides, const char* from, RowStrides from_strides,
               int64_t item, int64_t rows, int64_t n) {
  layout_loops().copy_rows[entry_of(item)](to, to_strides, from, from_strides, rows, n);
}

void copy_strided(ShapeRef sizes, int64_t item, char* to, ShapeRef to_strides, const char* from,
                  ShapeRef from_strides) {
  Shape dims(sizes), to_steps(to_strides), from_steps(from_strides);
  Shape* lanes[] = {&to_steps, &from_steps};
  join_dims(dims, lanes);
  if (dims.empty()) {
    std::memcpy(to, from, size_t(item));
    return;
  }
  if (int64_t dim = transposed_dim(dims, to_steps, from_steps, item); dim >= 0)
    return copy_transposed(dims, item, to, to_steps, from, from_steps, size_t(dim));

  int64_t inner = dims.back(), to_step = to_steps.back(), from_step = from_steps.back();
  for (Shape* shape : {&dims, &to_steps, &from_steps}) shape->pop_back();
  if (dims.empty()) {
    parallel_for(0, inner, kGrain / item, [&](int64_t begin, int64_t end) {
      copy_run(to + begin * to_step, to_step, from + begin * from_step, from_step, item,
               end - begin);
    });
    return;
  }
  RowStrides to_rows{to_steps.back(), to_step}, from_rows{from_steps.back(), from_step};
  int64_t rows = dims.back(), count = rows;
  for (Shape* shape : {&dims, &to_steps, &from_steps}) shape->pop_back();
  for (int64_t size : dims) count *= size;
  RowsLoop copy_rows = layout_loops().copy_rows[entry_of(item)];
  parallel_for(0, count, kGrain / (inner * item) + 1, [&](int64_t begin, int64_t end) {
    Odometer<2> outer(dims, {to_steps, from_steps}, begin / rows);
    for (int64_t i = begin; i < end; outer.next()) {
      int64_t row = i % rows, n = std::min(rows - row, end - i);
      copy_rows(to + outer.at(0) + row * to_rows.row, to_rows,
                from + outer.at(1) + row * from_rows.row, from_rows, n, inner);
      i += n;
    }
  });
}

namespace {

void copy_on_cpu(const Tensor& dst, const Tensor& src) {
  if (src.dtype() == dst.dtype()) {
    int64_t item = int64_t(dst.itemsize());
    if (dst.is_contiguous() && src.is_contiguous() && dst.numel() == src.numel())
      return copy_bytes(dst.data<char>(), src.data<char>(), dst.numel() * item);
    Shape to_strides = dst.strides(), from_strides = broadcast_strides(src, dst.sizes());
    for (int64_t& stride : to_strides) stride *= item;
    for (int64_t& stride : from_strides) stride *= item;
    copy_strided(dst.sizes(), item, dst.data<char>(), to_strides, src.data<char>(), from_strides);
    return;
  }
  // The "formula" is the conversion itself; memory is read and written as it is.
  TileOperand operand{&src, src.dtype()};
  auto convert = [](const void* const* in, const void* cast, void* out, int64_t n) {
    (*static_cast<const CastLoop*>(cast))(in[0], out, n);
  };
  CastLoop cast = cast_loop(src.dtype(), dst.dtype());
  run_tile_loop({&dst, dst.dtype()}, {&operand, 1}, {convert}, &cast);
}

// On one CUDA device; a 0-d source may lie on the CPU.
void copy_on_cuda(const Tensor& dst, const Tensor& src) {
  static constexpr Formula kConversion{"copy", "(N input)", "input", read_params("(N input)"),
                                       true,   {}};
  // Formulas take an int32 for a truth value.
  DType compute = src.dtype() == DType::int32 ? DType::int64 : src.dtype();
  TileOperand operand{&src, compute};
  run_cuda_loop(kConversion, compute, {&dst, dst.dtype()}, {&operand, 1}, nullptr);
}

// Between devices only whole row-major tensors of one dtype move; the rest happens before, where
// the source is, or after, where the destination is.
void copy_across(const Tensor& dst, const Tensor& src, bool non_blocking) {
  Tensor from = to_contiguous(src);
  bool direct = dst.is_contiguous() && dst.dtype() == src.dtype() && dst.numel() == src.numel();
  Tensor there = direct ? dst : empty(src.sizes(), src.dtype(), dst.device());
  cuda::copy_bytes(there.address(), there.device(), from.address(), from.device(),
                   size_t(from.numel()) * from.itemsize(), non_blocking && direct);
  if (!direct) copy_into(dst, there);
}

}  // namespace

void copy_into(const Tensor& dst, const Tensor& src, bool non_blocking) {
  check_writable(dst);
  bool same_layout = dst.sizes() == src.sizes() && dst.strides() == src.strides();
  if (dst.storage() == src.storage() && same_layout && dst.offset() == src.offset() &&
      dst.dtype() == src.dtype())
    return;
  if (dst.numel() == 0 || dst.device().is_meta()) return;
  CHECK(!src.device().is_meta(), ErrorKind::kNotImplemented,
        "Cannot copy out of meta tensor; no data!");
  if (dst.device() != src.device()) {
    if (dst.device().is_cuda() && src.device().is_cpu() && src.dim() == 0) copy_on_cuda(dst, src);
    else copy_across(dst, src, non_blocking);
    return;
  }
  Tensor from = may_overlap(dst, src) ? clone_dense(src) : src;
  if (dst.device().is_cuda()) copy_on_cuda(dst, from);
  else copy_on_cpu(dst, from);
}

Tensor clone_dense(const Tensor& tensor, MemoryFormat format) {
  Tensor out = format == MemoryFormat::preserve
                   ? empty_after(tensor)
                   : empty_strided(tensor.sizes(), strides_for(tensor.sizes(), format),
                                   tensor.dtype(), tensor.device());
  copy_into(out, tensor);
  return out;
}

Tensor to_contiguous(const Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : clone_dense(tensor);
}

Tensor to_dtype(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  Tensor out = empty_after(tensor, dtype);
  copy_into(out, tensor);
  return out;
}

}  // namespace rushlight
