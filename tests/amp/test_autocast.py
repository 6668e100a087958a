"""Autocast: regions, casts, what it leaves alone, and the switches of a thread."""

import threading

import pytest

import rushlight as torch
from rushlight.utils.checkpoint import checkpoint

X, W = torch.ones(3, 4), torch.ones(4, 4)


def product() -> torch.dtype:
    return (X @ W).dtype


def test_a_dtype_must_be_one() -> None:
    with pytest.warns(UserWarning, match="dtype bf16 is not supported"):
        region = torch.autocast("cpu", dtype="bf16")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"must be a torch.dtype such as torch.bfloat16, not str\."):
        region.__enter__()


def test_regions_nest_and_restore() -> None:
    assert product() == torch.float32
    with torch.autocast("cpu"):
        assert product() == torch.bfloat16
        with torch.autocast("cpu", enabled=False):
            assert product() == torch.float32
        with torch.autocast("cpu", dtype=torch.float16):
            assert product() == torch.float16
        assert product() == torch.bfloat16
        assert torch.is_autocast_enabled("cpu") and not torch.is_autocast_enabled("cuda")
    assert product() == torch.float32
    assert not torch.is_autocast_cpu_enabled()


def test_a_region_ends_with_an_exception() -> None:
    with pytest.raises(ZeroDivisionError), torch.autocast("cpu"):
        1 / 0  # noqa: B018
    assert product() == torch.float32


def test_a_region_may_be_entered_again_and_decorate() -> None:
    region = torch.autocast("cpu")
    with region, region:
        assert product() == torch.bfloat16

    @region
    def f(again: bool) -> torch.dtype:
        return f(False) if again else product()

    assert f(True) == torch.bfloat16
    assert product() == torch.float32


def test_what_needs_digits_runs_in_float32() -> None:
    with torch.autocast("cpu"):
        short = X @ W
        assert torch.nn.functional.mse_loss(short, X).dtype == torch.float32
        assert torch.cat([short, X]).dtype == torch.float32
        assert torch.cat([short, short]).dtype == torch.bfloat16
        assert (short + short).dtype == torch.bfloat16
        assert short.softmax(0).dtype == torch.bfloat16


def test_float64_integers_and_writes_are_left_alone() -> None:
    with torch.autocast("cpu"):
        assert (X.double() @ W.double()).dtype == torch.float64
        assert (X.long() @ W.long()).dtype == torch.int64
        out = torch.empty(3, 4)
        assert torch.mm(X, W, out=out).dtype == torch.float32
        assert X.clone().addmm_(X, W).dtype == torch.float32


def test_gradients_are_float32_and_backward_is_not_cast() -> None:
    x, w = X.clone().requires_grad_(), W.clone().requires_grad_()
    seen = []
    with torch.autocast("cpu"):
        loss = torch.nn.functional.mse_loss(x @ w, torch.zeros(3, 4))
        w.register_hook(lambda g: seen.append(torch.is_autocast_enabled("cpu")))
        loss.backward()
        assert torch.is_autocast_enabled("cpu")
    assert x.grad.dtype == w.grad.dtype == torch.float32
    assert seen == [False]
    expected = torch.full((3, 4), 2 * 4.0 / 12)
    torch.testing.assert_close(x.grad, expected @ W.T, rtol=1e-2, atol=0)


def test_casts_of_parameters_are_kept_until_the_region_ends() -> None:
    weight = torch.nn.Parameter(torch.ones(4, 4))
    with torch.autocast("cpu"):
        first, second = (torch.nn.functional.linear(X, weight) for _ in range(2))
        casts = [y.grad_fn.next_functions[1][0] for y in (first, second)]
        assert casts[0] is casts[1]
        with torch.no_grad():
            weight.mul_(2)
        assert torch.nn.functional.linear(X, weight)[0, 0] == 8
    with torch.autocast("cpu", cache_enabled=False):
        first, second = (torch.nn.functional.linear(X, weight) for _ in range(2))
        casts = [y.grad_fn.next_functions[1][0] for y in (first, second)]
        assert casts[0] is not casts[1]


def test_a_cast_made_without_recording_is_not_used_with() -> None:
    weight = torch.nn.Parameter(torch.ones(4, 4))
    with torch.autocast("cpu"):
        with torch.no_grad():
            torch.nn.functional.linear(X, weight)
        torch.nn.functional.linear(X, weight).float().sum().backward()
    torch.testing.assert_close(weight.grad, torch.full((4, 4), 3.0))


