// Owns who runs an op in its place: the modes of a thread, and the classes of arguments.
#include "bindings/dispatch.h"

#include "bindings/asked.h"
#include "bindings/override.h"
#include "core/autograd/call_watch.h"
#include "core/autograd/node.h"
#include "core/device/cuda.h"
#include "core/ops/dispatch.h"
#include "core/tensor/lift.h"

namespace rushlight::python {
namespace {

constexpr const char* kMethod = "__torch_dispatch__";

// The __torch_dispatch__ of classes that do not take part, as Tensor's.
PyObject* opted_out = nullptr;

// ---- who is asked -------------------------------------------------------------------------------

thread_local Modes modes;

void note_modes() {
  bool watches = !modes.empty() && !dispatch_disabled;
  call_watch.watchers =
      uint8_t((call_watch.watchers & ~kWatchedByModes) | (watches ? kWatchedByModes : 0));
}

class DisabledScope {
 public:
  DisabledScope() : before_(std::exchange(dispatch_disabled, true)) { note_modes(); }
  ~DisabledScope() {
    dispatch_disabled = before_;
    note_modes();
  }
  DisabledScope(const DisabledScope&) = delete;

 private:
  bool before_;
};

// The arguments whose classes are asked.
class Handlers : public Asked {
 public:
  void add(const Tensor& tensor) {
    if (!is_dispatched(tensor)) return;
    CHECK(!dispatch_disabled,
          "a tensor made by _make_wrapper_subclass has no elements of its own, and "
          "__torch_dispatch__ is disabled. Call ops on the tensors inside.");
    Asked::add(Ref(wrap(tensor)));
  }
  void add(std::span<const Value> values) {
    for (const Value& value : values) {
      if (auto* one = std::get_if<const Tensor*>(&value)) add(**one);
      else if (auto* list = std::get_if<TensorList>(&value))
        for (const Tensor& t : *list) add(t);
    }
  }

  // Calls the handlers, the mode's first, until one returns something else than NotImplemented.
  Ref call(PyObject* func, PyObject* args, PyObject* kwargs) const {
    Ref types = this->types();
    if (!modes.empty() && !dispatch_disabled) {
      InnermostMode mode(modes, note_modes);
      Ref result = ask(mode.get(), kMethod, func, types, args, kwargs);
      if (result.get() != Py_NotImplemented) return result;
    }
    for (const Ref& object : in_order()) {
      auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object.get()));
      Ref result = ask(type, kMethod, func, types, args, kwargs);
      if (result.get() != Py_NotImplemented) return result;
    }
    PyErr_Format(PyExc_TypeError,
                 "%R: no __torch_dispatch__ takes it, of a mode or of these classes: %R. All of "
                 "them returned NotImplemented.",
                 func, types.get());
    throw PythonError();
  }
};

// Calls a function of rushlight._dispatch, which knows PyTorch's names of ops. What that looks at
// is no business of handlers.
template <class... Args>
Ref ask_names(const char* function, const char* format, Args... args) {
  DisabledScope scope;
  Ref module(checked(PyImport_ImportModule("rushlight._dispatch")));
  return Ref(checked(PyObject_CallMethod(module.get(), function, format, args...)));
}

// ---- arguments and results ----------------------------------------------------------------------

// A number in tensor's clothes is one again, where the op takes it.
PyObject* wrap_argument(const Tensor& t, bool takes_number) {
  bool is_number = takes_number && t.defined() && t.impl()->wrapped_number;
  return is_number ? wrap_number(item(t)) : wrap(t);
}

