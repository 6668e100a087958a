"""Programs that say `import torch` get Rushlight's own modules (rushlight/as_torch.py)."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run(folder: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a program by `-m rushlight.as_torch`, in a folder of its own."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    return subprocess.run(
        [sys.executable, "-m", "rushlight.as_torch", str(path), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_modules_have_a_second_name(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import sys
        import torch
        import torch.nn.functional as F
        from torch import nn, optim
        from torch.utils.data import DataLoader, TensorDataset
        import rushlight

        assert torch is rushlight and F is rushlight.nn.functional and nn is rushlight.nn
        assert torch.nn.__spec__.name == "rushlight.nn" and not hasattr(F, "__path__")
        assert nn.Linear.__module__.startswith("rushlight.")
        assert [base.__module__ for base in nn.Linear.mro()].count("torch.nn.modules.module") == 1
        model = nn.Linear(3, 1)
        step = optim.SGD(model.parameters(), lr=0.1)
        for (x,) in DataLoader(TensorDataset(torch.ones(8, 3)), batch_size=4):
            F.mse_loss(model(x), torch.zeros(4, 1)).backward()
            step.step()
        print(__name__, sys.argv[1:])
        """,
        "--epochs",
        "3",
    )
    assert (done.stdout, done.stderr) == ("__main__ ['--epochs', '3']\n", "")


def test_asking_all_that_torch_holds_imports_nothing(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import torch

        homes = [getattr(value, "__module__", None) for value in vars(torch).values()]
        assert not hasattr(torch._C, "__module__") and torch._C._has_mps is False
        print("torch" in homes)
        """,
    )
    assert done.stdout == "True\n", done.stderr


def test_functions_stay_when_their_module_has_the_same_name(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import torch
        from torch.autograd.gradcheck import gradcheck
        import torch.nn.utils.weight_norm
        import torch.quantization.quantize

        assert torch.autograd.gradcheck is gradcheck
        print(torch.nn.utils.weight_norm.__name__, torch.quantization.quantize.__name__)
        """,
    )
    assert (done.stdout, done.stderr) == ("weight_norm quantize\n", "")


def test_libraries_that_ask_find_pytorch_installed(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import importlib.metadata
        import importlib.util
        import torch

        print(importlib.metadata.version("torch"), torch.__version__)
        print(importlib.util.find_spec("torch") is not None)
        print([d.name for d in importlib.metadata.distributions() if d.name == "torch"])
        """,
    )
    assert done.stdout == "2.14.1 2.14.1+rushlight.0.1.0\nTrue\n['torch']\n", done.stderr


def test_functorch_is_part_of_it(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import functorch
        import torch
        from functorch import make_functional, make_fx, vmap
        from functorch.einops import rearrange
        from functorch.experimental import chunk_vmap
        from functorch.experimental.control_flow import cond, map
        from torch._higher_order_ops.while_loop import while_loop

        assert functorch.grad is torch.func.grad and vmap is torch.vmap
        assert cond is torch.cond and while_loop is torch.while_loop
        x = torch.arange(6.0).reshape(3, 2)
        assert torch.equal(chunk_vmap(torch.sum, chunks=2)(x), x.sum(1))
        assert torch.equal(map(lambda row, y: row.sum() + y, x, 1), x.sum(1) + 1)
        function, params = make_functional(torch.nn.Linear(2, 1))
        print(function((torch.ones(1, 2), torch.ones(1)), torch.ones(2)))
        """,
    )
    assert done.stdout == "tensor([3.])\n", done.stderr


def test_a_module_that_is_missing_is_named_as_the_program_named_it(tmp_path: Path) -> None:
    done = run(tmp_path, "import torch.nn.no_such_module")
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'torch.nn.no_such_module'\n")


