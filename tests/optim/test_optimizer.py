"""Parameter groups, state dicts, hooks and copies: what all optimizers share."""

import copy
import pickle

import pytest

import rushlight as torch
from rushlight.optim import SGD, Adam, AdamW, Optimizer
from rushlight.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    required,
)


def parameter(*values):
    return torch.nn.Parameter(torch.tensor(values or (1.0, 2.0)))


def with_grad(*values):
    param = parameter(*values)
    param.grad = torch.ones_like(param)
    return param


class Descent(Optimizer):
    def __init__(self, params, lr=required):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for param in group["params"]:
                param -= group["lr"] * param.grad


def test_groups_take_their_own_options_and_the_defaults() -> None:
    optimizer = SGD([{"params": [parameter()], "lr": 0.5}, {"params": parameter()}], momentum=0.9)
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 1e-3]
    assert [group["momentum"] for group in optimizer.param_groups] == [0.9, 0.9]
    assert [len(group["params"]) for group in optimizer.param_groups] == [1, 1]


def test_named_parameters_keep_their_names_in_the_state_dict() -> None:
    optimizer = SGD([("a", parameter()), ("b", parameter())], lr=0.1)
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["a", "b"]
    with pytest.raises(ValueError, match="with/without names"):
        optimizer.add_param_group({"params": [parameter()]})


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ([], ValueError, "optimizer got an empty parameter list"),
        (torch.zeros(1), TypeError, "params argument given to the optimizer should be an iterable"),
        ([1.0], TypeError, "optimizer can only optimize Tensors, but one of the params is float"),
        ([{"params": {torch.zeros(1)}}], TypeError, "ordered collections"),
        ([{"params": torch.zeros(1)}, "x"], TypeError, "param_group must be a dict"),
        ([("a", torch.zeros(1)), torch.zeros(1)], ValueError, "some param names are missing"),
    ],
)
def test_bad_parameters_are_refused(params, error, message) -> None:
    with pytest.raises(error, match=message):
        SGD(params, lr=0.1)


def test_a_module_in_place_of_its_parameters_is_refused() -> None:
    with pytest.raises(TypeError, match=r"but got Linear\. Pass .* model\.parameters\(\)"):
        SGD(torch.nn.Linear(2, 1), lr=0.1)


def test_a_tensor_with_a_history_is_refused() -> None:
    with pytest.raises(ValueError, match="can't optimize a non-leaf Tensor"):
        SGD([parameter() * 2], lr=0.1)


def test_a_parameter_in_two_groups_is_refused() -> None:
    param = parameter()
    with pytest.raises(ValueError, match="appear in more than one parameter group"):
        SGD([{"params": [param]}, {"params": [param]}], lr=0.1)


def test_a_parameter_twice_in_a_group_warns() -> None:
    param = parameter()
    with pytest.warns(UserWarning, match="duplicate parameters"):
        SGD([param, param], lr=0.1)


def test_a_required_option_must_be_given() -> None:
    with pytest.raises(ValueError, match="didn't specify a value of required optimization"):
        Descent([parameter()])
    assert Descent([{"params": parameter(), "lr": 1.0}]).param_groups[0]["lr"] == 1.0


def test_zero_grad_drops_or_zeroes_gradients() -> None:
    param, without = with_grad(), parameter()
    optimizer = SGD([param, without], lr=0.1)
    grad = param.grad
    optimizer.zero_grad(set_to_none=False)
    assert param.grad is grad
    assert grad.tolist() == [0.0, 0.0]
    assert without.grad is None
    optimizer.zero_grad()
    assert param.grad is None


def test_zeroed_gradients_lose_their_history() -> None:
    param = parameter()
    (grad,) = torch.autograd.grad((param**2).sum(), param, create_graph=True)
    param.grad = grad
    SGD([param], lr=0.1).zero_grad(set_to_none=False)
    assert not param.grad.requires_grad
    assert param.grad.tolist() == [0.0, 0.0]


