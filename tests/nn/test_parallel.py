"""DataParallel and its parts without a GPU; tests/cuda/test_data_parallel.py has them on GPUs."""

import pickle

import pytest

import rushlight as torch
from rushlight.nn import parallel


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_the_module_is_called() -> None:
    layer = torch.nn.Linear(2, 3)
    model = torch.nn.DataParallel(layer, dim=1)
    x = torch.ones(4, 2)
    assert torch.equal(model(x), layer(x))
    assert model.device_ids == []
    assert list(model.state_dict()) == ["module.weight", "module.bias"]
    assert repr(model).startswith("DataParallel(\n  (module): Linear(")
    copy = pickle.loads(pickle.dumps(model))
    assert torch.equal(copy(x), layer(x))
    model(x).sum().backward()
    assert layer.weight.grad is not None


@pytest.mark.usefixtures("no_gpu")
def test_the_function_asks_for_a_gpu() -> None:
    with pytest.raises(RuntimeError, match="device type could not be determined"):
        parallel.data_parallel(torch.nn.Linear(2, 3), torch.ones(1, 2))


def test_tensors_on_the_cpu_are_not_gathered() -> None:
    with pytest.raises(AssertionError, match="not implemented for CPU tensors"):
        parallel.gather([torch.ones(2), torch.ones(2)], 0)


def test_what_holds_no_tensors_goes_to_all() -> None:
    assert parallel.scatter([1, ("a", None)], [0, 1]) == [[1, ("a", None)]] * 2
    assert parallel.scatter({}, [0, 1]) == [{}, {}]
    assert parallel.scatter({"a": (1, "b")}, [0, 1]) == [{"a": (1, "b")}] * 2


def test_lists_of_different_lengths_are_refused() -> None:
    layer = torch.nn.Linear(2, 3)
    with pytest.raises(AssertionError, match="modules 1 is not equal to the number of inputs 2"):
        parallel.parallel_apply([layer], [1, 2])
    with pytest.raises(AssertionError, match="is not equal to the number of devices 2"):
        parallel.parallel_apply([layer], [1], devices=[0, 1])


def test_names_of_pytorch_lead_here() -> None:
    assert torch.nn.parallel.DataParallel is torch.nn.DataParallel
    assert torch.cuda.comm.gather is torch.nn.parallel.comm.gather
