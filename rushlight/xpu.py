"""Questions about Intel's GPUs, which are not supported; what can be called is as without one."""

from rushlight._absent_devices import attribute_of


def is_available() -> bool:
    """Returns False."""
    return False


def device_count() -> int:
    """Returns 0."""
    return 0


__getattr__ = attribute_of(
    "xpu",
    {
        "empty_cache": None,
        "get_arch_list": list,
        "get_gencode_flags": "",
        "get_rng_state_all": list,
        "is_bf16_supported": False,
        "is_initialized": False,
        "is_tf32_supported": False,
        "manual_seed": None,
        "manual_seed_all": None,
        "max_memory_allocated": 0,
        "max_memory_reserved": 0,
        "memory_allocated": 0,
        "memory_reserved": 0,
        "memory_snapshot": list,
        "memory_stats": dict,
        "memory_stats_as_nested_dict": dict,
        "seed": None,
        "seed_all": None,
    },
    refused="""
        can_device_access_peer current_device current_stream get_device_capability get_device_name
        get_device_properties get_per_process_memory_fraction get_rng_state init initial_seed
        mem_get_info reset_accumulated_memory_stats reset_peak_memory_stats set_device
        set_per_process_memory_fraction set_rng_state set_rng_state_all set_stream stream
        synchronize
    """,
    classes="Event Stream device",
    error=AssertionError,
)
