"""GradScaler: scaling, steps left out, and the course of the scale."""

import pickle

import pytest

import rushlight as torch
from rushlight.amp import GradScaler

INF, NAN = float("inf"), float("nan")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is neither GPU nor shim"
))]  # fmt: skip


def with_grad(*values, dtype=torch.float32, device="cpu"):
    param = torch.nn.Parameter(torch.zeros(len(values), dtype=dtype, device=device))
    param.grad = torch.tensor(values, dtype=dtype, device=device)
    return param


def scaler_of(device="cpu", **options):
    scaler = GradScaler(device, **{"init_scale": 8.0, **options})
    scaler.scale(torch.zeros(1, device=device))  # the first use makes the scale
    return scaler


def test_losses_are_scaled_in_any_structure() -> None:
    scaler = GradScaler("cpu", init_scale=4.0)
    one, two = torch.tensor(1.0), torch.tensor([2.0, 3.0], dtype=torch.float64)
    assert scaler.scale(one).item() == 4.0
    scaled = scaler.scale([one, (two,)])
    assert isinstance(scaled, list)
    assert scaled[1][0].tolist() == [8.0, 12.0]
    assert scaled[1][0].dtype == torch.float64
    with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable of Tensors"):
        scaler.scale(3)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_gradients_are_unscaled_before_the_step(dtype, device) -> None:
    params = [with_grad(8.0, -16.0, dtype=dtype, device=device), with_grad(4.0, device=device)]
    params.append(torch.nn.Parameter(torch.zeros(1, device=device)))  # without a gradient
    optimizer = torch.optim.SGD(params, lr=1.0)
    scaler = scaler_of(device)
    scaler.unscale_(optimizer)
    assert params[0].grad.tolist() == [1.0, -2.0]
    scaler.step(optimizer)
    scaler.update()
    assert params[0].tolist() == [-1.0, 2.0]
    assert params[1].tolist() == [-0.5]
    assert scaler.get_scale() == 8.0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("bad", [INF, -INF, NAN])
@pytest.mark.parametrize("place", [0, 4095, 70_000])
def test_a_step_with_a_bad_gradient_is_left_out(bad, place, device) -> None:
    params = [torch.nn.Parameter(torch.zeros(n, device=device)) for n in (3, 80_001)]
    for param in params:
        param.grad = torch.ones_like(param)
    params[1].grad[place] = bad
    optimizer = torch.optim.SGD(params, lr=1.0)
    scaler = scaler_of(device)
    assert scaler.step(optimizer) is None
    scaler.update()
    assert params[0].tolist() == [0.0, 0.0, 0.0]
    assert scaler.get_scale() == 4.0


def test_the_scale_grows_after_enough_good_steps_in_a_row() -> None:
    scaler = scaler_of(growth_interval=3, growth_factor=4.0, backoff_factor=0.25)
    seen = []
    for value in (1.0, 1.0, NAN, 1.0, 1.0, 1.0, 1.0):
        optimizer = torch.optim.SGD([with_grad(value)], lr=1.0)
        scaler.step(optimizer)
        scaler.update()
        seen.append((scaler.get_scale(), scaler._get_growth_tracker()))
    assert seen == [(8, 1), (8, 2), (2, 0), (2, 1), (2, 2), (8, 0), (8, 1)]


def test_the_scale_does_not_grow_to_infinity() -> None:
    scaler = scaler_of(growth_interval=1, init_scale=3e38)
    scaler.step(torch.optim.SGD([with_grad(1.0)], lr=1.0))
    scaler.update()
    assert scaler.get_scale() == pytest.approx(3e38)


def test_one_bad_optimizer_does_not_hold_back_another() -> None:
    good, bad = with_grad(8.0), with_grad(INF)
    scaler = scaler_of()
    optimizers = [torch.optim.SGD([param], lr=1.0) for param in (good, bad)]
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    assert (good.item(), bad.item(), scaler.get_scale()) == (-1.0, 0.0, 4.0)


