// Owns the reuse of temporaries: in (a * 2 + b), the memory of a * 2 takes the sum.
//
// Note [Temporaries]
// Storing a large result costs more than computing it, as fresh memory must come into the cache
// first. So + - * / write into an operand that nobody can see afterwards. One reference does not
// prove that: C code may own it and go on using the object, as NumPy does with arrays of objects.
// The operand must also be the interpreter's, for an operator instruction that drops it: that of a
// call, as of operator.add, leaves it to a C function. Python 3.14 tells whose it is; before, we
// compare the return addresses on the C stack.
#include "bindings/python.h"
#include "core/autograd/call_watch.h"
#include "core/autograd/grad_mode.h"
#include "core/tensor/fusion.h"

#include <opcode.h>
#if PY_VERSION_HEX < 0x030E0000
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#endif

namespace rushlight::python {
namespace {

constexpr size_t kWorthwhile = size_t(1) << 20;  // bytes, from which the test costs little

bool at_operator_instruction() {
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  if (!frame) return false;
  PyCodeObject* code = PyFrame_GetCode(frame);
  Ref bytes(PyCode_GetCode(code));
  int at = PyFrame_GetLasti(frame);
  bool found = bytes && at >= 0 && at < PyBytes_GET_SIZE(bytes.get()) &&
               uint8_t(PyBytes_AS_STRING(bytes.get())[at]) == BINARY_OP;
  PyErr_Clear();
  Py_DECREF(code);
  Py_DECREF(frame);
  return found;
}

#if PY_VERSION_HEX >= 0x030E0000

bool is_interpreters_own(PyObject* object) {
  return PyUnstable_Object_IsUniqueReferencedTemporary(object) && at_operator_instruction();
}

#else

// Addresses of machine code; empty when they are not known.
struct Range {
  uintptr_t begin = 0, end = 0;
  bool contains(void* address) const {
    return uintptr_t(address) >= begin && uintptr_t(address) < end;
  }
};

Range range_of_function(const void* function) {
  Dl_info info;
  const ElfW(Sym)* symbol = nullptr;
  if (!function || !dladdr1(function, &info, (void**)&symbol, RTLD_DL_SYMENT) || !symbol) return {};
  return {uintptr_t(info.dli_saddr), uintptr_t(info.dli_saddr) + symbol->st_size};
}

// The loaded object that has this address.
Range range_of_module(const void* address) {
  struct Search {
    uintptr_t address;
    Range found;
  } search{uintptr_t(address), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* context) {
        auto& search = *static_cast<Search*>(context);
        Range range{UINTPTR_MAX, 0};
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD) continue;
          range.begin = std::min<uintptr_t>(range.begin, info->dlpi_addr + part.p_vaddr);
          range.end = std::max<uintptr_t>(range.end, info->dlpi_addr + part.p_vaddr + part.p_memsz);
        }
        bool found = range.begin <= search.address && search.address < range.end;
        if (found) search.found = range;
        return int(found);
      },
      &search);
  return search.found;
}

struct CodeRanges {
  Range interpreter = range_of_function(dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault"));
  Range operators[4] = {
      range_of_function((void*)PyNumber_Add), range_of_function((void*)PyNumber_Subtract),
      range_of_function((void*)PyNumber_Multiply), range_of_function((void*)PyNumber_TrueDivide)};
  Range python = range_of_module((void*)PyNumber_Add);
  Range ours = range_of_module((void*)range_of_module);

  bool is_operator(void* address) const {
    for (const Range& range : operators)
      if (range.contains(address)) return true;
    return false;
  }
};

// Whether the stack reads: our functions, at most one helper of Python's, PyNumber_Add or the like,
// the interpreter's loop. Anything else in between may own the operand.
bool is_interpreters_own(PyObject*) {
  static const CodeRanges code;
  constexpr int kMost = 16;
  void* stack[kMost];
  int depth = backtrace(stack, kMost), i = 0;
  while (i < depth && !code.ours.contains(stack[i])) ++i;  // a sanitizer's backtrace is in front
  while (i < depth && code.ours.contains(stack[i])) ++i;
  if (i < depth && code.python.contains(stack[i]) && !code.is_operator(stack[i])) ++i;
  return i + 1 < depth && code.is_operator(stack[i]) && code.interpreter.contains(stack[i + 1]) &&
         at_operator_instruction();
}

#endif

bool is_plain(const Tensor& t) { return !t.impl()->autograd && !t.requires_grad(); }

}  // namespace

bool is_reusable(PyObject* object, PyObject* other) {
  if (Py_REFCNT(object) != 1 || Py_TYPE(object) != tensor_class || is_fusing()) return false;
  const auto* holder = reinterpret_cast<PyTensor*>(object);
  const Tensor& t = holder->tensor;
  if (size_t(t.numel()) * t.itemsize() < kWorthwhile || !is_floating(t.dtype())) return false;
  if (holder->dict || holder->weakrefs || !is_plain(t) || t.impl()->use_count() != 1 ||
      t.impl()->inference != grad_mode.inference || !t.is_dense())
    return false;
  const Storage& storage = t.storage();
  if (storage->use_count() != 1 || storage->is_foreign() || !storage->on_cpu()) return false;
  if (is_tensor(other)) {
    const Tensor& o = unwrap(other);
    bool fits = o.dtype() == t.dtype() && (o.sizes() == t.sizes() || o.dim() == 0);
    if (Py_TYPE(other) != tensor_class || !fits || !is_plain(o) || o.is_hollow()) return false;
  } else if (!PyFloat_CheckExact(other) && !PyLong_CheckExact(other)) {
    return false;
  }
  if (call_watch.watchers & kWatchedByModes) return false;
  return is_interpreters_own(object);
}

}  // namespace rushlight::python
