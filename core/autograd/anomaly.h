// Owns the switch for the search for NaN in gradients: one for all threads, since a backward may
// run in another thread than the one that looks for its mistake.
#pragma once

#include <atomic>

namespace rushlight {

class Node;

struct AnomalyMode {
  std::atomic<bool> enabled{false};
  std::atomic<bool> checks_nan{true};
  // Keeps with a new node which lines of the program made it; set by the bindings.
  void (*note_traceback)(Node&) = nullptr;
};

inline AnomalyMode anomaly_mode;

}  // namespace rushlight
