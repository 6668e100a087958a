"""The shim behind a few calls, which do what Rushlight's host side does with driver and NVRTC."""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_char_p, c_size_t, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BUILT = Path(__file__).resolve().parents[2] / "build" / "libcuda_shim.so"
LIBRARY = Path(os.environ.get("RUSHLIGHT_SHIM", BUILT))
if not LIBRARY.exists():
    pytest.skip(f"{LIBRARY} is not built (make test builds it)", allow_module_level=True)

INVALID_VALUE, OUT_OF_MEMORY, INVALID_HANDLE, NOT_FOUND = 1, 2, 400, 500
ILLEGAL_ADDRESS, OUT_OF_RESOURCES, MISALIGNED_ADDRESS, LAUNCH_FAILED = 700, 701, 716, 719


class CudaError(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class CompileError(Exception):
    pass


class Driver:
    """The first device, current on the thread that made this."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(str(LIBRARY))
        context = c_void_p()
        self("cuInit", 0)
        self("cuDevicePrimaryCtxRetain", byref(context), 0)
        self("cuCtxSetCurrent", context)

    def __call__(self, function: str, *arguments: Any) -> None:
        code = getattr(self.library, function)(*arguments)
        if code != 0:
            raise CudaError(code)

    def allocate(self, size: int) -> int:
        memory = c_uint64()
        self("cuMemAllocAsync", byref(memory), c_size_t(size), None)
        return memory.value

    def free(self, memory: int) -> None:
        self("cuMemFreeAsync", c_uint64(memory), None)

    def to_device(self, array: np.ndarray) -> int:
        memory = self.allocate(array.nbytes)
        self(
            "cuMemcpyHtoDAsync_v2",
            c_uint64(memory),
            c_void_p(array.ctypes.data),
            c_size_t(array.nbytes),
            None,
        )
        return memory

    def to_host(self, memory: int, count: int, dtype: Any = np.float32) -> np.ndarray:
        array = np.empty(count, dtype)
        self(
            "cuMemcpyDtoHAsync_v2",
            c_void_p(array.ctypes.data),
            c_uint64(memory),
            c_size_t(array.nbytes),
            None,
        )
        return array

    def compile(
        self,
        text: str,
        *options: str,
        expressions: tuple[str, ...] = (),
        headers: dict[str, str] | None = None,
    ) -> tuple[bytes, list[str]]:
        program, size = c_void_p(), c_size_t()
        names = (c_char_p * len(headers or {}))(*[name.encode() for name in headers or {}])
        texts = (c_char_p * len(names))(*[header.encode() for header in (headers or {}).values()])
        self(
            "nvrtcCreateProgram",
            byref(program),
            text.encode(),
            b"test.cu",
            len(names),
            texts,
            names,
        )
        try:
            for expression in expressions:
                self("nvrtcAddNameExpression", program, expression.encode())
            flags = (c_char_p * len(options))(*[option.encode() for option in options])
            code = self.library.nvrtcCompileProgram(program, len(options), flags)
            if code != 0:
                self("nvrtcGetProgramLogSize", program, byref(size))
                log = ctypes.create_string_buffer(size.value)
                self("nvrtcGetProgramLog", program, log)
                raise CompileError(code, log.value.decode())
            lowered = []
            for expression in expressions:
                name = c_char_p()
                self("nvrtcGetLoweredName", program, expression.encode(), byref(name))
                lowered.append((name.value or b"").decode())
            self("nvrtcGetCUBINSize", program, byref(size))
            image = ctypes.create_string_buffer(size.value)
            self("nvrtcGetCUBIN", program, image)
            return image.raw, lowered
        finally:
            self("nvrtcDestroyProgram", byref(program))

    def load(self, image: bytes, name: str) -> c_void_p:
        module, function = c_void_p(), c_void_p()
        self("cuModuleLoadData", byref(module), image)
        self("cuModuleGetFunction", byref(function), module, name.encode())
        return function

    def kernel(self, text: str, name: str = "k", *options: str) -> c_void_p:
        return self.load(self.compile(text, *options)[0], name)

    def launch(
        self,
        function: c_void_p,
        grid: Any,
        block: Any,
        *arguments: Any,
        shared: int = 0,
        stream: Any = None,
    ) -> None:
        """Launch with ints as pointers; other arguments are ctypes objects."""
        values = [c_uint64(a) if isinstance(a, int) else a for a in arguments]
        pointers = (c_void_p * len(values))(
            *[ctypes.cast(ctypes.pointer(value), c_void_p) for value in values]
        )
        sizes = [
            *(grid if isinstance(grid, tuple) else (grid, 1, 1)),
            *(block if isinstance(block, tuple) else (block, 1, 1)),
        ]
        self("cuLaunchKernel", function, *sizes, shared, stream, pointers, None)


def fails(code: int) -> Any:
    """Expect that the driver returns this code."""
    return pytest.raises(CudaError, match=f"^{code}$")


POKE = """extern "C" __global__ void k(float* x, int at, int write) {
  if (write) x[at] = 1; else x[0] = x[at];
}"""
