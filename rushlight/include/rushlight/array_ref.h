// Owns spans: items that somebody else keeps.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <ranges>
#include <string_view>
#include <vector>

#include <rushlight/error.h>

namespace c10 {

using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;
using std::string_view;

template <class T>
class ArrayRef {
 public:
  using value_type = T;
  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  ArrayRef(const std::vector<T>& items) : ArrayRef(items.data(), items.size()) {}
  template <size_t n>
  constexpr ArrayRef(const std::array<T, n>& items) : ArrayRef(items.data(), n) {}
  template <size_t n>
  constexpr ArrayRef(const T (&items)[n]) : ArrayRef(items, n) {}
  constexpr ArrayRef(const std::initializer_list<T>& items)
      : ArrayRef(items.begin(), items.size()) {}

  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  const T& at(size_t i) const {
    TORCH_CHECK_INDEX(i < size_, "index ", i, " is out of range for ", size_, " items");
    return data_[i];
  }
  const T& front() const { return at(0); }
  const T& back() const { return at(size_ - 1); }
  ArrayRef slice(size_t first, size_t count) const {
    TORCH_CHECK_INDEX(first <= size_ && count <= size_ - first, "slice of ", count, " items from ",
                      first, " on is out of range for ", size_, " items");
    return {data_ + first, count};
  }
  bool equals(ArrayRef other) const { return *this == other; }
  std::vector<T> vec() const { return {begin(), end()}; }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};
template <class T>
bool operator==(ArrayRef<T> a, ArrayRef<T> b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}
template <class T>
bool operator!=(ArrayRef<T> a, ArrayRef<T> b) {
  return !(a == b);
}
template <class T>
std::ostream& operator<<(std::ostream& out, ArrayRef<T> items) {
  out << '[';
  for (size_t i = 0; i < items.size(); ++i) out << (i ? ", " : "") << items[i];
  return out << ']';
}
using IntArrayRef = ArrayRef<int64_t>;

// The numbers from `begin` up to `end`: for (auto i : c10::irange(n)).
template <class T>
auto irange(T end) {
  return std::views::iota(T(0), std::max(T(0), end));
}
template <class Begin, class End>
auto irange(Begin begin, End end) {
  return std::views::iota(End(begin), std::max(End(begin), end));
}

class OptionalIntArrayRef {
 public:
  OptionalIntArrayRef() = default;
  OptionalIntArrayRef(nullopt_t) {}
  OptionalIntArrayRef(IntArrayRef items) : items_(items) {}
  OptionalIntArrayRef(const optional<IntArrayRef>& items) : items_(items) {}
  OptionalIntArrayRef(const std::vector<int64_t>& items) : items_(items) {}
  OptionalIntArrayRef(const int64_t& one) : items_(IntArrayRef(one)) {}
  OptionalIntArrayRef(const std::initializer_list<int64_t>& items) : items_(IntArrayRef(items)) {}
  bool has_value() const { return items_.has_value(); }
  const IntArrayRef& value() const { return items_.value(); }

 private:
  optional<IntArrayRef> items_;
};

}  // namespace c10
