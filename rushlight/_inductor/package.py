"""Exported programs as files to run, by the names of PyTorch's ahead-of-time compiler.

Nothing is compiled ahead: a package is what torch.export.save writes, and its program runs under
torch.compile, without history.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.export import ExportedProgram, load, save
from rushlight.export._files import FileLike
from rushlight.fx import GraphModule

__all__ = ["AOTICompiledModel", "aoti_compile_and_package", "aoti_load_package"]


def aoti_compile_and_package(
    exported_program: ExportedProgram,
    *,
    package_path: str | os.PathLike[str] | None = None,
    inductor_configs: Mapping[str, Any] | None = None,
) -> str:
    """Writes an exported program to a package that aoti_load_package runs.

    Args:
        exported_program: what torch.export.export returned.
        package_path: a path that ends in .pt2; a new file among the temporary ones if None.
        inductor_configs: accepted for PyTorch's sake.

    Returns:
        The path.

    Raises:
        ValueError: if the path ends otherwise.

    Example:
        >>> import tempfile
        >>> program = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(1, 2),))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = torch._inductor.aoti_compile_and_package(
        ...         program, package_path=f"{folder}/linear.pt2"
        ...     )
        ...     model = torch._inductor.aoti_load_package(path)
        >>> model(torch.ones(1, 2)).requires_grad
        False
    """
    if package_path is None:
        handle, path = tempfile.mkstemp(suffix=".pt2")
        os.close(handle)
    else:
        path = os.fspath(package_path)
    if not path.endswith(".pt2"):
        raise ValueError(f"aoti_compile_and_package: expected a path that ends in .pt2, got {path}")
    try:
        save(exported_program, path)
    except BaseException:
        if package_path is None:
            os.remove(path)
        raise
    return path


def aoti_load_package(
    path: FileLike, run_single_threaded: bool = False, device_index: int = -1
) -> AOTICompiledModel:
    """Reads a package, or a file of torch.export.save; no code of the file is run.

    Args:
        path: a path or a file object.
        run_single_threaded: accepted for PyTorch's sake.
        device_index: the GPU that its tensors are moved to; -1 leaves them where they were.

    Raises:
        RuntimeError: if the file holds no program.
    """
    module = load(path).module()
    if device_index >= 0:
        module.to(rl.device("cuda", device_index))
    return AOTICompiledModel(module)


class AOTICompiledModel:
    """A packaged program: called with the arguments of the module that was exported."""

    def __init__(self, module: GraphModule) -> None:
        self._module = module
        self._run = rl.compile(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with rl.no_grad():
            return self._run(*args, **kwargs)

    def get_metadata(self) -> dict[str, str]:
        """Returns the kind of device that the parameters are on."""
        tensors = self._module.state_dict().values()
        return {"AOTI_DEVICE_KEY": next((t.device.type for t in tensors), "cpu")}

    def get_constant_fqns(self) -> list[str]:
        """Returns the paths of parameters and buffers."""
        return list(self._module.state_dict())

    def load_constants(
        self,
        constants_map: Mapping[str, Tensor],
        *,
        check_full_update: bool,
        user_managed: bool = False,
        allow_h2d_copy: bool = False,
    ) -> None:
        """Gives parameters and buffers new values.

        Args:
            constants_map: tensors by path.
            check_full_update: whether all must be there.
            user_managed: whether the tensors themselves are taken, and not copied.
            allow_h2d_copy: accepted for PyTorch's sake: tensors of other devices are always copied.

        Raises:
            RuntimeError: if one is unknown, has another shape, or is missing.
        """
        there = self._module.state_dict()
        unknown = sorted(constants_map.keys() - there.keys())
        missing = sorted(there.keys() - constants_map.keys()) if check_full_update else []
        if unknown or missing:
            raise RuntimeError(f"load_constants: unknown are {unknown}, missing are {missing}.")
        self._module.load_state_dict(dict(constants_map), strict=False, assign=user_managed)