def test_modules_beside_the_program_are_found(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("import torch\nvalue = torch.arange(3).sum().item()\n")
    done = run(tmp_path, "from beside import value\nprint(value)")
    assert done.stdout == "3\n", done.stderr


def test_pytorch_itself_must_not_be_there_yet(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import sys
        from types import ModuleType
        sys.modules["torch"] = ModuleType("torch")
        sys.modules.pop("rushlight.as_torch")
        import rushlight.as_torch
        """,
    )
    assert done.stderr.endswith(
        "ImportError: as_torch: PyTorch is imported already. One process has one torch. "
        "Import rushlight.as_torch before everything that imports torch.\n"
    )


def test_processes_that_are_started_anew_have_the_second_name(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import torch

        def work(rank, first):
            print(rank, torch.__name__, first + rank)

        if __name__ == "__main__":
            torch.multiprocessing.spawn(work, (torch.ones(1),), nprocs=1)
        """,
    )
    assert (done.stdout, done.stderr) == ("0 torch tensor([1.])\n", "")


def test_the_import_counts_in_processes_that_do_not_repeat_it(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(
        "import torch\n\ndef work(rank):\n    print(torch.__name__)\n"
    )
    program = tmp_path / "program.py"
    program.write_text(
        'if __name__ == "__main__":\n'
        "    import rushlight.as_torch, torch, work\n"
        "    torch.multiprocessing.spawn(work.work)\n"
    )
    done = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == ("torch\n", "")


def test_a_module_runs_by_its_name_and_so_does_the_launcher(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch, sys\nprint(__name__, torch.__name__, sys.argv[1:])"
    )
    command = [sys.executable, "-m", "rushlight.as_torch", "-m"]
    launcher = [*command, "torch.distributed.run", "--standalone"]
    for start in ([*command, "train"], [*launcher, "train.py"], [*launcher, "-m", "train"]):
        done = subprocess.run(
            [*start, "--epochs", "3"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.stdout == "__main__ torch ['--epochs', '3']\n", done.stderr


def test_the_program_must_be_named() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rushlight.as_torch"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and done.stderr.startswith("usage: python -m rushlight.as_torch")


def test_settings_of_the_compiler_are_kept(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import torch
        import torch._dynamo
        from torch._dynamo.eval_frame import OptimizedModule
        from torch._dynamo.testing import CompileCounter

        torch._dynamo.config.suppress_errors = True
        with torch._dynamo.config.patch(suppress_errors=False, inline_inbuilt=3):
            print(torch._dynamo.config.suppress_errors)
        config = torch._dynamo.config
        print(config.suppress_errors, hasattr(config, "inline_inbuilt"))

        import torch._dynamo.config
        import torch._inductor.config

        torch._inductor.config.coordinate_descent_tuning = True
        torch._inductor.config.triton.unique_kernel_names = True
        torch._functorch.config.donated_buffer = False

        @torch._inductor.config.patch({"max_autotune": True}, epilogue_fusion=False)
        def settings():
            return torch._inductor.config.max_autotune, torch._inductor.config.epilogue_fusion

        print(settings(), torch._inductor.config.coordinate_descent_tuning)
        counter = CompileCounter()
        model = torch.compile(torch.nn.Linear(2, 2), backend=counter)
        torch._dynamo.mark_dynamic(model.weight, 0)
        print(isinstance(model, OptimizedModule), torch._dynamo.is_compiling())
        model(torch.ones(1, 2))
        print(counter.frame_count, counter.op_count)
        """,
    )
    expected = "False\nTrue False\n(True, False) True\nTrue False\n1 1\n"
    assert done.stdout == expected, done.stderr


def test_libraries_reach_a_few_insides(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import torch

        parsed = torch._C._nn._parse_to("cpu", torch.float64)
        assert parsed == (torch.device("cpu"), torch.float64, False, None), parsed
        assert torch._C._nn._parse_to(torch.ones(1))[:2] == (torch.device("cpu"), torch.float32)
        assert torch._C._get_tracing_state() is None
        active = torch._C._are_functorch_transforms_active
        assert not active()
        torch.vmap(lambda x: x if active() else 1 / 0)(torch.ones(2))
        assert not torch._C._has_xpu and not torch._C._has_mps
        torch._C._log_api_usage_once("library")
        assert torch._C._jit_set_profiling_executor(False) is False
        assert torch._C._jit_set_profiling_mode(False) is False
        from torchvision._internally_replaced_utils import load_state_dict_from_url
        assert load_state_dict_from_url is torch.hub.load_state_dict_from_url
        from torch._C import Graph, Node, Value
        assert not isinstance(torch.jit.trace(torch.sin, torch.ones(1)).graph, Graph)
        assert not hasattr(torch._C, "no_such_name")
        """,
    )
    assert done.returncode == 0, done.stderr


def test_classes_say_that_they_are_of_torch(tmp_path: Path) -> None:
    """Libraries for several frameworks tell by it whose an array is."""
    done = run(
        tmp_path,
        """
        import pickle
        import torch

        for thing in (torch.ones(2), torch.nn.Parameter(torch.ones(2)), torch.nn.Linear(1, 1)):
            modules = {base.__module__.partition(".")[0] for base in type(thing).mro()}
            print("torch" in modules, type(pickle.loads(pickle.dumps(thing))) is type(thing))
        print(torch.Tensor, torch.nn.Parameter)
        print(torch.utils.data.Dataset.__module__, torch.utils.data.DataLoader.__module__)
        print(torch.optim.Optimizer)
        """,
    )
    assert done.stdout == (
        "True True\nTrue True\nTrue True\n"
        "<class 'torch.Tensor'> <class 'torch.nn.parameter.Parameter'>\n"
        "torch.utils.data.dataset torch.utils.data.dataloader\n"
        "<class 'torch.optim.optimizer.Optimizer'>\n"
    ), done.stderr


def test_the_version_compares_with_tuples_and_texts(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import torch

        print(torch.__version__ >= (1, 13), torch.__version__ < "2.4", torch.__version__ > "2.9.1")
        """,
    )
    assert done.stdout == "True False True\n", done.stderr


def test_libraries_put_their_own_steps_into_vmap(tmp_path: Path) -> None:
    """A container is a sample as a whole when a library says what its samples are."""
    done = run(
        tmp_path,
        """
        import torch
        import torch._functorch.vmap as steps
        from torch._C._functorch import _add_batch_dim, _remove_batch_dim
        from torch._C._functorch import get_unwrapped, is_batchedtensor

        class Pair:
            def __init__(self, a, b):
                self.a, self.b = a, b

        def process(in_dims, args, func):
            leaves, spec = steps.tree_flatten(args)
            return leaves[0].a.shape[0], [in_dims] * len(leaves), leaves, spec

        def create(dims, leaves, level, spec):
            pairs = [
                Pair(_add_batch_dim(leaf.a, dim, level), _add_batch_dim(leaf.b, dim, level))
                for leaf, dim in zip(leaves, dims)
            ]
            return steps.tree_unflatten(pairs, spec)

        def unwrap(result, out_dims, level, size, func):
            a, b = (_remove_batch_dim(x, level, size, out_dims) for x in (result.a, result.b))
            return Pair(a, b)

        def swap(pair):
            print(is_batchedtensor(pair.a), tuple(pair.a.shape), tuple(get_unwrapped(pair.a).shape))
            return Pair(pair.b, pair.a + 1)

        plain = torch.vmap(lambda x: x.sum())(torch.ones(2, 3))
        steps._process_batched_inputs = process
        steps._create_batched_inputs = create
        steps._unwrap_batched = unwrap
        pair = torch.vmap(swap)(Pair(torch.zeros(2, 3), torch.ones(2)))
        print(plain.tolist(), pair.a.tolist(), pair.b.tolist(), is_batchedtensor(plain))
        """,
    )
    assert done.stdout == (
        "True (3,) (2, 3)\n[3.0, 3.0] [1.0, 1.0] [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]] False\n"
    ), done.stderr


def test_the_parts_of_the_native_module_can_be_imported(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import torch
        import torch._C._nn as by_import
        from torch._C import _nn as by_name

        assert by_import.gelu is torch.nn.functional.gelu and not hasattr(by_import, "Tensor")
        print(by_import is by_name is torch._C._nn, by_import._parse_to("cpu", torch.float64)[:2])
        try:
            import torch._C._no_such_part
        except ModuleNotFoundError as error:
            print(error)
        """,
    )
    assert done.stdout == (
        "True (device(type='cpu'), torch.float64)\nNo module named 'torch._C._no_such_part'\n"
    ), done.stderr


def test_the_classes_of_distributed_are_found_where_they_are_native(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import torch
        import torch.distributed as dist
        from torch._C._distributed_c10d import FakeProcessGroup, ReduceOp, _resolve_process_group

        assert torch._C._distributed_c10d.Store is dist.Store and ReduceOp is dist.ReduceOp
        dist.init_process_group("fake", rank=0, world_size=2)
        group = dist.group.WORLD
        same = _resolve_process_group(group.group_name)
        print(isinstance(group, FakeProcessGroup), same is group)
        """,
    )
    assert done.stdout == "True True\n", done.stderr


def test_the_insides_that_transformers_imports_are_there(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import torch
        from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
        from torch.distributed._functional_collectives import all_to_all_single_autograd
        from torch.distributed._functional_collectives import wait_tensor
        from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
        from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
        from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
        from torch.distributed.checkpoint._consolidate_hf_safetensors import (
            consolidate_safetensors_files,
        )
        from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
        from torch.distributed.tensor.placement_types import _StridedShard

        @torch._dynamo.assume_constant_result
        def answer():
            return 42

        print(answer())
        """,
    )
    assert done.stdout == "42\n", done.stderr
