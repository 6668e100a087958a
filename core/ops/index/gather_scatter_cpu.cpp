// Defines the kernels of gather and scatter for the CPU.
#include "core/device/threads.h"
#include "core/ops/index/gather_scatter.h"
#include "core/ops/index/index.h"
#include "core/ops/index/visit_combination.h"
#include "core/tensor/dims.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

constexpr int64_t kGrain = 1 << 13;     // elements that are worth a thread
constexpr int64_t kTogether = 1 << 10;  // columns that are walked along dim together

// A run of positions of the index: element k lies at self + k * self_step (in front of the move
// along dim), index + k * index_step, other + k * other_step.
template <class T>
struct Run {
  T* self;
  const int64_t* index;
  T* other;
  int64_t self_step, index_step, other_step, length;
  int64_t dim_stride, dim_size;
  size_t dim;

  // Whether the whole run is moved by one place: then it is a run of self.
  bool is_rigid() const { return index_step == 0 || length == 1; }
  T* moved() const { return self + checked(*index) * dim_stride; }
  int64_t checked(int64_t place) const {
    if (uint64_t(place) >= uint64_t(dim_size)) refuse(place);
    return place;
  }
  [[noreturn, gnu::cold]] void refuse(int64_t place) const {
    CHECK(false, "index ", place, " is out of bounds for dimension ", dim, " with size ", dim_size);
    __builtin_unreachable();
  }
};

// Calls f(element of self, element of other) for a run, in its order. The run is a copy, which
// stays in registers, since no write can reach it.
template <class T, class F>
void for_each_element(Run<T> run, F f) {
  auto loop = [=](int64_t dim_stride, int64_t self_step, int64_t index_step,
                  int64_t other_step) __attribute__((always_inline)) {
    for (int64_t k = 0; k < run.length; ++k)
      f(run.self[run.checked(run.index[k * index_step]) * dim_stride + k * self_step],
        run.other[k * other_step]);
  };
  bool in_row = run.dim_stride == 1 && run.self_step == 0;
  if (in_row && run.index_step == 1 && run.other_step == 1) loop(1, 0, 1, 1);
  else loop(run.dim_stride, run.self_step, run.index_step, run.other_step);
}

// Calls f(run) for all positions of the index. Threads share what lies beside dim, so that runs
// which could meet come in order on one thread; when `free`, they share everything.
template <class T, class F>
void for_each_run(const Tensor& self, size_t dim, const Tensor& index, const Tensor& other,
                  bool free, F&& f) {
  size_t last = index.sizes().size() - 1;  // the dim of the runs
  while (last > 0 && index.sizes()[last] == 1) --last;
  Shape outer, strides[3];
  const Tensor* lanes[] = {&self, &index, &other};
  for (size_t d = 0; d < index.sizes().size(); ++d) {
    if (d == dim || d == last) continue;
    outer.push_back(index.sizes()[d]);
    for (int k = 0; k < 3; ++k) strides[k].push_back(lanes[k]->strides()[d]);
  }
  bool along_last = dim == last;
  int64_t inner = index.sizes()[last], columns = along_last && !free ? 1 : inner;
  int64_t along = along_last ? 1 : index.sizes()[dim];
  int64_t self_step = along_last ? 0 : self.strides()[last];
  int64_t index_step = index.strides()[last], other_step = other.strides()[last];
  int64_t block = along_last ? columns : kTogether;
  int64_t per_column = index.numel() / (checked_numel(outer) * columns);
  int64_t grain = kGrain / per_column + 1;
  parallel_for(0, checked_numel(outer) * columns, grain, [&](int64_t begin, int64_t end) {
    Odometer<3> at(outer, {strides[0], strides[1], strides[2]}, begin / columns);
    for (int64_t i = begin, column = begin % columns; i < end;) {
      int64_t width = std::min({columns - column, end - i, block});
      Run<T> run{self.data<T>() + at.at(0) + column * self_step,
                 index.data<int64_t>() + at.at(1) + column * index_step,
                 other.data<T>() + at.at(2) + column * other_step,
                 self_step,
                 index_step,
                 other_step,
                 columns == inner ? width : inner,
                 self.strides()[dim],
                 self.sizes()[dim],
                 dim};
      for (int64_t j = 0; j < along; ++j) {
        f(run);
        run.index += index.strides()[dim];
        run.other += other.strides()[dim];
      }
      i += width;
      column += width;
      if (column < columns) continue;
      column = 0;
      at.next();
    }
  });
}

}  // namespace

void gather_cpu(const Tensor& self, size_t d, const Tensor& places, const Tensor& out) {
  visit_item(int64_t(out.itemsize()), [&]<class T>(Tag<T>) {
    for_each_run<T>(self, d, places, out, true, [&](const Run<T>& run) {
      if (run.is_rigid())
        copy_run(reinterpret_cast<char*>(run.other), run.other_step * int64_t(sizeof(T)),
                 reinterpret_cast<const char*>(run.moved()), run.self_step * int64_t(sizeof(T)),
                 sizeof(T), run.length);
      else for_each_element(run, [](const T& from, T& to) { to = from; });
    });
  });
}

void scatter_cpu(const Tensor& self, size_t d, const Tensor& places, const Tensor& values,
                 Scatter how) {
  if (how == Scatter::write) {
    visit_item(int64_t(self.itemsize()), [&]<class T>(Tag<T>) {
      for_each_run<T>(self, d, places, values, false, [](const Run<T>& run) {
        for_each_element(run, [](T& to, const T& from) { to = from; });
      });
    });
    return;
  }
  CombineRun combine_run(how, self.dtype());
  visit_combination(how, self.dtype(), [&]<class Combine>(Combine combine) {
    using T = typename Combine::Type;
    for_each_run<T>(self, d, places, values, false, [&](const Run<T>& run) {
      if (run.is_rigid() && run.self_step != 0)
        combine_run(reinterpret_cast<char*>(run.moved()), run.self_step * int64_t(sizeof(T)),
                    reinterpret_cast<const char*>(run.other), run.other_step * int64_t(sizeof(T)),
                    run.length);
      else for_each_element(run, [combine](T& to, const T& from) { to = combine(to, from); });
    });
  });
}

}  // namespace rushlight
