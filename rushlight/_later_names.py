"""The names of the root that are imported when first used; _later_names.pyi has their types.

SUBMODULES are imported by themselves, the names in NAMES_IN with the submodule that has them.
"""

SUBMODULES = (
    "__config__",
    "_VF",
    "_dynamo",
    "_functorch",
    "_guards",
    "_inductor",
    "_jit_internal",
    "_logging",
    "_prims_common",
    "_subclasses",
    "_tensor_str",
    "_utils",
    "accelerator",
    "amp",
    "ao",
    "array_api",
    "autograd",
    "__future__",
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
    "masked",
    "monitor",
    "mps",
    "mtia",
    "multiprocessing",
    "nested",
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
NAMES_IN = {
    "_accelerator": "Event",
    "amp.grad_scaler": "_amp_foreach_non_finite_check_and_unscale_ _amp_update_scale_",
    "_checkpoint.file_reader": "PyTorchFileReader",
    "_checkpoint.file_writer": "PyTorchFileWriter",
    "_conditions": """
        _assert _assert_async _check _check_index _check_is_size _check_not_implemented
        _check_tensor_all _check_tensor_all_with _check_type _check_value _check_with
    """,
    "_creation": "asarray from_file range",
    "_distinct": "unique unique_consecutive",
    "_dtype_names": """
        chalf complex32 float4_e2m1fn_x2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu int1 int2
        int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 uint6 uint7
    """,
    "_einsum": "einsum tensordot",
    "_functional": """
        _has_compatible_shallow_copy_type _segment_reduce broadcast_shapes detach_ is_complex
        is_floating_point is_storage is_tensor numel typename
    """,
    "_higher_order_ops": "cond while_loop",
    "_legacy": """
        BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor
        IntTensor LongTensor ShortTensor set_default_tensor_type
    """,
    "_linalg": "eig lobpcg lstsq lu matrix_rank pca_lowrank solve svd_lowrank symeig",
    "_numeric": "gradient hash_tensor histogram histogramdd",
    "_printing": "set_printoptions",
    "_quantized": """
        _choose_qparams_per_tensor _empty_affine_quantized
        _fake_quantize_learnable_per_channel_affine _fake_quantize_learnable_per_tensor_affine
        _make_per_channel_quantized_tensor _make_per_tensor_quantized_tensor dequantize int_repr
        per_channel_affine per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine
        per_tensor_symmetric q_per_channel_axis q_per_channel_scales q_per_channel_zero_points
        q_scale q_zero_point qint32 qint8 qscheme quantize_per_channel quantize_per_tensor
        quantize_per_tensor_dynamic quint2x4 quint4x2 quint8
    """,
    "_quantized_library": """
        quantized_batch_norm quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d
    """,
    "_root_nn": """
        _grouped_mm _log_softmax_backward_data _scaled_mm _shape_as_tensor _softmax_backward_data
        adaptive_max_pool1d alpha_dropout batch_norm binary_cross_entropy_with_logits convolution
        cosine_embedding_loss ctc_loss embedding feature_alpha_dropout group_norm
        hinge_embedding_loss instance_norm kl_div layer_norm margin_ranking_loss native_batch_norm
        native_group_norm native_layer_norm norm_except_dim poisson_nll_loss rrelu rrelu_
        triplet_margin_loss
    """,
    "_settings": """
        are_deterministic_algorithms_enabled compiled_with_cxx11_abi get_default_device
        get_deterministic_debug_mode get_device_module get_float32_matmul_precision
        get_num_interop_threads has_cuda has_cudnn has_lapack has_mkl has_mkldnn has_mps has_openmp
        has_spectral is_anomaly_check_nan_enabled is_anomaly_enabled
        is_deterministic_algorithms_warn_only_enabled is_vulkan_available is_warn_always_enabled
        set_anomaly_enabled set_default_device set_deterministic_debug_mode
        set_float32_matmul_precision set_num_interop_threads set_vital set_warn_always
        use_deterministic_algorithms
    """,
    "_sparse": """
        _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo dsmm hsmm native_norm
        resize_as_sparse_ saddmm sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor
        sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor spmm
    """,
    "_storage": """
        BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage
        DoubleStorage FloatStorage HalfStorage IntStorage LongStorage ShortStorage Storage
        StorageBase TypedStorage UntypedStorage
    """,
    "_symbolic": """
        SymBool SymFloat SymInt sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum
    """,
    "_tag": "Tag",
    "_transformer_inference": """
        _masked_softmax _native_multi_head_attention _nested_tensor_from_mask
        _nested_tensor_from_mask_left_aligned _transformer_encoder_layer_fwd
    """,
    "_view_copies": """
        alias_copy as_strided_copy ccol_indices_copy col_indices_copy crow_indices_copy detach_copy
        diagonal_copy expand_copy indices_copy narrow_copy permute_copy row_indices_copy select_copy
        split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy
        unsqueeze_copy values_copy view_as_complex_copy view_as_real_copy view_copy
    """,
    "amp": "GradScaler autocast",
    "amp.autocast_mode": """
        autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache
        get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled
        is_autocast_cpu_enabled is_autocast_enabled set_autocast_cache_enabled
        set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled
        set_autocast_gpu_dtype
    """,
    "compiler": "_disable_dynamo compile",
    "cuda.streams": "Stream",
    "func": "vmap",
    "futures": "Future",
    "jit": "DeviceObjType ScriptFunction ScriptModule TensorType",
    "nn.functional": "bilinear cosine_similarity pairwise_distance rms_norm",
    "overrides": "DisableTorchFunctionSubclass",
    "random": """
        default_generator get_rng_state initial_seed manual_seed seed set_rng_state
        thread_safe_generator
    """,
    "serialization": "load save",
    "utils.dlpack": "from_dlpack to_dlpack",
}


def names() -> list[str]:
    """Returns those in NAMES_IN."""
    return " ".join(NAMES_IN.values()).split()
