"""Names that libraries import or compare with, and what they stand for."""

from __future__ import annotations

import copy
import functools
import importlib
import inspect
import logging
import pickle
import subprocess
import sys
import warnings
from typing import Any, cast, get_type_hints

import pytest
from grouping import each

import rushlight as torch
from rushlight import _insides, _tensor_str, _utils
from rushlight._dynamo.utils import counters, warn_once
from rushlight._higher_order_ops.associative_scan import associative_scan
from rushlight._jit_internal import boolean_dispatch
from rushlight.backends.cuda import SDPBackend
from rushlight.distributed import rpc
from rushlight.fx.experimental.proxy_tensor import get_proxy_mode
from rushlight.nn.utils._named_member_accessor import NamedMemberAccessor, swap_tensor
from rushlight.optim.optimizer import ParamsT
from rushlight.torch_version import TorchVersion
from rushlight.utils import _contextlib, _device
from rushlight.utils._triton import has_triton, has_triton_package
from rushlight.utils.data._utils.worker import _generate_state

aten = torch.ops.aten


def test_operators_of_aten_are_the_functions_of_the_package() -> None:
    a = torch.arange(6.0).view(2, 3)
    assert aten.mm.default == torch.mm and aten.add.Tensor == torch.add == aten.add.Scalar
    assert aten.add_.Tensor == torch.Tensor.add_ and aten.linalg_inv.default == torch.linalg.inv
    assert aten.gelu.default == torch.nn.functional.gelu
    assert aten.add.Tensor is aten.add.Tensor and aten.add.Tensor is not aten.add.Scalar
    assert aten.mm(a, a.T).tolist() == (a @ a.T).tolist()
    assert aten.slice.Tensor(a, 1, 1, 3).tolist() == [[1, 2], [4, 5]]
    assert aten.index.Tensor(a, [None, torch.tensor([2])]).tolist() == [[2], [5]]
    assert aten._to_copy.default(a, dtype=torch.int64).dtype is torch.int64
    assert aten.alias.default(a).data_ptr() == a.data_ptr()
    assert repr(aten.mm) == "<OpOverloadPacket(op='aten.mm')>"
    for name in "no_such_operator", "float32", "Tensor", "linalg_no", "__len__":
        assert not hasattr(aten, name)
    assert not hasattr(torch.ops.other, "mm")


def test_functions_have_a_module_of_their_own() -> None:
    for name in torch.functional.__all__:
        assert getattr(torch.functional, name) is getattr(torch, name)


def test_indices_of_sparse_layouts_become_each_other() -> None:
    rows = torch.tensor([0, 0, 2, 3])
    starts = torch._convert_indices_from_coo_to_csr(rows, 5, out_int32=True)
    assert starts.tolist() == [0, 2, 2, 3, 4, 4] and starts.dtype is torch.int32
    columns = torch.tensor([1, 4, 0, 2])
    pair = torch._convert_indices_from_csr_to_coo(starts, columns)
    assert pair.tolist() == [rows.tolist(), columns.tolist()] and pair.dtype is torch.int64
    pair = torch._convert_indices_from_csr_to_coo(starts, columns, transpose=True)
    assert pair.tolist() == [columns.tolist(), rows.tolist()]


def test_functions_of_the_core_carry_what_programs_add_to_them() -> None:
    relu6 = torch.nn.functional.relu6
    assert not vars(relu6)
    relu6.__default_init__ = torch.nn.init.kaiming_uniform_
    assert vars(relu6) == {"__default_init__": torch.nn.init.kaiming_uniform_}
    assert functools.wraps(relu6)(lambda x: x).__default_init__ is relu6.__default_init__
    del relu6.__default_init__
    assert not hasattr(relu6, "__default_init__")


def test_nothing_is_traced_by_tensors() -> None:
    assert get_proxy_mode() is None


def test_tensors_are_sent_as_one() -> None:
    tensors = [torch.ones(2, 3), torch.zeros(4)]
    flat = _utils._flatten_dense_tensors(tensors)
    assert flat.tolist() == [1] * 6 + [0] * 4
    back = _utils._unflatten_dense_tensors(flat, tensors)
    assert [tuple(part.shape) for part in back] == [(2, 3), (4,)]
    assert back[1].untyped_storage().data_ptr() == flat.untyped_storage().data_ptr()
    assert _utils._flatten_dense_tensors([]).shape == (0,)


