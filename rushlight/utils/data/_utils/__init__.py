"""What happens between a dataset and a loader: fetching, collation and worker processes.

The places are PyTorch's, which libraries import from. A process without workers needs no worker.
"""

import atexit

from rushlight import _later

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds after which a process looks whether the other is alive
python_exit_status = False  # whether Python is about to end, when workers end by themselves


def _set_python_exit_flag() -> None:
    global python_exit_status
    python_exit_status = True


atexit.register(_set_python_exit_flag)

__getattr__ = _later.imports(
    __name__,
    ("collate", "fetch", "pin_memory", "signal_handling", "worker"),
    {"worker": "HAS_NUMPY"},
)
