"""nn.parallel on two GPUs, which the shim plays."""

import textwrap

SETUP = """
import threading, warnings
from collections import namedtuple
import rushlight as torch
from rushlight import nn
from rushlight.nn.parallel import comm, gather, parallel_apply, replicate, scatter
assert torch.cuda.device_count() == 2
first, second = torch.device("cuda:0"), torch.device("cuda:1")
"""


def program(text: str) -> str:
    return SETUP + textwrap.dedent(text)


def test_a_batch_is_split_and_joined(run_on_shim) -> None:
    run_on_shim(
        program("""
        torch.manual_seed(0)
        layer = nn.Linear(3, 2)
        x = torch.randn(5, 3)
        reference = layer(x)
        (reference ** 2).sum().backward()
        wanted = layer.weight.grad.clone()
        layer.zero_grad()
        model = nn.DataParallel(layer).to(first)
        assert model.device_ids == [0, 1] and model.output_device == 0
        y = x.clone().requires_grad_()
        out = model(y)
        assert out.device == first and torch.allclose(out.cpu(), reference, atol=1e-6)
        (out ** 2).sum().backward()
        assert layer.weight.grad.device == first
        assert torch.allclose(layer.weight.grad.cpu(), wanted, atol=1e-5)
        assert y.grad.shape == x.shape
        with torch.no_grad():
            assert not model(x).requires_grad
        assert nn.parallel.data_parallel(layer, x, output_device=1).device == second
        assert torch.allclose(model(input=x).cpu(), reference, atol=1e-6)
        """)
    )


def test_structures_are_scattered_and_gathered(run_on_shim) -> None:
    run_on_shim(
        program("""
        x = torch.arange(10.0).reshape(5, 2).requires_grad_()
        parts = scatter(x, [0, 1])
        assert [p.device for p in parts] == [first, second]
        assert [p.shape[0] for p in parts] == [3, 2]
        joined = gather(parts, 0)
        assert joined.device == first and torch.equal(joined.cpu(), x)
        (joined * torch.arange(10.0, device=first).reshape(5, 2)).sum().backward()
        assert torch.equal(x.grad, torch.arange(10.0).reshape(5, 2))

        Point = namedtuple("Point", "x y")
        call = {"a": [x, 3], "p": Point(x, "b"), "t": (x.t(),)}
        one, two = scatter(call, [first, "cuda:1"])
        assert type(one) is dict and isinstance(one["p"], Point) and two["p"].x.device == second
        assert one["a"][1] == 3 and two["p"].y == "b" and one["t"][0].shape == (1, 5)
        back = gather([{"a": [one["a"][0]], "n": None}, {"a": [two["a"][0]], "n": None}], "cpu")
        assert back["n"] is None and torch.equal(back["a"][0], x)
        assert isinstance(gather([Point(*parts), Point(*parts)], 1), Point)
        assert [p.shape for p in scatter(x, [0, 1], dim=1)] == [(5, 1), (5, 1)]
        assert len(scatter(torch.ones(1), [0, 1])) == 1
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            scalars = gather([torch.ones((), device=first), torch.ones((), device=second)], -1)
            assert scalars.shape == (2,) and scalars.device.type == "cpu"
        assert [w.category for w in seen] == [FutureWarning, UserWarning]
        """)
    )


def test_replicas_share_with_the_module_on_its_gpu_only(run_on_shim) -> None:
    run_on_shim(
        program("""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.BatchNorm1d(2)
                self.again = self.norm
                self.gains = nn.ParameterList([torch.ones(2), torch.ones(2)])
                self.none = None
                self.register_parameter("empty", None)
                self.rnn = nn.LSTM(2, 2, batch_first=True)
                self.calls = 0
            def forward(self, x):
                self.calls += 1
                for gain in self.gains:
                    x = x * gain
                return self.rnn(self.norm(x)[None])[0][0]

        net = Net().to(first)
        one, two = replicate(net, [0, 1])
        assert type(two) is Net and two.again is two.norm and two.norm is not net.norm
        assert list(two.parameters()) == [] and list(one.parameters()) == []
        assert two.norm.weight.device == second and not two.norm.weight.is_leaf
        assert one.norm.weight.data_ptr() == net.norm.weight.data_ptr()
        assert one.norm.running_mean is net.norm.running_mean
        assert two.norm.running_mean.device == second and len(two.gains) == 2
        assert not replicate(net, [0, 1], detach=True)[1].norm.weight.requires_grad
        assert [name for name, _ in two.named_buffers()] == [n for n, _ in net.named_buffers()]

        model = nn.DataParallel(net)
        x = torch.randn(6, 2)
        model(x).sum().backward()
        assert net.calls == 0 and all(p.grad is not None for p in net.parameters())
        assert net.norm.num_batches_tracked.item() == 1
        assert torch.allclose(net.norm.running_mean.cpu(), 0.1 * x[:3].mean(0), atol=1e-6)
        assert isinstance(net.norm.weight, nn.Parameter) and len(list(net.parameters())) == 8
        """)
    )