PyObject* to_python(const Value& value, const Arg& arg) {
  return checked(std::visit(
      [&]<class T>(const T& v) -> PyObject* {
        if constexpr (std::is_same_v<T, std::monostate>) {
          return Py_NewRef(Py_None);
        } else if constexpr (std::is_same_v<T, const Tensor*>) {
          return wrap_argument(*v, arg.takes_number);
        } else if constexpr (std::is_same_v<T, TensorList> || std::is_same_v<T, ShapeRef>) {
          Ref list(checked(PyList_New(Py_ssize_t(v.size()))));
          for (size_t i = 0; i < v.size(); ++i) {
            PyObject* item;
            if constexpr (std::is_same_v<T, TensorList>) item = wrap(v[i]);
            else item = PyLong_FromLongLong(v[i]);
            PyList_SET_ITEM(list.get(), Py_ssize_t(i), checked(item));
          }
          return list.release();
        } else if constexpr (std::is_same_v<T, bool>) {
          return PyBool_FromLong(v);
        } else if constexpr (std::is_same_v<T, std::string_view>) {
          return PyUnicode_FromStringAndSize(v.data(), Py_ssize_t(v.size()));
        } else if constexpr (std::is_same_v<T, DType>) {
          return wrap_dtype(v);
        } else if constexpr (std::is_same_v<T, Device>) {
          return wrap_device(v);
        } else if constexpr (std::is_same_v<T, MemoryFormat>) {
          return wrap_memory_format(v);
        } else if constexpr (std::is_same_v<T, Generator*>) {
          return wrap_generator(*v);
        } else {
          return wrap_number(Scalar(v));
        }
      },
      value));
}

// The arguments as Python passes them; PyTorch leaves out what is as the default says, and
// rushlight._dispatch does so.
struct Arguments {
  Arguments(const OpEntry& entry, std::span<const Value> values, const Tensor* out)
      : named(checked(PyDict_New())) {
    std::vector<Ref> list;
    for (size_t i = 0; i < values.size(); ++i) {
      const Arg& arg = entry.schema.args[i];
      Ref object(to_python(values[i], arg));
      if (!arg.keyword_only) {
        list.push_back(std::move(object));
        continue;
      }
      Ref key(checked(PyUnicode_FromStringAndSize(arg.name.data(), Py_ssize_t(arg.name.size()))));
      checked(PyDict_SetItem(named.get(), key.get(), object.get()));
    }
    positional = Ref(checked(PyTuple_New(Py_ssize_t(list.size()))));
    for (size_t i = 0; i < list.size(); ++i)
      PyTuple_SET_ITEM(positional.get(), Py_ssize_t(i), list[i].release());
    if (!out) return;
    Ref target(wrap(*out));
    checked(PyDict_SetItemString(named.get(), "out", target.get()));
  }

  Ref positional, named;
};

[[noreturn]] void refuse_result(PyObject* func, const char* wanted, PyObject* given) {
  PyErr_Format(PyExc_TypeError, "__torch_dispatch__ returned %s for %R, which returns %s.",
               Py_TYPE(given)->tp_name, func, wanted);
  throw PythonError();
}

Tensor read_result(PyObject* func, PyObject* object) {
  if (!is_tensor(object)) refuse_result(func, "a Tensor", object);
  return unwrap(object);
}

Result from_python(const OpEntry& entry, PyObject* func, PyObject* object) {
  std::string_view type = entry.schema.returns[0].type;
  bool writes_lists = entry.schema.arg_count && is_tensor_list(entry.schema.args[0].type);
  if (writes_lists && type == "int") return int64_t(0);  // which says nothing
  if (type == "Tensor[]" || entry.schema.return_count > 1) {
    if (!PyTuple_Check(object) && !PyList_Check(object))
      refuse_result(func, "several Tensors", object);
    Py_ssize_t count = PySequence_Fast_GET_SIZE(object);
    if (entry.schema.return_count > 1 && count != entry.schema.return_count) {
      PyErr_Format(PyExc_TypeError, "__torch_dispatch__ returned %zd results for %R, which has %d.",
                   count, func, entry.schema.return_count);
      throw PythonError();
    }
    std::vector<Tensor> results;
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(object, i);
      results.push_back(item == Py_None ? Tensor() : read_result(func, item));
    }
    return results;
  }
  if (type == "Tensor") return read_result(func, object);
  if (type == "dtype") {
    DType dtype;
    if (!read_dtype(object, dtype)) refuse_result(func, "a dtype", object);
    return dtype;
  }
  if (type == "bool") {
    if (!PyBool_Check(object)) refuse_result(func, "a bool", object);
    return object == Py_True;
  }
  Scalar number;
  if (!read_number(object, number) || (number.is_complex() && type != "Scalar"))
    refuse_result(func, "a number", object);
  if (type == "int") return number.to<int64_t>();
  if (type == "float") return number.to<double>();
  return number;
}

