"""Which instruction sets the processor has, as the kernel tells them."""

from __future__ import annotations

import contextlib
import platform
from types import MappingProxyType

# By architecture: PyTorch's names, with the flag in /proc/cpuinfo where that is another word.
_NAMES = {
    "x86_64": """
        sse sse2 sse3=pni ssse3 sse4_1 sse4_2 sse4a avx avx2 avx_vnni avx512_f=avx512f
        avx512_cd=avx512cd avx512_dq=avx512dq avx512_bw=avx512bw avx512_vl=avx512vl
        avx512_ifma=avx512ifma avx512_vbmi=avx512vbmi avx512_vbmi2 avx512_bitalg avx512_vpopcntdq
        avx512_vnni avx512_bf16 avx512_fp16 avx512_vp2intersect avx512_4vnniw avx512_4fmaps avx10_1
        avx10_2 avx_vnni_int8 avx_vnni_int16 avx_ne_convert amx_bf16 amx_tile amx_int8 amx_fp16
        fma3=fma fma4 f16c bmi=bmi1 bmi2 popcnt lzcnt=abm aes sha=sha_ni clflush clflushopt clwb
    """,
    "aarch64": """
        neon=asimd fp16_arith=asimdhp bf16 i8mm dot=asimddp sve sve2 sve_bf16=svebf16 sme sme2
        atomics fhm=asimdfhm rdm=asimdrdm crc32 aes sha1 sha2 pmull
    """,
}


def _read() -> dict[str, bool | str]:
    architecture = platform.machine()
    flags: set[str] = set()
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name.strip() in ("flags", "Features"):
                flags.update(value.split())
                break
    found: dict[str, bool | str] = {"architecture": architecture}
    for name in _NAMES.get(architecture, "").split():
        name, _, flag = name.partition("=")
        found[name] = (flag or name) in flags
    return found


CAPABILITIES = MappingProxyType(_read())
