// Owns what Python's transforms (func, forward_ad) are made of: levels, and tensors lifted to them.
#include "core/ops/lift.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "bindings/python.h"
#include "core/autograd/engine.h"
#include "core/ops/ops.h"

namespace rushlight::python {
namespace {

const char* name_of(LevelKind kind) { return kind == LevelKind::batch ? "batch" : "dual"; }

unsigned long long read_level(PyObject* id) {
  unsigned long long number = PyLong_AsUnsignedLongLong(id);
  if (number == static_cast<unsigned long long>(-1) && PyErr_Occurred()) throw PythonError();
  return number;
}

const Level& find_level(unsigned long long id) {
  for (const Level& level : open_levels())
    if (level.id == id) return level;
  CHECK(false, "the level ", id, " is not open on this thread.");
  __builtin_unreachable();
}

// _open_batch_level(size, randomness) -> level
PyObject* open_batch(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    long long size;
    const char* randomness;
    if (!PyArg_ParseTuple(args, "Ls", &size, &randomness)) return nullptr;
    std::string_view name = randomness;
    CHECK(name == "error" || name == "different" || name == "same", ErrorKind::kValue,
          "Only allowed values for randomness are 'error', 'different', or 'same', got ", name);
    Randomness how = name == "error"       ? Randomness::error
                     : name == "different" ? Randomness::different
                                           : Randomness::same;
    return PyLong_FromUnsignedLongLong(open_batch_level(size, how).id);
  });
}

PyObject* open_dual(PyObject*, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(open_dual_level().id); });
}

// _level_info(level) -> (size, randomness) of a batch level
PyObject* level_info(PyObject*, PyObject* id) {
  return guarded([&]() -> PyObject* {
    const Level& level = find_level(read_level(id));
    static constexpr const char* names[] = {"error", "different", "same"};
    return Py_BuildValue("Ls", static_cast<long long>(level.size), names[size_t(level.randomness)]);
  });
}

PyObject* close(PyObject*, PyObject* id) {
  return guarded([&]() -> PyObject* {
    close_level(read_level(id));
    Py_RETURN_NONE;
  });
}

// _begin_own_tape() -> the modes before, for _end_own_tape. In between ops are recorded.
PyObject* begin_own_tape(PyObject*, PyObject*) {
  const GradMode before = grad_mode;
  OwnTapeGuard::begin();
  grad_mode.enabled = true;
  return PyLong_FromLong(before.enabled | before.inference << 1 | before.saves_inference << 2);
}

PyObject* end_own_tape(PyObject*, PyObject* modes) {
  long before = PyLong_AsLong(modes);
  if (before == -1 && PyErr_Occurred()) return nullptr;
  GradMode previous;
  previous.inference = before & 2;
  previous.saves_inference = before & 4;
  OwnTapeGuard::end(previous);
  grad_mode.enabled = before & 1;
  Py_RETURN_NONE;
}

// The levels of a thread, to be opened again.
struct Levels {
  std::vector<Level> open;
  uint64_t hidden_from;
};
constexpr const char* kLevels = "rushlight.levels";

PyObject* wrap_levels(Levels levels) {
  auto drop = [](PyObject* capsule) {
    delete static_cast<Levels*>(PyCapsule_GetPointer(capsule, kLevels));
  };
  auto kept = std::make_unique<Levels>(std::move(levels));
  PyObject* capsule = checked(PyCapsule_New(kept.get(), kLevels, drop));
  kept.release();
  return capsule;
}

// _levels() -> those that are open, whether a dual one is among them, whether there is any
PyObject* levels_py(PyObject*, PyObject*) {
  return guarded([&] {
    bool has_dual = std::ranges::any_of(
        open_levels(), [](const Level& level) { return level.kind == LevelKind::dual; });
    Ref levels(wrap_levels({open_levels(), UINT64_MAX}));
    return checked(Py_BuildValue("(ONN)", levels.get(), PyBool_FromLong(has_dual),
                                 PyBool_FromLong(!open_levels().empty())));
  });
}

// _exchange_levels(levels) -> the levels before
PyObject* exchange_levels_py(PyObject*, PyObject* given) {
  return guarded([&]() -> PyObject* {
    auto* levels = static_cast<Levels*>(PyCapsule_GetPointer(given, kLevels));
    if (!levels) throw PythonError();
    Levels next = *levels;
    uint64_t hidden_from = exchange_hidden_levels(next.hidden_from);
    return wrap_levels({exchange_levels(std::move(next.open)), hidden_from});
  });
}

// _lift_samples(tensor, level) -> tensor of one sample; the samples lie along dim 0
PyObject* lift_samples_py(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* self;
    unsigned long long id;
    if (!PyArg_ParseTuple(args, "OK", &self, &id)) return nullptr;
    const Tensor& samples = expect_tensor(self, "samples");
    const Level& level = find_level(id);
    CHECK(samples.dim() > 0 && samples.size(0) == level.size, "vmap: expected ", level.size,
          " samples along dim 0, got shape ", samples.sizes());
    return wrap(lift_samples(samples, level));
  });
}

