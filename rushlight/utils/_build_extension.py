"""The command of setuptools that builds extensions; cpp_extension.py has the rest."""

from __future__ import annotations

from typing import Any

from setuptools.command.build_ext import build_ext

__all__ = ["BuildExtension"]


class BuildExtension(build_ext):
    """Builds what CppExtension describes: setup(..., cmdclass={"build_ext": BuildExtension}).

    Flags in `extra_compile_args` may be a list, or a dict that has them as "cxx".

    Args:
        args: as of setuptools.
        no_python_abi_suffix: leaves the interpreter's tag out of the name of the library.
        use_ninja: has no effect.
        kwargs: as of setuptools.

    Example:
        >>> build = torch.utils.cpp_extension.BuildExtension.with_options(use_ninja=False)
        >>> issubclass(build, torch.utils.cpp_extension.BuildExtension)
        True
    """

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """Returns a subclass whose constructor is given the options, too.

        Args:
            options: arguments by name.
        """

        class WithOptions(cls):
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs | options)

        return WithOptions

    def __init__(
        self, *args: Any, no_python_abi_suffix: bool = False, use_ninja: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.no_python_abi_suffix = no_python_abi_suffix

    def build_extension(self, ext: Any) -> None:
        """Builds one module, with the flags that the headers count on.

        Args:
            ext: its description.
        """
        from rushlight.utils.cpp_extension import _compiler_flags

        own = ext.extra_compile_args
        flags = list(own.get("cxx", []) if isinstance(own, dict) else own)
        name = ext.name.rpartition(".")[2]
        ext.extra_compile_args = [f"-DTORCH_EXTENSION_NAME={name}", *_compiler_flags(flags)]
        super().build_extension(ext)

    def get_ext_filename(self, fullname: str) -> str:
        """Returns the path of a module's library, from that of its package on.

        Args:
            fullname: the name of the module.
        """
        path = super().get_ext_filename(fullname)
        if not self.no_python_abi_suffix:
            return path
        parts = path.split(".")
        return ".".join([*parts[:-2], parts[-1]])
