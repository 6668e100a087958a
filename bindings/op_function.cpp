// Owns the Python callables made from the op table, and what a call does around an op.
//
// torch.add is an OpFunction, Tensor.add an OpMethod: a method call passes the tensor as `input`.
// Overloads are tried in the order of the table; the first whose arguments fit is called.
#include <array>
#include <map>
#include <sstream>

#include "bindings/override.h"
#include "bindings/parser.h"
#include "core/autograd/node.h"
#include "core/autograd/profiler.h"
#include "core/ops/sparse/sparse.h"
#include "core/tensor/generator.h"
#include "core/tensor/tile_loop.h"

namespace rushlight::python {
namespace {

// ---- results ------------------------------------------------------------------------------------

// One field on a line, as PyTorch writes them.
PyObject* named_repr(PyObject* self) {
  return guarded([&] {
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(self));
    std::string name = Py_TYPE(self)->tp_name;
    Ref names(checked(PyObject_GetAttrString(type, "__match_args__")));
    Ref text(checked(PyUnicode_FromFormat("torch%s(", name.c_str() + name.find('.'))));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i)
      text = Ref(checked(PyUnicode_FromFormat("%U%s%U=%R", text.get(), i ? ",\n" : "\n",
                                              PyTuple_GET_ITEM(names.get(), i),
                                              PyTuple_GET_ITEM(self, i))));
    return checked(PyUnicode_FromFormat("%U)", text.get()));
  });
}

bool has_named_results(const OpEntry& entry) {
  return entry.schema.return_count > 1 && !entry.schema.returns[0].name.empty();
}

// "max" for the results of torch.max, "linalg_qr" for those of torch.linalg.qr.
std::string return_type_name(const OpEntry& entry) {
  std::string name(entry.schema.name);
  return std::string_view(entry.home) == "linalg" ? "linalg_" + name : name;
}

// torch.return_types.max and its like, made when first asked for.
PyTypeObject* return_type(const OpEntry& entry) {
  static std::map<std::string, PyTypeObject*> types;
  std::string name = return_type_name(entry);
  auto [it, added] = types.try_emplace(name, nullptr);
  if (added) {
    auto* names = new std::deque<std::string>();
    auto* fields = new std::vector<PyStructSequence_Field>();
    for (int i = 0; i < entry.schema.return_count; ++i)
      fields->push_back(
          {names->emplace_back(entry.schema.returns[size_t(i)].name).c_str(), nullptr});
    fields->push_back({nullptr, nullptr});
    auto* title = new std::string("rushlight.return_types." + name);
    PyStructSequence_Desc description{title->c_str(), nullptr, fields->data(),
                                      entry.schema.return_count};
    it->second = PyStructSequence_NewType(&description);
    if (!it->second) throw PythonError();
    it->second->tp_repr = named_repr;
  }
  return it->second;
}

PyObject* to_python(const OpEntry& entry, Result&& result) {
  return std::visit(
      [&]<class T>(const T& value) -> PyObject* {
        if constexpr (std::is_same_v<T, Tensor>) {
          return wrap(value);
        } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
          if (!has_named_results(entry)) return wrap_tuple(value);
          Ref named(checked(PyStructSequence_New(return_type(entry))));
          for (size_t i = 0; i < value.size(); ++i)
            PyStructSequence_SetItem(named.get(), Py_ssize_t(i), wrap(value[i]));
          return named.release();
        } else if constexpr (std::is_same_v<T, bool>) {
          return PyBool_FromLong(value);
        } else if constexpr (std::is_same_v<T, DType>) {
          return wrap_dtype(value);
        } else {
          return wrap_number(Scalar(value));
        }
      },
      result);
}

// ---- the call -----------------------------------------------------------------------------------

struct Weight {
  int64_t elements = 0;
  bool recorded = false;

  void add(const Value& value) {
    if (auto* one = std::get_if<const Tensor*>(&value)) {
      elements = std::max(elements, (*one)->numel());
      recorded |= (*one)->requires_grad();
    } else if (auto* list = std::get_if<TensorList>(&value)) {
      for (const Tensor& t : *list) {
        if (!t.defined()) continue;
        // A sum of sizes may overflow.
        elements = std::min(elements, kReleaseGilFrom) + std::min(t.numel(), kReleaseGilFrom);
        recorded |= t.requires_grad();
      }
    }
  }
};
Weight weigh(const OpEntry& entry, const Value* values) {
  Weight weight;
  for (int i = 0; i < entry.schema.arg_count; ++i) weight.add(values[i]);
  return weight;
}

