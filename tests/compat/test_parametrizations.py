"""Parametrizations and the old norms give PyTorch's numbers, state dict keys and errors."""

import copy
import pickle

import numpy as np
import pytest
from compat.comparing import (
    backward_through,
    compare,
    compare_errors,
    fill,
    linear,
    tensor,
    weight_input,
)

# parametrize


def classes(library):
    class Symmetric(library.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

        def right_inverse(self, a):
            return a.triu()

    class Exp(library.nn.Module):
        def forward(self, x):
            return x.exp()

    class Split(library.nn.Module):
        def forward(self, a, b):
            return a * b

        def right_inverse(self, x):
            return x / 2, library.full_like(x, 2.0)

    class Widen(library.nn.Module):
        def forward(self, x):
            return library.cat([x, x])

    class Wrong(library.nn.Module):
        def __init__(self, result, inverse=None):
            super().__init__()
            self.result = result
            if inverse is not None:
                self.right_inverse = inverse

        def forward(self, *x):
            return self.result(x[0])

    return {"Symmetric": Symmetric, "Exp": Exp, "Split": Split, "Widen": Widen, "Wrong": Wrong}


@pytest.mark.parametrize("kind", ["Symmetric", "Exp", "Split"])
def test_parametrized_layer(kind) -> None:
    def program(library):
        P = library.nn.utils.parametrize
        layer = P.register_parametrization(linear(library), "weight", classes(library)[kind]())
        parts = backward_through(library, layer, weight_input(library))
        return [
            *parts,
            type(layer).__name__,
            P.is_parametrized(layer),
            P.is_parametrized(layer, "bias"),
            P.type_before_parametrizations(layer).__name__,
            [name for name, _ in layer.named_parameters()],
            repr(layer).replace("rushlight", "torch"),
        ]

    compare(program)


def test_parametrizations_on_each_other_and_on_two_tensors() -> None:
    def program(library):
        P, kinds = library.nn.utils.parametrize, classes(library)
        layer = linear(library)
        P.register_parametrization(layer, "weight", kinds["Symmetric"]())
        P.register_parametrization(layer, "weight", kinds["Exp"]())
        P.register_parametrization(layer, "bias", kinds["Split"]())
        first = backward_through(library, layer, weight_input(library))
        P.remove_parametrizations(layer, "bias")
        second = [type(layer).__name__, dict(layer.state_dict())]
        P.remove_parametrizations(layer, "weight", leave_parametrized=False)
        return [first, second, type(layer).__name__, dict(layer.state_dict()), repr(layer)]

    compare(program)


def test_buffers_are_parametrized_and_stay_buffers() -> None:
    def program(library):
        P = library.nn.utils.parametrize
        norm = fill(library.nn.BatchNorm1d(3))
        P.register_parametrization(norm, "running_mean", classes(library)["Exp"]())
        keys = list(norm.state_dict())
        P.remove_parametrizations(norm, "running_mean")
        return [keys, list(norm.state_dict()), [name for name, _ in norm.named_buffers()]]

    compare(program)


def test_assigned_values_go_through_the_inverse() -> None:
    def program(library):
        P, kinds = library.nn.utils.parametrize, classes(library)
        layer = P.register_parametrization(linear(library), "weight", kinds["Symmetric"]())
        layer.weight = tensor(library, np.arange(9).reshape(3, 3))
        P.register_parametrization(layer, "bias", kinds["Split"]())
        layer.bias = tensor(library, [1, 2, 3])
        return [layer.weight, layer.bias, dict(layer.state_dict())]

    compare(program)


def test_unsafe_parametrizations_may_change_the_shape() -> None:
    def program(library):
        P = library.nn.utils.parametrize
        layer = linear(library)
        P.register_parametrization(layer, "weight", classes(library)["Widen"](), unsafe=True)
        before = [layer.weight, layer.parametrizations.weight.unsafe]
        P.remove_parametrizations(layer, "weight")
        return [*before, layer.weight]

    compare(program)


def test_cached_values_are_computed_once_for_each_module() -> None:
    def program(library):
        P = library.nn.utils.parametrize
        layer = P.register_parametrization(linear(library), "weight", classes(library)["Exp"]())
        with P.cached():
            with P.cached():
                inside = layer.weight is layer.weight
            nested = layer.weight is layer.weight
        return [inside, nested, layer.weight is layer.weight]

    compare(program)


def test_copies_are_independent() -> None:
    def program(library):
        P = library.nn.utils.parametrize
        layer = P.register_parametrization(
            linear(library), "weight", classes(library)["Symmetric"]()
        )
        other = copy.deepcopy(library.nn.Sequential(layer, layer))
        with library.no_grad():
            layer.parametrizations.weight.original.zero_()
        return [other[0].weight, other[0] is other[1], type(other[0]) is type(layer)]

    compare(program)


def test_pickling_is_refused_but_state_dicts_are_not() -> None:
    def program(library):
        layer = library.nn.utils.parametrizations.weight_norm(linear(library))
        pickle.dumps(layer)

    compare_errors(program, "only supported through state_dict()")


def test_values_are_transferred() -> None:
    def program(library):
        P, kinds = library.nn.utils.parametrize, classes(library)
        layer, other = linear(library), fill(library.nn.Linear(3, 3), seed=1)
        P.register_parametrization(layer, "weight", kinds["Symmetric"]())
        P.register_parametrization(layer, "weight", kinds["Exp"]())
        P.register_parametrization(layer, "bias", kinds["Split"]())
        P.transfer_parametrizations_and_params(layer, other, "weight")
        first = dict(other.state_dict())
        P.transfer_parametrizations_and_params(layer, library.nn.Identity())
        third = fill(library.nn.Linear(3, 3), seed=2)
        P.transfer_parametrizations_and_params(third, other)
        return [first, other.weight, third.weight]

    compare(program)


def test_functional_call_replaces_originals() -> None:
    def program(library):
        P = library.nn.utils.parametrize
        layer = P.register_parametrization(linear(library), "weight", classes(library)["Exp"]())
        new = {"parametrizations.weight.original": tensor(library, np.zeros((3, 3)))}
        call = library.nn.utils.stateless.functional_call
        x = weight_input(library)
        return [call(layer, new, x), library.func.functional_call(layer, new, x), layer.weight]

    compare(program)


WRONG = {
    "no tensor": lambda lib: (lambda x: 3, None),
    "dtype": lambda lib: (lambda x: x.double(), None),
    "shape": lambda lib: (lambda x: x[0], None),
    "inverse without tensor": lambda lib: (lambda x: x, lambda x: 3),
    "inverse with a list of numbers": lambda lib: (lambda x: x, lambda x: [3]),
    "inverse of another dtype": lambda lib: (lambda x: x, lambda x: x.double()),
}


@pytest.mark.parametrize("kind", WRONG)
def test_maps_that_do_not_fit_are_refused(kind) -> None:
    def program(library):
        P = library.nn.utils.parametrize
        P.register_parametrization(
            linear(library), "weight", classes(library)["Wrong"](*WRONG[kind](library))
        )

    compare_errors(program)


@pytest.mark.parametrize("kind", [*WRONG][:4] + [*WRONG][5:])
def test_maps_on_top_that_do_not_fit_are_refused(kind) -> None:
    def program(library):
        P, kinds = library.nn.utils.parametrize, classes(library)
        layer = P.register_parametrization(linear(library), "weight", kinds["Exp"]())
        P.register_parametrization(layer, "weight", kinds["Wrong"](*WRONG[kind](library)))

    compare_errors(program)


def test_what_is_not_there_is_refused() -> None:
    def wrong_name(library):
        P = library.nn.utils.parametrize
        P.register_parametrization(linear(library), "wait", classes(library)["Exp"]())

    def not_parametrized(library):
        library.nn.utils.parametrize.remove_parametrizations(linear(library), "weight")

    def without_inverse(library):
        P = library.nn.utils.parametrize
        layer = P.register_parametrization(linear(library), "weight", classes(library)["Exp"]())
        layer.weight = weight_input(library)[:3]

    def no_originals(library):
        P = library.nn.utils.parametrize
        layer = P.register_parametrization(linear(library), "weight", classes(library)["Split"]())
        P.remove_parametrizations(layer, "weight", leave_parametrized=False)

    def empty(library):
        library.nn.utils.parametrize.ParametrizationList([], library.zeros(2))

    compare_errors(wrong_name, "does not have a parameter, a buffer, or a parametrized element")
    compare_errors(not_parametrized, "does not have a parametrization on weight")
    compare_errors(without_inverse, "does not implement right_inverse")
    compare_errors(no_originals, "Cannot leave unparametrized")
    compare_errors(empty, "requires one or more modules")


# parametrizations and the old norms

LAYERS = {
    "Linear": lambda library: library.nn.Linear(3, 4),
    "Conv1d": lambda library: library.nn.Conv1d(3, 2, 2),
    "ConvTranspose1d": lambda library: library.nn.ConvTranspose1d(3, 2, 2),
}


def layer_input(library, kind):
    x = np.random.default_rng(3).normal(size=(2, 3) if kind == "Linear" else (2, 3, 5))
    return tensor(library, x)


@pytest.mark.parametrize("dim", [0, 1, -1, None])
@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("is_old", [False, True])
def test_weight_norm(kind, dim, is_old) -> None:
    def program(library):
        utils = library.nn.utils
        layer = fill(LAYERS[kind](library))
        apply = utils.weight_norm if is_old else utils.parametrizations.weight_norm
        apply(layer, dim=dim)
        return [
            *backward_through(library, layer, layer_input(library, kind)),
            layer.weight,
            repr(layer),
        ]

    compare(program)


def test_new_weight_norm_reads_files_of_the_old_one_and_removes() -> None:
    def program(library):
        utils = library.nn.utils
        old = utils.weight_norm(linear(library))
        new = utils.parametrizations.weight_norm(fill(library.nn.Linear(3, 3), seed=1))
        new.load_state_dict(old.state_dict())
        first = [new.weight, list(old.state_dict())]
        utils.remove_weight_norm(old)
        utils.parametrize.remove_parametrizations(new, "weight")
        return [*first, dict(old.state_dict()), dict(new.state_dict()), len(old._forward_pre_hooks)]

    compare(program)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("is_old", [False, True])
def test_spectral_norm(kind, is_old) -> None:
    def program(library):
        utils = library.nn.utils
        layer = fill(LAYERS[kind](library))
        apply = utils.spectral_norm if is_old else utils.parametrizations.spectral_norm
        apply(layer, n_power_iterations=2)
        fill(layer, seed=4)  # the vectors too, which start at random
        x = layer_input(library, kind)
        trained = backward_through(library, layer, x)
        layer.eval()
        evaluated = [layer(x), layer(x), dict(layer.state_dict())]
        metadata = repr(dict(layer.state_dict()._metadata))
        return [*trained, *evaluated, metadata if is_old else "", repr(layer)]

    compare(program)


def test_two_forwards_with_spectral_norm_before_one_backward() -> None:
    def program(library):
        layer = library.nn.utils.parametrizations.spectral_norm(linear(library))
        fill(layer, seed=4)
        x = weight_input(library)
        (layer(x).sum() - layer(x * 2).sum()).backward()
        return [layer.parametrizations.weight.original.grad]

    compare(program)


def test_spectral_norm_of_a_vector_and_wrong_arguments() -> None:
    def vector(library):
        layer = linear(library)
        library.nn.utils.parametrizations.spectral_norm(layer, "bias")
        return [layer.bias, list(layer.state_dict())]

    compare(vector)

    def call(**options):
        return lambda library: library.nn.utils.parametrizations.spectral_norm(
            linear(library), **options
        )

    compare_errors(call(n_power_iterations=0), "Expected n_power_iterations to be positive")
    compare_errors(call(dim=2), "Dimension out of range")
    compare_errors(call(name="wait"), "has no parameter or buffer with name 'wait'")


def test_old_spectral_norm_is_removed_and_refused_twice() -> None:
    def program(library):
        layer = library.nn.utils.spectral_norm(linear(library))
        fill(layer, seed=4)
        library.nn.utils.remove_spectral_norm(layer)
        return [dict(layer.state_dict()), list(layer.state_dict()._metadata[""])]

    compare(program)
    twice = "Cannot register two spectral_norm hooks"
    compare_errors(
        lambda lib: lib.nn.utils.spectral_norm(lib.nn.utils.spectral_norm(linear(lib))), twice
    )
    compare_errors(
        lambda lib: lib.nn.utils.weight_norm(lib.nn.utils.weight_norm(linear(lib))),
        "Cannot register two weight_norm hooks",
    )
    compare_errors(
        lambda lib: lib.nn.utils.remove_spectral_norm(linear(lib)), "spectral_norm of 'weight'"
    )
    compare_errors(
        lambda lib: lib.nn.utils.remove_weight_norm(linear(lib)), "weight_norm of 'weight'"
    )


def test_old_spectral_norm_reads_files_without_its_second_vector() -> None:
    def program(library):
        source = library.nn.utils.spectral_norm(linear(library))
        fill(source, seed=4)
        source.eval()
        source(weight_input(library))
        state = dict(source.state_dict())
        state["weight"] = source.weight.detach()
        del state["weight_v"]
        target = library.nn.utils.spectral_norm(fill(library.nn.Linear(3, 3), seed=7))
        target.load_state_dict(state)
        target.eval()
        return [dict(target.state_dict()), target(weight_input(library))]

    compare(program, rtol=1e-3)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
def test_orthogonal_from_given_originals(kind, shape) -> None:
    def program(library):
        layer = fill(library.nn.Linear(*shape))
        with library.no_grad():
            layer.weight.mul_(0.5)
        orthogonal = library.nn.utils.parametrizations.orthogonal
        orthogonal(layer, orthogonal_map=kind, use_trivialization=False)
        x = tensor(library, np.random.default_rng(3).normal(size=(2, shape[0])))
        return backward_through(library, layer, x)

    compare(program, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder", None])
def test_orthogonal_starts_near_the_weight_and_can_be_assigned(kind, shape) -> None:
    def program(library):
        layer = fill(library.nn.Linear(*shape))
        library.nn.utils.parametrizations.orthogonal(layer, orthogonal_map=kind)
        first = layer.weight.detach()
        q = library.linalg.qr(tensor(library, np.random.default_rng(1).normal(size=(5, 5)))).Q
        layer.weight = q[: shape[1], : shape[0]] if shape == (4, 4) else first
        keys = list(layer.state_dict())
        return [first, keys, layer.weight]

    compare(program, rtol=1e-3, atol=1e-4)


def test_orthogonal_complex_and_wrong_arguments() -> None:
    def program(library):
        module = library.nn.Module()
        rng = np.random.default_rng(0)
        matrix = rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))
        module.w = library.nn.Parameter(library.from_numpy(matrix))
        library.nn.utils.parametrizations.orthogonal(module, "w")
        return [module.w, module.w @ module.w.mH]

    compare(program)

    def call(name="weight", kind=None, **options):
        def run(library):
            layer = linear(library)
            layer.complex = library.nn.Parameter(library.zeros(2, 2, dtype=library.complex64))
            library.nn.utils.parametrizations.orthogonal(layer, name, kind, **options)

        return run

    compare_errors(call("wait"), "has no parameter or buffer with name")
    compare_errors(call("bias"), "Expected a matrix or batch of matrices")
    compare_errors(call(kind="polar"), "orthogonal_map has to be one of")
    compare_errors(call("complex", "householder"), "does not support complex tensors")

    def assign(library):
        layer = linear(library)
        orthogonal = library.nn.utils.parametrizations.orthogonal
        orthogonal(layer, orthogonal_map="cayley", use_trivialization=False)
        layer.weight = library.eye(3)

    compare_errors(assign, "It is not possible to assign")
