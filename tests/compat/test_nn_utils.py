"""nn.utils gives PyTorch's numbers, state dict keys and errors."""

import copy
import io
import pickle
import warnings

import numpy as np
import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")
pytest.importorskip("torch.nn.utils.prune")
pytest.importorskip("rushlight.nn.utils.prune")

LIBRARIES = (torch, pytorch)


def tensor(library, values, **options):
    return library.from_numpy(np.array(values, dtype=np.float32)).to(**options)


def fill(module, seed=0):
    """Gives the parameters and buffers of a module of either library the same numbers."""
    rng = np.random.default_rng(seed)
    for value in module.state_dict().values():
        if value.is_floating_point():
            library = torch if isinstance(value, torch.Tensor) else pytorch
            value.copy_(library.from_numpy(rng.normal(size=tuple(value.shape))))
    return module


def numbers(value):
    if isinstance(value, dict):
        return {key: numbers(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [numbers(part) for part in value]
    return value.detach().numpy() if hasattr(value, "detach") else value


def assert_close(ours, theirs, rtol=1e-4, atol=1e-5):
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            assert_close(ours[key], theirs[key], rtol, atol)
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=True):
            assert_close(our, their, rtol, atol)
    elif isinstance(theirs, np.ndarray):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)
    else:
        assert ours == theirs


