"""Rushlight: a small, fast deep-learning framework with PyTorch's API.

`import rushlight as torch` runs ordinary PyTorch programs. Names come from the op table of the
native core; submodules are imported when first used.
"""

from __future__ import annotations

import sys as _sys

from rushlight import _C
from rushlight._C import (
    Generator,
    Size,
    as_tensor,
    can_cast,
    device,
    dtype,
    from_numpy,
    frombuffer,
    get_default_dtype,
    get_num_threads,
    is_grad_enabled,
    is_inference_mode_enabled,
    memory_format,
    promote_types,
    result_type,
    set_default_dtype,
    set_flush_denormal,
    set_num_threads,
    tensor,
)
from rushlight._C import bfloat16 as bfloat16
from rushlight._C import channels_last as channels_last
from rushlight._C import channels_last_3d as channels_last_3d
from rushlight._C import complex64 as complex64
from rushlight._C import complex128 as complex128
from rushlight._C import contiguous_format as contiguous_format
from rushlight._C import float8_e4m3fn as float8_e4m3fn
from rushlight._C import float8_e5m2 as float8_e5m2
from rushlight._C import float16 as float16
from rushlight._C import float32 as float32
from rushlight._C import float64 as float64
from rushlight._C import int8 as int8
from rushlight._C import int16 as int16
from rushlight._C import int32 as int32
from rushlight._C import int64 as int64
from rushlight._C import preserve_format as preserve_format
from rushlight._C import uint8 as uint8
from rushlight._C import uint16 as uint16
from rushlight._C import uint32 as uint32
from rushlight._C import uint64 as uint64

_C._set_library_search_path([_sys.prefix + "/lib", *_sys.path])

from rushlight._dtype_info import finfo, iinfo
from rushlight._errors import AcceleratorError as AcceleratorError
from rushlight._errors import OutOfMemoryError
from rushlight._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from rushlight._layout import layout, sparse_coo, sparse_csc, sparse_csr, strided
from rushlight._tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

bool = _C.bool
legacy_contiguous_format = contiguous_format
half = float16
float = float32
double = float64
short = int16
int = int32
long = int64
cfloat = complex64
cdouble = complex128

from math import e, inf, nan, pi

from rushlight._ops import *

newaxis = None