def test_the_closure_runs_with_gradients_and_its_loss_is_returned() -> None:
    param = parameter()
    optimizer = SGD([param], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = param.sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 3.0
    assert param.tolist() == [0.5, 1.5]
    assert optimizer.step() is None


@pytest.mark.parametrize("cls", [SGD, Adam, AdamW])
def test_a_step_changes_parameters_in_place_and_backward_notices(cls) -> None:
    param = parameter()
    memory = param.data_ptr()
    loss = (param**2).sum()
    param.grad = torch.ones_like(param)
    cls([param], lr=0.5).step()
    assert param.data_ptr() == memory
    assert param.is_leaf
    with pytest.raises(RuntimeError, match=r"in place|inplace"):
        loss.backward()


def test_parameters_without_gradient_stay() -> None:
    params = [with_grad(), parameter()]
    Adam(params, lr=0.5).step()
    assert params[0].tolist() != [1.0, 2.0]
    assert params[1].tolist() == [1.0, 2.0]


def test_hooks_run_around_a_step_and_can_be_removed() -> None:
    param = with_grad()
    seen = []
    optimizer = SGD([param], lr=1.0)
    before = optimizer.register_step_pre_hook(lambda *_: seen.append(param.tolist()))
    with optimizer.register_step_post_hook(lambda *_: seen.append(param.tolist())):
        optimizer.step()
    assert seen == [[1.0, 2.0], [0.0, 1.0]]
    optimizer.step()
    assert len(seen) == 3
    before.remove()
    before.remove()
    optimizer.step()
    assert len(seen) == 3


@pytest.mark.parametrize("kind", [Adam, torch.optim.NAdam, torch.optim.ASGD])
def test_values_of_programs_in_the_state_are_saved_and_loaded(kind) -> None:
    params = [torch.nn.Parameter(torch.ones(2))]
    optimizer, other = kind(params), kind(params)
    optimizer.state["seen"] = 3
    other.load_state_dict(optimizer.state_dict())
    assert other.state["seen"] == 3


def test_a_pre_hook_can_replace_the_arguments_of_step() -> None:
    optimizer = SGD([with_grad()], lr=1.0)
    seen = []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((*args, lambda: 7.0), kwargs))
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(args[0]))
    assert optimizer.step() == 7.0 and seen == [optimizer]
    optimizer.register_step_pre_hook(lambda *_: 3)
    with pytest.raises(RuntimeError, match="a pre-hook returned 3"):
        optimizer.step()


def test_hooks_run_once_where_a_subclass_extends_step() -> None:
    class Counting(Descent):
        def step(self, closure=None):
            return super().step(closure)

    seen = []
    optimizer = Counting([with_grad()], lr=1.0)
    optimizer.register_step_post_hook(lambda *_: seen.append("after"))
    optimizer.step()
    assert seen == ["after"]


def test_a_wrapper_that_never_called_init_steps_and_takes_hooks():
    class Twice(Optimizer):
        def __init__(self, base):
            self.base, self.param_groups = base, base.param_groups

        def step(self, closure=None):
            self.base.step()
            self.base.step()

    weight = with_grad(1.0)
    twice, other = (Twice(SGD([weight], lr=0.25)) for _ in range(2))
    seen = []
    twice.register_step_post_hook(lambda optimizer, args, kwargs: seen.append(optimizer))
    twice.step()
    other.step()
    assert weight.tolist() == [0.0] and seen == [twice]
    with pytest.raises(AttributeError, match="'Twice' object has no attribute 'nothing'"):
        _ = twice.nothing


def test_hooks_of_all_optimizers_run_around_those_of_one() -> None:
    seen = []

    def note(name):
        return lambda *_: seen.append(name)

    optimizer = SGD([with_grad()], lr=1.0)
    optimizer.register_step_pre_hook(note("before"))
    optimizer.register_step_post_hook(note("after"))
    with (
        register_optimizer_step_pre_hook(note("before all")),
        register_optimizer_step_post_hook(note("after all")),
    ):
        optimizer.step()
    optimizer.step()
    assert seen == ["before all", "before", "after", "after all", "before", "after"]


