// Owns TORCH_LIBRARY: operators of torch.ops, written in C++. They are those of rushlight.library.
#pragma once

#include <rushlight/containers.h>

namespace c10 {

// Where a kernel runs: on a device, or as a function whose ops are recorded one by one.
enum class DispatchKey {
  CPU,
  CUDA,
  Meta,
  Autograd,
  AutogradCPU,
  AutogradCUDA,
  CompositeExplicitAutograd,
  CompositeImplicitAutograd,
};

inline const char* toString(DispatchKey key) {
  constexpr const char* kNames[] = {"CPU",
                                    "CUDA",
                                    "Meta",
                                    "Autograd",
                                    "AutogradCPU",
                                    "AutogradCUDA",
                                    "CompositeExplicitAutograd",
                                    "CompositeImplicitAutograd"};
  return kNames[int(key)];
}

}  // namespace c10

namespace torch {

using c10::DispatchKey;

namespace detail {

inline DispatchKey key_of(DispatchKey key) { return key; }
inline DispatchKey key_of(c10::DeviceType type) {
  return type == c10::kCPU    ? DispatchKey::CPU
         : type == c10::kCUDA ? DispatchKey::CUDA
                              : DispatchKey::Meta;
}

// The types of a C++ function as a schema says them.
template <class T>
struct SchemaType;
#define RUSHLIGHT_SCHEMA_TYPE(type, text)                  \
  template <>                                              \
  struct SchemaType<type> {                                \
    static std::string get() { return text; }              \
  };
RUSHLIGHT_SCHEMA_TYPE(at::Tensor, "Tensor")
RUSHLIGHT_SCHEMA_TYPE(int64_t, "int")
RUSHLIGHT_SCHEMA_TYPE(double, "float")
RUSHLIGHT_SCHEMA_TYPE(bool, "bool")
RUSHLIGHT_SCHEMA_TYPE(at::Scalar, "Scalar")
RUSHLIGHT_SCHEMA_TYPE(std::string, "str")
RUSHLIGHT_SCHEMA_TYPE(std::string_view, "str")
RUSHLIGHT_SCHEMA_TYPE(at::ScalarType, "ScalarType")
RUSHLIGHT_SCHEMA_TYPE(at::Device, "Device")
#undef RUSHLIGHT_SCHEMA_TYPE
template <class T>
struct SchemaType<std::optional<T>> {
  static std::string get() { return SchemaType<T>::get() + "?"; }
};
template <class T>
struct SchemaType<std::vector<T>> {
  static std::string get() { return SchemaType<T>::get() + "[]"; }
};
template <class T>
struct SchemaType<c10::List<T>> : SchemaType<std::vector<T>> {};
template <class Key, class Value>
struct SchemaType<c10::Dict<Key, Value>> {
  static std::string get() {
    return "Dict(" + SchemaType<Key>::get() + ", " + SchemaType<Value>::get() + ")";
  }
};
template <class T>
struct SchemaType<at::ArrayRef<T>> : SchemaType<std::vector<T>> {};
template <class... Types>
struct SchemaType<std::tuple<Types...>> {
  static std::string get() {
    std::string all;
    ((all += (all.empty() ? "" : ", ") + SchemaType<Types>::get()), ...);
    return "(" + all + ")";
  }
};

template <class Result, class... Args>
std::string schema_of(const std::string& name, Result (*)(Args...)) {
  std::string all;
  int i = 0;
  ((all += (i ? ", " : "") + SchemaType<std::decay_t<Args>>::get() + " _" + std::to_string(i), ++i),
   ...);
  std::string result = "()";
  if constexpr (!std::is_void_v<Result>) result = SchemaType<std::decay_t<Result>>::get();
  return name + "(" + all + ") -> " + result;
}

template <class F>
struct Kernel {
  const char* key;
  F function;
};

}  // namespace detail

// A function for Library::def or impl, and where it runs: a device or a DispatchKey.
template <class Key, class F>
auto dispatch(Key key, F function) {
  return detail::Kernel<decltype(+function)>{c10::toString(detail::key_of(key)), +function};
}

class Library {
 public:
  Library(const char* name, const char* kind, const char* key)
      : object_(pybind11::module_::import("rushlight.library").attr("Library")(name, kind, key)) {}

