// Owns the one argument parser of all ops, and the Python callables made from the op table.
//
// An OpFunction is both torch.add and Tensor.add: a method call passes the tensor as `input`.
// Overloads are tried in the order of the table; the first whose arguments fit is called.
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>

#include "bindings/python.h"
#include "core/autograd/node.h"
#include "core/tensor/tile_loop.h"

namespace rushlight::python {
namespace {

constexpr int64_t kReleaseGilFrom = 16384;  // elements: below, handing over the lock costs more

// ---- defaults
// -------------------------------------------------------------------------------------

// The defaults of one op as Values, read once from the text of the schema.
struct Defaults {
  std::array<Value, kMaxArgs> values;
  std::deque<Shape> lists;  // what ShapeRefs in `values` look at

  explicit Defaults(const Schema& schema) {
    for (int i = 0; i < schema.arg_count; ++i)
      if (schema.args[size_t(i)].has_default) values[size_t(i)] = read(schema.args[size_t(i)]);
  }

  Value read(const Arg& arg) {
    using enum ArgType;
    std::string text(arg.default_text);
    if (text == "None") return {};
    auto parsed = [&]() -> Scalar {
      if (text == "True" || text == "False") return text == "True";
      if (text == "inf") return INFINITY;
      if (text.find_first_of(".e") == text.npos) return int64_t(std::stoll(text));
      return std::stod(text);
    };
    switch (arg.type) {
      case integer:
      case integer_optional: return parsed().to<int64_t>();
      case ArgType::real:
      case real_optional: return parsed().to<double>();
      case boolean:
      case boolean_optional: return parsed().to<bool>();
      case ArgType::number:
      case number_optional: return parsed();
      case string:
      case string_optional: return arg.default_text.substr(1, arg.default_text.size() - 2);
      case ints:
      case ints_optional: {
        Shape list;
        if (text[0] != '(' && text[0] != '[') {
          list.resize(size_t(std::max(arg.expand_to, 1)), parsed().to<int64_t>());
        } else {
          std::string_view rest = std::string_view(text).substr(1, text.size() - 2);
          while (!detail::trim(rest).empty())
            list.push_back(std::stoll(std::string(detail::next_part(rest, ','))));
        }
        return ShapeRef(lists.emplace_back(list));
      }
      default: ASSERT(!"a default that the parser does not know"); return {};
    }
  }
};

const Defaults& defaults_of(const OpEntry& entry) {
  static std::unordered_map<const OpEntry*, Defaults> all;
  auto it = all.find(&entry);
  if (it == all.end()) it = all.emplace(&entry, Defaults(entry.schema)).first;
  return it->second;
}

// ---- one argument
// -----------------------------------------------------------------------------------

// Owns what the Values of one call look at.
struct Arena {
  static constexpr int kInts = 32;
  int64_t ints[kInts];
  int ints_used = 0;
  std::deque<Shape> long_lists;
  std::deque<Tensor> tensors;
  std::deque<std::vector<Tensor>> tensor_lists;

