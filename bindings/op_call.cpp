// Owns what a call does around an op: it runs the op, writes into out=, and makes Python objects of
// the results.
#include "bindings/op_call.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

#include "core/autograd/node.h"
#include "core/autograd/profiler.h"
#include "core/ops/dispatch.h"
#include "core/ops/sparse/sparse.h"
#include "core/tensor/generator.h"
#include "core/tensor/tile_loop.h"

namespace rushlight::python {

// ---- results ------------------------------------------------------------------------------------

bool has_named_results(const OpEntry& entry) {
  return entry.schema.return_count > 1 && !entry.schema.returns[0].name.empty();
}

namespace {

// One field on a line, as PyTorch writes them.
PyObject* named_repr(PyObject* self) {
  return guarded([&] {
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(self));
    std::string name = Py_TYPE(self)->tp_name;
    Ref names(checked(PyObject_GetAttrString(type, "__match_args__")));
    Ref text(checked(PyUnicode_FromFormat("torch%s(", name.c_str() + name.find('.'))));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self); ++i)
      text = Ref(checked(PyUnicode_FromFormat("%U%s%U=%R", text.get(), i ? ",\n" : "\n",
                                              PyTuple_GET_ITEM(names.get(), i),
                                              PyTuple_GET_ITEM(self, i))));
    return checked(PyUnicode_FromFormat("%U)", text.get()));
  });
}

// "max" for the results of torch.max, "linalg_qr" for those of torch.linalg.qr.
std::string return_type_name(const OpEntry& entry) {
  std::string name(entry.schema.name);
  return std::string_view(entry.home) == "linalg" ? "linalg_" + name : name;
}

// torch.return_types.max and its like, made when first asked for.
PyTypeObject* return_type(const OpEntry& entry) {
  static std::map<std::string, PyTypeObject*> types;
  std::string name = return_type_name(entry);
  auto [it, added] = types.try_emplace(name, nullptr);
  if (added) {
    std::vector<std::string> fields;
    for (int i = 0; i < entry.schema.return_count; ++i)
      fields.emplace_back(entry.schema.returns[size_t(i)].name);
    it->second = make_return_type(name, fields);
  }
  return it->second;
}

}  // namespace

PyTypeObject* make_return_type(const std::string& name, const std::vector<std::string>& fields) {
  // Python keeps the texts as long as the type, which lives as long as the process.
  auto* names = new std::vector<std::string>(fields);
  auto* members = new std::vector<PyStructSequence_Field>();
  for (const std::string& field : *names) members->push_back({field.c_str(), nullptr});
  members->push_back({nullptr, nullptr});
  auto* title = new std::string("rushlight.return_types." + name);
  PyStructSequence_Desc description{title->c_str(), nullptr, members->data(), int(names->size())};
  PyTypeObject* type = PyStructSequence_NewType(&description);
  if (!type) throw PythonError();
  type->tp_repr = named_repr;
  return type;
}

PyObject* find_return_type(std::string_view name) {
  for (const OpEntry& entry : op_table())
    if (has_named_results(entry) && return_type_name(entry) == name)
      return reinterpret_cast<PyObject*>(return_type(entry));
  return nullptr;
}

PyObject* to_python(const OpEntry& entry, Result&& result) {
  return std::visit(
      [&]<class T>(const T& value) -> PyObject* {
        if constexpr (std::is_same_v<T, Tensor>) {
          return wrap(value);
        } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
          if (!has_named_results(entry)) return wrap_tuple(value);
          Ref named(checked(PyStructSequence_New(return_type(entry))));
          for (size_t i = 0; i < value.size(); ++i)
            PyStructSequence_SetItem(named.get(), Py_ssize_t(i), wrap(value[i]));
          return named.release();
        } else if constexpr (std::is_same_v<T, bool>) {
          return PyBool_FromLong(value);
        } else if constexpr (std::is_same_v<T, DType>) {
          return wrap_dtype(value);
        } else {
          return wrap_number(Scalar(value));
        }
      },
      result);
}

