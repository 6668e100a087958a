"""Hooks of modules: what they see, what they may change, and their order."""

import copy
from collections import OrderedDict
from typing import NamedTuple

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from rushlight.utils.hooks import RemovableHandle


class Scale(nn.Module):
    def forward(self, x, factor=1.0):
        return x * factor


def value(x=2.0):
    return torch.tensor([x], requires_grad=True)


# Forward


def test_forward_hooks_see_inputs_and_output_and_run_in_order() -> None:
    seen = []
    module = Scale()
    module.register_forward_pre_hook(lambda m, args: seen.append(("pre", m, args[0].item())))
    module.register_forward_hook(lambda m, args, out: seen.append(("post", m, out.item())))
    module(value(), 3.0)
    assert seen == [("pre", module, 2.0), ("post", module, 6.0)]


def test_pre_hook_replaces_arguments() -> None:
    module = Scale()
    module.register_forward_pre_hook(lambda m, args: (args[0] + 1, 10.0))
    assert module(value()).item() == 30
    module = Scale()
    module.register_forward_pre_hook(lambda m, args: args[0] + 1)  # a bare value is one argument
    assert module(value()).item() == 3


def test_hooks_with_kwargs_see_and_replace_them() -> None:
    module = Scale()
    module.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"factor": kwargs["factor"] * 2}), with_kwargs=True
    )
    module.register_forward_hook(
        lambda m, args, kwargs, out: out + kwargs["factor"], with_kwargs=True
    )
    assert module(value(), factor=5.0).item() == 30


def test_pre_hook_with_kwargs_must_return_both() -> None:
    module = Scale()
    module.register_forward_pre_hook(lambda m, args, kwargs: args, with_kwargs=True)
    with pytest.raises(RuntimeError, match=r"tuple of \(new_args, new_kwargs\)"):
        module(value())


def test_forward_hook_replaces_output_for_the_next_one() -> None:
    module = Scale()
    module.register_forward_hook(lambda m, args, out: out + 1)
    module.register_forward_hook(lambda m, args, out: out * 10)
    assert module(value()).item() == 30


def test_prepended_hooks_run_first() -> None:
    order = []
    module = Scale()
    module.register_forward_hook(lambda *_: order.append("old"))
    module.register_forward_hook(lambda *_: order.append("new"), prepend=True)
    module(value())
    assert order == ["new", "old"]


def test_removed_hooks_no_longer_run() -> None:
    calls = []
    module = Scale()
    handle = module.register_forward_hook(lambda *_: calls.append(1))
    module._call_impl(value())  # PyTorch's name for a call
    handle.remove()
    handle.remove()
    module(value())
    assert calls == [1]


def test_dictionaries_of_hooks_can_be_replaced_and_put_in_order() -> None:
    order = []
    module = Scale()
    first = module.register_forward_hook(lambda *_: order.append("first"))
    second = module.register_forward_hook(
        lambda m, args, kwargs, out: order.append(kwargs), with_kwargs=True, always_call=True
    )
    module._forward_hooks.move_to_end(first.id)
    module(value(), factor=3.0)
    assert order == [{"factor": 3.0}, "first"]

    assert dict(module._forward_hooks_with_kwargs) == {second.id: True}
    assert list(module._forward_hooks_always_called) == [second.id]
    module._forward_hooks[second.id] = lambda m, args, kwargs, out: order.append("wrapped")
    module._forward_hooks = {
        id: hook for id, hook in module._forward_hooks.items() if id > first.id
    }
    order.clear()
    module(value())
    assert order == ["wrapped"]
    second.remove()
    assert not module._forward_hooks and not module._forward_hooks_with_kwargs
    module._forward_hooks = OrderedDict()
    module(value())
    assert order == ["wrapped"] and module._hooks is None


def test_programs_register_hooks_by_the_dictionaries() -> None:
    module, seen = Scale(), []
    handle = RemovableHandle(
        module._forward_pre_hooks, extra_dict=module._forward_pre_hooks_with_kwargs
    )
    module._forward_pre_hooks[handle.id] = lambda m, args, kwargs: seen.append(kwargs)
    module._forward_pre_hooks_with_kwargs[handle.id] = True
    module(value(), factor=1.0)
    del module._forward_pre_hooks_with_kwargs[handle.id]
    assert handle.id not in module._forward_pre_hooks_with_kwargs
    with pytest.raises(KeyError):
        del module._forward_pre_hooks_with_kwargs[handle.id]
    handle.remove()
    module(value())
    assert seen == [{"factor": 1.0}] and not module._forward_pre_hooks


def test_hooks_of_one_module_do_not_run_for_another() -> None:
    calls = []
    module, other = Scale(), Scale()
    module.register_forward_hook(lambda *_: calls.append(1))
    other(value())
    assert calls == []


def test_always_called_hooks_run_when_forward_raises() -> None:
    seen = []

    class Broken(nn.Module):
        def forward(self, x):
            raise ArithmeticError("broken")

    module = Broken()
    module.register_forward_hook(lambda *_: seen.append("plain"))
    module.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    with pytest.raises(ArithmeticError, match="broken"):
        module(value())
    assert seen == [None]


