"""State dicts go from one framework to the other in files, and are loaded by the same rules."""

import io
import re
import warnings

import module_cases
import numpy as np
import pytest
from compat.comparing import LIBRARIES, compare, compare_errors, fill, tensor

import rushlight as torch

pytorch = pytest.importorskip("torch")

MODULES = [
    pytest.param(case, id=case.expression)
    for name in module_cases.FAMILIES
    for case in module_cases.family(name)
    if case.expression.startswith("nn.")
]


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize(("first", "second"), [(torch, pytorch), (pytorch, torch)])
@pytest.mark.parametrize("case", MODULES)
def test_a_state_goes_through_a_file(case, first, second) -> None:
    source = case.make(first, first.float32)
    state = source.state_dict()
    file = io.BytesIO()
    first.save(state, file)
    file.seek(0)
    loaded = second.load(file, weights_only=True)
    target = case.make(second, second.float32)
    with second.no_grad():
        for parameter in target.parameters():
            parameter.zero_()
    keys = target.load_state_dict(loaded)
    assert not keys.missing_keys and not keys.unexpected_keys
    assert dict(loaded._metadata) == {
        path: dict(facts) for path, facts in target.state_dict()._metadata.items()
    }
    for name, value in target.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), state[name].numpy(), err_msg=name)


def net(library, seed=0):
    nn = library.nn
    return fill(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)), seed)


EDITS = {
    "missing": lambda state, library: state.pop("0.bias"),
    "unexpected": lambda state, library: state.update(extra=library.zeros(1)),
    "unexpected below": lambda state, library: state.update({"0.x.y": library.zeros(1)}),
    "unexpected module": lambda state, library: state.update({"7.weight": library.zeros(1)}),
    "both": lambda state, library: state.update(extra=state.pop("0.bias")),
    "shape": lambda state, library: state.update({"0.weight": library.zeros(2, 2)}),
    "two shapes": lambda state, library: state.update(
        {"0.weight": library.zeros(2, 2), "2.bias": library.zeros(2), "x": library.zeros(1)}
    ),
    "no tensor": lambda state, library: state.update({"0.weight": 3}),
    "buffer": lambda state, library: state.pop("1.num_batches_tracked"),
}


def message(error):
    """What is compared of a message: its lines, with sizes written alike."""
    text = re.sub(r"torch\.Size\(\[([\d, ]*)\]\)", r"(\1)", str(error))
    text = re.sub(r"\((\d+),\)", r"(\1)", text)
    return [line.strip() for line in text.splitlines()]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("kind", EDITS)
def test_what_does_not_fit_is_told_alike(kind, strict) -> None:
    outcomes = []
    for library in LIBRARIES:
        state = net(library).state_dict()
        EDITS[kind](state, library)
        if kind == "buffer":
            state._metadata["1"]["version"] = 2
        target = net(library, seed=1)
        try:
            keys = target.load_state_dict(state, strict=strict)
            outcome = [keys.missing_keys, keys.unexpected_keys, repr(keys).lstrip("_")]
        except RuntimeError as error:
            outcome = message(error)
        outcomes.append((outcome, target[0].weight.detach().tolist()))
    if kind == "no tensor":
        outcomes = [(" ".join(outcome)[:120], values) for outcome, values in outcomes]
    assert outcomes[0] == outcomes[1]


def test_old_batch_norm_states_have_no_count() -> None:
    def program(library):
        state = net(library).state_dict()
        del state["1.num_batches_tracked"]
        del state._metadata
        target = net(library, seed=1)
        target.load_state_dict(state)
        return dict(target.state_dict())

    compare(program)


def test_assigned_tensors_are_taken_over() -> None:
    def program(library):
        target = net(library, seed=1)
        target[2].weight.requires_grad_(False)
        state = {
            name: value.double() if value.is_floating_point() else value
            for name, value in net(library).state_dict().items()
        }
        optimizer_would_see = target[0].weight
        target.load_state_dict(state, assign=True)
        return [
            [str(value.dtype).rpartition(".")[2] for value in target.state_dict().values()],
            [p.requires_grad for p in target.parameters()],
            [type(p).__name__ for p in target.parameters()],
            target[0].weight is optimizer_would_see,
            target[0].weight.data_ptr() == state["0.weight"].data_ptr(),
            dict(target.state_dict()),
        ]

    compare(program)


def test_values_are_copied_into_the_dtype_that_is_there() -> None:
    def program(library):
        target = net(library, seed=1).double()
        weight = target[0].weight
        target.load_state_dict(net(library).state_dict())
        half = net(library, seed=1)
        half.load_state_dict({k: v.half() for k, v in net(library).state_dict().items()})
        return [target[0].weight is weight, target[0].weight, half[0].weight]

    compare(program, rtol=1e-3)


