"""What each rank of a world checks of DTensors: values and gradients against plain tensors."""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import pickle
from collections.abc import Callable, Iterator
from typing import Any

from distributed.checks import raised

import rushlight as torch
import rushlight.distributed
import rushlight.nn.functional as F
from rushlight.distributed.tensor import (
    DTensor,
    Partial,
    Placement,
    Replicate,
    Shard,
    distribute_tensor,
)
from rushlight.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from rushlight.distributed.tensor._utils import compute_local_shape_and_global_offset
from rushlight.distributed.tensor.debug import CommDebugMode, visualize_sharding
from rushlight.distributed.tensor.experimental import implicit_replication, local_map
from rushlight.distributed.tensor.placement_types import _StridedShard

dist: Any = rushlight.distributed
tensors: Any = rushlight.distributed.tensor


def meshes() -> Iterator[Any]:
    yield dist.init_device_mesh("cpu", (dist.get_world_size(),))
    if dist.get_world_size() == 4:
        yield dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))


def layouts(mesh: Any, ndim: int, partial: bool = True) -> list[tuple[Placement, ...]]:
    one: list[Placement] = [Replicate(), *(Shard(d) for d in range(ndim))]
    return list(itertools.product([*one, Partial()] if partial else one, repeat=mesh.ndim))


def near(result: Any, expected: torch.Tensor) -> None:
    result = result.full_tensor() if isinstance(result, DTensor) else result
    assert result.shape == expected.shape, (result.shape, expected.shape)
    assert torch.allclose(result, expected, atol=1e-9, rtol=1e-9), (result, expected)


def moves(mesh: Any) -> None:
    """From every layout to every other, with the gradient."""
    for shape in ((5, 3), (4, 8), (1, 2)):
        whole = torch.randn(*shape, dtype=torch.float64)
        weight = torch.randn(*shape, dtype=torch.float64)
        for source in layouts(mesh, 2):
            x: Any = distribute_tensor(whole, mesh, source).requires_grad_()
            assert x.shape == whole.shape and x.size(0) == shape[0] and len(x) == shape[0]
            near(x, whole)
            for target in layouts(mesh, 2, partial=False):
                moved = x.redistribute(placements=target)
                assert moved.placements == target
                near(moved, whole)
                back = distribute_tensor(weight, mesh, target)
                x.grad = None
                moved.backward(back)
                assert x.grad is not None
                near(x.grad, weight)