def test_always_called_hooks_run_once_when_a_later_hook_raises() -> None:
    seen = []

    def fail(*_):
        raise ArithmeticError("hook")

    module = Scale()
    module.register_forward_hook(lambda m, args, out: seen.append(out.item()), always_call=True)
    module.register_forward_hook(fail)
    with pytest.raises(ArithmeticError, match="hook"):
        module(value())
    assert seen == [2.0]


def test_error_in_an_always_called_hook_does_not_hide_the_first_error() -> None:
    class Broken(nn.Module):
        def forward(self, x):
            raise ArithmeticError("first")

    def fail(*_):
        raise ValueError("second")

    module = Broken()
    module.register_forward_hook(fail, always_call=True)
    with pytest.warns(UserWarning, match="second"), pytest.raises(ArithmeticError, match="first"):
        module(value())


def test_copies_of_a_module_keep_hooks_of_their_own() -> None:
    calls = []
    module = Scale()
    handle = module.register_forward_hook(lambda *_: calls.append(1))
    twin = copy.deepcopy(module)
    handle.remove()
    module(value())
    assert calls == []
    twin(value())
    assert calls == [1]


# Backward


def test_backward_hook_sees_gradients_of_inputs_and_outputs() -> None:
    seen = []
    module = Scale()
    module.register_full_backward_hook(
        lambda m, grad_input, grad_output: seen.append((m, grad_input, grad_output))
    )
    x = value()
    (module(x, 3.0) * 2).backward()
    ((seen_module, grad_input, grad_output),) = seen
    assert seen_module is module
    assert [None if g is None else g.item() for g in grad_input] == [6.0, None]
    assert [g.item() for g in grad_output] == [2.0]
    assert x.grad.item() == 6


def test_backward_hook_replaces_gradients_of_inputs() -> None:
    module = Scale()
    module.register_full_backward_hook(lambda m, gi, go: (gi[0] + 1,))
    module.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    x = value()
    module(x).backward()
    assert x.grad.item() == 20


def test_backward_pre_hook_replaces_gradients_of_outputs() -> None:
    seen = []
    module = nn.Linear(1, 1)
    module.register_full_backward_pre_hook(lambda m, go: (go[0] * 4,))
    module.register_full_backward_hook(lambda m, gi, go: seen.append(go[0].item()))
    module(value()).backward()
    assert module.bias.grad.item() == 4
    assert seen == [4.0]


def test_backward_hook_sees_all_inputs_together() -> None:
    class Product(nn.Module):
        def forward(self, a, b):
            return a * b, a + b

    seen = []
    module = Product()
    module.register_full_backward_hook(
        lambda m, gi, go: seen.append(([g.item() for g in gi], [g.item() for g in go]))
    )
    a, b = value(2.0), value(5.0)
    product, total = module(a, b)
    (product + 3 * total).backward()
    assert seen == [([8.0, 5.0], [1.0, 3.0])]
    assert (a.grad.item(), b.grad.item()) == (8, 5)


def test_backward_hook_runs_when_no_input_requires_grad() -> None:
    seen = []
    module = nn.Linear(1, 1)
    module.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].item())))
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        module(torch.ones(1)).backward()
    assert seen == [((None,), 1.0)]


