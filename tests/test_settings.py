"""Global settings, and helpers for numbers."""

from __future__ import annotations

import pytest

import rushlight as torch


def test_deterministic_debug_mode_and_algorithms_are_one_setting() -> None:
    try:
        for number, (word, enabled, warns) in enumerate(
            [("default", False, False), ("warn", True, True), ("error", True, False)]
        ):
            torch.set_deterministic_debug_mode(word)
            assert torch.get_deterministic_debug_mode() == number
            assert torch.are_deterministic_algorithms_enabled() is enabled
            assert torch.is_deterministic_algorithms_warn_only_enabled() is warns
            torch.set_deterministic_debug_mode(number)
            assert torch.get_deterministic_debug_mode() == number
        torch.use_deterministic_algorithms(True, warn_only=True)
        assert torch.get_deterministic_debug_mode() == 1
        torch.use_deterministic_algorithms(False, warn_only=True)
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.get_deterministic_debug_mode() == 0
    finally:
        torch.set_deterministic_debug_mode(0)
    for wrong in ("x", 5):
        with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
            torch.set_deterministic_debug_mode(wrong)


def test_flags_are_remembered() -> None:
    assert not torch.is_warn_always_enabled() and not torch.is_anomaly_enabled()
    torch.set_warn_always(True)
    torch.set_anomaly_enabled(True, False)
    assert torch.is_warn_always_enabled() and torch.is_anomaly_enabled()
    assert not torch.is_anomaly_check_nan_enabled()
    torch.set_warn_always(False)
    torch.set_anomaly_enabled(False)
    with pytest.raises(RuntimeError, match="positive integer"):
        torch.set_num_interop_threads(0)
    assert torch.get_num_interop_threads() >= 1 and torch.compiled_with_cxx11_abi()
    assert torch.has_lapack and torch.has_openmp and torch.has_spectral and not torch.has_mkl
    assert torch.has_cuda == torch.backends.cuda.is_built()
    assert torch.has_cudnn == torch.backends.cudnn.is_available()
    assert torch.has_mkldnn == torch.backends.mkldnn.is_available()
    assert not hasattr(torch._settings, "has_tpu")


def test_denormals_are_flushed_on_all_threads() -> None:
    tiny = torch.full((1_000_000,), 1e-40)
    if not torch.set_flush_denormal(True):
        pytest.skip("the processor has no such switch")
    try:
        assert not (tiny * 1.0).any()
    finally:
        torch.set_flush_denormal(False)
    assert (tiny * 1.0).all()


def test_numbers_are_known() -> None:
    assert [torch.sym_int(2.7), torch.sym_max(3, 2.0), torch.sym_min(1, 2)] == [2, 3.0, 1]
    assert isinstance(torch.sym_max(3, 2.0), float) and isinstance(torch.sym_max(3, 2), int)
    assert torch.sym_not(True) is False and torch.sym_float(3) == 3.0
    assert torch.sym_ite(True, 1, 2) == 1 and torch.sym_ite(False, 1, 2) == 2
    assert torch.sym_sum([1, 2]) == torch.sym_sum(1, 2) == 3 and torch.sym_sqrt(4) == 2.0
    with pytest.raises(AssertionError, match="type mismatch"):
        torch.sym_ite(True, 1, 2.0)
    assert not isinstance(torch.ones(2).shape[0], torch.SymInt)


def test_each_kind_of_device_has_a_module() -> None:
    assert torch.get_device_module("cpu") is torch.cpu
    assert torch.get_device_module(torch.device("cuda", 1)) is torch.cuda
    assert torch.get_device_module() in (torch.cpu, torch.cuda)
    with pytest.raises(RuntimeError, match="does not have a corresponding module"):
        torch.get_device_module("meta")
    assert torch.cpu.is_available() and torch.cpu.device_count() == 1
    torch.cpu.current_stream().wait_stream(torch.cpu.Stream())
    torch.cpu.synchronize()


def test_events_are_those_of_a_gpu() -> None:
    with pytest.raises(NotImplementedError, match="no streams on cpu"):
        torch.Event("cpu")
    assert issubclass(torch.Event, torch.cuda.Event) and torch.Stream is torch.cuda.Stream


