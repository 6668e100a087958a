// Owns what an extension module and Rushlight tell each other: plain structs and functions in a
// table, which bindings/extension.cpp fills and the classes of the headers beside this one use.
//
// An extension includes no header of the core and links nothing of it, so one that was built for a
// version of Rushlight runs with all later ones of the same kAbiVersion.
#pragma once

#include <cstdint>

typedef struct _object PyObject;

namespace rushlight::abi {

inline constexpr int kVersion = 1;
inline constexpr const char* kCapsule = "rushlight._C._extension_abi";

struct Tensor;  // a tensor, of which somebody holds a share
struct Op;      // a row of the op table; lives as long as the process
struct Error;   // what went wrong, to be dropped or raised

// The numbers are PyTorch's.
enum class DType : int32_t {
  uint8 = 0,
  int8 = 1,
  int16 = 2,
  int32 = 3,
  int64 = 4,
  float16 = 5,
  float32 = 6,
  float64 = 7,
  complex64 = 9,
  complex128 = 10,
  bool_ = 11,
  bfloat16 = 15,
  float8_e5m2 = 23,
  float8_e4m3fn = 24,
  uint16 = 27,
  uint32 = 28,
  uint64 = 29,
};
enum class DeviceType : int32_t { cpu = 0, cuda = 1, meta = 14 };
struct Device {
  DeviceType type;
  int32_t index;  // -1 if not said
};

// An argument of an op, or its result.
enum class Kind : int32_t {
  none,
  tensor,   // null if undefined
  tensors,  // count of them
  integer,
  integers,  // count of them
  real,
  boolean,
  complex_,
  text,  // count characters
  dtype,
  device,
  memory_format,  // an integer, of MemoryFormat
};
enum class MemoryFormat : int32_t { contiguous, preserve, channels_last, channels_last_3d };
struct Value {
  Kind kind;
  int64_t count;
  union {
    Tensor* tensor;
    Tensor* const* tensors;
    int64_t integer;
    const int64_t* integers;
    double real[2];
    const char* text;
    DType dtype;
    Device device;
  };
};

// What a tensor is like. The sizes and strides, in elements, are the tensor's own.
struct Look {
  const int64_t *sizes, *strides;
  int64_t dim, numel, offset;
  DType dtype;
  Device device;
  bool is_contiguous, is_sparse, requires_grad, is_leaf;
};

// Functions with an Error** return false or null after a failure, and set it. They may be called
// by any thread, with or without the interpreter lock, but for prepare() and those that take or
// give a PyObject, which need it.
struct Table {
  int version;
  void (*prepare)();  // to be called before the rest

  void (*share)(Tensor* tensor);    // takes one more share of it
  void (*release)(Tensor* tensor);  // gives one back
  void (*look)(Tensor* tensor, Look* out);
  // The first element, in the memory of the tensor's device.
  bool (*data)(Tensor* tensor, void** out, Error** error);
  bool (*set_requires_grad)(Tensor* tensor, bool value, Error** error);
  // Memory of somebody else as a tensor; `free` is called with `context` when none needs it.
  Tensor* (*from_memory)(void* data, const int64_t* sizes, const int64_t* strides, int64_t dim,
                         DType dtype, Device device, void (*free)(void* context), void* context,
                         Error** error);

  // The op of a module, such as "torch" or "linalg"; null if there is none.
  const Op* (*find_op)(const char* module, const char* name, const char* overload);
  // Calls take() with each result: tensors are given away, a list of them one by one.
  bool (*call)(const Op* op, const Value* args, int count, bool inplace,
               void (*take)(void* context, Value result), void* context, Error** error);

  // The tensor of a Python object, shared; null for other objects.
  Tensor* (*from_python)(PyObject* object);
  PyObject* (*to_python)(Tensor* tensor);  // a new reference, null after a failure

  const char* (*text_of)(const Error* error);
  void (*drop)(Error* error);
  void (*raise)(const Error* error);  // sets the Python exception

  bool (*is_grad_enabled)();
  void (*set_grad_enabled)(bool enabled);
  int (*num_threads)();
  // Runs body on ranges that cover [begin, end), of at least `grain` items if there are several.
  // It must let no exception out.
  void (*parallel_for)(int64_t begin, int64_t end, int64_t grain,
                       void (*body)(void* context, int64_t begin, int64_t end), void* context);
};

}  // namespace rushlight::abi
