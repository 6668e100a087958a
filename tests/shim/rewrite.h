// Owns the changes to a kernel's text that macros cannot make, and nothing of how it is compiled.
#pragma once

#include <string>
#include <vector>

namespace shim {

// True when a directive speaks of kernels or shared memory, so that the text says what it holds
// only after preprocessing.
bool needs_preprocessing(const std::string& text);

// - A kernel loses __global__ and __launch_bounds__; an extern "C" one is followed, on its last
//   line, by the entry that the driver looks up: shim_kernel_<name>.
// - extern __shared__ T name[] in a function becomes a reference to the launch's dynamic shared
//   memory. Outside of functions it is left alone, and does not compile.
// - Each name expression gets an entry under lowered_name(i) at the end.
// Line numbers stay.
std::string rewrite(const std::string& text, const std::vector<std::string>& name_expressions);

std::string lowered_name(size_t expression);

}  // namespace shim
