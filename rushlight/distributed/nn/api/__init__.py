"""Modules of other processes."""