  std::span<int64_t> make_ints(size_t count) {
    if (ints_used + int(count) <= kInts) {
      int64_t* start = ints + ints_used;
      ints_used += int(count);
      return {start, count};
    }
    Shape& list = long_lists.emplace_back(count);
    return {list.data(), count};
  }
};

const char* type_text(const Arg& arg) {
  using enum ArgType;
  switch (arg.type) {
    case tensor:
    case tensor_optional:
    case tensor_mutable: return "Tensor";
    case tensor_list: return "tuple of Tensors";
    case integer:
    case integer_optional: return "int";
    case ints:
    case ints_optional: return arg.expand_to ? "int or tuple of ints" : "tuple of ints";
    case ArgType::real:
    case real_optional: return "float";
    case boolean:
    case boolean_optional: return "bool";
    case string:
    case string_optional: return "str";
    case number:
    case number_optional: return "Number";
    case dtype_optional: return "torch.dtype";
    case device_optional: return "torch.device";
    case memory_format_optional: return "torch.memory_format";
    case generator_optional: return "torch.Generator";
  }
  return "";
}

bool is_optional(ArgType type) {
  using enum ArgType;
  switch (type) {
    case tensor_optional:
    case integer_optional:
    case ints_optional:
    case real_optional:
    case boolean_optional:
    case string_optional:
    case number_optional:
    case dtype_optional:
    case device_optional:
    case memory_format_optional:
    case generator_optional: return true;
    default: return false;
  }
}

bool read_ints(PyObject* object, int expand_to, Arena& arena, Value& out) {
  int64_t one;
  if (PyTuple_Check(object) || PyList_Check(object)) {
    PyObject** items = PySequence_Fast_ITEMS(object);
    auto ints = arena.make_ints(size_t(PySequence_Fast_GET_SIZE(object)));
    for (size_t i = 0; i < ints.size(); ++i)
      if (!read_int(items[i], ints[i])) return false;
    out = ShapeRef(ints);
    return true;
  }
  if (!expand_to || !read_int(object, one)) return false;
  auto ints = arena.make_ints(size_t(expand_to));
  std::fill(ints.begin(), ints.end(), one);
  out = ShapeRef(ints);
  return true;
}

bool read_tensor_list(PyObject* object, Arena& arena, Value& out) {
  if (!PyTuple_Check(object) && !PyList_Check(object)) return false;
  std::vector<Tensor> list;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(object, i);
    if (is_tensor(item)) list.push_back(unwrap(item));
    else if (item == Py_None) list.emplace_back();
    else return false;
  }
  out = TensorList(arena.tensor_lists.emplace_back(std::move(list)));
  return true;
}

// Reads one argument; false when the object does not fit.
bool read_value(const Arg& arg, int position, PyObject* object, Arena& arena, Value& out) {
  using enum ArgType;
  if (object == Py_None) {
    if (!is_optional(arg.type)) return false;
    out = std::monostate();
    return true;
  }
  switch (arg.type) {
    case tensor:
    case tensor_optional:
    case tensor_mutable: {
      if (is_tensor(object)) {
        out = &unwrap(object);
        return true;
      }
      Scalar value;
      if (position == 0 || arg.type == tensor_mutable || !read_number(object, value)) return false;
      out = &arena.tensors.emplace_back(wrapped_number(value));
      return true;
    }
    case tensor_list: return read_tensor_list(object, arena, out);
    case integer:
    case integer_optional: {
      int64_t value;
      if (!read_int(object, value)) return false;
      out = value;
      return true;
    }
    case ints:
    case ints_optional: return read_ints(object, arg.expand_to, arena, out);
    case ArgType::real:
    case real_optional: {
      Scalar value;
      if (PyFloat_CheckExact(object)) {
        out = PyFloat_AS_DOUBLE(object);
        return true;
      }
      if (is_tensor(object) && unwrap(object).numel() == 1 && !unwrap(object).requires_grad())
        value = item(unwrap(object));
      else if (!read_number(object, value)) return false;
      if (value.is_complex()) return false;
      out = value.to<double>();
      return true;
    }
    case boolean:
    case boolean_optional:
      if (!PyBool_Check(object)) return false;
      out = object == Py_True;
      return true;
    case string:
    case string_optional: {
      if (!PyUnicode_Check(object)) return false;
      Py_ssize_t size;
      const char* text = PyUnicode_AsUTF8AndSize(object, &size);
      if (!text) throw PythonError();
      out = std::string_view(text, size_t(size));
      return true;
    }
    case number:
    case number_optional: {
      Scalar value;
      if (is_tensor(object) && unwrap(object).dim() == 0 && !unwrap(object).requires_grad())
        value = item(unwrap(object));
      else if (!read_number(object, value)) return false;
      out = value;
      return true;
    }
    case dtype_optional: {
      DType value;
      if (!read_dtype(object, value)) return false;
      out = value;
      return true;
    }
    case device_optional: {
      Device value;
      if (!read_device(object, value)) return false;
      out = value;
      return true;
    }
    case memory_format_optional: {
      MemoryFormat value;
      if (!read_memory_format(object, value)) return false;
      out = value;
      return true;
    }
    case generator_optional: {
      Generator* value;
      if (!read_generator(object, value)) return false;
      out = value;
      return true;
    }
  }
  return false;
}

// ---- all arguments of a call
// ------------------------------------------------------------------------

// NumPy's names for PyTorch's arguments.
const char* canonical_name(const char* name) {
  if (!std::strcmp(name, "axis")) return "dim";
  if (!std::strcmp(name, "keepdims")) return "keepdim";
  return name;
}

// Keyword arguments that belong to the caller, not to the schema.
struct Extras {
  PyObject* out = nullptr;
  bool requires_grad = false;
};

bool all_ints(PyObject* const* args, Py_ssize_t count) {
  int64_t value;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!read_int(args[i], value)) return false;
  return true;
}

