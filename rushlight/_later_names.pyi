"""Types of what comes later. Written by tools/make_stubs.py; do not edit."""

from collections.abc import Mapping, Sequence

from rushlight import __config__ as __config__
from rushlight import _VF as _VF
from rushlight import _dynamo as _dynamo
from rushlight import _functorch as _functorch
from rushlight import _guards as _guards
from rushlight import _inductor as _inductor
from rushlight import _jit_internal as _jit_internal
from rushlight import _logging as _logging
from rushlight import _prims_common as _prims_common
from rushlight import _subclasses as _subclasses
from rushlight import _tensor_str as _tensor_str
from rushlight import _utils as _utils
from rushlight import accelerator as accelerator
from rushlight import amp as amp
from rushlight import ao as ao
from rushlight import array_api as array_api
from rushlight import autograd as autograd
from rushlight import __future__ as __future__
from rushlight import backends as backends
from rushlight import compiler as compiler
from rushlight import cpu as cpu
from rushlight import cuda as cuda
from rushlight import distributed as distributed
from rushlight import distributions as distributions
from rushlight import export as export
from rushlight import fft as fft
from rushlight import func as func
from rushlight import functional as functional
from rushlight import futures as futures
from rushlight import fx as fx
from rushlight import hub as hub
from rushlight import jit as jit
from rushlight import library as library
from rushlight import linalg as linalg
from rushlight import masked as masked
from rushlight import monitor as monitor
from rushlight import mps as mps
from rushlight import mtia as mtia
from rushlight import multiprocessing as multiprocessing
from rushlight import nested as nested
from rushlight import nn as nn
from rushlight import onnx as onnx
from rushlight import ops as ops
from rushlight import optim as optim
from rushlight import overrides as overrides
from rushlight import profiler as profiler
from rushlight import quantization as quantization
from rushlight import quasirandom as quasirandom
from rushlight import random as random
from rushlight import return_types as return_types
from rushlight import serialization as serialization
from rushlight import signal as signal
from rushlight import sparse as sparse
from rushlight import special as special
from rushlight import storage as storage
from rushlight import testing as testing
from rushlight import types as types
from rushlight import utils as utils
from rushlight import version as version
from rushlight import vision as vision
from rushlight import xpu as xpu
from rushlight._accelerator import Event as Event
from rushlight.amp.grad_scaler import _amp_foreach_non_finite_check_and_unscale_ as _amp_foreach_non_finite_check_and_unscale_
from rushlight.amp.grad_scaler import _amp_update_scale_ as _amp_update_scale_
from rushlight._checkpoint.file_reader import PyTorchFileReader as PyTorchFileReader
from rushlight._checkpoint.file_writer import PyTorchFileWriter as PyTorchFileWriter
from rushlight._conditions import _assert as _assert
from rushlight._conditions import _assert_async as _assert_async
from rushlight._conditions import _check as _check
from rushlight._conditions import _check_index as _check_index
from rushlight._conditions import _check_is_size as _check_is_size
from rushlight._conditions import _check_not_implemented as _check_not_implemented
from rushlight._conditions import _check_tensor_all as _check_tensor_all
from rushlight._conditions import _check_tensor_all_with as _check_tensor_all_with
from rushlight._conditions import _check_type as _check_type
from rushlight._conditions import _check_value as _check_value
from rushlight._conditions import _check_with as _check_with
from rushlight._creation import asarray as asarray
from rushlight._creation import from_file as from_file
from rushlight._creation import range as range
from rushlight._distinct import unique as unique
from rushlight._distinct import unique_consecutive as unique_consecutive
from rushlight._dtype_names import chalf as chalf
from rushlight._dtype_names import complex32 as complex32
from rushlight._dtype_names import float4_e2m1fn_x2 as float4_e2m1fn_x2
from rushlight._dtype_names import float8_e4m3fnuz as float8_e4m3fnuz
from rushlight._dtype_names import float8_e5m2fnuz as float8_e5m2fnuz
from rushlight._dtype_names import float8_e8m0fnu as float8_e8m0fnu
from rushlight._dtype_names import int1 as int1
from rushlight._dtype_names import int2 as int2
from rushlight._dtype_names import int3 as int3
from rushlight._dtype_names import int4 as int4
from rushlight._dtype_names import int5 as int5
from rushlight._dtype_names import int6 as int6
from rushlight._dtype_names import int7 as int7
from rushlight._dtype_names import uint1 as uint1
from rushlight._dtype_names import uint2 as uint2
from rushlight._dtype_names import uint3 as uint3
from rushlight._dtype_names import uint4 as uint4
from rushlight._dtype_names import uint5 as uint5
from rushlight._dtype_names import uint6 as uint6
from rushlight._dtype_names import uint7 as uint7
from rushlight._einsum import einsum as einsum
from rushlight._einsum import tensordot as tensordot
from rushlight._functional import _has_compatible_shallow_copy_type as _has_compatible_shallow_copy_type
from rushlight._functional import _segment_reduce as _segment_reduce
from rushlight._functional import broadcast_shapes as broadcast_shapes
from rushlight._functional import detach_ as detach_
from rushlight._functional import is_complex as is_complex
from rushlight._functional import is_floating_point as is_floating_point
from rushlight._functional import is_storage as is_storage
from rushlight._functional import is_tensor as is_tensor
from rushlight._functional import numel as numel
from rushlight._functional import typename as typename
from rushlight._higher_order_ops import cond as cond
from rushlight._higher_order_ops import while_loop as while_loop
from rushlight._legacy import BFloat16Tensor as BFloat16Tensor
from rushlight._legacy import BoolTensor as BoolTensor
from rushlight._legacy import ByteTensor as ByteTensor
from rushlight._legacy import CharTensor as CharTensor
from rushlight._legacy import DoubleTensor as DoubleTensor
from rushlight._legacy import FloatTensor as FloatTensor
from rushlight._legacy import HalfTensor as HalfTensor
from rushlight._legacy import IntTensor as IntTensor
from rushlight._legacy import LongTensor as LongTensor
from rushlight._legacy import ShortTensor as ShortTensor
from rushlight._legacy import set_default_tensor_type as set_default_tensor_type
from rushlight._linalg import eig as eig
from rushlight._linalg import lobpcg as lobpcg
from rushlight._linalg import lstsq as lstsq
from rushlight._linalg import lu as lu
from rushlight._linalg import matrix_rank as matrix_rank
from rushlight._linalg import pca_lowrank as pca_lowrank
from rushlight._linalg import solve as solve
from rushlight._linalg import svd_lowrank as svd_lowrank
from rushlight._linalg import symeig as symeig
from rushlight._numeric import gradient as gradient
from rushlight._numeric import hash_tensor as hash_tensor
from rushlight._numeric import histogram as histogram
from rushlight._numeric import histogramdd as histogramdd
from rushlight._printing import set_printoptions as set_printoptions
from rushlight._quantized import _choose_qparams_per_tensor as _choose_qparams_per_tensor
from rushlight._quantized import _empty_affine_quantized as _empty_affine_quantized
from rushlight._quantized import _fake_quantize_learnable_per_channel_affine as _fake_quantize_learnable_per_channel_affine
from rushlight._quantized import _fake_quantize_learnable_per_tensor_affine as _fake_quantize_learnable_per_tensor_affine
from rushlight._quantized import _make_per_channel_quantized_tensor as _make_per_channel_quantized_tensor
from rushlight._quantized import _make_per_tensor_quantized_tensor as _make_per_tensor_quantized_tensor
from rushlight._quantized import dequantize as dequantize
from rushlight._quantized import int_repr as int_repr
from rushlight._quantized import per_channel_affine as per_channel_affine
from rushlight._quantized import per_channel_affine_float_qparams as per_channel_affine_float_qparams
from rushlight._quantized import per_channel_symmetric as per_channel_symmetric
from rushlight._quantized import per_tensor_affine as per_tensor_affine
from rushlight._quantized import per_tensor_symmetric as per_tensor_symmetric
from rushlight._quantized import q_per_channel_axis as q_per_channel_axis
from rushlight._quantized import q_per_channel_scales as q_per_channel_scales
from rushlight._quantized import q_per_channel_zero_points as q_per_channel_zero_points
from rushlight._quantized import q_scale as q_scale
from rushlight._quantized import q_zero_point as q_zero_point
from rushlight._quantized import qint32 as qint32
from rushlight._quantized import qint8 as qint8
from rushlight._quantized import qscheme as qscheme
from rushlight._quantized import quantize_per_channel as quantize_per_channel
from rushlight._quantized import quantize_per_tensor as quantize_per_tensor
from rushlight._quantized import quantize_per_tensor_dynamic as quantize_per_tensor_dynamic
from rushlight._quantized import quint2x4 as quint2x4
from rushlight._quantized import quint4x2 as quint4x2
from rushlight._quantized import quint8 as quint8
from rushlight._quantized_library import quantized_batch_norm as quantized_batch_norm
from rushlight._quantized_library import quantized_max_pool1d as quantized_max_pool1d
from rushlight._quantized_library import quantized_max_pool2d as quantized_max_pool2d
from rushlight._quantized_library import quantized_max_pool3d as quantized_max_pool3d
from rushlight._root_nn import _grouped_mm as _grouped_mm
from rushlight._root_nn import _log_softmax_backward_data as _log_softmax_backward_data
from rushlight._root_nn import _scaled_mm as _scaled_mm
from rushlight._root_nn import _shape_as_tensor as _shape_as_tensor
from rushlight._root_nn import _softmax_backward_data as _softmax_backward_data
from rushlight._root_nn import adaptive_max_pool1d as adaptive_max_pool1d
from rushlight._root_nn import alpha_dropout as alpha_dropout
from rushlight._root_nn import batch_norm as batch_norm
from rushlight._root_nn import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from rushlight._root_nn import convolution as convolution
from rushlight._root_nn import cosine_embedding_loss as cosine_embedding_loss
from rushlight._root_nn import ctc_loss as ctc_loss
from rushlight._root_nn import embedding as embedding
from rushlight._root_nn import feature_alpha_dropout as feature_alpha_dropout
from rushlight._root_nn import group_norm as group_norm
from rushlight._root_nn import hinge_embedding_loss as hinge_embedding_loss
from rushlight._root_nn import instance_norm as instance_norm
from rushlight._root_nn import kl_div as kl_div
from rushlight._root_nn import layer_norm as layer_norm
from rushlight._root_nn import margin_ranking_loss as margin_ranking_loss
from rushlight._root_nn import native_batch_norm as native_batch_norm
from rushlight._root_nn import native_group_norm as native_group_norm
from rushlight._root_nn import native_layer_norm as native_layer_norm
from rushlight._root_nn import norm_except_dim as norm_except_dim
from rushlight._root_nn import poisson_nll_loss as poisson_nll_loss
from rushlight._root_nn import rrelu as rrelu
from rushlight._root_nn import rrelu_ as rrelu_
from rushlight._root_nn import triplet_margin_loss as triplet_margin_loss
from rushlight._settings import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from rushlight._settings import compiled_with_cxx11_abi as compiled_with_cxx11_abi
from rushlight._settings import get_default_device as get_default_device
from rushlight._settings import get_deterministic_debug_mode as get_deterministic_debug_mode
from rushlight._settings import get_device_module as get_device_module
from rushlight._settings import get_float32_matmul_precision as get_float32_matmul_precision
from rushlight._settings import get_num_interop_threads as get_num_interop_threads
from rushlight._settings import has_cuda as has_cuda
from rushlight._settings import has_cudnn as has_cudnn
from rushlight._settings import has_lapack as has_lapack
from rushlight._settings import has_mkl as has_mkl
from rushlight._settings import has_mkldnn as has_mkldnn
from rushlight._settings import has_mps as has_mps
from rushlight._settings import has_openmp as has_openmp
from rushlight._settings import has_spectral as has_spectral
from rushlight._settings import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from rushlight._settings import is_anomaly_enabled as is_anomaly_enabled
from rushlight._settings import is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled
from rushlight._settings import is_vulkan_available as is_vulkan_available
from rushlight._settings import is_warn_always_enabled as is_warn_always_enabled
from rushlight._settings import set_anomaly_enabled as set_anomaly_enabled
from rushlight._settings import set_default_device as set_default_device
from rushlight._settings import set_deterministic_debug_mode as set_deterministic_debug_mode
from rushlight._settings import set_float32_matmul_precision as set_float32_matmul_precision
from rushlight._settings import set_num_interop_threads as set_num_interop_threads
from rushlight._settings import set_vital as set_vital
from rushlight._settings import set_warn_always as set_warn_always
from rushlight._settings import use_deterministic_algorithms as use_deterministic_algorithms
from rushlight._sparse import _convert_indices_from_coo_to_csr as _convert_indices_from_coo_to_csr
from rushlight._sparse import _convert_indices_from_csr_to_coo as _convert_indices_from_csr_to_coo
from rushlight._sparse import dsmm as dsmm
from rushlight._sparse import hsmm as hsmm
from rushlight._sparse import native_norm as native_norm
from rushlight._sparse import resize_as_sparse_ as resize_as_sparse_
from rushlight._sparse import saddmm as saddmm
from rushlight._sparse import sparse_bsc_tensor as sparse_bsc_tensor
from rushlight._sparse import sparse_bsr_tensor as sparse_bsr_tensor
from rushlight._sparse import sparse_compressed_tensor as sparse_compressed_tensor
from rushlight._sparse import sparse_coo_tensor as sparse_coo_tensor
from rushlight._sparse import sparse_csc_tensor as sparse_csc_tensor
from rushlight._sparse import sparse_csr_tensor as sparse_csr_tensor
from rushlight._sparse import spmm as spmm
from rushlight._storage import BFloat16Storage as BFloat16Storage
from rushlight._storage import BoolStorage as BoolStorage
from rushlight._storage import ByteStorage as ByteStorage
from rushlight._storage import CharStorage as CharStorage
from rushlight._storage import ComplexDoubleStorage as ComplexDoubleStorage
from rushlight._storage import ComplexFloatStorage as ComplexFloatStorage
from rushlight._storage import DoubleStorage as DoubleStorage
from rushlight._storage import FloatStorage as FloatStorage
from rushlight._storage import HalfStorage as HalfStorage
from rushlight._storage import IntStorage as IntStorage
from rushlight._storage import LongStorage as LongStorage
from rushlight._storage import ShortStorage as ShortStorage
from rushlight._storage import Storage as Storage
from rushlight._storage import StorageBase as StorageBase
from rushlight._storage import TypedStorage as TypedStorage
from rushlight._storage import UntypedStorage as UntypedStorage
from rushlight._symbolic import SymBool as SymBool
from rushlight._symbolic import SymFloat as SymFloat
from rushlight._symbolic import SymInt as SymInt
from rushlight._symbolic import sym_float as sym_float
from rushlight._symbolic import sym_int as sym_int
from rushlight._symbolic import sym_ite as sym_ite
from rushlight._symbolic import sym_max as sym_max
from rushlight._symbolic import sym_min as sym_min
from rushlight._symbolic import sym_not as sym_not
from rushlight._symbolic import sym_sqrt as sym_sqrt
from rushlight._symbolic import sym_sum as sym_sum
from rushlight._tag import Tag as Tag
from rushlight._transformer_inference import _masked_softmax as _masked_softmax
from rushlight._transformer_inference import _native_multi_head_attention as _native_multi_head_attention
from rushlight._transformer_inference import _nested_tensor_from_mask as _nested_tensor_from_mask
from rushlight._transformer_inference import _nested_tensor_from_mask_left_aligned as _nested_tensor_from_mask_left_aligned
from rushlight._transformer_inference import _transformer_encoder_layer_fwd as _transformer_encoder_layer_fwd
from rushlight._view_copies import alias_copy as alias_copy
from rushlight._view_copies import as_strided_copy as as_strided_copy
from rushlight._view_copies import ccol_indices_copy as ccol_indices_copy
from rushlight._view_copies import col_indices_copy as col_indices_copy
from rushlight._view_copies import crow_indices_copy as crow_indices_copy
from rushlight._view_copies import detach_copy as detach_copy
from rushlight._view_copies import diagonal_copy as diagonal_copy
from rushlight._view_copies import expand_copy as expand_copy
from rushlight._view_copies import indices_copy as indices_copy
from rushlight._view_copies import narrow_copy as narrow_copy
from rushlight._view_copies import permute_copy as permute_copy
from rushlight._view_copies import row_indices_copy as row_indices_copy
from rushlight._view_copies import select_copy as select_copy
from rushlight._view_copies import split_copy as split_copy
from rushlight._view_copies import split_with_sizes_copy as split_with_sizes_copy
from rushlight._view_copies import squeeze_copy as squeeze_copy
from rushlight._view_copies import t_copy as t_copy
from rushlight._view_copies import transpose_copy as transpose_copy
from rushlight._view_copies import unbind_copy as unbind_copy
from rushlight._view_copies import unfold_copy as unfold_copy
from rushlight._view_copies import unsqueeze_copy as unsqueeze_copy
from rushlight._view_copies import values_copy as values_copy
from rushlight._view_copies import view_as_complex_copy as view_as_complex_copy
from rushlight._view_copies import view_as_real_copy as view_as_real_copy
from rushlight._view_copies import view_copy as view_copy
from rushlight.amp import GradScaler as GradScaler
from rushlight.amp import autocast as autocast
from rushlight.amp.autocast_mode import autocast_decrement_nesting as autocast_decrement_nesting
from rushlight.amp.autocast_mode import autocast_increment_nesting as autocast_increment_nesting
from rushlight.amp.autocast_mode import clear_autocast_cache as clear_autocast_cache
from rushlight.amp.autocast_mode import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from rushlight.amp.autocast_mode import get_autocast_dtype as get_autocast_dtype
from rushlight.amp.autocast_mode import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from rushlight.amp.autocast_mode import is_autocast_cache_enabled as is_autocast_cache_enabled
from rushlight.amp.autocast_mode import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from rushlight.amp.autocast_mode import is_autocast_enabled as is_autocast_enabled
from rushlight.amp.autocast_mode import set_autocast_cache_enabled as set_autocast_cache_enabled
from rushlight.amp.autocast_mode import set_autocast_cpu_dtype as set_autocast_cpu_dtype
from rushlight.amp.autocast_mode import set_autocast_cpu_enabled as set_autocast_cpu_enabled
from rushlight.amp.autocast_mode import set_autocast_dtype as set_autocast_dtype
from rushlight.amp.autocast_mode import set_autocast_enabled as set_autocast_enabled
from rushlight.amp.autocast_mode import set_autocast_gpu_dtype as set_autocast_gpu_dtype
from rushlight.compiler import _disable_dynamo as _disable_dynamo
from rushlight.compiler import compile as compile
from rushlight.cuda.streams import Stream as Stream
from rushlight.func import vmap as vmap
from rushlight.futures import Future as Future
from rushlight.jit import DeviceObjType as DeviceObjType
from rushlight.jit import ScriptFunction as ScriptFunction
from rushlight.jit import ScriptModule as ScriptModule
from rushlight.jit import TensorType as TensorType
from rushlight.nn.functional import bilinear as bilinear
from rushlight.nn.functional import cosine_similarity as cosine_similarity
from rushlight.nn.functional import pairwise_distance as pairwise_distance
from rushlight.nn.functional import rms_norm as rms_norm
from rushlight.overrides import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from rushlight.random import default_generator as default_generator
from rushlight.random import get_rng_state as get_rng_state
from rushlight.random import initial_seed as initial_seed
from rushlight.random import manual_seed as manual_seed
from rushlight.random import seed as seed
from rushlight.random import set_rng_state as set_rng_state
from rushlight.random import thread_safe_generator as thread_safe_generator
from rushlight.serialization import load as load
from rushlight.serialization import save as save
from rushlight.utils.dlpack import from_dlpack as from_dlpack
from rushlight.utils.dlpack import to_dlpack as to_dlpack
from rushlight._foreach import _foreach_abs as _foreach_abs
from rushlight._foreach import _foreach_acos as _foreach_acos
from rushlight._foreach import _foreach_add as _foreach_add
from rushlight._foreach import _foreach_addcdiv as _foreach_addcdiv
from rushlight._foreach import _foreach_addcmul as _foreach_addcmul
from rushlight._foreach import _foreach_asin as _foreach_asin
from rushlight._foreach import _foreach_atan as _foreach_atan
from rushlight._foreach import _foreach_ceil as _foreach_ceil
from rushlight._foreach import _foreach_clamp_max as _foreach_clamp_max
from rushlight._foreach import _foreach_clamp_min as _foreach_clamp_min
from rushlight._foreach import _foreach_cos as _foreach_cos
from rushlight._foreach import _foreach_cosh as _foreach_cosh
from rushlight._foreach import _foreach_div as _foreach_div
from rushlight._foreach import _foreach_erf as _foreach_erf
from rushlight._foreach import _foreach_erfc as _foreach_erfc
from rushlight._foreach import _foreach_exp as _foreach_exp
from rushlight._foreach import _foreach_expm1 as _foreach_expm1
from rushlight._foreach import _foreach_floor as _foreach_floor
from rushlight._foreach import _foreach_frac as _foreach_frac
from rushlight._foreach import _foreach_lerp as _foreach_lerp
from rushlight._foreach import _foreach_lgamma as _foreach_lgamma
from rushlight._foreach import _foreach_log as _foreach_log
from rushlight._foreach import _foreach_log10 as _foreach_log10
from rushlight._foreach import _foreach_log1p as _foreach_log1p
from rushlight._foreach import _foreach_log2 as _foreach_log2
from rushlight._foreach import _foreach_maximum as _foreach_maximum
from rushlight._foreach import _foreach_minimum as _foreach_minimum
from rushlight._foreach import _foreach_mul as _foreach_mul
from rushlight._foreach import _foreach_neg as _foreach_neg
from rushlight._foreach import _foreach_pow as _foreach_pow
from rushlight._foreach import _foreach_reciprocal as _foreach_reciprocal
from rushlight._foreach import _foreach_round as _foreach_round
from rushlight._foreach import _foreach_rsqrt as _foreach_rsqrt
from rushlight._foreach import _foreach_sigmoid as _foreach_sigmoid
from rushlight._foreach import _foreach_sign as _foreach_sign
from rushlight._foreach import _foreach_sin as _foreach_sin
from rushlight._foreach import _foreach_sinh as _foreach_sinh
from rushlight._foreach import _foreach_sqrt as _foreach_sqrt
from rushlight._foreach import _foreach_sub as _foreach_sub
from rushlight._foreach import _foreach_tan as _foreach_tan
from rushlight._foreach import _foreach_tanh as _foreach_tanh
from rushlight._foreach import _foreach_trunc as _foreach_trunc
from rushlight._foreach import _foreach_clone as _foreach_clone
from rushlight._foreach import _foreach_max as _foreach_max
from rushlight._foreach import _foreach_mm as _foreach_mm
from rushlight._foreach import _foreach_abs_ as _foreach_abs_
from rushlight._foreach import _foreach_acos_ as _foreach_acos_
from rushlight._foreach import _foreach_add_ as _foreach_add_
from rushlight._foreach import _foreach_addcdiv_ as _foreach_addcdiv_
from rushlight._foreach import _foreach_addcmul_ as _foreach_addcmul_
from rushlight._foreach import _foreach_asin_ as _foreach_asin_
from rushlight._foreach import _foreach_atan_ as _foreach_atan_
from rushlight._foreach import _foreach_ceil_ as _foreach_ceil_
from rushlight._foreach import _foreach_clamp_max_ as _foreach_clamp_max_
from rushlight._foreach import _foreach_clamp_min_ as _foreach_clamp_min_
from rushlight._foreach import _foreach_cos_ as _foreach_cos_
from rushlight._foreach import _foreach_cosh_ as _foreach_cosh_
from rushlight._foreach import _foreach_div_ as _foreach_div_
from rushlight._foreach import _foreach_erf_ as _foreach_erf_
from rushlight._foreach import _foreach_erfc_ as _foreach_erfc_
from rushlight._foreach import _foreach_exp_ as _foreach_exp_
from rushlight._foreach import _foreach_expm1_ as _foreach_expm1_
from rushlight._foreach import _foreach_floor_ as _foreach_floor_
from rushlight._foreach import _foreach_frac_ as _foreach_frac_
from rushlight._foreach import _foreach_lerp_ as _foreach_lerp_
from rushlight._foreach import _foreach_lgamma_ as _foreach_lgamma_
from rushlight._foreach import _foreach_log_ as _foreach_log_
from rushlight._foreach import _foreach_log10_ as _foreach_log10_
from rushlight._foreach import _foreach_log1p_ as _foreach_log1p_
from rushlight._foreach import _foreach_log2_ as _foreach_log2_
from rushlight._foreach import _foreach_maximum_ as _foreach_maximum_
from rushlight._foreach import _foreach_minimum_ as _foreach_minimum_
from rushlight._foreach import _foreach_mul_ as _foreach_mul_
from rushlight._foreach import _foreach_neg_ as _foreach_neg_
from rushlight._foreach import _foreach_pow_ as _foreach_pow_
from rushlight._foreach import _foreach_reciprocal_ as _foreach_reciprocal_
from rushlight._foreach import _foreach_round_ as _foreach_round_
from rushlight._foreach import _foreach_rsqrt_ as _foreach_rsqrt_
from rushlight._foreach import _foreach_sigmoid_ as _foreach_sigmoid_
from rushlight._foreach import _foreach_sign_ as _foreach_sign_
from rushlight._foreach import _foreach_sin_ as _foreach_sin_
from rushlight._foreach import _foreach_sinh_ as _foreach_sinh_
from rushlight._foreach import _foreach_sqrt_ as _foreach_sqrt_
from rushlight._foreach import _foreach_sub_ as _foreach_sub_
from rushlight._foreach import _foreach_tan_ as _foreach_tan_
from rushlight._foreach import _foreach_tanh_ as _foreach_tanh_
from rushlight._foreach import _foreach_trunc_ as _foreach_trunc_
from rushlight._foreach import _foreach_zero_ as _foreach_zero_
from rushlight._foreach import _foreach_powsum as _foreach_powsum
from rushlight._foreach import _foreach_copy_ as _foreach_copy_