// The arguments of a call during which other threads run Python code, which may exchange the
// tensors of objects by swap_tensors, and the states of generators: the call has handles of its
// own.
class OwnValues {
 public:
  OwnValues(const OpEntry& entry, const Value* values) {
    for (int i = 0; i < entry.schema.arg_count; ++i) {
      values_[size_t(i)] = values[i];
      auto* tensor = std::get_if<const Tensor*>(&values[i]);
      if (tensor) values_[size_t(i)] = &(tensors_[size_t(i)] = **tensor);
      auto* generator = std::get_if<Generator*>(&values[i]);
      if (generator && *generator) generator_ = (*generator)->weak_from_this().lock();
    }
  }
  const Value* get() const { return values_.data(); }

 private:
  std::array<Value, kMaxArgs> values_;
  std::array<Tensor, kMaxArgs> tensors_;
  std::shared_ptr<Generator> generator_;
};

// With `out`, the result is written there if the op can do so and the shape fits.
Result run_with(const OpEntry& entry, const Value* values, bool inplace, const Tensor* out) {
  if (out && entry.call_into) return entry.call_into(values, *out);
  return inplace ? entry.call_inplace(values) : entry.call(values);
}
// The same while other threads run Python code; on its own, so that small calls need less stack.
[[gnu::noinline]] Result run_unlocked(const OpEntry& entry, const Value* values, bool inplace,
                                      const Tensor* out) {
  OwnValues own(entry, values);
  Tensor target = out ? *out : Tensor();
  ReleaseGil release;
  return run_with(entry, own.get(), inplace, out ? &target : nullptr);
}
Result run(const OpEntry& entry, const Value* values, bool inplace, const Tensor* out = nullptr) {
  Weight weight = weigh(entry, values);
  bool writes = inplace || out ||
                (entry.schema.arg_count && entry.schema.args[0].type == ArgType::tensor_mutable);
  bool profiled = current_profile && current_profile->notes_sites;
  if (writes || (weight.recorded && is_grad_enabled()) || profiled) capture_call_site();
  return weight.elements < kReleaseGilFrom ? run_with(entry, values, inplace, out)
                                           : run_unlocked(entry, values, inplace, out);
}

// Brings a new tensor into a sparse layout; elements that nobody wrote are no entries.
void set_layout(const OpEntry& entry, Result& result, Layout layout) {
  Tensor& tensor = std::get<Tensor>(result);
  if (entry.schema.name.find("empty") != std::string_view::npos) tensor = zeros_like(tensor);
  tensor = to_layout(tensor, layout);
}

// ---- out= ---------------------------------------------------------------------------------------

void refuse_to_record(bool wants_grad, const char* op) {
  CHECK(
      !wants_grad || !is_grad_enabled(), op,
      ": functions with out=... arguments don't support automatic differentiation, but one of the "
      "arguments requires grad.");
}

// Gives `out` the sizes of a result, and its order of dims where it has one.
void resize_out(const Tensor& out, const Tensor& result, const char* op) {
  const Shape& sizes = result.sizes();
  check_writable(out);
  if (out.numel() > 0) {
    std::ostringstream text;
    text << op << ": An output with one or more elements was resized since it had shape "
         << out.sizes() << ", which does not match the required output shape " << ShapeText{sizes}
         << ". Pass out of that shape, or of 0 elements.";
    checked(warn_program(text.str().c_str()));
  }
  TensorImpl& impl = *out.impl();
  Shape strides = result.is_dense() ? result.strides() : contiguous_strides(sizes);
  int64_t needed = storage_bytes_needed(sizes, strides, impl.offset, out.itemsize());
  if (needed > int64_t(impl.storage->bytes())) impl.storage->resize(size_t(needed));
  impl.sizes = sizes;
  impl.strides = strides;
  impl.layout_changed();
}

// Brings a result into the tensor that the caller gave, unless the op has written it there.
void write_out(const Tensor& out, const Tensor& result, const char* op) {
  refuse_to_record(out.requires_grad(), op);
  if (out.is_sparse()) {
    CHECK(layout_of(result) == layout_of(out), op, ": the result has layout ",
          layout_name(layout_of(result)), ", but out has ", layout_name(layout_of(out)), ".");
    take_parts(out, result.dtype() == out.dtype() ? result : cast(result, out.dtype()));
  } else if (!result.is(out)) {
    CHECK(!result.is_sparse(), op, ": the result is sparse, but out is a dense tensor.");
    CHECK(can_cast(result.dtype(), out.dtype()), op, ": result type ", dtype_name(result.dtype()),
          " can't be cast to the desired output type ", dtype_name(out.dtype()));
    check_writable(out);
    if (!(out.sizes() == result.sizes())) resize_out(out, result, op);
    copy_into(out, result);
  }
  if (!out.impl()->untracked) out.storage()->bump_version(op);
}