// Ops that make tensors from nothing take PyTorch's options for them.
bool is_factory(const Schema& schema) {
  return schema.index_of("dtype") >= 0 && schema.index_of("device") >= 0;
}

class Call {
 public:
  Call(const OpEntry& entry, Arena& arena) : entry_(entry), schema_(entry.schema), arena_(arena) {}

  // Fills values(); on failure error() says what does not fit.
  bool parse(PyObject* const* args, Py_ssize_t nargs, PyObject* keywords) {
    const Defaults& defaults = defaults_of(entry_);
    for (int i = 0; i < schema_.arg_count; ++i) values_[size_t(i)] = defaults.values[size_t(i)];

    Py_ssize_t positional = 0;
    while (positional < schema_.arg_count && !schema_.args[size_t(positional)].keyword_only)
      ++positional;
    for (Py_ssize_t i = 0; i < nargs; ++i) {
      if (i >= positional)
        return fail("takes " + std::to_string(positional) + " positional arguments but " +
                    std::to_string(nargs) + " were given");
      const Arg& arg = schema_.args[size_t(i)];
      bool list = arg.type == ArgType::ints || arg.type == ArgType::ints_optional;
      // x.view(2, 3): the rest of the positional arguments is the list.
      if (list && i <= 1 && !PyTuple_Check(args[i]) && !PyList_Check(args[i]) && !arg.expand_to &&
          all_ints(args + i, nargs - i)) {
        auto ints = arena_.make_ints(size_t(nargs - i));
        for (Py_ssize_t k = i; k < nargs; ++k) read_int(args[k], ints[size_t(k - i)]);
        values_[size_t(i)] = ShapeRef(ints);
        given_[size_t(i)] = true;
        break;
      }
      // meshgrid(a, b): where the only positional argument is a list of tensors.
      if (arg.type == ArgType::tensor_list && positional == 1 && is_tensor(args[0]) &&
          put_tensors(args, nargs))
        break;
      if (!put(int(i), args[i])) return false;
    }
    Py_ssize_t keyword_count = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    for (Py_ssize_t k = 0; k < keyword_count; ++k)
      if (!put_keyword(PyTuple_GET_ITEM(keywords, k), args[nargs + k])) return false;
    for (int i = 0; i < schema_.arg_count; ++i) {
      const Arg& arg = schema_.args[size_t(i)];
      if (!given_[size_t(i)] && !arg.has_default)
        return fail("missing required argument '" + std::string(arg.name) + "'");
    }
    return true;
  }

  const Value* values() const { return values_.data(); }
  const Extras& extras() const { return extras_; }
  const std::string& error() const { return error_; }
  // Mistakes in the kind of call (not of a value's type) are worth more than a list of overloads.
  int fitted() const { return fitted_; }

 private:
  bool put(int i, PyObject* object) {
    const Arg& arg = schema_.args[size_t(i)];
    if (given_[size_t(i)])
      return fail("got multiple values for argument '" + std::string(arg.name) + "'");
    given_[size_t(i)] = true;
    if (!read_value(arg, i, object, arena_, values_[size_t(i)]))
      return fail("argument '" + std::string(arg.name) + "' (position " + std::to_string(i + 1) +
                  ") must be " + type_text(arg) + ", not " + Py_TYPE(object)->tp_name);
    ++fitted_;
    return true;
  }

