// Owns the shape of the loops over bags of rows that are compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

struct BagLoops {
  // The largest element of each column of `count` > 0 rows of a table, and the rows they are in.
  // Tables of float and double.
  void (*maxima[2])(const void* table, const int64_t* rows, int64_t count, int64_t columns,
                    void* best, int64_t* places);
};

}  // namespace rushlight
