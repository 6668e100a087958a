"""nn.Module: what it holds, how it is walked, converted, copied and printed."""

import copy
import gc
import inspect
import pickle
import weakref

import numpy as np
import pytest
from grouping import each

import rushlight as torch
from rushlight import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.second = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("offset", torch.zeros(1))
        self.register_buffer("cache", torch.zeros(1), persistent=False)

    def forward(self, x):
        return self.second(self.first(x)) * self.scale + self.offset


PARAMETER_NAMES = [
    "scale",
    "first.weight",
    "first.bias",
    "second.0.weight",
    "second.0.bias",
    "second.1.weight",
    "second.1.bias",
]


# Walks


def test_all_members_of_a_kind_are_replaced_at_once() -> None:
    net = Net()
    scale, modules = net.scale, dict(net._modules)
    net._modules = {"other": nn.Linear(2, 1), **modules}
    assert [*net._modules] == ["other", *modules] and net.other.in_features == 2
    net._parameters = {}
    assert not hasattr(net, "scale") and "scale" not in dict(net.named_parameters())
    net._parameters = {"scale": scale}
    net._buffers = {"seen": torch.zeros(1)}
    assert net.scale is scale and [*net._buffers] == ["seen"] == [
        n for n, _ in net.named_buffers(recurse=False)
    ]
    net.register_buffer("cache", torch.zeros(1), persistent=False)
    net._buffers = {name: buffer + 1 for name, buffer in net._buffers.items()}
    assert net.cache == 1 and [*net.state_dict()].count("seen") == 1
    assert "cache" not in net.state_dict()


def test_parameters_come_parents_first_in_order_of_registration() -> None:
    net = Net()
    assert [name for name, _ in net.named_parameters()] == PARAMETER_NAMES
    assert [id(p) for p in net.parameters()] == [id(p) for _, p in net.named_parameters()]


def test_named_parameters_take_a_prefix_and_may_stay_at_one_level() -> None:
    assert [n for n, _ in Net().named_parameters(prefix="net", recurse=False)] == ["net.scale"]


def test_buffers_include_those_outside_the_state_dict() -> None:
    names = [name for name, _ in Net().named_buffers()]
    assert names[:2] == ["offset", "cache"]
    assert "second.1.running_mean" in names


def test_modules_come_parents_first() -> None:
    net = Net()
    names = [name for name, _ in net.named_modules()]
    assert names == ["", "first", "second", "second.0", "second.1"]
    assert next(iter(net.modules())) is net
    assert [name for name, _ in net.named_children()] == ["first", "second"]
    assert list(net.children()) == [net.first, net.second]


def test_shared_members_are_walked_once_unless_duplicates_are_asked_for() -> None:
    layer = nn.Linear(2, 2)
    net = nn.Sequential(layer, layer)
    net[1].alias = layer.weight
    assert [n for n, _ in net.named_parameters()] == ["0.weight", "0.bias"]
    twice = [n for n, _ in net.named_parameters(remove_duplicate=False)]
    assert twice == [f"{i}.{name}" for i in (0, 1) for name in ("weight", "bias", "alias")]
    assert len(list(net.named_modules(remove_duplicate=False))) == 3
    assert len(list(net.modules())) == 2 and len(list(net.modules(remove_duplicate=False))) == 3
    assert len(list(net.children())) == 1


def test_members_are_found_by_dotted_path() -> None:
    net = Net()
    assert net.get_submodule("") is net
    assert net.get_submodule("second.0") is net.second[0]
    assert net.get_parameter("second.0.weight") is net.second[0].weight
    assert net.get_buffer("second.1.running_var") is net.second[1].running_var
    replacement = nn.Tanh()
    net.set_submodule("second.0", replacement)
    assert net.second[0] is replacement
    net.set_submodule("third", nn.ReLU())
    with pytest.raises(AttributeError, match="`weight` is not an nn.Module"):
        net.set_submodule("first.weight", nn.ReLU())
    with pytest.raises(AttributeError, match="Net has no attribute `fourth`"):
        net.set_submodule("fourth", nn.ReLU(), strict=True)


