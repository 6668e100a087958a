"""Tracing by tensors that note what is done to them, which does not exist; libraries ask for it."""


def get_proxy_mode() -> None:
    """Returns None: nothing is traced that way. See fx.symbolic_trace."""