Result handle(const OpEntry& entry, CallForm form, std::span<const Value> values,
              const Tensor* out) {
  AcquireGil gil;
  NoAutocastGuard dtypes_are_decided;
  try {
    Handlers asked;
    asked.add(values);
    if (out) asked.add(*out);
    if (Py_EnterRecursiveCall(" in __torch_dispatch__")) throw PythonError();
    struct Left {
      ~Left() { Py_LeaveRecursiveCall(); }
    } left;
    Arguments arguments(entry, values, out);
    static constexpr const char* forms[] = {"", "_", "out"};
    Ref call = ask_names("describe", "nsOO", Py_ssize_t(&entry - op_table().data()),
                         forms[size_t(form)], arguments.positional.get(), arguments.named.get());
    PyObject *func, *args, *kwargs;
    if (!PyArg_ParseTuple(call.get(), "OO!O!", &func, &PyTuple_Type, &args, &PyDict_Type, &kwargs))
      throw PythonError();
    Ref result = asked.call(func, args, kwargs);
    bool writes = form == CallForm::inplace ||
                  (entry.schema.arg_count && entry.schema.args[0].type == ArgType::tensor_mutable);
    if (writes) return **std::get_if<const Tensor*>(&values[0]);
    return from_python(entry, func, result.get());
  } catch (const PythonError&) {
    throw_python_error();
  }
}

// What modes and the tensor's class make of a method that gives a tensor; nothing when nobody is
// asked.
std::optional<Tensor> ask_for_tensor(const char* name, const Tensor& tensor) {
  Ref result;
  if (!dispatch_method(name, tensor, result)) return std::nullopt;
  if (!is_tensor(result.get())) {
    PyErr_Format(PyExc_TypeError, "__torch_dispatch__ returned %s for %s, which returns a Tensor.",
                 Py_TYPE(result.get())->tp_name, name);
    throw PythonError();
  }
  return unwrap(result.get());
}

Tensor detach_in_class(const Tensor& tensor) {
  AcquireGil gil;
  GradModeGuard unrecorded(false);
  try {
    std::optional<Tensor> result = ask_for_tensor("detach", tensor);
    ASSERT(result);
    return *result;
  } catch (const PythonError&) {
    throw_python_error();
  }
}

// ---- what Python calls --------------------------------------------------------------------------

PyObject* push_mode(PyObject*, PyObject* mode) {
  modes.push_back(Py_NewRef(mode));
  note_modes();
  Py_RETURN_NONE;
}
PyObject* pop_mode(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    CHECK(!modes.empty(), "no mode is in force");
    Ref mode(modes.back());
    modes.pop_back();
    note_modes();
    return mode.release();
  });
}
PyObject* list_modes(PyObject*, PyObject*) {
  return guarded([] { return list_of(modes); });
}

// Asks about an operator that a program added; NotImplemented if there is no one to ask.
PyObject* ask_about(PyObject*, PyObject* all) {
  return guarded([&]() -> PyObject* {
    PyObject *func, *args, *kwargs, *tensors;
    if (!PyArg_ParseTuple(all, "OO!O!O!", &func, &PyTuple_Type, &args, &PyDict_Type, &kwargs,
                          &PyList_Type, &tensors))
      return nullptr;
    Handlers asked;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tensors); ++i)
      asked.add(expect_tensor(PyList_GET_ITEM(tensors, i), "tensors"));
    if (asked.empty() && (modes.empty() || dispatch_disabled)) Py_RETURN_NOTIMPLEMENTED;
    return asked.call(func, args, kwargs).release();
  });
}