// Only what is made from nothing may come to be where `out` is.
void check_out_device(const OpEntry& entry, const Tensor& out, const Tensor& result) {
  CHECK(result.device() == out.device() || entry.schema.index_of("device") >= 0,
        entry.schema.name_text,
        ": Expected all tensors to be on the same device, but the result is on ", result.device(),
        " and out on ", out.device(), ". Pass out on the device of the inputs.");
}

// What a call with out= returns: the tensors themselves, by the names of the op's results.
PyObject* named_out(const OpEntry& entry, PyObject* out) {
  if (!has_named_results(entry)) return Py_NewRef(out);
  Ref named(checked(PyStructSequence_New(return_type(entry))));
  for (Py_ssize_t i = 0; i < entry.schema.return_count; ++i)
    PyStructSequence_SetItem(named.get(), i, checked(PySequence_GetItem(out, i)));
  return named.release();
}

PyObject* call_with_out(const OpEntry& entry, const Value* values, PyObject* out) {
  const char* op = entry.schema.name_text;
  refuse_to_record(weigh(entry, values).recorded, op);
  const Tensor* target = is_tensor(out) ? &unwrap(out) : nullptr;
  if (target) refuse_to_record(target->requires_grad(), op);
  Result result = run(entry, values, false, target);
  if (Tensor* one = std::get_if<Tensor>(&result)) {
    const Tensor& into = expect_tensor(out, "argument 'out'");
    check_out_device(entry, into, *one);
    write_out(into, *one, op);
  } else if (auto* many = std::get_if<std::vector<Tensor>>(&result)) {
    CHECK(PySequence_Check(out) && size_t(PySequence_Size(out)) == many->size(), ErrorKind::kType,
          op, ": argument 'out' must be a tuple of ", many->size(), " Tensors");
    for (size_t i = 0; i < many->size(); ++i) {
      Ref item(checked(PySequence_GetItem(out, Py_ssize_t(i))));
      const Tensor& into = expect_tensor(item.get(), "argument 'out'");
      check_out_device(entry, into, (*many)[i]);
      write_out(into, (*many)[i], op);
    }
  } else {
    CHECK(false, ErrorKind::kType, op, ": got an unexpected keyword argument 'out'");
  }
  return named_out(entry, out);
}

// ---- the callables ------------------------------------------------------------------------------

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
    std::string best_error;
    int best_fit = -1;
    for (const OpEntry* entry : *self->overloads) {
      Arena arena;
      Call call(*entry, arena);
      if (read_named(call, args, nargs, keywords, self->name->c_str())) {
        const Extras& extras = call.extras();
        Result result;
        try {
          if (extras.out) return call_with_out(*entry, call.values(), extras.out);
          result = run(*entry, call.values(), self->inplace);
        } catch (Error& error) {
          // The op that failed may be one that this is made of, which the user did not call. Of our
          // own mistakes the place matters more.
          if (error.has_op() && !error.is_ours()) error.rename_op(self->name->c_str());
          throw;
        }
        if (extras.layout != Layout::strided) set_layout(*entry, result, extras.layout);
        if (extras.requires_grad) set_requires_grad(std::get<Tensor>(result), true);
        if (has_named_results(*entry) && is_numpys(nargs, keywords))
          return wrap(std::get<std::vector<Tensor>>(result)[0]);
        return to_python(*entry, std::move(result));
      }
      if (call.fitted() > best_fit) {
        best_fit = call.fitted();
        best_error = call.error();
      }
    }
    // Objects of other classes may take over an op that cannot read them.
    if (PyObject* result = call_override(callable, args, nargs, keywords)) return result;
    std::string message = *self->name + "(): " + best_error;
    if (self->overloads->size() > 1) {
      message += ". It takes one of:";
      for (const OpEntry* entry : *self->overloads)
        message += "\n  " + signature_text(entry->schema);
    } else {
      message += ".";
    }
    PyErr_SetString(PyExc_TypeError, message.c_str());
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
  PyObject* module = PyImport_ImportModule("rushlight._signatures");
  if (module == nullptr) return nullptr;
  PyObject* signature = PyObject_CallMethod(module, "of_op", "O", self);
  Py_DECREF(module);
  return signature;
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

const OpEntry& op_entry(std::string_view name, std::string_view overload) {
  for (const OpEntry& entry : op_table())
    if (entry.schema.name == name && entry.schema.overload == overload) return entry;
  CHECK(false, "there is no op ", name);
  __builtin_unreachable();
}

PyObject* find_return_type(std::string_view name) {
  for (const OpEntry& entry : op_table())
    if (has_named_results(entry) && return_type_name(entry) == name)
      return reinterpret_cast<PyObject*>(return_type(entry));
  return nullptr;
}

PyObject* call_op(const OpEntry& entry, const Value* args, bool inplace) {
  return to_python(entry, run(entry, args, inplace));
}

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
