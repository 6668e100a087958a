"""The switch of the fast path of attention layers, which keeps what it is set to."""

_is_fastpath_enabled = True


def get_fastpath_enabled() -> bool:
    """Returns what set_fastpath_enabled was told."""
    return _is_fastpath_enabled


def set_fastpath_enabled(value: bool) -> None:
    """Notes whether attention layers may take a fast path: they always take the fastest."""
    global _is_fastpath_enabled
    _is_fastpath_enabled = value
