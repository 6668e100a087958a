"""Parameter and Buffer: sharing, copies and printing."""

import copy
import pickle

import pytest

import rushlight as torch
from rushlight import nn


def test_parameter_is_a_leaf_tensor_that_shares_memory() -> None:
    data = torch.zeros(2)
    parameter = nn.Parameter(data)
    data.fill_(3)
    assert isinstance(parameter, torch.Tensor)
    assert parameter.is_leaf
    assert parameter.requires_grad
    assert parameter.tolist() == [3, 3]


def test_parameter_without_data_is_empty() -> None:
    assert tuple(nn.Parameter().shape) == (0,)
    assert tuple(nn.Buffer().shape) == (0,)


def test_parameter_may_be_frozen() -> None:
    assert not nn.Parameter(torch.ones(1), requires_grad=False).requires_grad


def test_integers_cannot_require_grad() -> None:
    with pytest.raises(RuntimeError, match="floating point"):
        nn.Parameter(torch.tensor([1, 2]))
    assert not nn.Parameter(torch.tensor([1, 2]), requires_grad=False).requires_grad


def test_operations_on_parameters_return_plain_tensors() -> None:
    parameter = nn.Parameter(torch.ones(2))
    for result in (parameter * 2, parameter.detach(), parameter.data, parameter[0]):
        assert type(result) is torch.Tensor


def test_gradients_reach_the_parameter() -> None:
    parameter = nn.Parameter(torch.ones(2))
    (parameter * 3).sum().backward()
    assert parameter.grad.tolist() == [3, 3]


def test_deep_copy_is_an_independent_parameter_with_its_attributes() -> None:
    parameter = nn.Parameter(torch.ones(2), requires_grad=False)
    parameter.tag = ["decay"]
    twin = copy.deepcopy(parameter)
    parameter.fill_(5)
    assert type(twin) is nn.Parameter
    assert not twin.requires_grad
    assert twin.tolist() == [1, 1]
    assert twin.tag == ["decay"]
    assert twin.tag is not parameter.tag


def test_pickled_parameter_stays_a_parameter() -> None:
    parameter = nn.Parameter(torch.ones(2), requires_grad=False)
    parameter.tag = "decay"
    twin = pickle.loads(pickle.dumps(parameter))
    assert type(twin) is nn.Parameter
    assert not twin.requires_grad
    assert twin.tolist() == [1, 1]
    assert twin.tag == "decay"


def test_parameter_says_what_it_is() -> None:
    assert repr(nn.Parameter(torch.zeros(2))) == (
        "Parameter containing:\ntensor([0., 0.], requires_grad=True)"
    )


def test_buffer_remembers_whether_it_is_saved() -> None:
    module = nn.Module()
    module.kept = nn.Buffer(torch.ones(1))
    module.left_out = nn.Buffer(torch.ones(1), persistent=False)
    assert list(module.state_dict()) == ["kept"]
    assert not module.kept.requires_grad


class Marked(torch.Tensor):
    """Results keep the class."""


def test_parameter_of_a_tensor_subclass_keeps_its_class() -> None:
    data = torch.ones(2).as_subclass(Marked)
    parameter = nn.Parameter(data)
    assert type(parameter) is Marked and isinstance(parameter, nn.Parameter)
    assert parameter.requires_grad and parameter.is_leaf
    assert parameter.data_ptr() == data.data_ptr()
    assert not data.requires_grad and not isinstance(data, nn.Parameter)
    assert not isinstance(parameter * 2, nn.Parameter)


def test_module_registers_and_converts_a_parameter_of_a_subclass() -> None:
    module = nn.Module()
    module.scale = nn.Parameter(torch.ones(2).as_subclass(Marked))
    assert [name for name, _ in module.named_parameters()] == ["scale"]
    for same in (module, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert type(same.scale) is Marked and isinstance(same.scale, nn.Parameter)
    module.double()
    assert type(module.scale) is Marked and module.scale.dtype == torch.float64
    module.load_state_dict({"scale": torch.zeros(2)})
    assert type(module.scale) is Marked and module.scale.tolist() == [0, 0]


def test_parameter_of_a_subclass_whose_results_do_not_keep_it_is_a_parameter() -> None:
    class Plain(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    assert type(nn.Parameter(torch.ones(1).as_subclass(Plain))) is nn.Parameter