def gradient_check(mesh: Any, function: Callable[..., Any], values: list[torch.Tensor]) -> None:
    """In all layouts of all arguments: function gives what it gives for plain tensors.

    All ranks have the same values, so none is sent; moves() sends them.
    """
    values = [v.detach().requires_grad_(v.is_floating_point()) for v in values]
    expected = function(*values)
    outs = expected if isinstance(expected, (tuple, list)) else [expected]
    weights = [torch.randn_like(out) for out in outs]
    wanted = [v for v in values if v.requires_grad]
    total = sum(((o * w).sum() for o, w in zip(outs, weights, strict=True)), torch.zeros(()))
    grads = torch.autograd.grad(total, wanted)
    every = [layouts(mesh, v.dim(), v.is_floating_point()) for v in values]
    combinations = list(itertools.product(*every))
    combinations = combinations[:: len(combinations) // 20 + 1]
    for places in combinations:
        inputs = [
            distribute_tensor(v.detach(), mesh, p, src_data_rank=None).requires_grad_(
                v.requires_grad
            )
            for v, p in zip(values, places, strict=True)
        ]
        results = function(*inputs)
        results = results if isinstance(results, (tuple, list)) else [results]
        loss: Any = 0
        for result, out, weight in zip(results, outs, weights, strict=True):
            assert isinstance(result, DTensor)
            near(result, out.detach())
            w = distribute_tensor(weight, mesh, [Replicate()] * mesh.ndim, src_data_rank=None)
            loss = loss + (result * w).sum()
        loss.backward()
        found = [x.grad for x in inputs if x.requires_grad]
        for x, grad in zip(found, grads, strict=True):
            assert x is not None, (places, function)
            near(x, grad)


def ops(mesh: Any) -> None:
    torch.manual_seed(0)

    def r(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=torch.float64)

    table: list[tuple[Callable[..., Any], list[torch.Tensor]]] = [
        (lambda x: (x * 2 - 1).tanh() / 3 + x, [r(5, 3)]),
        (lambda x, y: x * y + x - y, [r(4, 3), r(3)]),
        (lambda x, y: x / (y * y + 1), [r(4, 1), r(4, 5)]),
        (lambda x, y: torch.where(x > 0, x, y), [r(4, 3), r(4, 3)]),
        (lambda x, y: x @ y, [r(4, 6), r(6, 5)]),
        (lambda x, y: torch.bmm(x, y), [r(2, 4, 3), r(2, 3, 5)]),
        (lambda x, y: x @ y, [r(2, 4, 3), r(3, 5)]),
        (F.linear, [r(2, 3, 4), r(6, 4), r(6)]),
        (lambda x: x.sum(), [r(4, 3)]),
        (lambda x: x.sum(0) * x.mean(dim=1, keepdim=True), [r(3, 3)]),
        (lambda x: x.mean(), [r(5, 3)]),
        (lambda x: x.mean((0, 2)), [r(5, 3, 2)]),
        (lambda x: x.amax(1), [r(5, 3)]),
        (lambda x: x.max(dim=0).values, [r(5, 3)]),
        (lambda x: x.var(), [r(5, 3)]),
        (lambda x: x.var(1, True) + x.std(dim=1, correction=0), [r(5, 3)]),
        (lambda x: torch.sum(input=x, dim=0) + x.sum(axis=0), [r(5, 3)]),
        (lambda x: x.flip(0, 1), [r(4, 3)]),
        (lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), [r(4, 3), torch.arange(4) % 3]),
        (lambda x, t: F.cross_entropy(x, t, reduction="sum"), [r(4, 3), torch.arange(4) % 3]),
        (lambda x: x.norm(), [r(5, 3)]),
        (lambda x: torch.linalg.vector_norm(x, 3), [r(5, 3)]),
        (lambda x: x.norm(dim=0), [r(5, 3)]),
        (lambda x: x.reshape(2, 2, 6), [r(4, 6)]),
        (lambda x: x.view(-1, 3), [r(4, 2, 3)]),
        (lambda x: x.flatten(1), [r(3, 4, 2)]),
        (lambda x: x.unflatten(1, (4, 2)), [r(3, 8)]),
        (lambda x: x.transpose(0, 2).unsqueeze(1), [r(3, 4, 2)]),
        (lambda x: x.permute(2, 0, 1).squeeze(), [r(3, 1, 4)]),
        (lambda x: x.T @ x, [r(4, 3)]),
        (lambda x: x.expand(3, 4, 5), [r(4, 1)]),
        (lambda x: x[1:3, ..., None, 0], [r(4, 3, 2)]),
        (lambda x: x[torch.tensor(1)], [r(4, 3)]),
        (lambda x: x.split(2, 1), [r(3, 5)]),
        (lambda x: x.unbind(0), [r(3, 5)]),
        (lambda x: x.chunk(3, -1), [r(4, 6)]),
        (lambda x: x.select(1, 2), [r(4, 3)]),
        (lambda x, y: torch.cat([x, y], 1), [r(4, 3), r(4, 2)]),
        (lambda x, y: torch.stack([x, y], 1), [r(4, 3), r(4, 3)]),
        (lambda x: x.softmax(-1), [r(4, 5)]),
        (lambda x: F.log_softmax(x, dim=0), [r(4, 5)]),
        (lambda x: x.cumsum(0), [r(4, 5)]),
        (lambda x: x.sort(dim=1).values, [r(4, 5)]),
        (lambda x: x.tril(), [r(2, 4, 4)]),
        (lambda x, w, b: F.layer_norm(x, (4,), w, b), [r(2, 3, 4), r(4), r(4)]),
        (lambda x, w: F.rms_norm(x, (4,), w), [r(2, 3, 4), r(4)]),
        (lambda x, w: F.embedding(x, w, 1), [torch.tensor([[0, 1, 4], [4, 2, 2]]), r(5, 4)]),
        (lambda x, w, b: F.conv2d(x, w, b, padding=1), [r(4, 2, 5, 5), r(3, 2, 3, 3), r(3)]),
        (lambda x: F.max_pool2d(x, 2), [r(4, 2, 4, 4)]),
        (F.scaled_dot_product_attention, [r(2, 4, 3, 5), r(2, 4, 6, 5), r(2, 4, 6, 5)]),
        (F.mse_loss, [r(5, 3), r(5, 3)]),
        (lambda x, y: F.l1_loss(x, y, reduction="sum"), [r(5, 3), r(5, 3)]),
        (lambda x, t: F.cross_entropy(x, t), [r(5, 3), torch.tensor([0, 2, -100, 1, 1])]),
        (lambda x, t: F.cross_entropy(x, t), [r(2, 3, 4), torch.zeros(2, 4, dtype=torch.int64)]),
        (lambda x, t: F.cross_entropy(x, t), [r(3, 17), torch.tensor([16, -100, 9])]),
        (
            lambda x, t: F.cross_entropy(x, t, reduction="none", ignore_index=1),
            [r(2, 16, 3), torch.tensor([[0, 1, 15], [8, 4, 3]])],
        ),
        (lambda x: torch.linalg.inv(x @ x.T + 3 * torch.ones(())), [r(3, 3)]),
        (lambda x: torch.einsum("ij,kj->ik", x, x), [r(4, 3)]),
        (lambda x: x.to(torch.float32).double().clone(), [r(4, 3).float().double()]),
        (lambda x: F.silu(x) * F.gelu(x), [r(4, 3)]),
        (lambda x: x.repeat(2, 3), [r(4, 3)]),
    ]
    for function, values in table:
        gradient_check(mesh, function, values)


