// Owns how Python walks the tape, and the modes of autograd. Hooks are in hooks.cpp, nodes in
// node.cpp.
#include <algorithm>
#include <utility>
#include <vector>

#include "bindings/hooks.h"
#include "core/autograd/anomaly.h"
#include "core/autograd/engine.h"
#include "core/tensor/fusion.h"
#include "core/tensor/lift.h"

namespace rushlight::python {
namespace {

PyObject* detach_(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor& tensor = expect_tensor(self, "self");
    AutogradMeta* meta = find_meta(tensor);
    bool is_view = is_lifted(tensor) ? tensor.impl()->lift->base.defined() : meta && meta->view;
    CHECK(!is_view, "Can't detach views in-place. Use detach() instead.");
    if (is_lifted(tensor)) {
      take_lift(tensor, detach(tensor));
      Py_RETURN_NONE;
    }
    if (meta) {
      meta->grad_fn = nullptr;
      meta->slot = 0;
    }
    tensor.impl()->requires_grad = false;
    Py_RETURN_NONE;
  });
}

// ---- backward -----------------------------------------------------------------------------------

// A tensor with the gradient edge of a GradientEdge(node, slot, ...), and the shape, dtype and
// device of what made the edge; empty when the object is something else.
Tensor stand_in(PyObject* object) {
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) < 2) return {};
  const NodePtr* node = find_node(PyTuple_GET_ITEM(object, 0));
  if (!node) return {};
  int64_t slot;
  CHECK(read_int(PyTuple_GET_ITEM(object, 1), slot) && slot >= 0 &&
            size_t(slot) < (*node)->results.size(),
        ErrorKind::kIndex, (*node)->name(), " has ", (*node)->results.size(),
        " results; output_nr must be one of these");
  const ResultInfo info = (*node)->results[size_t(slot)];
  Shape zeros(info.sizes);
  std::fill(zeros.begin(), zeros.end(), 0);
  Tensor tensor = alias(empty(Shape{1}, info.dtype, info.device), info.sizes, zeros, 0);
  set_history(tensor, *node, uint32_t(slot));
  return tensor;
}

}  // namespace

std::vector<Tensor> read_tensors(PyObject* object, const char* what) {
  std::vector<Tensor> tensors;
  if (object == Py_None) return tensors;
  Ref items(checked(PySequence_Fast(object, what)));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    Tensor edge = stand_in(item);
    if (edge.defined()) tensors.push_back(edge);
    else tensors.push_back(item == Py_None ? Tensor() : expect_tensor(item, what));
  }
  return tensors;
}

namespace {

// The same where None is no choice.
std::vector<Tensor> read_defined(PyObject* object, const char* what) {
  std::vector<Tensor> tensors = read_tensors(object, what);
  for (const Tensor& tensor : tensors)
    CHECK(tensor.defined(), "all ", what, " have to be Tensors or GradientEdges, but one is None.");
  return tensors;
}

constexpr const char* kTraceback = "traceback_";  // the key that PyTorch has for it

// Under detect_anomaly a node keeps the lines that led to it, as traceback.format_stack() does.
void note_traceback(Node& node) {
  AcquireGil gil;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Ref module(PyImport_ImportModule("traceback"));
  Ref lines(module ? PyObject_CallMethod(module.get(), "format_stack", nullptr) : nullptr);
  if (lines) PyDict_SetItemString(metadata_of(node), kTraceback, lines.get());
  PyErr_Clear();  // no note is better than no result
  PyErr_Restore(type, value, traceback);
}

std::string traceback_in(const BackwardFailure& failure) {
  auto* notes = static_cast<PyObject*>(failure.metadata.get());
  PyObject* lines = notes ? PyDict_GetItemString(notes, kTraceback) : nullptr;
  if (!lines) return "";
  Ref empty(PyUnicode_FromString(""));
  Ref joined(PyUnicode_Join(empty.get(), lines));
  const char* text = joined ? PyUnicode_AsUTF8(joined.get()) : nullptr;
  PyErr_Clear();
  return text ? std::string("\nTraceback of forward call that caused the error:\n") + text : "";
}

// Adds to the Python exception in flight which op's backward raised it.
void name_failed_node() {
  if (!backward_failure) return;
  BackwardFailure failure = *std::exchange(backward_failure, std::nullopt);
  std::string line = describe_call_site(failure.site);
  std::string note =
      "Error detected in " + failure.node + (line.empty() ? "." : ", recorded at " + line + ".");
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  note += traceback_in(failure);
  if (anomaly_mode.enabled && PyErr_WarnEx(PyExc_UserWarning, note.c_str(), 1) < 0) PyErr_Clear();
  Ref added(PyObject_CallMethod(value, "add_note", "s", note.c_str()));
  PyErr_Clear();  // an old Python has no notes
  PyErr_Restore(type, value, traceback);
}

PyObject* current_walk_py(PyObject*, PyObject*) { return PyLong_FromLongLong(current_walk()); }

PyObject* will_engine_execute_node(PyObject*, PyObject* object) {
  return guarded([&] {
    const NodePtr* node = find_node(object);
    CHECK(node, ErrorKind::kType, "_will_engine_execute_node: expects a grad_fn, but got ",
          Py_TYPE(object)->tp_name, ". Pass tensor.grad_fn.");
    return PyBool_FromLong(will_run(**node));
  });
}

// Whether the walk of this thread goes to all leaves, and not only to inputs that were asked for.
thread_local bool walk_is_whole = true;

class WalkScope {
 public:
  explicit WalkScope(bool whole) : before_(std::exchange(walk_is_whole, whole)) {}
  ~WalkScope() { walk_is_whole = before_; }
  WalkScope(const WalkScope&) = delete;