# Where names live that are imported when first used: submodules by themselves, functions in one.
_SUBMODULES = (
    "__config__",
    "_dynamo",
    "_tensor_str",
    "_utils",
    "accelerator",
    "amp",
    "ao",
    "array_api",
    "autograd",
    "backends",
    "compiler",
    "cpu",
    "cuda",
    "distributed",
    "distributions",
    "export",
    "fft",
    "func",
    "functional",
    "futures",
    "fx",
    "hub",
    "jit",
    "library",
    "linalg",
    "mps",
    "multiprocessing",
    "nn",
    "onnx",
    "ops",
    "optim",
    "overrides",
    "profiler",
    "quantization",
    "quasirandom",
    "random",
    "return_types",
    "serialization",
    "signal",
    "sparse",
    "special",
    "storage",
    "testing",
    "types",
    "utils",
    "version",
    "vision",
    "xpu",
)
_LAZY = {
    "GradScaler": "amp",
    "autocast": "amp",
    "autocast_decrement_nesting": "amp.autocast_mode",
    "autocast_increment_nesting": "amp.autocast_mode",
    "clear_autocast_cache": "amp.autocast_mode",
    "get_autocast_cpu_dtype": "amp.autocast_mode",
    "get_autocast_dtype": "amp.autocast_mode",
    "get_autocast_gpu_dtype": "amp.autocast_mode",
    "is_autocast_cache_enabled": "amp.autocast_mode",
    "is_autocast_cpu_enabled": "amp.autocast_mode",
    "is_autocast_enabled": "amp.autocast_mode",
    "set_autocast_cache_enabled": "amp.autocast_mode",
    "set_autocast_cpu_dtype": "amp.autocast_mode",
    "set_autocast_cpu_enabled": "amp.autocast_mode",
    "set_autocast_dtype": "amp.autocast_mode",
    "set_autocast_enabled": "amp.autocast_mode",
    "set_autocast_gpu_dtype": "amp.autocast_mode",
    "vmap": "func",
    "save": "serialization",
    "load": "serialization",
    "manual_seed": "random",
    "seed": "random",
    "initial_seed": "random",
    "ScriptFunction": "jit",
    "ScriptModule": "jit",
    "TensorType": "jit",
    "DeviceObjType": "jit",
    "get_rng_state": "random",
    "set_rng_state": "random",
    "default_generator": "random",
    "thread_safe_generator": "random",
    "set_printoptions": "_printing",
    "einsum": "_functional",
    "tensordot": "_functional",
    "from_dlpack": "utils.dlpack",
    "to_dlpack": "utils.dlpack",
    "_assert": "_functional",
    "_assert_async": "_functional",
    "_segment_reduce": "_functional",
    "is_tensor": "_functional",
    "is_storage": "_functional",
    "is_floating_point": "_functional",
    "is_complex": "_functional",
    "numel": "_functional",
    "broadcast_shapes": "_functional",
    "typename": "_functional",
    "set_default_device": "_functional",
    "get_default_device": "_functional",
    "use_deterministic_algorithms": "_settings",
    "are_deterministic_algorithms_enabled": "_settings",
    "set_float32_matmul_precision": "_settings",
    "get_float32_matmul_precision": "_settings",
    "compile": "_functional",
    "eig": "_linalg",
    "lobpcg": "_linalg",
    "lstsq": "_linalg",
    "lu": "_linalg",
    "matrix_rank": "_linalg",
    "pca_lowrank": "_linalg",
    "solve": "_linalg",
    "svd_lowrank": "_linalg",
    "symeig": "_linalg",
    "unique": "_functional",
    "unique_consecutive": "_functional",
    "gradient": "_numeric",
    "hash_tensor": "_numeric",
    "histogram": "_numeric",
    "histogramdd": "_numeric",
    "asarray": "_creation",
    "detach_": "_functional",
    "from_file": "_creation",
    "range": "_creation",
    "int1": "_dtype_names",
    "int2": "_dtype_names",
    "int3": "_dtype_names",
    "int4": "_dtype_names",
    "int5": "_dtype_names",
    "int6": "_dtype_names",
    "int7": "_dtype_names",
    "uint1": "_dtype_names",
    "uint2": "_dtype_names",
    "uint3": "_dtype_names",
    "uint4": "_dtype_names",
    "uint5": "_dtype_names",
    "uint6": "_dtype_names",
    "uint7": "_dtype_names",
    "chalf": "_dtype_names",
    "complex32": "_dtype_names",
    "float4_e2m1fn_x2": "_dtype_names",
    "float8_e4m3fnuz": "_dtype_names",
    "float8_e5m2fnuz": "_dtype_names",
    "float8_e8m0fnu": "_dtype_names",
    "BFloat16Tensor": "_legacy",
    "BoolTensor": "_legacy",
    "ByteTensor": "_legacy",
    "CharTensor": "_legacy",
    "DoubleTensor": "_legacy",
    "FloatTensor": "_legacy",
    "HalfTensor": "_legacy",
    "IntTensor": "_legacy",
    "LongTensor": "_legacy",
    "ShortTensor": "_legacy",
    "set_default_tensor_type": "_legacy",
    "DisableTorchFunctionSubclass": "overrides",
    "SymBool": "_settings",
    "SymFloat": "_settings",
    "SymInt": "_settings",
    "compiled_with_cxx11_abi": "_settings",
    "get_deterministic_debug_mode": "_settings",
    "get_device_module": "_settings",
    "get_num_interop_threads": "_settings",
    "has_lapack": "_settings",
    "has_mkl": "_settings",
    "has_openmp": "_settings",
    "has_spectral": "_settings",
    "is_anomaly_check_nan_enabled": "_settings",
    "is_anomaly_enabled": "_settings",
    "is_deterministic_algorithms_warn_only_enabled": "_settings",
    "is_vulkan_available": "_settings",
    "is_warn_always_enabled": "_settings",
    "set_anomaly_enabled": "_settings",
    "set_deterministic_debug_mode": "_settings",
    "set_num_interop_threads": "_settings",
    "set_warn_always": "_settings",
    "sym_float": "_settings",
    "sym_int": "_settings",
    "sym_ite": "_settings",
    "sym_max": "_settings",
    "sym_min": "_settings",
    "sym_not": "_settings",
    "sym_sqrt": "_settings",
    "sym_sum": "_settings",
    "adaptive_max_pool1d": "_root_nn",
    "alpha_dropout": "_root_nn",
    "batch_norm": "_root_nn",
    "binary_cross_entropy_with_logits": "_root_nn",
    "convolution": "_root_nn",
    "cosine_embedding_loss": "_root_nn",
    "ctc_loss": "_root_nn",
    "embedding": "_root_nn",
    "feature_alpha_dropout": "_root_nn",
    "group_norm": "_root_nn",
    "hinge_embedding_loss": "_root_nn",
    "instance_norm": "_root_nn",
    "kl_div": "_root_nn",
    "layer_norm": "_root_nn",
    "margin_ranking_loss": "_root_nn",
    "native_batch_norm": "_root_nn",
    "native_group_norm": "_root_nn",
    "native_layer_norm": "_root_nn",
    "norm_except_dim": "_root_nn",
    "poisson_nll_loss": "_root_nn",
    "rrelu": "_root_nn",
    "rrelu_": "_root_nn",
    "triplet_margin_loss": "_root_nn",
    "bilinear": "nn.functional",
    "cosine_similarity": "nn.functional",
    "pairwise_distance": "nn.functional",
    "rms_norm": "nn.functional",
    "alias_copy": "_view_copies",
    "as_strided_copy": "_view_copies",
    "ccol_indices_copy": "_view_copies",
    "col_indices_copy": "_view_copies",
    "crow_indices_copy": "_view_copies",
    "detach_copy": "_view_copies",
    "diagonal_copy": "_view_copies",
    "expand_copy": "_view_copies",
    "indices_copy": "_view_copies",
    "narrow_copy": "_view_copies",
    "permute_copy": "_view_copies",
    "row_indices_copy": "_view_copies",
    "select_copy": "_view_copies",
    "split_copy": "_view_copies",
    "split_with_sizes_copy": "_view_copies",
    "squeeze_copy": "_view_copies",
    "t_copy": "_view_copies",
    "transpose_copy": "_view_copies",
    "unbind_copy": "_view_copies",
    "unfold_copy": "_view_copies",
    "unsqueeze_copy": "_view_copies",
    "values_copy": "_view_copies",
    "view_as_complex_copy": "_view_copies",
    "view_as_real_copy": "_view_copies",
    "view_copy": "_view_copies",
    "Stream": "cuda.streams",
    "Event": "_accelerator",
    "BFloat16Storage": "_storage",
    "BoolStorage": "_storage",
    "ByteStorage": "_storage",
    "CharStorage": "_storage",
    "ComplexDoubleStorage": "_storage",
    "ComplexFloatStorage": "_storage",
    "DoubleStorage": "_storage",
    "FloatStorage": "_storage",
    "HalfStorage": "_storage",
    "IntStorage": "_storage",
    "LongStorage": "_storage",
    "ShortStorage": "_storage",
    "Storage": "_storage",
    "StorageBase": "_storage",
    "TypedStorage": "_storage",
    "Future": "futures",
    "UntypedStorage": "_storage",
    "PyTorchFileReader": "_checkpoint.file_reader",
    "_convert_indices_from_coo_to_csr": "_sparse",
    "_convert_indices_from_csr_to_coo": "_sparse",
    "dsmm": "_sparse",
    "resize_as_sparse_": "_sparse",
    "saddmm": "_sparse",
    "_choose_qparams_per_tensor": "_quantized",
    "_empty_affine_quantized": "_quantized",
    "_fake_quantize_learnable_per_channel_affine": "_quantized",
    "_fake_quantize_learnable_per_tensor_affine": "_quantized",
    "_make_per_channel_quantized_tensor": "_quantized",
    "_make_per_tensor_quantized_tensor": "_quantized",
    "dequantize": "_quantized",
    "int_repr": "_quantized",
    "per_channel_affine": "_quantized",
    "per_channel_affine_float_qparams": "_quantized",
    "per_channel_symmetric": "_quantized",
    "per_tensor_affine": "_quantized",
    "per_tensor_symmetric": "_quantized",
    "q_per_channel_axis": "_quantized",
    "q_per_channel_scales": "_quantized",
    "q_per_channel_zero_points": "_quantized",
    "q_scale": "_quantized",
    "q_zero_point": "_quantized",
    "qint32": "_quantized",
    "qint8": "_quantized",
    "qscheme": "_quantized",
    "quantize_per_channel": "_quantized",
    "quantize_per_tensor": "_quantized",
    "quantize_per_tensor_dynamic": "_quantized",
    "quint8": "_quantized",
    "spmm": "_sparse",
    "sparse_coo_tensor": "_sparse",
    "sparse_compressed_tensor": "_sparse",
    "sparse_csc_tensor": "_sparse",
    "sparse_csr_tensor": "_sparse",
}


def __getattr__(name: str) -> Any:
    import importlib

    if name in _SUBMODULES:
        return importlib.import_module(f"rushlight.{name}")
    home = "_foreach" if name.startswith("_foreach_") else _LAZY.get(name)
    if home:
        value = getattr(importlib.import_module(f"rushlight.{home}"), name)
    if name.startswith("_foreach_"):
        return getattr(importlib.import_module("rushlight._foreach"), name)
    if name in _LAZY:
        value = getattr(importlib.import_module(f"rushlight.{_LAZY[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'rushlight' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *_LAZY})