def compare(program, **tolerance):
    """Runs a program with either library; it returns tensors and containers of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = (numbers(program(library)) for library in LIBRARIES)
    assert_close(ours, theirs, **tolerance)


def compare_errors(program, phrase=None):
    """Both libraries raise the same kind of error, with one phrase in it."""
    raised = []
    for library in LIBRARIES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(Exception) as info:  # noqa: PT011 - compared below
                program(library)
        raised.append(info.value)
    assert type(raised[0]) is type(raised[1]), raised
    if phrase is not None:
        assert all(phrase in str(error) for error in raised), raised


def backward_through(library, module, x):
    out = module(x)
    (out * out.detach().cos()).sum().backward()
    grads = {name: p.grad for name, p in module.named_parameters()}
    return [out, dict(module.state_dict()), grads]


def weight_input(library):
    return tensor(library, np.random.default_rng(5).normal(size=(4, 3)))


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


def linear(library, inputs=3, outputs=3):
    return fill(library.nn.Linear(inputs, outputs))


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


# prune


def pruned(library, *steps):
    prune = library.nn.utils.prune
    layer = fill(library.nn.Linear(5, 4))
    for function, name, options in steps:
        getattr(prune, function)(layer, name, **options)
    return layer


PRUNINGS = {
    "identity": [("identity", "weight", {})],
    "l1 share": [("l1_unstructured", "weight", {"amount": 0.35})],
    "l1 count": [("l1_unstructured", "bias", {"amount": 2})],
    "none": [("l1_unstructured", "bias", {"amount": 0})],
    "l2 rows": [("ln_structured", "weight", {"amount": 2, "n": 2, "dim": 0})],
    "columns": [("ln_structured", "weight", {"amount": 0.4, "n": float("-inf"), "dim": -1})],
    "no rows": [("ln_structured", "weight", {"amount": 0, "n": 1, "dim": 0})],
    "twice": [
        ("l1_unstructured", "weight", {"amount": 0.35}),
        ("l1_unstructured", "weight", {"amount": 0.5}),
        ("ln_structured", "weight", {"amount": 1, "n": 1, "dim": 1}),
        ("ln_structured", "weight", {"amount": 1, "n": 1, "dim": 0}),
        ("l1_unstructured", "weight", {"amount": 1}),
    ],
    "random, all": [("random_unstructured", "weight", {"amount": 20})],
    "random, all rows": [("random_structured", "weight", {"amount": 4, "dim": 0})],
}


@pytest.mark.parametrize("kind", PRUNINGS)
def test_pruned_layers(kind) -> None:
    def program(library):
        layer = pruned(library, *PRUNINGS[kind])
        name = PRUNINGS[kind][0][1]
        x = tensor(library, np.random.default_rng(3).normal(size=(2, 5)))
        parts = backward_through(library, layer, x)
        hooks = list(layer._forward_pre_hooks.values())
        prune = library.nn.utils.prune
        more = [len(hooks), type(hooks[0]).__name__, prune.is_pruned(library.nn.Sequential(layer))]
        prune.remove(layer, name)
        return [*parts, *more, dict(layer.state_dict()), prune.is_pruned(layer)]

    compare(program)


def test_masks_scores_and_copies_of_pruned_layers() -> None:
    def program(library):
        prune = library.nn.utils.prune
        layer = linear(library)
        prune.custom_from_mask(layer, "weight", library.eye(3))
        scores = tensor(library, [3, 1, 2])
        prune.l1_unstructured(layer, "bias", 1, importance_scores=scores)
        other = linear(library)
        net = library.nn.Sequential(linear(library), other)
        pairs = [(net[0], "weight"), (net[1], "weight"), (net[1], "bias")]
        prune.global_unstructured(pairs, prune.L1Unstructured, amount=7)
        prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.25)
        method = prune.L1Unstructured(2)
        vector = tensor(library, [3, -1, 2, 0.5])
        masked = method.prune(vector, default_mask=tensor(library, [1, 1, 0, 1]))
        return [dict(layer.state_dict()), dict(net.state_dict()), net[1].bias, masked]

    compare(program)


def test_pruned_layers_are_saved_and_loaded() -> None:
    def program(library):
        source = pruned(library, ("l1_unstructured", "weight", {"amount": 0.35}))
        target = pruned(library, ("identity", "weight", {}))
        target.load_state_dict(source.state_dict())
        x = tensor(library, np.random.default_rng(3).normal(size=(2, 5)))
        file = io.BytesIO()
        library.save(source.state_dict(), file)
        return [target(x), len(file.getvalue()) > 0]

    compare(program)


def test_wrong_prunings_are_refused() -> None:
    def call(function, *args, **options):
        return lambda lib: getattr(lib.nn.utils.prune, function)(linear(lib), *args, **options)

    for amount in (-1, 1.5, -0.1):
        compare_errors(call("l1_unstructured", "weight", amount), "should either be a float in")
    compare_errors(call("l1_unstructured", "weight", "many"), "Invalid type for amount")
    compare_errors(call("l1_unstructured", "weight", 10), "should be smaller than the number")
    compare_errors(call("l1_unstructured", "wait", 1))
    compare_errors(call("ln_structured", "bias", 1, 2, 0), "multidimensional tensors")
    compare_errors(call("ln_structured", "weight", 1, 2, 5), "Invalid index 5")
    compare_errors(call("remove", "weight"), "has to be pruned before pruning can be removed")
    compare_errors(call("custom_from_mask", "weight", None))

    def restored(library):
        layer = linear(library)
        with pytest.raises(IndexError):
            library.nn.utils.prune.ln_structured(layer, "weight", 1, 2, 5)
        return [list(layer.state_dict()), [name for name, _ in layer.named_parameters()]]

    compare(restored)

    def wrong_type(library):
        prune = library.nn.utils.prune
        prune.global_unstructured([(linear(library), "weight")], prune.LnStructured, amount=1, n=2)

    compare_errors(wrong_type, 'Only "unstructured" PRUNING_TYPE supported')
    compare_errors(
        lambda lib: lib.nn.utils.prune.global_unstructured(3, lib.nn.utils.prune.L1Unstructured),
        "parameters is not an Iterable",
    )


# fusion, init, memory formats


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("transpose", [False, True])
def test_batch_norm_is_folded_into_a_convolution(transpose, bias, affine) -> None:
    def program(library):
        kind = library.nn.ConvTranspose2d if transpose else library.nn.Conv2d
        conv = fill(kind(2, 3, 2, bias=bias)).eval()
        norm = fill(library.nn.BatchNorm2d(3, affine=affine)).eval()
        norm.running_var.abs_().add_(0.5)
        fused = library.nn.utils.fuse_conv_bn_eval(conv, norm, transpose)
        x = tensor(library, np.random.default_rng(3).normal(size=(2, 2, 4, 4)))
        return [fused.weight, fused.bias, fused(x), fused.weight.requires_grad, repr(fused)]

    compare(program)


@pytest.mark.parametrize("bias", [True, False])
def test_batch_norm_is_folded_into_a_linear_layer(bias) -> None:
    def program(library):
        layer = fill(library.nn.Linear(2, 3, bias=bias)).eval()
        norm = fill(library.nn.BatchNorm1d(3)).eval()
        norm.running_var.abs_().add_(0.5)
        fused = library.nn.utils.fuse_linear_bn_eval(layer, norm)
        return [fused.weight, fused.bias, fused.bias.requires_grad]

    compare(program)


def test_fusion_is_refused_while_training_or_without_statistics() -> None:
    def call(mode, **options):
        def run(library):
            norm = library.nn.BatchNorm1d(3, **options).train(mode)
            library.nn.utils.fuse_linear_bn_eval(library.nn.Linear(2, 3).eval(), norm)

        return run

    compare_errors(call(True), "Fusion only for eval!")
    compare_errors(call(False, track_running_stats=False), "must not be None")

    def size(library):
        layer, norm = library.nn.Linear(2, 3).eval(), library.nn.BatchNorm1d(2).eval()
        library.nn.utils.fuse_linear_bn_eval(layer, norm)

    compare_errors(size, "To fuse, linear.out_features == bn.num_features")


def test_modules_without_initial_values_and_memory_formats() -> None:
    def program(library):
        utils = library.nn.utils
        layer = utils.skip_init(library.nn.Linear, 5, 6, dtype=library.float64)
        net = library.nn.Sequential(library.nn.Conv2d(4, 3, 2), library.nn.Conv1d(4, 3, 2))
        utils.convert_conv2d_weight_memory_format(net, library.channels_last)
        deep = library.nn.Sequential(library.nn.Conv3d(4, 3, 2))
        utils.convert_conv3d_weight_memory_format(deep, library.channels_last_3d)
        strides = [list(net[0].weight.stride()), list(net[1].weight.stride())]
        return [
            repr(layer),
            list(layer.weight.shape),
            str(layer.weight.dtype).rpartition(".")[2],
            strides,
            list(deep[0].weight.stride()),
        ]

    compare(program)
    compare_errors(lambda lib: lib.nn.utils.skip_init(int, 3), "Expected a Module; got")
    compare_errors(lambda lib: lib.nn.utils.skip_init(lib.nn.ReLU), "must support a 'device' arg")


# gradients


@pytest.mark.parametrize("norm_type", [0.5, 1, 2, 3, float("inf"), 0])
@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_gradients_are_clipped(norm_type, max_norm) -> None:
    def program(library):
        net = fill(library.nn.Sequential(library.nn.Linear(3, 4), library.nn.Linear(4, 2)))
        net.append(library.nn.Linear(2, 2).double())  # without gradients
        net[:2](weight_input(library)).square().sum().backward()
        total = library.nn.utils.clip_grad_norm_(net.parameters(), max_norm, norm_type)
        grads = [p.grad for p in net[:2].parameters()]
        again = library.nn.utils.get_total_norm(grads, norm_type)
        library.nn.utils.clip_grad_value_(net.parameters(), 0.1)
        old = library.nn.utils.clip_grad_norm(net.parameters(), 0.2)
        return [total, again, old, [p.grad for p in net[:2].parameters()]]

    compare(program)


def test_gradients_of_several_dtypes_and_none_are_clipped() -> None:
    def program(library):
        parameters = [
            library.nn.Parameter(library.zeros(3, dtype=getattr(library, name)))
            for name in ("float32", "float64", "bfloat16")
        ]
        for i, parameter in enumerate(parameters):
            parameter.grad = library.full_like(parameter, 3.0 + i)
        total = library.nn.utils.clip_grad_norm_(parameters, 1.0)
        empty = library.nn.utils.clip_grad_norm_([], 1.0)
        nothing = library.nn.utils.clip_grad_norm_([library.nn.Parameter(library.ones(1))], 1.0)
        dtype = str(total.dtype).rpartition(".")[2]
        return [total, dtype, empty, nothing, [p.grad.double() for p in parameters]]

    compare(program, rtol=5e-3)


def test_norm_that_is_not_finite_is_refused_alike() -> None:
    def program(library):
        parameter = library.nn.Parameter(library.zeros(1))
        parameter.grad = library.full((1,), float("inf"))
        library.nn.utils.clip_grad_norm_(parameter, 1.0, error_if_nonfinite=True)

    compare_errors(program, "for gradients from `parameters` is non-finite")
