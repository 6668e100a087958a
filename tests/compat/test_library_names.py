"""Inner names that libraries import mean the same, and absent devices answer as PyTorch's do."""

import importlib
import json
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import rushlight

pytorch = pytest.importorskip("torch")
FRAMEWORKS = (rushlight, pytorch)
Point = namedtuple("Point", "x y")
ABSENT = {
    "xpu": """
        empty_cache get_arch_list get_gencode_flags get_rng_state_all is_bf16_supported
        is_initialized is_tf32_supported max_memory_allocated max_memory_reserved memory_allocated
        memory_reserved memory_snapshot memory_stats memory_stats_as_nested_dict seed seed_all
        current_device current_stream get_device_capability get_device_name get_device_properties
        get_rng_state init initial_seed mem_get_info synchronize is_available device_count
    """,
    "mps": """
        current_allocated_memory driver_allocated_memory empty_cache get_rng_state
        recommended_max_memory seed synchronize is_available device_count
    """,
    "mtia": """
        get_rng_state_all is_initialized max_memory_allocated memory_allocated memory_stats
        reset_peak_memory_stats seed seed_all current_device current_stream default_stream
        empty_cache get_device_capability synchronize is_available device_count
    """,
}


def answer(function):
    try:
        return function()
    except (RuntimeError, AssertionError) as error:
        return type(error)


@pytest.mark.parametrize("name", ABSENT)
def test_absent_devices_answer_the_same(name):
    mine, theirs = (importlib.import_module(f"{f.__name__}.{name}") for f in FRAMEWORKS)
    if theirs.is_available():
        pytest.skip(f"there is {name}")
    for function in ABSENT[name].split():
        assert answer(getattr(mine, function)) == answer(getattr(theirs, function)), function


TREES = [
    3,
    [1, (2, {"a": 3, "b": [4, None]})],
    OrderedDict(x=1, y=(2,)),
    defaultdict(list, {"q": [1]}),
    deque([1, 2], 3),
    {1: 2, "a": 3},
    Point(1, [2]),
]


def test_specs_of_trees_are_written_the_same():
    trees = [importlib.import_module(f"{f.__name__}.utils._pytree") for f in FRAMEWORKS]
    for tree in trees:
        with pytest.raises(NotImplementedError, match="register"):
            tree.treespec_dumps(tree.tree_structure(Point(1, 2)))
        tree._register_namedtuple(Point, serialized_type_name="my.Point")
    for value in TREES:
        texts = [tree.treespec_dumps(tree.tree_structure(value)) for tree in trees]
        assert json.loads(texts[0]) == json.loads(texts[1])
        for tree in trees:
            assert tree.treespec_loads(texts[0]) == tree.tree_structure(value)
    for tree in trees:
        with pytest.raises(ValueError, match="Unknown protocol 2"):
            tree.treespec_loads("[2, {}]")
        with pytest.raises(NotImplementedError, match="not registered"):
            tree.treespec_loads('[1, {"type": "x", "context": "null", "children_spec": []}]')


def test_specs_of_registered_classes_are_written_the_same():
    class Box:
        pass

    texts = []
    for framework in FRAMEWORKS:
        tree = importlib.import_module(f"{framework.__name__}.utils._pytree")
        tree.register_pytree_node(
            Box, lambda box: ([1], {2, 1}), lambda items, context: Box(),
            serialized_type_name="my.Box", to_dumpable_context=sorted,
            from_dumpable_context=set,
        )  # fmt: skip
        spec = tree.tree_structure([Box()])
        texts.append(tree.treespec_dumps(spec))
        assert tree.treespec_loads(texts[-1]) == spec
    assert json.loads(texts[0]) == json.loads(texts[1])


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_tensors_are_rebuilt_on_storages():
    for torch in FRAMEWORKS:
        utils = importlib.import_module(f"{torch.__name__}._utils")
        base = torch.arange(12.0)
        made = utils._rebuild_tensor_v2(base.storage(), 2, (2, 3), (4, 1), True, {})
        assert made.tolist() == [[2, 3, 4], [6, 7, 8]] and made.requires_grad
        param = utils._rebuild_parameter(base, False, {})
        assert type(param) is torch.nn.Parameter and param.data_ptr() == base.data_ptr()
        named = utils._rebuild_parameter_with_state(base, True, {}, {"label": "x"})
        assert named.label == "x" and named.requires_grad
        slots = utils._rebuild_parameter_with_state(base, True, {}, (None, {"label": "y"}))
        assert slots.label == "y"
        assert utils._element_size(torch.bfloat16) == 2


def test_a_tracer_tells_that_it_records():
    for torch in FRAMEWORKS:
        trace = importlib.import_module(f"{torch.__name__}.fx._symbolic_trace")
        seen = []

        class Module(torch.nn.Module):
            def forward(self, x):
                self.tell()
                return x

        Module.tell = lambda self, trace=trace, seen=seen: seen.append(trace.is_fx_tracing())
        torch.fx.symbolic_trace(Module())
        assert seen == [True] and not trace.is_fx_tracing()


def test_the_folder_of_downloads_has_a_home(monkeypatch):
    monkeypatch.setenv("TORCH_HOME", "~/somewhere")
    homes = [importlib.import_module(f"{f.__name__}.hub")._get_torch_home() for f in FRAMEWORKS]
    assert homes[0] == homes[1] and homes[0].endswith("/somewhere")
