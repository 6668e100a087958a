// Owns the nodes behind contexts of autograd.Function: their lifetimes, and backward.
#include <algorithm>
#include <cstring>

#include "bindings/function.h"
#include "core/ops/ops.h"

namespace rushlight::python {
namespace {

// The name of a class without its module.
const char* name_of(PyObject* type) {
  if (!type) return "Function";
  const char* name = reinterpret_cast<PyTypeObject*>(type)->tp_name;
  const char* dot = std::strrchr(name, '.');
  return dot ? dot + 1 : name;
}

}  // namespace

const NodePtr& gone_node() {
  static const auto* node = new NodePtr(NodePtr::adopt(new FunctionNode(nullptr)));
  return *node;  // never freed: contexts may outlive this file
}

NodePtr hold(PyFunction* context) {
  if (!context->owns_node) return NodePtr::share(context->base.node.get());
  if (context->base.node == gone_node()) return gone_node();
  context->owns_node = false;
  Py_INCREF(context);
  return NodePtr::adopt(context->base.node.get());
}

NodePtr make_context(PyTypeObject* type, PyObject* forward_class) {
  auto* context = reinterpret_cast<PyFunction*>(checked(type->tp_alloc(type, 0)));
  auto* node = new FunctionNode(context);
  new (&context->base.node) NodePtr(NodePtr::adopt(node));
  context->materialize_grads = true;
  context->forward_class = Py_XNewRef(forward_class);
  return NodePtr::adopt(node);
}

FunctionNode::~FunctionNode() {
  if (!doomed_ || !Py_IsInitialized()) return;
  AcquireGil gil;
  Py_DECREF(doomed_);
}

const char* FunctionNode::op() const {
  return context_ ? name_of(context_->forward_class) : name_of(nullptr);
}

std::string FunctionNode::name() const {
  return name_of(context_ ? reinterpret_cast<PyObject*>(Py_TYPE(context_)) : nullptr);
}

bool FunctionNode::survives() {
  if (!context_ || !Py_IsInitialized()) return false;
  AcquireGil gil;
  if (Py_REFCNT(context_) > 1) {
    retain();
    context_->owns_node = true;
    Py_DECREF(context_);
    return true;
  }
  // Nobody finds the node through the context from now on.
  doomed_ = object_of(context_);
  context_->base.node.detach();
  context_->base.node = gone_node();
  context_->owns_node = true;
  forget_context();
  return false;
}

void FunctionNode::release_saved() {
  AcquireGil gil;
  std::vector<SavedTensor> dropped;
  dropped.swap(saved);
  is_released = true;
}

Ref user_backward(PyFunction* context) {
  CHECK(context->forward_class, "this context belongs to no Function. Only apply() makes them.");
  static PyObject* const backward_name = PyUnicode_InternFromString("backward");
  static PyObject* const vjp_name = PyUnicode_InternFromString("vjp");
  Ref backward(checked(PyObject_GetAttr(context->forward_class, backward_name)));
  Ref vjp(checked(PyObject_GetAttr(context->forward_class, vjp_name)));
  if (vjp.get() == function_defaults.backward) return backward;
  CHECK(backward.get() == function_defaults.backward,
        "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should "
        "only implement one of them.");
  return vjp;
}

void FunctionNode::backward(TensorList grads, std::span<Tensor> input_grads) {
  AcquireGil gil;
  try {
    call_backward(grads, input_grads);
  } catch (const PythonError&) {
    throw_python_error();
  }
}

// What backward is told about a result: its gradient, zeros, or None.
Ref FunctionNode::incoming(const Tensor& grad, uint32_t slot) const {
  if (grad.defined()) return Ref(wrap(grad));
  if (!context_->materialize_grads || std::ranges::count(plain_outputs, slot))
    return Ref::borrow(Py_None);
  const ResultInfo& info = results[slot];
  return Ref(wrap(zeros(info.sizes, info.dtype, info.device)));
}

void FunctionNode::call_backward(TensorList grads, std::span<Tensor> input_grads) {
  CHECK(context_, "the context of a custom Function was freed before its backward");
  Ref context = Ref::borrow(object_of(context_));
  Ref function = user_backward(context_);
  std::vector<Ref> arguments;
  SmallVector<PyObject*, 8> stack{context.get()};
  arguments.reserve(grads.size());
  for (uint32_t slot = 0; slot < grads.size(); ++slot)
    stack.push_back(arguments.emplace_back(incoming(grads[slot], slot)).get());
  Ref result(checked(stay_at_exit(
      [&] { return PyObject_Vectorcall(function.get(), stack.data(), stack.size(), nullptr); })));
  if (PyTuple_Check(result.get())) {
    read_gradients(&PyTuple_GET_ITEM(result.get(), 0), PyTuple_GET_SIZE(result.get()), input_grads);
  } else {
    PyObject* one = result.get();
    read_gradients(&one, 1, input_grads);
  }
}

void FunctionNode::read_gradients(PyObject* const* items, Py_ssize_t count,
                                  std::span<Tensor> input_grads) {
  auto expected = Py_ssize_t(edge_of_input.size());
  bool rest_is_none = std::all_of(items + std::min(expected, count), items + count,
                                  [](PyObject* item) { return item == Py_None; });
  CHECK(count == expected || (count > expected && rest_is_none), "function ", name(),
        " returned an incorrect number of gradients (expected ", expected, ", got ", count, ")");
  for (Py_ssize_t i = 0; i < expected; ++i) {
    if (items[i] == Py_None) continue;
    int32_t edge = edge_of_input[size_t(i)];
    CHECK(edge >= 0, "function ", name(), " returned a gradient different than None at position ",
          i + 1, ", but the corresponding forward input was not a Variable");
    CHECK(is_tensor(items[i]), "expected Variable or None (got ", Py_TYPE(items[i])->tp_name, ")");
    const Tensor& grad = unwrap(items[i]);
    if (wants(size_t(edge))) check_gradient(grad, size_t(edge));
    input_grads[size_t(edge)] = grad;
  }
}

// The engine sums, casts and moves gradients into the form of their input where that is sound.
void FunctionNode::check_gradient(const Tensor& grad, size_t edge) const {
  const ResultInfo& input = edges[edge].node->results[edges[edge].slot];
  size_t extra = grad.sizes().size() - input.sizes.size();
  bool expandable = grad.sizes().size() >= input.sizes.size();
  for (size_t d = 0; expandable && d < input.sizes.size(); ++d)
    expandable = input.sizes[d] == grad.sizes()[d + extra] || input.sizes[d] == 1;
  CHECK(expandable, "Function ", name(), " returned an invalid gradient at index ", edge, " - got ",
        grad.sizes(), " but expected shape compatible with ", input.sizes);
  CHECK(!is_complex(grad.dtype()) || is_complex(input.dtype), "Function ", name(),
        " returned an invalid gradient at index ", edge, " - got ", dtype_name(grad.dtype()),
        " but expected a real one, for an input of ", dtype_name(input.dtype),
        ". Return its real part.");
  CHECK(grad.device() == input.device || grad.dim() == 0, "Function ", name(),
        " returned an invalid gradient at index ", edge, " - expected device ", input.device,
        " but got ", grad.device());
}

}  // namespace rushlight::python
