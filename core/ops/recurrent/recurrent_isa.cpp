// Owns the inner loops of recurrent layers: the products of a few rows with one matrix, step after
// step, and the formulas of the cells.
//
// A library packs the matrix anew for each product, which for a few rows costs as much as the
// product. Here it is packed once for all steps: in panels of as many columns as fill three
// registers, each panel row by row.
#include "core/ops/recurrent/recurrent_loops.h"

#include "core/tensor/vectors.h"

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {
namespace {

constexpr int kPanelVectors = 3;
// Rows at a time, so that sums of a panel stay in the 32 registers of AVX-512, or in 16.
constexpr int kTileRows = RUSHLIGHT_ISA == 4 ? 8 : 4;

template <class T>
constexpr int64_t kPanel = kPanelVectors * kWidth<T>;

template <class T>
int64_t panels(int64_t n) {
  return (n + kPanel<T> - 1) / kPanel<T>;
}

template <class T>
int64_t packed_size(int64_t k, int64_t n) {
  return (n + kWidth<T> - 1) / kWidth<T> * kWidth<T> * k;
}

// to[i * to_row + c] = from[c * from_row + i] for i < k and c < columns: squares in registers, and
// their rests element by element.
template <class T>
void transpose_panel(const T* from, int64_t from_row, int64_t k, int64_t columns, T* to,
                     int64_t to_row) {
  constexpr int64_t side = kWidth<T>;
  for (int64_t c = 0; c < columns; c += side)
    for (int64_t i = 0; i < k; i += side) {
      if (c + side <= columns && i + side <= k) {
        Vector<T> square[side];
#pragma GCC unroll 16
        for (int64_t r = 0; r < side; ++r) square[r] = load_vector(from + (c + r) * from_row + i);
        transpose_vectors<T>(square);
#pragma GCC unroll 16
        for (int64_t r = 0; r < side; ++r) store_vector(to + (i + r) * to_row + c, square[r]);
        continue;
      }
      int64_t c_end = c + side < columns ? c + side : columns, i_end = i + side < k ? i + side : k;
      for (int64_t y = c; y < c_end; ++y)
        for (int64_t x = i; x < i_end; ++x) to[x * to_row + y] = from[y * from_row + x];
    }
}

template <class T>
void pack(const T* matrix, bool transposed, int64_t k, int64_t n, int64_t begin, int64_t end,
          T* packed) {
  for (int64_t j = begin * kPanel<T>; j < end * kPanel<T> && j < n; j += kPanel<T>) {
    int64_t columns = n - j < kPanel<T> ? n - j : kPanel<T>;
    int64_t width = (columns + kWidth<T> - 1) / kWidth<T> * kWidth<T>;
    T* to = packed + j * k;
    if (transposed) {
      transpose_panel(matrix + j * k, k, k, columns, to, width);
    } else {
      for (int64_t i = 0; i < k; ++i)
        for (int64_t c = 0; c < columns; ++c) to[i * width + c] = matrix[i * n + j + c];
    }
    for (int64_t i = 0; i < k; ++i)
      for (int64_t c = columns; c < width; ++c) to[i * width + c] = T(0);
  }
}

// A tile of rows and vectors of c, of which `columns` columns exist.
template <class T, int rows, int vectors>
void multiply_tile(const T* a, int64_t a_row, const T* panel, T* c, int64_t c_row, int64_t k,
                   int64_t columns, bool accumulate) {
  constexpr int64_t width = vectors * kWidth<T>;
  Vector<T> sums[rows][vectors] = {};
  for (int64_t i = 0; i < k; ++i, panel += width) {
    Vector<T> b[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) b[v] = load_vector(panel + v * kWidth<T>);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      Vector<T> x = broadcast(a[r * a_row + i]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[r][v] = multiply_add(x, b[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
    T* to = c + r * c_row;
    if (columns == width) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v, to += kWidth<T>)
        store_vector(to, accumulate ? load_vector(to) + sums[r][v] : sums[r][v]);
    } else {
      T line[width];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) store_vector(line + v * kWidth<T>, sums[r][v]);
      for (int64_t j = 0; j < columns; ++j) to[j] = accumulate ? to[j] + line[j] : line[j];
    }
  }
}

template <class T>
using Tile = void (*)(const T*, int64_t, const T*, T*, int64_t, int64_t, int64_t, bool);

template <class T>
struct Tiles {
  Tile<T> run[kTileRows][kPanelVectors];
};
template <class T, int rows = 1>
constexpr void add_tiles(Tiles<T>& tiles) {
  tiles.run[rows - 1][0] = multiply_tile<T, rows, 1>;
  tiles.run[rows - 1][1] = multiply_tile<T, rows, 2>;
  tiles.run[rows - 1][2] = multiply_tile<T, rows, 3>;
  if constexpr (rows < kTileRows) add_tiles<T, rows + 1>(tiles);
}

template <class T>
void multiply(const T* a, int64_t a_row, const T* packed, T* c, int64_t c_row, int64_t m, int64_t n,
              int64_t k, bool accumulate) {
  static constexpr Tiles<T> tiles = [] {
    Tiles<T> all{};
    add_tiles(all);
    return all;
  }();
  // Tiles of about equal height: 9 rows are 5 and 4, not 8 and 1.
  int64_t parts = (m + kTileRows - 1) / kTileRows;
  for (int64_t j = 0; j < n; j += kPanel<T>) {
    int64_t columns = n - j < kPanel<T> ? n - j : kPanel<T>;
    int64_t vectors = (columns + kWidth<T> - 1) / kWidth<T>;
    for (int64_t part = 0; part < parts; ++part) {
      int64_t begin = m * part / parts, rows = m * (part + 1) / parts - begin;
      tiles.run[rows - 1][vectors - 1](a + begin * a_row, a_row, packed, c + begin * c_row + j,
                                       c_row, k, columns, accumulate);
    }
    packed += k * vectors * kWidth<T>;
  }
}

template <class T>
void add(const T* x, T* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}

template <class T>
void lstm(T* gates, const T* cell_before, T* cell, T* h, int64_t n) {
  T *in = gates, *forget = gates + n, *candidate = gates + 2 * n, *out = gates + 3 * n;
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) {
    T i = sigmoid(in[j]), f = sigmoid(forget[j]), g = tanh(candidate[j]), o = sigmoid(out[j]);
    T c = f * cell_before[j] + i * g;
    in[j] = i;
    forget[j] = f;
    candidate[j] = g;
    out[j] = o;
    cell[j] = c;
    h[j] = o * tanh(c);
  }
}

template <class T>
void lstm_grad(const T* gates, const T* cell_before, const T* cell, const T* g, T* g_cell,
               T* g_gates, int64_t n) {
  const T *in = gates, *forget = gates + n, *candidate = gates + 2 * n, *out = gates + 3 * n;
  T *g_in = g_gates, *g_forget = g_gates + n, *g_candidate = g_gates + 2 * n,
    *g_out = g_gates + 3 * n;
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) {
    T i = in[j], f = forget[j], u = candidate[j], o = out[j], t = tanh(cell[j]);
    T through_cell = g_cell[j] + g[j] * o * (1 - t * t);
    g_in[j] = through_cell * u * i * (1 - i);
    g_forget[j] = through_cell * cell_before[j] * f * (1 - f);
    g_candidate[j] = through_cell * i * (1 - u * u);
    g_out[j] = g[j] * t * o * (1 - o);
    g_cell[j] = through_cell * f;
  }
}

