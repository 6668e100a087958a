// Owns the shape of the matrix products that are compiled once per instruction set: of integers,
// and batches of those that are too small for a call of BLAS each.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// c += a @ b modulo 2^bits, which serves signed and unsigned integers alike. Strides are in
// elements; those within a row of b and c are 1.
using IntegerProduct = void (*)(int64_t m, int64_t n, int64_t k, const void* a, int64_t a_row,
                                int64_t a_column, const void* b, int64_t b_row, void* c,
                                int64_t c_row);

struct IntegerProducts {
  IntegerProduct run[4];  // for elements of 1, 2, 4 and 8 bytes
};

// How the matrices of a batch lie, in elements.
struct BatchStrides {
  int64_t step, row, column;
};
// c = a @ b for `count` matrices; those of c are contiguous.
using SmallProduct = void (*)(int64_t count, int64_t m, int64_t n, int64_t k, const void* a,
                              BatchStrides a_strides, const void* b, BatchStrides b_strides,
                              void* c);
struct SmallProducts {
  SmallProduct run[2];  // float, double
};

}  // namespace rushlight
