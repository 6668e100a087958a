"""Insides of PyTorch that torchao and others import: what they do, or why not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import _insides
from rushlight._decomp import core_aten_decompositions, get_decompositions
from rushlight._dynamo.utils import disable_cache_limit
from rushlight._higher_order_ops.inline_asm_elementwise import inline_asm_elementwise
from rushlight._higher_order_ops.out_dtype import out_dtype
from rushlight._inductor.decomposition import register_decomposition
from rushlight._library.infer_schema import infer_schema
from rushlight._prims_common import suggest_memory_format
from rushlight.amp import grad_scaler
from rushlight.ao.quantization.fx._decomposed import _per_token_quant_qparam_dim_check
from rushlight.autograd import functional
from rushlight.distributed._functional_collectives import AsyncCollectiveTensor
from rushlight.distributed._shard.sharded_tensor import ShardedTensor
from rushlight.distributed._tensor import device_mesh
from rushlight.distributed.checkpoint import api, planner, storage, utils
from rushlight.distributed.fsdp._common_utils import clean_tensor_name
from rushlight.distributed.fsdp._runtime_utils import _post_backward_final_callback
from rushlight.distributed.tensor.experimental import register_sharding
from rushlight.optim import lbfgs
from rushlight.profiler import _memory_profiler
from rushlight.sparse import _triton_ops, _triton_ops_meta

aten: Any = torch.ops.aten


@pytest.mark.parametrize(
    ("op", "dtype", "args", "expected"),
    [
        (aten.mm.default, torch.int32, (torch.int8, torch.int8), torch.int32),
        (aten.mm.default, torch.float32, (torch.bfloat16, torch.bfloat16), torch.float32),
        (aten.mul.Tensor, torch.int16, (torch.int8, torch.int32), torch.int16),
    ],
)
def test_ops_give_another_dtype(op: Any, dtype: Any, args: tuple[Any, Any], expected: Any) -> None:
    a, b = (torch.full((4, 4), 100).to(kind) for kind in args)
    result = out_dtype(op, dtype, a, b)
    assert result.dtype == expected
    assert result.tolist() == op(a.double(), b.double()).to(expected).tolist()
    with pytest.raises(ValueError, match="must be an OpOverload"):
        out_dtype(torch.mm, dtype, a, b)  # pyright: ignore[reportArgumentType]


def image(*shape: int) -> torch.Tensor:
    last = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
    return torch.ones(shape).to(memory_format=last)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (torch.ones(2, 3, 4, 5), torch.contiguous_format),
        (image(2, 3, 4, 5), torch.channels_last),
        (image(2, 3, 4, 5)[:, :2, ::2], torch.channels_last),
        (image(2, 3, 4, 5, 6), torch.channels_last_3d),
        (image(2, 3, 4, 5)[0], torch.contiguous_format),
        (torch.ones(2, 1, 1, 1), torch.contiguous_format),
        (image(2, 0, 4, 5), torch.contiguous_format),
        (torch.ones(2, 1, 4, 5).expand(2, 3, 4, 5), torch.contiguous_format),
        (torch.ones(2, 3).to_sparse(), torch.contiguous_format),
    ],
)
def test_formats_that_strides_suggest(x: torch.Tensor, expected: torch.memory_format) -> None:
    assert suggest_memory_format(x) == expected


def test_tokens_have_numbers_that_quantize_them() -> None:
    x, right, wrong = torch.ones(2, 3, 4), torch.ones(2, 3, 1), torch.ones(3)
    _per_token_quant_qparam_dim_check(x, right, right)
    for numbers in ((wrong, right), (right, wrong)):
        with pytest.raises(AssertionError, match="num_tokens: 6"):
            _per_token_quant_qparam_dim_check(x, *numbers)


def test_what_is_asked_and_answered() -> None:
    x = torch.ones(2)
    none = (AsyncCollectiveTensor, ShardedTensor, torch.sparse.SparseSemiStructuredTensor)
    assert not isinstance(x, none)
    assert torch._has_compatible_shallow_copy_type(x, torch.ones(3))
    assert not torch._has_compatible_shallow_copy_type(x, x.to_sparse())
    assert _triton_ops_meta.get_meta("bsr_dense_addmm", (1, 2), exact=True) is None
    assert register_decomposition([aten.mm])(len) is len
    assert core_aten_decompositions() == get_decompositions([aten.silu]) == {}
    with disable_cache_limit():
        assert infer_schema is torch.library.infer_schema
    assert _insides._get_privateuse1_backend_name() == "privateuseone"
    seen: list[bool] = []
    torch.jit.trace(lambda x: (seen.append(_insides._is_tracing()), x + 1)[1], x, check_trace=False)
    assert seen[0] and not _insides._is_tracing()
    assert _insides.Tag.needs_fixed_stride_order.name == "needs_fixed_stride_order"
    for name in "avx2", "avx512", "vnni", "amx_tile":
        assert getattr(_insides._cpu, f"_is_{name}_supported")() in (True, False)


def test_checkpoints_and_wrapped_modules() -> None:
    checkpoint: Any = torch.distributed.checkpoint
    assert isinstance(checkpoint.DefaultSavePlanner(), planner.SavePlanner)
    assert isinstance(checkpoint.DefaultLoadPlanner(), planner.LoadPlanner)
    assert not isinstance(checkpoint.DefaultLoadPlanner(), (planner.LoadPlan, planner.SavePlan))
    assert issubclass(checkpoint.FileSystemReader, storage.StorageReader)
    assert utils.CheckpointException is api.CheckpointException is checkpoint.CheckpointException
    assert device_mesh.DeviceMesh is torch.distributed.device_mesh.DeviceMesh
    assert clean_tensor_name("a._fsdp_wrapped_module.b") == "a.b"
    scaler = grad_scaler.GradScaler("cpu")
    state = grad_scaler._refresh_per_optimizer_state()
    assert state == scaler._per_optimizer_states[0] and state["found_inf_per_device"] == {}
    assert not _memory_profiler._CATEGORY_TO_COLORS and not _memory_profiler._CATEGORY_TO_INDEX


def test_processors_whose_files_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_insides._cpu, "Path", lambda name: type("", (), {"read_text": fail})())
    _insides._cpu._flags.cache_clear()
    assert not _insides._cpu._is_avx2_supported()
    _insides._cpu._flags.cache_clear()


def fail(*args: Any, **kwargs: Any) -> None:
    raise FileNotFoundError


OPERATORS: Any = torch.ops


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (inline_asm_elementwise, "instructions are not compiled here"),
        (lambda: F.scaled_grouped_mm(torch.ones(2, 2), torch.ones(2, 2)), "no product here"),
        (_triton_ops.bsr_dense_addmm, "no kernels of Triton"),
        (_triton_ops_meta.minimize, "no kernels of Triton"),
        (_triton_ops_meta.update, "no kernels of Triton"),
        (lambda: torch.sparse.to_sparse_semi_structured(torch.ones(4, 4)), "two zeros in four"),
        (torch.sparse.SparseSemiStructuredTensorCUTLASS, "two zeros in four"),
        (torch.sparse.SparseSemiStructuredTensorCUSPARSELT, "two zeros in four"),
        (lambda: register_sharding(aten.mm.default), "local_map"),
        (lambda: _post_backward_final_callback(None, None), "Make the model anew"),
        (lambda: _memory_profiler.MemoryProfileTimeline(None), "profile_memory"),
        (lambda: OPERATORS._c10d_functional.wait_tensor(torch.ones(2)), "no kernel"),
    ],
)
def test_what_is_not_here_says_so(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(NotImplementedError, match=message):
        call()


@pytest.mark.parametrize(
    "name",
    [
        "_c10d_functional._wrap_tensor_autograd",
        "_c10d_functional.all_gather_into_tensor",
        "c10d.scatter_",
        "c10d_functional.all_gather_into_tensor",
        "c10d_functional.wait_tensor",
    ],
)
def test_operators_that_libraries_list(name: str) -> None:
    namespace, op = name.split(".")
    found = getattr(getattr(torch.ops, namespace), op).default
    assert {found: 1}[getattr(getattr(torch.ops, namespace), op).default] == 1
    assert not hasattr(getattr(torch.ops, namespace), "no_such_operator")


def test_jacobians_that_libraries_compute() -> None:
    x, y = torch.arange(3.0, requires_grad=True), torch.ones(2, requires_grad=True)
    units = functional._construct_standard_basis_for((x, y.double()), (3, 2))
    assert torch.cat([unit.double() for unit in units], 1).equal(torch.eye(5).double())
    assert [unit.dtype for unit in units] == [torch.float32, torch.float64]
    assert functional._as_tuple(x, "inputs", "f") == (False, (x,))
    assert functional._as_tuple((x, y), "inputs", "f") == (True, (x, y))
    with pytest.raises(TypeError, match="The inputs given to f must be"):
        functional._as_tuple(1, "inputs", "f")
    rows = ((x, y), (y, x))
    assert functional._tuple_postprocess(rows, (True, True)) is rows
    assert functional._tuple_postprocess(rows, (True, False)) == (x, y)
    assert functional._tuple_postprocess(rows, (False, True)) == (x, y)
    assert functional._tuple_postprocess(rows, (False, False)) is x
    assert functional._tuple_postprocess((x, y), False) is x
    assert functional._grad_postprocess(rows, True) is rows
    detached = functional._grad_postprocess(rows, False)
    assert isinstance(detached[1], tuple) and not detached[1][0].requires_grad


@pytest.mark.parametrize(
    ("points", "bounds", "expected"),
    [
        ((0.0, 1.0, -2.0, 2.0, 1.0, 2.0), None, 1.0),
        ((2.0, 1.0, 2.0, 0.0, 1.0, -2.0), None, 1.0),
        ((0.0, 1.0, -2.0, 2.0, 1.0, 2.0), (1.5, 4.0), 1.5),
        ((0.0, 0.0, 1.0, 1.0, 3.0, 1.0), (0.0, 1.0), 0.0),
        ((0.0, 0.0, 1.0, 1.0, 1.0, 1.0), None, 0.5),
    ],
)
def test_lowest_points_of_cubics(points: Any, bounds: Any, expected: float) -> None:
    lowest: Any = lbfgs._cubic_interpolate
    assert lowest(*points, bounds) == pytest.approx(expected)
    tensors = [x if i in (0, 3) else torch.tensor(x) for i, x in enumerate(points)]
    assert float(lowest(*tensors, bounds)) == pytest.approx(expected)


def test_lines_are_searched() -> None:
    buffer = torch.empty(2)  # which a library may use for every gradient

    def loss(x: torch.Tensor, t: float, d: torch.Tensor) -> tuple[float, torch.Tensor]:
        at = x + t * d
        return float((at**4).sum()), buffer.copy_(4 * at**3)

    x, d = torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0])
    f, g = loss(x, 0, d)
    for first in (0.01, 1.0, 30.0):
        low, grad, t, count = lbfgs._strong_wolfe(loss, x, first, d, f, g.clone(), -68.0)
        assert (low, grad.tolist()) == (loss(x, t, d)[0], buffer.tolist())
        assert low <= f - 1e-4 * t * 68 and abs(float(grad.dot(d))) <= 0.9 * 68 and count >= 1
    tight = lbfgs._strong_wolfe(loss, x, 0.01, d, f, g.clone(), -68.0, c2=0.01)
    assert abs(float(tight[1].dot(d))) <= 0.01 * 68 and tight[3] > 1
    assert lbfgs._strong_wolfe(loss, x, 0.01, d, f, g.clone(), -68.0, max_ls=2)[3] <= 3
    still = torch.zeros(2)
    assert lbfgs._strong_wolfe(loss, x, 1.0, still, f, g.clone(), 0.0)[0] == f