@pytest.mark.parametrize(
    ("method", "target", "message"),
    [
        ("get_submodule", "nothing", "Net has no attribute `nothing`"),
        ("get_submodule", "scale", "`scale` is not an nn.Module"),
        ("get_parameter", "first.nothing", "Linear has no attribute `nothing`"),
        ("get_parameter", "offset", "`offset` is not an nn.Parameter"),
        ("get_buffer", "scale", "`scale` is not a buffer"),
    ],
)
def test_paths_that_lead_nowhere_are_errors(method, target, message) -> None:
    with pytest.raises(AttributeError, match=message):
        getattr(Net(), method)(target)


# Attributes


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (lambda: nn.Parameter(torch.ones(1)), "parameters"),
        (lambda: nn.Buffer(torch.ones(1)), "buffers"),
        (nn.ReLU, "module"),
    ],
)
def test_assigning_members_before_init_is_an_error(value, what) -> None:
    class Hasty(nn.Module):
        def __init__(self) -> None:
            self.member = value()

    with pytest.raises(AttributeError, match=rf"assign {what} before Module.__init__\(\) call"):
        Hasty()


def test_attribute_of_each_kind_replaces_one_of_another() -> None:
    module = nn.Module()
    module.x = 1
    module.x = nn.Parameter(torch.ones(1))
    assert list(module._parameters) == ["x"]
    del module.x
    module.x = nn.ReLU()
    assert list(module._modules) == ["x"]
    assert list(module._parameters) == []
    del module.x
    module.x = nn.Buffer(torch.ones(1))
    assert list(module._buffers) == ["x"]
    module.x = nn.Parameter(torch.ones(1))
    assert list(module._buffers) == []
    assert list(module._parameters) == ["x"]


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("scale", torch.ones(1), "'Tensor' as parameter 'scale'"),
        ("first", 3, "cannot assign 'int' as child module 'first'"),
        ("offset", "text", "cannot assign 'str' as buffer 'offset'"),
    ],
)
def test_members_keep_their_role(member, value, message) -> None:
    with pytest.raises(TypeError, match=message):
        setattr(Net(), member, value)


def test_register_buffer_may_be_overridden_without_persistent() -> None:
    class Old(nn.Module):
        def __init__(self, persistent: bool) -> None:
            super().__init__()
            self.mean = nn.Buffer(torch.ones(1), persistent=persistent)

        def register_buffer(self, name, tensor) -> None:
            super().register_buffer(name, tensor)

    assert list(Old(True).state_dict()) == ["mean"]
    with pytest.raises(RuntimeError, match="takes no `persistent`"):
        Old(False)


def test_what_is_like_a_tensor_may_be_a_buffer() -> None:
    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    module = nn.Module()
    module.register_buffer("mean", Like())
    module.mean = other = Like()
    assert module.mean is module.get_buffer("mean") is other


def test_members_may_be_set_to_none_and_back() -> None:
    net = Net()
    for name, value in (("scale", net.scale), ("first", net.first), ("offset", net.offset)):
        setattr(net, name, None)
        assert getattr(net, name) is None
        setattr(net, name, value)
        assert getattr(net, name) is value
    assert sorted(n for n, _ in net.named_parameters()) == sorted(PARAMETER_NAMES)


def test_tensor_assigned_to_a_buffer_replaces_it() -> None:
    net = Net()
    net.offset = torch.full((1,), 5.0)
    assert dict(net.named_buffers())["offset"].item() == 5
    assert "offset" in net.state_dict()


def test_plain_tensor_is_not_registered() -> None:
    module = nn.Module()
    module.x = torch.ones(1)
    assert list(module.buffers()) == []


