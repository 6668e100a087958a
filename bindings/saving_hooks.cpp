// Owns the stack of Python functions that tensors go through when ops save them.
//
// One stack per thread; only its top packs. All of it is told of writes in place.
#include <optional>
#include <string>
#include <vector>

#include "bindings/hooks.h"
#include "core/autograd/saving_hooks.h"

namespace rushlight::python {
namespace {

class PackedObject final : public PackedTensor {
 public:
  PackedObject(PyObject* object, Held unpack) : object_(object), unpack_(std::move(unpack)) {}

  Tensor unpack() override {
    AcquireGil gil;
    Ref result(PyObject_CallOneArg(unpack_.get(), object_.get()));
    if (!result) throw_python_error();
    CHECK(is_tensor(result.get()), ErrorKind::kType,
          "Output of saved tensor unpack_hook expected to be a Tensor but got result of type ",
          Py_TYPE(result.get())->tp_name);
    return unwrap(result.get());
  }

 private:
  Held object_, unpack_;
};

struct Level {
  Held pack, unpack, before_write;  // the last may be empty
};

class HookStack final : public SavingHooks {
 public:
  IntrusivePtr<PackedTensor> pack(const Tensor& tensor) override {
    AcquireGil gil;
    Level level = levels_.back();
    Ref argument(wrap(tensor));
    Ref packed(PyObject_CallOneArg(level.pack.get(), argument.get()));
    if (!packed) throw_python_error();
    return IntrusivePtr<PackedTensor>::adopt(new PackedObject(packed.get(), level.unpack));
  }
  void before_write(const Tensor& tensor) override {
    AcquireGil gil;
    for (size_t i = 0; i < levels_.size(); ++i) {
      if (!levels_[i].before_write) continue;
      Held told = levels_[i].before_write;
      Ref argument(wrap(tensor));
      Ref result(PyObject_CallOneArg(told.get(), argument.get()));
      if (!result) throw_python_error();
    }
  }
  void push(Level level) {
    CHECK(!refusal_, *refusal_);
    levels_.push_back(std::move(level));
    saving_hooks = this;
  }
  void pop() {
    CHECK(!levels_.empty(), "there are no saved tensors hooks to pop");
    Level dropped = std::move(levels_.back());  // freed when the stack is in order
    levels_.pop_back();
    if (levels_.empty()) saving_hooks = nullptr;
  }
  std::optional<std::string> refuse(std::optional<std::string> message) {
    CHECK(!message || levels_.empty(), *message);
    return std::exchange(refusal_, std::move(message));
  }

 private:
  std::vector<Level> levels_;
  std::optional<std::string> refusal_;
};

thread_local HookStack hook_stack;

PyObject* push_saving_hooks(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *pack, *unpack, *before_write = Py_None;
    if (!PyArg_ParseTuple(args, "OO|O", &pack, &unpack, &before_write)) return nullptr;
    for (PyObject* hook : {pack, unpack})
      CHECK(PyCallable_Check(hook), ErrorKind::kType,
            "saved_tensors_hooks: both hooks must be functions, not ", Py_TYPE(hook)->tp_name);
    hook_stack.push(
        {Held(pack), Held(unpack), before_write == Py_None ? Held() : Held(before_write)});
    Py_RETURN_NONE;
  });
}
PyObject* pop_saving_hooks(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    hook_stack.pop();
    Py_RETURN_NONE;
  });
}
PyObject* refuse_saving_hooks(PyObject*, PyObject* message) {
  return guarded([&]() -> PyObject* {
    std::optional<std::string> text;
    if (message != Py_None) {
      const char* given = PyUnicode_AsUTF8(message);
      if (!given) throw PythonError();
      text = given;
    }
    std::optional<std::string> before = hook_stack.refuse(std::move(text));
    return before ? PyUnicode_FromString(before->c_str()) : Py_NewRef(Py_None);
  });
}

PyMethodDef methods[] = {
    {"_push_saving_hooks", push_saving_hooks, METH_VARARGS,
     "Sends tensors through pack when they are saved, through unpack when they are needed."},
    {"_pop_saving_hooks", pop_saving_hooks, METH_NOARGS, "Ends the last _push_saving_hooks."},
    {"_refuse_saving_hooks", refuse_saving_hooks, METH_O,
     "Makes pushing raise this message, None for not any more; returns the one before."},
    {}};

}  // namespace

void add_saving_hooks(PyObject* module) { checked(PyModule_AddFunctions(module, methods)); }

}  // namespace rushlight::python
