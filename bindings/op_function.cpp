// Owns the Python callables made from the op table.
//
// torch.add is an OpFunction, Tensor.add an OpMethod: a method call passes the tensor as `input`.
// Overloads are tried in the order of the table; the first whose arguments fit is called.
#include "bindings/op_call.h"
#include "bindings/override.h"
#include "bindings/parser.h"
#include "core/autograd/node.h"

namespace rushlight::python {
namespace {

struct PyOpFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  std::vector<const OpEntry*>* overloads;
  std::string* name;  // with the trailing underscore of an in-place form
  bool inplace;
  PyObject* function;    // that does the same as a method, else this
  PyObject* attributes;  // what programs add to it, as to any function
};

bool some_argument_takes_over(PyObject* const* args, Py_ssize_t nargs, PyObject* keywords) {
  Py_ssize_t count = nargs + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
  for (Py_ssize_t i = 0; i < count; ++i)
    if (takes_over_inside(args[i])) return true;
  return false;
}

// Reads the arguments; the error of one that cannot be read gets the op's name.
bool read_named(Call& call, PyObject* const* args, Py_ssize_t nargs, PyObject* keywords,
                const char* op) {
  try {
    return call.parse(args, nargs, keywords);
  } catch (Error& error) {
    error.name_op(op);
    throw;
  }
}

// Why no overload takes the arguments, and what would be taken where that is not said by it.
std::string said_of(const PyOpFunction& self, const Misfit& nearest) {
  std::string text = nearest.error + ".";
  if (self.overloads->size() > 1) {
    text += " It takes one of:";
    for (const OpEntry* entry : *self.overloads) text += "\n  " + signature_text(entry->schema);
  } else if (nearest.is_of_shape) {
    text += " It takes " + signature_text((*self.overloads)[0]->schema) + ".";
  }
  return text;
}

// Whether an op adds a product, each of the two scaled by a number, as torch.addmm does.
bool is_scaled_sum(const OpEntry& entry) {
  const Schema& schema = entry.schema;
  return std::string_view(entry.home) == "torch" && schema.index_of("beta") >= 0 &&
         schema.index_of("alpha") >= 0;
}

// The result of such an op for numbers that stand before the tensors, as in early versions of
// PyTorch; null without a Python error for all other calls.
PyObject* call_in_old_order(const PyOpFunction& self, PyObject* const* args, Py_ssize_t nargs,
                            PyObject* keywords) {
  bool fits = nargs == 4 || nargs == 5;  // three tensors and one number or both
  if (!fits || !is_scaled_sum(*(*self.overloads)[0])) return nullptr;
  Ref given(checked(PyTuple_New(nargs))), options(checked(PyDict_New()));
  for (Py_ssize_t i = 0; i < nargs; ++i) PyTuple_SET_ITEM(given.get(), i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); ++i)
    checked(PyDict_SetItem(options.get(), PyTuple_GET_ITEM(keywords, i), args[nargs + i]));
  Ref module(checked(PyImport_ImportModule("rushlight._old_order")));
  Ref result(checked(
      PyObject_CallMethod(module.get(), "in_old_order", "OOO", &self, given.get(), options.get())));
  return result.get() == Py_NotImplemented ? nullptr : result.release();
}

// np.max(t, axis=0) calls t.max(axis=0, out=None), and wants the values alone.
bool is_numpys(Py_ssize_t nargs, PyObject* keywords) {
  if (nargs != 1 || !keywords || PyTuple_GET_SIZE(keywords) < 2) return false;
  auto is = [&](Py_ssize_t i, const char* name) {
    return PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, i), name) == 0;
  };
  return is(0, "axis") && is(1, "out");
}

PyObject* op_vectorcall(PyObject* callable, PyObject* const* args, size_t flagged,
                        PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    auto* self = reinterpret_cast<PyOpFunction*>(callable);
    Py_ssize_t nargs = PyVectorcall_NARGS(flagged);
    if (mode_count || some_argument_takes_over(args, nargs, keywords)) [[unlikely]]
      if (PyObject* result = call_override(callable, args, nargs, keywords)) return result;
    Misfit nearest;
    for (const OpEntry* entry : *self->overloads) {
      Arena arena;
      Call call(*entry, arena);
      if (read_named(call, args, nargs, keywords, self->name->c_str())) {
        const Extras& extras = call.extras();
        Result result;
        try {
          if (extras.out) return run_op_into(*entry, call.values(), extras);
          result = run_op(*entry, call.values(), self->inplace);
        } catch (Error& error) {
          // The op that failed may be one that this is made of, which the user did not call. Of our
          // own mistakes the place matters more.
          if (error.has_op() && !error.is_ours()) error.rename_op(self->name->c_str());
          throw;
        }
        if (extras.layout) set_layout(*entry, result, *extras.layout);
        if (extras.requires_grad) set_requires_grad(std::get<Tensor>(result), true);
        if (has_named_results(*entry) && is_numpys(nargs, keywords))
          return wrap(std::get<std::vector<Tensor>>(result)[0]);
        return to_python(*entry, std::move(result));
      }
      if (call.misfit().fitted > nearest.fitted) nearest = call.misfit();
    }
    // Objects of other classes may take over an op that cannot read them.
    if (PyObject* result = call_override(callable, args, nargs, keywords)) return result;
    if (PyObject* result = call_in_old_order(*self, args, nargs, keywords)) return result;
    PyErr_SetString(PyExc_TypeError, (*self->name + "(): " + said_of(*self, nearest)).c_str());
    return nullptr;
  });
}

