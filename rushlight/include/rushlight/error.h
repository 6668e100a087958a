// Owns how an extension finds Rushlight, and errors, which keep their class in Python.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>

#include <rushlight/abi.h>

namespace c10 {

namespace abi = rushlight::abi;

// The functions of the Rushlight that the process has.
inline const abi::Table& table() {
  static const abi::Table* found = [] {
    pybind11::gil_scoped_acquire gil;
    pybind11::module_::import("rushlight");
    auto* imported = static_cast<const abi::Table*>(PyCapsule_Import(abi::kCapsule, 0));
    if (!imported) throw pybind11::error_already_set();
    if (imported->version != abi::kVersion)
      throw std::runtime_error(
          "this extension was built for another version of Rushlight. Build it anew.");
    imported->prepare();
    return imported;
  }();
  return *found;
}

// In Python it is the exception that it was there, or one of the class `type`.
class Error : public std::exception {
 public:
  explicit Error(std::string text, PyObject* type = PyExc_RuntimeError)
      : text_(std::move(text)), type_(type) {}
  explicit Error(abi::Error* failure)
      : text_(table().text_of(failure)), failure_(failure, table().drop) {}
  const char* what() const noexcept override { return text_.c_str(); }
  std::string msg() const { return text_; }
  void raise() const {
    if (failure_) table().raise(failure_.get());
    else PyErr_SetString(type_, text_.c_str());
  }

 private:
  std::string text_;
  PyObject* type_ = nullptr;  // of those that live as long as Python
  std::shared_ptr<abi::Error> failure_;
};

template <class... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream text;
  (void)(text << ... << parts);
  return text.str();
}

namespace detail {

template <class... Parts>
[[noreturn]] void fail(PyObject* type, const char* condition, const Parts&... parts) {
  if constexpr (sizeof...(parts) == 0)
    throw Error(str("Expected ", condition, " to be true, but got false."), type);
  else throw Error(str(parts...), type);
}

// Failures of the table's functions.
template <class Function, class... Args>
auto checked(Function function, Args... args) {
  abi::Error* error = nullptr;
  auto result = function(args..., &error);
  if (error) throw Error(error);
  return result;
}

// What the module needs to do when it is loaded: to find the table, since a thread that does so
// later may wait for the interpreter lock, and to let errors keep their class in Python.
namespace {
[[maybe_unused]] const bool is_loaded = [] {
  pybind11::gil_scoped_acquire gil;
  try {
    table();
  } catch (const std::exception&) {  // which the first use will throw, too: none may leave here
  }
  pybind11::register_local_exception_translator([](std::exception_ptr exception) {
    try {
      if (exception) std::rethrow_exception(exception);
    } catch (const Error& error) {
      error.raise();
    }
  });
  return true;
}();
}  // namespace
}  // namespace detail

// Programs leave out the semicolon after a check, so each is an if.
#define RUSHLIGHT_CHECK(type, condition, ...) \
  if (!(condition)) { \
    ::c10::detail::fail(type, #condition, ##__VA_ARGS__); \
  }
#define TORCH_CHECK(condition, ...) RUSHLIGHT_CHECK(PyExc_RuntimeError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) \
  RUSHLIGHT_CHECK(PyExc_ValueError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) RUSHLIGHT_CHECK(PyExc_TypeError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) \
  RUSHLIGHT_CHECK(PyExc_IndexError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) \
  RUSHLIGHT_CHECK(PyExc_NotImplementedError, condition, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define AT_ASSERT(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define AT_ASSERTM(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define AT_ERROR(...) TORCH_CHECK(false, ##__VA_ARGS__)
#define RUSHLIGHT_COMPARE(a, op, b) \
  TORCH_CHECK((a)op(b), "Expected " #a " " #op " " #b ", but got ", a, " and ", b)
#define TORCH_CHECK_EQ(a, b) RUSHLIGHT_COMPARE(a, ==, b)
#define TORCH_CHECK_NE(a, b) RUSHLIGHT_COMPARE(a, !=, b)
#define TORCH_CHECK_LT(a, b) RUSHLIGHT_COMPARE(a, <, b)
#define TORCH_CHECK_LE(a, b) RUSHLIGHT_COMPARE(a, <=, b)
#define TORCH_CHECK_GT(a, b) RUSHLIGHT_COMPARE(a, >, b)
#define TORCH_CHECK_GE(a, b) RUSHLIGHT_COMPARE(a, >=, b)
#define TORCH_WARN(...)                                                                       \
  do {                                                                                        \
    pybind11::gil_scoped_acquire gil;                                                         \
    if (PyErr_WarnEx(PyExc_UserWarning, ::c10::str(__VA_ARGS__).c_str(), 1) < 0)              \
      throw pybind11::error_already_set();                                                    \
  } while (false)
#define TORCH_WARN_ONCE(...)                             \
  do {                                                   \
    static std::atomic_flag warned;                      \
    if (!warned.test_and_set()) TORCH_WARN(__VA_ARGS__); \
  } while (false)
#define C10_UNUSED [[maybe_unused]]
#define C10_ALWAYS_INLINE inline __attribute__((always_inline))
#define C10_LIKELY(x) __builtin_expect(bool(x), 1)
#define C10_UNLIKELY(x) __builtin_expect(bool(x), 0)

}  // namespace c10