def test_tensors_are_taken_in_lists_of_one_type_and_some_size() -> None:
    floats, ints = [torch.zeros(n) for n in (2, 3, 9, 1)], [torch.zeros(2, dtype=torch.int64)]
    taken = list(_utils._take_tensors([*floats[:2], *ints, *floats[2:]], 24))
    assert [[t.numel() for t in group] for group in taken] == [[2, 3], [9], [1], [2]]
    assert taken[-1] == ints and not list(_utils._take_tensors([], 8))


def test_a_context_decorates_functions_and_generators() -> None:
    entered: list[str] = []

    class Noted(_contextlib._DecoratorContextManager):
        def __enter__(self) -> None:
            entered.append("in")

        def __exit__(self, *exc_info: object) -> None:
            entered.append("out")

    def steps() -> Any:
        yield len(entered)
        yield len(entered)

    assert Noted()(lambda: len(entered))() == 1 and entered == ["in", "out"]
    entered.clear()
    assert list(_contextlib.context_decorator(Noted(), steps)()) == [1, 3] and len(entered) == 6
    assert _contextlib.context_decorator(Noted, len)([1]) == 1 and len(entered) == 8
    with pytest.raises(RuntimeError, match="cannot decorate class Noted"):
        _contextlib.context_decorator(Noted, Noted)


def test_tensors_of_modules_are_swapped() -> None:
    layer, one = torch.nn.Linear(1, 1), torch.ones(1, 1)
    weight = swap_tensor(layer, "weight", one)
    assert layer.weight is one and dict(layer.named_parameters())["weight"] is one
    assert swap_tensor(layer, "weight", weight) is one and layer.weight is weight
    nothing = swap_tensor(layer, "extra", one, allow_missing=True)
    assert layer.extra is one and swap_tensor(layer, "extra", nothing) is one
    assert not hasattr(layer, "extra")
    with pytest.raises(AttributeError, match="Linear has no attribute `extra`"):
        swap_tensor(layer, "extra", one)
    with pytest.raises(TypeError, match="in_features: 1 is not an instance of torch.Tensor"):
        swap_tensor(layer, "in_features", one)
    with pytest.raises(KeyError, match="contain a dot, got 'a.b'"):
        swap_tensor(layer, "a.b", one)
    with pytest.raises(TypeError, match="3 is not an instance of torch.nn.Module"):
        swap_tensor(3, "a", one)  # pyright: ignore[reportArgumentType]


def test_members_of_modules_are_named_by_paths() -> None:
    inner = torch.nn.BatchNorm1d(2)
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(inner))
    accessor, weight = NamedMemberAccessor(model), model[0].weight
    assert accessor.get_submodule("1.0") is inner and accessor.get_submodule("") is model
    names, new = ["0.weight", "1.0.running_mean"], [torch.zeros(2, 2), torch.ones(2)]
    before = accessor.swap_tensors(names, new)
    assert before[0] is weight and accessor.get_tensors(names) == new
    accessor.set_tensors(names, before)
    assert model[0].weight is weight and model[1][0].running_mean is before[1]
    accessor.set_tensors_dict({"0.extra": new[1]})
    assert model[0].extra is new[1]
    accessor.del_tensors(["0.extra"])
    with pytest.raises(AttributeError, match="no attribute `extra`"):
        accessor.del_tensor("0.extra")
    with pytest.raises(RuntimeError, match="Missing key.*'0.extra'"):
        accessor.swap_tensors_dict({"0.weight": new[0], "0.extra": new[1]})
    assert model[0].weight is weight and not hasattr(model[0], "extra")
    old, missing = accessor.swap_tensors_dict({"0.extra": new[1]}, allow_missing=True)
    assert missing == ["0.extra"]
    accessor.swap_tensors_dict(old, allow_missing=True)
    assert not hasattr(model[0], "extra")
    keys = {name for name, _ in accessor.named_tensors()}
    assert accessor.check_keys(keys - {"0.bias"} | {"x"}) == (["0.bias"], ["x"])
    assert [name for name, _ in accessor.named_modules()] == ["", "0", "1", "1.0"]
    other = torch.nn.Sequential(torch.nn.Linear(2, 2))
    assert accessor.swap_submodule("1", other)[0] is inner
    assert accessor.get_submodule("1.0") is other[0]
    for error, call in {
        "no attribute `9`": lambda: accessor.get_submodule("9.0"),
        "not an instance of torch.nn.Module": lambda: accessor.get_submodule("0.weight"),
        "no attribute `0.x`": lambda: accessor.get_tensor("0.x"),
        "not an instance of torch.Tensor": lambda: accessor.get_tensor("0.in_features"),
        "got 1 names and 2 values": lambda: accessor.set_tensors(["0.bias"], new),
        "'5' does not exist": lambda: accessor.swap_submodule("5", other),
        "3 is not an instance": lambda: accessor.swap_submodule("0", cast(Any, 3)),
    }.items():
        with pytest.raises((AttributeError, TypeError, AssertionError, KeyError), match=error):
            call()


