// Declares what the binding files share: the Python object of a tensor, conversions, and the
// bridges for errors and the interpreter lock. Only bindings/ sees Python.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cxxabi.h>
#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/ops/value.h"
#include "core/tensor/tensor.h"

namespace rushlight::python {

// ---- references ---------------------------------------------------------------------------------

// A reference that is dropped at the end of the scope.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  Ref(Ref&& other) noexcept : object_(other.release()) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }
  static Ref borrow(PyObject* object) { return Ref(Py_XNewRef(object)); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// A Python exception is set; unwinds C++ frames up to the nearest guarded().
struct PythonError {};

// The object, or PythonError when a C API call failed.
inline PyObject* checked(PyObject* object) {
  if (!object) throw PythonError();
  return object;
}
inline void checked(int status) {
  if (status < 0) throw PythonError();
}

// Turns the exception in flight into a Python one.
void set_python_error() noexcept;
// Takes the Python exception out as a C++ one, to travel through the engine.
[[noreturn]] void throw_python_error();

// Note [Threads at exit]
// When the interpreter ends, Python ends the threads that ask for its lock, by unwinding their
// stacks. C++ frames must not be unwound so: they let go of objects without the lock, and many
// promise that nothing leaves them. Such a thread stays where it is until the process is gone, as
// Python has it do from 3.14 on. What asks for the lock, and what calls functions of others, does
// it by stay_at_exit. What unwinds is no C++ object: the reference to it is null. At the very end a
// thread has no state left to ask with, which Python does not look after: AcquireGil stays then.
template <class F>
[[gnu::no_sanitize("undefined")]] auto stay_at_exit(F&& f) -> decltype(f()) {
  try {
    return f();
  } catch (abi::__forced_unwind&) {
    while (true) pause();
  }
}

// Runs f(), which returns a PyObject* or an int; C++ exceptions become Python ones.
template <class F>
auto guarded(F&& f) noexcept -> decltype(f()) {
  try {
    return stay_at_exit(f);
  } catch (...) {
    set_python_error();
    if constexpr (std::is_pointer_v<decltype(f())>) return nullptr;
    else return -1;
  }
}

// From so many elements on other threads run Python: below, handing over the lock costs more.
inline constexpr int64_t kReleaseGilFrom = 16384;

// Lets other Python threads run while a kernel works.
class ReleaseGil {
 public:
  explicit ReleaseGil(bool release = true) {
    if (!release) return;
    ++running_;
    state_ = PyEval_SaveThread();
  }
  ~ReleaseGil() {
    if (!state_) return;
    stay_at_exit([&] { PyEval_RestoreThread(state_); });
    if (--running_ == 0 && !kept().empty()) [[unlikely]]
      std::exchange(kept(), {});
  }
  ReleaseGil(const ReleaseGil&) = delete;

  // How many threads work without the lock. Grows only while its owner holds the lock.
  static int running() { return running_; }
  // Keeps memory that a storage left, until no kernel is left that may read it.
  static void keep_while_running(Storage memory) {
    if (memory && running_) kept().push_back(std::move(memory));
  }

 private:
  static std::vector<Storage>& kept() {
    static auto& kept = *new std::vector<Storage>;  // threads may outlive what is static
    return kept;
  }
  inline static int running_ = 0;  // guarded by the lock
  PyThreadState* state_ = nullptr;
};
class AcquireGil {
 public:
  AcquireGil() : state_(stay_at_exit(ensure)) {}
  ~AcquireGil() { PyGILState_Release(state_); }
  AcquireGil(const AcquireGil&) = delete;

 private:
  static PyGILState_STATE ensure() {
    while (!Py_IsInitialized() && !PyGILState_GetThisThreadState()) pause();
    return PyGILState_Ensure();
  }

  PyGILState_STATE state_;
};

// Sets the Python exception in flight aside, while code of others runs that must not see it.
class AsideError {
 public:
  AsideError() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~AsideError() { PyErr_Restore(type_, value_, traceback_); }
  AsideError(const AsideError&) = delete;

 private:
  PyObject *type_, *value_, *traceback_;
};

// ---- tensors ------------------------------------------------------------------------------------

// See Note [One Python object per tensor] in tensor.cpp.
struct PyTensor {
  PyObject_HEAD Tensor tensor;
  PyObject* dict;
  PyObject* weakrefs;
};

extern PyTypeObject TensorBaseType;
// rushlight.Tensor, the class that results are made of; set by the package at import.
extern PyTypeObject* tensor_class;

inline bool is_tensor(PyObject* object) {
  return Py_TYPE(object) == tensor_class || PyObject_TypeCheck(object, &TensorBaseType);
}
inline const Tensor& unwrap(PyObject* object) {
  return reinterpret_cast<PyTensor*>(object)->tensor;
}
// The Python object of a tensor: a new reference to the one it has, or a new one; None for none.
PyObject* wrap(const Tensor& tensor);
PyObject* wrap_as(PyTypeObject* type, const Tensor& tensor);
PyObject* wrap_tuple(TensorList tensors);
// The tensors of a sequence, undefined where it has None; none for None itself.
std::vector<Tensor> read_tensors(PyObject* object, const char* what);
// The one element. Other threads run Python while the GPU is waited for.
Scalar item_of(const Tensor& tensor);
// Makes a tensor a window on a storage; the caller has seen to its size.
void look_at(const Tensor& tensor, const Storage& storage, int64_t offset, const Shape& sizes,
             const Shape& strides);
// The tensor in `object`, or a TypeError that names the argument.
const Tensor& expect_tensor(PyObject* object, const char* what);

// ---- small objects ------------------------------------------------------------------------------

PyObject* wrap_dtype(DType dtype);
PyObject* wrap_device(Device device);
PyObject* wrap_memory_format(MemoryFormat format);
PyObject* wrap_size(ShapeRef sizes);
PyObject* wrap_number(const Scalar& value);
PyObject* wrap_generator(Generator& generator);
PyObject* untyped_storage_of(PyObject* tensor, PyObject*);  // a method of tensors
// False (no Python error set) when the object is of another type.
bool read_dtype(PyObject* object, DType& out);
bool read_device(PyObject* object, Device& out);
// The same of a torch.device alone.
bool is_device(PyObject* object, Device& out);
bool read_memory_format(PyObject* object, MemoryFormat& out);
bool read_generator(PyObject* object, Generator*& out);
// The generator behind a Python one, to be kept; raises TypeError for other objects.
std::shared_ptr<Generator> expect_generator(PyObject* object);
// Python and NumPy numbers; not tensors.
bool read_number(PyObject* object, Scalar& out);
// Whether the object counts as an int where an int is asked for; bool does not.
bool read_int(PyObject* object, int64_t& out);

// ---- the parts of the module --------------------------------------------------------------------

// A fresh type of named results, torch.return_types.<name>.
PyTypeObject* make_return_type(const std::string& name, const std::vector<std::string>& fields);
// The type of an op's named results, "max" or "linalg_qr"; borrowed, null if there is none.
PyObject* find_return_type(std::string_view name);
// Calls one op of the table with its parsed arguments, the way Python code would.
PyObject* call_op(const OpEntry& entry, const Value* args, bool inplace);
// Values for all arguments of an op, the defaults filled in.
const Value* op_defaults(const OpEntry& entry);

// Notes the line of the user's program for the ops that follow. See call_site.cpp.
void capture_call_site();
// Gives a UserWarning at that line, so that it is shown once for each; below 0 where a filter makes
// it an exception, which is set then.
int warn_program(const char* text);
// Whether the innermost Python function that runs is not of this package.
bool is_called_by_program();

// Give the type of tensors its operators, and the buffer protocol; before it is made ready, since
// subclasses inherit what Python finds then.
void install_operators(PyTypeObject& type);
void install_buffer(PyTypeObject& type);

// Whether an operator on the two may write its result, of the same shape and dtype as `object`,
// into that: nobody will see it again. See Note [Temporaries].
bool is_reusable(PyObject* object, PyObject* other);

// x[index] and x[index] = value.
PyObject* get_item(PyObject* self, PyObject* index);
int set_item(PyObject* self, PyObject* index, PyObject* value);

// Nested lists, numbers, arrays and tensors to a fresh tensor.
Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype);
// Whether it is an array or a number of NumPy, or like one.
bool has_array_interface(PyObject* object);
// A NumPy array as a tensor, which shares its memory unless copy; then strides may be any.
Tensor tensor_from_array(PyObject* array, bool copy);
// A tensor on memory that is there already.
Tensor from_storage(Storage storage, ShapeRef sizes, ShapeRef strides, DType dtype);
// Why a tensor has no memory that others could look at, and what has; null if it has one.
const char* why_without_memory(const Tensor& tensor);
// What others need to look at a tensor's memory, which stays where it is while this lives.
struct Exported {
  BorrowedStorage storage;
  Shape sizes, strides;

  explicit Exported(const Tensor& t)
      : storage(t.storage()), sizes(t.sizes()), strides(t.strides()) {}
};

void add_objects(PyObject* module);
void add_dispatch(PyObject* module);
void add_tensor(PyObject* module);
void add_ops(PyObject* module);
void add_autograd(PyObject* module);
void add_function(PyObject* module);
void add_lift(PyObject* module);
void add_watchers(PyObject* module);
void add_interchange(PyObject* module);
void add_construct(PyObject* module);
void add_extension(PyObject* module);
void add_promotion(PyObject* module);
void add_storage(PyObject* module);
void add_dlpack(PyObject* module);
void add_generator(PyObject* module);
void add_cuda(PyObject* module);

}  // namespace rushlight::python