SUBMODULES: Sequence[str]
NAMES_IN: Mapping[str, str]

def names() -> list[str]: ...

__all__ = [
    "BFloat16Storage",
    "BFloat16Tensor",
    "BoolStorage",
    "BoolTensor",
    "ByteStorage",
    "ByteTensor",
    "CharStorage",
    "CharTensor",
    "ComplexDoubleStorage",
    "ComplexFloatStorage",
    "DeviceObjType",
    "DisableTorchFunctionSubclass",
    "DoubleStorage",
    "DoubleTensor",
    "Event",
    "FloatStorage",
    "FloatTensor",
    "Future",
    "GradScaler",
    "HalfStorage",
    "HalfTensor",
    "IntStorage",
    "IntTensor",
    "LongStorage",
    "LongTensor",
    "PyTorchFileReader",
    "PyTorchFileWriter",
    "ScriptFunction",
    "ScriptModule",
    "ShortStorage",
    "ShortTensor",
    "Storage",
    "StorageBase",
    "Stream",
    "SymBool",
    "SymFloat",
    "SymInt",
    "Tag",
    "TensorType",
    "TypedStorage",
    "UntypedStorage",
    "_VF",
    "__config__",
    "__future__",
    "_amp_foreach_non_finite_check_and_unscale_",
    "_amp_update_scale_",
    "_assert",
    "_assert_async",
    "_check",
    "_check_index",
    "_check_is_size",
    "_check_not_implemented",
    "_check_tensor_all",
    "_check_tensor_all_with",
    "_check_type",
    "_check_value",
    "_check_with",
    "_choose_qparams_per_tensor",
    "_convert_indices_from_coo_to_csr",
    "_convert_indices_from_csr_to_coo",
    "_disable_dynamo",
    "_dynamo",
    "_empty_affine_quantized",
    "_fake_quantize_learnable_per_channel_affine",
    "_fake_quantize_learnable_per_tensor_affine",
    "_foreach_abs",
    "_foreach_abs_",
    "_foreach_acos",
    "_foreach_acos_",
    "_foreach_add",
    "_foreach_add_",
    "_foreach_addcdiv",
    "_foreach_addcdiv_",
    "_foreach_addcmul",
    "_foreach_addcmul_",
    "_foreach_asin",
    "_foreach_asin_",
    "_foreach_atan",
    "_foreach_atan_",
    "_foreach_ceil",
    "_foreach_ceil_",
    "_foreach_clamp_max",
    "_foreach_clamp_max_",
    "_foreach_clamp_min",
    "_foreach_clamp_min_",
    "_foreach_clone",
    "_foreach_copy_",
    "_foreach_cos",
    "_foreach_cos_",
    "_foreach_cosh",
    "_foreach_cosh_",
    "_foreach_div",
    "_foreach_div_",
    "_foreach_erf",
    "_foreach_erf_",
    "_foreach_erfc",
    "_foreach_erfc_",
    "_foreach_exp",
    "_foreach_exp_",
    "_foreach_expm1",
    "_foreach_expm1_",
    "_foreach_floor",
    "_foreach_floor_",
    "_foreach_frac",
    "_foreach_frac_",
    "_foreach_lerp",
    "_foreach_lerp_",
    "_foreach_lgamma",
    "_foreach_lgamma_",
    "_foreach_log",
    "_foreach_log10",
    "_foreach_log10_",
    "_foreach_log1p",
    "_foreach_log1p_",
    "_foreach_log2",
    "_foreach_log2_",
    "_foreach_log_",
    "_foreach_max",
    "_foreach_maximum",
    "_foreach_maximum_",
    "_foreach_minimum",
    "_foreach_minimum_",
    "_foreach_mm",
    "_foreach_mul",
    "_foreach_mul_",
    "_foreach_neg",
    "_foreach_neg_",
    "_foreach_pow",
    "_foreach_pow_",
    "_foreach_powsum",
    "_foreach_reciprocal",
    "_foreach_reciprocal_",
    "_foreach_round",
    "_foreach_round_",
    "_foreach_rsqrt",
    "_foreach_rsqrt_",
    "_foreach_sigmoid",
    "_foreach_sigmoid_",
    "_foreach_sign",
    "_foreach_sign_",
    "_foreach_sin",
    "_foreach_sin_",
    "_foreach_sinh",
    "_foreach_sinh_",
    "_foreach_sqrt",
    "_foreach_sqrt_",
    "_foreach_sub",
    "_foreach_sub_",
    "_foreach_tan",
    "_foreach_tan_",
    "_foreach_tanh",
    "_foreach_tanh_",
    "_foreach_trunc",
    "_foreach_trunc_",
    "_foreach_zero_",
    "_functorch",
    "_grouped_mm",
    "_guards",
    "_has_compatible_shallow_copy_type",
    "_inductor",
    "_jit_internal",
    "_log_softmax_backward_data",
    "_logging",
    "_make_per_channel_quantized_tensor",
    "_make_per_tensor_quantized_tensor",
    "_masked_softmax",
    "_native_multi_head_attention",
    "_nested_tensor_from_mask",
    "_nested_tensor_from_mask_left_aligned",
    "_prims_common",
    "_scaled_mm",
    "_segment_reduce",
    "_shape_as_tensor",
    "_softmax_backward_data",
    "_subclasses",
    "_tensor_str",
    "_transformer_encoder_layer_fwd",
    "_utils",
    "accelerator",
    "adaptive_max_pool1d",
    "alias_copy",
    "alpha_dropout",
    "amp",
    "ao",
    "are_deterministic_algorithms_enabled",
    "array_api",
    "as_strided_copy",
    "asarray",
    "autocast",
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "autograd",
    "backends",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy_with_logits",
    "broadcast_shapes",
    "ccol_indices_copy",
    "chalf",
    "clear_autocast_cache",
    "col_indices_copy",
    "compile",
    "compiled_with_cxx11_abi",
    "compiler",
    "complex32",
    "cond",
    "convolution",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cpu",
    "crow_indices_copy",
    "ctc_loss",
    "cuda",
    "default_generator",
    "dequantize",
    "detach_",
    "detach_copy",
    "diagonal_copy",
    "distributed",
    "distributions",
    "dsmm",
    "eig",
    "einsum",
    "embedding",
    "expand_copy",
    "export",
    "feature_alpha_dropout",
    "fft",
    "float4_e2m1fn_x2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "from_dlpack",
    "from_file",
    "func",
    "functional",
    "futures",
    "fx",
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "get_default_device",
    "get_deterministic_debug_mode",
    "get_device_module",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_rng_state",
    "gradient",
    "group_norm",
    "has_cuda",
    "has_cudnn",
    "has_lapack",
    "has_mkl",
    "has_mkldnn",
    "has_mps",
    "has_openmp",
    "has_spectral",
    "hash_tensor",
    "hinge_embedding_loss",
    "histogram",
    "histogramdd",
    "hsmm",
    "hub",
    "indices_copy",
    "initial_seed",
    "instance_norm",
    "int1",
    "int2",
    "int3",
    "int4",
    "int5",
    "int6",
    "int7",
    "int_repr",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled",
    "is_autocast_enabled",
    "is_complex",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_floating_point",
    "is_storage",
    "is_tensor",
    "is_vulkan_available",
    "is_warn_always_enabled",
    "jit",
    "kl_div",
    "layer_norm",
    "library",
    "linalg",
    "load",
    "lobpcg",
    "lstsq",
    "lu",
    "manual_seed",
    "margin_ranking_loss",
    "masked",
    "matrix_rank",
    "monitor",
    "mps",
    "mtia",
    "multiprocessing",
    "narrow_copy",
    "native_batch_norm",
    "native_group_norm",
    "native_layer_norm",
    "native_norm",
    "nested",
    "nn",
    "norm_except_dim",
    "numel",
    "onnx",
    "ops",
    "optim",
    "overrides",
    "pairwise_distance",
    "pca_lowrank",
    "per_channel_affine",
    "per_channel_affine_float_qparams",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
    "permute_copy",
    "poisson_nll_loss",
    "profiler",
    "q_per_channel_axis",
    "q_per_channel_scales",
    "q_per_channel_zero_points",
    "q_scale",
    "q_zero_point",
    "qint32",
    "qint8",
    "qscheme",
    "quantization",
    "quantize_per_channel",
    "quantize_per_tensor",
    "quantize_per_tensor_dynamic",
    "quantized_batch_norm",
    "quantized_max_pool1d",
    "quantized_max_pool2d",
    "quantized_max_pool3d",
    "quasirandom",
    "quint2x4",
    "quint4x2",
    "quint8",
    "random",
    "range",
    "resize_as_sparse_",
    "return_types",
    "rms_norm",
    "row_indices_copy",
    "rrelu",
    "rrelu_",
    "saddmm",
    "save",
    "seed",
    "select_copy",
    "serialization",
    "set_anomaly_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_autocast_gpu_dtype",
    "set_default_device",
    "set_default_tensor_type",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_num_interop_threads",
    "set_printoptions",
    "set_rng_state",
    "set_vital",
    "set_warn_always",
    "signal",
    "solve",
    "sparse",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "special",
    "split_copy",
    "split_with_sizes_copy",
    "spmm",
    "squeeze_copy",
    "storage",
    "svd_lowrank",
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
    "symeig",
    "t_copy",
    "tensordot",
    "testing",
    "thread_safe_generator",
    "to_dlpack",
    "transpose_copy",
    "triplet_margin_loss",
    "typename",
    "types",
    "uint1",
    "uint2",
    "uint3",
    "uint4",
    "uint5",
    "uint6",
    "uint7",
    "unbind_copy",
    "unfold_copy",
    "unique",
    "unique_consecutive",
    "unsqueeze_copy",
    "use_deterministic_algorithms",
    "utils",
    "values_copy",
    "version",
    "view_as_complex_copy",
    "view_as_real_copy",
    "view_copy",
    "vision",
    "vmap",
    "while_loop",
    "xpu",
]
