// Owns the table of functions by which extension modules use tensors and ops; the classes that they
// see are in rushlight/include.
#include <algorithm>
#include <array>
#include <string>

#include "bindings/op_call.h"
#include "bindings/parser.h"
#include "core/autograd/node.h"
#include "core/base/alignment.h"
#include "core/device/threads.h"
#include "core/tensor/lift.h"
#include "rushlight/include/rushlight/abi.h"

namespace rushlight::abi {

struct Op {
  const OpEntry* entry;
  const rushlight::Value* defaults;
};

struct Error {
  std::exception_ptr exception;
  std::string text;
};

}  // namespace rushlight::abi

namespace rushlight::python {
namespace {

// ---- failures -----------------------------------------------------------------------------------

// The exception in flight.
abi::Error* caught() {
  auto exception = std::current_exception();
  try {
    throw;
  } catch (const std::exception& error) {
    return new abi::Error{exception, error.what()};
  } catch (...) {  // a Python exception, which is set
    AcquireGil gil;
    PyObject *raw_type, *raw_value, *raw_trace;
    PyErr_Fetch(&raw_type, &raw_value, &raw_trace);
    std::string text = "a Python exception";
    if (raw_value) {
      Ref words(PyObject_Str(raw_value));
      const char* utf8 = words ? PyUnicode_AsUTF8(words.get()) : nullptr;
      if (utf8) text = utf8;
      PyErr_Clear();
    }
    PyErr_Restore(raw_type, raw_value, raw_trace);
    try {
      throw_python_error();
    } catch (...) {
      return new abi::Error{std::current_exception(), text};
    }
  }
}

// What f() returns, or `failed` with the error.
template <class F, class T>
T guard(abi::Error** error, T failed, F&& f) {
  try {
    return f();
  } catch (...) {
    *error = caught();
    return failed;
  }
}

const char* text_of(const abi::Error* error) { return error->text.c_str(); }
void drop(abi::Error* error) { delete error; }
void raise(const abi::Error* error) {
  try {
    std::rethrow_exception(error->exception);
  } catch (...) {
    set_python_error();
  }
}

// ---- tensors ------------------------------------------------------------------------------------

TensorImpl* impl_of(abi::Tensor* tensor) { return reinterpret_cast<TensorImpl*>(tensor); }
Tensor shared(abi::Tensor* tensor) {
  return Tensor(IntrusivePtr<TensorImpl>::share(impl_of(tensor)));
}
abi::Tensor* given_away(Tensor tensor) {
  abi::Tensor* handle = reinterpret_cast<abi::Tensor*>(tensor.impl());
  tensor.forget();
  return handle;
}

constexpr std::pair<DType, abi::DType> kDTypes[] = {
    {DType::uint8, abi::DType::uint8},
    {DType::int8, abi::DType::int8},
    {DType::int16, abi::DType::int16},
    {DType::int32, abi::DType::int32},
    {DType::int64, abi::DType::int64},
    {DType::float16, abi::DType::float16},
    {DType::float32, abi::DType::float32},
    {DType::float64, abi::DType::float64},
    {DType::complex64, abi::DType::complex64},
    {DType::complex128, abi::DType::complex128},
    {DType::bool_, abi::DType::bool_},
    {DType::bfloat16, abi::DType::bfloat16},
    {DType::float8_e5m2, abi::DType::float8_e5m2},
    {DType::float8_e4m3fn, abi::DType::float8_e4m3fn},
    {DType::uint16, abi::DType::uint16},
    {DType::uint32, abi::DType::uint32},
    {DType::uint64, abi::DType::uint64},
};
static_assert(std::size(kDTypes) == size_t(kDTypeCount));

abi::DType to_abi(DType dtype) {
  for (auto [ours, theirs] : kDTypes)
    if (ours == dtype) return theirs;
  __builtin_unreachable();
}
DType from_abi(abi::DType dtype) {
  for (auto [ours, theirs] : kDTypes)
    if (theirs == dtype) return ours;
  detail::fail(ErrorKind::kType, "there is no dtype of number ", int(dtype));
}

abi::Device to_abi(Device device) {
  abi::DeviceType type = device.is_cpu()    ? abi::DeviceType::cpu
                         : device.is_cuda() ? abi::DeviceType::cuda
                                            : abi::DeviceType::meta;
  return {type, device.is_cuda() ? device.index : -1};
}
Device from_abi(abi::Device device) {
  Device out;
  switch (device.type) {
    case abi::DeviceType::cpu: out.type = DeviceType::cpu; break;
    case abi::DeviceType::cuda: out.type = DeviceType::cuda; break;
    case abi::DeviceType::meta: out.type = DeviceType::meta; break;
    default: detail::fail(ErrorKind::kValue, "there is no device of number ", int(device.type));
  }
  if (device.index >= 0) out.index = int8_t(device.index);
  return out;
}

void share(abi::Tensor* tensor) { impl_of(tensor)->retain(); }
void release(abi::Tensor* tensor) { IntrusivePtr<TensorImpl>::adopt(impl_of(tensor)); }

void look(abi::Tensor* handle, abi::Look* out) {
  Tensor tensor = shared(handle);
  *out = {tensor.sizes().data(),
          tensor.strides().data(),
          tensor.dim(),
          tensor.numel(),
          tensor.offset(),
          to_abi(tensor.dtype()),
          to_abi(tensor.device()),
          tensor.is_contiguous(),
          tensor.is_sparse(),
          gradient_edge_exists(tensor),
          is_leaf(tensor)};
}

bool data(abi::Tensor* handle, void** out, abi::Error** error) {
  return guard(error, false, [&] {
    Tensor tensor = shared(handle);
    if (tensor.is_sparse()) refuse_sparse(tensor);
    if (!tensor.has_elements()) throw NeedsElements(tensor);
    *out = tensor.address();
    return true;
  });
}

bool set_requires_grad_of(abi::Tensor* tensor, bool value, abi::Error** error) {
  return guard(error, false, [&] {
    set_requires_grad(shared(tensor), value);
    return true;
  });
}

struct Foreign {
  void (*free)(void* context);
  void* context;
};

abi::Tensor* from_memory(void* data, const int64_t* sizes, const int64_t* strides, int64_t dim,
                         abi::DType dtype, abi::Device device, void (*free)(void* context),
                         void* context, abi::Error** error) {
  return guard(error, static_cast<abi::Tensor*>(nullptr), [&] {
    CHECK(dim >= 0 && size_t(dim) <= kMaxDims, ErrorKind::kValue, "a tensor has at most ", kMaxDims,
          " dims, not ", dim);
    ShapeRef size(sizes, size_t(dim)), stride(strides, size_t(dim));
    DType type = from_abi(dtype);
    for (int64_t s : stride)
      CHECK(s >= 0, ErrorKind::kValue, "the strides of memory must not be negative, got ", s);
    if (device.type == abi::DeviceType::cpu) check_aligned(data, type);
    // It refuses negative sizes, and more elements than there are.
    bool has_elements = checked_numel(size) > 0;
    CHECK(data || !has_elements || device.type == abi::DeviceType::meta, ErrorKind::kValue,
          "there is no memory at address 0");
    int64_t bytes = storage_bytes_needed(size, stride, 0, dtype_size(type));
    auto free_foreign = [](void* both) {
      auto* foreign = static_cast<Foreign*>(both);
      if (foreign->free) foreign->free(foreign->context);
      delete foreign;
    };
    auto storage = StorageImpl::wrap(data, size_t(bytes), from_abi(device), free_foreign,
                                     new Foreign{free, context}, false);
    return given_away(on_storage(std::move(storage), size, stride, type));
  });
}

// ---- calls --------------------------------------------------------------------------------------

// By the place of a row in the table. They are made at once, with the lock, because a thread that
// asks for one may not wait for the lock: another one that has it may wait for the same op.
std::vector<abi::Op>& ops() {
  static auto& all = *new std::vector<abi::Op>;  // threads may outlive what is static
  return all;
}
void prepare() {
  if (!ops().empty()) return;
  for (const OpEntry& entry : op_table()) ops().push_back({&entry, op_defaults(entry)});
}

const abi::Op* find_op(const char* module, const char* name, const char* overload) {
  auto is_in = [&](std::string_view homes) { return homes.substr(0, homes.find(' ')) == module; };
  for (const abi::Op& op : ops())
    if (op.entry->schema.name == name && op.entry->schema.overload == overload &&
        is_in(op.entry->home))
      return &op;
  return nullptr;
}

// The arguments of one call as Values, and what these look at.
class Arguments {
 public:
  Arguments(const abi::Op& op, const abi::Value* args, int count) {
    const Schema& schema = op.entry->schema;
    CHECK(count >= 0 && count <= schema.arg_count, ErrorKind::kType, op.entry->cpp_name, ": takes ",
          schema.arg_count, " arguments, but ", count, " were given");
    for (int i = 0; i < schema.arg_count; ++i) {
      const Arg& arg = schema.args[size_t(i)];
      if (i >= count) {
        CHECK(arg.has_default, ErrorKind::kType, op.entry->cpp_name,
              ": missing required argument '", arg.name, "'");
        values_[size_t(i)] = op.defaults[i];
      } else {
        bool is_undefined = args[i].kind == abi::Kind::tensor && !args[i].tensor;
        CHECK(read(arg, args[i], size_t(i)), ErrorKind::kType, op.entry->cpp_name, ": argument '",
              arg.name, "' (position ", i + 1,
              is_undefined ? ") is an undefined tensor" : ") has another type");
      }
    }
  }
  const Value* get() const { return values_.data(); }