def kept_apart(mesh: Any) -> None:
    """Placements of results: nothing is gathered that need not be."""
    if mesh.ndim > 1:
        return
    x = tensors.randn(8, 4, 12, device_mesh=mesh, placements=[Shard(0)])
    w = tensors.randn(12, 4, device_mesh=mesh, placements=[Shard(1)])
    rows = tensors.randn(12, 4, device_mesh=mesh, placements=[Shard(0)])
    assert ((x + 1).relu() * x).placements == (Shard(0),)
    assert (x @ w.redistribute(placements=[Replicate()])).placements == (Shard(0),)
    y = x.redistribute(placements=[Replicate()]) @ w
    assert y.placements == (Shard(2),)
    last = x.redistribute(placements=[Shard(2)])
    assert (last @ rows).placements == (Partial(),)
    assert x.sum().placements == (Partial(),) and x.sum(1).placements == (Shard(0),)
    assert x.sum(0).placements == (Partial(),) and x.mean(2).placements == (Shard(0),)
    assert (x.sum(0) * 2).placements == (Partial(),) == (-x.sum(0)).placements
    assert (x.sum(0) + 1).placements == (Replicate(),)
    assert x.view(32, 12).placements == (Shard(0),) == x.transpose(1, 2).placements
    assert last.view(8, 4, 4, 3).placements == (Shard(2),)
    assert last.view(32, 12).placements == (Shard(1),)
    assert last.softmax(-1).placements == (Replicate(),)
    assert last.softmax(0).placements == (Shard(2),)
    assert x[:, 1].placements == (Shard(0),) and x[1].placements == (Replicate(),)
    assert x.norm().placements == (Replicate(),)
    loss: Any = F.mse_loss
    assert loss(x, x, reduction="none").placements == (Shard(0),)
    assert loss(x, x).placements == (Partial(),)
    assert (
        tensors.zeros(3, 4, device_mesh=mesh, placements=[Shard(0)]).relu_().tolist()
        == [[0.0] * 4] * 3
    )


