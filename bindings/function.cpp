// Owns apply(), the call of an autograd.Function. function_type.cpp has the type of contexts.
#include "bindings/function.h"

#include <algorithm>
#include <set>
#include <string>

#include "bindings/override.h"
#include "core/tensor/lift.h"

namespace rushlight::python {
namespace {

struct Names {
  PyObject* backward_class = PyUnicode_InternFromString("_backward_cls");
  PyObject* forward = PyUnicode_InternFromString("forward");
  PyObject* setup_context = PyUnicode_InternFromString("setup_context");
};
const Names& names() {
  static const Names names;
  return names;
}

// What a Function is called with: positional arguments, then those by name.
struct Arguments {
  SmallVector<PyObject*, 8> stack{nullptr};  // the first place is for the context
  PyObject* keywords = nullptr;              // a tuple of names, or null
  Ref owner;                                 // of what the others borrow

  PyObject* const* items() const { return stack.data() + 1; }
  size_t size() const { return stack.size() - 1; }
  size_t positional() const { return size() - (keywords ? size_t(PyTuple_GET_SIZE(keywords)) : 0); }
};

// Whether a forward that takes no context can be called with just these arguments, so that there
// are no defaults to fill in.
bool is_complete(PyObject* forward, const Arguments& args) {
  if (!PyFunction_Check(forward) || args.keywords) return false;
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(forward));
  return code->co_kwonlyargcount == 0 && args.positional() >= size_t(code->co_argcount);
}

// The arguments with those filled in that have defaults.
Arguments bind(PyObject* forward, const Arguments& given) {
  Ref positional(checked(PyTuple_New(Py_ssize_t(given.positional()))));
  Ref by_name(checked(PyDict_New()));
  for (size_t i = 0; i < given.size(); ++i) {
    PyObject* item = given.items()[i];
    auto at = Py_ssize_t(i) - Py_ssize_t(given.positional());
    if (at < 0) PyTuple_SET_ITEM(positional.get(), Py_ssize_t(i), Py_NewRef(item));
    else checked(PyDict_SetItem(by_name.get(), PyTuple_GET_ITEM(given.keywords, at), item));
  }
  Arguments bound;
  bound.owner = Ref(checked(PyObject_CallFunctionObjArgs(
      function_defaults.bind, forward, positional.get(), by_name.get(), nullptr)));
  PyObject* values;
  if (!PyArg_ParseTuple(bound.owner.get(), "O!O!", &PyTuple_Type, &values, &PyTuple_Type,
                        &bound.keywords))
    throw PythonError();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); ++i)
    bound.stack.push_back(PyTuple_GET_ITEM(values, i));
  return bound;
}

using ImplList = SmallVector<TensorImpl*, 4>;
bool contains(const ImplList& list, const Tensor& tensor) {
  return std::ranges::count(list, tensor.impl()) > 0;
}

// Tensors that forward named, which the context kept in a field.
ImplList read_marked(PyObject* marked, const char* field, const char* function) {
  ImplList impls;
  if (!marked || marked == Py_None) return impls;
  CHECK(PyTuple_Check(marked), "autograd internal error: ", field,
        " attribute is expected to be a tuple but is ", Py_TYPE(marked)->tp_name);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(marked); ++i) {
    PyObject* item = PyTuple_GET_ITEM(marked, i);
    CHECK(is_tensor(item), function, " can only accept variables, but argument ", i, " is of type ",
          Py_TYPE(item)->tp_name);
    impls.push_back(unwrap(item).impl());
  }
  return impls;
}

// A name that lives as long as the process, as the versions of storages want it.
const char* lasting(const std::string& name) {
  static std::set<std::string> names;
  return names.insert(name).first->c_str();
}

// A view of the same class, as the class makes it.
Tensor view_in_class(PyObject* object) {
  GradModeGuard unrecorded(false);
  Ref view(checked(call_override("view_as", {object, object})));
  CHECK(is_tensor(view.get()), ErrorKind::kType, "view_as of a ", Py_TYPE(object)->tp_name,
        " that forward returned must be a Tensor, not ", Py_TYPE(view.get())->tp_name, ".");
  return unwrap(view.get());
}

// A tensor that forward returned without having changed it: a view that gets a history of its own.
Tensor look_again(PyObject* object) {
  const Tensor& input = unwrap(object);
  Tensor view = stays_in_class(object) ? view_in_class(object) : detach(input);
  if (!view.is(input) && !view_base(view).defined()) set_view(view, input, ViewOrigin::in_function);
  return view;
}