  bool put_tensors(PyObject* const* args, Py_ssize_t nargs) {
    std::vector<Tensor> list;
    for (Py_ssize_t i = 0; i < nargs; ++i) {
      if (!is_tensor(args[i])) return false;
      list.push_back(unwrap(args[i]));
    }
    values_[0] = TensorList(arena_.tensor_lists.emplace_back(std::move(list)));
    given_[0] = true;
    return true;
  }

  bool put_keyword(PyObject* key, PyObject* object) {
    const char* name = PyUnicode_AsUTF8(key);
    if (!name) throw PythonError();
    int i = schema_.index_of(name);
    if (i < 0) i = schema_.index_of(canonical_name(name));
    if (i >= 0) return put(i, object);
    if (!std::strcmp(name, "out")) {
      extras_.out = object == Py_None ? nullptr : object;
      return true;
    }
    if (is_factory(schema_)) {
      if (!std::strcmp(name, "requires_grad")) {
        extras_.requires_grad = PyObject_IsTrue(object);
        return true;
      }
      if (!std::strcmp(name, "pin_memory") || !std::strcmp(name, "layout") ||
          !std::strcmp(name, "memory_format"))
        return true;
    }
    return fail("got an unexpected keyword argument '" + std::string(name) + "'");
  }

  bool fail(std::string message) {
    error_ = std::move(message);
    return false;
  }

  const OpEntry& entry_;
  const Schema& schema_;
  Arena& arena_;
  std::array<Value, kMaxArgs> values_;
  std::array<bool, kMaxArgs> given_{};
  Extras extras_;
  std::string error_;
  int fitted_ = 0;
};

// ---- results
// ----------------------------------------------------------------------------------------

// torch.return_types.max and its like, made when first returned.
PyTypeObject* return_type(const OpEntry& entry) {
  static std::map<std::string, PyTypeObject*> types;
  std::string key(entry.schema.name);
  auto [it, added] = types.try_emplace(key, nullptr);
  if (added) {
    auto* names = new std::deque<std::string>();
    auto* fields = new std::vector<PyStructSequence_Field>();
    for (int i = 0; i < entry.schema.return_count; ++i)
      fields->push_back(
          {names->emplace_back(entry.schema.returns[size_t(i)].name).c_str(), nullptr});
    fields->push_back({nullptr, nullptr});
    auto* title = new std::string("rushlight.return_types." + key);
    PyStructSequence_Desc description{title->c_str(), nullptr, fields->data(),
                                      entry.schema.return_count};
    it->second = PyStructSequence_NewType(&description);
    if (!it->second) throw PythonError();
  }
  return it->second;
}