// ---- the call -----------------------------------------------------------------------------------

namespace {

struct Weight {
  int64_t elements = 0;
  bool recorded = false;

  void add(const Value& value) {
    if (auto* one = std::get_if<const Tensor*>(&value)) {
      elements = std::max(elements, (*one)->numel());
      recorded |= (*one)->requires_grad();
    } else if (auto* list = std::get_if<TensorList>(&value)) {
      for (const Tensor& t : *list) {
        if (!t.defined()) continue;
        // A sum of sizes may overflow.
        elements = std::min(elements, kReleaseGilFrom) + std::min(t.numel(), kReleaseGilFrom);
        recorded |= t.requires_grad();
      }
    }
  }
};
Weight weigh(const OpEntry& entry, const Value* values) {
  Weight weight;
  for (int i = 0; i < entry.schema.arg_count; ++i) weight.add(values[i]);
  return weight;
}

// A view is made at once, however large; reshape copies what it cannot view, which has gaps or
// another order.
bool is_quick(const OpEntry& entry, const Value* values, const Weight& weight) {
  if (weight.elements < kReleaseGilFrom) return true;
  auto* input = entry.is_view ? std::get_if<const Tensor*>(&values[0]) : nullptr;
  return input && (*input)->is_contiguous();
}

// The arguments of a call during which other threads run Python code, which may exchange the
// tensors of objects by swap_tensors, and the states of generators: the call has handles of its
// own.
class OwnValues {
 public:
  OwnValues(const OpEntry& entry, const Value* values) {
    for (int i = 0; i < entry.schema.arg_count; ++i) {
      values_[size_t(i)] = values[i];
      auto* tensor = std::get_if<const Tensor*>(&values[i]);
      if (tensor) values_[size_t(i)] = &(tensors_[size_t(i)] = **tensor);
      auto* generator = std::get_if<Generator*>(&values[i]);
      if (generator && *generator) generator_ = (*generator)->weak_from_this().lock();
    }
  }
  const Value* get() const { return values_.data(); }

 private:
  std::array<Value, kMaxArgs> values_;
  std::array<Tensor, kMaxArgs> tensors_;
  std::shared_ptr<Generator> generator_;
};

Result run_with(const OpEntry& entry, const Value* values, bool inplace, const Tensor* out) {
  if (out && entry.call_into) return entry.call_into(values, *out);
  return inplace ? entry.call_inplace(values) : entry.call(values);
}
// The same while other threads run Python code; on its own, so that small calls need less stack.
[[gnu::noinline]] Result run_unlocked(const OpEntry& entry, const Value* values, bool inplace,
                                      const Tensor* out) {
  OwnValues own(entry, values);
  Tensor target = out ? *out : Tensor();
  ReleaseGil release;
  return run_with(entry, own.get(), inplace, out ? &target : nullptr);
}

}  // namespace

Result run_op(const OpEntry& entry, const Value* values, bool inplace, const Tensor* out) {
  Weight weight = weigh(entry, values);
  bool writes = inplace || out ||
                (entry.schema.arg_count && entry.schema.args[0].type == ArgType::tensor_mutable);
  bool profiled = current_profile && current_profile->notes_sites;
  if (writes || (weight.recorded && is_grad_enabled()) || profiled) capture_call_site();
  return is_quick(entry, values, weight) ? run_with(entry, values, inplace, out)
                                         : run_unlocked(entry, values, inplace, out);
}

PyObject* call_op(const OpEntry& entry, const Value* args, bool inplace) {
  return to_python(entry, run_op(entry, args, inplace));
}

void set_layout(const OpEntry& entry, Result& result, Layout layout) {
  if (layout == Layout::strided) return;
  Tensor& tensor = std::get<Tensor>(result);
  if (entry.schema.name.find("empty") != std::string_view::npos) tensor = zeros_like(tensor);
  tensor = to_layout(tensor, layout);
}

// ---- out= ---------------------------------------------------------------------------------------

