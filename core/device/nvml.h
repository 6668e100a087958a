// Owns the questions that only NVIDIA's management library (NVML, part of the driver) answers: how
// busy, hot and full a GPU is. It is opened at the first question.
//
// RUSHLIGHT_NVML names another library file.
#pragma once

#include <cstdint>
#include <vector>

namespace rushlight::nvml {

enum class Reading {
  gpu_busy,     // percent of the time of the last sample in which a kernel ran
  memory_busy,  // in which memory was read or written
  temperature,  // degrees Celsius
  power,        // milliwatts
  clock,        // of the multiprocessors, in MHz
  memory_used   // bytes
};
// Of a device by its number in namespace cuda. Raises where NVML is missing or cannot tell.
int64_t read(int device, Reading reading);

struct Process {
  int64_t id;
  int64_t bytes;  // of the GPU's memory; -1 where that is not known
};
std::vector<Process> processes(int device);

}  // namespace rushlight::nvml