// Turns dispatch off or on for this thread; returns whether it was off.
PyObject* set_disabled(PyObject*, PyObject* value) {
  int disabled = PyObject_IsTrue(value);
  if (disabled < 0) return nullptr;
  bool before = std::exchange(dispatch_disabled, bool(disabled));
  note_modes();
  return PyBool_FromLong(before);
}

// Whether a class has a __torch_dispatch__ of its own.
bool class_dispatches(PyTypeObject* type) {
  PyTypeObject* meta = Py_TYPE(type);
  if (meta != &TensorMetaType && !PyType_IsSubtype(meta, &TensorMetaType)) return false;
  return reinterpret_cast<TensorMeta*>(type)->dispatches;
}

// (cls, like, storage_offset, device, requires_grad): a tensor of the sizes, strides and dtype of
// `like`, which is on meta.
PyObject* make_wrapper(PyObject*, PyObject* all) {
  return guarded([&]() -> PyObject* {
    PyObject *type, *like, *place;
    long long offset;
    int requires_grad;
    if (!PyArg_ParseTuple(all, "OOLOp", &type, &like, &offset, &place, &requires_grad))
      return nullptr;
    CHECK(PyType_Check(type) &&
              PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type), &TensorBaseType),
          ErrorKind::kType, "_make_wrapper_subclass: cls must be a subclass of Tensor");
    auto* cls = reinterpret_cast<PyTypeObject*>(type);
    CHECK(class_dispatches(cls), "_make_wrapper_subclass: ", cls->tp_name,
          " has no __torch_dispatch__, without which nothing can be done with a tensor that has no "
          "elements. Define it, or use _make_subclass.");
    const Tensor& meta = expect_tensor(like, "like");
    CHECK(meta.device().is_meta() && !meta.is_hollow(),
          "_make_wrapper: like must be an ordinary tensor on meta");
    CHECK(offset >= 0, "_make_wrapper_subclass: storage_offset must not be negative, got ", offset);
    storage_bytes_needed(meta.sizes(), meta.strides(), offset, meta.itemsize());
    Device device;
    CHECK(read_device(place, device), ErrorKind::kType,
          "_make_wrapper_subclass: argument 'device' must be str or device, not ",
          Py_TYPE(place)->tp_name);
    if (device.is_cuda() && !device.has_index()) device.index = int8_t(cuda::current_device());
    CHECK(!requires_grad || is_differentiable(meta.dtype()),
          "_make_wrapper_subclass: only Tensors of floating point and complex dtype can require "
          "gradients, got ",
          dtype_name(meta.dtype()));
    Tensor tensor = shallow_copy(meta);
    TensorImpl& impl = *tensor.impl();
    impl.storage = StorageImpl::none(device);
    impl.offset = offset;
    impl.requires_grad = requires_grad;
    impl.detours = kIsWrapper;
    return wrap_in_class(cls, tensor);
  });
}

// Lets a wrapper count writes together with another tensor of its kind, whose view it is.
PyObject* share_storage(PyObject*, PyObject* all) {
  return guarded([&]() -> PyObject* {
    PyObject *to, *from;
    if (!PyArg_ParseTuple(all, "OO", &to, &from)) return nullptr;
    const Tensor& view = expect_tensor(to, "view");
    const Tensor& base = expect_tensor(from, "base");
    if (view.impl()->detours & base.impl()->detours & kIsWrapper && view.device() == base.device())
      view.impl()->storage = base.storage();
    Py_RETURN_NONE;
  });
}

// Gives a wrapper the sizes and strides of another tensor.
PyObject* reshape_wrapper(PyObject*, PyObject* all) {
  return guarded([&]() -> PyObject* {
    PyObject *wrapper, *other;
    if (!PyArg_ParseTuple(all, "OO", &wrapper, &other)) return nullptr;
    const Tensor& tensor = expect_tensor(wrapper, "tensor");
    const Tensor& like = expect_tensor(other, "like");
    CHECK(tensor.impl()->detours & kIsWrapper && !like.is_hollow(),
          "_reshape_wrapper: takes a wrapper and an ordinary tensor");
    look_at(tensor, tensor.storage(), like.offset(), like.sizes(), like.strides());
    Py_RETURN_NONE;
  });
}