def test_members_are_deleted_where_a_property_has_their_name() -> None:
    class Curved(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.k = nn.Parameter(torch.ones(1))
            self.c = self._parameters.pop("k").data

        @property
        def k(self) -> torch.Tensor:
            return -self.c

    module = Curved()
    assert module.k.item() == -1
    assert list(module.parameters()) == []


def test_deleted_members_are_gone() -> None:
    net = Net()
    del net.scale
    del net.first
    del net.offset
    assert not hasattr(net, "scale")
    assert [n for n, _ in net.named_parameters(recurse=False)] == []
    assert [n for n, _ in net.named_children()] == ["second"]
    with pytest.raises(AttributeError):
        del net.scale


@pytest.mark.parametrize("register", ["register_parameter", "register_buffer", "register_module"])
@pytest.mark.parametrize(
    ("name", "error"), [("a.b", KeyError), ("", KeyError), (3, TypeError), ("forward", KeyError)]
)
def test_bad_member_names_are_refused(register, name, error) -> None:
    with pytest.raises(error):
        getattr(nn.Module(), register)(name, None)


@pytest.mark.parametrize(
    ("register", "message"),
    [
        ("register_parameter", r"'Tensor' object to parameter 'x' \(Parameter or None required\)"),
        ("register_module", "Tensor is not a Module subclass"),
    ],
)
def test_members_of_the_wrong_type_are_refused(register, message) -> None:
    with pytest.raises(TypeError, match=message):
        getattr(nn.Module(), register)("x", torch.ones(1))
    with pytest.raises(TypeError, match="cannot assign 'int' object to buffer 'x'"):
        nn.Module().register_buffer("x", 3)


def test_parameter_that_was_computed_is_refused() -> None:
    module = nn.Module()
    leaf = nn.Parameter(torch.ones(1))
    computed = nn.Parameter(torch.ones(1), requires_grad=False)
    computed.mul_(leaf)
    with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor to parameter 'x'"):
        module.register_parameter("x", computed)


def test_raw_views_read_and_write_the_module() -> None:
    net = Net()
    assert list(net._modules) == ["first", "second"]
    assert net._modules["first"] is net.first
    net._modules["first"] = replacement = nn.ReLU()
    assert net.first is replacement
    net._parameters["extra"] = extra = nn.Parameter(torch.ones(1))
    assert net.extra is extra
    del net._buffers["offset"]
    assert not hasattr(net, "offset")
    assert "cache" in net._buffers
    assert "scale" not in net._buffers
    with pytest.raises(KeyError):
        _ = net._modules["scale"]
    with pytest.raises(KeyError):
        del net._modules["scale"]


def test_dir_lists_members_but_not_numbered_ones() -> None:
    assert "first" in dir(Net())
    assert "0" not in dir(Net().second)


def test_module_is_freed_without_the_cycle_collector() -> None:
    net = Net()
    net(torch.ones(2, 2))
    alive = weakref.ref(net)
    gc.disable()
    try:
        del net
        assert alive() is None
    finally:
        gc.enable()


# Modes and gradients


def test_train_and_eval_reach_all_descendants() -> None:
    net = Net()
    assert net.eval() is net
    assert not any(module.training for module in net.modules())
    assert net.train() is net
    assert all(module.training for module in net.modules())


def test_training_mode_must_be_a_bool() -> None:
    with pytest.raises(ValueError, match="expected to be boolean"):
        Net().train(1)


def test_requires_grad_reaches_all_parameters() -> None:
    net = Net()
    assert net.requires_grad_(False) is net
    assert not any(p.requires_grad for p in net.parameters())


def test_zero_grad_drops_or_zeroes_gradients() -> None:
    net = Net()
    net(torch.ones(4, 2)).sum().backward()
    grad = net.first.weight.grad
    net.zero_grad(set_to_none=False)
    assert net.first.weight.grad is grad
    assert grad.abs().sum().item() == 0
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


def test_apply_visits_children_before_parents() -> None:
    visited = []
    net = Net()
    assert net.apply(visited.append) is net
    assert visited == [net.first, net.second[0], net.second[1], net.second, net]


def test_forward_must_be_defined() -> None:
    with pytest.raises(
        NotImplementedError, match=r'Module \[Module\] is missing the required "forward" function'
    ):
        nn.Module()(1)


def test_forward_may_be_replaced_on_one_object() -> None:
    layer = nn.ReLU()
    layer.forward = lambda x: "replaced"
    assert layer(torch.ones(1)) == "replaced"


# Conversions


def test_conversion_keeps_parameters_the_same_objects_and_moves_gradients() -> None:
    net = Net()
    net(torch.ones(4, 2)).sum().backward()
    before = [id(p) for p in net.parameters()]
    assert net.double() is net
    assert [id(p) for p in net.parameters()] == before
    assert all(p.dtype == torch.float64 for p in net.parameters())
    assert all(p.grad is None or p.grad.dtype == torch.float64 for p in net.parameters())
    assert all(p.is_leaf and p.requires_grad for p in net.parameters())


@pytest.mark.parametrize(
    ("convert", "dtype"),
    [
        (lambda m: m.double(), torch.float64),
        (lambda m: m.half(), torch.float16),
        (lambda m: m.bfloat16(), torch.bfloat16),
        (lambda m: m.double().float(), torch.float32),
        (lambda m: m.to(torch.float64), torch.float64),
        (lambda m: m.to(dtype=torch.float64), torch.float64),
        (lambda m: m.to("cpu", torch.float64), torch.float64),
        (lambda m: m.to(torch.ones(1, dtype=torch.float64)), torch.float64),
        (lambda m: m.to(tensor=torch.ones(1, dtype=torch.float64)), torch.float64),
        (lambda m: m.to(torch.device("cpu")), torch.float32),
        (lambda m: m.cpu(), torch.float32),
    ],
)
def test_conversions_change_floating_members_only(convert, dtype) -> None:
    layer = convert(nn.BatchNorm1d(2))
    assert layer.weight.dtype == layer.running_mean.dtype == dtype
    assert layer.num_batches_tracked.dtype == torch.int64


def test_conversion_calls_the_method_of_a_class_of_parameters() -> None:
    class Packed(nn.Parameter):
        def to(self, *args, **kwargs):
            self.data = self.data.round()
            self.scale = 2
            return self

    net = nn.Linear(2, 2)
    net.weight = weight = Packed(torch.full((2, 2), 1.25))
    assert net.to("cpu").weight is weight and weight.scale == 2 and weight.requires_grad
    assert weight.tolist() == [[1, 1], [1, 1]]


def test_conversion_makes_new_parameters_if_it_is_asked_to() -> None:
    layer = nn.Linear(2, 1)
    layer(torch.ones(1, 2)).sum().backward()
    weight, grad = layer.weight, layer.weight.grad
    assert not torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        layer.double()
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    assert layer.weight is not weight and isinstance(layer.weight, nn.Parameter)
    assert layer.weight.dtype is torch.float64 and layer.weight.requires_grad
    assert layer.weight.grad is not None and layer.weight.grad.dtype is torch.float64
    assert weight.dtype is torch.float32 and weight.grad is grad


def test_values_survive_conversion() -> None:
    layer = nn.Linear(2, 3)
    before = layer.weight.tolist()
    assert layer.double().weight.tolist() == before


def test_type_converts_integers_too() -> None:
    assert nn.BatchNorm1d(2).type(torch.float64).num_batches_tracked.dtype == torch.float64


def test_to_refuses_integer_dtypes() -> None:
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes"):
        nn.Linear(2, 3).to(torch.int64)


def test_writing_to_all_tensors_of_a_module_is_seen_by_backward() -> None:
    layer = nn.Linear(2, 1)
    layer.weight.grad = torch.ones(1, 2, requires_grad=True)
    product = layer.weight.grad * layer.weight.grad
    layer._apply(lambda tensor: tensor.add_(1))
    assert layer.weight.grad.tolist() == [[2, 2]]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_to_empty_keeps_shapes() -> None:
    net = Net()
    shapes = [p.shape for p in net.parameters()]
    net.to_empty(device="cpu")
    assert [p.shape for p in net.parameters()] == shapes


# Copies


def test_deep_copy_is_independent() -> None:
    net = Net()
    twin = copy.deepcopy(net)
    with torch.no_grad():
        twin.first.weight.zero_()
    assert net.first.weight.abs().sum().item() > 0
    assert [n for n, _ in twin.named_parameters()] == PARAMETER_NAMES
    assert isinstance(twin.scale, nn.Parameter)
    assert twin.first is not net.first


def test_deep_copy_keeps_sharing() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    twin = copy.deepcopy(net)
    assert twin[1].weight is twin[0].weight
    assert twin[0].weight is not net[0].weight


def test_shallow_copy_shares_members_but_not_attributes() -> None:
    net = Net()
    twin = copy.copy(net)
    twin.extra, twin.unit = nn.ReLU(), "m"
    del twin.second
    for module in net, twin:
        assert [n for n, _ in module.named_children()] == ["first", "extra"]
        assert module.extra is twin.extra and not hasattr(module, "second")
    assert twin.first is net.first and not hasattr(net, "unit")


def test_modules_are_pickled_with_their_values() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).eval()
    twin = pickle.loads(pickle.dumps(net))
    x = torch.ones(4, 2)
    assert twin(x).tolist() == net(x).tolist()
    assert not twin.training
    assert all(isinstance(p, nn.Parameter) for p in twin.parameters())