// One call of a Function.
class Application {
 public:
  Application(PyObject* cls, Arguments& args) : args_(args) {
    Ref type(checked(PyObject_GetAttr(cls, names().backward_class)));
    CHECK(PyType_Check(type.get()) &&
              PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.get()), &FunctionType),
          ErrorKind::kType, "_backward_cls must be a class of contexts");
    for (size_t i = 0; i < args.size(); ++i) {
      if (!is_tensor(args.items()[i])) continue;
      const Tensor& input = unwrap(args.items()[i]);
      inputs_.push_back(input.impl());
      is_recorded_ |= gradient_edge_exists(input);
    }
    is_recorded_ &= is_grad_enabled();
    if (is_recorded_) capture_call_site();
    node_ = make_context(reinterpret_cast<PyTypeObject*>(type.get()), cls);
    context_ = static_cast<PyFunction*>(node_->py_object);
    read_inputs();
  }

  PyObject* run(PyObject* forward, PyObject* setup_context) {
    Ref output = call_forward(forward, setup_context);
    PyObject* raw = output.get();
    dirty_ = read_marked(context_->dirty_tensors, "dirty_tensors", "mark_dirty");
    fixed_ =
        read_marked(context_->non_differentiable, "non_differentiable", "mark_non_differentiable");
    for (TensorImpl* impl : dirty_) impl->storage->bump_version(lasting(node().op()));
    Ref result = PyTuple_Check(raw) ? tie_all(raw) : (output_count_ = 1, tie(raw, 0));
    check_dirty_returned();
    if (is_recorded_) {
      declare_dtypes();
      save();
    }
    Py_CLEAR(context_->to_save);
    Py_CLEAR(context_->dirty_tensors);
    Py_CLEAR(context_->non_differentiable);
    Py_CLEAR(context_->saved_for_forward);
    Py_CLEAR(context_->output_grad_dtypes);
    return result.release();
  }

 private:
  FunctionNode& node() const { return static_cast<FunctionNode&>(*node_); }

  void read_inputs() {
    Ref needs(checked(PyTuple_New(Py_ssize_t(args_.size()))));
    node().edges.reserve(inputs_.size());
    for (size_t i = 0; i < args_.size(); ++i) {
      PyObject* item = args_.items()[i];
      bool needs_grad = false;
      int32_t edge = -1;
      if (is_tensor(item)) {
        const Tensor& input = unwrap(item);
        needs_grad = gradient_edge_exists(input);
        if (is_recorded_) {
          edge = int32_t(node().edges.size());
          node().edges.push_back(gradient_edge(input));
        }
      }
      node().edge_of_input.push_back(edge);
      PyTuple_SET_ITEM(needs.get(), Py_ssize_t(i), Py_NewRef(needs_grad ? Py_True : Py_False));
    }
    context_->needs_input_grad = needs.release();
  }

  Ref call_forward(PyObject* forward, PyObject* setup_context) {
    GradModeGuard unrecorded(false);
    args_.stack[0] = object_of(context_);
    if (!setup_context)
      return Ref(checked(stay_at_exit([&] {
        return PyObject_Vectorcall(forward, args_.stack.data(), args_.positional() + 1,
                                   args_.keywords);
      })));
    Ref output(checked(stay_at_exit([&] {
      return PyObject_Vectorcall(forward, args_.items(),
                                 args_.positional() | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                 args_.keywords);
    })));
    Ref inputs(checked(PyTuple_New(Py_ssize_t(args_.size()))));
    for (size_t i = 0; i < args_.size(); ++i)
      PyTuple_SET_ITEM(inputs.get(), Py_ssize_t(i), Py_NewRef(args_.items()[i]));
    Ref done(checked(stay_at_exit([&] {
      return PyObject_CallFunctionObjArgs(setup_context, object_of(context_), inputs.get(),
                                          output.get(), nullptr);
    })));
    return output;
  }

  Ref tie_all(PyObject* raw) {
    output_count_ = size_t(PyTuple_GET_SIZE(raw));
    Ref tied(checked(PyTuple_New(PyTuple_GET_SIZE(raw))));
    for (uint32_t slot = 0; slot < output_count_; ++slot)
      PyTuple_SET_ITEM(tied.get(), Py_ssize_t(slot),
                       tie(PyTuple_GET_ITEM(raw, Py_ssize_t(slot)), slot).release());
    size_t differentiable = output_count_ - size_t(std::ranges::count(outputs_, nullptr));
    for (TensorImpl* impl : outputs_) {
      if (!impl || differentiable < 2) continue;
      auto* meta = static_cast<AutogradMeta*>(impl->autograd.get());
      if (meta->view) meta->view->origin = ViewOrigin::one_of_many;
    }
    return tied;
  }

  // The object to return for what forward returned, with its place on the tape.
  Ref tie(PyObject* item, uint32_t slot) {
    outputs_.push_back(nullptr);
    if (is_recorded_) node().results.resize(output_count_);
    if (!is_tensor(item)) {
      node().plain_outputs.push_back(slot);
      return Ref::borrow(item);
    }
    const Tensor& raw = unwrap(item);
    returned_.push_back(raw.impl());
    if (is_recorded_) node().results[slot] = {raw.sizes(), raw.dtype(), raw.device()};
    bool differentiable = is_recorded_ && !contains(fixed_, raw) && is_differentiable(raw.dtype());
    Tensor output = differentiable ? record(item, slot) : without_history(item);
    AutogradMeta* meta = find_meta(output);
    bool is_written_input = contains(inputs_, raw) && contains(dirty_, raw);
    if (meta && meta->view && !is_written_input) meta->view->origin = ViewOrigin::in_function;
    if (differentiable) outputs_.back() = output.impl();
    return output.is(raw) ? Ref::borrow(item) : Ref(wrap(output));
  }

  Tensor record(PyObject* item, uint32_t slot) {
    const Tensor& raw = unwrap(item);
    if (contains(dirty_, raw)) {
      record_write(raw, slot);
      return raw;
    }
    Tensor output = contains(inputs_, raw) ? look_again(item) : raw;
    set_history(output, node_, slot);
    return output;
  }

  void record_write(const Tensor& written, uint32_t slot) {
    CHECK(!written.requires_grad() || !is_leaf(written),
          "a leaf Variable that requires grad has been used in an in-place operation.");
    check_inplace(written, true);
    size_t at = size_t(std::ranges::find(inputs_, written.impl()) - inputs_.begin());
    if (at == inputs_.size())
      checked(warn_program(
          "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have "
          "been mutated should be passed to ctx.mark_dirty()."));
    if (!view_base(written).defined()) return set_history(written, node_, slot);
    CHECK(output_count_ == 1,
          "If your Function modifies inplace an input that is a view of another Tensor, your "
          "Function cannot return more than one Tensor. This is not supported by the current "
          "autograd engine. You should either make sure the input is not a view (using .clone() "
          "for example) or make your Function only return one Tensor (potentially splitting it "
          "into two Functions: one doing the inplace that returns a single Tensor and a second "
          "one that does the other operations).");
    if (at != inputs_.size()) put_first(at);
    rewrite_history(written, node_);
  }

  // The history of a base takes the first edge for that of the window.
  void put_first(size_t edge) {
    std::swap(node().edges[0], node().edges[edge]);
    for (int32_t& e : node().edge_of_input) {
      if (e == 0) e = int32_t(edge);
      else if (e == int32_t(edge)) e = 0;
    }
  }

  Tensor without_history(PyObject* item) {
    const Tensor& raw = unwrap(item);
    bool is_input = contains(inputs_, raw);
    if (!gradient_edge_exists(raw))
      return is_input && !contains(dirty_, raw) ? look_again(item) : raw;
    if (is_input) return detach(raw);
    if (view_base(raw).defined()) return raw;
    get_meta(raw).grad_fn = nullptr;
    raw.impl()->requires_grad = false;
    return raw;
  }

  void check_dirty_returned() const {
    for (TensorImpl* impl : dirty_)
      CHECK(std::ranges::count(returned_, impl),
            "Some elements marked as dirty during the forward method were not returned as output. "
            "The inputs that are modified inplace must all be outputs of the Function.");
  }

  // The dtypes in which backward wants the gradients of results.
  void declare_dtypes() {
    PyObject* dtypes = context_->output_grad_dtypes;
    if (!dtypes || dtypes == Py_None) return;
    CHECK(PyTuple_Check(dtypes), ErrorKind::kType, "output_grad_dtypes must be a tuple, not ",
          Py_TYPE(dtypes)->tp_name);
    CHECK(size_t(PyTuple_GET_SIZE(dtypes)) == output_count_,
          "set_output_grad_dtype expected the number of declarations to match the number of "
          "outputs: the Function returned ",
          output_count_, " values but ", PyTuple_GET_SIZE(dtypes), " declarations were provided");
    for (uint32_t slot = 0; slot < output_count_; ++slot)
      declare_dtype(slot, PyTuple_GET_ITEM(dtypes, Py_ssize_t(slot)));
  }
  void declare_dtype(uint32_t slot, PyObject* declared) {
    ResultInfo& info = node().results[slot];
    info.any_dtype = declared == Py_None;
    if (info.any_dtype) return;
    CHECK(outputs_[slot], "set_output_grad_dtype: got a concrete dtype for output ", slot,
          ", but that output is not a differentiable tensor (it is a non-tensor, was marked "
          "non-differentiable, or has a non-differentiable dtype). Pass None for output ",
          slot, " instead.");
    DType dtype;
    CHECK(read_dtype(declared, dtype), ErrorKind::kType,
          "set_output_grad_dtype expects each declaration to be a torch.dtype or None, but got ",
          Py_TYPE(declared)->tp_name);
    CHECK(is_differentiable(dtype) && is_complex(dtype) == is_complex(info.dtype),
          "set_output_grad_dtype: ", dtype_name(dtype), " cannot hold the gradient of output ",
          slot, ", which is ", dtype_name(info.dtype), ".");
    info.dtype = dtype;
  }

  void save() {
    PyObject* tensors = context_->to_save;
    if (!tensors || tensors == Py_None) return;
    CHECK(PyTuple_Check(tensors),
          "autograd internal error: to_save attribute is expected to be a tuple but is ",
          Py_TYPE(tensors)->tp_name);
    node().saved.reserve(size_t(PyTuple_GET_SIZE(tensors)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); ++i) {
      PyObject* item = PyTuple_GET_ITEM(tensors, i);
      CHECK(item == Py_None || is_tensor(item), ErrorKind::kType,
            "save_for_backward can only save variables, but argument ", i, " is of type ",
            Py_TYPE(item)->tp_name);
      node().saved.push_back(save_one(item == Py_None ? Tensor() : unwrap(item)));
    }
  }

  SavedTensor save_one(const Tensor& tensor) const {
    for (size_t slot = outputs_.size(); tensor.defined() && slot-- > 0;)
      if (outputs_[slot] == tensor.impl()) return SavedTensor::result(tensor, uint32_t(slot));
    return SavedTensor::input(tensor, false);
  }

  Arguments& args_;
  NodePtr node_;
  PyFunction* context_;
  bool is_recorded_ = false;
  size_t output_count_ = 0;
  ImplList inputs_;    // the arguments that are tensors
  ImplList dirty_;     // written by forward
  ImplList fixed_;     // marked as not differentiable
  ImplList returned_;  // by forward
  ImplList outputs_;   // by slot: what has the node as its history, or null
};

