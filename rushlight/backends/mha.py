"""The switch of the fast path of attention layers; nn.TransformerEncoder says what it shows."""

_is_fastpath_enabled = True


def get_fastpath_enabled() -> bool:
    """Returns what set_fastpath_enabled was told."""
    return _is_fastpath_enabled


def set_fastpath_enabled(value: bool) -> None:
    """Sets whether attention layers may take a fast path.

    They always take the fastest. It is seen where a TransformerEncoder leaves padding out.
    """
    global _is_fastpath_enabled
    _is_fastpath_enabled = value