 private:
  // False if the argument does not take this.
  bool read(const Arg& arg, const abi::Value& in, size_t i) {
    using enum ArgType;
    using abi::Kind;
    Value& out = values_[i];
    auto take = [&](Kind kind, auto value) {
      if (in.kind != kind) return false;
      out = value;
      return true;
    };
    if (in.kind == Kind::none || (in.kind == Kind::tensor && !in.tensor)) {
      out = std::monostate();
      return is_optional(arg.type);
    }
    switch (arg.type) {
      case tensor:
      case tensor_optional:
      case tensor_mutable:
        if (in.kind == Kind::tensor) tensors_[i] = shared(in.tensor);
        else if (arg.takes_number && is_number(in)) tensors_[i] = wrapped_number(number_of(in));
        else return false;
        out = &tensors_[i];
        return true;
      case tensor_list:
      case tensor_list_optional: return read_tensors(in, arg.type == tensor_list_optional, out);
      case ints:
      case ints_optional: return read_ints(in, arg.expand_to, out);
      case integer:
      case integer_optional: return take(Kind::integer, in.integer);
      case ArgType::real:
      case real_optional:
        if (!is_number(in) || in.kind == Kind::complex_) return false;
        out = number_of(in).to<double>();
        return true;
      case boolean:
      case boolean_optional: return take(Kind::boolean, in.integer != 0);
      case string:
      case string_optional: return take(Kind::text, std::string_view(in.text, size_t(in.count)));
      case number:
      case number_optional:
        if (!is_number(in)) return false;
        out = number_of(in);
        return true;
      case dtype_optional: return in.kind == Kind::dtype && (out = from_abi(in.dtype), true);
      case device_optional: return in.kind == Kind::device && (out = from_abi(in.device), true);
      case memory_format_optional:
        return in.integer >= 0 && in.integer <= int(MemoryFormat::channels_last_3d) &&
               take(Kind::memory_format, MemoryFormat(in.integer));
      case generator_optional: return false;
    }
    return false;
  }

