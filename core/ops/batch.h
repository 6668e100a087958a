// Owns Batch, what a batching rule is given, and says which rules there are.
//
// Inside vmap an op works on all samples at once by its field .batch in the OP block:
//   by_elements   each sample's result is that of its elements, after broadcasting; formulas are so
//   by_dims       arguments named dim, dims, dim0, ... count the dims of `input`
//   by_new_dim    the same, but of the result, which has one dim more
//   by_sizes      an argument named size, sizes or shape is that of the result
//   by_last_dims  leading dims of `input` are free, and other tensors do not go with them
//   by_matrices   the last two dims of `input` are matrices, leading dims of tensors go together
//   by_images     `input` is (N, C, ...), each of the N on its own; other tensors are the same for
//                 all of them
// or a function that takes a Batch and then the types of the schema, where tensors that are lifted
// come with the samples by dim 0, and returns the result in the same way. An op that says nothing
// runs sample by sample, and says so once. An op made of other ops needs none: those have theirs.
#pragma once

#include "core/ops/ops.h"
#include "core/tensor/lift.h"

namespace rushlight {

namespace detail {
void warn_of_loop(const OpEntry& entry);
}  // namespace detail

// Replaces each tensor of a result by f(tensor), or by f(tensor, its number).
template <class F>
Result each_tensor(Result&& result, const F& f) {
  auto replace = [&](Tensor& t, size_t k) {
    if (!t.defined()) return;
    if constexpr (std::is_invocable_v<F, const Tensor&, size_t>) t = f(t, k);
    else t = f(t);
  };
  if (auto* one = std::get_if<Tensor>(&result)) {
    replace(*one, 0);
  } else if (auto* list = std::get_if<std::vector<Tensor>>(&result)) {
    for (size_t k = 0; k < list->size(); ++k) replace((*list)[k], k);
  } else {
    CHECK(false,
          "gives one value, where it depends on the sample of vmap. Compute it outside of the "
          "function.");
  }
  return std::move(result);
}

class Batch {
 public:
  Batch(const OpEntry& entry, const Level& level, std::span<const Value> args);

  const OpEntry& entry;
  const Level& level;

  int64_t size() const { return level.size; }
  // Whether an argument has samples.
  bool has(std::string_view arg) const { return batched_[index(arg)]; }
  // Whether an element of a list has samples.
  bool has(std::string_view list, size_t k) const { return in_lists_[index(list)][k]; }
  // The rank of one sample of an argument.
  int64_t rank(std::string_view arg) const { return rank(index(arg)); }
  int64_t rank(size_t arg) const { return tensors_[arg].dim() - batched_[arg]; }
  // An argument with samples, the same ones if it had none.
  Tensor full(std::string_view arg) const { return full(index(arg)); }
  Tensor full(size_t arg) const;
  // A dim of a sample of `rank` dims as one of all samples; negative ones count from the end.
  static int64_t dim(int64_t dim, int64_t rank) { return wrap_dim(dim, rank) + 1; }
  static Shape dims(ShapeRef dims, int64_t rank);
  // The number of samples and then the sizes of one.
  Shape with_samples(ShapeRef sizes) const;
  // Samples with dims of size 1 in front of their dims, so that each has `rank` of them.
  static Tensor padded(Tensor samples, int64_t rank);

  // Gives samples to every tensor.
  void spread_all();
  // 0 to size - 1 as int64, (size, 1, ..., 1) of the rank of samples: indices of dim 0.
  Tensor numbers(const Tensor& samples) const;
  // Runs the op by its rule, or sample by sample.
  Result run();
  // With a generator, every sample draws the same random numbers from it.
  Result by_samples(Generator* generator = nullptr);

 private:
  size_t index(std::string_view arg) const;
  bool is_tensor(size_t arg) const { return tensors_[arg].defined(); }
  bool writes_input() const { return entry.schema.args[0].type == ArgType::tensor_mutable; }
  void set(size_t arg, Tensor value);
  Result call() const;

  Result by_loop();
  Result by_elements();
  Result by_dims(bool new_dim);
  Result by_sizes();
  Result by_last_dims();
  Result by_matrices();
  Result by_images();

  std::vector<Value> values_;
  std::vector<Tensor> tensors_;              // by argument; undefined for what is no tensor
  std::vector<std::vector<Tensor>> lists_;   // by argument
  std::vector<std::vector<bool>> in_lists_;  // whether elements of lists have samples
  std::vector<bool> batched_;                // by argument; for a list whether any has samples
  std::vector<Shape> shapes_;                // that replace arguments
};

}  // namespace rushlight
