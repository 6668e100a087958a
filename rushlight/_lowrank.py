"""Decompositions of low rank where programs of PyTorch's insides look for them."""

from rushlight import pca_lowrank, svd_lowrank

__all__ = ["pca_lowrank", "svd_lowrank"]
