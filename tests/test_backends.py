"""Switches of back ends: kept, checked, and set back."""

import subprocess
import sys

import pytest

import rushlight as torch
import rushlight.backends.cudnn as cudnn
import rushlight.backends.mkldnn as mkldnn


def test_switches_of_an_imported_module_are_kept_and_checked() -> None:
    assert torch.backends.cudnn is cudnn
    cudnn.benchmark = True
    assert torch.backends.cudnn.benchmark is True
    with pytest.raises(RuntimeError, match="set_benchmark_cudnn expects a bool, but got int"):
        torch.backends.cudnn.benchmark = 1
    with cudnn.flags(enabled=False, deterministic=True, benchmark=False):
        assert (cudnn.enabled, cudnn.deterministic, cudnn.benchmark) == (False, True, False)
    assert (cudnn.enabled, cudnn.deterministic, cudnn.benchmark) == (True, False, True)
    cudnn.benchmark = False


def test_flags_are_set_back_after_an_error() -> None:
    with (
        pytest.raises(RuntimeError, match="expects a bool"),
        cudnn.flags(enabled=True, benchmark=3),
    ):
        pass
    assert not cudnn.benchmark
    with pytest.raises(KeyError), cudnn.flags(enabled=False):
        raise KeyError
    assert cudnn.enabled


def test_products_without_onednn_are_the_same() -> None:
    a, b = torch.randn(64, 64), torch.randn(64, 64)
    with mkldnn.flags(enabled=False):
        assert not mkldnn.enabled and not mkldnn.is_available()
        without = a @ b
    assert torch.allclose(a @ b, without, atol=1e-4)
    assert mkldnn.enabled


def test_precisions_of_products_are_one_setting() -> None:
    matmul = torch.backends.cuda.matmul
    try:
        matmul.fp32_precision = "tf32"
        assert matmul.allow_tf32 and torch.get_float32_matmul_precision() == "high"
        with pytest.raises(RuntimeError, match="Unknown precision: x"):
            matmul.fp32_precision = "x"
        with pytest.warns(UserWarning, match="has no effect"):
            torch.set_float32_matmul_precision("best")
        assert matmul.fp32_precision == "tf32"
    finally:
        matmul.allow_tf32 = False
    with pytest.raises(AttributeError, match="Unknown attribute"):
        matmul.allow_tf23 = True


def test_precision_of_other_ops_is_kept_apart() -> None:
    mkldnn.conv.fp32_precision = "tf32"
    assert mkldnn.rnn.fp32_precision == "none"
    mkldnn.conv.fp32_precision = "none"
    torch.backends.fp32_precision = "ieee"
    with torch.backends.flags(fp32_precision="bf16"):
        assert torch.backends.fp32_precision == "bf16"
    assert torch.backends.set_flags("none") == ("ieee",)


def test_allow_tf32_is_the_precision_of_convolutions() -> None:
    try:
        assert cudnn.allow_tf32 and cudnn.conv.fp32_precision == "tf32"
        cudnn.allow_tf32 = False
        assert cudnn.conv.fp32_precision == cudnn.rnn.fp32_precision == "none"
        with cudnn.flags(enabled=True):
            assert cudnn.conv.fp32_precision == "tf32"
        assert not cudnn.allow_tf32
        with pytest.raises(RuntimeError, match="does not support precision 'bf16'"):
            cudnn.conv.fp32_precision = "bf16"
    finally:
        cudnn.allow_tf32 = True


def test_attention_kernels_are_noted_for_a_block() -> None:
    cuda = torch.backends.cuda
    with pytest.warns(FutureWarning, match="sdpa_kernel"), cuda.sdp_kernel(enable_flash=False):
        assert not cuda.flash_sdp_enabled() and cuda.math_sdp_enabled()
    assert cuda.flash_sdp_enabled()
    q = torch.ones(1, 1, 2, 4)
    assert not cuda.can_use_flash_attention(cuda.SDPAParams(q, q, q, None, 0.0, False))


def test_frozen_switches_change_only_in_blocks() -> None:
    program = """
import rushlight as torch
torch.backends.disable_global_flags()
assert torch.backends.flags_frozen()
try:
    torch.backends.cudnn.benchmark = True
except RuntimeError as error:
    assert "not allowed to set torch.backends.cudnn flags" in str(error), error
else:
    raise SystemExit("not refused")
with torch.backends.cudnn.flags(benchmark=True):
    assert torch.backends.cudnn.benchmark
assert not torch.backends.cudnn.benchmark
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_settings_of_deterministic_runs() -> None:
    import rushlight.utils.deterministic

    assert rushlight.utils.deterministic.fill_uninitialized_memory
    with pytest.raises(TypeError, match="argument 'mode' must be bool, not str"):
        torch.use_deterministic_algorithms("yes")
    assert torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
    torch.backends.mha.set_fastpath_enabled(False)
    assert not torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(True)
    with torch.backends.mkl.verbose(torch.backends.mkl.VERBOSE_ON):
        assert not torch.backends.mkl.is_available()
