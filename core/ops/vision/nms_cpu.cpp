// Defines nms on the CPU: each class by itself, the classes shared out among threads.
#include <algorithm>
#include <numeric>

#include "core/device/threads.h"
#include "core/ops/operands.h"
#include "core/ops/vision/nms.h"
#include "core/ops/vision/nms_loops.h"

namespace rushlight {

ISA_TABLES(NmsLoops, nms_loops)

namespace {

const NmsLoops& loops() { return active(nms_loops_sets); }

// The boxes numbered by `members`, in that order; writes whether each stays.
template <class T>
void suppress(const T* boxes, std::span<const int64_t> members, double threshold, char* kept) {
  size_t n = members.size();
  std::vector<T> columns(5 * n);  // see NmsLoops
  for (size_t k = 0; k < n; ++k) {
    const T* box = boxes + members[k] * 4;
    for (size_t c = 0; c < 4; ++c) columns[c * n + k] = box[c];
    columns[4 * n + k] = (box[2] - box[0]) * (box[3] - box[1]);
  }
  using Flag = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  std::vector<Flag> gone(n);
  loops().suppress[sizeof(T) == 8](columns.data(), int64_t(n), threshold, gone.data());
  for (size_t k = 0; k < n; ++k) kept[members[k]] = gone[k] == 0;
}

}  // namespace

std::vector<char> kept_boxes_cpu(const Tensor& boxes, const Tensor& classes, double threshold) {
  auto n = size_t(boxes.size(0));
  std::vector<int64_t> members(n);
  std::iota(members.begin(), members.end(), 0);
  std::vector<size_t> start{0};  // of each class among the members
  if (classes.defined()) {
    const int64_t* of = classes.data<int64_t>();
    std::stable_sort(members.begin(), members.end(),
                     [&](int64_t a, int64_t b) { return of[a] < of[b]; });
    for (size_t k = 1; k < n; ++k)
      if (of[members[k]] != of[members[k - 1]]) start.push_back(k);
  }
  start.push_back(n);
  std::vector<char> kept(n);
  DType dtype = compute_dtype(boxes.dtype());
  Tensor wide = prepared(boxes, dtype);
  by_type(dtype, [&]<class T>(Tag<T>) {
    parallel_for(0, int64_t(start.size()) - 1, 4, [&](int64_t begin, int64_t end) {
      for (auto c = size_t(begin); c < size_t(end); ++c)
        suppress(wide.data<T>(), std::span(members).subspan(start[c], start[c + 1] - start[c]),
                 threshold, kept.data());
    });
  });
  return kept;
}

}  // namespace rushlight