def test_hooks_run_around_state_dict_and_may_replace_it() -> None:
    optimizer = SGD([parameter()], lr=0.1)
    seen = []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("second"))
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "note": 1})
    handle = optimizer.register_state_dict_post_hook(lambda o, state: state.update(other=2))
    assert optimizer.state_dict()["note"] == 1
    assert optimizer.state_dict()["other"] == 2
    assert seen == ["first", "second"] * 2
    handle.remove()
    assert "other" not in optimizer.state_dict()


def test_hooks_run_around_load_state_dict_and_may_replace_it() -> None:
    optimizer = SGD([parameter()], lr=0.1)
    saved = SGD([parameter()], lr=0.2).state_dict()
    other = SGD([parameter()], lr=0.3).state_dict()
    rates = []
    optimizer.register_load_state_dict_post_hook(lambda o: rates.append(o.param_groups[0]["lr"]))
    optimizer.load_state_dict(saved)
    with optimizer.register_load_state_dict_pre_hook(lambda o, state: other):
        optimizer.load_state_dict(saved)
    # What the hook gets is a shallow copy.
    optimizer.register_load_state_dict_pre_hook(lambda o, state: state.update(extra=1))
    optimizer.load_state_dict(saved)
    assert rates == [0.2, 0.3, 0.2]
    assert "extra" not in saved


def test_parameters_and_state_can_be_swapped_for_a_while() -> None:
    param, other = with_grad(1.0), with_grad(5.0)
    optimizer = SGD([param], lr=1.0, momentum=0.5)
    optimizer.step()
    saved = optimizer.state_dict()
    with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"other": other}, saved):
        optimizer.step()
    assert (param.item(), other.item()) == (0.0, 3.5)
    assert optimizer.param_groups[0]["params"] == [param]
    assert list(optimizer.state) == [param]
    optimizer.step()
    # The buffer, which is not copied, has been through both steps.
    assert param.item() == -1.75


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state["param_groups"].pop(), "has 0 parameter groups"),
        (lambda state: state["param_groups"][0].pop("lr"), "They must be the same"),
        (lambda state: state["param_groups"][0].update(params=[0, 1]), "has 2 parameters"),
        (lambda state: state["state"].update({7: {}}), "not positions of parameters"),
        (lambda state: state.pop("state"), "has no dict 'state'"),
    ],
)
def test_a_swap_of_what_does_not_fit_is_refused(change, message) -> None:
    param = with_grad(1.0)
    optimizer = SGD([param], lr=1.0, momentum=0.5)
    swap = torch.optim.swap_in_optimizer_params_and_state
    with pytest.raises(RuntimeError, match="has no state"), swap(optimizer, {}, {}):
        pass
    optimizer.step()
    with (
        pytest.raises(RuntimeError, match="got 0 parameters"),
        swap(optimizer, {}, optimizer.state_dict()),
    ):
        pass
    saved = copy.deepcopy(optimizer.state_dict())
    change(saved)
    with pytest.raises(RuntimeError, match=message), swap(optimizer, {"p": param}, saved):
        pass
    assert optimizer.param_groups[0]["params"] == [param]


def test_state_dict_names_parameters_by_position_across_groups() -> None:
    params = [with_grad(), parameter(), with_grad()]
    optimizer = SGD([{"params": params[:2]}, {"params": params[2:]}], lr=0.1, momentum=0.9)
    optimizer.step()
    saved = optimizer.state_dict()
    assert [group["params"] for group in saved["param_groups"]] == [[0, 1], [2]]
    assert {k: list(v) for k, v in saved["state"].items()} == {
        0: ["momentum_buffer"],
        2: ["momentum_buffer"],
    }