def in_place(mesh: Any) -> None:
    for places in layouts(mesh, 2):
        whole = torch.arange(15.0).reshape(5, 3)
        x: Any = distribute_tensor(whole, mesh, places)
        y = distribute_tensor(whole, mesh, [Shard(0)] * mesh.ndim)
        same = x
        x += y
        x.mul_(2).add_(y, alpha=0.5).sub_(1)
        x[1] = torch.tensor(4.0)
        x.clamp_(min=0).copy_(x * 2)
        expected = (whole + whole) * 2 + 0.5 * whole - 1
        expected[1] = 4
        expected = expected.clamp(min=0) * 2
        assert x is same and x.placements == places
        near(x, expected)
        out = tensors.empty(5, 3, device_mesh=mesh, placements=[Shard(1)] * mesh.ndim)
        torch.add(x, y, out=out)
        near(out, expected + whole)


def local_parts(mesh: Any) -> None:
    rank, size = mesh.get_local_rank(0), mesh.size(0)
    rest = [Replicate()] * (mesh.ndim - 1)
    local = torch.full((2, 3), float(rank), requires_grad=True)
    x = DTensor.from_local(local, mesh, [Shard(0), *rest])
    assert x.shape == (2 * size, 3) and not x.is_leaf
    assert x.to_local().tolist() == local.tolist()
    (x * x).sum().backward()
    assert local.grad is not None and local.grad.tolist() == (2 * local).tolist()
    # Addends: the gradient of each is that of the sum.
    local.grad = None
    total = DTensor.from_local(local, mesh, [Partial(), *rest])
    near(total, torch.full((2, 3), float(sum(range(size)))))
    (total.full_tensor() ** 2).sum().backward()
    assert local.grad is not None and local.grad.tolist() == [[size * (size - 1.0)] * 3] * 2
    local.grad = None
    mean = DTensor.from_local(local, mesh, [Partial("avg"), *rest])
    near(mean.detach(), torch.full((2, 3), (size - 1) / 2))
    mean.full_tensor().sum().backward()
    assert local.grad is not None and local.grad.tolist() == [[1 / size] * 3] * 2
    near(
        DTensor.from_local(local.detach(), mesh, [Partial("max"), *rest]),
        torch.full((2, 3), size - 1.0),
    )
    # Each rank makes something else of a copy.
    w: Any = distribute_tensor(torch.ones(3), mesh).requires_grad_()
    (w.to_local(grad_placements=[Partial(), *rest]) * (rank + 1)).sum().backward()
    near(w.grad, torch.full((3,), size * (size + 1) / 2))
    # Uneven parts need the shape.
    rows = 3 if rank == 0 else 1
    if mesh.ndim == 1 and size == 2:
        part = torch.full((2 if rank == 0 else 1, 2), float(rank))
        uneven = DTensor.from_local(part, mesh, [Shard(0)], shape=(3, 2), stride=(2, 1))
        assert uneven.tolist() == [[0, 0], [0, 0], [1, 1]]
        message = raised(
            ValueError,
            DTensor.from_local,
            torch.ones(rows, 2),
            mesh,
            [Shard(0)],
            shape=(4, 2),
            stride=(2, 1),
        )
        assert "has parts of shape (2, 2)" in message
    checked = DTensor.from_local(torch.full((2,), float(rank)), mesh, run_check=True)
    assert checked.to_local().tolist() == [0, 0]


def factories(mesh: Any) -> None:
    places = [Shard(0)] * mesh.ndim
    for name in ("zeros", "ones", "rand", "randn"):
        torch.manual_seed(3)
        made = getattr(tensors, name)(5, 3, device_mesh=mesh, placements=places)
        torch.manual_seed(3)
        near(made, getattr(torch, name)(5, 3))
    torch.manual_seed(dist.get_rank())
    first = tensors.randn((4, 2), device_mesh=mesh, requires_grad=True)
    assert first.is_leaf and first.requires_grad
    near(first.to_local(), first.redistribute(placements=places).full_tensor())
    made = tensors.full((2, 2), 7, dtype=torch.int64, device_mesh=mesh)
    assert made.tolist() == [[7, 7], [7, 7]] and made.dtype == torch.int64
    for name, rest in (("linspace", ()), ("logspace", (2.0,))):
        made = getattr(tensors, name)(
            torch.tensor(1.0), -3, 7, *rest, device_mesh=mesh, placements=places, requires_grad=True
        )
        assert made.is_leaf and made.requires_grad and made.placements == tuple(places)
        near(made.detach(), getattr(torch, name)(1, -3, 7, *rest))
    empty = tensors.empty(5, 3, device_mesh=mesh, placements=places)
    assert empty.shape == (5, 3) and empty.placements == tuple(places)