  Library& def(const std::string& schema) {
    object_.attr("define")(schema);
    return *this;
  }
  // The schema, or a name alone, of which the function says the rest. Functions may be lambdas
  // without captures.
  template <class F>
  Library& def(const std::string& text, F function) {
    return def(text, detail::Kernel<decltype(+function)>{"", +function});
  }
  template <class F>
  Library& def(const std::string& text, detail::Kernel<F> kernel) {
    bool is_name = text.find('(') == text.npos;
    def(is_name ? detail::schema_of(text, kernel.function) : text);
    return impl(text.substr(0, text.find('(')), kernel);
  }
  template <class F>
  Library& impl(const std::string& name, F function) {
    return impl(name, detail::Kernel<decltype(+function)>{"", +function});
  }
  template <class F>
  Library& impl(const std::string& name, detail::Kernel<F> kernel) {
    object_.attr("_impl_when_defined")(name, pybind11::cpp_function(kernel.function), kernel.key);
    return *this;
  }
  template <class Key, class F>
  Library& impl(const std::string& name, Key key, F function) {
    return impl(name, dispatch(key, function));
  }

  // Python's object, kept as long as the process: without it its operators would go.
  pybind11::object release() { return std::move(object_); }

 private:
  pybind11::object object_;
};

namespace detail {

// Adds operators while a library is loaded, which no exception may leave: it is told to
// sys.unraisablehook.
template <class Fill>
void fill_library(const char* name, const char* kind, const char* key, Fill fill) {
  pybind11::gil_scoped_acquire gil;
  try {
    Library library(name, kind, key);
    fill(library);
    library.release().release();
  } catch (pybind11::error_already_set& error) {
    error.discard_as_unraisable("TORCH_LIBRARY");
  } catch (const c10::Error& error) {
    error.raise();
    PyErr_WriteUnraisable(nullptr);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    PyErr_WriteUnraisable(nullptr);
  }
}

struct LibraryBlock {
  LibraryBlock(const char* name, const char* kind, const char* key, void (*fill)(Library&)) {
    fill_library(name, kind, key, fill);
  }
};

}  // namespace detail

// The older way: static auto all = RegisterOperators().op("space::name", &f).op(...).
class RegisterOperators {
 public:
  RegisterOperators() = default;
  template <class F>
  RegisterOperators(const std::string& name, F function) {
    op(name, function);
  }
  template <class F>
  RegisterOperators& op(const std::string& name, F function) {
    size_t colons = name.find("::");
    detail::fill_library(name.substr(0, colons).c_str(), "FRAGMENT", "", [&](Library& library) {
      library.def(name.substr(colons == name.npos ? 0 : colons + 2), function);
    });
    return *this;
  }
};

#define RUSHLIGHT_JOINED_(a, b) a##b
#define RUSHLIGHT_JOINED(a, b) RUSHLIGHT_JOINED_(a, b)
#define RUSHLIGHT_LIBRARY(name, kind, key, m, id)                                        \
  static void RUSHLIGHT_JOINED(fill_library_, id)(::torch::Library & m);                 \
  static const ::torch::detail::LibraryBlock RUSHLIGHT_JOINED(library_, id)(             \
      name, kind, key, &RUSHLIGHT_JOINED(fill_library_, id));                            \
  static void RUSHLIGHT_JOINED(fill_library_, id)(::torch::Library & m)
#define TORCH_LIBRARY(name, m) RUSHLIGHT_LIBRARY(#name, "DEF", "", m, __COUNTER__)
#define TORCH_LIBRARY_FRAGMENT(name, m) RUSHLIGHT_LIBRARY(#name, "FRAGMENT", "", m, __COUNTER__)
#define TORCH_LIBRARY_IMPL(name, key, m) RUSHLIGHT_LIBRARY(#name, "IMPL", #key, m, __COUNTER__)
#define TORCH_FN(function) (&function)

}  // namespace torch
