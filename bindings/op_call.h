// Declares what a call does around an op, once its arguments are read.
#pragma once

#include "bindings/parser.h"
#include "bindings/python.h"
#include "core/tensor/sparse.h"

namespace rushlight::python {

// Whether the op's results are a named tuple, as those of torch.max are.
bool has_named_results(const OpEntry& entry);
PyObject* to_python(const OpEntry& entry, Result&& result);

// Runs an op. It lets go of the interpreter lock when the tensors are large, and notes the line of
// the program when that may be asked for. With `out`, the result is written there if the op can do
// so and the shape fits.
Result run_op(const OpEntry& entry, const Value* values, bool inplace, const Tensor* out = nullptr);
// The same with out= of `extras`, of any op: returns `out`, by the names of the op's results.
PyObject* run_op_into(const OpEntry& entry, const Value* values, const Extras& extras);

// Brings a new tensor into a sparse layout; elements that nobody wrote are no entries.
void set_layout(const OpEntry& entry, Result& result, Layout layout);

}  // namespace rushlight::python