def fused_optimizers(params):
    optim = torch.optim
    return {
        "SGD": lambda **options: optim.SGD(params, lr=0.5, **options),
        "momentum": lambda **options: optim.SGD(params, lr=0.5, momentum=0.9, **options),
        "Adam": lambda **options: optim.Adam(params, lr=0.5, amsgrad=True, **options),
        "AdamW": lambda **options: optim.AdamW(params, lr=0.5, **options),
        "Adagrad": lambda **options: optim.Adagrad(params, lr=0.5, **options),
    }


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("unscales", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", ["SGD", "momentum", "Adam", "AdamW", "Adagrad"])
def test_fused_optimizers_leave_out_steps_as_others_do(name, dtype, unscales, device) -> None:
    def run(fused):
        params = [torch.nn.Parameter(torch.ones(n, dtype=dtype, device=device)) for n in (3, 2)]
        optimizer = fused_optimizers(params)[name](**({"fused": True} if fused else {}))
        scaler = scaler_of(device)
        seen = []
        for step in range(6):
            for i, param in enumerate(params):
                param.grad = torch.full_like(param, INF if step in (0, 3) else 2.0 + step + i)
            if step == 4:
                params[1].grad = None  # falls behind
            if unscales:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(params, 100.0)
            scaler.step(optimizer)
            scaler.update()
            assert fused == (
                not hasattr(optimizer, "found_inf") and bool(optimizer.defaults["fused"])
            )
            seen.append([value for param in params for value in param.tolist()])
            seen.append([scaler.get_scale()])
        state = optimizer.state_dict()["state"]
        seen.append([state[i]["step"].item() for i in state if "step" in state[i]])
        seen.append([params[0].grad.sum().item()])
        return seen

    for ours, expected in zip(run(True), run(False), strict=True):
        assert ours == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_a_step_that_was_left_out_is_taken_back_when_the_state_is_read(device) -> None:
    params = [with_grad(INF, device=device)]
    for name in ("momentum", "Adam"):
        optimizer = fused_optimizers(params)[name](fused=True)
        scaler = scaler_of(device)
        scaler.step(optimizer)
        state = optimizer.state_dict()["state"].get(0, {})
        assert "momentum_buffer" not in state and float(state.get("step", 0)) == 0
        copy = pickle.loads(pickle.dumps(optimizer))
        assert copy._step_supports_amp_scaling and copy._unsettled is None


def test_optimizers_see_scale_and_found_inf() -> None:
    class Watching(torch.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None):
            seen.append((self.grad_scale, self.found_inf.item()))
            return "taken"

    class Older(torch.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None, *, grad_scaler=None):
            seen.append(grad_scaler)

    seen = []
    good, bad = Watching([with_grad(8.0)], lr=1.0), Watching([with_grad(INF)], lr=1.0)
    bad.grad_scale = 2.0
    scaler = scaler_of()
    assert scaler.step(good) == "taken"
    scaler.step(bad)
    assert [(float(scale), found) for scale, found in seen] == [(8.0, 0.0), (16.0, 1.0)]
    assert not hasattr(good, "grad_scale") and not hasattr(good, "found_inf")
    scaler.update()
    assert scaler.get_scale() == 4.0
    scaler.unscale_(good)
    scaler.step(good)
    assert seen[2] == (None, 0.0)
    older = Older([with_grad(8.0)], lr=1.0)
    with pytest.warns(FutureWarning, match="going to stop passing itself"):
        scaler.step(older)
    assert seen[3] is scaler


def test_sparse_gradients_are_not_for_fused_scaling() -> None:
    param = torch.nn.Parameter(torch.zeros(3, 2))
    param.grad = torch.sparse_coo_tensor([[1]], [[8.0, 16.0]], (3, 2))
    with pytest.raises(RuntimeError, match="`fused` does not support sparse gradients"):
        scaler_of().step(torch.optim.SGD([param], lr=1.0, fused=True))


def test_sparse_gradients_are_unscaled() -> None:
    param = torch.nn.Parameter(torch.zeros(3, 2))
    param.grad = torch.sparse_coo_tensor([[1]], [[8.0, 16.0]], (3, 2))
    scaler_of().step(torch.optim.SGD([param], lr=1.0))
    assert param.tolist() == [[0, 0], [-1, -2], [0, 0]]


def test_gradients_in_any_order_of_memory_are_unscaled() -> None:
    param = torch.nn.Parameter(torch.zeros(2, 3))
    wide = torch.full((2, 6), 8.0)
    param.grad = wide[:, ::2]
    scaler_of().unscale_(torch.optim.SGD([param], lr=1.0))
    assert param.grad.tolist() == [[1.0] * 3] * 2
    assert wide[:, 1::2].tolist() == [[8.0] * 3] * 2


def test_calls_out_of_order_are_refused() -> None:
    optimizer = torch.optim.SGD([with_grad(1.0)], lr=1.0)
    with pytest.raises(AssertionError, match="there is no scale yet"):
        GradScaler("cpu").step(optimizer)
    scaler = scaler_of()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="has already been called on this optimizer"):
        scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="only be pickled at the beginning"):
        pickle.dumps(scaler)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="is being called after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="Closure use is not currently supported"):
        scaler.step(optimizer, closure=lambda: None)


