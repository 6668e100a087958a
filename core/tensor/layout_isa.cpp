// Owns the loops that move elements between layouts, compiled once per instruction set: runs along
// one dim, and blocks of two dims that swap.
//
// Squares of kWidth x kWidth elements are transposed in registers, and blocks of few columns or two
// rows in vectors along the other side. What is left at the edges goes element by element.
#include "core/tensor/vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

// Where columns begin. `from(c, bytes)` are those from column c on, so many bytes below.
struct EvenColumns {
  const char* first;
  int64_t stride;
  const char* operator[](int64_t c) const { return first + c * stride; }
  EvenColumns from(int64_t c, int64_t bytes) const { return {first + c * stride + bytes, stride}; }
};
struct ListedColumns {
  const char* first;
  const int64_t* offsets;
  const char* operator[](int64_t c) const { return first + offsets[c]; }
  ListedColumns from(int64_t c, int64_t bytes) const { return {first + bytes, offsets + c}; }
};

// A few columns at a time, so that they stay in the cache for all rows wherever they lie.
template <class T, class Columns>
void transpose_edge(Columns column, char* to, int64_t to_stride, int64_t rows, int64_t columns) {
  constexpr int64_t kTogether = 8;
  int64_t c = 0;
  for (; c + kTogether <= columns; c += kTogether)
    for (int64_t r = 0; r < rows; ++r) {
      T* row = reinterpret_cast<T*>(to + r * to_stride) + c;
#pragma GCC unroll 8
      for (int64_t k = 0; k < kTogether; ++k) row[k] = reinterpret_cast<const T*>(column[c + k])[r];
    }
  for (; c < columns; ++c) {
    const T* from = reinterpret_cast<const T*>(column[c]);
    char* first = to + c * int64_t(sizeof(T));
#pragma GCC unroll 4
    for (int64_t r = 0; r < rows; ++r) *reinterpret_cast<T*>(first + r * to_stride) = from[r];
  }
}

template <class T, class Columns>
[[gnu::always_inline]] inline void transpose_squares(Columns column, char* to, int64_t to_stride,
                                                     int64_t rows, int64_t columns) {
  int64_t whole_rows = 0, whole_columns = 0;
  if constexpr (sizeof(T) <= 8) {
    constexpr int n = kWidth<T>, item = sizeof(T);
    whole_rows = rows - rows % n;
    whole_columns = columns - columns % n;
    for (int64_t r = 0; r < whole_rows; r += n)
      for (int64_t c = 0; c < whole_columns; c += n) {
        Vector<T> a[n];
        for (int i = 0; i < n; ++i) __builtin_memcpy(&a[i], column[c + i] + r * item, sizeof(a[i]));
        transpose_vectors<T>(a);
        char* square = to + r * to_stride + c * item;
        for (int i = 0; i < n; ++i) __builtin_memcpy(square + i * to_stride, &a[i], sizeof(a[i]));
      }
  }
  transpose_edge<T>(column.from(whole_columns, 0), to + whole_columns * int64_t(sizeof(T)),
                    to_stride, whole_rows, columns - whole_columns);
  transpose_edge<T>(column.from(0, whole_rows * int64_t(sizeof(T))), to + whole_rows * to_stride,
                    to_stride, rows - whole_rows, columns);
}

// Few columns that become rows without gaps.
template <class T, int columns>
void alternate(const char* from, int64_t from_stride, char* to, int64_t rows) {
  const T* in[columns];
  for (int c = 0; c < columns; ++c) in[c] = reinterpret_cast<const T*>(from + c * from_stride);
  T* out = reinterpret_cast<T*>(to);
#pragma omp simd
  for (int64_t r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) out[columns * r + c] = in[c][r];
}