// _samples_of(tensor, level) -> all samples along dim 0
PyObject* samples_of_py(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* self;
    unsigned long long id;
    if (!PyArg_ParseTuple(args, "OK", &self, &id)) return nullptr;
    return wrap(samples_of(expect_tensor(self, "tensor"), find_level(id)));
  });
}

PyObject* lift_dual_py(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *value_in, *tangent_in;
    unsigned long long id;
    if (!PyArg_ParseTuple(args, "OOK", &value_in, &tangent_in, &id)) return nullptr;
    const Tensor &value = expect_tensor(value_in, "tensor"),
                 &tangent = expect_tensor(tangent_in, "tangent");
    CHECK(is_differentiable(value.dtype()),
          "Expected a floating point or complex tensor to make a dual tensor, but got: ",
          dtype_name(value.dtype()));
    CHECK(value.sizes() == tangent.sizes(),
          "Expected tangent to have the same shape as primal, got ", tangent.sizes(), " for ",
          value.sizes());
    CHECK(value.dtype() == tangent.dtype(),
          "Expected tangent to have the same dtype as primal, got ", dtype_name(tangent.dtype()),
          " for ", dtype_name(value.dtype()));
    const Level& level = find_level(id);
    CHECK(!is_lifted_at(value, level), "the tensor already has a tangent at this level.");
    return wrap(lift_dual(value, tangent, level));
  });
}

// _unlift_dual(tensor, level) -> (value, tangent or None)
PyObject* unlift_dual(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* self;
    unsigned long long id;
    if (!PyArg_ParseTuple(args, "OK", &self, &id)) return nullptr;
    const Tensor& tensor = expect_tensor(self, "tensor");
    Level level{.id = id, .kind = LevelKind::dual};
    Tensor tangent = tangent_of(tensor, level);
    Ref value(wrap(lowered(tensor, level)));
    Ref along(wrap(tangent));
    return PyTuple_Pack(2, value.get(), along.get());
  });
}

PyObject* fresh_input_py(PyObject*, PyObject* self) {
  return guarded([&] { return wrap(fresh_input(expect_tensor(self, "tensor"))); });
}

PyObject* without_history_py(PyObject*, PyObject* self) {
  return guarded([&] { return wrap(without_history(expect_tensor(self, "tensor"))); });
}

// _lift_of(tensor) -> None, or (kind, level, tensor behind it, tangent or None)
PyObject* lift_of(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor& tensor = expect_tensor(self, "tensor");
    if (!is_lifted(tensor)) Py_RETURN_NONE;
    const Lift& lift = *tensor.impl()->lift;
    Ref value(wrap(lift.value));
    Ref tangent(wrap(lift.tangent));
    return Py_BuildValue("sKOO", name_of(lift.level.kind),
                         static_cast<unsigned long long>(lift.level.id), value.get(),
                         tangent.get());
  });
}

// _depends_on_more(roots, inputs) -> bool
PyObject* depends_on_more_py(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *roots, *inputs;
    if (!PyArg_ParseTuple(args, "OO", &roots, &inputs)) return nullptr;
    return PyBool_FromLong(
        depends_on_more(read_tensors(roots, "roots"), read_tensors(inputs, "inputs")));
  });
}

PyMethodDef methods[] = {
    {"_open_batch_level", open_batch, METH_VARARGS, "Opens a level of vmap."},
    {"_open_dual_level", open_dual, METH_NOARGS, "Opens a level of dual tensors."},
    {"_level_info", level_info, METH_O, "The size and the randomness of a level of vmap."},
    {"_close_level", close, METH_O, "Closes a level."},
    {"_levels", levels_py, METH_NOARGS,
     "The levels that are open, whether one is dual, whether there is any."},
    {"_exchange_levels", exchange_levels_py, METH_O, "Opens other levels in place of all."},
    {"_begin_own_tape", begin_own_tape, METH_NOARGS, "Records for a transform, in any mode."},
    {"_end_own_tape", end_own_tape, METH_O, "Ends this."},
    {"_lift_samples", lift_samples_py, METH_VARARGS, "One tensor that stands for all samples."},
    {"_samples_of", samples_of_py, METH_VARARGS, "All samples of a lifted tensor along dim 0."},
    {"_lift_dual", lift_dual_py, METH_VARARGS, "A tensor with a tangent."},
    {"_unlift_dual", unlift_dual, METH_VARARGS, "The value and the tangent at a level."},
    {"_fresh_input", fresh_input_py, METH_O, "An equal tensor where new gradients end."},
    {"_without_history", without_history_py, METH_O, "An equal tensor that is not recorded."},
    {"_lift_of", lift_of, METH_O, "What is behind a lifted tensor."},
    {"_depends_on_more", depends_on_more_py, METH_VARARGS,
     "Whether results depend on other tensors that want gradients than the inputs."},
    {}};

}  // namespace

void add_lift(PyObject* module) {
  warn_user = [](const std::string& text) {
    AcquireGil gil;
    if (warn_program(text.c_str()) < 0) throw_python_error();
  };
  checked(PyModule_AddFunctions(module, methods));
}

}  // namespace rushlight::python
