// Owns RecentMap: values by lists of numbers, of which those not used for long make room for new.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>

#include "core/base/small_vector.h"

namespace rushlight {

// What makes two calls the same: sizes, dtypes, strides...
using NumbersKey = SmallVector<int64_t, 40>;

template <class Value>
class RecentMap {
 public:
  explicit RecentMap(size_t most) : most_(most) {}

  // The value of a key, which is Value() at first. It stays where it is until it makes room.
  Value& operator[](const NumbersKey& key) {
    if (auto found = index_.find(key); found != index_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front().value;
    }
    if (entries_.size() == most_) {
      index_.erase(entries_.back().key);
      entries_.pop_back();
    }
    entries_.push_front({key, {}});
    index_[key] = entries_.begin();
    return entries_.front().value;
  }

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    NumbersKey key;
    Value value;
  };
  struct Hash {
    size_t operator()(const NumbersKey& key) const {
      uint64_t hash = key.size();
      for (int64_t word : key) hash = (hash ^ uint64_t(word)) * 0x9E3779B97F4A7C15;
      return hash ^ hash >> 32;
    }
  };

  size_t most_;
  std::list<Entry> entries_;  // the one used last in front
  std::unordered_map<NumbersKey, typename std::list<Entry>::iterator, Hash> index_;
};

}  // namespace rushlight
