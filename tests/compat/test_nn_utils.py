"""Pruning, fusion and limits for gradients give PyTorch's numbers, keys and errors."""

import io

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
