// Owns the Python class Generator.
#include "core/tensor/generator.h"

#include <memory>

#include "bindings/python.h"
#include "core/device/cuda.h"
#include "core/ops/ops.h"

namespace rushlight::python {
namespace {

struct PyGenerator {
  PyObject_HEAD std::shared_ptr<Generator> generator;
  Device device;
};

PyTypeObject& generator_type();

std::shared_ptr<Generator>& shared_in(PyObject* self) {
  return reinterpret_cast<PyGenerator*>(self)->generator;
}
Generator& generator_in(PyObject* self) { return *shared_in(self); }
Device device_of(PyObject* self) { return reinterpret_cast<PyGenerator*>(self)->device; }

PyObject* made(PyTypeObject* type, std::shared_ptr<Generator> generator, Device device) {
  PyObject* self = checked(type->tp_alloc(type, 0));
  new (&shared_in(self)) std::shared_ptr<Generator>(std::move(generator));
  reinterpret_cast<PyGenerator*>(self)->device = device;
  return self;
}

// Seeds are 64 bits; negative ones count from 2**64 down.
uint64_t read_seed(PyObject* object) {
  CHECK(PyIndex_Check(object) && !PyBool_Check(object), "manual_seed expected a long, but got ",
        Py_TYPE(object)->tp_name);
  Ref number(checked(PyNumber_Index(object)));
  uint64_t seed = PyLong_AsUnsignedLongLongMask(number.get());
  if (PyErr_Occurred()) throw PythonError();
  Ref lowest(checked(PyLong_FromLongLong(INT64_MIN)));
  Ref highest(checked(PyLong_FromUnsignedLongLong(UINT64_MAX)));
  int below = PyObject_RichCompareBool(number.get(), lowest.get(), Py_LT);
  int above = PyObject_RichCompareBool(number.get(), highest.get(), Py_GT);
  CHECK(below == 0 && above == 0, ErrorKind::kValue,
        "manual_seed: Overflow when unpacking long long. A seed lies from -2**63 to 2**64 - 1.");
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
PyObject* get_offset(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(generator_in(self).offset());
}
PyObject* set_offset(PyObject* self, PyObject* object) {
  return guarded([&] {
    int64_t offset;
    CHECK(read_int(object, offset), ErrorKind::kType,
          "set_offset(): argument 'offset' must be int, not ", Py_TYPE(object)->tp_name);
    CHECK(offset >= 0, "set_offset: an offset is at least 0, got ", offset);
    generator_in(self).set_offset(uint64_t(offset));
    return Py_NewRef(self);
  });
}
// A counter of the stream gives four numbers of 32 bits, in which the caller counts.
PyObject* philox_state(PyObject* self, PyObject* object) {
  return guarded([&] {
    int64_t increment;
    CHECK(read_int(object, increment), ErrorKind::kType,
          "philox_state(): argument 'increment' must be int, not ", Py_TYPE(object)->tp_name);
    CHECK(increment >= 0, "philox_state: an increment is at least 0, got ", increment);
    Generator::Draw draw = generator_in(self).take((uint64_t(increment) + 3) / 4, Device());
    auto number = [](uint64_t value) {
      return full(Shape{1}, Scalar(int64_t(value)), DType::int64);
    };
    const Tensor numbers[] = {number(draw.seed), number(draw.offset * 4), number(0)};
    return wrap_tuple(numbers);
  });
}
PyObject* clone_state(PyObject* self, PyObject*) {
  return guarded([&] {
    auto clone = std::make_shared<Generator>();
    clone->set_state(generator_in(self).get_state());
    return made(Py_TYPE(self), clone, device_of(self));
  });
}
PyObject* graphsafe_get_state(PyObject* self, PyObject*) {
  return guarded([&] {
    CHECK(device_of(self).is_cuda(), ErrorKind::kNotImplemented,
          "graphsafe_get_state is not supported in this Generator. Use get_state().");
    return made(Py_TYPE(self), shared_in(self), device_of(self));
  });
}
PyObject* graphsafe_set_state(PyObject* self, PyObject* other) {
  return guarded([&] {
    CHECK(PyObject_TypeCheck(other, &generator_type()), ErrorKind::kType,
          "expected a Generator, but got ", Py_TYPE(other)->tp_name);
    CHECK(device_of(self).is_cuda() && device_of(other).is_cuda(), ErrorKind::kNotImplemented,
          "graphsafe_set_state is not supported in this Generator. Use set_state().");
    shared_in(self) = shared_in(other);
    return Py_NewRef(self);
  });
}
PyObject* device(PyObject* self, void*) { return wrap_device(device_of(self)); }

// Pickled, and copied, as its device, and the state that __setstate__ sets.
PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&] {
    Generator& generator = generator_in(self);
    Ref where(wrap_device(device_of(self))), state(wrap(generator.get_state()));
    return checked(Py_BuildValue("O(O)(KKO)", Py_TYPE(self), where.get(),
                                 static_cast<unsigned long long>(generator.initial_seed()),
                                 static_cast<unsigned long long>(generator.offset()), state.get()));
  });
}
PyObject* setstate(PyObject* self, PyObject* parts) {
  return guarded([&] {
    CHECK(PyTuple_Check(parts) && PyTuple_GET_SIZE(parts) == 3, ErrorKind::kType,
          "Generator.__setstate__: expected seed, offset and state");
    generator_in(self).set_state(expect_tensor(PyTuple_GET_ITEM(parts, 2), "state"));
    return Py_NewRef(Py_None);
  });
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
    return made(type, std::make_shared<Generator>(), device);
  });
}
void generator_dealloc(PyObject* self) {
  shared_in(self).~shared_ptr();
  Py_TYPE(self)->tp_free(self);
}

