// Declares what views remember in forward mode.
//
// A view knows the tensor at its root. When a tangent is written to a view of a view, that in the
// middle is to have it too, so views that are made while a dual level is open also keep what they
// were made of.
#pragma once

#include "core/tensor/tensor.h"

namespace rushlight {

// The view that a view was made of; null if it was made of what is no view, or outside of forward
// mode.
Tensor* find_view_parent(const Tensor& view);

}  // namespace rushlight
