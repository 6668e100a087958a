// Owns List and Dict, which are copied from and to Python's.
#pragma once

#include <rushlight/casters.h>

#include <map>

namespace c10 {

template <class T>
class List : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  List(std::vector<T> items) : std::vector<T>(std::move(items)) {}
  const T& get(size_t i) const { return this->at(i); }
  const std::vector<T>& vec() const { return *this; }
};

template <class Key, class Value>
class Dict {
 public:
  struct Entry : std::pair<const Key, Value> {
    using std::pair<const Key, Value>::pair;
    const Key& key() const { return this->first; }
    const Value& value() const { return this->second; }
  };

  bool insert(Key key, Value value) {
    if (contains(key)) return false;
    entries_.emplace_back(std::move(key), std::move(value));
    return true;
  }
  void insert_or_assign(const Key& key, Value value) {
    for (Entry& entry : entries_)
      if (entry.first == key) return void(entry.second = std::move(value));
    insert(key, std::move(value));
  }
  const Value& at(const Key& key) const {
    for (const Entry& entry : entries_)
      if (entry.first == key) return entry.second;
    throw Error(str("there is no key ", key), PyExc_KeyError);
  }
  bool contains(const Key& key) const {
    return std::any_of(begin(), end(), [&](const Entry& entry) { return entry.first == key; });
  }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  std::vector<Entry> entries_;  // in the order of Python's
};

}  // namespace c10

namespace pybind11::detail {

template <class T>
struct type_caster<c10::List<T>> : list_caster<c10::List<T>, T> {};

template <class Key, class Value>
struct type_caster<c10::Dict<Key, Value>> {
  using Dict = c10::Dict<Key, Value>;
  PYBIND11_TYPE_CASTER(Dict, const_name("dict[") + make_caster<Key>::name + const_name(", ") +
                                 make_caster<Value>::name + const_name("]"));
  bool load(handle source, bool convert) {
    if (!isinstance<dict>(source)) return false;
    for (auto [key, item] : reinterpret_borrow<dict>(source)) {
      make_caster<Key> key_caster;
      make_caster<Value> item_caster;
      if (!key_caster.load(key, convert) || !item_caster.load(item, convert)) return false;
      value.insert_or_assign(cast_op<Key>(std::move(key_caster)),
                             cast_op<Value>(std::move(item_caster)));
    }
    return true;
  }
  static handle cast(const Dict& items, return_value_policy, handle) {
    dict made;
    for (const auto& entry : items)
      made[pybind11::cast(entry.key())] = pybind11::cast(entry.value());
    return made.release();
  }
};

}  // namespace pybind11::detail