def random_numbers(mesh: Any) -> None:
    """Those of the first rank, whatever the seeds of the others."""
    for places in layouts(mesh, 2, partial=False):
        torch.manual_seed(dist.get_rank())
        x = tensors.ones(6, 5, device_mesh=mesh, placements=places, requires_grad=True)
        dropped: Any = F.dropout(x, 0.4)
        assert dropped.placements == places
        dropped.sum().backward()
        near(x.grad, dropped.detach().full_tensor())
        drawn = torch.nn.init.normal_(x.detach().clone())
        noise = torch.randn_like(x.detach())
        after = torch.rand(())
        torch.manual_seed(0)
        near(dropped.detach(), F.dropout(torch.ones(6, 5), 0.4))
        near(drawn, torch.randn(6, 5))
        near(noise, torch.randn(6, 5))
        if dist.get_rank() == 0:
            assert after == torch.rand(())
        else:
            torch.manual_seed(dist.get_rank())
            assert after == torch.rand(())
        assert F.dropout(x, 0.4, False) is x


def mistakes(mesh: Any) -> None:
    x = distribute_tensor(torch.ones(4, 2), mesh, [Shard(0)] * mesh.ndim)
    assert isinstance(x, torch.Tensor) and isinstance(x, DTensor)
    assert repr(x).startswith("DTensor(local_tensor=tensor([[1., 1.]")
    assert f"placements={x.placements}" in repr(x)
    message = raised(RuntimeError, torch.add, x, torch.ones(4, 2))
    assert "got mixed torch.Tensor and DTensor" in message
    (x + torch.tensor(1.0)).sum().item()  # a number is no mistake
    (x + torch.ones(1)).sum().item()
    with mesh:
        assert distribute_tensor(torch.ones(2)).device_mesh is mesh
    with implicit_replication():
        assert (x + torch.ones(2)).tolist() == [[2.0, 2.0]] * 4
    raised(RuntimeError, torch.add, x, torch.ones(2))
    raised(ValueError, distribute_tensor, torch.ones(2), mesh, [Shard(0)] * 3)
    table = tensors.ones(16, 4, device_mesh=mesh, placements=[Shard(0)] * mesh.ndim)
    raised(IndexError, F.embedding, distribute_tensor(torch.tensor([16]), mesh), table)
    logits = table.t().redistribute(placements=[*[Replicate()] * (mesh.ndim - 1), Shard(1)])
    for wrong in (16, -1):
        target = distribute_tensor(torch.full((4,), wrong), mesh)
        raised(IndexError, F.cross_entropy, logits, target)
    raised(IndexError, distribute_tensor, torch.ones(2), mesh, [Shard(1)] * mesh.ndim)
    raised(TypeError, distribute_tensor, torch.ones(2), mesh, ["shard"] * mesh.ndim)
    raised(RuntimeError, distribute_tensor, torch.ones(2, requires_grad=True) * 2, mesh)
    raised(RuntimeError, distribute_tensor, torch.ones(2))
    raised(ValueError, distribute_tensor, x, mesh, [Replicate()] * mesh.ndim)
    raised(RuntimeError, x.redistribute)
    raised(RuntimeError, x.redistribute, placements=[Partial()] * mesh.ndim)
    raised(RuntimeError, DTensor.from_local, x, mesh)
    raised(ValueError, Partial, "median")
    raised(RuntimeError, torch.matmul, x, x)
    raised(RuntimeError, x.unsqueeze_, 0)
    assert Shard(0) == Shard(0) != Shard(1) and Shard(-1).is_shard() and not Shard(1).is_shard(0)
    assert [str(p) for p in (Shard(0), Replicate(), Partial())] == ["S(0)", "R", "P(sum)"]
    assert len({Shard(0), Shard(0), Partial(), Partial("avg")}) == 3
    assert bool((x == 1).all()) and float(x.sum()) == 8 and int(x.max()) == 1
    assert x.numpy().shape == (4, 2) and x.stride() == (2, 1) and x.numel() == 8


