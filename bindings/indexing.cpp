// Owns x[index] and x[index] = value: basic indexing becomes views, index tensors become _index.
//
// An index is read once into steps. Integers, slices, None and Ellipsis are applied as views while
// reading; masks and index tensors are collected for the dim they stand at, as in NumPy. A slice
// with a negative step is the same places in rising order, turned around when all views are
// applied: strides are never negative, so that what it reads is a copy.
#include <vector>

#include "bindings/dispatch.h"
#include "bindings/override.h"
#include "core/autograd/node.h"
#include "core/ops/index/index.h"
#include "core/ops/ops.h"
#include "core/tensor/lift.h"
#include "core/tensor/values.h"

namespace rushlight::python {
namespace {

// What is left when all views are applied.
struct Indexed {
  Tensor view;
  std::vector<Tensor> indices;  // by dim of `view`; undefined where none
  Shape reversed;               // dims of `view` that the index runs through backwards
};

Tensor reverse(const Tensor& tensor, const Shape& dims) {
  return call<"flip", Tensor>(tensor, ShapeRef(dims));
}

// What an index is mostly made of, told without asking the object for attributes.
bool is_plain(PyObject* item) {
  return PyLong_Check(item) || PySlice_Check(item) || item == Py_None || item == Py_Ellipsis ||
         is_tensor(item);
}

bool is_array(PyObject* item) {
  return !is_plain(item) && PyObject_HasAttrString(item, "__array__");
}

// Of places: a list, a tuple, a range, or anything else that is indexed by integers.
bool is_sequence(PyObject* item) {
  if (PyList_Check(item) || PyTuple_Check(item)) return true;
  return !is_plain(item) && PySequence_Check(item) && !PyUnicode_Check(item) &&
         !PyBytes_Check(item) && !is_array(item);
}

// How many dims of the tensor an index item consumes.
int64_t dims_of(PyObject* item) {
  if (item == Py_None || item == Py_Ellipsis || PyBool_Check(item)) return 0;
  if (is_tensor(item)) {
    const Tensor& t = unwrap(item);
    if (is_bool(t.dtype()) || t.dtype() == DType::uint8) return t.dim();
  }
  return 1;
}

// Whether a list is read as a tuple, as NumPy once did: because of what stands in it.
bool is_tuple_in_disguise(PyObject* index) {
  if (!PyList_Check(index) || PyList_GET_SIZE(index) >= 32) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(index); ++i) {
    PyObject* item = PyList_GET_ITEM(index, i);
    if (is_tensor(item) || is_sequence(item) || PySlice_Check(item) || item == Py_Ellipsis ||
        item == Py_None)
      return true;
  }
  return false;
}

// The places of a slice in rising order.
struct Range {
  int64_t start, stop, step;
  bool reversed;
};
Range read_slice(PyObject* slice, int64_t size) {
  Py_ssize_t start, stop, step;
  checked(PySlice_Unpack(slice, &start, &stop, &step));
  Py_ssize_t count = PySlice_AdjustIndices(size, &start, &stop, step);
  if (step > 0) return {start, std::max(start, stop), step, false};
  if (count == 0) return {0, 0, 1, true};
  return {start + (count - 1) * step, start + 1, -step, true};  // PySlice_Unpack bounds the step
}

// Whether other threads should run Python meanwhile. A GPU's indices are waited for.
bool takes_long(const Tensor& tensor) {
  return tensor.numel() >= kReleaseGilFrom || tensor.device().is_cuda();
}

class Reader {
 public:
  explicit Reader(const Tensor& tensor) : original_dims_(tensor.dim()) { result_.view = tensor; }

