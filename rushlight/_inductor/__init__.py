"""PyTorch's compiler of graphs; only its settings are here, and they change nothing."""

from rushlight._inductor import config as config
