// Defines the joining of dims.
#include "core/tensor/dims.h"

namespace rushlight {

void join_dims(Shape& sizes, std::span<Shape* const> strides) {
  Shape order;
  auto reach = [&](size_t d) {
    int64_t stride = (*strides[0])[d];
    return stride == 0 ? INT64_MAX : stride;
  };
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    size_t at = order.size();  // by insertion: the dims are few and mostly in order
    while (at > 0 && reach(size_t(order[at - 1])) < reach(d)) --at;
    order.insert(at, int64_t(d));
  }
  auto reorder = [&](Shape& values) {
    Shape ordered;
    for (int64_t d : order) ordered.push_back(values[size_t(d)]);
    values = ordered;
  };
  reorder(sizes);
  for (Shape* lane : strides) reorder(*lane);

  for (size_t d = sizes.size(); d-- > 1;) {
    bool joins = true;
    for (const Shape* lane : strides) joins &= (*lane)[d - 1] == (*lane)[d] * sizes[d];
    if (!joins) continue;
    sizes[d - 1] *= sizes[d];
    sizes.erase(d);
    for (Shape* lane : strides) lane->erase(d - 1);
  }
}

Shape broadcast_strides(const Tensor& tensor, ShapeRef sizes) {
  Shape strides(sizes.size());
  size_t lead = sizes.size() - tensor.sizes().size();
  for (size_t d = lead; d < sizes.size(); ++d) {
    bool repeats = tensor.sizes()[d - lead] == 1 && sizes[d] != 1;
    strides[d] = repeats ? 0 : tensor.strides()[d - lead];
  }
  return strides;
}

}  // namespace rushlight