def test_other_threads_are_not_in_the_region() -> None:
    seen = []
    with torch.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append(product()))
        thread.start()
        thread.join()
    assert seen == [torch.float32]


def test_inside_transforms() -> None:
    with torch.autocast("cpu"):
        assert torch.vmap(lambda x: x @ W)(X).dtype == torch.bfloat16
        grads = torch.func.grad(lambda w: torch.nn.functional.mse_loss(X @ w, X))(W)
    assert grads.dtype == torch.float32


def test_switches_of_the_thread() -> None:
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_dtype("cpu", torch.float16)
    try:
        assert product() == torch.get_autocast_cpu_dtype() == torch.float16
    finally:
        torch.set_autocast_enabled("cpu", False)
        torch.set_autocast_dtype("cpu", torch.bfloat16)
    assert product() == torch.float32


def test_bad_arguments() -> None:
    with pytest.raises(RuntimeError, match="toaster"):
        torch.autocast("toaster")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.autocast(torch.device("cpu"))
    with pytest.warns(UserWarning, match=r"torch\.float64 is not supported. Disabling"):
        region = torch.autocast("cpu", dtype=torch.float64)
    with region:
        assert product() == torch.float32
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.amp.custom_fwd(device_type=3)


def test_functions_say_what_they_do_under_autocast() -> None:
    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            assert x.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
            return x @ w

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            return g @ w.T, x.T @ g

    w = W.clone().requires_grad_()
    with torch.autocast("cpu"):
        out = Product.apply(X.bfloat16(), w)
    assert out.dtype == torch.float32
    out.sum().backward()
    assert w.grad.dtype == torch.float32


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpoint_runs_again_under_the_autocast_of_its_first_run(use_reentrant) -> None:
    layer = torch.nn.Linear(4, 4)
    seen = []

    def region(x: torch.Tensor) -> torch.Tensor:
        seen.append(torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None)
        return torch.nn.functional.gelu(layer(x))

    gradients = []
    for run in (region, lambda x: checkpoint(region, x, use_reentrant=use_reentrant)):
        x = X.clone().requires_grad_()
        with torch.autocast("cpu", dtype=torch.float16):
            out = run(x)
        out.float().sum().backward()
        gradients.append(x.grad)
    assert seen == [torch.float16] * 3
    torch.testing.assert_close(*gradients, rtol=0, atol=0)


def test_older_names_and_the_cache() -> None:
    with pytest.warns(FutureWarning, match=r"torch.cpu.amp.autocast\(args...\)` is deprecated"):
        region = torch.cpu.amp.autocast(cache_enabled=False)
    assert region.device == "cpu" and region.fast_dtype == torch.bfloat16
    assert torch.is_autocast_cache_enabled()
    with region:
        assert not torch.is_autocast_cache_enabled()
        assert torch.autocast_increment_nesting() == 2
        assert torch.autocast_decrement_nesting() == 1
    weight = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        before = weight @ weight
        with torch.no_grad():
            weight.mul_(2)
        torch.clear_autocast_cache()
        assert (weight @ weight).sum() == 4 * before.sum()
    torch.set_autocast_cache_enabled(False)
    try:
        assert not torch.is_autocast_cache_enabled()
    finally:
        torch.set_autocast_cache_enabled(True)


def test_older_decorators_of_cuda_say_their_newer_names() -> None:
    with pytest.warns(FutureWarning, match=r"use `torch.amp.custom_fwd\(args..., device_type="):
        forward = torch.cuda.amp.custom_fwd(cast_inputs=torch.float32)(lambda ctx, x: x)
    with pytest.warns(FutureWarning, match=r"torch.cuda.amp.custom_bwd\(args...\)` is deprecated"):
        torch.cuda.amp.custom_bwd(lambda ctx, g: g)
    context = type("Context", (), {})()
    assert forward(context, 3) == 3
    assert context._fwd_used_autocast is False


def test_autocast_is_off_on_devices_that_are_not_here() -> None:
    assert not torch.is_autocast_enabled("mps") and not torch.is_autocast_enabled("meta")
    with pytest.raises(RuntimeError, match="device type"):
        torch.is_autocast_enabled("gpu")


def test_only_functions_are_decorated_and_only_devices_asked_about() -> None:
    with pytest.raises(TypeError, match="which is no function"):
        torch.autocast("cpu")(torch.ones(2))  # pyright: ignore[reportArgumentType]
    assert not torch.amp.is_autocast_available("meta")
    with pytest.raises(RuntimeError):
        torch.amp.is_autocast_available("not a device")
