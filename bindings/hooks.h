// Declares how Python functions hang on the tape, and what the garbage collector sees of them.
//
// Note [Hooks and the garbage collector]
// A hook often closes over the tensor it watches: tensor, node, hook and closure are a cycle. The
// Python objects of tensors and nodes show the collector the hooks that they alone keep alive, and
// those of tensors their attributes, which others who hold the tensor may ask for. What is alone is
// told by counts, which ops that run without the interpreter lock may change between two looks of
// the collector; so nothing is shown while any thread is in such an op.
#pragma once

#include "bindings/python.h"
#include "core/autograd/node.h"
#include "core/autograd/saved_tensor.h"

namespace rushlight::python {

// A Python object held by C++; copied and dropped with the lock held.
class Held {
 public:
  Held() = default;
  explicit Held(PyObject* object) : object_(Py_NewRef(object)) {}
  Held(Held&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Held(const Held& other) : object_(other.object_) {
    AcquireGil gil;
    Py_XINCREF(object_);
  }
  Held& operator=(Held other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Held() {
    if (!object_ || !Py_IsInitialized()) return;
    AcquireGil gil;
    Py_DECREF(object_);
  }
  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// A node that holds a Python object besides its hooks.
class HoldsPython {
 public:
  virtual ~HoldsPython() = default;
  virtual PyObject* held() const = 0;
};

// Whether nobody else holds the tensor, so that its Python object can be collected for good.
bool is_alone(const Tensor& tensor);
// Visits the hooks that a tensor or a node keeps alive by itself; none if others do too.
int visit_hooks(const Tensor& tensor, visitproc visit, void* arg);
int visit_hooks(const NodePtr& node, visitproc visit, void* arg);
// Drops them, to break a cycle.
void drop_hooks(const Tensor& tensor);
void drop_hooks(const NodePtr& node);

// The user's notes on a node: a dict, borrowed.
PyObject* metadata_of(Node& node);
// The node in `object`, or null when it is not one.
const NodePtr* find_node(PyObject* object);

// A saved tensor of a node as Python sees it.
PyObject* wrap_saved(const NodePtr& node, const SavedTensor& saved);

// Node.register_hook and Node.register_prehook: a handle.
PyObject* add_node_hook(Node& node, PyObject* function);
PyObject* add_node_prehook(Node& node, PyObject* function);

void add_hooks(PyObject* module);
void add_node(PyObject* module);
void add_saving_hooks(PyObject* module);

}  // namespace rushlight::python