PyObject* method_bind(PyObject* self, PyObject* object, PyObject*) {
  return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}
PyObject* op_repr(PyObject* self) {
  return PyUnicode_FromFormat("<op %s>", reinterpret_cast<PyOpFunction*>(self)->name->c_str());
}
PyObject* op_name(PyObject* self, void*) {
  return PyUnicode_FromString(reinterpret_cast<PyOpFunction*>(self)->name->c_str());
}
PyObject* op_doc(PyObject* self, void*) {
  auto* op = reinterpret_cast<PyOpFunction*>(self);
  std::string text;
  for (const OpEntry* entry : *op->overloads)
    text += *op->name + signature_text(entry->schema) + "\n";
  for (const OpEntry* entry : *op->overloads)
    if (*entry->doc) text += "\n" + std::string(entry->doc) + "\n";
  return PyUnicode_FromString(text.c_str());
}
// For tools that show functions. Overloads have none in common.
PyObject* op_text_signature(PyObject* self, void*) {
  const auto& overloads = *reinterpret_cast<PyOpFunction*>(self)->overloads;
  if (overloads.size() > 1) return Py_NewRef(Py_None);
  return PyUnicode_FromString(signature_text(overloads[0]->schema, false).c_str());
}
// inspect reads the text by itself only of descriptors, as methods are.
PyObject* op_signature(PyObject* self, void*) {
  Ref module(PyImport_ImportModule("rushlight._signatures"));
  return module ? PyObject_CallMethod(module.get(), "of_op", "O", self) : nullptr;
}
PyObject* op_module(PyObject* self, void*) {
  std::string home = (*reinterpret_cast<PyOpFunction*>(self)->overloads)[0]->home;
  home = home.substr(0, home.find(' '));
  return PyUnicode_FromString(home == "torch" ? "rushlight" : ("rushlight." + home).c_str());
}
PyObject* op_reduce(PyObject* self, PyObject*) { return op_name(self, nullptr); }
PyObject* method_reduce(PyObject* self, PyObject*) {
  PyObject* getattr = PyDict_GetItemString(PyEval_GetBuiltins(), "getattr");  // borrowed
  return Py_BuildValue("O(ON)", getattr, tensor_class, op_name(self, nullptr));
}

PyGetSetDef op_attributes[] = {{"__name__", op_name, nullptr, nullptr, nullptr},
                               {"__qualname__", op_name, nullptr, nullptr, nullptr},
                               {"__doc__", op_doc, nullptr, nullptr, nullptr},
                               {"__text_signature__", op_text_signature, nullptr, nullptr, nullptr},
                               {"__signature__", op_signature, nullptr, nullptr, nullptr},
                               {"__module__", op_module, nullptr, nullptr, nullptr},
                               {"__dict__", PyObject_GenericGetDict, nullptr, nullptr, nullptr},
                               {}};
// Without one of its own a type hides that of its base.
PyGetSetDef method_attributes[] = {{"__doc__", op_doc, nullptr, nullptr, nullptr}, {}};
PyMethodDef op_methods[] = {{"__reduce__", op_reduce, METH_NOARGS, "Pickles by name."}, {}};
PyMethodDef method_methods[] = {
    {"__reduce__", method_reduce, METH_NOARGS, "Pickles as an attribute of Tensor."}, {}};

// (callable): of the method of an op the function that does the same, else the callable itself.
PyObject* function_of(PyObject*, PyObject* callable);
// (number of the row, form) -> the callable of this overload alone, "_" for the form in place.
PyObject* op_of_row(PyObject*, PyObject* args);
PyMethodDef module_methods[] = {
    {"_function_of", function_of, METH_O, "The function that does what the method of an op does."},
    {"_op_of_row", op_of_row, METH_VARARGS, "One overload of an op by its place in the table."},
    {}};

// What torch has: as an attribute of a class it stays a function.
PyTypeObject OpFunctionType = {.ob_base = {PyObject_HEAD_INIT(nullptr) 0},
                               .tp_name = "rushlight._C.OpFunction",
                               .tp_basicsize = sizeof(PyOpFunction),
                               .tp_vectorcall_offset = offsetof(PyOpFunction, vectorcall),
                               .tp_repr = op_repr,
                               .tp_call = PyVectorcall_Call,
                               .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
                               .tp_methods = op_methods,
                               .tp_getset = op_attributes,
                               .tp_dictoffset = offsetof(PyOpFunction, attributes)};