  bool read_tensors(const abi::Value& in, bool takes_none, Value& out) {
    if (in.kind != abi::Kind::tensors) return false;
    std::vector<Tensor>& list = arena_.tensor_lists.emplace_front();
    for (int64_t k = 0; k < in.count; ++k) {
      if (!in.tensors[k] && !takes_none) return false;
      list.push_back(in.tensors[k] ? shared(in.tensors[k]) : Tensor());
    }
    out = TensorList(list);
    return true;
  }
  bool read_ints(const abi::Value& in, int expand_to, Value& out) {
    bool is_one = in.kind == abi::Kind::integer;
    if (!is_one && in.kind != abi::Kind::integers) return false;
    if (is_one || (in.count == 1 && expand_to)) {
      auto ints = arena_.make_ints(size_t(std::max(expand_to, 1)));
      std::ranges::fill(ints, is_one ? in.integer : *in.integers);
      out = ShapeRef(ints);
    } else {
      out = ShapeRef(in.integers, size_t(in.count));
    }
    return true;
  }

  static bool is_number(const abi::Value& in) {
    using abi::Kind;
    return in.kind == Kind::integer || in.kind == Kind::real || in.kind == Kind::boolean ||
           in.kind == Kind::complex_;
  }
  static Scalar number_of(const abi::Value& in) {
    using abi::Kind;
    if (in.kind == Kind::integer) return in.integer;
    if (in.kind == Kind::boolean) return in.integer != 0;
    if (in.kind == Kind::real) return in.real[0];
    return std::complex<double>(in.real[0], in.real[1]);
  }

