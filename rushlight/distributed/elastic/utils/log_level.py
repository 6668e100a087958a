"""How much launchers log."""

__all__ = ["get_log_level"]


def get_log_level() -> str:
    """Returns the level of get_logger's loggers where LOGLEVEL of the environment sets none."""
    return "WARNING"