# Printing


def test_repr_nests_children() -> None:
    assert repr(Net()) == (
        "Net(\n"
        "  (first): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (second): Sequential(\n"
        "    (0): Linear(in_features=3, out_features=3, bias=True)\n"
        "    (1): BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, "
        "track_running_stats=True)\n"
        "  )\n"
        ")"
    )


def test_repr_puts_own_settings_before_children() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.ReLU()

        def extra_repr(self) -> str:
            return "a=1\nb=2"

    assert repr(Two()) == "Two(\n  a=1\n  b=2\n  (act): ReLU()\n)"
    assert repr(nn.Module()) == "Module()"


def test_calls_hand_over_all_arguments() -> None:
    class All(nn.Module):
        def forward(self, *args, **kwargs):
            return args, kwargs

    many = tuple(range(20))
    named = {f"k{i}": i for i in range(15)}
    module = All()
    for with_hook in (False, True):
        if with_hook:
            module.register_forward_hook(lambda *args: None)
        assert module() == ((), {})
        assert module(1, k=2) == ((1,), {"k": 2})
        assert module(*many, **named) == (many, named)
        assert nn.Module.__call__(module, *many) == (many, {})
    with pytest.raises(TypeError, match="_hooks|argument"):
        nn.Module.__call__()


def test_calls_may_be_overridden_and_forward_may_be_an_attribute() -> None:
    class Twice(nn.Module):
        def __call__(self, x):
            return 2 * super().__call__(x)

        def forward(self, x):
            return x + 1

    module = Twice()
    assert module(1) == 4
    module.forward = lambda x: x + 10
    assert module(1) == 22
    with pytest.raises(NotImplementedError, match='missing the required "forward"'):
        nn.Module()(1)
    with pytest.raises(TypeError):
        nn.Identity()(1, 2)