def hooks(mesh: Any) -> None:
    whole = [Replicate()] * (mesh.ndim - 1)
    x = distribute_tensor(torch.ones(4, 8), mesh, [*whole, Shard(1)]).requires_grad_()
    seen: list[Any] = []
    x.register_hook(lambda grad: seen.append(grad))
    x.register_hook(lambda grad: (grad * 2).redistribute(placements=[*whole, Replicate()]))
    (x * 3).sum().backward()
    (grad,) = seen
    assert isinstance(grad, DTensor) and grad.placements == x.placements
    near(grad, torch.full((4, 8), 3.0))
    near(x.grad, torch.full((4, 8), 6.0))


def counts(mesh: Any) -> None:
    whole = [Replicate()] * (mesh.ndim - 1)
    x = distribute_tensor(torch.ones(8, 8), mesh, [*whole, Shard(0)]).requires_grad_()
    names = torch.ops.c10d_functional
    with CommDebugMode() as comm:
        x.redistribute(placements=[*whole, Replicate()]).sum().backward()
        assert comm.get_total_counts() == comm.get_comm_counts()[names.all_gather_into_tensor] == 1
        x.detach().redistribute(placements=[*whole, Shard(1)])
        total = x.detach().sum(0)
        total.redistribute(placements=[*whole, Shard(0)])
        total.full_tensor()
    found = comm.get_comm_counts()
    for name in ("all_to_all_single", "reduce_scatter_tensor", "all_reduce"):
        assert found[getattr(names, name)] == 1, name
    assert comm.get_total_counts() == 4 and found[names.wait_tensor] == 0


def tables(mesh: Any) -> None:
    """Of rows over the last dim of the mesh, and columns over the one before."""
    placements = [Shard(1), Shard(0)][-mesh.ndim :]
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        visualize_sharding(distribute_tensor(torch.ones(7, 5), mesh, placements), "x")
    rows = {2: ["Row 0-3", "Row 4-6"], 4: ["Row 0-1", "Row 2-3", "Row 4-5", "Row 6-6"]}
    if dist.get_rank():
        assert not text.getvalue()
    elif mesh.ndim == 1:
        size = mesh.size()
        expected = ["         Col 0-4", "-------  -------"]
        expected += [f"{row}  cpu:{rank}" for rank, row in enumerate(rows[size])]
        assert text.getvalue().splitlines() == ["x", *expected]
    else:
        assert text.getvalue().splitlines() == [
            "x",
            "         Col 0-2  Col 3-4",
            "-------  -------  -------",
            "Row 0-3  cpu:0    cpu:2",
            "Row 4-6  cpu:1    cpu:3",
        ]
    cube = distribute_tensor(torch.ones(2, 2, 2), mesh, [Replicate()] * mesh.ndim)
    assert "supports only 1D or 2D" in raised(RuntimeError, visualize_sharding, cube)
    row = cube[0, 0]
    with contextlib.redirect_stdout(text):
        visualize_sharding(row)
    everyone = ",".join(map(str, range(dist.get_world_size())))
    assert dist.get_rank() or text.getvalue().endswith(f"Row 0-1  cpu:{everyone}\n")


def places_of_parts(mesh: Any) -> None:
    whole = torch.arange(35).view(7, 5)
    for placements in layouts(mesh, 2, partial=False):
        shape, offsets = compute_local_shape_and_global_offset((7, 5), mesh, placements)
        part = distribute_tensor(whole, mesh, placements).to_local()
        assert shape == tuple(part.shape)
        if part.numel():
            assert part[0, 0] == whole[offsets]
    assert (
        compute_local_shape_and_global_offset((7,), mesh, [Replicate()] * mesh.ndim, True)[1] == ()
    )
    raised(NotImplementedError, _StridedShard, 0, split_factor=2)


