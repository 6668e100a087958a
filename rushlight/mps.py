"""Questions about Apple's GPUs, which are not supported; what can be called is as without one."""

from rushlight._absent_devices import attribute_of


def is_available() -> bool:
    """Returns False."""
    return False


def device_count() -> int:
    """Returns 0."""
    return 0


__getattr__ = attribute_of(
    "mps",
    {},
    refused="""
        compile_shader current_allocated_memory driver_allocated_memory empty_cache get_rng_state
        manual_seed recommended_max_memory seed set_per_process_memory_fraction set_rng_state
        synchronize
    """,
    classes="Event",
)
