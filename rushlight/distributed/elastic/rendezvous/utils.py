"""What endpoints and options of a rendezvous say, and whether this machine is the one they name."""

from __future__ import annotations

import ipaddress
import socket

__all__ = ["parse_rendezvous_endpoint"]


def _parse_rendezvous_config(config_str: str) -> dict[str, str]:
    """Returns the options of a text such as "join_timeout=60,is_host=1".

    Raises:
        ValueError: if one has no name or no value.
    """
    config: dict[str, str] = {}
    for pair in filter(None, config_str.strip().split(",")):
        key, found, value = (part.strip() for part in pair.partition("="))
        if not key or not found or not value:
            raise ValueError(
                f"The rendezvous configuration {config_str!r} has {pair!r}. It must be a list of "
                "<key>=<value>."
            )
        config[key] = value
    return config


def parse_rendezvous_endpoint(endpoint: str | None, default_port: int) -> tuple[str, int]:
    """Returns host and port of an endpoint.

    Args:
        endpoint: host, host:port or [IPv6 address]:port; this machine if it is empty.
        default_port: the port of one that names none.

    Raises:
        ValueError: for another text.

    Example:
        >>> from rushlight.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint
        >>> parse_rendezvous_endpoint("host:123", 29400), parse_rendezvous_endpoint("", 29400)
        (('host', 123), ('localhost', 29400))
    """
    text = (endpoint or "").strip()
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(default_port)
    host = host.removeprefix("[").removesuffix("]") or "localhost"
    number = int(port) if port.lstrip("-").isdigit() else None
    if number is None or (colon and not 0 <= number < 2**16 and port != str(default_port)):
        raise ValueError(
            f"The port number of the rendezvous endpoint '{endpoint}' must be an integer between 0 "
            "and 65535."
        )
    return host, number


def is_this_machine(host: str) -> bool:
    """Returns whether a name or an address is one of this machine's."""
    name = socket.gethostname()
    if host in ("localhost", name, socket.getfqdn()):
        return True
    try:
        if ipaddress.ip_address(host).is_loopback:
            return True
    except ValueError:
        pass
    try:
        addresses = {found[4][0] for found in socket.getaddrinfo(host, None)}
        return bool(addresses & {found[4][0] for found in socket.getaddrinfo(name, None)})
    except OSError:
        return False
