"""state_dict and load_state_dict: keys, sharing, and the report of every mismatch."""

from collections import OrderedDict

import pytest

import rushlight as torch
from rushlight import nn


class Net(nn.Module):
    def __init__(self, hidden=3) -> None:
        super().__init__()
        self.fc = nn.Linear(2, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.register_buffer("steps", torch.zeros(()))
        self.register_buffer("cache", torch.zeros(1), persistent=False)
        self.register_buffer("absent", None)


KEYS = [
    "steps",
    "fc.weight",
    "fc.bias",
    "norm.weight",
    "norm.bias",
    "norm.running_mean",
    "norm.running_var",
    "norm.num_batches_tracked",
]


def values(state):
    return {key: tensor.tolist() for key, tensor in state.items()}


# Saving


def test_keys_are_dotted_paths_parameters_before_buffers() -> None:
    assert list(Net().state_dict()) == KEYS
    assert list(Net().state_dict(prefix="net.")) == ["net." + key for key in KEYS]


def test_tensors_are_detached_and_share_memory() -> None:
    net = Net()
    state = net.state_dict()
    assert not state["fc.weight"].requires_grad
    with torch.no_grad():
        net.fc.weight.fill_(7)
    assert state["fc.weight"][0, 0].item() == 7
    assert net.state_dict(keep_vars=True)["fc.weight"] is net.fc.weight


def test_metadata_holds_the_version_of_each_module() -> None:
    state = Net().state_dict()
    assert isinstance(state, OrderedDict)
    assert state._metadata == {
        "": {"version": 1},
        "fc": {"version": 1},
        "norm": {"version": 2},
    }


def test_destination_is_filled() -> None:
    destination = OrderedDict(x=1)
    assert nn.Linear(1, 1).state_dict(destination=destination) is destination
    assert list(destination) == ["x", "weight", "bias"]


# Loading


def test_loading_copies_values_and_reports_success() -> None:
    net, other = Net(), Net()
    weight = net.fc.weight
    keys = net.load_state_dict(other.state_dict())
    assert repr(keys) == "<All keys matched successfully>"
    assert keys.missing_keys == keys.unexpected_keys == []
    assert net.fc.weight is weight
    assert values(net.state_dict()) == values(other.state_dict())
    with torch.no_grad():
        other.fc.weight.fill_(9)
    assert net.fc.weight[0, 0].item() != 9


def test_loading_converts_dtypes() -> None:
    net = Net()
    net.load_state_dict(Net().double().state_dict())
    assert net.fc.weight.dtype == torch.float32


def test_every_mismatch_is_listed_at_once() -> None:
    state = Net(hidden=4).state_dict()
    del state["steps"], state["norm.bias"]
    state["fc.extra"] = torch.ones(1)
    state["stranger"] = torch.ones(1)
    with pytest.raises(RuntimeError) as error:
        Net(hidden=3).load_state_dict(state)
    lines = str(error.value).split("\n\t")
    assert lines[:3] == [
        "Error(s) in loading state_dict for Net:",
        'Missing key(s) in state_dict: "steps", "norm.bias".',
        'Unexpected key(s) in state_dict: "stranger", "fc.extra".',
    ]
    assert lines[3] == (
        "size mismatch for fc.weight: copying a param with shape (4, 2) from checkpoint, "
        "the shape in current model is (3, 2)."
    )
    assert [line.split(":")[0] for line in lines[3:]] == [
        f"size mismatch for {key}"
        for key in ("fc.weight", "fc.bias", "norm.weight", "norm.running_mean", "norm.running_var")
    ]


def test_not_strict_returns_the_differences() -> None:
    state = Net().state_dict()
    del state["fc.bias"]
    state["stranger"] = torch.ones(1)
    missing, unexpected = Net().load_state_dict(state, strict=False)
    assert missing == ["fc.bias"]
    assert unexpected == ["stranger"]


def test_not_strict_still_refuses_other_shapes() -> None:
    with pytest.raises(RuntimeError, match="size mismatch for fc"):
        Net(hidden=3).load_state_dict(Net(hidden=4).state_dict(), strict=False)


def test_values_that_are_not_tensors_are_reported() -> None:
    state = nn.Linear(1, 1).state_dict()
    state["bias"] = [1.0]
    with pytest.raises(RuntimeError, match=r'named "bias", expected torch.Tensor .* received list'):
        nn.Linear(1, 1).load_state_dict(state)


def test_state_dict_must_be_a_mapping() -> None:
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got list"):
        Net().load_state_dict([])


def test_given_dictionary_is_not_changed() -> None:
    state = dict(nn.BatchNorm1d(2).state_dict())
    del state["num_batches_tracked"]
    nn.BatchNorm1d(2).load_state_dict(state)
    assert "num_batches_tracked" not in state


def test_scalars_of_old_files_with_one_element_fit() -> None:
    module = nn.Module()
    module.x = nn.Parameter(torch.zeros(()))
    module.load_state_dict({"x": torch.full((1,), 5.0)})
    assert module.x.item() == 5


def test_names_that_begin_alike_are_kept_apart() -> None:
    module = nn.Module()
    module.a = nn.Linear(1, 1, bias=False)
    module.ab = nn.Linear(1, 1, bias=False)
    state = {"a.weight": torch.full((1, 1), 1.0), "ab.weight": torch.full((1, 1), 2.0)}
    module.load_state_dict(state)
    assert (module.a.weight.item(), module.ab.weight.item()) == (1, 2)


def test_assign_takes_the_tensors_over() -> None:
    net = Net()
    net.fc.weight.requires_grad_(False)
    state = Net().double().state_dict()
    net.load_state_dict(state, assign=True)
    assert net.fc.bias.dtype == torch.float64
    assert isinstance(net.fc.bias, nn.Parameter)
    assert net.fc.bias.requires_grad
    assert not net.fc.weight.requires_grad
    state["fc.bias"].fill_(3)
    assert net.fc.bias[0].item() == 3
    assert list(net.state_dict()) == KEYS


@pytest.fixture
def swapping():
    torch.__future__.set_swap_module_params_on_conversion(True)
    yield
    torch.__future__.set_swap_module_params_on_conversion(False)


class Doubled(torch.Tensor):
    """Loads twice the values, or something that may not be swapped."""

    returns = "new"

    def module_load(self, other, assign=False):
        if self.returns != "new":
            return self if self.returns == "self" else other
        return (other * 2).as_subclass(torch.Tensor)


@pytest.mark.usefixtures("swapping")
@pytest.mark.parametrize("assign", [False, True])
def test_swapping_loads_what_the_class_of_a_tensor_makes_of_it(assign) -> None:
    net, state = nn.Linear(2, 3), nn.Linear(2, 3, dtype=torch.float64).state_dict()
    net.weight = nn.Parameter(net.weight.detach().as_subclass(Doubled), requires_grad=False)
    net.register_buffer("scale", torch.zeros(()))
    state["scale"] = torch.ones(())
    weight, bias, scale = net.weight, net.bias, net.scale
    net.load_state_dict(state, assign=assign)
    assert net.weight is weight and net.bias is bias and net.scale is scale
    assert torch.equal(weight, state["weight"] * 2) and weight.dtype == torch.float64
    assert isinstance(weight, nn.Parameter) and not weight.requires_grad and bias.requires_grad
    assert bias.dtype == (torch.float64 if assign else torch.float32)
    assert scale.item() == 1 and not isinstance(scale, nn.Parameter)


@pytest.mark.usefixtures("swapping")
def test_swapping_asks_the_class_of_what_is_loaded() -> None:
    class Packed(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is torch.Tensor.module_load:
                assert not isinstance(args[0], cls) and kwargs == {"assign": False}
                return args[1].as_subclass(torch.Tensor) + 1
            return super().__torch_function__(func, types, args, kwargs)

    net = nn.Linear(1, 1, bias=False)
    net.load_state_dict({"weight": torch.ones(1, 1).as_subclass(Packed)})
    assert net.weight.item() == 2 and type(net.weight) is nn.Parameter


@pytest.mark.usefixtures("swapping")
@pytest.mark.parametrize("returns", ["self", "other"])
def test_swapping_refuses_tensors_that_are_in_use(monkeypatch, returns) -> None:
    monkeypatch.setattr(Doubled, "returns", returns)
    net = nn.Linear(2, 3)
    net.weight = nn.Parameter(net.weight.detach().as_subclass(Doubled))
    with pytest.raises(RuntimeError, match=f"module_load returned {returns}"):
        net.load_state_dict(nn.Linear(2, 3).state_dict())


def test_batch_norm_reads_files_without_a_batch_counter() -> None:
    state = nn.BatchNorm1d(2).state_dict()
    del state["num_batches_tracked"]
    del state._metadata
    layer = nn.BatchNorm1d(2)
    layer.load_state_dict(state)
    assert layer.num_batches_tracked.item() == 0


# Extra state


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def get_extra_state(self):
        return {"count": self.count}

    def set_extra_state(self, state) -> None:
        self.count = state["count"]


def test_extra_state_makes_the_round_trip() -> None:
    net, other = nn.Sequential(Counter()), nn.Sequential(Counter())
    net[0].count = 5
    other.load_state_dict(net.state_dict())
    assert other[0].count == 5


def test_extra_state_is_missing_or_unexpected_like_a_tensor() -> None:
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "_extra_state"'):
        Counter().load_state_dict({})
    with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "_extra_state"'):
        nn.ReLU().load_state_dict(Counter().state_dict())


# Hooks


def test_state_dict_hooks_run_around_saving() -> None:
    order = []
    layer = nn.Linear(1, 1)
    layer.register_state_dict_pre_hook(lambda m, prefix, keep: order.append((m, prefix, keep)))
    layer.register_state_dict_post_hook(
        lambda m, state, prefix, metadata: order.append((m, list(state), prefix, metadata))
    )
    nn.Sequential(layer).state_dict()
    assert order == [
        (layer, "0.", False),
        (layer, ["0.weight", "0.bias"], "0.", {"version": 1}),
    ]


def test_state_dict_post_hook_must_return_nothing() -> None:
    layer = nn.Linear(1, 1)
    layer.register_state_dict_post_hook(lambda *_: {})
    with pytest.raises(RuntimeError, match="must return None"):
        layer.state_dict()


def test_private_state_dict_hook_may_replace_the_dictionary() -> None:
    layer = nn.Linear(1, 1)
    layer._register_state_dict_hook(lambda *_: {"only": 1})
    assert layer.state_dict() == {"only": 1}


def test_load_pre_hooks_may_rename_keys() -> None:
    def rename(state, prefix, *_):
        state[prefix + "weight"] = state.pop(prefix + "w")

    layer = nn.Linear(1, 1, bias=False)
    layer._register_load_state_dict_pre_hook(rename)
    nn.Sequential(layer).load_state_dict({"0.w": torch.full((1, 1), 4.0)})
    assert layer.weight.item() == 4


def test_load_post_hooks_may_forgive_missing_keys() -> None:
    layer = nn.Linear(1, 1)
    layer.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.remove("bias"))
    assert layer.load_state_dict({"weight": torch.ones(1, 1)}).missing_keys == []


def test_a_prefix_is_stripped_from_keys_and_versions_of_a_state_dict() -> None:
    net = nn.Sequential()
    net.add_module("module", nn.Sequential(nn.BatchNorm1d(2), nn.ReLU()))
    saved = net.state_dict()
    nn.modules.utils.consume_prefix_in_state_dict_if_present(saved, "module.")
    assert set(saved) == set(net.module.state_dict())
    assert saved._metadata == net.module.state_dict()._metadata


def test_mismatched_keys_print_as_in_pytorch() -> None:
    found = nn.Linear(1, 1).load_state_dict({"weight": torch.ones(1, 1)}, strict=False)
    assert repr(found) == "_IncompatibleKeys(missing_keys=['bias'], unexpected_keys=[])"


def test_programs_import_private_names_from_where_pytorch_has_them() -> None:
    from rushlight.nn.modules.activation import MultiheadAttention
    from rushlight.nn.modules.module import _IncompatibleKeys
    from rushlight.nn.modules.transformer import _get_clones

    assert MultiheadAttention is nn.MultiheadAttention
    assert _IncompatibleKeys([], []).missing_keys == []
    assert [type(layer) for layer in _get_clones(nn.ReLU(), 2)] == [nn.ReLU, nn.ReLU]


def test_state_dict_takes_its_arguments_by_position_with_a_warning() -> None:
    layer, into = nn.Linear(1, 1, bias=False), OrderedDict()
    with pytest.warns(FutureWarning, match=r"Linear\.state_dict: positional arguments"):
        assert layer.state_dict(into, "a.", True) is into
    assert into["a.weight"] is layer.weight
    with pytest.warns(FutureWarning):
        assert list(layer.state_dict(None, prefix="b.")) == ["b.weight"]


def test_load_post_hooks_return_nothing() -> None:
    layer = nn.Linear(1, 1)
    layer.register_load_state_dict_post_hook(lambda module, keys: keys)
    with pytest.raises(AssertionError, match="post-hook must return None"):
        layer.load_state_dict(layer.state_dict())