def test_the_device_of_new_tensors_has_the_names_that_libraries_import() -> None:
    assert _device.CURRENT_DEVICE is None
    with _device.DeviceContext("meta"):
        assert _device.CURRENT_DEVICE == torch.device("meta") == torch.ones(2).device
    assert _device.set_device("meta")(torch.ones)(2).is_meta and not torch.ones(2).is_meta
    assert SDPBackend is torch.nn.attention.SDPBackend


def test_devices_have_numbers() -> None:
    index = _utils._get_device_index
    assert index("cuda:1") == index(torch.device("cuda", 1)) == index(1) == 1
    assert index("cpu", allow_cpu=True) == -1
    for device in "cpu", "cuda", None:
        with pytest.raises(ValueError, match="Expected a"):
            index(device)


def test_elements_are_checked() -> None:
    torch._assert_async(torch.tensor(True))
    with pytest.raises(RuntimeError, match="no finite sum"):
        torch._assert_async(torch.ones(2).sum() > 3, "no finite sum")
    assert torch._segment_reduce is torch.segment_reduce


def test_traced_products_name_their_operands_one_by_one() -> None:
    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.einsum("ij,jk->ik", [a, b])

    (node,) = [n for n in torch.fx.symbolic_trace(product).graph.nodes if n.op == "call_function"]
    assert node.target is torch.einsum
    assert [str(argument) for argument in node.args] == ["ij,jk->ik", "a", "b"]


def test_layers_have_the_bases_that_libraries_count_by() -> None:
    padding = torch.nn.modules.padding
    for kind in "Reflection", "Replication", "Constant", "Circular":
        for dims in 1, 2, 3:
            layer = getattr(torch.nn, f"{kind}Pad{dims}d")
            assert issubclass(layer, getattr(padding, f"_{kind}PadNd"))
    pooling = torch.nn.modules.pooling
    assert issubclass(torch.nn.MaxUnpool2d, pooling._MaxUnpoolNd)
    assert issubclass(torch.nn.LPPool1d, pooling._LPPoolNd)
    norms = torch.nn.modules.batchnorm._NormBase
    assert issubclass(torch.nn.BatchNorm2d, norms) and issubclass(torch.nn.InstanceNorm1d, norms)
    assert torch.nn.ReplicationPad1d(1)(torch.tensor([[[1.0, 2.0]]])).tolist() == [[[1, 1, 2, 2]]]


def test_types_of_containers_are_asked() -> None:
    is_a, x = torch.jit.isinstance, torch.ones(1)
    for obj, kind in (
        (x, torch.Tensor),
        ([x, x], list[torch.Tensor]),
        ({"a": [1]}, dict[str, list[int]]),
        ((1, "a"), tuple[int, str]),
        (None, int | None),
        (1.5, (int, float)),
    ):
        assert is_a(obj, kind) and not is_a(object(), kind)
    assert not is_a([1, "a"], list[int]) and not is_a((1, 2, 3), tuple[int, int])


def test_ops_that_are_attributes_of_a_class_stay_functions() -> None:
    class Layer:
        act = torch.sigmoid
        write = torch.relu_

    assert Layer().act(torch.zeros(1)).item() == 0.5
    assert Layer().write(torch.tensor([-1.0])).item() == 0
    assert torch.zeros(1).sigmoid().item() == 0.5
    assert torch.Tensor.sigmoid != torch.sigmoid


def test_functions_and_methods_of_ops_can_be_pickled() -> None:
    for op in (torch.sigmoid, torch.Tensor.sigmoid, torch.Tensor.add_, torch.Tensor.item):
        assert pickle.loads(pickle.dumps(op)) is op and copy.deepcopy(op) is op