def test_old_backward_hooks_warn_of_gradients_that_they_miss() -> None:
    class Halves(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x.sin(), x.cos()

    x = torch.ones(2, requires_grad=True) * 2
    for module, missing in (
        (nn.Sequential(nn.Tanh(), nn.ReLU()), "multiple autograd Nodes .* missing some grad_input"),
        (Halves(), "different autograd Nodes .* missing some grad_output"),
    ):
        module.register_backward_hook(lambda *_: None)
        with pytest.warns(FutureWarning, match=missing) as caught:
            module(x)
        assert caught[0].filename == __file__
    module = nn.ReLU()
    module.register_backward_hook(lambda *_: None)
    module(x).sum().backward()  # which misses nothing


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_backward_hook_cannot_invent_gradients() -> None:
    module = nn.Linear(1, 1)
    module.register_full_backward_hook(lambda m, gi, go: (torch.ones(1),))
    with pytest.raises(RuntimeError, match="no input requires gradient"):
        module(torch.ones(1)).backward()


def test_backward_hook_must_return_one_gradient_for_each_input() -> None:
    module = Scale()
    module.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    with pytest.raises(RuntimeError, match="got 2, but expected 1"):
        module(value()).backward()


def test_backward_hooks_leave_forward_without_gradients_alone() -> None:
    module = Scale()
    module.register_full_backward_hook(lambda *_: None)
    with torch.no_grad():
        assert module(value(), 3.0).item() == 6


# All modules


def test_global_hooks_watch_every_module_before_its_own_hooks() -> None:
    order = []
    net = nn.Sequential(Scale())
    net[0].register_forward_hook(lambda *_: order.append("own"))
    with (
        register_module_forward_pre_hook(lambda m, args: order.append(("pre", type(m)))),
        register_module_forward_hook(lambda m, args, out: order.append(("post", type(m)))),
    ):
        net(value())
    assert order == [
        ("pre", nn.Sequential),
        ("pre", Scale),
        ("post", Scale),
        "own",
        ("post", nn.Sequential),
    ]
    order.clear()
    net(value())
    assert order == ["own"]


def test_global_backward_hooks_watch_every_module() -> None:
    order = []
    net = nn.Sequential(Scale())
    with (
        register_module_full_backward_pre_hook(lambda m, go: order.append(("pre", type(m)))),
        register_module_full_backward_hook(lambda m, gi, go: order.append(("post", type(m)))),
    ):
        net(value()).backward()
    assert order == [
        ("pre", nn.Sequential),
        ("pre", Scale),
        ("post", Scale),
        ("post", nn.Sequential),
    ]


def test_modules_take_the_short_way_again_after_all_hooks_were_removed() -> None:
    module = Scale()
    module.register_forward_hook(lambda *_: None).remove()
    register_module_forward_hook(lambda *_: None).remove()
    module(value())
    assert module._hooks is None


def test_hooks_of_state_dicts_can_be_seen_and_run_by_a_module_of_its_own() -> None:
    """A module that makes its state dict itself runs them so."""
    layer = torch.nn.Linear(1, 1)
    for view in (
        layer._state_dict_pre_hooks,
        layer._state_dict_hooks,
        layer._load_state_dict_pre_hooks,
        layer._load_state_dict_post_hooks,
    ):
        assert len(view) == 0
    handle = layer._register_state_dict_hook(lambda module, state, prefix, metadata: {"a": 1})
    (hook,) = layer._state_dict_hooks.values()
    assert hook(layer, layer.state_dict(), "", {}) == {"a": 1}
    handle.remove()
    assert not layer._state_dict_hooks


# Registration


def test_registration_hooks_see_and_replace_what_modules_get() -> None:
    seen = []

    def note(module, name, value):
        seen.append((type(module).__name__, name))

    with (
        register_module_parameter_registration_hook(note),
        register_module_buffer_registration_hook(note),
        register_module_buffer_registration_hook(lambda module, name, buffer: buffer.double()),
        register_module_module_registration_hook(note),
    ):
        net = nn.Sequential(nn.Linear(1, 1))
        net.register_parameter("missing", None)
        net.register_buffer("mean", torch.ones(1))
        net.mean = torch.zeros(1)
    net.scale = nn.Parameter(torch.ones(1))
    linear = [("Linear", "weight"), ("Linear", "bias"), ("Sequential", "0")]
    assert seen == [*linear, ("Sequential", "mean"), ("Sequential", "mean")]
    assert net.mean.dtype == torch.float64


class Twice(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


def test_backward_hooks_leave_a_named_tuple_what_it_is() -> None:
    class Pairs(nn.Module):
        def forward(self, x):
            return Twice(x * 2, x * 3)

    module, seen = Pairs(), []
    module.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append(len(grad_out)))
    result = module(value())
    assert type(result) is Twice
    result.second.backward()
    assert seen == [2]


@pytest.mark.parametrize("made", [lambda y: {"y": y}, lambda y: [y]])
def test_backward_hooks_are_not_called_for_other_containers(made) -> None:
    class Holds(nn.Module):
        def forward(self, x):
            return made(x * 2)

    module, seen, x = Holds(), [], value()
    module.register_full_backward_hook(lambda *args: seen.append(args))
    module.register_full_backward_pre_hook(lambda *args: seen.append(args))
    with pytest.warns(UserWarning, match="should be a Tensor or a tuple of Tensors but received"):
        result = module(x)
    (y,) = result.values() if isinstance(result, dict) else result
    y.backward()
    assert seen == [] and x.grad.item() == 2


def test_backward_hook_may_return_a_list() -> None:
    module, x = Scale(), value()
    module.register_full_backward_hook(lambda m, grad_in, grad_out: [grad_in[0] * 10])
    module(x).backward()
    assert x.grad.item() == 10


def test_forward_pre_hook_may_add_a_forward_hook_for_this_call() -> None:
    module, seen = Scale(), []

    def add(m, args):
        m.register_forward_hook(lambda m, args, out: seen.append(out.item()))

    with module.register_forward_pre_hook(add):
        module(value(), 3.0)
    assert seen == [6]


def test_forward_is_that_of_before_the_hooks() -> None:
    module = Scale()
    module.register_forward_pre_hook(lambda m, args: setattr(m, "forward", lambda x: x * 5))
    assert module(value()).item() == 2
    assert module(value()).item() == 10


def test_handle_gives_the_table_of_its_hook() -> None:
    layer = nn.Linear(2, 1)
    handle = layer.register_forward_hook(lambda *_: None)
    assert handle.id in handle.hooks_dict_ref()
    handle.remove()
    assert handle.id not in handle.hooks_dict_ref()


def test_handle_takes_its_entry_out_of_other_tables_too() -> None:
    hooks, extra, more = {}, {}, {}
    for tables in (extra, [extra, more]):
        handle = RemovableHandle(hooks, extra_dict=tables)
        hooks[handle.id] = extra[handle.id] = print
        handle.remove()
        assert hooks == extra == more == {}
