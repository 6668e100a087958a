// Owns the Python class Generator.
#include "core/tensor/generator.h"

#include "bindings/python.h"
#include "core/device/cuda.h"

namespace rushlight::python {
namespace {

struct PyGenerator {
  PyObject_HEAD Generator* generator;
  Device device;
};

Generator& generator_in(PyObject* self) { return *reinterpret_cast<PyGenerator*>(self)->generator; }

// Seeds are 64 bits; negative ones count from 2**64 down.
uint64_t read_seed(PyObject* object) {
  Ref number(checked(PyNumber_Index(object)));
  uint64_t seed = PyLong_AsUnsignedLongLongMask(number.get());
  if (PyErr_Occurred()) throw PythonError();
  Ref lowest(checked(PyLong_FromLongLong(INT64_MIN)));
  Ref highest(checked(PyLong_FromUnsignedLongLong(UINT64_MAX)));
  int below = PyObject_RichCompareBool(number.get(), lowest.get(), Py_LT);
  int above = PyObject_RichCompareBool(number.get(), highest.get(), Py_GT);
  CHECK(below == 0 && above == 0,
        "manual_seed: Overflow when unpacking long. A seed lies from -2**63 to 2**64 - 1.");
  return seed;
}

PyObject* manual_seed(PyObject* self, PyObject* seed) {
  return guarded([&] {
    generator_in(self).manual_seed(read_seed(seed));
    return Py_NewRef(self);
  });
}
PyObject* seed(PyObject* self, PyObject*) {
  return guarded([&] { return PyLong_FromUnsignedLongLong(generator_in(self).seed()); });
}
PyObject* initial_seed(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(generator_in(self).initial_seed());
}
PyObject* get_state(PyObject* self, PyObject*) {
  return guarded([&] { return wrap(generator_in(self).get_state()); });
}
PyObject* set_state(PyObject* self, PyObject* state) {
  return guarded([&] {
    generator_in(self).set_state(expect_tensor(state, "state"));
    return Py_NewRef(self);
  });
}
PyObject* device(PyObject* self, void*) {
  return wrap_device(reinterpret_cast<PyGenerator*>(self)->device);
}

PyObject* generator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    static const char* names[] = {"device", nullptr};
    PyObject* place = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names),
                                     &place))
      throw PythonError();
    Device device;
    CHECK(place == Py_None || read_device(place, device), ErrorKind::kType,
          "Generator(): argument 'device' must be str or device, not ", Py_TYPE(place)->tp_name);
    CHECK(!device.is_meta(),
          "Generator(): Device type META is not supported for torch.Generator()");
    if (device.is_cuda()) device.index = int8_t(cuda::device_index(device));
    PyObject* self = checked(type->tp_alloc(type, 0));
    reinterpret_cast<PyGenerator*>(self)->generator = new Generator();
    reinterpret_cast<PyGenerator*>(self)->device = device;
    return self;
  });
}
void generator_dealloc(PyObject* self) {
  delete reinterpret_cast<PyGenerator*>(self)->generator;
  Py_TYPE(self)->tp_free(self);
}

PyMethodDef methods[] = {
    {"manual_seed", manual_seed, METH_O, "Starts the numbers of a seed; returns the generator."},
    {"seed", seed, METH_NOARGS,
     "Starts the numbers of a seed that the system chose, and returns it."},
    {"initial_seed", initial_seed, METH_NOARGS, "The seed that was set last."},
    {"get_state", get_state, METH_NOARGS, "Seed and position as a tensor of bytes."},
    {"set_state", set_state, METH_O, "Goes back to what get_state returned."},
    {}};
PyGetSetDef attributes[] = {
    {"device", device, nullptr, "Where it is; it draws the same numbers for all devices.", nullptr},
    {}};

PyTypeObject GeneratorType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight.Generator",
    .tp_basicsize = sizeof(PyGenerator),
    .tp_dealloc = generator_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A source of random numbers with a seed and a position of its own.",
    .tp_methods = methods,
    .tp_getset = attributes,
    .tp_new = generator_new};

}  // namespace

bool read_generator(PyObject* object, Generator*& out) {
  if (Py_TYPE(object) != &GeneratorType) return false;
  out = &generator_in(object);
  return true;
}

void add_generator(PyObject* module) {
  checked(PyType_Ready(&GeneratorType));
  checked(PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(&GeneratorType)));
  // One reference is never given back, because nobody may delete this generator.
  PyObject* object = checked(GeneratorType.tp_alloc(&GeneratorType, 0));
  reinterpret_cast<PyGenerator*>(object)->generator = &default_generator();
  reinterpret_cast<PyGenerator*>(object)->device = Device();
  checked(PyModule_AddObjectRef(module, "default_generator", object));
}

}  // namespace rushlight::python