def test_inspect_shows_the_signatures_of_ops() -> None:
    gelu = "(input, approximate='none')"
    assert str(inspect.signature(torch.nn.functional.gelu)) == gelu
    assert list(inspect.signature(torch.ones(1).sum).parameters) == ["dim", "keepdim", "dtype"]
    if sys.version_info >= (3, 13):  # Overloads have no signature in common.
        assert str(inspect.signature(torch.add)) == "(*args, **kwargs)"
    else:
        with pytest.raises(ValueError, match="add"):
            inspect.signature(torch.add)


def test_settings_of_other_compilers_are_taken() -> None:
    before = torch.jit.set_fusion_strategy([("STATIC", 1)])
    assert torch.jit.set_fusion_strategy(before) == [("STATIC", 1)]
    torch.jit.enable_onednn_fusion(True)
    assert not torch.jit.onednn_fusion_enabled() and issubclass(torch.jit.Error, Exception)
    torch.__future__.set_swap_module_params_on_conversion(True)
    assert torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(False)
    torch._dynamo.graph_break()
    torch._logging.set_logs(all=logging.INFO, graph_breaks=True, modules={"torch.fx": 10})
    assert torch.version.git_version == "Unknown"


@each(
    "module, names",
    [
        ("_VF", "gru_cell lstm"),
        ("_decomp", "core_aten_decompositions get_decompositions register_decomposition"),
        ("_dynamo", "optimize"),
        ("_inductor.codecache", "__doc__"),
        ("_insides._profiler", "ProfilerActivity _ExperimentalConfig"),
        ("_jit_internal", "BroadcastingList2 Optional _copy_to_script_wrapper boolean_dispatch"),
        ("_vmap_internals", "_vmap vmap"),
        ("ao.nn.intrinsic.modules", "ConvReLU2d"),
        ("ao.nn.intrinsic.modules.fused", "ConvBn2d"),
        ("ao.nn.intrinsic.qat.modules.conv_fused", "ConvBn2d update_bn_stats"),
        ("ao.nn.intrinsic.quantized.dynamic.modules.linear_relu", "LinearReLU"),
        ("ao.nn.intrinsic.quantized.modules.conv_relu", "ConvReLU2d"),
        ("ao.nn.qat.dynamic.modules.linear", "Linear"),
        ("ao.nn.qat.modules.conv", "Conv2d"),
        ("ao.nn.quantizable.modules.activation", "MultiheadAttention"),
        ("ao.nn.quantized.dynamic.modules.rnn", "LSTM"),
        ("ao.nn.quantized.modules.embedding_ops", "Embedding EmbeddingPackedParams"),
        ("ao.nn.quantized.modules.functional_modules", "QFunctional"),
        ("ao.nn.quantized.modules.linear", "Linear LinearPackedParams"),
        ("ao.nn.quantized.reference.modules.conv", "Conv2d"),
        ("ao.nn.qat.modules", "Linear"),
        ("ao.nn.quantized.modules", "Linear Sigmoid"),
        ("cuda", "_lazy_call _lazy_init"),
        ("cuda.amp.common", "amp_definitely_not_available"),
        ("fx.node", "Argument Target map_arg"),
        ("_lowrank", "pca_lowrank svd_lowrank"),
        (
            "_prims_common",
            "DeviceLikeType Number Tensor corresponding_complex_dtype is_float_dtype",
        ),
        ("distributed._tensor", "DTensor DeviceMesh device_mesh init_device_mesh"),
        ("distributed._tensor.api", "DTensor distribute_tensor"),
        ("distributed._tensor.placement_types", "DTensorSpec Partial Placement Replicate Shard"),
        ("distributed._tensor.placement_types", "TensorMeta"),
        ("distributed._tensor._utils", "compute_local_shape_and_global_offset"),
        ("distributed.checkpoint.state_dict", "_init_optim_state"),
        ("distributed.distributed_c10d", "_get_default_group _get_global_rank _rank_not_in_group"),
        ("distributed.rpc.api", "UNSET_RPC_TIMEOUT"),
        ("distributed.fsdp.fully_sharded_data_parallel", "ShardedStateDictConfig"),
        ("fft", "Tensor"),
        ("functional", "F Tensor norm"),
        ("fx._compatibility", "compatibility"),
        ("jit", "optimized_execution strict_fusion"),
        (
            "nn.functional",
            "_Reduction _canonical_mask _in_projection_packed _mha_shape_check _pair",
        ),
        ("nn.functional", "handle_torch_function has_torch_function has_torch_function_unary"),
        ("nn.modules.activation", "F MultiheadAttention constant_ xavier_uniform_"),
        ("nn.modules.activation", "_arg_requires_grad _check_arg_device _is_make_fx_tracing"),
        ("nn.modules.channelshuffle", "ChannelShuffle"),
        ("nn.modules.container", "OrderedDict Module Parameter ParameterList"),
        ("nn.modules.conv", "_ConvNd _pair _single"),
        ("nn.modules.loss", "PairwiseDistance TripletMarginLoss"),
        ("nn.modules.module", "_addindent _IncompatibleKeys Module"),
        ("nn.modules.normalization", "_shape_t"),
        ("nn.modules.padding", "_pair _quadruple"),
        ("nn.modules.pooling", "_pair _single _triple"),
        ("nn.modules.rnn", "Module PackedSequence Parameter RNNBase"),
        ("nn.modules.transformer", "Dropout LayerNorm Linear Module MultiheadAttention Tensor"),
        ("nn.modules.transformer", "_get_activation_fn _get_clones xavier_uniform_"),
        ("nn.modules.transformer", "_detect_is_causal_mask _generate_square_subsequent_mask"),
        ("nn.modules.rnn", "apply_permutation"),
        ("nn.intrinsic.modules", "ConvReLU2d"),
        ("nn.qat.modules", "Linear"),
        ("nn.quantized.modules", "Linear"),
        ("nn.intrinsic.modules.fused", "ConvBn2d"),
        ("nn.intrinsic.qat.modules.linear_relu", "LinearReLU"),
        ("nn.intrinsic.quantized.modules.conv_relu", "ConvReLU2d"),
        ("nn.qat.dynamic.modules.linear", "Linear"),
        ("nn.qat.modules.linear", "Linear"),
        ("nn.quantizable.modules.rnn", "LSTM"),
        ("nn.quantized.dynamic.modules.linear", "Linear"),
        ("nn.quantized.modules.batchnorm", "BatchNorm2d"),
        ("nn.quantized.modules.linear", "Linear LinearPackedParams"),
        ("masked._ops", "logaddexp mean softmax"),
        ("nn.parallel._functions", "Broadcast Gather Scatter"),
        ("onnx", "OperatorExportTypes TrainingMode"),
        ("onnx.utils", "export"),
        ("optim.lr_scheduler", "Optimizer _LRScheduler"),
        ("optim.swa_utils", "_group_tensors_by_device_and_dtype"),
        ("overrides", "BaseTorchFunctionMode"),
        ("special", "Tensor"),
        ("utils.cpp_extension", "BuildExtension CUDA_HOME CppExtension is_ninja_available load"),
        ("utils.checkpoint", "TorchDispatchMode checkpoint"),
        (
            "utils.data.dataloader",
            "_InfiniteConstantSampler Dataset default_collate get_worker_info",
        ),
        ("utils.data._utils.fetch", "_BaseDatasetFetcher"),
        ("utils.data.dataset", "Generator Tensor default_generator randperm random_split"),
        ("types", "BoolLikeType FloatLikeType IntLikeType"),
    ],
)
def test_names_are_where_programs_import_them_from(module: str, names: str) -> None:
    found = importlib.import_module(f"rushlight.{module}")
    assert [name for name in names.split() if not hasattr(found, name)] == []