def test_bad_gradients_and_factors_are_refused() -> None:
    optimizer = torch.optim.SGD([with_grad(1.0, dtype=torch.float16)], lr=1.0)
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler_of().unscale_(optimizer)
    without = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        scaler_of().step(without)
    with pytest.raises(AssertionError, match="growth factor must be > 1.0"):
        GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff factor must be < 1.0"):
        GradScaler("cpu", backoff_factor=1.0)


def test_the_op_refuses_numbers_that_it_cannot_use() -> None:
    one = torch.ones(())
    with pytest.raises(RuntimeError, match="It must hold 1 of float32"):
        torch._C._unscale_([torch.ones(2)], one, torch.ones(2))
    with pytest.raises(RuntimeError, match="It must hold 1 of float32"):
        torch._C._unscale_([torch.ones(2)], one.double(), one)
    with pytest.raises(RuntimeError, match="not a floating-point"):
        torch._C._unscale_([torch.ones(2, dtype=torch.int64)], one, one)
    assert torch._C._unscale_([], one, one) == 0


def test_a_new_scale_can_be_set() -> None:
    scaler = scaler_of()
    scaler.update(32.0)
    assert scaler.get_scale() == 32.0
    scaler.update(torch.tensor([64.0]))
    assert scaler.get_scale() == 64.0
    with pytest.raises(AssertionError, match="should be a float or a 1-element tensor"):
        scaler.update(torch.ones(2))


@pytest.mark.parametrize("copy", ["state_dict", "pickle"])
def test_state_is_kept(copy) -> None:
    scaler = scaler_of(growth_interval=5)
    scaler.step(torch.optim.SGD([with_grad(1.0)], lr=1.0))
    scaler.update()
    if copy == "pickle":
        other = pickle.loads(pickle.dumps(scaler))
    else:
        other = scaler_of(init_scale=2.0)
        other.load_state_dict(scaler.state_dict())
    assert (
        other.state_dict()
        == scaler.state_dict()
        == {
            "scale": 8.0,
            "growth_factor": 2.0,
            "backoff_factor": 0.5,
            "growth_interval": 5,
            "_growth_tracker": 1,
        }
    )
    assert other.scale(torch.tensor(1.0)).item() == 8.0


def test_a_disabled_scaler_does_nothing() -> None:
    scaler = GradScaler("cpu", enabled=False)
    param = with_grad(INF)
    loss = torch.tensor(3.0)
    assert scaler.scale(loss) is loss
    scaler.step(torch.optim.SGD([param], lr=1.0))
    scaler.update()
    assert param.item() == -INF
    assert (scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()) == (1.0, {}, False)
    with pytest.raises(RuntimeError, match="The source state dict is empty"):
        scaler_of().load_state_dict(scaler.state_dict())


def test_names_of_pytorch_lead_here() -> None:
    assert torch.GradScaler is torch.amp.GradScaler is GradScaler
    with pytest.warns(FutureWarning, match=r"torch.cpu.amp.GradScaler\(args...\)` is deprecated"):
        assert torch.cpu.amp.GradScaler(init_scale=2.0).get_scale() == 2.0
    assert torch.cuda.amp.grad_scaler.OptState is torch.amp.grad_scaler.OptState
    with pytest.warns(FutureWarning, match=r"torch.cuda.amp.GradScaler\(args...\)` is deprecated"):
        scaler = torch.cuda.amp.GradScaler(enabled=False)
    assert isinstance(scaler, GradScaler)
    if not torch.cuda.is_available():
        with pytest.warns(UserWarning, match="CUDA is not available"):
            assert not GradScaler().is_enabled()


def test_step_that_fails_leaves_nothing_on_a_fused_optimizer() -> None:
    table = torch.nn.Embedding(3, 2, sparse=True)
    optimizer = torch.optim.Adam(table.parameters(), fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(table(torch.tensor([0])).sum()).backward()
    with pytest.raises(RuntimeError, match="sparse gradients"):
        scaler.step(optimizer)
    assert not hasattr(optimizer, "found_inf") and not hasattr(optimizer, "grad_scale")


def test_scalers_of_other_libraries_have_the_functions_that_they_call() -> None:
    grads, found = [torch.full((2,), 4.0), torch.tensor([INF])], torch.zeros(())
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor(0.5))
    assert grads[0].tolist() == [2, 2]
    assert found == 1
    scale, tracker = torch.tensor(4.0), torch.tensor(0, dtype=torch.int32)
    assert torch._amp_update_scale_(scale, tracker, found, 2.0, 0.25, 1) is scale
    assert (scale, tracker) == (1, 0)
    torch._amp_update_scale_(scale, tracker, torch.zeros(()), 2.0, 0.25, 1)
    assert scale == 2