namespace {

void refuse_to_record(bool wants_grad, const char* op) {
  CHECK(
      !wants_grad || !is_grad_enabled(), op,
      ": functions with out=... arguments don't support automatic differentiation, but one of the "
      "arguments requires grad.");
}

// Whether an op makes its result from nothing, and whether that is a sequence in a known order.
bool makes_numbers(const Schema& schema) {
  return schema.index_of("device") >= 0 || schema.index_of("generator") >= 0;
}
bool makes_sequence(const Schema& schema, const Tensor& result) {
  return result.dim() == 1 && makes_numbers(schema) && schema.index_of("size") < 0 &&
         schema.index_of("generator") < 0;
}

// Gives `out` the sizes of a result, and its order of dims where it has one. Ops that make numbers
// do so silently, as in PyTorch, but for sequences.
void resize_out(const OpEntry& entry, const Tensor& out, const Tensor& result) {
  const Shape& sizes = result.sizes();
  check_writable(out);
  bool warns = !makes_numbers(entry.schema) || makes_sequence(entry.schema, result);
  if (out.numel() > 0 && warns) {
    std::ostringstream text;
    text << entry.schema.name_text
         << ": An output with one or more elements was resized since it had shape " << out.sizes()
         << ", which does not match the required output shape " << ShapeText{sizes}
         << ". Pass out of that shape, or of 0 elements.";
    checked(warn_program(text.str().c_str()));
  }
  TensorImpl& impl = *out.impl();
  Shape strides = result.is_dense() ? result.strides() : contiguous_strides(sizes);
  int64_t needed = storage_bytes_needed(sizes, strides, impl.offset, out.itemsize());
  if (needed > int64_t(impl.storage->bytes())) impl.storage->resize(size_t(needed));
  impl.sizes = sizes;
  impl.strides = strides;
  impl.layout_changed();
}

// Brings a result into the tensor that the caller gave, unless the op has written it there.
void write_out(const OpEntry& entry, const Tensor& out, const Tensor& result) {
  const char* op = entry.schema.name_text;
  refuse_to_record(out.requires_grad(), op);
  check_rewrite(out, false);
  CHECK(can_cast(result.dtype(), out.dtype()),
        is_tensor_list(entry.schema.args[0].type) ? ErrorKind::kType : ErrorKind::kRuntime, op,
        ": result type ", dtype_name(result.dtype()), " can't be cast to the desired output type ",
        dtype_name(out.dtype()));
  if (out.is_sparse()) {
    CHECK(layout_of(result) == layout_of(out), op, ": the result has layout ",
          layout_name(layout_of(result)), ", but out has ", layout_name(layout_of(out)), ".");
    take_parts(out, result.dtype() == out.dtype() ? result : cast(result, out.dtype()));
  } else if (!result.is(out)) {
    CHECK(!result.is_sparse(), op, ": the result is sparse, but out is a dense tensor.");
    check_writable(out);
    if (!(out.sizes() == result.sizes())) resize_out(entry, out, result);
    bool is_seen = call_watch.watchers & kWatchedByModes;  // which know no other write than ops
    if (is_seen) copy_(out, result);
    else copy_into(out, result);
  }
  if (!out.impl()->untracked) out.storage()->bump_version(op);
}

// The result lies on the device of `out`, or is made from nothing and copied there.
void check_out_device(const OpEntry& entry, const Tensor& out, const Tensor& result) {
  CHECK(result.device() == out.device() || entry.schema.index_of("device") >= 0,
        entry.schema.name_text,
        ": Expected all tensors to be on the same device, but the result is on ", result.device(),
        " and out on ", out.device(), ". Pass out on the device of the inputs.");
}

// A device or a layout that the call names must be that of `out`.
void check_asked(const OpEntry& entry, const Value* values, const Tensor& out,
                 std::optional<Layout> layout) {
  const char* op = entry.schema.name_text;
  const int device = entry.schema.index_of("device");
  auto* asked = device < 0 ? nullptr : std::get_if<Device>(&values[device]);
  bool is_there = !asked || (asked->type == out.device().type &&
                             (!asked->has_index() || *asked == out.device()));
  CHECK(is_there, op, ": device ", *asked, " does not match device ", out.device(),
        " of out. Leave device out.");
  CHECK(!layout || *layout == layout_of(out), op, ": layout ", layout_name(*layout),
        " does not match layout ", layout_name(layout_of(out)), " of out. Leave layout out.");
}

// The arguments of a call that writes to `out`: an op with an argument `dtype` computes in that of
// `out`, which is real where a norm is asked for in a complex dtype. `own` has room for them.
const Value* in_dtype_of(const OpEntry& entry, const Value* values, const Tensor& out, Value* own) {
  const int dtype = entry.schema.index_of("dtype");
  if (dtype < 0) return values;
  if (auto* asked = std::get_if<DType>(&values[dtype])) {
    CHECK(*asked == out.dtype() || real_dtype(*asked) == out.dtype(), entry.schema.name_text,
          ": dtype ", dtype_name(*asked), " does not match dtype ", dtype_name(out.dtype()),
          " of out. Leave dtype out.");
    return values;
  }
  std::copy_n(values, entry.schema.arg_count, own);
  own[dtype] = out.dtype();
  return own;
}

// A sequence fills an `out` of any shape that has as many elements.
Tensor in_shape_of(const OpEntry& entry, const Tensor& out, const Tensor& result) {
  if (!makes_sequence(entry.schema, result) || result.numel() != out.numel()) return result;
  return alias(result, out.sizes(), contiguous_strides(out.sizes()), result.offset());
}

// What a call with out= returns: the tensors themselves, by the names of the op's results.
PyObject* named_out(const OpEntry& entry, PyObject* out) {
  if (!has_named_results(entry)) return Py_NewRef(out);
  Ref named(checked(PyStructSequence_New(return_type(entry))));
  for (Py_ssize_t i = 0; i < entry.schema.return_count; ++i)
    PyStructSequence_SetItem(named.get(), i, checked(PySequence_GetItem(out, i)));
  return named.release();
}

}  // namespace

