"""Checkpoints of activations, as wrappers of modules."""
