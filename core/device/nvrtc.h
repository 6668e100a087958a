// Owns NVRTC, NVIDIA's run-time compiler: it turns the text of a kernel into device code.
//
// The library comes from a PyPI package (nvidia-cuda-nvrtc), $CUDA_HOME or the system, in version
// 12 or 13, and is opened at first use. It needs no GPU and no driver. RUSHLIGHT_NVRTC names
// another library file.
#pragma once

#include <string>
#include <vector>

namespace rushlight::nvrtc {

// The driver runs no code of newer versions than its own; said before the first use.
void limit_major_version(int newest);

// "13.0"; raises when there is no NVRTC.
const std::string& version();
// The file that was opened.
const std::string& library_path();

// Everything that the device code depends on, apart from text and architecture.
std::string compiler_key();

// Device code for an architecture such as "sm_90": a cubin, or PTX when this NVRTC is older than
// the architecture. `name` is for messages. Raises with the first error of the compiler; the text
// is then kept in the folder of the kernel cache.
std::string compile(const std::string& name, const std::string& text, const std::string& arch);

// A kernel of a program's own.
struct OwnKernel {
  std::string code, entry;  // for one architecture, and the name of the function there
};
// Compiles a text as it is, with these options besides the architecture. `function` is a name or
// the instance of a template, such as "add<float>". Raises with all that the compiler says.
OwnKernel compile_own(const std::string& text, const std::string& function, const std::string& arch,
                      const std::vector<std::string>& options);

}  // namespace rushlight::nvrtc
