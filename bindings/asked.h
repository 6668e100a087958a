// Owns whom an op asks before it runs, and in what order: what __torch_function__ and
// __torch_dispatch__ have in common.
#pragma once

#include <vector>

#include "bindings/python.h"

namespace rushlight::python {

using Modes = std::vector<PyObject*>;  // of a thread, the innermost last

inline PyObject* list_of(const Modes& modes) {
  Ref list(checked(PyList_New(Py_ssize_t(modes.size()))));
  for (size_t i = 0; i < modes.size(); ++i)
    PyList_SET_ITEM(list.get(), Py_ssize_t(i), Py_NewRef(modes[i]));
  return list.release();
}

// Takes the innermost mode out while its method runs, so that what that calls meets the next one.
class InnermostMode {
 public:
  InnermostMode(Modes& modes, void (*changed)())
      : modes_(modes), changed_(changed), mode_(modes.back()) {
    modes_.pop_back();
    changed_();
  }
  ~InnermostMode() {
    modes_.push_back(mode_);
    changed_();
  }
  InnermostMode(const InnermostMode&) = delete;
  PyObject* get() const { return mode_; }

 private:
  Modes& modes_;
  void (*changed_)();
  PyObject* mode_;
};

// One object of each class that is asked: subclasses before their bases, else as they are added.
class Asked {
 public:
  void add(Ref object) {
    PyTypeObject* type = Py_TYPE(object.get());
    size_t place = objects_.size();
    for (size_t i = objects_.size(); i-- > 0;) {
      if (Py_TYPE(objects_[i].get()) == type) return;
      if (PyType_IsSubtype(type, Py_TYPE(objects_[i].get()))) place = i;
    }
    objects_.insert(objects_.begin() + std::ptrdiff_t(place), std::move(object));
  }
  bool empty() const { return objects_.empty(); }
  const std::vector<Ref>& in_order() const { return objects_; }
  Ref types() const {
    Ref tuple(checked(PyTuple_New(Py_ssize_t(objects_.size()))));
    for (size_t i = 0; i < objects_.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i),
                       Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(objects_[i].get()))));
    return tuple;
  }

 private:
  std::vector<Ref> objects_;  // kept: a method may take the next one out of a list
};

// What a method of a mode, an object or a class returns, NotImplemented as well.
inline Ref ask(PyObject* object, const char* name, PyObject* function, const Ref& types,
               PyObject* args, PyObject* kwargs) {
  Ref method(checked(PyObject_GetAttrString(object, name)));
  return Ref(checked(stay_at_exit([&] {
    return PyObject_CallFunctionObjArgs(method.get(), function, types.get(), args, kwargs, nullptr);
  })));
}

}  // namespace rushlight::python
