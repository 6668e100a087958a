// Owns the error type and the two checks of the code base.
//
// CHECK states a rule for the user; ASSERT states one for us. Both throw, nothing aborts.
// The dispatcher puts the op's name in front of a message, so authors never type it.
#pragma once

#include <exception>
#include <sstream>
#include <string>
#include <utility>

namespace rushlight {

// Each kind becomes the Python exception of the same name in bindings/errors.cpp.
enum class ErrorKind {
  kRuntime,
  kValue,
  kType,
  kIndex,
  kAssertion,
  kNotImplemented,
  kOutOfMemory,
  kLinAlg,
};

namespace detail {
inline constexpr const char* kOurMistake = "internal error at ";
}

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}

  const char* what() const noexcept override { return message_.c_str(); }
  ErrorKind kind() const { return kind_; }

  // Puts "op: " in front, once: the innermost op that failed is the one to name.
  void name_op(const char* op) {
    if (name_size_ == 0) rename_op(op);
  }
  // Puts it there instead of the name that was.
  void rename_op(const char* op) {
    std::string name = std::string(op[0] == '_' ? op + 1 : op) + ": ";  // private ops too
    message_.replace(0, name_size_, name);
    name_size_ = name.size();
  }
  bool has_op() const { return name_size_ != 0; }
  // Whether an ASSERT failed.
  bool is_ours() const { return message_.find(detail::kOurMistake) != message_.npos; }

 private:
  ErrorKind kind_;
  size_t name_size_ = 0;  // of what stands before the message; 0: nothing
  std::string message_;
};

namespace detail {

template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(ErrorKind kind, const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Error(kind, text.str());
}

template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(const Parts&... parts) {
  fail(ErrorKind::kRuntime, parts...);
}

}  // namespace detail
}  // namespace rushlight

// The user's mistake: CHECK(cond, parts...) or CHECK(cond, ErrorKind::kIndex, parts...).
#define CHECK(condition, ...)                                   \
  do {                                                          \
    if (!(condition)) [[unlikely]]                              \
      ::rushlight::detail::fail(__VA_ARGS__);                   \
  } while (false)

// Our mistake: the text asks the user to report it.
#define ASSERT(condition)                                                                      \
  do {                                                                                         \
    if (!(condition)) [[unlikely]]                                                             \
      ::rushlight::detail::fail(::rushlight::detail::kOurMistake, __FILE__, ":", __LINE__, ": ", \
                                #condition, " does not hold. Please report this.");            \
  } while (false)
