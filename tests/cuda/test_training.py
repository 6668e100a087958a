"""What a training run does around the kernels: making, moving, updating and saving tensors."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is neither GPU nor shim"
)

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda params: torch.optim.SGD(params, lr=0.1),
    "momentum": lambda params: torch.optim.SGD(
        params, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.1
    ),
    "nesterov": lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda params: torch.optim.Adam(params, lr=0.1, weight_decay=0.1, maximize=True),
    "adamw": lambda params: torch.optim.AdamW(params, lr=0.1, amsgrad=True),
    "rmsprop": lambda params: torch.optim.RMSprop(params, lr=0.1, momentum=0.9, centered=True),
    "adagrad": lambda params: torch.optim.Adagrad(params, lr=0.1, weight_decay=0.1),
    "adadelta": lambda params: torch.optim.Adadelta(params, maximize=True),
    "adamax": lambda params: torch.optim.Adamax(params, lr=0.1),
    "nadam": lambda params: torch.optim.NAdam(params, lr=0.1, weight_decay=0.1),
    "radam": lambda params: torch.optim.RAdam(params, lr=0.1, betas=(0.9, 0.6)),
    "asgd": lambda params: torch.optim.ASGD(params, lr=0.1, t0=0),
    "rprop": lambda params: torch.optim.Rprop(params, lr=0.1),
}


def trained(make: Callable[[Any], Any], dtype: Any, device: str) -> list[Any]:
    """Parameters of many shapes after three steps: more than one launch holds, and odd layouts."""
    torch.manual_seed(1)
    shapes = [(3,), (5, 7), (9001,), (), (0,), (4096,), *((n,) for n in range(70))]
    params = [torch.randn(shape, dtype=dtype, device=device) for shape in shapes]
    params.append(torch.randn(6, 4, dtype=dtype, device=device).t())
    params.append(torch.randn(100, dtype=dtype, device=device)[1:])
    for param in params:
        param.requires_grad_()
    optimizer = make(params)
    for _ in range(3):
        for param in params:
            param.grad = torch.randn(param.shape, dtype=dtype, device=device)
        params[1].grad = torch.randn(7, 5, dtype=dtype, device=device).t()
        optimizer.step()
    return [param.detach().cpu() for param in params]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_optimizers_step_as_on_the_cpu(make: Callable[[Any], Any], dtype: Any) -> None:
    mine, expected = trained(make, dtype, "cuda"), trained(make, dtype, "cpu")
    assert all(torch.equal(a, b) for a, b in zip(mine, expected, strict=True))


def test_optimizers_refuse_gradients_of_another_device() -> None:
    param = torch.ones(3, device="cuda", requires_grad=True)
    with pytest.raises(RuntimeError, match="on cpu"):
        torch._C._fused_sgd_(
            [param.detach()], [torch.ones(3)], [], 0.1, 0, 0, 0, False, False, True
        )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("order", [1, 2, float("inf")])
def test_norms_of_many_tensors_are_close_to_those_of_the_cpu(order: float, dtype: Any) -> None:
    torch.manual_seed(2)
    shapes = [(3,), (), (5, 7), (4096,), (4097,), (9, 5000), *((n,) for n in range(1, 70))]
    tensors = [torch.randn(shape, dtype=torch.float64).to(dtype) for shape in shapes]
    tensors += [tensors[5].t(), tensors[3][1:]]
    mine = torch._foreach_norm([t.cuda() for t in tensors], order)
    expected = torch._foreach_norm([t.double() for t in tensors], order)
    for a, b in zip(mine, expected, strict=True):
        assert (a.shape, a.dtype) == ((), dtype)
        torch.testing.assert_close(a.cpu(), b.to(dtype))
    wrong = [torch.ones(9000, device="cuda"), torch.tensor([1.0, float("nan"), 2.0], device="cuda")]
    good, bad = torch._foreach_norm(wrong, order)
    assert good.item() == torch._foreach_norm([torch.ones(9000)], order)[0].item()
    assert bad.cpu().isnan()


SEQUENCES = {
    "arange": lambda dtype, v: torch.arange(3, 100, 4, dtype=dtype, device=v),
    "arange down": lambda dtype, v: torch.arange(100, 3, -4, dtype=dtype, device=v),
    "linspace": lambda dtype, v: torch.linspace(1, 100, 777, dtype=dtype, device=v),
    "one": lambda dtype, v: torch.linspace(1, 100, 1, dtype=dtype, device=v),
    "none": lambda dtype, v: torch.linspace(1, 100, 0, dtype=dtype, device=v),
    "eye": lambda dtype, v: torch.eye(5, 7, dtype=dtype, device=v),
    "tril_indices": lambda dtype, v: torch.tril_indices(5, 7, 1, dtype=dtype, device=v),
    "triu_indices": lambda dtype, v: torch.triu_indices(5, 7, 1, dtype=dtype, device=v),
    "full": lambda dtype, v: torch.full((3, 5), 2, dtype=dtype, device=v),
    "ones_like": lambda dtype, v: torch.ones_like(torch.zeros(3, 5, dtype=dtype, device=v).t()),
    "new_full": lambda dtype, v: torch.zeros(2, dtype=dtype, device=v).new_full((3,), 7),
    "new_ones": lambda dtype, v: torch.zeros(2, dtype=dtype, device=v).new_ones(3),
}


@pytest.mark.parametrize("dtype", [*FLOATS, torch.uint8, torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("make", SEQUENCES.values(), ids=SEQUENCES)
def test_tensors_are_made_as_on_the_cpu(make: Callable[..., Any], dtype: Any) -> None:
    mine, expected = make(dtype, "cuda"), make(dtype, "cpu")
    assert mine.device == torch.device("cuda", torch.cuda.current_device())
    assert (mine.dtype, mine.stride()) == (expected.dtype, expected.stride())
    assert torch.equal(mine.cpu(), expected)


def test_powers_are_close_to_those_of_the_cpu() -> None:
    mine = torch.logspace(-2, 3, 99, base=3, device="cuda")
    torch.testing.assert_close(mine.cpu(), torch.logspace(-2, 3, 99, base=3))


def test_the_default_device_can_be_a_gpu() -> None:
    with torch.device("cuda"):
        made = [torch.rand(2), torch.tensor([1, 2]), torch.arange(3), torch.nn.Linear(2, 3).weight]
        assert all(t.device == torch.device("cuda", 0) for t in made)
        assert torch.get_default_device() == torch.device("cuda", 0)
        assert torch.ones(2, device="cpu").device.type == "cpu"
    assert torch.rand(2).device.type == "cpu"


def model() -> Any:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))


def test_modules_move_and_keep_their_parameters() -> None:
    net = model()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    weight = net[0].weight
    assert net.to("cuda") is net
    assert net[0].weight is weight and weight.is_cuda and weight.requires_grad
    assert all(value.is_cuda for value in net.state_dict().values())
    other = model().cuda()
    with torch.no_grad():
        other[0].weight.zero_()
    other.load_state_dict(before)  # from the CPU
    net.cpu()
    other.cpu()
    for name, value in before.items():
        assert torch.equal(net.state_dict()[name], value)
        assert torch.equal(other.state_dict()[name], value)


def saved(obj: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return file


def test_tensors_are_loaded_where_they_were_saved() -> None:
    x = torch.arange(6, device="cuda").reshape(2, 3)
    y = torch.load(saved([x, x[1]]))
    assert y[0].device == x.device and torch.equal(y[0].cpu(), x.cpu())
    assert y[0].data_ptr() + 24 == y[1].data_ptr()
    here = torch.load(saved(x), map_location="cpu")
    assert here.device.type == "cpu" and torch.equal(here, x.cpu())
    there = torch.load(saved(x.cpu()), map_location="cuda")
    assert there.device == x.device
    by_name = torch.load(saved(x), map_location={"cuda:0": "cpu"})
    assert by_name.device.type == "cpu"
    by_function = torch.load(saved(x), map_location=lambda storage, location: storage)
    assert by_function.device.type == "cpu"
    net = torch.nn.Linear(3, 4).cuda()
    state = torch.load(saved(net.state_dict()), map_location=torch.device("cpu"))
    assert all(value.device.type == "cpu" for value in state.values())


def test_a_gpu_that_is_missing_is_told_when_loading(run_python, tmp_path) -> None:
    torch.save(torch.ones(2, device="cuda"), tmp_path / "x.pt")
    said = run_python(
        """
        import sys
        import rushlight as torch
        try:
            torch.load(sys.argv[1])
        except RuntimeError as error:
            print(error)
        assert torch.load(sys.argv[1], map_location="cpu").tolist() == [1, 1]
        """,
        str(tmp_path / "x.pt"),
        RUSHLIGHT_CUDA_DRIVER="/nowhere/libcuda.so",
    )
    assert said == (
        "load: Attempting to deserialize object on a CUDA device but "
        "torch.cuda.is_available() is False. If you are running on a CPU-only machine, please use "
        "torch.load with map_location=torch.device('cpu') to map your storages to the CPU.\n"
    )
