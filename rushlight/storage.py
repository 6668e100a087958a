"""Storages by the place where programs import them from; _storage.py owns them."""

from __future__ import annotations

from rushlight._storage import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