PyObject* is_wrapper(PyObject*, PyObject* object) {
  return PyBool_FromLong(is_tensor(object) && unwrap(object).impl()->detours & kIsWrapper);
}

PyObject* lift_fresh_tensor(PyObject*, PyObject* tensor) {
  return guarded([&] { return wrap(lift_fresh(expect_tensor(tensor, "tensor"))); });
}

PyMethodDef opt_out_method = {"_disabled_torch_dispatch_impl", run_unasked<DisabledScope>,
                              METH_VARARGS,
                              "The __torch_dispatch__ of classes that ops are not dispatched to."};
PyMethodDef methods[] = {
    {"_push_dispatch_mode", push_mode, METH_O, "Lets a mode run what this thread calls."},
    {"_pop_dispatch_mode", pop_mode, METH_NOARGS, "Ends the innermost mode and returns it."},
    {"_dispatch_modes", list_modes, METH_NOARGS, "The modes of this thread, the innermost last."},
    {"_ask_about", ask_about, METH_VARARGS,
     "What modes and classes of tensors make of a call of an operator that a program added."},
    {"_set_dispatch_disabled", set_disabled, METH_O, "Turns __torch_dispatch__ off or on."},
    {"_make_wrapper", make_wrapper, METH_VARARGS, "A tensor of a class, without elements."},
    {"_share_storage", share_storage, METH_VARARGS, "Lets a wrapper be a view of another one."},
    {"_reshape_wrapper", reshape_wrapper, METH_VARARGS,
     "Gives a wrapper the sizes and strides of another tensor."},
    {"_lift_fresh", lift_fresh_tensor, METH_O, "What modes make of a tensor of fresh numbers."},
    {"_is_wrapper", is_wrapper, METH_O, "Whether _make_wrapper_subclass made the tensor."},
    {}};

}  // namespace

PyObject* wrap_in_class(PyTypeObject* type, const Tensor& tensor) {
  CHECK(!tensor.impl()->py_object, ErrorKind::kType, "a tensor of ",
        static_cast<PyObject*>(tensor.impl()->py_object)->ob_type->tp_name,
        ", whose __torch_dispatch__ makes the object, cannot be one of ", type->tp_name,
        " too. Make that from the tensors inside.");
  if (class_dispatches(type)) tensor.impl()->detours |= kIsDispatched;
  return wrap_as(type, tensor);
}

void note_dispatch(PyTypeObject* type) {
  Ref method(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), kMethod));
  if (!method) PyErr_Clear();
  reinterpret_cast<TensorMeta*>(type)->dispatches = method && method.get() != opted_out;
}

bool dispatch_method(const char* name, const Tensor& tensor, Ref& result) {
  Handlers asked;
  asked.add(tensor);
  bool is_lowered = is_lifted(tensor);  // modes see what is behind
  if (asked.empty() && (modes.empty() || dispatch_disabled || is_lowered)) return false;
  Ref func = ask_names("method", "s", name);
  Ref object(wrap(tensor)), args(checked(PyTuple_Pack(1, object.get())));
  Ref kwargs(checked(PyDict_New()));
  result = asked.call(func.get(), args.get(), kwargs.get());
  return true;
}

Tensor lift_fresh(const Tensor& tensor) {
  return ask_for_tensor("lift_fresh", tensor).value_or(tensor);
}

void add_dispatch(PyObject* module) {
  call_handler = handle;
  dispatch_hooks.detach = detach_in_class;
  opted_out = checked(PyCFunction_New(&opt_out_method, nullptr));
  checked(PyModule_AddObjectRef(module, opt_out_method.ml_name, opted_out));
  checked(PyModule_AddFunctions(module, methods));
}

}  // namespace rushlight::python
