"""The switches of back ends take PyTorch's values and refuse what it refuses."""

import importlib
import subprocess
import sys
import warnings

import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")

READS = [
    "backends.cudnn.enabled",
    "backends.cudnn.benchmark",
    "backends.cudnn.deterministic",
    "backends.cudnn.allow_tf32",
    "backends.cudnn.version()",
    "backends.cudnn.is_available()",
    "backends.cudnn.is_acceptable(ones(1))",
    "backends.cuda.matmul.allow_tf32",
    "backends.cuda.matmul.allow_fp16_reduced_precision_reduction",
    "backends.cuda.matmul.allow_bf16_reduced_precision_reduction",
    "backends.cuda.matmul.allow_fp16_accumulation",
    "backends.cuda.matmul.unknown",
    "backends.cuda.flash_sdp_enabled()",
    "backends.cuda.math_sdp_enabled()",
    "backends.cuda.mem_efficient_sdp_enabled()",
    "backends.cuda.cudnn_sdp_enabled()",
    "backends.cuda.is_flash_attention_available()",
    "backends.cuda.fp16_bf16_reduction_math_sdp_allowed()",
    "backends.cuda.preferred_linalg_library('x')",
    "backends.cuda.preferred_blas_library('x')",
    "backends.cuda.enable_flash_sdp(3)",
    "backends.cuda.cufft_plan_cache[0]",
    "backends.mkldnn.enabled",
    "backends.mkldnn.deterministic",
    "backends.mkldnn.is_available()",
    "backends.openmp.is_available()",
    "backends.mps.is_available()",
    "backends.mps.is_built()",
    "backends.quantized.engine",
    "backends.quantized.supported_engines",
    "backends.mha.get_fastpath_enabled()",
    "backends.cusparselt.is_available()",
    "backends.kleidiai.is_available()",
    "backends.fp32_precision",
    "backends.flags_frozen()",
    "backends.cpu.get_cpu_capability()",
    "backends.unknown",
    "get_float32_matmul_precision()",
    "set_float32_matmul_precision(3)",
    "set_float32_matmul_precision('foo')",
    "use_deterministic_algorithms('a')",
    "use_deterministic_algorithms(1)",
    "use_deterministic_algorithms(False, warn_only=1)",
    "set_deterministic_debug_mode(7)",
    "set_deterministic_debug_mode('foo')",
    "set_deterministic_debug_mode(1.0)",
]

WRITES = [
    ("backends.cudnn", "benchmark", True),
    ("backends.cudnn", "benchmark", 1),
    ("backends.cudnn", "benchmark", None),
    ("backends.cudnn", "deterministic", "yes"),
    ("backends.cudnn", "enabled", False),
    ("backends.cudnn", "allow_tf32", False),
    ("backends.cuda.matmul", "allow_tf32", "a"),
    ("backends.cuda.matmul", "unknown", 1),
    ("backends.cuda.matmul", "allow_fp16_reduced_precision_reduction", False),
    ("backends.cuda.matmul", "allow_fp16_reduced_precision_reduction", 3),
    ("backends.cuda.matmul", "fp32_precision", "x"),
    ("backends.mkldnn", "enabled", False),
    ("backends.mkldnn", "deterministic", 2),
    ("backends.quantized", "engine", "qnnpack"),
    ("backends.quantized", "engine", "foo"),
    ("backends.quantized", "supported_engines", []),
]


def outcome(library, expression):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return eval(f"library.{expression}".replace("ones(", "library.ones("))
        except Exception as error:
            return type(error)


def target(library, path):
    for name in path.split("."):
        library = getattr(library, name)
    return library


@pytest.mark.parametrize("expression", READS)
def test_reading(expression) -> None:
    asks_cuda = expression in (
        "backends.cudnn.is_available()",
        "backends.cudnn.version()",
        "backends.cuda.cufft_plan_cache[0]",
        "backends.cuda.is_flash_attention_available()",
        "backends.cusparselt.is_available()",
    )
    there = torch.cuda.is_available(), pytorch.cuda.is_available(), pytorch.backends.cuda.is_built()
    if asks_cuda and len({*there}) == 2:
        pytest.skip("a GPU, the stand-in for one, or a build for it is there for one of them only")
    assert outcome(torch, expression) == outcome(pytorch, expression)


@pytest.mark.parametrize(("path", "name", "value"), WRITES)
def test_writing(path, name, value) -> None:
    outcomes = []
    for library in (torch, pytorch):
        owner = target(library, path)
        before = getattr(owner, name, None)
        try:
            setattr(owner, name, value)
            outcomes.append(getattr(owner, name))
            setattr(owner, name, before)
        except Exception as error:
            outcomes.append((type(error), str(error)))
    assert repr(outcomes[0]) == repr(outcomes[1]) or outcomes[0][0] is outcomes[1][0]


@pytest.mark.parametrize("name", ["cudnn", "mkldnn", "nnpack"])
def test_flags_hold_for_a_block(name) -> None:
    seen = []
    for library in ("rushlight", "torch"):
        module = importlib.import_module(f"{library}.backends.{name}")
        before = module.set_flags() if name != "nnpack" else module.set_flags(True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with module.flags(enabled=False):
                inside = module.set_flags() if name != "nnpack" else module.set_flags(False)
        after = module.set_flags() if name != "nnpack" else module.set_flags(True)
        assert before == after
        seen.append((before[0], inside[0]))
        with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
            module.flags(foo=1)
    assert seen[0] == seen[1]


# What is set one after another.
PRECISIONS = [
    *(f"backends.fp32_precision = {value!r}" for value in ("ieee", "tf32", "bf16", "none")),
    "cudnn.allow_tf32 = False",
    "cudnn.allow_tf32 = True",
    "cudnn.fp32_precision = 'ieee'",
    "cudnn.fp32_precision = 'none'",
    "cudnn.conv.fp32_precision = 'ieee'",
    "cudnn.rnn.fp32_precision = 'ieee'",
    "cudnn.conv.fp32_precision = 'none'",
    "cudnn.fp32_precision = 'tf32'",
    "cudnn.conv.fp32_precision = 'bf16'",
    "cudnn.fp32_precision = 'none'",
    "backends.fp32_precision = 'ieee'",
]


def test_precisions_of_convolutions_follow_each_other() -> None:
    program = """
import importlib, sys
backends = importlib.import_module(sys.argv[1]).backends
cudnn = backends.cudnn
for line in ["pass", *sys.argv[2:]]:
    try:
        exec(line)
    except RuntimeError as error:
        print(error)
    print([part.fp32_precision for part in (backends, cudnn, cudnn.conv, cudnn.rnn)])
"""
    shown = [
        subprocess.check_output([sys.executable, "-c", program, name, *PRECISIONS], text=True)
        for name in ("rushlight", "torch")
    ]
    assert shown[0].splitlines() == shown[1].splitlines()