 private:
  bool before_;
};

PyObject* backward_is_whole(PyObject*, PyObject*) { return PyBool_FromLong(walk_is_whole); }

// _run_backward(roots, grads, inputs, retain_graph, create_graph, accumulate) -> input gradients
PyObject* run_backward_py(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *roots_in, *grads_in, *inputs_in;
    int retain_graph, create_graph, accumulate;
    if (!PyArg_ParseTuple(args, "OOOppp", &roots_in, &grads_in, &inputs_in, &retain_graph,
                          &create_graph, &accumulate))
      return nullptr;
    auto roots = read_defined(roots_in, "tensors");
    auto grads = read_tensors(grads_in, "grad_tensors");
    auto inputs = read_defined(inputs_in, "inputs");
    if (accumulate)  // into tensors that are no leaves too
      for (const Tensor& input : inputs) rushlight::retain_grad(input);
    BackwardOptions options{bool(retain_graph), bool(create_graph), bool(accumulate)};
    std::vector<Tensor> result;
    backward_failure.reset();
    try {
      WalkScope scope(inputs.empty());
      ReleaseGil release;
      result = run_backward(roots, grads, inputs, options);
      // Freeing the tape may take as long as walking it.
      if (!retain_graph) grads.clear();
    } catch (...) {
      set_python_error();
      name_failed_node();
      throw PythonError();
    }
    return wrap_tuple(result);
  });
}

// ---- gates --------------------------------------------------------------------------------------

// The identity on several tensors. Its backward hands all their gradients to a Python function at
// once and passes on what that returns: hooks of single tensors could not see them together.
class Gate final : public Node, public HoldsPython {
 public:
  Gate(PyObject* function, TensorList tensors) : function_(function) {
    for (const Tensor& tensor : tensors) edges.push_back(gradient_edge(tensor));
  }

  void backward(TensorList grads, std::span<Tensor> input_grads) override {
    AcquireGil gil;
    Ref argument(wrap_tuple(grads));
    Ref result(stay_at_exit([&] { return PyObject_CallOneArg(function_.get(), argument.get()); }));
    if (!result) throw_python_error();
    std::vector<Tensor> passed = read_tensors(result.get(), "what a backward hook returns");
    CHECK(passed.size() == input_grads.size(), "a backward hook returned ", passed.size(),
          " gradients, but there are ", input_grads.size(), " tensors.");
    std::ranges::move(passed, input_grads.begin());
  }
  const char* op() const override { return "gate"; }
  PyObject* held() const override { return function_.get(); }

 private:
  Held function_;
};

// _gate(function, tensors) -> the tensors, behind one gate
PyObject* gate(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *function, *tensors_in;
    if (!PyArg_ParseTuple(args, "OO", &function, &tensors_in)) return nullptr;
    std::vector<Tensor> tensors = read_defined(tensors_in, "tensors");
    NodePtr node = NodePtr::adopt(new Gate(function, tensors));
    for (uint32_t slot = 0; slot < tensors.size(); ++slot) {
      Tensor passed = detach(tensors[slot]);
      set_view(passed, tensors[slot], ViewOrigin::one_of_many);
      set_history(passed, node, slot);
      tensors[slot] = passed;
    }
    return wrap_tuple(tensors);
  });
}

PyObject* increment_version(PyObject*, PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor& tensor = expect_tensor(self, "tensor");
    if (!tensor.impl()->inference) tensor.storage()->bump_version("increment_version");
    Py_RETURN_NONE;
  });
}

// ---- modes --------------------------------------------------------------------------------------

