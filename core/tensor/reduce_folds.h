// Owns the folds, the reductions whose state is one number: map() of an element, merge() of two
// states, finish() of the last one. The same text serves every instruction set and CUDA; lanes.h or
// formula.cuh comes before it.
#pragma once

namespace rushlight::RUSHLIGHT_ISA_NAMESPACE {

struct Sum {
  template <class T>
  static T map(T x, T) {
    return x;
  }
  template <class T>
  static T merge(T a, T b) {
    return a + b;
  }
  template <class T>
  static T finish(T sum, int64_t, double) {
    return sum;
  }
};
struct Mean : Sum {
  template <class T>
  static T finish(T sum, int64_t count, double) {
    return sum / T(count);
  }
};
struct NanSum : Sum {
  template <class T>
  static T map(T x, T) {
    return isnan(x) ? T(0) : x;
  }
};
struct Product {
  template <class T>
  static T map(T x, T) {
    return x;
  }
  template <class T>
  static T merge(T a, T b) {
    return a * b;
  }
  template <class T>
  static T finish(T product, int64_t, double) {
    return product;
  }
};
struct Maximum {
  template <class T>
  static T map(T x, T) {
    return x;
  }
  template <class T>
  static T merge(T a, T b) {
    return max(a, b);
  }
  template <class T>
  static T finish(T most, int64_t, double) {
    return most;
  }
  template <class T>
  static bool before(T x, T y) {
    return x > y;
  }
};
struct Minimum {
  template <class T>
  static T map(T x, T) {
    return x;
  }
  template <class T>
  static T merge(T a, T b) {
    return min(a, b);
  }
  template <class T>
  static T finish(T least, int64_t, double) {
    return least;
  }
  template <class T>
  static bool before(T x, T y) {
    return x < y;
  }
};
struct Norm1 : Sum {
  template <class T>
  static T map(T x, T) {
    return abs(x);
  }
};
struct Norm2 : Sum {
  template <class T>
  static T map(T x, T) {
    return x * x;
  }
  template <class T>
  static T finish(T sum, int64_t, double) {
    return sqrt(sum);
  }
};
struct NormP : Sum {
  template <class T>
  static T map(T x, T p) {
    return pow(abs(x), p);
  }
  template <class T>
  static T finish(T sum, int64_t, double p) {
    return T(pow(double(sum), 1 / p));
  }
};
struct NormMax : Maximum {
  template <class T>
  static T map(T x, T) {
    return abs(x);
  }
};
struct NormMin : Minimum {
  template <class T>
  static T map(T x, T) {
    return abs(x);
  }
};

}  // namespace rushlight::RUSHLIGHT_ISA_NAMESPACE
