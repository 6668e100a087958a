// Owns the one argument parser of all ops: Python objects to Values, by the op's schema.
//
// What is done with the Values is in op_function.cpp.
#include "bindings/parser.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "core/tensor/lift.h"

namespace rushlight::python {
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

namespace {

// ---- defaults -----------------------------------------------------------------------------------

// The defaults of one op as Values, read once from the text of the schema.
struct Defaults {
  std::array<Value, kMaxArgs> values;
  std::forward_list<Shape> lists;  // what ShapeRefs in `values` look at

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
        return ShapeRef(lists.emplace_front(list));
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

// ---- one argument -------------------------------------------------------------------------------

const char* type_text(const Arg& arg) {
  using enum ArgType;
  switch (arg.type) {
    case tensor:
    case tensor_optional:
    case tensor_mutable: return "Tensor";
    case tensor_list:
    case tensor_list_optional: return "tuple of Tensors";
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

// What to pass in place of what people often pass: names of dtypes, lists and arrays.
std::string advice(const Arg& arg, PyObject* object) {
  if (arg.type == ArgType::dtype_optional) return ". Pass torch.float32, for example";
  bool is_tensor = arg.type == ArgType::tensor || arg.type == ArgType::tensor_optional;
  if (!is_tensor || !PySequence_Check(object) || PyUnicode_Check(object)) return "";
  return ". Pass torch.as_tensor(" + std::string(arg.name) + ")";
}

bool read_ints(PyObject* object, int expand_to, Arena& arena, Value& out) {
  int64_t one;
  if (PyTuple_Check(object) || PyList_Check(object)) {
    auto ints = arena.make_ints(size_t(PySequence_Fast_GET_SIZE(object)));
    for (size_t i = 0; i < ints.size(); ++i) {
      // To read one may run Python code that changes the list.
      arena.misfit = Py_ssize_t(i);
      if (arena.misfit >= PySequence_Fast_GET_SIZE(object)) return false;
      Ref item = Ref::borrow(PySequence_Fast_GET_ITEM(object, arena.misfit));
      if (!read_int(item.get(), ints[i])) return false;
    }
    out = ShapeRef(ints);
    return true;
  }
  if (!expand_to || !read_int(object, one)) return false;
  auto ints = arena.make_ints(size_t(expand_to));
  std::fill(ints.begin(), ints.end(), one);
  out = ShapeRef(ints);
  return true;
}

bool read_tensor_list(PyObject* object, bool takes_none, Arena& arena, Value& out) {
  if (!PyTuple_Check(object) && !PyList_Check(object)) return false;
  std::vector<Tensor> list;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(object, i);
    if (is_tensor(item)) list.push_back(unwrap(item));
    else if (takes_none && item == Py_None) list.emplace_back();
    else {
      arena.misfit = i;
      return false;
    }
  }
  out = TensorList(arena.tensor_lists.emplace_front(std::move(list)));
  return true;
}

bool read_tensor(PyObject* object, bool takes_number, Arena& arena, Value& out) {
  Scalar number;
  if (is_tensor(object)) out = &unwrap(object);
  else if (takes_number && read_number(object, number))
    out = &arena.tensors.emplace_front(wrapped_number(number));
  else return false;
  return true;
}

bool read_real(PyObject* object, Value& out) {
  if (PyFloat_CheckExact(object)) {
    out = PyFloat_AS_DOUBLE(object);
    return true;
  }
  if (PyLong_CheckExact(object)) {  // a float may be larger than any int64
    double real = PyLong_AsDouble(object);
    if (real == -1 && PyErr_Occurred()) throw PythonError();
    out = real;
    return true;
  }
  Scalar value;
  if (is_tensor(object) && unwrap(object).numel() == 1 && !unwrap(object).requires_grad())
    value = item_of(unwrap(object));
  else if (!read_number(object, value)) return false;
  if (value.is_complex()) return false;
  out = value.to<double>();
  return true;
}

bool read_scalar(PyObject* object, Scalar& out) {
  if (!is_tensor(object)) return read_number(object, out);
  const Tensor& tensor = unwrap(object);
  if (tensor.dim() != 0 || tensor.requires_grad() || tensor.device().is_meta() || is_lifted(tensor))
    return false;
  out = item_of(tensor);
  return true;
}

bool read_bool(PyObject* object, bool& out) {
  out = object == Py_True;
  return PyBool_Check(object);
}

bool read_text(PyObject* object, std::string_view& out) {
  if (!PyUnicode_Check(object)) return false;
  Py_ssize_t size;
  const char* text = PyUnicode_AsUTF8AndSize(object, &size);
  if (!text) throw PythonError();
  out = {text, size_t(size)};
  return true;
}

// What `read` makes of the object, as a Value.
template <class T>
bool read_as(bool (*read)(PyObject*, T&), PyObject* object, Value& out) {
  T value;
  if (!read(object, value)) return false;
  out = value;
  return true;
}

// Reads one argument; false when the object does not fit.
bool read_value(const Arg& arg, PyObject* object, Arena& arena, Value& out) {
  using enum ArgType;
  if (object == Py_None) {
    if (!is_optional(arg.type)) return false;
    out = std::monostate();
    return true;
  }
  switch (arg.type) {
    case tensor:
    case tensor_optional:
    case tensor_mutable: return read_tensor(object, arg.takes_number, arena, out);
    case tensor_list:
    case tensor_list_optional:
      return read_tensor_list(object, arg.type == tensor_list_optional, arena, out);
    case integer:
    case integer_optional: return read_as<int64_t>(read_int, object, out);
    case ints:
    case ints_optional: return read_ints(object, arg.expand_to, arena, out);
    case ArgType::real:
    case real_optional: return read_real(object, out);
    case boolean:
    case boolean_optional: return read_as<bool>(read_bool, object, out);
    case string:
    case string_optional: return read_as<std::string_view>(read_text, object, out);
    case number:
    case number_optional: return read_as<Scalar>(read_scalar, object, out);
    case dtype_optional: return read_as<DType>(read_dtype, object, out);
    case device_optional: return read_as<Device>(read_device, object, out);
    case memory_format_optional: return read_as<MemoryFormat>(read_memory_format, object, out);
    case generator_optional: return read_as<Generator*>(read_generator, object, out);
  }
  return false;
}

// ---- all arguments of a call --------------------------------------------------------------------

// The names of arguments under others: NumPy's, and those of methods that say which kind they take.
const char* canonical_name(const char* name) {
  static constexpr const char* kNames[][2] = {{"axis", "dim"},
                                              {"keepdims", "keepdim"},
                                              {"ddof", "correction"},
                                              {"split_size", "split_size_or_sections"},
                                              {"indices", "indices_or_sections"},
                                              {"sections", "indices_or_sections"},
                                              {"tensor_indices_or_sections", "indices_or_sections"},
                                              {"x", "input"},
                                              {"a", "input"},
                                              {"x1", "input"},
                                              {"x2", "other"}};
  for (const auto& [other, own] : kNames)
    if (!std::strcmp(name, other)) return own;
  return name;
}

// A torch.layout by its name, see rushlight/_layout.py; None is as good as none.
bool read_layout(PyObject* object, std::optional<Layout>& out) {
  if (object == Py_None) return true;
  Ref name(PyObject_GetAttrString(object, "_name"));
  PyErr_Clear();
  if (!name || !PyUnicode_Check(name.get())) return false;
  for (int i = 0; i < kLayouts; ++i) {
    if (PyUnicode_CompareWithASCIIString(name.get(), layout_name(Layout(i)))) continue;
    out = Layout(i);
    return true;
  }
  return false;
}

// Ops that make tensors from nothing take PyTorch's options for them.
bool is_factory(const Schema& schema) {
  return schema.index_of("dtype") >= 0 && schema.index_of("device") >= 0;
}

}  // namespace

bool Call::parse(PyObject* const* args, Py_ssize_t nargs, PyObject* keywords) {
  const Defaults& defaults = defaults_of(entry_);
  for (int i = 0; i < schema_.arg_count; ++i) values_[size_t(i)] = defaults.values[size_t(i)];

  Py_ssize_t positional = 0;
  while (positional < schema_.arg_count && !schema_.args[size_t(positional)].keyword_only)
    ++positional;
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    if (i >= positional)
      return fail_shape("takes " + std::to_string(positional) + " positional argument" +
                        (positional == 1 ? "" : "s") + " but " + std::to_string(nargs) +
                        " were given");
    const Arg& arg = schema_.args[size_t(i)];
    bool list = arg.type == ArgType::ints || arg.type == ArgType::ints_optional;
    // x.view(2, 3): the rest of the positional arguments is the list.
    if (list && i <= 1 && !PyTuple_Check(args[i]) && !PyList_Check(args[i]) && !arg.expand_to &&
        args[i] != Py_None) {
      if (!put_ints(int(i), args + i, nargs - i)) return false;
      break;
    }
    if (arg.one_by_one && is_tensor(args[0])) {
      if (!put_tensors(args, nargs)) return false;
      break;
    }
    if (!put(int(i), args[i])) return false;
  }
  Py_ssize_t keyword_count = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t k = 0; k < keyword_count; ++k)
    if (!put_keyword(PyTuple_GET_ITEM(keywords, k), args[nargs + k])) return false;
  if (nargs == 0 && schema_.args[0].one_by_one && !given_[0]) put_tensors(args, 0);
  for (int i = 0; i < schema_.arg_count; ++i) {
    const Arg& arg = schema_.args[size_t(i)];
    if (!given_[size_t(i)] && !arg.has_default)
      return fail_shape("missing required argument '" + std::string(arg.name) + "'");
    // A flag that an overload cannot do without is what chooses it.
    bool chooses = arg.type == ArgType::boolean && arg.keyword_only && !arg.has_default &&
                   !schema_.overload.empty();
    if (chooses && !std::get<bool>(values_[size_t(i)]))
      return fail("argument '" + std::string(arg.name) + "' must be True");
  }
  if (extras_.layout == Layout::strided) forget_layout();
  return true;
}

// What is made dense beside a sparse tensor takes its sizes, dtype and device, and no element.
void Call::forget_layout() {
  auto* input = std::get_if<const Tensor*>(&values_[0]);
  if (!input || !(*input)->is_sparse()) return;
  const Tensor& sparse = **input;
  Tensor one = empty(Shape(), sparse.dtype(), sparse.device());
  values_[0] =
      &arena_.tensors.emplace_front(alias(one, sparse.sizes(), Shape(size_t(sparse.dim())), 0));
}

bool Call::put(int i, PyObject* object) {
  const Arg& arg = schema_.args[size_t(i)];
  if (given_[size_t(i)])
    return fail_shape("got multiple values for argument '" + std::string(arg.name) + "'");
  given_[size_t(i)] = true;
  arena_.misfit = -1;
  if (!read_value(arg, object, arena_, values_[size_t(i)])) return fail(i, object);
  ++misfit_.fitted;
  return true;
}

bool Call::put_ints(int i, PyObject* const* items, Py_ssize_t count) {
  auto ints = arena_.make_ints(size_t(count));
  for (Py_ssize_t k = 0; k < count; ++k)
    if (!read_int(items[k], ints[size_t(k)])) return fail(i, items[k]);
  values_[size_t(i)] = ShapeRef(ints);
  given_[size_t(i)] = true;
  return true;
}

bool Call::put_tensors(PyObject* const* args, Py_ssize_t nargs) {
  std::vector<Tensor> list;
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    if (!is_tensor(args[i])) return fail_item(0, args[i], i);
    list.push_back(unwrap(args[i]));
  }
  values_[0] = TensorList(arena_.tensor_lists.emplace_front(std::move(list)));
  given_[0] = true;
  return true;
}

