"""Loads the native core, and owns how long its threads spin for work before they sleep.

libgomp reads that from the environment as it is loaded, and spins for some milliseconds unless told
otherwise. On a machine that is busy with other things, the thread that is waited for may have no
core in that time, because the waiting one spins on it.
"""

from __future__ import annotations

import os

_VARIABLE = "GOMP_SPINCOUNT"
_SPINS = "10000"  # 0.2 to 0.5 ms; more than from one op of a training step to the next

if os.environ.keys() & {_VARIABLE, "OMP_WAIT_POLICY"}:  # the user has said
    import rushlight._C
else:
    os.environ[_VARIABLE] = _SPINS
    try:
        import rushlight._C  # noqa: F401
    finally:
        del os.environ[_VARIABLE]
