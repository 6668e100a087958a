// Owns the choice of a way to combine elements for a dtype, as a type that loops inline.
#pragma once

#include "core/base/error.h"
#include "core/ops/index/combine.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

template <Scatter how, class T>
struct Combination {
  using Type = T;
  T operator()(T a, T b) const { return combined<how>(a, b); }
};

// Calls f(Combination<how, T>) for the type T of a dtype.
template <class F>
void visit_combination(Scatter how, DType dtype, F&& f) {
  CHECK(!is_complex(dtype) || (how != Scatter::maximum && how != Scatter::minimum),
        ErrorKind::kNotImplemented, "complex numbers have no order");
  visit_dtype(dtype, [&]<class T>(Tag<T>) {
    constexpr bool has_order = !requires { typename T::value_type; };
    if (how == Scatter::write) f(Combination<Scatter::write, T>());
    else if (how == Scatter::add) f(Combination<Scatter::add, T>());
    else if (how == Scatter::multiply) f(Combination<Scatter::multiply, T>());
    else if constexpr (has_order) {
      if (how == Scatter::maximum) f(Combination<Scatter::maximum, T>());
      else f(Combination<Scatter::minimum, T>());
    }
  });
}

}  // namespace rushlight