  Indexed read(PyObject* index) {
    if (is_tuple_in_disguise(index)) {
      checked(warn_program(
          "Using a non-tuple sequence for multidimensional indexing is deprecated: use "
          "x[tuple(seq)] instead of x[seq], or torch.tensor(seq) for one index of that shape."));
      Ref items(checked(PyList_AsTuple(index)));
      return read(items.get());
    }
    if (PyTuple_Check(index)) {
      Py_ssize_t count = PyTuple_GET_SIZE(index);
      std::vector<Ref> items;
      int64_t consumed = 0;
      for (Py_ssize_t i = 0; i < count; ++i) {
        items.push_back(prepare(PyTuple_GET_ITEM(index, i)));
        consumed += dims_of(items.back().get());
      }
      CHECK(consumed <= original_dims_, ErrorKind::kIndex,
            "too many indices for tensor of dimension ", original_dims_, " (got ", consumed, ")");
      for (size_t i = 0; i < items.size(); ++i) apply(items[i].get(), consumed);
    } else {
      Ref item = prepare(index);
      int64_t consumed = dims_of(item.get());
      CHECK(original_dims_ > 0 || consumed == 0 || is_tensor(item.get()), ErrorKind::kIndex,
            "invalid index of a 0-dim tensor. Use tensor.item() to convert it to a number.");
      apply(item.get(), consumed);
    }
    return std::move(result_);
  }

 private:
  // Sequences and arrays become tensors, what only counts as an integer becomes one, so that no
  // Python code runs between the checks of an index and its use; everything else stays.
  static Ref prepare(PyObject* item) {
    if (is_plain(item)) return Ref::borrow(item);
    bool of_places = is_sequence(item);
    if (!of_places && !is_array(item))
      return PyIndex_Check(item) ? Ref(checked(PyNumber_Index(item))) : Ref::borrow(item);
    Tensor tensor = tensor_from_data(item, std::nullopt);
    if (of_places && tensor.numel() == 0 && !is_integral(tensor.dtype())) tensor = to_int64(tensor);
    return Ref(wrap(lift_fresh(tensor)));
  }
  // Whether it is read as an integer is. One that differs between samples has no value here.
  static bool is_number(const Tensor& t) {
    return t.dim() == 0 && is_integral(t.dtype()) && t.dtype() != DType::uint8 && !is_lifted(t);
  }
  // Whether the places of a mask cannot be had here: each sample has others, or there are none.
  static bool is_unknown(const Tensor& mask) { return is_lifted(mask) || !has_values(mask); }
  static Tensor places_of(Tensor mask) {
    ReleaseGil release(takes_long(mask));
    return nonzero(mask);
  }
  static Tensor to_int64(const Tensor& t) { return cast(t, DType::int64); }
  // Where dim_ stands in the indexed tensor: numbers before it took dims away, None added some.
  int64_t original_dim() const { return dim_ + original_dims_ - result_.view.dim(); }

  void apply(PyObject* item, int64_t consumed) {
    Tensor& view = result_.view;
    int64_t number;
    if (item == Py_None) {
      view = unsqueeze(view, dim_++);
    } else if (item == Py_Ellipsis) {
      dim_ += original_dims_ - consumed;  // each of several, so that an index after two is refused
    } else if (PySlice_Check(item)) {
      Range range = read_slice(item, view.size(dim_));
      if (range.start != 0 || range.stop != view.size(dim_) || range.step != 1)
        view = slice(view, dim_, range.start, range.stop, range.step);
      if (range.reversed && view.size(dim_) > 1) result_.reversed.push_back(dim_);
      ++dim_;
    } else if (PyBool_Check(item)) {
      add_index(full({}, item == Py_True, DType::bool_));
    } else if (is_tensor(item) && !is_number(unwrap(item))) {
      add_index(unwrap(item));
    } else if (read_int(item, number)) {
      int64_t size = view.size(dim_);
      CHECK(number >= -size && number < size, ErrorKind::kIndex, "index ", number,
            " is out of bounds for dimension ", original_dim(), " with size ", size);
      view = select(view, dim_, number);
    } else {
      CHECK(false, ErrorKind::kIndex,
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte "
            "Variables are valid indices (got ",
            Py_TYPE(item)->tp_name, ")");
    }
  }