// What Tensor has: an attribute of a tensor binds it.
PyTypeObject OpMethodType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C.OpMethod",
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_methods = method_methods,
    .tp_getset = method_attributes,
    .tp_base = &OpFunctionType,
    .tp_descr_get = method_bind};

PyObject* function_of(PyObject*, PyObject* callable) {
  bool is_op = PyObject_TypeCheck(callable, &OpFunctionType);
  return Py_NewRef(is_op ? reinterpret_cast<PyOpFunction*>(callable)->function : callable);
}

PyObject* make_op(PyTypeObject* type, std::string name, std::vector<const OpEntry*> overloads,
                  bool inplace) {
  PyObject* object = checked(type->tp_alloc(type, 0));
  auto* self = reinterpret_cast<PyOpFunction*>(object);
  self->vectorcall = op_vectorcall;
  self->overloads = new std::vector<const OpEntry*>(std::move(overloads));
  self->name = new std::string(std::move(name));
  self->inplace = inplace;
  self->function = object;
  return object;
}

PyObject* op_of_row(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    Py_ssize_t row;
    const char* form;
    if (!PyArg_ParseTuple(args, "ns", &row, &form)) return nullptr;
    CHECK(row >= 0 && size_t(row) < op_table().size(), ErrorKind::kIndex, "there is no op ", row);
    const OpEntry& entry = op_table()[size_t(row)];
    bool inplace = *form == '_';
    CHECK(!inplace || entry.call_inplace, entry.schema.name, " has no form in place");
    return make_op(&OpFunctionType, std::string(entry.schema.name) + form, {&entry}, inplace);
  });
}

// Puts a function where .home says; several homes are separated by spaces. Private ops are
// attributes of _C itself.
void add_to_homes(PyObject* module, PyObject* homes, const char* home_list, const std::string& name,
                  PyObject* function) {
  std::string_view rest = home_list;
  while (!rest.empty()) {
    std::string home(detail::next_part(rest, ' '));
    if (home == "private") {
      checked(PyModule_AddObjectRef(module, name.c_str(), function));
      continue;
    }
    PyObject* dict = PyDict_GetItemString(homes, home.c_str());
    if (!dict) {
      Ref fresh(checked(PyDict_New()));
      checked(PyDict_SetItemString(homes, home.c_str(), fresh.get()));
      dict = fresh.get();
    }
    checked(PyDict_SetItemString(dict, name.c_str(), function));
  }
}

}  // namespace

// _C._op_homes: {"torch": {name: function}, "nn.functional": {...}, ..., "Tensor": {methods}}.
void add_ops(PyObject* module) {
  checked(PyType_Ready(&OpFunctionType));
  checked(PyType_Ready(&OpMethodType));
  Ref homes(checked(PyDict_New()));
  const auto& table = op_table();
  for (size_t i = 0; i < table.size();) {
    size_t end = i;
    std::vector<const OpEntry*> functions, methods, inplace_forms;
    auto is_same = [&](const OpEntry& other) {  // torch.svd and linalg.svd are two functions
      return other.schema.name == table[i].schema.name &&
             std::string_view(other.home) == table[i].home;
    };
    for (; end < table.size() && is_same(table[end]); ++end) {
      const OpEntry* entry = &table[end];
      if (entry->variants & function) functions.push_back(entry);
      if (entry->variants & method) methods.push_back(entry);
      if (entry->call_inplace) inplace_forms.push_back(entry);
    }
    std::string name(table[i].schema.name);
    auto add = [&](PyTypeObject* type, const char* home, const std::string& as,
                   const std::vector<const OpEntry*>& overloads, bool inplace) {
      Ref op(make_op(type, as, overloads, inplace));
      add_to_homes(module, homes.get(), home, as, op.get());
      return reinterpret_cast<PyOpFunction*>(op.get());
    };
    PyOpFunction *of_torch = nullptr, *of_tensor = nullptr;
    if (!functions.empty())
      of_torch = add(&OpFunctionType, functions[0]->home, name, functions, false);
    if (!methods.empty()) of_tensor = add(&OpMethodType, "Tensor", name, methods, false);
    if (of_torch && of_tensor && methods == functions) of_tensor->function = of_torch->function;
    if (!inplace_forms.empty()) {
      of_torch = add(&OpFunctionType, inplace_forms[0]->home, name + "_", inplace_forms, true);
      of_tensor = add(&OpMethodType, "Tensor", name + "_", inplace_forms, true);
      of_tensor->function = of_torch->function;
    }
    i = end;
  }
  checked(PyModule_AddObjectRef(module, "_op_homes", homes.get()));
  checked(PyModule_AddFunctions(module, module_methods));
}

}  // namespace rushlight::python