@pytest.mark.parametrize(
    ("cls", "options"),
    [(SGD, {"momentum": 0.9}), (Adam, {"amsgrad": True}), (AdamW, {"weight_decay": 0.1})],
)
def test_a_loaded_state_continues_exactly(cls, options) -> None:
    first, second = with_grad(), with_grad()
    one = cls([first], lr=0.1, **options)
    for _ in range(3):
        one.step()
    two = cls([second], lr=99.0, **options)
    two.load_state_dict(copy.deepcopy(one.state_dict()))
    assert two.param_groups[0]["lr"] == 0.1
    assert two.param_groups[0]["params"][0] is second
    second.data.copy_(first.data)
    one.step()
    two.step()
    assert torch.equal(first, second)


def test_loaded_state_takes_the_dtype_of_the_parameter_but_steps_stay() -> None:
    source = Adam([with_grad()])
    source.step()
    param = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
    target = Adam([param])
    target.load_state_dict(source.state_dict())
    state = target.state_dict()["state"][0]
    assert state["exp_avg"].dtype == torch.float64
    assert state["step"].dtype == torch.float32


def test_the_count_of_steps_is_a_tensor_that_programs_may_read_and_replace():
    param, late = parameter(), parameter()
    optim = torch.optim
    kinds = (optim.Adam, optim.NAdam, optim.ASGD, optim.RMSprop, optim.Adagrad, optim.Adafactor)
    for kind in kinds:
        optimizer = kind([param, late], lr=0.1)
        param.grad, late.grad = torch.ones(2), None
        optimizer.step()
        late.grad = torch.ones(2)
        optimizer.step()
        step = optimizer.state[param]["step"]
        assert (step.item(), optimizer.state[late]["step"].item()) == (2.0, 1.0), kind
        assert (step.dtype, step.shape, step.device.type) == (torch.float32, (), "cpu")
        assert optimizer.state_dict()["state"][0]["step"] is step
        optimizer.state[param]["step"] = 7  # a number, as in files of long ago
        optimizer.state[late]["step"] = torch.tensor([7.0], dtype=torch.float64)
        optimizer.step()
        assert [float(optimizer.state[p]["step"]) for p in (param, late)] == [8.0, 8.0]
        other = kind([param, late], lr=0.1)
        other.load_state_dict(optimizer.state_dict())
        other.step()
        assert optimizer.state[late]["step"].item() == 8.0
        assert other.state[late]["step"].item() == 9.0
        del optimizer.state[param]["step"]
        with pytest.raises(KeyError, match="step"):
            optimizer.step()


def test_options_that_a_file_lacks_take_their_defaults():
    optimizer = SGD([parameter()], lr=0.1)
    saved = optimizer.state_dict()
    del saved["param_groups"][0]["maximize"]
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["maximize"] is False


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ([[1.0], [1.0]], "different number of parameter groups: 1, but the optimizer has 2"),
        ([[1.0, 2.0]], r"its groups have \[1\] parameters, but the optimizer's have \[2\]"),
    ],
)
def test_a_state_dict_of_other_groups_is_refused(params, message) -> None:
    saved = SGD([parameter()], lr=0.1).state_dict()
    groups = [{"params": [parameter(value) for value in group]} for group in params]
    with pytest.raises(ValueError, match=message):
        SGD(groups, lr=0.1).load_state_dict(saved)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copies_train_their_own_parameters(duplicate) -> None:
    param = with_grad()
    optimizer = Adam([param], lr=0.5)
    optimizer.step()
    twin = duplicate(optimizer)
    (twin_param,) = twin.param_groups[0]["params"]
    assert twin_param is not param
    assert torch.equal(twin_param, param)
    before = param.tolist()
    twin_param.grad = torch.ones_like(param)
    twin.step()
    assert param.tolist() == before
    optimizer.step()
    assert torch.equal(twin_param, param)