PyMethodDef methods[] = {
    {"manual_seed", manual_seed, METH_O, "Starts the numbers of a seed; returns the generator."},
    {"seed", seed, METH_NOARGS,
     "Starts the numbers of a seed that the system chose, and returns it."},
    {"initial_seed", initial_seed, METH_NOARGS, "The seed that was set last."},
    {"get_state", get_state, METH_NOARGS, "Seed and position as a tensor of bytes."},
    {"set_state", set_state, METH_O, "Goes back to what get_state returned."},
    {"get_offset", get_offset, METH_NOARGS, "How much of the seed's stream is used up."},
    {"set_offset", set_offset, METH_O, "Goes to a place in the seed's stream."},
    {"philox_state", philox_state, METH_O,
     "philox_state(increment)\n\nTakes `increment` numbers of 32 bits of the stream of "
     "Philox4x32-10, and returns where they lie: seed, offset (of which a counter has four), and "
     "0, as tensors of one int64 on the CPU."},
    {"clone_state", clone_state, METH_NOARGS, "Another generator with the same state."},
    {"graphsafe_get_state", graphsafe_get_state, METH_NOARGS,
     "Another generator that shares the state; for those of a GPU."},
    {"graphsafe_set_state", graphsafe_set_state, METH_O,
     "Shares the state of another generator; for those of a GPU."},
    {"__reduce__", reduce, METH_NOARGS, "How to pickle and copy it."},
    {"__setstate__", setstate, METH_O, "Sets what __reduce__ kept."},
    {}};
PyGetSetDef attributes[] = {
    {"device", device, nullptr, "Where it is; it draws the same numbers for all devices.", nullptr},
    {}};

PyTypeObject GeneratorType = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "rushlight.Generator",
    .tp_basicsize = sizeof(PyGenerator),
    .tp_dealloc = generator_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "A source of random numbers with a seed and a position of its own.",
    .tp_methods = methods,
    .tp_getset = attributes,
    .tp_new = generator_new};

PyTypeObject& generator_type() { return GeneratorType; }

}  // namespace

std::shared_ptr<Generator> expect_generator(PyObject* object) {
  CHECK(PyObject_TypeCheck(object, &GeneratorType), ErrorKind::kType,
        "expected a torch.Generator, but got ", Py_TYPE(object)->tp_name);
  return shared_in(object);
}

bool read_generator(PyObject* object, Generator*& out) {
  if (!PyObject_TypeCheck(object, &GeneratorType)) return false;
  out = &generator_in(object);
  return true;
}

PyObject* wrap_generator(Generator& generator) {
  std::shared_ptr<Generator> shared = generator.weak_from_this().lock();
  if (!shared) shared = {&generator, [](Generator*) {}};  // the default one, which stays
  return made(&GeneratorType, std::move(shared), Device());
}

void add_generator(PyObject* module) {
  checked(PyType_Ready(&GeneratorType));
  checked(PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(&GeneratorType)));
  // Nobody may delete this generator.
  std::shared_ptr<Generator> everlasting(&default_generator(), [](Generator*) {});
  PyObject* object = made(&GeneratorType, everlasting, Device());
  checked(PyModule_AddObjectRef(module, "default_generator", object));
}

}  // namespace rushlight::python
