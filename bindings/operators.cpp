// Owns the operators of tensors, which are too hot for the parser: + - * / @ == [], and what Python
// asks a number or a sequence for.
#include <array>

#include "bindings/dispatch.h"
#include "bindings/override.h"
#include "core/autograd/node.h"

namespace rushlight::python {
namespace {

// The op behind an operator: its first overload on two tensors, or on one for unary operators.
struct OperatorOp {
  const OpEntry* entry = nullptr;
  const Value* defaults = nullptr;
  // The methods of Tensor that __torch_function__ is told, which are those of PyTorch.
  const char* method = nullptr;
  const char* inplace = nullptr;
  const char* reflected = nullptr;  // for a number on the left

  void resolve(std::string_view name, int tensors, std::array<const char*, 3> told) {
    method = told[0], inplace = told[1], reflected = told[2];
    for (const OpEntry& e : op_table()) {
      if (e.schema.name != name || e.schema.arg_count < tensors) continue;
      if (tensors == 2 && e.schema.args[1].type != ArgType::tensor) continue;
      entry = &e;
      defaults = op_defaults(e);
      return;
    }
  }
};

// _(slot, op, what is told: the method, in place, with the operands swapped)
#define RUSHLIGHT_BINARY(_)                                                           \
  _(add, add, "add", "add_", "add")                                                   \
  _(subtract, sub, "sub", "sub_", "__rsub__")                                         \
  _(multiply, mul, "mul", "mul_", "mul")                                              \
  _(true_divide, div, "div", "div_", "__rtruediv__")                                  \
  _(floor_divide, floor_divide, "__floordiv__", "floor_divide_", "__rfloordiv__")     \
  _(remainder, remainder, "remainder", "remainder_", "__rmod__")                      \
  _(matrix_multiply, matmul, "matmul", "matmul", "__rmatmul__")                       \
  _(and, bitwise_and, "__and__", "__iand__", "__rand__")                              \
  _(or, bitwise_or, "__or__", "__ior__", "__ror__")                                   \
  _(xor, bitwise_xor, "__xor__", "__ixor__", "__rxor__")                              \
  _(lshift, bitwise_left_shift, "__lshift__", "__ilshift__", "__rlshift__")           \
  _(rshift, bitwise_right_shift, "__rshift__", "__irshift__", "__rrshift__")          \
  _(power, pow, "__pow__", "__ipow__", "__rpow__")
// _(slot, op, method)
#define RUSHLIGHT_UNARY(_) \
  _(negative, neg, "neg") _(absolute, abs, "abs") _(invert, bitwise_not, "__invert__")
#define RUSHLIGHT_COMPARE(_)                                        \
  _(Py_LT, lt, "lt") _(Py_LE, le, "le") _(Py_EQ, eq, "__eq__")      \
  _(Py_NE, ne, "ne") _(Py_GT, gt, "gt") _(Py_GE, ge, "ge")

enum Operator {
#define RUSHLIGHT_NAME(slot, op, ...) k_##slot,
  RUSHLIGHT_BINARY(RUSHLIGHT_NAME) RUSHLIGHT_UNARY(RUSHLIGHT_NAME)
#undef RUSHLIGHT_NAME
      kOperatorCount
};
OperatorOp operators[kOperatorCount];
OperatorOp comparisons[6];

// A tensor or number as an operand; null when it is something else.
const Tensor* operand(PyObject* object, Tensor& number) {
  if (is_tensor(object)) return &unwrap(object);
  Scalar value;
  if (!read_number(object, value)) return nullptr;
  number = wrapped_number(value);
  return &number;
}

// What a class of a or b makes of the operator; null when none takes over.
PyObject* override_binary(const OperatorOp& op, PyObject* a, PyObject* b, bool inplace) {
  if (inplace) return call_override(op.inplace, {a, b});
  if (is_tensor(a)) return call_override(op.method, {a, b});
  return call_override(op.reflected, {b, a});
}

PyObject* call_binary(const OperatorOp& op, PyObject* a, PyObject* b, bool inplace) {
  return guarded([&]() -> PyObject* {
    if (takes_over(a) || takes_over(b)) [[unlikely]]
      if (PyObject* result = override_binary(op, a, b, inplace)) return result;
    Tensor numbers[2];
    const Tensor* x = operand(a, numbers[0]);
    const Tensor* y = operand(b, numbers[1]);
    if (!x || !y) {
      PyObject* result = is_tensor(a) ? override_binary(op, a, b, inplace) : nullptr;
      return result ? result : Py_NewRef(Py_NotImplemented);
    }
    Value values[4] = {x, y};
    for (int i = 2; i < op.entry->schema.arg_count; ++i) values[i] = op.defaults[i];
    return call_op(*op.entry, values, inplace && op.entry->call_inplace);
  });
}
template <Operator op>
PyObject* binary(PyObject* a, PyObject* b) {
  constexpr bool commutes = op == k_add || op == k_multiply;
  if constexpr (commutes || op == k_subtract || op == k_true_divide) {
    if (is_tensor(a) && is_reusable(a, b)) return call_binary(operators[op], a, b, true);
    if (commutes && is_tensor(b) && is_reusable(b, a))
      return call_binary(operators[op], b, a, true);
  }
  return call_binary(operators[op], a, b, false);
}
template <Operator op>
PyObject* inplace_binary(PyObject* a, PyObject* b) {
  return call_binary(operators[op], a, b, true);
}
template <Operator op>
PyObject* unary(PyObject* a) {
  return guarded([&]() -> PyObject* {
    if (takes_over(a)) [[unlikely]]
      if (PyObject* result = call_override(operators[op].method, {a})) return result;
    Value value = &unwrap(a);
    return call_op(*operators[op].entry, &value, false);
  });
}
PyObject* positive(PyObject* a) {
  return guarded([&]() -> PyObject* {
    if (takes_over(a)) [[unlikely]]
      if (PyObject* result = call_override("positive", {a})) return result;
    return Py_NewRef(a);
  });
}
// Of the operator, the error has the class that Python gives to operands of a wrong kind.
PyObject* invert(PyObject* self) {
  PyObject* result = unary<k_invert>(self);
  if (!result && !is_integral(unwrap(self).dtype()) &&
      PyErr_ExceptionMatches(PyExc_NotImplementedError))
    PyErr_Format(PyExc_TypeError,
                 "~ (operator.invert) is only implemented on integer and Boolean-type tensors, not "
                 "on %s. Compare the tensor with something first, as in ~(x > 0).",
                 std::string(dtype_name(unwrap(self).dtype())).c_str());
  return result;
}
// Numbers have no product of matrices, which Python tells of the operator.
PyObject* matrix_multiply(PyObject* a, PyObject* b) {
  PyObject* result = binary<k_matrix_multiply>(a, b);
  auto is_number = [](PyObject* object) {
    return PyLong_Check(object) || PyFloat_Check(object) || PyComplex_Check(object);
  };
  if (!result && (is_number(a) || is_number(b))) {
    PyErr_Clear();
    Py_RETURN_NOTIMPLEMENTED;
  }
  return result;
}
// NumPy leaves array / tensor to us: the only operator with an array in front that PyTorch answers.
PyObject* true_divide(PyObject* a, PyObject* b) {
  PyObject* result = binary<k_true_divide>(a, b);
  bool by_array = result == Py_NotImplemented && !is_tensor(a) &&
                  PyObject_HasAttrString(a, "__array_interface__");
  if (!by_array) return result;
  return guarded([&] {
    Ref not_implemented(result);
    Ref inverse(checked(PyObject_CallMethod(b, "reciprocal", nullptr)));
    return PyNumber_Multiply(inverse.get(), a);
  });
}
PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return call_binary(operators[k_power], a, b, false);
}
PyObject* inplace_power(PyObject* a, PyObject* b, PyObject*) {
  return call_binary(operators[k_power], a, b, true);
}
// Python would take an array, which leaves == and != to us, for another object.
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || is_tensor(b) ||
      !PyObject_HasAttrString(b, "__array_interface__"))
    return call_binary(comparisons[op], a, b, false);
  return guarded([&] {
    Ref array(wrap(lift_fresh(tensor_from_array(b, false))));
    return call_binary(comparisons[op], a, array.get(), false);
  });
}

