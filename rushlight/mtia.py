"""Questions about Meta's accelerators, which are not supported; see _absent_devices.py."""

from rushlight._absent_devices import attribute_of


def is_available() -> bool:
    """Returns False."""
    return False


def device_count() -> int:
    """Returns 0."""
    return 0


__getattr__ = attribute_of(
    "mtia",
    {
        "get_rng_state_all": list,
        "is_initialized": False,
        "manual_seed": None,
        "manual_seed_all": None,
        "max_memory_allocated": 0,
        "memory_allocated": 0,
        "memory_stats": dict,
        "reset_peak_memory_stats": None,
        "seed": None,
        "seed_all": None,
    },
    refused="""
        current_device current_stream default_stream empty_cache get_device_capability
        get_device_properties set_device set_stream snapshot stream synchronize
    """,
    classes="device",
)
