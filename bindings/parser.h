// Declares the reading of a call's arguments by the schema of an op.
#pragma once

#include <array>
#include <forward_list>
#include <string>
#include <vector>

#include "bindings/python.h"
#include "core/tensor/sparse.h"

namespace rushlight::python {

// Owns what the Values of one call look at: in lists, which take no memory while they are empty.
struct Arena {
  static constexpr int kInts = 32;
  int64_t ints[kInts];
  int ints_used = 0;
  std::forward_list<Shape> long_lists;
  std::forward_list<Tensor> tensors;
  std::forward_list<std::vector<Tensor>> tensor_lists;
  Py_ssize_t misfit = -1;  // the item of a list that could not be read

  std::span<int64_t> make_ints(size_t count) {
    if (ints_used + int(count) <= kInts) {
      int64_t* start = ints + ints_used;
      ints_used += int(count);
      return {start, count};
    }
    Shape& list = long_lists.emplace_front(count);
    return {list.data(), count};
  }
};

// Keyword arguments that belong to the caller, not to the schema.
struct Extras {
  PyObject* out = nullptr;
  bool requires_grad = false;
  std::optional<Layout> layout;
};

// Why the arguments of a call do not fit an overload.
struct Misfit {
  std::string error;
  // How many were read before: the overload that read most is the one that was meant.
  int fitted = -1;
  // Whether names or number of the arguments are wrong, which the signature sets right.
  bool is_of_shape = false;
};

// Reads the arguments of one call of one overload.
class Call {
 public:
  Call(const OpEntry& entry, Arena& arena) : entry_(entry), schema_(entry.schema), arena_(arena) {}

  // Fills values(); on failure misfit() says what does not fit.
  bool parse(PyObject* const* args, Py_ssize_t nargs, PyObject* keywords);

  const Value* values() const { return values_.data(); }
  const Extras& extras() const { return extras_; }
  const Misfit& misfit() const { return misfit_; }

 private:
  bool put(int i, PyObject* object);
  bool put_ints(int i, PyObject* const* items, Py_ssize_t count);
  bool put_tensors(PyObject* const* args, Py_ssize_t nargs);
  bool put_keyword(PyObject* key, PyObject* object);
  void forget_layout();
  bool fail(std::string message);
  bool fail_shape(std::string message);
  std::string expectation(int i) const;  // what argument i must be
  // In place of argument i, or of an item of it, stands this object.
  bool fail(int i, PyObject* object);
  bool fail_item(int i, PyObject* item, Py_ssize_t place);

  const OpEntry& entry_;
  const Schema& schema_;
  Arena& arena_;
  std::array<Value, kMaxArgs> values_;
  std::array<bool, kMaxArgs> given_{};
  Extras extras_;
  Misfit misfit_{.fitted = 0};
};

// Whether it takes None.
bool is_optional(ArgType type);

// The parameters as error messages and docstrings show them, or without their types.
std::string signature_text(const Schema& schema, bool types = true);

}  // namespace rushlight::python