PyObject* to_python(const OpEntry& entry, Result&& result) {
  return std::visit(
      [&]<class T>(const T& value) -> PyObject* {
        if constexpr (std::is_same_v<T, Tensor>) {
          return value.defined() ? wrap(value) : Py_NewRef(Py_None);
        } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
          if (entry.schema.returns[0].name.empty()) return wrap_tuple(value);
          PyObject* named = checked(PyStructSequence_New(return_type(entry)));
          for (size_t i = 0; i < value.size(); ++i)
            PyStructSequence_SetItem(named, Py_ssize_t(i), wrap(value[i]));
          return named;
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

// Writes a result to the tensor that the caller gave, which takes the result's shape.
void write_out(const Tensor& out, const Tensor& result, const char* op) {
  CHECK(
      !out.requires_grad() || !is_grad_enabled(), op,
      ": functions with out=... arguments don't support automatic differentiation, but one of the "
      "arguments requires grad.");
  CHECK(can_cast(result.dtype(), out.dtype()), op, ": result type ", dtype_name(result.dtype()),
        " can't be cast to the desired output type ", dtype_name(out.dtype()));
  if (!(out.sizes() == result.sizes())) {
    check_writable(out);
    TensorImpl& impl = *out.impl();
    int64_t needed = storage_bytes_needed(result.sizes(), contiguous_strides(result.sizes()),
                                          impl.offset, out.itemsize());
    if (needed > int64_t(impl.storage->bytes())) impl.storage->resize(size_t(needed));
    impl.sizes = result.sizes();
    impl.strides = contiguous_strides(result.sizes());
    impl.layout_changed();
  }
  copy_into(out, result);
  out.storage()->bump_version(op);
}

PyObject* deliver(const OpEntry& entry, Result&& result, const Extras& extras) {
  if (extras.requires_grad) set_requires_grad(std::get<Tensor>(result), true);
  if (!extras.out) return to_python(entry, std::move(result));
  const char* op = entry.schema.name_text;
  if (Tensor* one = std::get_if<Tensor>(&result)) {
    write_out(expect_tensor(extras.out, "argument 'out'"), *one, op);
  } else if (auto* many = std::get_if<std::vector<Tensor>>(&result)) {
    CHECK(PySequence_Check(extras.out) && size_t(PySequence_Size(extras.out)) == many->size(),
          ErrorKind::kType, op, ": argument 'out' must be a tuple of ", many->size(), " Tensors");
    for (size_t i = 0; i < many->size(); ++i) {
      Ref item(checked(PySequence_GetItem(extras.out, Py_ssize_t(i))));
      write_out(expect_tensor(item.get(), "argument 'out'"), (*many)[i], op);
    }
  } else {
    CHECK(false, ErrorKind::kType, op, ": got an unexpected keyword argument 'out'");
  }
  return Py_NewRef(extras.out);
}

// ---- the call
// ---------------------------------------------------------------------------------------

struct Weight {
  int64_t elements = 0;
  bool recorded = false;
};
void weigh(const Value& value, Weight& weight) {
  if (auto* one = std::get_if<const Tensor*>(&value)) {
    weight.elements = std::max(weight.elements, (*one)->numel());
    weight.recorded |= (*one)->requires_grad();
  } else if (auto* list = std::get_if<TensorList>(&value)) {
    for (const Tensor& t : *list) {
      if (!t.defined()) continue;
      weight.elements += t.numel();
      weight.recorded |= t.requires_grad();
    }
  }
}

Result run(const OpEntry& entry, const Value* values, bool inplace, bool into_out = false) {
  Weight weight;
  for (int i = 0; i < entry.schema.arg_count; ++i) weigh(values[i], weight);
  bool writes =
      inplace || (entry.schema.arg_count && entry.schema.args[0].type == ArgType::tensor_mutable);
  if (writes || (weight.recorded && is_grad_enabled())) capture_call_site();
  CHECK(
      !into_out || !weight.recorded || !is_grad_enabled(), entry.schema.name_text,
      ": functions with out=... arguments don't support automatic differentiation, but one of the "
      "arguments requires grad.");
  ReleaseGil release(weight.elements >= kReleaseGilFrom);
  return inplace ? entry.call_inplace(values) : entry.call(values);
}

struct PyOpFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  std::vector<const OpEntry*>* overloads;
  std::string* name;  // with the trailing underscore of an in-place form
  bool inplace;
};

std::string signature_text(const Schema& schema) {
  std::string text = "(";
  bool starred = false;
  for (int i = 0; i < schema.arg_count; ++i) {
    const Arg& arg = schema.args[size_t(i)];
    if (i) text += ", ";
    if (arg.keyword_only && !starred) {
      text += "*, ";
      starred = true;
    }
    text += std::string(type_text(arg)) + " " + std::string(arg.name);
    if (arg.has_default) text += "=" + std::string(arg.default_text);
  }
  return text + ")";
}

PyObject* op_vectorcall(PyObject* callable, PyObject* const* args, size_t flagged,
                        PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    auto* self = reinterpret_cast<PyOpFunction*>(callable);
    Py_ssize_t nargs = PyVectorcall_NARGS(flagged);
    std::string best_error;
    int best_fit = -1;
    for (const OpEntry* entry : *self->overloads) {
      Arena arena;
      Call call(*entry, arena);
      if (call.parse(args, nargs, keywords)) {
        Result result = run(*entry, call.values(), self->inplace, call.extras().out != nullptr);
        return deliver(*entry, std::move(result), call.extras());
      }
      if (call.fitted() > best_fit) {
        best_fit = call.fitted();
        best_error = call.error();
      }
    }
    std::string message = *self->name + "(): " + best_error;
    if (self->overloads->size() > 1) {
      message += ". It takes one of:";
      for (const OpEntry* entry : *self->overloads)
        message += "\n  " + signature_text(entry->schema);
    }
    PyErr_SetString(PyExc_TypeError, message.c_str());
    return nullptr;
  });
}

