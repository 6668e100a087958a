#include "core/device/cuda_report.h"

#include <mutex>
#include <utility>

#include "core/base/error.h"

namespace rushlight::cuda {
namespace {

std::mutex mutex;
std::string& reported() {
  static std::string text;
  return text;
}

}  // namespace

void report(const std::string& text) {
  std::lock_guard lock(mutex);
  reported() = text;
  has_report = true;
}

void raise_report() {
  std::string text;
  {
    std::lock_guard lock(mutex);
    if (!has_report.exchange(false)) return;
    text = std::exchange(reported(), {});
  }
  detail::fail(text);
}

}  // namespace rushlight::cuda
