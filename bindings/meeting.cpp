// Owns what Python sees of the meeting of processes; rushlight/distributed/arena.py uses it.
#include "bindings/meeting.h"

#include <algorithm>

#include "core/device/meeting.h"

namespace rushlight::python {
namespace {

constexpr double kLongest = 1e6;  // seconds, which nanoseconds can still count

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::nanoseconds(int64_t(std::clamp(seconds, 0.0, kLongest) * 1e9));
}

PyObject* meet_others(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject* object;
    int mine;
    unsigned int meeting;
    double awake, timeout;
    if (!PyArg_ParseTuple(args, "OiIdd", &object, &mine, &meeting, &awake, &timeout))
      return nullptr;
    const Tensor& seats = expect_tensor(object, "seats");
    CHECK(seats.device().is_cpu() && seats.is_contiguous() && seats.dtype() == DType::uint8,
          ErrorKind::kValue, "the seats must be bytes in a row on the CPU");
    int64_t count = seats.numel() / int64_t(sizeof(Seat));
    CHECK(mine >= 0 && mine < count, ErrorKind::kValue, "seat ", mine, " of ", count,
          " does not exist");
    auto* first = static_cast<Seat*>(seats.data());
    CHECK(reinterpret_cast<uintptr_t>(first) % alignof(Seat) == 0, ErrorKind::kValue,
          "the seats must begin at a multiple of ", alignof(Seat), " bytes");
    int missing;
    {
      ReleaseGil release;
      missing = meet(first, int(count), mine, meeting, nanoseconds(awake), nanoseconds(timeout));
    }
    return PyLong_FromLong(missing);
  });
}

PyMethodDef methods[] = {
    {"_meet", meet_others, METH_VARARGS,
     "Takes seat `mine` and waits for the others: (seats, mine, meeting, awake, timeout). Returns "
     "the first seat that was not taken, or -1."},
    {}};

}  // namespace

void add_meeting(PyObject* module) { checked(PyModule_AddFunctions(module, methods)); }

}  // namespace rushlight::python