// apply_lifted(cls, args, kwargs)
PyObject* call_lifted_function(PyObject* cls, PyObject* const* items, Py_ssize_t count,
                               PyObject* keywords) {
  Ref args(checked(PyTuple_New(count))), kwargs(checked(PyDict_New()));
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(args.get(), i, Py_NewRef(items[i]));
  for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); ++i)
    checked(PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(keywords, i), items[count + i]));
  return checked(stay_at_exit([&] {
    return PyObject_CallFunctionObjArgs(function_defaults.apply_lifted, cls, args.get(),
                                        kwargs.get(), nullptr);
  }));
}

bool is_lifted_tensor(PyObject* object) {
  return is_tensor(object) && unwrap(object).defined() && is_lifted(unwrap(object));
}

}  // namespace

PyObject* apply_function(PyObject* cls, PyObject* const* items, Py_ssize_t count,
                         PyObject* keywords) {
  return guarded([&] {
    if (function_watcher) Ref(checked(PyObject_CallOneArg(function_watcher, cls)));
    // vmap and forward mode call the Function's own rules for them.
    if (std::any_of(items, items + count + (keywords ? PyTuple_GET_SIZE(keywords) : 0),
                    is_lifted_tensor)) [[unlikely]]
      return call_lifted_function(cls, items, count, keywords);
    Ref setup_context(checked(PyObject_GetAttr(cls, names().setup_context)));
    Ref forward(checked(PyObject_GetAttr(cls, names().forward)));
    bool has_setup = setup_context.get() != function_defaults.setup_context;
    Arguments args;
    args.keywords = keywords;
    if (keywords) count += PyTuple_GET_SIZE(keywords);
    for (Py_ssize_t i = 0; i < count; ++i) args.stack.push_back(items[i]);
    if (has_setup && !is_complete(forward.get(), args)) args = bind(forward.get(), args);
    return Application(cls, args).run(forward.get(), has_setup ? setup_context.get() : nullptr);
  });
}

}  // namespace rushlight::python