// What the tensor's class makes of len(), bool() or the like; null where it is not asked.
Ref told_answer(PyObject* self, const char* method) {
  if (!hears_attributes(self)) return {};
  return Ref(call_override(method, {self}));
}

int truth(PyObject* self) {
  return guarded([&] {
    if (Ref answer = told_answer(self, "__bool__")) return PyObject_IsTrue(answer.get());
    const Tensor& t = unwrap(self);
    CHECK(t.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
    CHECK(t.numel() == 1,
          "Boolean value of Tensor with more than one value is ambiguous. Use .any() or .all().");
    return int(item_of(t).to<bool>());
  });
}
Scalar only_element(PyObject* self) {
  const Tensor& t = unwrap(self);
  CHECK(t.numel() == 1, ErrorKind::kValue,
        "only one element tensors can be converted to Python scalars, but this one has shape ",
        t.sizes());
  return item_of(t);
}
PyObject* as_int(PyObject* self) {
  return guarded([&]() -> PyObject* {
    if (Ref answer = told_answer(self, "__int__")) return answer.release();
    Scalar value = only_element(self);
    CHECK(!value.is_complex(), "value cannot be converted to int without overflow: ", value,
          " is complex. Take the real part first.");
    Ref number(checked(wrap_number(value)));
    return PyNumber_Long(number.get());
  });
}
PyObject* as_float(PyObject* self) {
  return guarded([&]() -> PyObject* {
    if (Ref answer = told_answer(self, "__float__")) return answer.release();
    Scalar value = only_element(self);
    if (gradient_edge_exists(unwrap(self)) && is_called_by_program())
      checked(
          warn_program("Converting a tensor with requires_grad=True to a scalar may lead to "
                       "unexpected behavior. "
                       "Consider using tensor.detach() first."));
    CHECK(value.to<std::complex<double>>().imag() == 0,
          "value cannot be converted to type double without overflow: ", value,
          " is complex. Take the real part of the tensor.");
    return PyFloat_FromDouble(value.to<double>());
  });
}
PyObject* as_index(PyObject* self) {
  return guarded([&]() -> PyObject* {
    if (Ref answer = told_answer(self, "__index__")) return answer.release();
    const Tensor& t = unwrap(self);
    CHECK(t.numel() == 1 && (is_integral(t.dtype()) || is_bool(t.dtype())), ErrorKind::kType,
          "only integer tensors of a single element can be converted to an index");
    Ref number(checked(wrap_number(item_of(t))));
    return PyNumber_Index(number.get());
  });
}

PyNumberMethods number_methods = {.nb_add = binary<k_add>,
                                  .nb_subtract = binary<k_subtract>,
                                  .nb_multiply = binary<k_multiply>,
                                  .nb_remainder = binary<k_remainder>,
                                  .nb_power = power,
                                  .nb_negative = unary<k_negative>,
                                  .nb_positive = positive,
                                  .nb_absolute = unary<k_absolute>,
                                  .nb_bool = truth,
                                  .nb_invert = invert,
                                  .nb_lshift = binary<k_lshift>,
                                  .nb_rshift = binary<k_rshift>,
                                  .nb_and = binary<k_and>,
                                  .nb_xor = binary<k_xor>,
                                  .nb_or = binary<k_or>,
                                  .nb_int = as_int,
                                  .nb_float = as_float,
                                  .nb_inplace_add = inplace_binary<k_add>,
                                  .nb_inplace_subtract = inplace_binary<k_subtract>,
                                  .nb_inplace_multiply = inplace_binary<k_multiply>,
                                  .nb_inplace_remainder = inplace_binary<k_remainder>,
                                  .nb_inplace_power = inplace_power,
                                  .nb_inplace_lshift = inplace_binary<k_lshift>,
                                  .nb_inplace_rshift = inplace_binary<k_rshift>,
                                  .nb_inplace_and = inplace_binary<k_and>,
                                  .nb_inplace_xor = inplace_binary<k_xor>,
                                  .nb_inplace_or = inplace_binary<k_or>,
                                  .nb_floor_divide = binary<k_floor_divide>,
                                  .nb_true_divide = true_divide,
                                  .nb_inplace_floor_divide = inplace_binary<k_floor_divide>,
                                  .nb_inplace_true_divide = inplace_binary<k_true_divide>,
                                  .nb_index = as_index,
                                  .nb_matrix_multiply = matrix_multiply};

Py_ssize_t length(PyObject* self) {
  return guarded([&]() -> Py_ssize_t {
    if (Ref answer = told_answer(self, "__len__")) {
      Py_ssize_t count = PyNumber_AsSsize_t(answer.get(), PyExc_OverflowError);
      CHECK(count >= 0 || PyErr_Occurred(), ErrorKind::kValue, "__len__() should return >= 0");
      return count;
    }
    const Tensor& t = unwrap(self);
    CHECK(t.dim() > 0, ErrorKind::kType, "len() of a 0-d tensor");
    return Py_ssize_t(t.sizes()[0]);
  });
}
PyMappingMethods mapping_methods = {
    .mp_length = length, .mp_subscript = get_item, .mp_ass_subscript = set_item};
// PySequence_Check must hold, so that NumPy and friends see a sequence; items go through mapping.
PySequenceMethods sequence_methods = {.sq_length = length,
                                      .sq_item = [](PyObject* self, Py_ssize_t i) -> PyObject* {
                                        Ref index(PyLong_FromSsize_t(i));
                                        return index ? get_item(self, index.get()) : nullptr;
                                      }};

}  // namespace

void install_operators(PyTypeObject& type) {
#define RUSHLIGHT_RESOLVE(slot, op, ...) operators[k_##slot].resolve(#op, 2, {__VA_ARGS__});
  RUSHLIGHT_BINARY(RUSHLIGHT_RESOLVE)
#undef RUSHLIGHT_RESOLVE
#define RUSHLIGHT_RESOLVE(slot, op, method) operators[k_##slot].resolve(#op, 1, {method});
  RUSHLIGHT_UNARY(RUSHLIGHT_RESOLVE)
#undef RUSHLIGHT_RESOLVE
#define RUSHLIGHT_RESOLVE(slot, op, method) comparisons[slot].resolve(#op, 2, {method});
  RUSHLIGHT_COMPARE(RUSHLIGHT_RESOLVE)
#undef RUSHLIGHT_RESOLVE

  type.tp_as_number = &number_methods;
  type.tp_as_sequence = &sequence_methods;
  type.tp_as_mapping = &mapping_methods;
  type.tp_richcompare = compare;
}

}  // namespace rushlight::python
