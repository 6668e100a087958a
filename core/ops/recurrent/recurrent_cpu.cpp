// Owns the walk of a recurrent layer through its steps on the CPU; recurrent_isa.cpp has the inner
// loops.
//
// Sequences do not depend on each other: each thread takes some of them through all steps, and no
// thread waits for another.
#include <algorithm>
#include <cstring>
#include <memory>

#include "core/device/onednn.h"
#include "core/device/openblas.h"
#include "core/device/threads.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/matmul/row_products.h"
#include "core/ops/operands.h"
#include "core/ops/recurrent/recurrent.h"
#include "core/ops/recurrent/recurrent_loops.h"

namespace rushlight {

ISA_TABLES(RecurrentLoops, recurrent_loops)

namespace {

template <class T>
const RecurrentLoopsOf<T>& loops() {
  return active_of<T>(recurrent_loops_sets);
}

template <class T>
T* data_or_null(const Tensor& t) {
  return t.defined() ? t.data<T>() : nullptr;
}

// Elements of a matrix that are worth a thread, to pack and to multiply with.
constexpr int64_t kPackedPerThread = 1 << 16, kReadPerThread = 1 << 17;

// A matrix b of k x n that is multiplied from the right once in each step.
template <class T>
class StepMatrix {
 public:
  StepMatrix() = default;
  // `matrix` itself, or its transpose. Packing pays when several rows meet it several times; halves
  // are multiplied as they are.
  StepMatrix(const Tensor& matrix, bool transposed, int64_t rows, int64_t steps)
      : matrix_(matrix),
        transposed_(transposed),
        k_(matrix.size(transposed ? 1 : 0)),
        n_(matrix.size(transposed ? 0 : 1)) {
    if (rows < 2 * steps || steps < 4 || is_half(matrix.dtype())) return;
    const auto& loop = loops<T>();
    packed_ = std::make_unique_for_overwrite<T[]>(size_t(loop.packed_size(k_, n_)));
    int64_t panels = loop.panels(n_);
    parallel_for(0, panels, kPackedPerThread * panels / (k_ * n_ + 1) + 1,
                 [&](int64_t begin, int64_t end) {
                   loop.pack(matrix_.data<T>(), transposed, k_, n_, begin, end, packed_.get());
                 });
  }

  // c = a @ b, or c += a @ b, for m rows; rows of a and c are dense.
  void multiply(const T* a, T* c, int64_t m, bool accumulate) const {
    if (m == 0 || n_ == 0) return;
    if (k_ == 0) {
      if (!accumulate) std::fill_n(c, m * n_, T(0));
    } else if (is_half(matrix_.dtype())) {
      multiply_halves(a, c, m, accumulate);
    } else if (packed_) {
      loops<T>().multiply(a, k_, packed_.get(), c, n_, m, n_, k_, accumulate);
    } else {
      // Few rows: time goes into reading the matrix.
      parallel_for(0, n_, kReadPerThread / (k_ + 1) + 1, [&](int64_t begin, int64_t end) {
        const T* part = matrix_.data<T>() + begin * (transposed_ ? k_ : 1);
        openblas::gemm(dtype_of<T>, false, transposed_, m, end - begin, k_, 1, a, k_, part,
                       transposed_ ? k_ : n_, accumulate ? 1 : 0, c + begin, n_);
      });
    }
  }

 private:
  void multiply_halves(const T* a, T* c, int64_t m, bool accumulate) const {
    DType dtype = matrix_.dtype();
    auto rows = std::make_unique_for_overwrite<char[]>(size_t(m * k_) * dtype_size(dtype));
    cast_loop(dtype_of<T>, dtype)(a, rows.get(), m * k_);
    ASSERT(multiply_on_cpu(
        {.dtype = dtype,
         .m = m,
         .n = n_,
         .k = k_,
         .a = {rows.get(), {false, k_}},
         .b = {static_cast<const char*>(matrix_.data()), {transposed_, transposed_ ? k_ : n_}},
         .c = reinterpret_cast<char*>(c),
         .beta = double(accumulate),
         .is_wide = true}));
  }