PyObject* is_grad_enabled_py(PyObject*, PyObject*) { return PyBool_FromLong(grad_mode.enabled); }
PyObject* set_grad_enabled_py(PyObject*, PyObject* value) {
  int enabled = PyObject_IsTrue(value);
  if (enabled < 0) return nullptr;
  grad_mode.enabled = enabled && !grad_mode.inference;
  Py_RETURN_NONE;
}
PyObject* is_inference_py(PyObject*, PyObject*) { return PyBool_FromLong(grad_mode.inference); }
PyObject* set_inference_py(PyObject*, PyObject* value) {
  int enabled = PyObject_IsTrue(value);
  if (enabled < 0) return nullptr;
  grad_mode.inference = enabled;
  Py_RETURN_NONE;
}

PyObject* is_grad_layout_kept(PyObject*, PyObject*) {
  return PyBool_FromLong(grad_mode.keeps_grad_layout);
}
PyObject* keep_grad_layout(PyObject*, PyObject* value) {
  int kept = PyObject_IsTrue(value);
  if (kept < 0) return nullptr;
  grad_mode.keeps_grad_layout = kept;
  Py_RETURN_NONE;
}
PyObject* anomaly_mode_py(PyObject*, PyObject*) {
  return Py_BuildValue("(NN)", PyBool_FromLong(anomaly_mode.enabled),
                       PyBool_FromLong(anomaly_mode.checks_nan));
}
PyObject* set_anomaly_mode(PyObject*, PyObject* args) {
  int enabled, checks_nan;
  if (!PyArg_ParseTuple(args, "pp", &enabled, &checks_nan)) return nullptr;
  anomaly_mode.enabled = enabled;
  anomaly_mode.checks_nan = checks_nan;
  Py_RETURN_NONE;
}

PyObject* begin_fusion_py(PyObject*, PyObject* args) {
  long long least = kLeastDeferred;
  if (!PyArg_ParseTuple(args, "|L", &least)) return nullptr;
  begin_fusion(std::max(least, 1LL));
  Py_RETURN_NONE;
}
PyObject* end_fusion_py(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    CHECK(is_fusing(), "_end_fusion without _begin_fusion");
    ReleaseGil unlocked;
    end_fusion();
    Py_RETURN_NONE;
  });
}
PyObject* is_fusing_py(PyObject*, PyObject*) { return PyBool_FromLong(is_fusing()); }

PyMethodDef methods[] = {
    {"_run_backward", run_backward_py, METH_VARARGS, "Walks the tape from roots to leaves."},
    {"_will_engine_execute_node", will_engine_execute_node, METH_O,
     "Whether the backward that runs comes by a node."},
    {"_current_walk", current_walk_py, METH_NOARGS, "The number of the backward that runs, or -1."},
    {"_backward_is_whole", backward_is_whole, METH_NOARGS,
     "Whether the backward that runs in this thread goes to all leaves."},
    {"_gate", gate, METH_VARARGS, "Passes tensors on; a function may replace their gradients."},
    {"_detach_", detach_, METH_O, "Cuts a tensor off its history, in place."},
    {"_increment_version", increment_version, METH_O, "Counts a write in place."},
    {"is_grad_enabled", is_grad_enabled_py, METH_NOARGS,
     "is_grad_enabled() -> bool\n\nWhether ops are recorded."},
    {"_set_grad_enabled", set_grad_enabled_py, METH_O,
     "Turns recording on or off for this thread."},
    {"is_inference_mode_enabled", is_inference_py, METH_NOARGS,
     "is_inference_mode_enabled() -> bool\n\nWhether inference_mode is on."},
    {"_set_inference_mode", set_inference_py, METH_O,
     "Turns inference mode on or off for this thread."},
    {"_is_grad_layout_kept", is_grad_layout_kept, METH_NOARGS,
     "Whether a new .grad is laid out in memory like its leaf."},
    {"_keep_grad_layout", keep_grad_layout, METH_O, "Sets that for this thread."},
    {"_begin_fusion", begin_fusion_py, METH_VARARGS,
     "From now on formulas of this thread are deferred, to run several in one pass; those for so "
     "many elements at least."},
    {"_end_fusion", end_fusion_py, METH_NOARGS, "Ends that; what is deferred is computed."},
    {"_is_fusing", is_fusing_py, METH_NOARGS, "Whether formulas are deferred."},
    {"_anomaly_mode", anomaly_mode_py, METH_NOARGS, "(enabled, check_nan) of anomaly detection."},
    {"_set_anomaly_mode", set_anomaly_mode, METH_VARARGS, "Sets these."},
    {}};

}  // namespace

void add_autograd(PyObject* module) {
  anomaly_mode.note_traceback = note_traceback;
  add_node(module);
  add_hooks(module);
  add_saving_hooks(module);
  checked(PyModule_AddFunctions(module, methods));
}

}  // namespace rushlight::python
