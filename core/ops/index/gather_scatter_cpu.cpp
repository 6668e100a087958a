// Defines the kernels of gather and scatter for the CPU.
#include "core/device/threads.h"
#include "core/ops/index/gather_scatter.h"
#include "core/ops/index/index.h"
#include "core/ops/index/index_loops.h"
#include "core/tensor/dims.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

constexpr int64_t kGrain = 1 << 13;       // elements that are worth a thread
constexpr int64_t kCacheBytes = 1 << 18;  // of the second level, for one thread

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
  T* moved(int64_t place) const {
    CHECK(uint64_t(place) < uint64_t(dim_size), "index ", place, " is out of bounds for dimension ",
          dim, " with size ", dim_size);
    return self + place * dim_stride;
  }
  // The element of self that position k names.
  T& at(int64_t k) const { return moved(index[k * index_step])[k * self_step]; }
};

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
  // So many columns at a time that all their places of self stay in the cache.
  int64_t cached = kCacheBytes / int64_t(sizeof(T)) / std::max<int64_t>(self.sizes()[dim], 1);
  int64_t block = along_last ? columns : std::max<int64_t>(cached, 64 / sizeof(T));
  int64_t per_column = index.numel() / (checked_numel(outer) * columns);
  int64_t grain = kGrain / per_column + 1;
  parallel_for(0, checked_numel(outer) * columns, grain, [&](int64_t begin, int64_t end) {
    Odometer<3> at(outer, {strides[0], strides[1], strides[2]}, begin / columns);
    for (int64_t i = begin; i < end;) {
      int64_t column = i % columns, width = std::min({columns - column, end - i, block});
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
      if (i % columns == 0) at.next();
    }
  });
}

constexpr bool is_extreme(Scatter how) {
  return how == Scatter::maximum || how == Scatter::minimum;
}

template <Scatter how, class T>
T combined(T a, T b) {
  if constexpr (std::is_same_v<T, Half>) {
    return to_half(combined<how>(to_float(a), to_float(b)));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(combined<how>(to_float(a), to_float(b)));
  } else if constexpr (std::is_same_v<T, bool>) {
    return how == Scatter::add || how == Scatter::maximum ? a || b : a && b;
  } else if constexpr (is_extreme(how) && std::is_arithmetic_v<T>) {
    bool stays = how == Scatter::maximum ? a > b : a < b;
    return (a != a) | stays ? a : b;
  } else if constexpr (is_extreme(how)) {
    CHECK(false, ErrorKind::kNotImplemented, "complex numbers have no order");
  } else if constexpr (std::is_integral_v<T>) {
    return how == Scatter::add ? T(uint64_t(a) + uint64_t(b)) : T(uint64_t(a) * uint64_t(b));
  } else {
    return how == Scatter::add ? a + b : a * b;
  }
}

template <Scatter how>
void combine(const Tensor& self, size_t d, const Tensor& places, const Tensor& values) {
  visit_dtype(self.dtype(), [&]<class T>(Tag<T>) {
    for_each_run<T>(self, d, places, values, false, [&](const Run<T>& run) {
      if (how == Scatter::add && run.is_rigid() && run.self_step != 0) {
        add_run(self.dtype(), reinterpret_cast<char*>(run.moved(*run.index)),
                run.self_step * int64_t(sizeof(T)), reinterpret_cast<const char*>(run.other),
                run.other_step * int64_t(sizeof(T)), run.length);
        return;
      }
      if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
        if (is_extreme(how) && run.is_rigid() && run.self_step == 1 && run.other_step == 1) {
          auto& loops = how == Scatter::maximum ? index_loops().maximum : index_loops().minimum;
          return loops[sizeof(T) / 8](run.moved(*run.index), run.other, run.length);
        }
      for (int64_t k = 0; k < run.length; ++k) {
        T& to = run.at(k);
        to = combined<how>(to, run.other[k * run.other_step]);
      }
    });
  });
}

}  // namespace

void gather_cpu(const Tensor& self, size_t d, const Tensor& places, const Tensor& out) {
  visit_item(int64_t(out.itemsize()), [&]<class T>(Tag<T>) {
    auto take = index_loops().take[__builtin_ctzll(sizeof(T))];
    for_each_run<T>(self, d, places, out, true, [&](const Run<T>& run) {
      if (run.is_rigid()) {
        copy_run(reinterpret_cast<char*>(run.other), run.other_step * int64_t(sizeof(T)),
                 reinterpret_cast<const char*>(run.moved(*run.index)),
                 run.self_step * int64_t(sizeof(T)), sizeof(T), run.length);
      } else if (run.index_step == 1 && run.other_step == 1 &&
                 index_loops().in_range(run.index, run.length, run.dim_size)) {
        take(run.self, run.dim_stride, run.self_step, run.index, run.length, run.other);
      } else {
        for (int64_t k = 0; k < run.length; ++k) run.other[k * run.other_step] = run.at(k);
      }
    });
  });
}

void scatter_cpu(const Tensor& self, size_t d, const Tensor& places, const Tensor& values,
                 Scatter how) {
  switch (how) {
    case Scatter::write:
      visit_item(int64_t(self.itemsize()), [&]<class T>(Tag<T>) {
        for_each_run<T>(self, d, places, values, false, [](const Run<T>& run) {
          for (int64_t k = 0; k < run.length; ++k) run.at(k) = run.other[k * run.other_step];
        });
      });
      return;
    case Scatter::add: return combine<Scatter::add>(self, d, places, values);
    case Scatter::multiply: return combine<Scatter::multiply>(self, d, places, values);
    case Scatter::maximum: return combine<Scatter::maximum>(self, d, places, values);
    case Scatter::minimum: return combine<Scatter::minimum>(self, d, places, values);
  }
}

}  // namespace rushlight