template <class T>
void gru(T* gates, const T* from_hidden, const T* candidate_bias, const T* h_before, T* inner, T* h,
         int64_t n) {
  T *reset = gates, *update = gates + n, *candidate = gates + 2 * n;
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) {
    T r = sigmoid(reset[j] + from_hidden[j]), z = sigmoid(update[j] + from_hidden[n + j]);
    T m = from_hidden[2 * n + j] + candidate_bias[j];
    T u = tanh(candidate[j] + r * m);
    reset[j] = r;
    update[j] = z;
    candidate[j] = u;
    inner[j] = m;
    h[j] = u + z * (h_before[j] - u);
  }
}

template <class T>
void gru_grad(const T* gates, const T* inner, const T* h_before, T* g, T* g_input, T* g_hidden,
              int64_t n) {
  const T *reset = gates, *update = gates + n, *candidate = gates + 2 * n;
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) {
    T r = reset[j], z = update[j], u = candidate[j];
    T g_candidate = g[j] * (1 - z) * (1 - u * u);
    T g_reset = g_candidate * inner[j] * r * (1 - r);
    T g_update = g[j] * (h_before[j] - u) * z * (1 - z);
    g_input[j] = g_hidden[j] = g_reset;
    g_input[n + j] = g_hidden[n + j] = g_update;
    g_input[2 * n + j] = g_candidate;
    g_hidden[2 * n + j] = g_candidate * r;
    g[j] *= z;
  }
}

template <class T>
void tanh_row(T* h, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) h[j] = tanh(h[j]);
}
template <class T>
void relu_row(T* h, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) h[j] = max(h[j], T(0));
}
template <class T>
void tanh_grad(const T* h, const T* g, T* g_input, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) g_input[j] = g[j] * (1 - h[j] * h[j]);
}
template <class T>
void relu_grad(const T* h, const T* g, T* g_input, int64_t n) {
#pragma omp simd
  for (int64_t j = 0; j < n; ++j) g_input[j] = h[j] <= 0 ? T(0) : g[j];
}

template <class T>
constexpr RecurrentLoopsOf<T> loops_of() {
  return {panels<T>,   packed_size<T>, pack<T>,      multiply<T>, add<T>,       lstm<T>,     gru<T>,
          tanh_row<T>, relu_row<T>,    lstm_grad<T>, gru_grad<T>, tanh_grad<T>, relu_grad<T>};
}

}  // namespace

extern const RecurrentLoops recurrent_loops;
constexpr RecurrentLoops recurrent_loops = {loops_of<float>(), loops_of<double>()};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