def test_threads_keep_the_modes_of_the_caller(run_on_shim) -> None:
    run_on_shim(
        program("""
        class Look(nn.Module):
            def forward(self, x, scale=1):
                assert torch.cuda.current_device() == x.device.index
                return x @ x * scale, torch.is_grad_enabled(), threading.get_ident()

        x = torch.ones(4, 2, 2).requires_grad_()
        inputs = scatter(x, [0, 1])
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
            results = parallel_apply([Look()] * 2, inputs, [{}, {"scale": 2}])
        assert [r[0].dtype for r in results] == [torch.bfloat16] * 2
        assert [r[1] for r in results] == [False] * 2
        assert results[0][2] != results[1][2] and results[1][0][0, 0, 0].item() == 4
        try:
            parallel_apply([nn.Linear(3, 3).to(first), Look()], inputs, devices=[0, 1])
        except RuntimeError as error:
            assert "linear: input" in str(error)
            assert error.__notes__ == ["in replica 0 on device 0"]
        else:
            raise AssertionError
        """)
    )


def test_a_module_elsewhere_is_refused(run_on_shim) -> None:
    run_on_shim(
        program("""
        for module, named in ((nn.Linear(2, 2), "cpu"), (nn.Linear(2, 2).to(second), "cuda:1")):
            try:
                nn.DataParallel(module)(torch.ones(2, 2))
            except RuntimeError as error:
                assert "on device cuda:0 (device_ids[0])" in str(error) and named in str(error)
            else:
                raise AssertionError
        model = nn.DataParallel(nn.Linear(2, 2), device_ids=[1])
        assert model.module.weight.device == second and model(torch.ones(2, 2)).device == second
        """)
    )


def test_copies_between_gpus(run_on_shim) -> None:
    run_on_shim(
        program("""
        x = torch.arange(6.0, device=first)
        copies = comm.broadcast(x, [0, 1])
        assert copies[0] is x and copies[1].device == second
        assert torch.equal(copies[1].cpu(), x.cpu())
        out = torch.zeros(6, device=second)
        assert comm.broadcast(x, out=[out])[0] is out and out[5].item() == 5
        (a, b), (c, d) = comm.broadcast_coalesced([x, x + 1], [0, 1])
        assert d.device == second and torch.equal(d.cpu(), b.cpu())
        assert comm.reduce_add([a, c], 1).device == second
        assert comm.reduce_add([a, c], 1).cpu().tolist() == [0, 2, 4, 6, 8, 10]
        assert [t[1].item() for t in comm.reduce_add_coalesced([[a, b], [c, d]], 0)] == [2, 4]
        parts = comm.scatter(x, [0, 1], [1, 5], streams=[None, torch.cuda.Stream(1)])
        assert [len(p) for p in parts] == [1, 5]
        halves = [torch.zeros(2, device=first), torch.zeros(4, device=second)]
        assert comm.scatter(x, out=halves)[1].tolist() == [2, 3, 4, 5]
        assert comm.gather(halves, out=torch.zeros(6)).tolist() == [0, 1, 2, 3, 4, 5]
        for call in (lambda: comm.broadcast(x), lambda: comm.scatter(x, [0], out=halves),
                     lambda: comm.gather(halves, 0, 0, out=x), lambda: comm.reduce_add([a], 1)):
            try:
                call()
            except RuntimeError:
                continue
            raise AssertionError
        """)
    )
