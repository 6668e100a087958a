// Declares the few ops that autograd itself calls; core/ops defines them, so the layers hold.
#pragma once

#include "core/tensor/tensor.h"

namespace rushlight {
class Node;
struct BackwardOptions;
}  // namespace rushlight

namespace rushlight::needs {

Tensor add(const Tensor& input, const Tensor& other);
// input += other, unrecorded: for gradients that nobody else can see.
void add_(const Tensor& input, const Tensor& other);
Tensor clone(const Tensor& input);
// A copy that lies in memory with these strides.
Tensor clone_strided(const Tensor& input, ShapeRef strides);
Tensor sum_to(const Tensor& input, ShapeRef sizes);
Tensor to_dtype(const Tensor& input, DType dtype);
Tensor to_device(const Tensor& input, Device device);
bool has_nan(const Tensor& input);
Tensor ones_like(const Tensor& input);
Tensor zeros_like(const Tensor& input);
Tensor as_strided(const Tensor& input, ShapeRef sizes, ShapeRef strides, int64_t offset);
// The gradient of as_strided with respect to a base of the given layout.
Tensor as_strided_backward(const Tensor& grad, ShapeRef base_sizes, ShapeRef base_strides,
                           int64_t base_offset, ShapeRef strides, int64_t offset);
// Complex numbers as pairs in a last dim, and back; they share memory.
Tensor view_as_real(const Tensor& input);
Tensor view_as_complex(const Tensor& input);
// Writes src over the window and records it.
void copy_(const Tensor& window, const Tensor& src);

// node.backward(), also for gradients that are lifted: see Note [Lifted tensors].
void run_node(Node& node, TensorList grads, std::span<Tensor> input_grads);
// run_backward() when some root or input is lifted.
std::vector<Tensor> run_lifted_backward(TensorList roots, TensorList grads, TensorList inputs,
                                        const BackwardOptions& options);

}  // namespace rushlight::needs