  Tensor matrix_;
  bool transposed_ = false;
  int64_t k_ = 0, n_ = 0;
  std::unique_ptr<T[]> packed_;
};

// Whether halves are multiplied with a weight as they are: few rows of them, or tiles. Those have
// the size of the step, and each size takes oneDNN milliseconds once.
bool takes_halves(const RecurrentLayer& layer, const Tensor& weight) {
  bool is_short =
      layer.batch() <= few_rows(weight.dtype()) && weight.size(1) % kRowProductColumns == 0;
  bool is_tiled =
      weight.dtype() == DType::bfloat16 && layer.is_dense() && weight.size(0) >= kFewDots;
  return is_short || (is_tiled && onednn::has_bfloat16_tiles());
}

// Sequences that are worth a thread.
int64_t grain_of(const RecurrentLayer& layer) {
  double work = double(layer.steps.size()) * double(layer.w_hh.numel() + 64 * layer.hidden);
  return int64_t(kMultiplicationsPerThread / std::max(work, 1.0)) + 1;
}

// Where the values of a sequence one step before lie: those of the step before in `values`, or
// those before the first step.
template <class T>
struct Before {
  const T *values, *first;
  int64_t width;

  const T* row(const Step* previous, int64_t sequence) const {
    if (previous && sequence < previous->count)
      return values + (previous->begin + sequence) * width;
    return first + sequence * width;
  }
};

// Calls f(sequence, count) for the sequences [begin, end) of a step, in runs whose values one step
// before lie side by side.
template <class F>
void for_runs(const Step* previous, int64_t begin, int64_t end, F&& f) {
  int64_t split = previous ? std::clamp(previous->count, begin, end) : begin;
  if (split > begin) f(begin, split - begin);
  if (end > split) f(split, end - split);
}

const Step* previous_of(const RecurrentLayer& layer, size_t s) {
  return s > 0 ? &layer.steps[s - 1] : nullptr;
}

}  // namespace

RecurrentResult run_recurrent_cpu(const RecurrentLayer& layer, const Tensor& projected,
                                  const Tensor& candidate_bias) {
  DType dtype = projected.dtype();
  int64_t n = layer.hidden, outputs = layer.hx.size(1), width = layer.gate_count() * n;
  bool keeps = layer.is_lstm() || layer.is_gru();
  RecurrentResult result;
  result.gates = keeps ? projected : empty(Shape{layer.rows, 0}, dtype);
  result.output = keeps ? empty(Shape{layer.rows, outputs}, dtype) : projected;
  result.inner = empty(Shape{layer.rows, keeps ? n : 0}, dtype);
  by_type(dtype, [&]<class T>(Tag<T>) {
    const auto& loop = loops<T>();
    int64_t steps = int64_t(layer.steps.size());
    auto step_matrix = [&](const Tensor& weight) {
      bool is_given = !is_half(weight.dtype()) || takes_halves(layer, weight);
      return StepMatrix<T>(is_given ? weight : to_dtype(weight, dtype), true, layer.rows, steps);
    };
    StepMatrix<T> from_hidden = step_matrix(layer.w_hh), project;
    if (layer.w_hr.defined()) project = step_matrix(layer.w_hr);
    T *gates = projected.data<T>(), *inner = result.inner.data<T>();
    T* output = result.output.data<T>();
    Before<T> h_before{output, layer.hx.data<T>(), outputs};
    Before<T> c_before{inner, data_or_null<T>(layer.cx), n};
    std::vector<T> no_bias(layer.is_gru() && !candidate_bias.defined() ? size_t(n) : 0);
    const T* bias = candidate_bias.defined() ? candidate_bias.data<T>() : no_bias.data();
    parallel_for(0, layer.batch(), grain_of(layer), [&](int64_t first, int64_t last) {
      // By sequence: what is projected for lstm, the hidden part of gates for gru.
      int64_t scratch_width = layer.w_hr.defined() ? n : layer.is_gru() ? width : 0;
      auto scratch = std::make_unique_for_overwrite<T[]>(size_t(scratch_width * (last - first)));
      for (size_t s = 0; s < layer.steps.size(); ++s) {
        auto [begin, count] = layer.steps[s];
        const Step* previous = previous_of(layer, s);
        int64_t end = std::min(last, count);
        for_runs(previous, first, end, [&](int64_t sequence, int64_t many) {
          const T* h = h_before.row(previous, sequence);
          if (layer.is_gru())
            from_hidden.multiply(h, &scratch[size_t((sequence - first) * width)], many, false);
          else from_hidden.multiply(h, gates + (begin + sequence) * width, many, true);
        });
        for (int64_t sequence = first; sequence < end; ++sequence) {
          int64_t row = begin + sequence;
          T *g = gates + row * width, *h = output + row * outputs;
          T* line = scratch.get() + (sequence - first) * scratch_width;
          switch (layer.cell) {
            case Cell::lstm:
              loop.lstm(g, c_before.row(previous, sequence), inner + row * n,
                        layer.w_hr.defined() ? line : h, n);
              break;
            case Cell::gru:
              loop.gru(g, line, bias, h_before.row(previous, sequence), inner + row * n, h, n);
              break;
            case Cell::tanh: loop.tanh(g, n); break;
            case Cell::relu: loop.relu(g, n); break;
          }
        }
        if (layer.w_hr.defined() && end > first)
          project.multiply(scratch.get(), output + (begin + first) * outputs, end - first, false);
      }
    });
  });
  return result;
}

RecurrentFlow recurrent_backward_cpu(const RecurrentLayer& layer, const RecurrentResult& result,
                                     const RecurrentResult& grads) {
  DType dtype = result.output.dtype();
  int64_t n = layer.hidden, outputs = layer.hx.size(1), width = layer.gate_count() * n;
  auto zeroed = [&](int64_t columns) {
    Tensor t = empty(Shape{layer.batch(), columns}, dtype);
    std::memset(t.data(), 0, size_t(t.numel()) * dtype_size(dtype));
    return t;
  };
  RecurrentFlow flow;
  flow.from_input = empty(Shape{layer.rows, width}, dtype);
  flow.from_hidden = layer.is_gru() ? empty(Shape{layer.rows, width}, dtype) : flow.from_input;
  flow.hx = zeroed(outputs);
  if (layer.is_lstm()) flow.cx = zeroed(n);
  if (layer.w_hr.defined()) flow.output = empty(Shape{layer.rows, outputs}, dtype);
  by_type(dtype, [&]<class T>(Tag<T>) {
    const auto& loop = loops<T>();
    int64_t steps = int64_t(layer.steps.size());
    StepMatrix<T> to_hidden(layer.w_hh, false, layer.rows, steps), unproject;
    if (layer.w_hr.defined()) unproject = StepMatrix<T>(layer.w_hr, false, layer.rows, steps);
    const T *gates = result.gates.data<T>(), *inner = result.inner.data<T>();
    const T* output = result.output.data<T>();
    Before<T> h_before{output, layer.hx.data<T>(), outputs};
    Before<T> c_before{inner, data_or_null<T>(layer.cx), n};
    const T *g_output = data_or_null<T>(grads.output), *g_inner = data_or_null<T>(grads.inner);
    T *g_h = flow.hx.data<T>(), *g_c = data_or_null<T>(flow.cx);
    T *g_input = flow.from_input.data<T>(), *g_hidden = flow.from_hidden.data<T>();
    T* g_projected = data_or_null<T>(flow.output);
    parallel_for(0, layer.batch(), grain_of(layer), [&](int64_t first, int64_t last) {
      int64_t scratch_width = layer.w_hr.defined() ? n : 0;
      auto scratch = std::make_unique_for_overwrite<T[]>(size_t(scratch_width * (last - first)));
      for (size_t s = layer.steps.size(); s-- > 0;) {
        auto [begin, count] = layer.steps[s];
        const Step* previous = previous_of(layer, s);
        int64_t end = std::min(last, count);
        if (end <= first) continue;
        int64_t many = end - first, start = begin + first;
        if (g_output) loop.add(g_output + start * outputs, g_h + first * outputs, many * outputs);
        if (g_inner) loop.add(g_inner + start * n, g_c + first * n, many * n);
        if (g_projected) {
          std::copy_n(g_h + first * outputs, many * outputs, g_projected + start * outputs);
          unproject.multiply(g_h + first * outputs, scratch.get(), many, false);
        }
        for (int64_t sequence = first; sequence < end; ++sequence) {
          int64_t row = begin + sequence;
          T *g = g_h + sequence * outputs, *to = g_input + row * width;
          switch (layer.cell) {
            case Cell::lstm:
              loop.lstm_grad(gates + row * width, c_before.row(previous, sequence), inner + row * n,
                             g_projected ? scratch.get() + (sequence - first) * n : g,
                             g_c + sequence * n, to, n);
              break;
            case Cell::gru:
              loop.gru_grad(gates + row * width, inner + row * n, h_before.row(previous, sequence),
                            g, to, g_hidden + row * width, n);
              break;
            case Cell::tanh: loop.tanh_grad(output + row * n, g, to, n); break;
            case Cell::relu: loop.relu_grad(output + row * n, g, to, n); break;
          }
        }
        to_hidden.multiply(g_hidden + start * width, g_h + first * outputs, many, layer.is_gru());
      }
    });
  });
  return flow;
}

}  // namespace rushlight