def test_modules_on_meta_take_tensors_only_when_they_are_assigned() -> None:
    for library in LIBRARIES:
        layer = library.nn.Linear(2, 1, device="meta")
        state = library.nn.Linear(2, 1).state_dict()
        with pytest.warns(
            UserWarning, match=r"for (weight|bias): copying from a non-meta parameter"
        ):
            layer.load_state_dict(state)
        assert layer.weight.is_meta
        state["bias"] = library.nn.Parameter(state["bias"], requires_grad=False)
        layer.load_state_dict(state, assign=True)
        assert layer.bias is state["bias"] and layer.bias.requires_grad
        assert layer.weight.tolist() == state["weight"].tolist()


def test_what_cannot_be_copied_is_told_with_the_rest() -> None:
    def program(library):
        state = net(library).state_dict()
        state["0.weight"] = state["0.weight"].to("meta")
        del state["2.bias"]
        net(library).load_state_dict(state)

    compare_errors(program, "an exception occurred : ")
    compare_errors(program, 'Missing key(s) in state_dict: "2.bias"')


def test_scalars_and_no_mappings() -> None:
    def scalar(library):
        module = library.nn.Module()
        module.scale = library.nn.Parameter(library.tensor(1.0))
        module.load_state_dict({"scale": tensor(library, [5.0])})
        return [module.scale]

    compare(scalar)
    compare_errors(lambda lib: net(lib).load_state_dict([1]), "Expected state_dict to be dict-like")
    compare_errors(lambda lib: lib.nn.Module().load_state_dict({"x": lib.ones(1)}), "Unexpected")


def test_hooks_run_at_the_same_moments_with_the_same_arguments() -> None:
    def program(library):
        seen = []

        def note(name):
            def hook(*args):
                seen.append(
                    [name, *(a for a in args if isinstance(a, str | bool))]
                    + [type(a).__name__ for a in args if hasattr(a, "parameters")]
                )

            return hook

        target = net(library)
        for i in (None, 0):
            module = target if i is None else target[i]
            module.register_state_dict_pre_hook(note("state pre"))
            module.register_state_dict_post_hook(note("state post"))
            module._register_state_dict_hook(note("state old"))
            module.register_load_state_dict_pre_hook(note("load pre"))
            module._register_load_state_dict_pre_hook(note("load pre old"))
            module.register_load_state_dict_post_hook(note("load post"))
        state = target.state_dict(prefix="net.", keep_vars=True)
        seen.append([str(list(state)), str(state["net.0.weight"].requires_grad)])
        target.load_state_dict(target.state_dict())
        return seen

    compare(program)


def test_hooks_edit_states_and_keys() -> None:
    def program(library):
        target = net(library)
        target[0]._register_state_dict_hook(
            lambda module, state, prefix, metadata: [state.pop(prefix + "bias")].clear()
        )
        state = target.state_dict()
        target.register_load_state_dict_post_hook(
            lambda module, keys: keys.missing_keys.remove("0.bias")
        )
        keys = target.load_state_dict(state)
        return [list(state), keys.missing_keys]

    compare(program)

    def returns(library):
        layer = library.nn.Linear(1, 1)
        layer.register_state_dict_post_hook(lambda *args: 3)
        layer.state_dict()

    compare_errors(returns, "must return None")


def test_extra_state_is_saved_and_loaded() -> None:
    def program(library):
        class Counter(library.nn.Module):
            count = 0

            def get_extra_state(self):
                return {"count": self.count}

            def set_extra_state(self, state):
                self.count = state["count"]

        source, target = library.nn.Sequential(Counter()), library.nn.Sequential(Counter())
        source[0].count = 5
        state = source.state_dict()
        target.load_state_dict(state)
        keys = target.load_state_dict({}, strict=False)
        return [list(state), target[0].count, keys.missing_keys]

    compare(program)
    compare_errors(lambda lib: lib.nn.ReLU().load_state_dict({"_extra_state": 1}), "Unexpected key")


def test_shared_parameters_and_none_members() -> None:
    def program(library):
        nn = library.nn
        shared = nn.Linear(2, 2, bias=False)
        target = fill(nn.Sequential(shared, shared))
        target.register_buffer("later", None)
        target.register_buffer("hidden", library.ones(1), persistent=False)
        state = target.state_dict()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.load_state_dict(state)
        return [list(state), dict(state)]

    compare(program)