def test_versions_compare_by_their_numbers() -> None:
    version = TorchVersion("2.13.0+cpu")
    assert version >= (1, 13) and version > "2.4" and version < (2, 13, 1) and version != "2.13.0"
    assert TorchVersion("2.13.0") == (2, 13) and TorchVersion("2.1.0a0") < "2.1"
    assert version <= "abc" and version != "abc" and {version: 1}["2.13.0+cpu"] == 1
    assert version.startswith("2.13") and version != 2


def test_a_tensor_has_a_number_of_its_own() -> None:
    x = torch.ones(2)
    assert x._cdata == x._cdata != x.detach()._cdata


def test_meshgrid_says_that_it_knows_indexing() -> None:
    assert "indexing" in torch.meshgrid.__kwdefaults__


def test_exceptions_of_threads_are_raised_where_they_are_awaited() -> None:
    try:
        raise ValueError("no such row")
    except ValueError:
        kept = torch._utils.ExceptionWrapper(where="in thread 3")
    with pytest.raises(ValueError, match=r"(?s)^Caught ValueError in thread 3\..*no such row"):
        kept.reraise()


def test_numpy_in_workers_is_seeded_as_by_pytorch() -> None:
    expected = [400740237, 3779043709, 3128233089, 477537302]
    assert _generate_state(2**40 + 7, 3) == expected


