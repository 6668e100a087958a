// Owns the stack of Python functions that tensors go through when ops save them.
//
// One stack per thread; only its top packs. All of it is told of writes in place. The hooks of a
// single saved tensor are here too.
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
    Ref result(stay_at_exit([&] { return PyObject_CallOneArg(unpack_.get(), object_.get()); }));
    if (!result) throw_python_error();
    CHECK(is_tensor(result.get()), ErrorKind::kType,
          "Output of saved tensor unpack_hook expected to be a Tensor but got result of type ",
          Py_TYPE(result.get())->tp_name);
    return unwrap(result.get());
  }

 private:
  Held object_, unpack_;
};

IntrusivePtr<PackedTensor> pack_by(const Held& pack, const Held& unpack, const Tensor& tensor) {
  Ref argument(wrap(tensor));
  Ref packed(stay_at_exit([&] { return PyObject_CallOneArg(pack.get(), argument.get()); }));
  if (!packed) throw_python_error();
  return IntrusivePtr<PackedTensor>::adopt(new PackedObject(packed.get(), unpack));
}

void check_hooks(PyObject* pack, PyObject* unpack) {
  for (PyObject* hook : {pack, unpack})
    CHECK(PyCallable_Check(hook), ErrorKind::kType, "both hooks must be functions, not ",
          Py_TYPE(hook)->tp_name);
}

struct Level {
  Held pack, unpack, before_write;  // the last may be empty
};

class HookStack final : public SavingHooks {
 public:
  IntrusivePtr<PackedTensor> pack(const Tensor& tensor) override {
    AcquireGil gil;
    Level level = levels_.back();
    return pack_by(level.pack, level.unpack, tensor);
  }
  void before_write(const Tensor& tensor) override {
    AcquireGil gil;
    for (size_t i = 0; i < levels_.size(); ++i) {
      if (!levels_[i].before_write) continue;
      Held told = levels_[i].before_write;
      Ref argument(wrap(tensor));
      Ref result(stay_at_exit([&] { return PyObject_CallOneArg(told.get(), argument.get()); }));
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
  const Level* top() const { return levels_.empty() ? nullptr : &levels_.back(); }
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
    check_hooks(pack, unpack);
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
PyObject* top_saving_hooks(PyObject*, PyObject*) {
  const Level* top = hook_stack.top();
  return top ? PyTuple_Pack(2, top->pack.get(), top->unpack.get()) : Py_NewRef(Py_None);
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

// ---- single saved tensors -----------------------------------------------------------------------

// What node._raw_saved_other is: a place in the node, to hang hooks on.
struct PySavedTensor {
  PyObject_HEAD NodePtr node;
  SavedTensor* saved;
};
PySavedTensor* saved_of(PyObject* self) { return reinterpret_cast<PySavedTensor*>(self); }

void saved_dealloc(PyObject* self) {
  saved_of(self)->node.~NodePtr();
  Py_TYPE(self)->tp_free(self);
}

PyObject* saved_register_hooks(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *pack, *unpack;
    if (!PyArg_ParseTuple(args, "OO", &pack, &unpack)) return nullptr;
    check_hooks(pack, unpack);
    saved_of(self)->saved->pack_now(
        [&](const Tensor& tensor) { return pack_by(Held(pack), Held(unpack), tensor); });
    Py_RETURN_NONE;
  });
}

PyMethodDef saved_methods[] = {
    {"register_hooks", saved_register_hooks, METH_VARARGS,
     "register_hooks(pack_hook, unpack_hook)\n\nSends this tensor through pack_hook now, and "
     "through unpack_hook when it is needed."},
    {}};

PyTypeObject SavedTensorType = {.ob_base = {PyObject_HEAD_INIT(nullptr) 0},
                                .tp_name = "rushlight._C.SavedTensor",
                                .tp_basicsize = sizeof(PySavedTensor),
                                .tp_dealloc = saved_dealloc,
                                .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                .tp_doc = "A tensor that a node keeps for backward.",
                                .tp_methods = saved_methods};

PyMethodDef methods[] = {
    {"_push_saving_hooks", push_saving_hooks, METH_VARARGS,
     "Sends tensors through pack when they are saved, through unpack when they are needed."},
    {"_pop_saving_hooks", pop_saving_hooks, METH_NOARGS, "Ends the last _push_saving_hooks."},
    {"_top_saving_hooks", top_saving_hooks, METH_NOARGS,
     "pack and unpack of the last _push_saving_hooks that has not ended, or None."},
    {"_refuse_saving_hooks", refuse_saving_hooks, METH_O,
     "Makes pushing raise this message, None for not any more; returns the one before."},
    {}};

}  // namespace

PyObject* wrap_saved(const NodePtr& node, const SavedTensor& saved) {
  PyObject* object = checked(SavedTensorType.tp_alloc(&SavedTensorType, 0));
  new (&saved_of(object)->node) NodePtr(node);
  saved_of(object)->saved = const_cast<SavedTensor*>(&saved);  // the node shows it as it is read
  return object;
}

void add_saving_hooks(PyObject* module) {
  checked(PyType_Ready(&SavedTensorType));
  checked(
      PyModule_AddObjectRef(module, "SavedTensor", reinterpret_cast<PyObject*>(&SavedTensorType)));
  checked(PyModule_AddFunctions(module, methods));
}

}  // namespace rushlight::python