// Two rows: one load brings both elements of a column.
template <class T>
void deal_pairs(const char* from, int64_t from_stride, char* to, int64_t to_stride,
                int64_t columns) {
  constexpr int n = kWidth<T>, item = sizeof(T);
  using Pair =
      std::conditional_t<item == 1, uint16_t, std::conditional_t<item == 2, uint32_t, uint64_t>>;
  typedef Pair Pairs __attribute__((vector_size(sizeof(Vector<T>))));
  auto load = [&](int64_t c) __attribute__((always_inline)) {
    Pairs pairs;
#pragma GCC unroll 16
    for (int i = 0; i < n / 2; ++i) {
      Pair pair;
      __builtin_memcpy(&pair, from + (c + i) * from_stride, sizeof(pair));
      pairs[i] = pair;
    }
    return Vector<T>(pairs);
  };
  int64_t c = 0;
  for (; c + n <= columns; c += n) {
    Vector<T> low = load(c), high = load(c + n / 2);
    store_vector(reinterpret_cast<T*>(to + c * item), every_second<T, 0>(low, high));
    store_vector(reinterpret_cast<T*>(to + to_stride + c * item), every_second<T, 1>(low, high));
  }
  transpose_edge<T>(EvenColumns{from + c * from_stride, from_stride}, to + c * item, to_stride, 2,
                    columns - c);
}

template <class T>
void transpose(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t rows,
               int64_t columns) {
  if (to_stride == columns * int64_t(sizeof(T))) {
    if (columns == 2) return alternate<T, 2>(from, from_stride, to, rows);
    if (columns == 3) return alternate<T, 3>(from, from_stride, to, rows);
    if (columns == 4) return alternate<T, 4>(from, from_stride, to, rows);
  }
  if constexpr (sizeof(T) < 8)
    if (rows == 2) return deal_pairs<T>(from, from_stride, to, to_stride, columns);
  transpose_squares<T>(EvenColumns{from, from_stride}, to, to_stride, rows, columns);
}

template <class T>
void transpose_listed(const char* from, const int64_t* offsets, char* to, int64_t to_stride,
                      int64_t rows, int64_t columns) {
  transpose_squares<T>(ListedColumns{from, offsets}, to, to_stride, rows, columns);
}

// memcpy leaves runs of some thousand bytes to the processor's instruction for that, which takes
// ten times as long on Zen 3 where both ends lie nearly alike within a page, as after a roll.
void copy_bytes(char* to, const char* from, int64_t n) {
  constexpr int64_t kLeast = 2048, kMost = 1 << 20;
  if (n < kLeast || n > kMost) {
    __builtin_memcpy(to, from, size_t(n));
    return;
  }
  auto move = [=](int64_t at) __attribute__((always_inline)) {
    store_vector(reinterpret_cast<float*>(to + at),
                 load_vector(reinterpret_cast<const float*>(from + at)));
  };
  for (int64_t i = 0; i < n - kVectorBytes; i += kVectorBytes) move(i);
  move(n - kVectorBytes);
}

#if RUSHLIGHT_ISA == 4
template <class T>
struct SpreadBlock {
  typedef T type __attribute__((vector_size(kVectorBytes / 2)));
};
// Stores a block of elements to every second place. What lies between may be another thread's.
[[gnu::always_inline]] inline void store_spread(uint32_t* to, SpreadBlock<uint32_t>::type block) {
  _mm512_mask_storeu_epi32(to, 0x5555, (__m512i) __builtin_convertvector(block, Vector<uint64_t>));
}
[[gnu::always_inline]] inline void store_spread(uint64_t* to, SpreadBlock<uint64_t>::type block) {
  _mm512_mask_storeu_epi64(to, 0x55,
                           (__m512i)__builtin_shufflevector(block, block, 0, 0, 1, 1, 2, 2, 3, 3));
}
// Copies a run, or repeats its first element, to every second place.
template <class T>
void spread(T* to, const T* from, bool repeats, int64_t n) {
  using Block = typename SpreadBlock<T>::type;
  constexpr int64_t kBlock = sizeof(Block) / sizeof(T);
  const Block filled = Block{} + *from;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    Block block = filled;
    if (!repeats) __builtin_memcpy(&block, from + i, sizeof(block));
    store_spread(to + 2 * i, block);
  }
  for (; i < n; ++i) to[2 * i] = from[repeats ? 0 : i];
}
#endif

struct Item16 {
  uint64_t low, high;
};