def test_signature_of_a_call_is_that_of_forward() -> None:
    class Net(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()

        def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
            return x * scale

    assert str(inspect.signature(Net(3))) == str(inspect.signature(Net(3).forward))
    assert list(inspect.signature(Net).parameters) == ["width"]


def test_members_are_shown_as_by_a_dictionary() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    assert [name for name, _ in reversed(net._modules.items())] == ["1", "0"]
    assert list(reversed(net._modules)) == ["1", "0"]
    kept = net._modules.copy()
    assert copy.copy(net._modules) == kept and net._modules.popitem() == ("1", kept["1"])
    net._modules.clear()
    assert list(kept) == ["0", "1"] and not net._modules
    with pytest.raises(KeyError, match="empty"):
        net._modules.popitem()


def test_libraries_ask_which_buffers_are_not_saved():
    module = nn.Module()
    module.register_buffer("mean", torch.zeros(1))
    module.register_buffer("mask", torch.zeros(1), persistent=False)
    assert module._non_persistent_buffers_set == {"mask"}
    assert {"mask", "mean"} - module._non_persistent_buffers_set == {"mean"}


def test_libraries_choose_which_buffers_are_saved() -> None:
    module = nn.Module()
    module.register_buffer("mean", torch.zeros(1))
    module.register_buffer("mask", torch.zeros(1), persistent=False)
    names = module._non_persistent_buffers_set
    names.discard("mask")
    names.add("mean")
    assert list(module.state_dict()) == ["mask"] and names == {"mean"}
    module._non_persistent_buffers_set = {"mask"}
    assert list(module.state_dict()) == ["mean"]


@each(
    "make",
    [
        lambda size: nn.Linear(size, 2),
        lambda size: nn.Linear(2, size),
        lambda size: nn.Bilinear(2, size, 2),
        lambda size: nn.Conv2d(size, 2, 3),
        lambda size: nn.Conv2d(2, 2, (3, size)),
        lambda size: nn.Conv1d(2, 2, 3, stride=size),
        lambda size: nn.ConvTranspose2d(2, 2, 3, groups=size),
        nn.BatchNorm1d,
        nn.InstanceNorm2d,
        nn.LayerNorm,
        lambda size: nn.RMSNorm((size, 2)),
        lambda size: nn.GroupNorm(size, 4),
        lambda size: nn.Embedding(size, 2),
        lambda size: nn.EmbeddingBag(2, 2, padding_idx=size),
        lambda size: nn.LSTM(2, 2, num_layers=size),
        lambda size: nn.GRUCell(size, 2),
        lambda size: nn.MultiheadAttention(4, size),
        nn.PReLU,
        lambda size: nn.Unflatten(1, (2, size)),
    ],
)
@each("size", ["2", 2.0, object()])
def test_sizes_of_layers_are_ints(make, size) -> None:
    said = rf"^\w+: \w+ should be of type int, got: {type(size).__name__}\.$"
    with pytest.raises(TypeError, match=said):
        make(size)


def test_what_counts_as_an_int_is_a_size() -> None:
    assert nn.Linear(np.int64(2), torch.tensor(3)).weight.shape == (3, 2)
    assert nn.LSTM(np.int64(2), 3).weight_ih_l0.shape == (12, 2)


def test_the_key_of_extra_state_has_a_name() -> None:
    assert torch.nn.modules.module._EXTRA_STATE_KEY_SUFFIX == "_extra_state"


class Named:
    def __init__(self, name, *, size=0):
        self.name, self.size = name, size


def test_module_goes_on_to_the_next_base_where_its_class_says_so() -> None:
    class Both(nn.Module, Named):
        call_super_init = True

        def __init__(self):
            super().__init__("both", size=3)
            self.layer = nn.Linear(1, 1)

    both = Both()
    assert (both.name, both.size) == ("both", 3)
    assert len(list(both.parameters())) == 2


def test_module_takes_no_arguments_otherwise() -> None:
    class Alone(nn.Module, Named):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)

    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        Alone("a")
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'size'"):
        Alone(size=1)


