// Owns the lines of the user's program that errors and warnings name.
//
// Note [Call sites]
// A recorded op notes the code object and instruction that called it: two words, no text. Lines are
// looked up only for a message. Frames inside this package are skipped, so that F.linear names the
// caller's line. Code objects that were noted are kept for the life of the process, which makes a
// note free of reference counts; there are only as many as the program has functions.
#include <string>
#include <unordered_map>

#include "bindings/python.h"
#include "core/base/call_site.h"

namespace rushlight::python {
namespace {

// Code objects seen so far, and whether they belong to this package.
std::unordered_map<PyCodeObject*, bool>& known_code() {
  static std::unordered_map<PyCodeObject*, bool> known;
  return known;
}

// ".../rushlight/" of the installed package, found once from the code that imports us.
const std::string& package_folder() {
  static const std::string folder = [] {
    std::string path;
    Ref module(PyImport_ImportModule("rushlight"));
    Ref file(module ? PyObject_GetAttrString(module.get(), "__file__") : nullptr);
    if (file) path = PyUnicode_AsUTF8(file.get());
    PyErr_Clear();
    return path.substr(0, path.rfind('/') + 1);
  }();
  return folder;
}

bool is_ours(PyCodeObject* code) {
  auto [entry, added] = known_code().try_emplace(code, false);
  bool& ours = entry->second;  // stays where it is when Python code that runs here adds others
  if (added) {
    Py_INCREF(code);
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    if (!file) PyErr_Clear();
    ours =
        file && !package_folder().empty() && std::string_view(file).starts_with(package_folder());
  }
  return ours;
}

std::string describe(CallSite site) {
  if (!site.code) return "";
  AcquireGil gil;
  auto* code = static_cast<PyCodeObject*>(const_cast<void*>(site.code));
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (!file) {
    PyErr_Clear();
    return "";
  }
  std::string_view name = file;
  name.remove_prefix(name.rfind('/') + 1);
  return std::string(name) + ":" + std::to_string(PyCode_Addr2Line(code, site.instruction));
}

const bool registered = (describe_call_site = describe, true);

// Calls visit(code, frame, whether it is of this package) for each Python frame from the innermost
// on, until it returns false.
template <class F>
void visit_frames(const F& visit) {
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    bool ours = is_ours(code);
    Py_DECREF(code);  // known_code() keeps it
    PyFrameObject* caller = visit(code, frame, ours) ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    frame = caller;
  }
}

}  // namespace

void capture_call_site() {
  (void)registered;
  current_call_site = {};
  visit_frames([](PyCodeObject* code, PyFrameObject* frame, bool ours) {
    if (!ours) current_call_site = {code, PyFrame_GetLasti(frame)};
    return ours;
  });
}

bool is_called_by_program() {
  bool by_program = false;
  visit_frames([&](PyCodeObject*, PyFrameObject*, bool ours) {
    by_program = !ours;
    return false;
  });
  return by_program;
}

int warn_program(const char* text) {
  int level = 0;
  bool outside = false;
  visit_frames([&](PyCodeObject*, PyFrameObject*, bool ours) {
    ++level;
    outside = !ours;
    return ours;
  });
  return PyErr_WarnEx(PyExc_UserWarning, text, outside ? level : 1);
}

}  // namespace rushlight::python
