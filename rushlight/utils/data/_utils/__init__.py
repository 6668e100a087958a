"""What happens between a dataset and a loader: fetching, collation and worker processes.

The places are PyTorch's, which libraries import from. A process without workers needs no worker.
"""

from rushlight import _later

__getattr__ = _later.imports(__name__, ("collate", "fetch", "pin_memory", "worker"))