def test_what_programs_ask_about_the_build_and_the_gpu() -> None:
    assert torch.version.__version__ == torch.__version__
    assert torch.version.cuda is None and torch.version.hip is None
    assert torch.__config__.show().startswith(f"Rushlight {torch.__version__}")
    found = torch.accelerator.current_accelerator()
    assert torch.accelerator.is_available() == torch.cuda.is_available() == (found is not None)
    assert all(hasattr(torch.accelerator, name) for name in torch.accelerator.__all__)
    assert torch.equal(torch.accelerator.random.get_rng_state(), torch.get_rng_state())
    assert torch.accelerator.random.initial_seed() == torch.initial_seed()
    assert len(torch.accelerator.random.get_rng_state_all()) == torch.cuda.device_count()


def test_gpus_of_other_makers_are_not_there() -> None:
    for other in (torch.xpu, torch.mps):
        assert not other.is_available() and other.device_count() == 0


def test_marks_of_compilers_leave_functions_alone() -> None:
    def function(x: int) -> int:
        return x

    jit, compiler = torch.jit, torch.compiler
    for mark in (jit.script, jit.ignore, jit.unused, jit.export, jit.script_if_tracing, jit.freeze):
        assert mark(function) is function
    assert jit.script_method(function) is function and jit.wait(jit.fork(function, x=3)) == 3
    assert not isinstance(jit.script(function), jit.ScriptFunction)
    assert jit.ignore(drop=True)(function) is function
    assert compiler.disable(function) is compiler.disable()(function) is function
    assert torch._disable_dynamo(function) is torch._disable_dynamo()(function) is function
    assert compiler.allow_in_graph(function) is function
    assert not (jit.is_scripting() or jit.is_tracing() or compiler.is_compiling())
    assert jit.annotate(int, 3) == 3
    assert jit.interface(torch.Tensor) is torch.Tensor and jit._overload(function) is function
    assert jit.Attribute(3, int).value == 3 and torch.ScriptModule is jit.ScriptModule
    assert issubclass(jit.TracerWarning, Warning)


def test_a_module_that_extends_script_module_is_as_any_other() -> None:
    class Scale(torch.jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.factor = torch.nn.Parameter(torch.tensor(3.0))

        @torch.jit.script_method
        def forward(self, x):
            return x * self.factor

    scale = Scale()
    assert scale(torch.tensor(2.0)).item() == 6 and list(scale.state_dict()) == ["factor"]
    with pytest.raises(RuntimeError, match="Scale was not recorded"):
        torch.jit.save(scale, "scale.pt")


def test_annotations_name_what_arguments_may_be() -> None:
    assert isinstance(3.0, torch.types.Number) and isinstance("cpu", torch.types.Device)
    assert isinstance(torch.Size([2]), torch.types._size) and torch.types._dtype is torch.dtype
    assert torch.types._int is int and torch.types._device is torch.device
    assert isinstance([torch.ones(1)], torch.types._TensorOrTensors.__args__[1].__origin__)
    assert torch.storage.UntypedStorage is torch.UntypedStorage
    assert torch.utils.model_zoo.load_url is torch.hub.load_state_dict_from_url


def test_cpu_capabilities_are_those_of_the_processor() -> None:
    capabilities = torch.cpu.get_capabilities()
    assert capabilities is torch.cpu.get_capabilities()
    with pytest.raises(TypeError, match="assignment"):
        capabilities["avx2"] = True  # pyright: ignore[reportIndexIssue]
    if capabilities["architecture"] == "x86_64":
        assert capabilities["sse2"] is True and capabilities["fma4"] in (False, True)
        if torch.backends.cpu.get_cpu_capability() == "AVX512":
            assert all(capabilities[f"avx512_{part}"] for part in ("f", "bw", "cd", "dq", "vl"))
        if torch.backends.cpu.get_cpu_capability() != "DEFAULT":
            assert all(capabilities[name] for name in ("avx2", "fma3", "f16c", "bmi", "lzcnt"))
    elif capabilities["architecture"] == "aarch64":
        assert capabilities["neon"] is True