bool Call::put_keyword(PyObject* key, PyObject* object) {
  const char* name = PyUnicode_AsUTF8(key);
  if (!name) throw PythonError();
  int i = schema_.index_of(name);
  if (i < 0) i = schema_.index_of(canonical_name(name));
  if (i >= 0) return put(i, object);
  if (!std::strcmp(name, "out")) {
    extras_.out = object == Py_None ? nullptr : object;
    return true;
  }
  // NumPy's functions call methods with None for what they were not given.
  if (object == Py_None && (!std::strcmp(name, "axis") || !std::strcmp(name, "dtype"))) return true;
  if (is_factory(schema_)) {
    if (!std::strcmp(name, "requires_grad")) {
      int truth = PyObject_IsTrue(object);
      if (truth < 0) throw PythonError();
      extras_.requires_grad = truth == 1;
      return true;
    }
    if (!std::strcmp(name, "pin_memory")) return true;
    if (!std::strcmp(name, "layout")) {
      if (read_layout(object, extras_.layout)) return true;
      return fail(std::string("argument 'layout' must be torch.layout, not ") +
                  Py_TYPE(object)->tp_name);
    }
  }
  return fail_shape("got an unexpected keyword argument '" + std::string(name) + "'");
}

bool Call::fail(std::string message) {
  misfit_.error = std::move(message);
  return false;
}

