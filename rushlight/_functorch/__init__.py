"""PyTorch's home of vmap, where libraries look for its steps, and settings of its compiler."""

from rushlight._functorch import config as config
