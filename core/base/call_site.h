// Owns CallSite: the line of the user's program that asked for an op, kept as two words.
//
// The core never looks inside; bindings/ fills it in and turns it back into "train.py:12".
// See Note [Call sites] in bindings/call_site.cpp.
#pragma once

#include <cstdint>
#include <string>

namespace rushlight {

struct CallSite {
  const void* code = nullptr;
  int32_t instruction = 0;
};

// The call being executed by this thread; empty when nobody recorded it.
inline thread_local CallSite current_call_site;

// "train.py:12", or "" for an empty site. Set once by the bindings.
inline std::string (*describe_call_site)(CallSite) = [](CallSite) { return std::string(); };

}  // namespace rushlight