template <class T>
void copy_run(char* to, int64_t to_stride, const char* from, int64_t from_stride, int64_t n) {
  constexpr int64_t item = sizeof(T);
  T* out = reinterpret_cast<T*>(to);
  auto in = [&](int64_t i) { return *reinterpret_cast<const T*>(from + i * from_stride); };
  if (to_stride == item && from_stride == 0) {
    T value = in(0);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = value;
  } else if (to_stride == item && from_stride == item) {
    copy_bytes(to, from, n * item);
  } else if (to_stride == item && from_stride == -item) {
    const T* last = reinterpret_cast<const T*>(from);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = last[-i];
  } else if (to_stride == item && from_stride == 2 * item) {
    const T* first = reinterpret_cast<const T*>(from);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = first[2 * i];
  } else if (to_stride == item) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = in(i);
  } else {
#if RUSHLIGHT_ISA == 4
    if constexpr (item == 4 || item == 8)
      if (to_stride == 2 * item && (from_stride == item || from_stride == 0))
        return spread(out, reinterpret_cast<const T*>(from), from_stride == 0, n);
#endif
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<T*>(to + i * to_stride) = in(i);
  }
}

// Rows that are no shorter than a piece: in pieces, of which the last one may overlap.
template <int piece>
void copy_short_rows(char* to, int64_t to_stride, const char* from, int64_t from_stride,
                     int64_t rows, int64_t bytes) {
  const int64_t last = bytes - piece;
  for (int64_t r = 0; r < rows; ++r, to += to_stride, from += from_stride) {
    for (int64_t i = 0; i < last; i += piece) __builtin_memcpy(to + i, from + i, piece);
    __builtin_memcpy(to + last, from + last, piece);
  }
}

// Rows one behind the other, each of one element again and again: in whole vectors, over whose ends
// the next row goes.
template <class T>
void fill_short_rows(char* to, const char* from, int64_t from_stride, int64_t rows, int64_t n) {
  typedef T Filled __attribute__((vector_size(kVectorBytes)));
  const int64_t bytes = n * int64_t(sizeof(T));
  const char* end = to + rows * bytes;
  auto value = [&] { return *reinterpret_cast<const T*>(from); };
  for (; end - to >= bytes + kVectorBytes; to += bytes, from += from_stride) {
    const Filled filled = Filled{} + value();
    for (int64_t i = 0; i < bytes; i += kVectorBytes)
      __builtin_memcpy(to + i, &filled, sizeof(filled));
  }
  for (; to < end; to += bytes, from += from_stride)
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<T*>(to)[i] = value();
}

// Rows of a few elements are copied as columns, in blocks of rows that stay in the cache, unless
// they fill vectors.
template <class T>
void copy_rows(char* to, RowStrides to_strides, const char* from, RowStrides from_strides,
               int64_t rows, int64_t n) {
  constexpr int64_t kShort = 8, kBlock = 256, item = sizeof(T), kBytes = 512;
  if (to_strides.step == item && from_strides.step == item && n * item >= 8 && n * item <= kBytes) {
    auto* copy = n * item < 16                 ? &copy_short_rows<8>
                 : n * item < 2 * kVectorBytes ? &copy_short_rows<16>
                                               : &copy_short_rows<kVectorBytes>;
    return copy(to, to_strides.row, from, from_strides.row, rows, n * item);
  }
  if constexpr (item <= 8)
    if (to_strides.step == item && from_strides.step == 0 && to_strides.row == n * item &&
        n * item <= kBytes)
      return fill_short_rows<T>(to, from, from_strides.row, rows, n);
  if (n > kShort || rows <= n) {
    for (int64_t r = 0; r < rows; ++r)
      copy_run<T>(to + r * to_strides.row, to_strides.step, from + r * from_strides.row,
                  from_strides.step, n);
    return;
  }
  for (int64_t r = 0; r < rows; r += kBlock)
    for (int64_t c = 0; c < n; ++c)
      copy_run<T>(to + r * to_strides.row + c * to_strides.step, to_strides.row,
                  from + r * from_strides.row + c * from_strides.step, from_strides.row,
                  rows - r < kBlock ? rows - r : kBlock);
}

}  // namespace

extern const LayoutLoops layout_loops;
constexpr LayoutLoops layout_loops = {
    {&transpose<uint8_t>, &transpose<uint16_t>, &transpose<uint32_t>, &transpose<uint64_t>,
     &transpose<Item16>},
    {&transpose_listed<uint8_t>, &transpose_listed<uint16_t>, &transpose_listed<uint32_t>,
     &transpose_listed<uint64_t>, &transpose_listed<Item16>},
    {&copy_rows<uint8_t>, &copy_rows<uint16_t>, &copy_rows<uint32_t>, &copy_rows<uint64_t>,
     &copy_rows<Item16>}};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
