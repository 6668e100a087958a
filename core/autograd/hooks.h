// Owns HookList: functions that are called when a gradient passes by.
//
// Hooks may come and go while they run, and in other threads: a run calls those that were there
// when it began.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/tensor/tensor.h"

namespace rushlight {

// Guards all lists. Never held while a function is called or freed: both may want Python's lock.
inline std::mutex hook_mutex;

// One registered hook, whatever it is called with.
class AnyHook {
 public:
  virtual ~AnyHook() = default;
  virtual void remove() = 0;
};
// Finds a hook as long as what it hangs on lives.
using HookHandle = std::weak_ptr<AnyHook>;

template <class F>
class HookList {
 public:
  using Function = std::shared_ptr<const F>;

  HookHandle add(F function) {
    auto hook = std::make_shared<Hook>();
    hook->function = std::make_shared<const F>(std::move(function));
    std::lock_guard lock(hook_mutex);
    std::erase_if(hooks_, [](const auto& other) { return !other->function; });
    hooks_.push_back(hook);
    return hook;
  }
  // Those to call now, in the order in which they came.
  std::vector<Function> all() const {
    std::vector<Function> functions;
    std::lock_guard lock(hook_mutex);
    for (const auto& hook : hooks_)
      if (hook->function) functions.push_back(hook->function);
    return functions;
  }
  void clear() {
    for (const auto& hook : hooks_) hook->remove();
  }

 private:
  struct Hook final : AnyHook {
    Function function;

    void remove() override {
      Function dropped;  // freed without the lock
      std::lock_guard lock(hook_mutex);
      dropped.swap(function);
    }
  };
  std::vector<std::shared_ptr<Hook>> hooks_;
};

// Called with the gradients that enter a node (pre) or leave it (post); may replace them.
using NodePreHook = std::function<void(std::vector<Tensor>& grads)>;
using NodePostHook =
    std::function<void(std::vector<Tensor>& input_grads, const std::vector<Tensor>& grads)>;
// Called with a leaf whose .grad is complete.
using LeafHook = std::function<void(const Tensor& leaf)>;

// Finds a tensor while it lives, without keeping it alive.
class TensorLink {
 public:
  explicit TensorLink(TensorImpl* impl) : impl_(impl) {}

  // The tensor, or an undefined one when it is gone.
  Tensor lock() const {
    std::lock_guard lock(mutex_);
    if (!impl_ || !impl_->try_retain()) return {};
    return Tensor(IntrusivePtr<TensorImpl>::adopt(impl_));
  }
  void forget() {
    std::lock_guard lock(mutex_);
    impl_ = nullptr;
  }

 private:
  // Never held while Python may be called: its lock would be taken in the other order elsewhere.
  mutable std::mutex mutex_;
  TensorImpl* impl_;
};

// A tensor that keeps the gradient of result `slot` in its .grad.
struct RetainedGrad {
  uint32_t slot;
  std::shared_ptr<TensorLink> tensor;
};

// What hangs on a node, in the order in which it runs.
struct NodeHooks {
  HookList<NodePreHook> tensor;  // of the tensors that are results, each for its slot
  std::vector<RetainedGrad> retained;
  HookList<NodePreHook> pre;
  HookList<NodePostHook> post;
  std::shared_ptr<void> metadata;  // the user's notes, an object of the bindings
};

}  // namespace rushlight
