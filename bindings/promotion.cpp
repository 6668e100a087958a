// Owns what programs ask of the promotion of dtypes: promote_types, can_cast and result_type, of
// which modes and the classes of tensors are told.
#include <algorithm>
#include <array>

#include "bindings/override.h"
#include "core/tensor/pointwise.h"

namespace rushlight::python {
namespace {

using Pair = std::array<PyObject*, 2>;

// A function of the module that takes two arguments.
struct Function {
  const char* name;
  std::array<const char*, 2> arguments;
};
constexpr Function kPromoteTypes = {"promote_types", {"type1", "type2"}};
constexpr Function kCanCast = {"can_cast", {"from_", "to"}};
constexpr Function kResultType = {"result_type", {"tensor", "other"}};

// The arguments of a call, by position or by name.
Pair read_pair(const Function& of, PyObject* const* args, Py_ssize_t nargs, PyObject* keywords) {
  Pair pair{};
  Py_ssize_t count = nargs + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
  CHECK(count == 2, ErrorKind::kType, of.name, "() takes 2 arguments, ", of.arguments[0], " and ",
        of.arguments[1], ", but got ", count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    size_t place = size_t(i);
    if (i >= nargs) {
      PyObject* name = PyTuple_GET_ITEM(keywords, i - nargs);
      place = PyUnicode_CompareWithASCIIString(name, of.arguments[1]) == 0;
      CHECK(!pair[place] && PyUnicode_CompareWithASCIIString(name, of.arguments[place]) == 0,
            ErrorKind::kType, of.name, "() takes ", of.arguments[0], " and ", of.arguments[1],
            ", and these are not what it was given");
    }
    pair[place] = args[i];
  }
  return pair;
}

std::array<DType, 2> dtypes_in(const Pair& pair, const char* function) {
  std::array<DType, 2> dtypes;
  CHECK(read_dtype(pair[0], dtypes[0]) && read_dtype(pair[1], dtypes[1]), ErrorKind::kType,
        function, ": expected two dtypes");
  return dtypes;
}

PyObject* promote_types(const Pair& pair) {
  auto [a, b] = dtypes_in(pair, "promote_types");
  return wrap_dtype(promote(a, b));
}

PyObject* can_cast_types(const Pair& pair) {
  auto [from, to] = dtypes_in(pair, "can_cast");
  return PyBool_FromLong(can_cast(from, to));
}

PyObject* result_type(const Pair& pair) {
  Tensor numbers[2];
  const Tensor* operands[2];
  for (size_t i = 0; i < 2; ++i) {
    operands[i] = &numbers[i];
    if (is_tensor(pair[i])) {
      operands[i] = &unwrap(pair[i]);
      continue;
    }
    Scalar value;
    CHECK(read_number(pair[i], value), ErrorKind::kType,
          "result_type: expected tensors or numbers");
    numbers[i] = wrapped_number(value);
  }
  return wrap_dtype(result_dtype(operands));
}

template <const Function& function, PyObject* (*answer)(const Pair&)>
PyObject* ask(PyObject* module, PyObject* const* args, Py_ssize_t nargs, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    Py_ssize_t count = nargs + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
    if (std::any_of(args, args + count, object_takes_over)) {
      Ref own(checked(PyObject_GetAttrString(module, function.name)));
      if (PyObject* result = call_override(own.get(), args, nargs, keywords)) return result;
    }
    return answer(read_pair(function, args, nargs, keywords));
  });
}

template <const Function& function, PyObject* (*answer)(const Pair&)>
PyMethodDef method(const char* doc) {
  auto call = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(ask<function, answer>));
  return {function.name, call, METH_FASTCALL | METH_KEYWORDS, doc};
}

PyMethodDef methods[] = {
    method<kPromoteTypes, promote_types>("promote_types(type1, type2)\n\n"
                                         "The smallest dtype that both convert to."),
    method<kCanCast, can_cast_types>("can_cast(from_, to)\n\n"
                                     "Whether a dtype may be written to another in place."),
    method<kResultType, result_type>("result_type(tensor, other)\n\n"
                                     "The dtype of the result of an op on both."),
    {}};

}  // namespace

void add_promotion(PyObject* module) { checked(PyModule_AddFunctions(module, methods)); }

}  // namespace rushlight::python
