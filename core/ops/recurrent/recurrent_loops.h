// Declares the vectorized loops behind recurrent layers, compiled once per instruction set.
#pragma once

#include "core/tensor/loops.h"

namespace rushlight {

// Rows are those of one sequence at one step; n hidden units, gates side by side.
template <class T>
struct RecurrentLoopsOf {
  // multiply() takes a k x n matrix in panels of columns: how many, and of how many elements.
  int64_t (*panels)(int64_t n);
  int64_t (*packed_size)(int64_t k, int64_t n);
  // Writes panels [begin, end) of a row-major matrix, k x n or its transpose n x k.
  void (*pack)(const T* matrix, bool transposed, int64_t k, int64_t n, int64_t begin, int64_t end,
               T* packed);
  // c = a @ b, or c += a @ b; a is m x k.
  void (*multiply)(const T* a, int64_t a_row, const T* packed, T* c, int64_t c_row, int64_t m,
                   int64_t n, int64_t k, bool accumulate);
  void (*add)(const T* x, T* y, int64_t n);  // y += x

  // Gates before their activations become those after them.
  void (*lstm)(T* gates, const T* cell_before, T* cell, T* h, int64_t n);
  // From the input's part of the gates and that of h; keeps the candidate's part of h.
  void (*gru)(T* gates, const T* from_hidden, const T* candidate_bias, const T* h_before, T* inner,
              T* h, int64_t n);
  void (*tanh)(T* h, int64_t n);
  void (*relu)(T* h, int64_t n);

  // From the gradient g of h to that of the gates before their activations.
  // g_cell is the gradient of the cell, and becomes that of the one before.
  void (*lstm_grad)(const T* gates, const T* cell_before, const T* cell, const T* g, T* g_cell,
                    T* g_gates, int64_t n);
  // g becomes the part of the gradient of the h before that does not flow through gates.
  void (*gru_grad)(const T* gates, const T* inner, const T* h_before, T* g, T* g_input, T* g_hidden,
                   int64_t n);
  void (*tanh_grad)(const T* h, const T* g, T* g_input, int64_t n);
  void (*relu_grad)(const T* h, const T* g, T* g_input, int64_t n);
};

struct RecurrentLoops {
  RecurrentLoopsOf<float> f32;
  RecurrentLoopsOf<double> f64;
};

}  // namespace rushlight