def test_checks_raise_what_their_name_says() -> None:
    torch._check(True)
    torch._check_is_size(3, max=3)
    torch._check_tensor_all(torch.tensor([True, True]))
    for check, kind in (
        (torch._check, RuntimeError),
        (torch._check_index, IndexError),
        (torch._check_value, ValueError),
        (torch._check_type, TypeError),
        (torch._check_not_implemented, NotImplementedError),
    ):
        with pytest.raises(kind, match="Expected cond to be True"):
            check(False)
        with pytest.raises(kind, match="why"):
            check(False, lambda: "why")
    with pytest.raises(KeyError):
        torch._check_with(KeyError, False, lambda: "x")
    with pytest.raises(RuntimeError):
        torch._check_is_size(-1)
    with pytest.raises(RuntimeError):
        torch._check_tensor_all(torch.tensor([True, False]))
    for wrong in (1, torch.tensor(True)):
        with pytest.raises(TypeError, match="cond must be a bool"):
            torch._check(wrong)
    with pytest.raises(TypeError, match="must be a callable"):
        torch._check(False, "text")
    with pytest.raises(TypeError, match="must have dtype"):
        torch._check_tensor_all(torch.ones(1))


def test_control_flow_as_functions() -> None:
    x = torch.ones(2, requires_grad=True)
    for pred in (True, torch.tensor(True), torch.tensor([1.0])):
        y = torch.cond(pred, lambda x: x * 3, lambda x: x * 5, (x,))
    y.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3, 3]
    assert torch.cond(0, lambda x: x * 3, lambda x: x * 5, (x,)).tolist() == [5, 5]
    with pytest.raises(RuntimeError, match="single-element"):
        torch.cond(torch.ones(2), torch.sin, torch.cos, (x,))
    n, y = torch.while_loop(
        lambda n, x: n < 3, lambda n, x: (n + 1, x * 2), (torch.tensor(0), torch.ones(2))
    )
    assert n == 3 and y.tolist() == [8, 8]
    with pytest.raises(RuntimeError, match="body_fn returned 1 values"):
        torch.while_loop(lambda n, x: n < 3, lambda n, x: (n + 1,), (0, x))


def test_associative_scans_combine_what_comes_before() -> None:
    x = torch.randn(3, 7, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(associative_scan(torch.add, x, 1), x.cumsum(1))
    back = associative_scan(torch.mul, x, 0, reverse=True, combine_mode="generic")
    torch.testing.assert_close(back, x.flip(0).cumprod(0).flip(0))

    def recurrence(a: Any, b: Any) -> Any:
        return a[0] * b[0], a[1] * b[0] + b[1]

    def last(x: torch.Tensor) -> torch.Tensor:
        return associative_scan(recurrence, (x, x + 1), 1)[1]

    h = torch.zeros(3, dtype=torch.float64)
    for t in range(7):
        h = h * x[:, t] + x[:, t] + 1
    torch.testing.assert_close(last(x)[:, -1], h)
    assert torch.autograd.gradcheck(last, (x,))
    assert associative_scan(torch.add, torch.ones(0), 0).shape == (0,)
    for wrong in ((x, x[:, 1:]), ()):
        with pytest.raises(ValueError, match="of one length"):
            associative_scan(recurrence, wrong, 1)
    with pytest.raises(ValueError, match="Combine_mode"):
        associative_scan(torch.add, x, 1, combine_mode="serial")


def test_programs_annotate_what_optimizers_are_given() -> None:
    def make(params: ParamsT) -> None: ...

    assert "Tensor" in repr(get_type_hints(make)["params"])


def test_what_runs_on_absent_devices_is_refused() -> None:
    for call in torch.xpu.Stream, torch.xpu.synchronize, torch.mps.Event, torch.mtia.empty_cache:
        with pytest.raises((RuntimeError, AssertionError), match=r"Ask \w+.is_available\(\)"):
            call()
    assert torch.xpu.Stream is torch.xpu.Stream and torch.xpu.manual_seed_all(3) is None
    assert torch.xpu.memory_stats() is not torch.xpu.memory_stats()
    assert not hasattr(torch.mps, "no_such_function")


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("batchnorm", "BatchNorm1d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d"),
        ("container", "ModuleList ParameterDict ParameterList"),
        ("conv", "Conv2d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose2d"),
        ("instancenorm", "InstanceNorm1d LazyInstanceNorm1d LazyInstanceNorm2d"),
        ("linear", "Linear LazyLinear"),
        (
            "loss",
            "L1Loss CosineEmbeddingLoss HingeEmbeddingLoss LinearCrossEntropyLoss "
            "MarginRankingLoss MultiMarginLoss SoftMarginLoss TripletMarginLoss",
        ),
    ],
)
def test_layers_are_in_the_modules_where_programs_import_them(module: str, names: str) -> None:
    home = importlib.import_module(f"rushlight.nn.modules.{module}")
    for name in names.split():
        assert getattr(home, name) is getattr(torch.nn, name)
    assert not hasattr(home, "Nothing")