  std::array<Value, kMaxArgs> values_;
  std::array<Tensor, kMaxArgs> tensors_;
  Arena arena_;
};

void give(Result&& result, void (*take)(void* context, abi::Value result), void* context) {
  using abi::Kind;
  abi::Value out{};
  auto put = [&](Kind kind) {
    out.kind = kind;
    take(context, out);
  };
  auto put_tensor = [&](Tensor tensor) {
    out.tensor = tensor.defined() ? given_away(std::move(tensor)) : nullptr;
    put(Kind::tensor);
  };
  auto put_number = [&](const Scalar& number) {
    if (number.is_complex()) {
      auto value = number.to<std::complex<double>>();
      out.real[0] = value.real();
      out.real[1] = value.imag();
      put(Kind::complex_);
    } else if (number.is_integral()) {
      out.integer = number.to<int64_t>();
      put(number.kind() == Scalar::Kind::kBool ? Kind::boolean : Kind::integer);
    } else {
      out.real[0] = number.to<double>();
      put(Kind::real);
    }
  };
  std::visit(
      [&]<class T>(T& value) {
        if constexpr (std::is_same_v<T, Tensor>) {
          put_tensor(std::move(value));
        } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
          for (Tensor& tensor : value) put_tensor(std::move(tensor));
        } else if constexpr (std::is_same_v<T, DType>) {
          out.dtype = to_abi(value);
          put(Kind::dtype);
        } else {
          put_number(Scalar(value));
        }
      },
      result);
}

bool call(const abi::Op* op, const abi::Value* args, int count, bool inplace,
          void (*take)(void* context, abi::Value result), void* context, abi::Error** error) {
  return guard(error, false, [&] {
    const OpEntry& entry = *op->entry;
    CHECK(!inplace || entry.call_inplace, ErrorKind::kType, entry.cpp_name,
          ": has no in-place form");
    Arguments arguments(*op, args, count);
    // The line of the program can be told by who holds the interpreter lock only.
    Result result = PyGILState_Check() ? run_op(entry, arguments.get(), inplace)
                    : inplace          ? entry.call_inplace(arguments.get())
                                       : entry.call(arguments.get());
    give(std::move(result), take, context);
    return true;
  });
}

// ---- Python, settings ---------------------------------------------------------------------------

abi::Tensor* from_python(PyObject* object) {
  return is_tensor(object) ? given_away(unwrap(object)) : nullptr;
}
PyObject* to_python(abi::Tensor* tensor) {
  return guarded([&] { return wrap(shared(tensor)); });
}

void set_grad_enabled(bool enabled) { grad_mode.enabled = enabled && !grad_mode.inference; }

void run_parallel(int64_t begin, int64_t end, int64_t grain,
                  void (*body)(void* context, int64_t begin, int64_t end), void* context) {
  // A thread that works on a range may ask for the lock.
  bool holds_gil = PyGILState_Check();
  ReleaseGil release(holds_gil);
  parallel_for(begin, end, grain, [&](int64_t b, int64_t e) { body(context, b, e); });
}

constexpr abi::Table kTable = {
    abi::kVersion,
    prepare,
    share,
    release,
    look,
    data,
    set_requires_grad_of,
    from_memory,
    find_op,
    call,
    from_python,
    to_python,
    text_of,
    drop,
    raise,
    is_grad_enabled,
    set_grad_enabled,
    num_threads,
    run_parallel,
};

}  // namespace

void add_extension(PyObject* module) {
  Ref capsule(checked(PyCapsule_New(const_cast<abi::Table*>(&kTable), abi::kCapsule, nullptr)));
  checked(PyModule_AddObjectRef(module, "_extension_abi", capsule.get()));
}

}  // namespace rushlight::python