PyObject* run_op_into(const OpEntry& entry, const Value* values, const Extras& extras) {
  PyObject* out = extras.out;
  const char* op = entry.schema.name_text;
  refuse_to_record(weigh(entry, values).recorded, op);
  const Tensor* target = is_tensor(out) ? &unwrap(out) : nullptr;
  std::array<Value, kMaxArgs> own;
  if (target) {
    refuse_to_record(target->requires_grad(), op);
    if (is_dispatched(*target)) {  // its class does what is asked for
      call_dispatched(entry, CallForm::into, {values, size_t(entry.schema.arg_count)}, target);
      return Py_NewRef(out);
    }
    check_rewrite(*target, false);
    check_asked(entry, values, *target, extras.layout);
    values = in_dtype_of(entry, values, *target, own.data());
  }
  Result result = run_op(entry, values, false, target);
  if (Tensor* one = std::get_if<Tensor>(&result)) {
    const Tensor& into = expect_tensor(out, "argument 'out'");
    check_out_device(entry, into, *one);
    write_out(entry, into, in_shape_of(entry, into, *one));
    if (extras.requires_grad) set_requires_grad(into, true);
  } else if (auto* many = std::get_if<std::vector<Tensor>>(&result)) {
    CHECK(!target && PySequence_Check(out) && size_t(PySequence_Size(out)) == many->size(),
          ErrorKind::kType, op, ": argument 'out' must be a tuple of ", many->size(), " Tensors");
    for (size_t i = 0; i < many->size(); ++i) {
      Ref item(checked(PySequence_GetItem(out, Py_ssize_t(i))));
      const Tensor& into = expect_tensor(item.get(), "argument 'out'");
      check_out_device(entry, into, (*many)[i]);
      write_out(entry, into, (*many)[i]);
    }
  } else {
    CHECK(false, ErrorKind::kType, op, ": got an unexpected keyword argument 'out'");
  }
  return named_out(entry, out);
}

}  // namespace rushlight::python
