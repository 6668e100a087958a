// Owns the choice of a way to combine elements for a dtype: as a type that loops inline, or as a
// function of runs.
#pragma once

#include "core/base/error.h"
#include "core/ops/index/index_loops.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

template <Scatter how, class T>
struct Combination {
  using Type = T;
  T operator()(T a, T b) const { return combined<how>(a, b); }
};

// How elements of a dtype are combined. Bools are bytes for that, of which any but 0 is true: the
// larger one is "or", the smaller one "and".
struct CombinedAs {
  CombinedAs(Scatter scatter, DType type) : how(scatter), dtype(type) {
    if (!is_bool(type) || scatter == Scatter::write) return;
    bool is_or = scatter == Scatter::add || scatter == Scatter::maximum;
    how = is_or ? Scatter::maximum : Scatter::minimum;
    dtype = DType::uint8;
  }

  Scatter how;
  DType dtype;
};

// Calls f(Combination<how, T>) for the type T that elements of a dtype are combined as.
template <class F>
void visit_combination(Scatter scatter, DType type, F&& f) {
  auto [how, dtype] = CombinedAs(scatter, type);
  CHECK(!is_complex(dtype) || (how != Scatter::maximum && how != Scatter::minimum),
        ErrorKind::kNotImplemented, "complex numbers have no order");
  visit_dtype(dtype, [&]<class T>(Tag<T>) {
    constexpr bool has_order = !requires { typename T::value_type; };
    if (how == Scatter::write) f(Combination<Scatter::write, T>());
    else if constexpr (std::is_same_v<T, bool>) ASSERT(false);  // these are bytes by now
    else if (how == Scatter::add) f(Combination<Scatter::add, T>());
    else if (how == Scatter::multiply) f(Combination<Scatter::multiply, T>());
    else if constexpr (has_order) {
      if (how == Scatter::maximum) f(Combination<Scatter::maximum, T>());
      else f(Combination<Scatter::minimum, T>());
    }
  });
}

// The loop that combines one half after the other, each at its own place.
inline CombineAtLoop combine_halves_at(Scatter how, DType dtype) {
  return index_loops().combine_at[int(how)][dtype == DType::bfloat16];
}

// Combines to[i] with from[i] for runs of elements; steps are in bytes. Not for Scatter::write.
class CombineRun {
 public:
  CombineRun(Scatter how, DType dtype) : as_(how, dtype), item_(int64_t(dtype_size(dtype))) {
    if (int(dtype) < kRealTypes) loop_ = index_loops().combine[int(as_.how)][int(as_.dtype)];
  }
  void operator()(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n) const {
    if (loop_ && to_step == item_) loop_(to, from, from_step, n);
    else combine_others(to, to_step, from, from_step, n);
  }

 private:
  // Targets apart from each other, and dtypes without loops. Defined in index_cpu.cpp.
  void combine_others(char* to, int64_t to_step, const char* from, int64_t from_step,
                      int64_t n) const;

  CombinedAs as_;
  int64_t item_;
  CombineLoop loop_ = nullptr;
};

}  // namespace rushlight