def test_functions_ask_whether_calls_can_be_made() -> None:
    @rpc.api._require_initialized
    def call() -> None:
        """Never runs here."""

    with pytest.raises(RuntimeError, match="RPC has not been initialized"):
        call()
    assert call.__name__ == "call"


def test_what_a_compiler_says_is_said_once() -> None:
    assert not counters["inductor"]["extern_calls"]
    with pytest.warns(UserWarning, match="only once"):
        warn_once("only once")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_once("only once")
    assert not has_triton() and not has_triton_package()


def test_classes_of_tensors_print_as_libraries_want_them() -> None:
    assert _insides._get_default_device() == "cpu"
    notes = ["dim_size=3", "is_sorted=True"]
    assert _tensor_str._add_suffixes("Index([0, 1]", notes, 6, False) == (
        "Index([0, 1], dim_size=3, is_sorted=True)"
    )


def test_warnings_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    logger = torch._logging.getArtifactLogger("rushlight.tests", "names")
    assert logger.name == "rushlight.tests.__names"
    for text in ("a %s", "a %s", "b %s"):
        torch._logging.warning_once(logger, text, 1)
    assert caplog.messages == ["a 1", "b 1"]


def test_an_argument_chooses_one_of_two_functions() -> None:
    dispatch = boolean_dispatch("both", 1, False, lambda *_, **__: 2, lambda *_, **__: 1, "m", "f")
    assert [dispatch(0), dispatch(0, True), dispatch(0, both=True), dispatch(0, False)] == [
        1,
        2,
        2,
        1,
    ]
    assert (dispatch.__module__, dispatch.__name__) == ("m", "f")


@each(
    "module, names, home",
    [
        ("_functorch.apis", "vmap grad grad_and_value", "func"),
        ("_functorch.eager_transforms", "vjp jvp jacrev jacfwd hessian linearize", "func"),
        ("_functorch.functional_call", "functional_call stack_module_state", "func"),
        ("masked.maskedtensor", "MaskedTensor is_masked_tensor", "masked"),
        ("masked.maskedtensor.core", "MaskedTensor is_masked_tensor", "masked"),
        ("masked.maskedtensor.creation", "masked_tensor as_masked_tensor", "masked"),
        ("utils.benchmark.utils.common", "Measurement TaskSpec", "utils.benchmark"),
        ("utils.benchmark.utils.compare", "Compare", "utils.benchmark"),
        ("utils.benchmark.utils.timer", "Timer", "utils.benchmark"),
    ],
)
def test_names_are_where_pytorch_has_them(module: str, names: str, home: str) -> None:
    there, here = (importlib.import_module(f"rushlight.{name}") for name in (module, home))
    for name in names.split():
        assert getattr(there, name) is getattr(here, name)


@each(
    "module, name",
    [("nn", "DataParallel"), ("backends", "cuda"), ("utils", "checkpoint"), ("fx", "passes"),
     ("utils.data", "IterDataPipe"), ("", "compiler")],
)  # fmt: skip
def test_what_is_imported_later_is_listed_before(module: str, name: str) -> None:
    program = f"import rushlight{module and '.'}{module} as m; assert {name!r} in dir(m)"
    subprocess.run([sys.executable, "-c", program], check=True)