PyObject* op_bind(PyObject* self, PyObject* object, PyObject*) {
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
PyObject* op_module(PyObject* self, void*) {
  std::string home = (*reinterpret_cast<PyOpFunction*>(self)->overloads)[0]->home;
  home = home.substr(0, home.find(' '));
  return PyUnicode_FromString(home == "torch" ? "rushlight" : ("rushlight." + home).c_str());
}
PyObject* op_reduce(PyObject* self, PyObject*) { return op_name(self, nullptr); }

PyGetSetDef op_attributes[] = {{"__name__", op_name, nullptr, nullptr, nullptr},
                               {"__qualname__", op_name, nullptr, nullptr, nullptr},
                               {"__doc__", op_doc, nullptr, nullptr, nullptr},
                               {"__module__", op_module, nullptr, nullptr, nullptr},
                               {}};
PyMethodDef op_methods[] = {{"__reduce__", op_reduce, METH_NOARGS, "Pickles by name."}, {}};

PyTypeObject OpFunctionType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight._C.OpFunction",
    .tp_basicsize = sizeof(PyOpFunction),
    .tp_vectorcall_offset = offsetof(PyOpFunction, vectorcall),
    .tp_repr = op_repr,
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_methods = op_methods,
    .tp_getset = op_attributes,
    .tp_descr_get = op_bind};

PyObject* make_function(std::string name, std::vector<const OpEntry*> overloads, bool inplace) {
  PyObject* object = checked(OpFunctionType.tp_alloc(&OpFunctionType, 0));
  auto* self = reinterpret_cast<PyOpFunction*>(object);
  self->vectorcall = op_vectorcall;
  self->overloads = new std::vector<const OpEntry*>(std::move(overloads));
  self->name = new std::string(std::move(name));
  self->inplace = inplace;
  return object;
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

const Value* op_defaults(const OpEntry& entry) { return defaults_of(entry).values.data(); }

PyObject* call_op(const OpEntry& entry, const Value* args, bool inplace) {
  return to_python(entry, run(entry, args, inplace));
}

// _C._op_homes: {"torch": {name: function}, "nn.functional": {...}, ..., "Tensor": {methods}}.
void add_ops(PyObject* module) {
  checked(PyType_Ready(&OpFunctionType));
  Ref homes(checked(PyDict_New()));
  const auto& table = op_table();
  for (size_t i = 0; i < table.size();) {
    size_t end = i;
    std::vector<const OpEntry*> functions, methods, inplace_forms;
    for (; end < table.size() && table[end].schema.name == table[i].schema.name; ++end) {
      const OpEntry* entry = &table[end];
      if (entry->variants & function) functions.push_back(entry);
      if (entry->variants & method) methods.push_back(entry);
      if (entry->call_inplace) inplace_forms.push_back(entry);
    }
    std::string name(table[i].schema.name);
    if (!functions.empty()) {
      Ref f(make_function(name, functions, false));
      add_to_homes(module, homes.get(), functions[0]->home, name, f.get());
      if (methods == functions) add_to_homes(module, homes.get(), "Tensor", name, f.get());
    }
    if (!methods.empty() && methods != functions) {
      Ref f(make_function(name, methods, false));
      add_to_homes(module, homes.get(), "Tensor", name, f.get());
    }
    if (!inplace_forms.empty()) {
      Ref f(make_function(name + "_", inplace_forms, true));
      add_to_homes(module, homes.get(), "Tensor", name + "_", f.get());
      add_to_homes(module, homes.get(), inplace_forms[0]->home, name + "_", f.get());
    }
    i = end;
  }
  checked(PyModule_AddObjectRef(module, "_op_homes", homes.get()));
}

}  // namespace rushlight::python
