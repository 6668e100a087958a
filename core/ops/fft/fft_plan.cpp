// Owns the choice of how a transform is carried out, the tables of roots of unity, and the cache of
// plans.
//
// Roots are computed in double from angles below an eighth of a turn. The choice never depends on
// the instruction set.
#include "core/ops/fft/fft_plan.h"

#include <cmath>
#include <list>
#include <mutex>
#include <numbers>

#include "core/ops/fft/fft_rows.h"

namespace rushlight {

std::vector<int64_t> fft_radices(int64_t n) {
  std::vector<int64_t> found;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  for (; twos >= 5 || twos == 3; twos -= 3) found.push_back(8);
  for (; twos >= 2; twos -= 2) found.push_back(4);
  if (twos) found.push_back(2);
  for (int64_t p = 3; p <= kMaxRadix && n > 1; p += 2)
    for (; n % p == 0; n /= p) found.push_back(p);
  if (n > 1) return {};
  return found;
}

namespace {

// Columns of more rows leave the second-level cache.
constexpr int64_t kMaxColumnRows = 4096;
// Longer transforms have no whole table of rotations.
constexpr int64_t kMaxRotations = 1 << 16;

// exp(-2 pi i k / n), 0 <= k < n.
struct Root {
  double re, im;
};
Root root(int64_t k, int64_t n) {
  // In eighths of a turn: symmetry brings k / n below one eighth.
  using Wide = unsigned __int128;
  Wide eighths = Wide(k) * 8;
  int octant = int(eighths / Wide(n));
  int64_t rest = int64_t(eighths % Wide(n));  // of n, in an eighth of a turn
  if (octant % 2) rest = n - rest;
  double angle = std::numbers::pi / 4 * (double(rest) / double(n));
  double c = std::cos(angle), s = std::sin(angle);
  if (octant % 4 == 1 || octant % 4 == 2) std::swap(c, s);
  if (octant >= 2 && octant < 6) c = -c;
  return {c, octant >= 4 ? s : -s};
}

// ---- factors and their cost ---------------------------------------------------------------------

// About the vector instructions per row of a pass.
double pass_cost(int64_t radix) {
  switch (radix) {
    case 2: return 8;
    case 3: return 12;
    case 4: return 9.5;
    case 5: return 15;
    case 7: return 19;
    case 8: return 12;
    default: return 10 + 2.2 * double(radix);
  }
}

// Of all columns that a vector holds.
double columns_cost(int64_t n) {
  double cost = 0;
  for (int64_t r : fft_radices(n)) cost += pass_cost(r);
  double slower = n > 2048 ? 2.5 : n > 128 ? 1.6 : 1;  // outside the first-level cache
  return double(n) * cost * slower + 20;
}

template <class T>
constexpr int64_t kMostLanes = 64 / int64_t(sizeof(T));

template <class T>
double split_cost(int64_t n1, int64_t n2) {
  auto blocks = [](int64_t n) { return double((n + kMostLanes<T> - 1) / kMostLanes<T>); };
  double turn = double(n1) * 6, transpose = double(n2) * 10;
  return blocks(n2) * (columns_cost(n1) + turn) + blocks(n1) * (columns_cost(n2) + transpose);
}

// The n1 that makes n1 x (n / n1) cheapest; 0 when there is none.
template <class T>
int64_t best_split(int64_t n) {
  int64_t best = 0;
  double least = 0;
  for (int64_t n1 = 2; n1 * n1 <= n; ++n1) {
    if (n % n1 || n / n1 < kMostLanes<T>) continue;
    double cost = split_cost<T>(n1, n / n1);
    if (best == 0 || cost < least) {
      best = n1;
      least = cost;
    }
  }
  return best;
}

// ---- tables -------------------------------------------------------------------------------------

template <class T>
T* new_table(FftPlan<T>& plan, int64_t count) {
  plan.tables.push_back(std::make_unique_for_overwrite<T[]>(size_t(count)));
  plan.bytes += count * int64_t(sizeof(T));
  return plan.tables.back().get();
}

template <class T>
FftColumns<T> make_columns(FftPlan<T>& plan, int64_t n) {
  FftColumns<T> columns;
  columns.n = n;
  std::vector<int64_t> all = fft_radices(n);
  int64_t rows = n;
  for (int64_t r : all) {
    T* w = new_table(plan, 2 * (rows / r) * (r - 1));
    columns.twiddles[columns.passes] = w;
    for (int64_t p = 0; p < rows / r; ++p)
      for (int64_t j = 1; j < r; ++j) {
        Root z = root(p * j, rows);
        *w++ = T(z.re);
        *w++ = T(z.im);
      }
    if (r > 8) {
      T* turns = new_table(plan, 2 * r);
      columns.turns[columns.passes] = turns;
      for (int64_t k = 0; k < r; ++k) {
        Root z = root(k, r);
        turns[k] = T(z.re);
        turns[r + k] = T(-z.im);
      }
    }
    columns.radix[columns.passes++] = r;
    rows /= r;
  }
  return columns;
}

template <class T>
void make_split(FftPlan<T>& plan, int64_t n1) {
  int64_t n = plan.n, n2 = n / n1;
  FftSplit<T>& split = plan.split;
  split.inverse = plan.inverse;
  split.first = make_columns(plan, n1);
  split.second = make_columns(plan, n2);
  auto rows = [&](int64_t width) {
    T* table = new_table(plan, n1 * width * 2);
    for (int64_t k = 0; k < n1; ++k)
      for (int64_t j = 0; j < width; ++j) {
        Root z = root(k * j % n, n);
        table[k * 2 * width + j] = T(z.re);
        table[k * 2 * width + width + j] = T(z.im);
      }
    return table;
  };
  if (n <= kMaxRotations) {
    split.rotations = rows(n2);
    return;
  }
  split.lane = rows(2 * kFftBlock);
  // exp(-2 pi i kFftBlock t / n) for t < n / kFftBlock, with t in two digits.
  auto add = [&](std::vector<double>& to, int64_t turns) {
    Root z = root(turns % n, n);
    to.push_back(z.re);
    to.push_back(z.im);
  };
  for (int64_t t = 0; t <= n / kFftBlock / kFftFine; ++t)
    add(plan.coarse, t * kFftFine * kFftBlock);
  for (int64_t t = 0; t < kFftFine; ++t) add(plan.fine, t * kFftBlock);
  split.coarse = plan.coarse.data();
  split.fine = plan.fine.data();
  plan.bytes += int64_t((plan.coarse.size() + plan.fine.size()) * sizeof(double));
}

// The cheapest length from `least` on that has small factors only.
template <class T>
int64_t padded_length(int64_t least) {
  int64_t best = 0;
  double cost = 0;
  for (int64_t fives = 1; fives < 5 * least; fives *= 5)
    for (int64_t threes = fives; threes < 3 * least; threes *= 3) {
      int64_t n = threes;
      while (n < least) n *= 2;
      int64_t n1 = best_split<T>(n);
      double here = n1 ? split_cost<T>(n1, n / n1) : columns_cost(n);
      if (best == 0 || here < cost) {
        best = n;
        cost = here;
      }
    }
  return best;
}

template <class T>
void make_chirp(FftPlan<T>& plan) {
  int64_t n = plan.n;
  plan.padded = fft_plan<T>(padded_length<T>(2 * n - 1), false);
  int64_t m = plan.padded->n;
  T* chirp = new_table(plan, 2 * n);
  T* spectrum = new_table(plan, 2 * m);
  std::fill(spectrum, spectrum + 2 * m, T(0));
  double sign = plan.inverse ? -1 : 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t square = int64_t(__int128(k) * k % (2 * n));
    Root z = root(square, 2 * n);
    chirp[2 * k] = T(z.re);
    chirp[2 * k + 1] = T(z.im * sign);
    for (int64_t at : {k, k ? m - k : 0}) {
      spectrum[2 * at] = T(z.re);
      spectrum[2 * at + 1] = T(-z.im * sign);
    }
  }
  FftRows<T>(*plan.padded, 1).run(T(1) / T(m), spectrum, m, spectrum, m, 1);
  plan.chirp = chirp;
  plan.spectrum = spectrum;
}

template <class T>
std::shared_ptr<const FftPlan<T>> make_plan(int64_t n, bool inverse, bool real) {
  auto plan = std::make_shared<FftPlan<T>>();
  plan->n = n;
  plan->inverse = inverse;
  if (n > 1 && fft_radices(n).empty()) {
    make_chirp(*plan);
  } else if (n > 1) {
    int64_t n1 = best_split<T>(n);
    plan->has_columns = n1 == 0 || n <= kMaxColumnRows;
    plan->has_split = n1 != 0;
    plan->columns_cost = columns_cost(n) + double(n) * 20;
    if (plan->has_columns) plan->columns = make_columns(*plan, n);
    if (n1) {
      plan->split_cost = split_cost<T>(n1, n / n1);
      make_split(*plan, n1);
    }
  }
  if (real) {
    T* w = new_table(*plan, 2 * (n / 2 + 1));
    plan->half_turns = w;
    for (int64_t k = 0; k <= n / 2; ++k) {
      Root z = root(k, 2 * n);
      *w++ = T(z.re);
      *w++ = T(z.im);
    }
  }
  return plan;
}

// ---- the cache ----------------------------------------------------------------------------------

constexpr size_t kMostPlans = 128;
constexpr int64_t kMostBytes = 64 << 20;

template <class T>
class PlanCache {
 public:
  std::shared_ptr<const FftPlan<T>> find(int64_t n, bool inverse, bool real) {
    std::lock_guard lock(mutex_);
    for (auto at = plans_.begin(); at != plans_.end(); ++at)
      if (at->plan->n == n && at->plan->inverse == inverse && at->real == real) {
        plans_.splice(plans_.begin(), plans_, at);
        return plans_.front().plan;
      }
    return nullptr;
  }

  void add(std::shared_ptr<const FftPlan<T>> plan, bool real) {
    std::lock_guard lock(mutex_);
    bytes_ += plan->bytes;
    plans_.push_front({std::move(plan), real});
    while (plans_.size() > 1 && (plans_.size() > kMostPlans || bytes_ > kMostBytes)) {
      bytes_ -= plans_.back().plan->bytes;
      plans_.pop_back();
    }
  }

 private:
  struct Entry {
    std::shared_ptr<const FftPlan<T>> plan;
    bool real;
  };
  std::mutex mutex_;
  std::list<Entry> plans_;  // the last one used first
  int64_t bytes_ = 0;
};

}  // namespace

template <class T>
std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n, bool inverse, bool real) {
  static PlanCache<T>* cache = new PlanCache<T>;  // never destroyed: threads may outlive main
  if (auto plan = cache->find(n, inverse, real)) return plan;
  auto plan = make_plan<T>(n, inverse, real);  // unlocked: it may need a plan itself
  cache->add(plan, real);
  return plan;
}
template std::shared_ptr<const FftPlan<float>> fft_plan(int64_t, bool, bool);
template std::shared_ptr<const FftPlan<double>> fft_plan(int64_t, bool, bool);

}  // namespace rushlight