bool Call::fail_shape(std::string message) {
  misfit_.is_of_shape = true;
  return fail(std::move(message));
}

std::string Call::expectation(int i) const {
  const Arg& arg = schema_.args[size_t(i)];
  return "argument '" + std::string(arg.name) + "' (position " + std::to_string(i + 1) +
         ") must be " + type_text(arg);
}

bool Call::fail(int i, PyObject* object) {
  bool is_list = PyTuple_Check(object) || PyList_Check(object);
  if (is_list && arena_.misfit >= 0 && arena_.misfit < PySequence_Fast_GET_SIZE(object))
    return fail_item(i, PySequence_Fast_GET_ITEM(object, arena_.misfit), arena_.misfit);
  return fail(expectation(i) + ", not " + Py_TYPE(object)->tp_name +
              advice(schema_.args[size_t(i)], object));
}

bool Call::fail_item(int i, PyObject* item, Py_ssize_t place) {
  return fail(expectation(i) + ", but found element of type " + Py_TYPE(item)->tp_name +
              " at pos " + std::to_string(place));
}

std::string signature_text(const Schema& schema, bool types) {
  std::string text = "(";
  bool starred = false;
  for (int i = 0; i < schema.arg_count; ++i) {
    const Arg& arg = schema.args[size_t(i)];
    if (i) text += ", ";
    if (arg.keyword_only && !starred) {
      text += "*, ";
      starred = true;
    }
    if (types) text += std::string(type_text(arg)) + " ";
    if (arg.one_by_one) {
      text += "*";
      starred = true;
    }
    text += arg.name;
    if (arg.has_default) text += "=" + std::string(arg.default_text);
  }
  return text + ")";
}

const Value* op_defaults(const OpEntry& entry) { return defaults_of(entry).values.data(); }

}  // namespace rushlight::python
