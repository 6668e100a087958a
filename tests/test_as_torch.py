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
    assert done.stdout == "2.13.0 2.13.0+rushlight.0.1.0\nTrue\n['torch']\n", done.stderr


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


def test_the_program_must_be_named() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rushlight.as_torch"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and done.stderr.startswith("usage: python -m rushlight.as_torch")


def test_settings_of_the_compiler_are_kept_and_change_nothing(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        """
        import torch
        import torch._dynamo
        from torch._dynamo.eval_frame import OptimizedModule

        torch._dynamo.config.suppress_errors = True
        with torch._dynamo.config.patch(suppress_errors=False, cache_size_limit=3):
            print(torch._dynamo.config.suppress_errors)
        config = torch._dynamo.config
        print(config.suppress_errors, hasattr(config, "cache_size_limit"))
        model = torch.compile(torch.nn.Linear(2, 2))
        torch._dynamo.mark_dynamic(model.weight, 0)
        print(isinstance(model, OptimizedModule), torch._dynamo.is_compiling())
        """,
    )
    assert done.stdout == "False\nTrue False\nFalse False\n", done.stderr


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
        torch._C._log_api_usage_once("library")
        assert not hasattr(torch._C, "no_such_name")
        """,
    )
    assert done.returncode == 0, done.stderr