def pickles(mesh: Any) -> None:
    whole = torch.arange(35.0).view(7, 5)
    for placements in layouts(mesh, 2):
        x = distribute_tensor(whole, mesh, placements)
        file = io.BytesIO()
        torch.save({"x": x, "parameter": torch.nn.Parameter(x)}, file)
        file.seek(0)
        read = torch.load(file)
        assert isinstance(read["parameter"], torch.nn.Parameter)
        assert read["parameter"].requires_grad and not read["x"].requires_grad
        for again in read["x"], read["parameter"].detach(), pickle.loads(pickle.dumps(x)):
            assert again.placements == x.placements and again.device_mesh is mesh
            near(again, whole)
    assert pickle.loads(pickle.dumps(mesh)) is mesh is copy.deepcopy(mesh)
    # One that no longer exists has groups again when they are needed.
    ranks = pickle.dumps(dist.DeviceMesh("cpu", torch.arange(dist.get_world_size()).flip(0)))
    near(tensors.ones(3, device_mesh=pickle.loads(ranks), placements=[Shard(0)]), torch.ones(3))


def made_of_a_layout(mesh: Any) -> None:
    """As libraries make them, with all that they know of the whole tensor."""
    whole = torch.arange(24.0).view(6, 4)
    for placements in layouts(mesh, 2, partial=False):
        x = distribute_tensor(whole, mesh, placements)
        meta = TensorMeta(whole.shape, whole.stride(), whole.dtype)
        spec = DTensorSpec(mesh, placements, tensor_meta=meta)
        assert spec == x._spec and spec.device_mesh is mesh and spec.ndim == 2
        made = DTensor(x.to_local(), spec, requires_grad=True)
        assert made.is_leaf and made.requires_grad and torch.equal(made.full_tensor(), whole)
        (made * 2).sum().backward()
        assert torch.equal(made.grad.full_tensor(), torch.full((6, 4), 2.0))
        assert not DTensor(x.to_local(), spec).requires_grad


def functions_of_parts(mesh: Any) -> None:
    a, b = (torch.arange(64, dtype=torch.float64).view(8, 8) / (i + 1) for i in range(2))
    rows, copies = [Shard(0)] * mesh.ndim, [Replicate()] * mesh.ndim
    x: Any = distribute_tensor(a, mesh, rows).requires_grad_()
    y: Any = distribute_tensor(b, mesh, copies)
    seen: list[tuple[int, ...]] = []

    def product(u: torch.Tensor, v: torch.Tensor, plus: float = 0) -> Any:
        assert not isinstance(u, DTensor)
        seen.append(tuple(u.shape))
        return u @ v + plus, "product"

    called = local_map(product, (rows, None), (rows, copies))
    result, text = called(x, y, plus=2)
    near(result, a @ b + 2)
    assert text == "product" and result.placements == tuple(rows)
    assert seen == [(8 // dist.get_world_size(), 8)]
    result.sum().backward()
    near(x.grad, torch.ones_like(a) @ b.T)
    assert called(a, b)[0].equal(a @ b)

    @local_map(out_placements=rows, in_placements=(rows,), redistribute_inputs=True)
    def double(u: torch.Tensor) -> torch.Tensor:
        return u * 2

    near(double(y), b * 2)
    assert "in_placements are 2" in raised(ValueError, called, x)
    assert "redistribute_inputs=True" in raised(ValueError, called, y, y)
    assert "out_placements are 1" in raised(ValueError, local_map(product, rows), x, y)


EVERYTHING = [
    pickles,
    made_of_a_layout,
    places_of_parts,
    tables,
    moves,
    ops,
    kept_apart,
    in_place,
    local_parts,
    functions_of_parts,
    factories,
    random_numbers,
    mistakes,
    hooks,
    counts,
]