@each(
    "make, name",
    (
        (lambda: nn.Linear(2, 2, bias=False), "bias"),
        (lambda: nn.Bilinear(1, 1, 2, bias=False), "bias"),
        (lambda: nn.Conv2d(1, 2, 1, bias=False), "bias"),
        (lambda: nn.BatchNorm1d(2, affine=False), "weight"),
        (lambda: nn.InstanceNorm1d(2), "bias"),
        (lambda: nn.LayerNorm(2, bias=False), "bias"),
        (lambda: nn.GroupNorm(1, 2, affine=False), "weight"),
        (lambda: nn.RMSNorm(2, elementwise_affine=False), "weight"),
        (lambda: nn.GRUCell(2, 2, bias=False), "bias_ih"),
    ),
)
def test_parameters_left_out_keep_their_places(make, name) -> None:
    module = make()
    assert module._parameters[name] is None and name not in module.state_dict()
    with pytest.raises(TypeError, match=f"cannot assign 'Tensor' as parameter '{name}'"):
        setattr(module, name, torch.ones(2))
    module.register_parameter(name, nn.Parameter(torch.ones(2)))
    assert name in dict(module.named_parameters())


def test_module_cannot_take_the_place_of_a_parameter() -> None:
    layer = nn.Linear(2, 2)
    with pytest.raises(TypeError, match="cannot assign 'ReLU' as parameter 'weight'"):
        layer.weight = nn.ReLU()
    assert [*layer._parameters] == ["weight", "bias"]


def test_other_devices_are_refused_where_there_is_something_to_move() -> None:
    for name in ("xpu", "ipu", "mtia"):
        assert isinstance(getattr(nn.ReLU(), name)(), nn.ReLU)
        with pytest.raises(RuntimeError, match=f"not linked with support for {name}"):
            getattr(nn.Linear(1, 1), name)()


def test_errors_name_methods_after_the_class_that_users_know() -> None:
    calls = {
        "Module.load_state_dict": nn.Linear(1, 1).load_state_dict,
        "Module.register_buffer": nn.Linear(1, 1).register_buffer,
        "Tensor.numpy": torch.ones(1).numpy,
    }
    for name, call in calls.items():
        with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword argument"):
            call(color=1)


def test_a_module_is_converted_in_place() -> None:
    with pytest.raises(RuntimeError, match="does not accept copy"):
        nn.Linear(1, 1).to("cpu", copy=True)


@pytest.mark.filterwarnings("ignore")
@each("name", sorted(name for name in dir(nn) if name[0].isupper()))
def test_layers_name_themselves_where_arguments_are_missing(name: str) -> None:
    layer = getattr(nn, name)
    if isinstance(layer, type) and issubclass(layer, nn.Module):
        message = ""
        try:
            layer()
        except TypeError as error:
            message = str(error)
        assert not message.startswith("_"), message