def test_the_representation_lists_the_options_of_each_group() -> None:
    assert repr(Descent([{"params": parameter(), "lr": 1}, {"params": parameter(), "lr": 2}])) == (
        "Descent (\nParameter Group 0\n    lr: 1\n\nParameter Group 1\n    lr: 2\n)"
    )


def test_lr_may_be_a_one_element_tensor() -> None:
    param = with_grad()
    SGD([param], lr=torch.tensor(0.5)).step()
    assert param.tolist() == [0.5, 1.5]
    with pytest.raises(ValueError, match="Tensor lr must be 1-element"):
        SGD([param], lr=torch.ones(2))


@pytest.mark.parametrize("cls", [SGD, Adam, AdamW])
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"lr": -1.0}, ValueError, "Invalid learning rate: -1.0"),
        ({"lr": float("nan")}, ValueError, "Invalid learning rate: nan"),
        ({"weight_decay": -0.5}, ValueError, "Invalid weight_decay value: -0.5"),
        ({"foreach": True, "fused": True}, RuntimeError, "cannot be `True` together"),
        ({"fused": True, "differentiable": True}, RuntimeError, "does not support `differ"),
    ],
)
def test_bad_options_are_refused(cls, options, error, message) -> None:
    with pytest.raises(error, match=message):
        cls([parameter()], **options)


@pytest.mark.parametrize("cls", [Adam, AdamW])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"betas": (0.9, torch.tensor(0.99))}, "both floats or both Tensors"),
        ({"lr": torch.tensor(0.1), "foreach": True}, "not supported for capturable=False"),
        (
            {"betas": (torch.tensor(0.9), torch.tensor(0.99)), "foreach": True},
            "not supported for capturable=False",
        ),
    ],
)
def test_options_that_may_not_be_tensors(cls, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        cls([parameter()], **options)


@pytest.mark.parametrize("cls", [SGD, Adam, AdamW])
def test_a_fused_step_wants_memory(cls) -> None:
    param = torch.nn.Parameter(torch.ones(2, device="meta"))
    param.grad = torch.ones(2, device="meta")
    cls([param]).step()
    with pytest.raises(RuntimeError, match="`fused=True` requires all the params"):
        cls([param], fused=True).step()


@pytest.mark.parametrize(("cls", "options"), [(SGD, {"momentum": 0.9}), (Adam, {})])
def test_complex_parameters_are_pairs_of_real_ones(cls, options) -> None:
    pairs = torch.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=torch.float64)
    real = torch.nn.Parameter(pairs.clone())
    whole = torch.nn.Parameter(pairs.clone().view(torch.complex128))
    optimizer = cls([real, whole], lr=0.1, **options)
    for grad in (pairs * 2, pairs - 1):
        real.grad = grad.clone()
        whole.grad = grad.clone().view(torch.complex128)
        optimizer.step()
    assert torch.equal(whole.detach().view(torch.float64), real)


@pytest.mark.parametrize("cls", [SGD, Adam, AdamW])
def test_the_order_of_elements_in_memory_does_not_matter(cls) -> None:
    values = torch.arange(6.0).reshape(2, 3)
    grads = values + 1
    plain = torch.nn.Parameter(values.clone())
    plain.grad = grads.clone()
    turned = torch.nn.Parameter(values.t().contiguous().t())
    turned.grad = grads.clone()
    other = torch.nn.Parameter(values.clone())
    other.grad = grads.t().contiguous().t()
    optimizer = cls([plain, turned, other], lr=0.1)
    optimizer.step()
    optimizer.step()
    assert not turned.is_contiguous()
    assert torch.equal(turned, plain)
    assert torch.equal(other, plain)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_parameters_stay_half(dtype) -> None:
    param = torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=dtype))
    param.grad = torch.tensor([0.5, 1.0], dtype=dtype)
    optimizer = Adam([param], lr=0.25)
    optimizer.step()
    assert param.dtype == dtype
    assert param.tolist() == [0.75, -2.25]
    assert optimizer.state[param]["exp_avg"].dtype == dtype