  // A mask stands for the index tensors of its true elements.
  void add_index(const Tensor& index) {
    std::vector<Tensor>& indices = result_.indices;
    indices.resize(size_t(std::max<int64_t>(dim_, int64_t(indices.size()))));
    if (!is_bool(index.dtype()) && index.dtype() != DType::uint8) {
      CHECK(is_integral(index.dtype()), ErrorKind::kIndex,
            "tensors used as indices must be long, int, byte or bool tensors, got ",
            dtype_name(index.dtype()));
      indices.push_back(to_int64(index));
      ++dim_;
      return;
    }
    if (index.dtype() == DType::uint8)
      checked(warn_program(
          "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
          "instead."));
    if (index.dim() == 0) {  // True keeps all, False nothing, along a new dim
      result_.view = unsqueeze(result_.view, dim_);
      if (is_unknown(index)) return add_index(reshape(index, Shape{1}));
      indices.push_back(nonzero(reshape(index, Shape{1})).dim()
                            ? select(nonzero(reshape(index, Shape{1})), 1, 0)
                            : index);
      ++dim_;
      return;
    }
    // Without elements in a dim it selects nothing, whatever the size there: so the array API asks.
    for (int64_t d = 0; d < index.dim(); ++d)
      CHECK(index.size(d) == result_.view.size(dim_ + d) || index.size(d) == 0, ErrorKind::kIndex,
            "The shape of the mask ", index.sizes(), " at index ", d,
            " does not match the shape of the indexed tensor ", result_.view.sizes(), " at index ",
            dim_ + d);
    if (is_unknown(index)) {
      indices.push_back(index);
      dim_ += index.dim();
      return;
    }
    Tensor where = places_of(index);  // (count, dims)
    for (int64_t d = 0; d < index.dim(); ++d) indices.push_back(select(where, 1, d));
    dim_ += index.dim();
  }

  Indexed result_;
  const int64_t original_dims_;
  int64_t dim_ = 0;
};

}  // namespace

PyObject* get_item(PyObject* self, PyObject* index) {
  return guarded([&]() -> PyObject* {
    if (takes_over(self) || object_takes_over(index)) [[unlikely]]
      if (PyObject* result = call_override("__getitem__", {self, index})) return result;
    const Tensor& tensor = unwrap(self);
    if (gradient_edge_exists(tensor) && is_grad_enabled()) capture_call_site();
    Indexed indexed = Reader(tensor).read(index);
    if (!indexed.reversed.empty()) indexed.view = reverse(indexed.view, indexed.reversed);
    if (!indexed.indices.empty()) {
      ReleaseGil release(takes_long(tensor));
      indexed.view = rushlight::index(indexed.view, indexed.indices);
    } else if (indexed.view.is(tensor)) {  // x[...] is another view, not x itself
      indexed.view = call<"alias", Tensor>(tensor);
    }
    return wrap(indexed.view);
  });
}

int set_item(PyObject* self, PyObject* index, PyObject* value) {
  return guarded([&] {
    CHECK(value, ErrorKind::kType, "Tensor does not support deleting items");
    if (takes_over(self) || object_takes_over(index) || object_takes_over(value)) [[unlikely]] {
      Ref done(call_override("__setitem__", {self, index, value}));
      if (done) return 0;
    }
    const Tensor& tensor = unwrap(self);
    CHECK(!tensor.is_sparse(), ErrorKind::kType,
          "Cannot assign to a sparse tensor. Work on values(), or use to_dense().");
    capture_call_site();
    Tensor source;
    Scalar number;
    if (is_tensor(value)) source = unwrap(value);
    else if (read_number(value, number)) source = lift_fresh(scalar_tensor(number, tensor.dtype()));
    else source = lift_fresh(tensor_from_data(value, tensor.dtype()));
    if (source.numel() == 1 && is_tensor(index) && is_whole_mask(unwrap(index), tensor)) {
      ReleaseGil release(takes_long(tensor));
      index_put_(tensor, {&unwrap(index), 1}, cast(reshape(source, Shape{}), tensor.dtype()),
                 false);
      return 0;
    }
    auto [view, indices, reversed] = Reader(tensor).read(index);
    // Leading dims of size 1 in the value are dropped, as in NumPy.
    while (source.dim() > 0 && source.size(0) == 1 &&
           (!indices.empty() || source.dim() > view.dim()))
      source = select(source, 0, 0);
    ReleaseGil release(indices.empty() ? view.numel() >= kReleaseGilFrom : takes_long(view));
    if (!indices.empty()) {
      if (source.dtype() != view.dtype()) source = cast(source, view.dtype());
      if (reversed.empty()) {
        index_put_(view, indices, source, false);
      } else {
        Tensor ordered = reverse(view, reversed);
        index_put_(ordered, indices, source, false);
        copy_(view, reverse(ordered, reversed));
      }
      return 0;
    }
    if (!reversed.empty()) source = reverse(expand(source, view.sizes()), reversed);
    copy_(view, source);
    return 0;
  });
}

}  // namespace rushlight::python
