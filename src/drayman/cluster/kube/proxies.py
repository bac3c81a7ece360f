"""The proxy that the environment names for a server: `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, as kubectl reads them."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from drayman.cluster.errors import ConfigurationError

_PORTS: Final = {"http": 80, "https": 443}


def is_web_address(text: str) -> bool:
    """Whether a text is the address of a server or a proxy that speaks HTTP."""
    try:
        address = urlsplit(text)
        has_port = address.port != 0  # raises ValueError beyond the range of ports
    except ValueError:
        return False
    return has_port and address.scheme in _PORTS and bool(address.hostname)


def proxy_of(server: str, environment: Mapping[str, str]) -> str:
    """The address of the proxy; empty for none. Raises ConfigurationError for a proxy that is not one by HTTP."""
    target = urlsplit(server)
    host, port = (target.hostname or "").lower(), target.port or _PORTS[target.scheme]
    name, proxy = _first(environment, f"{target.scheme}_proxy")
    if target.scheme == "http" and "REQUEST_METHOD" in environment:
        return ""  # in a CGI program, a header of the request would set it
    if not proxy or _is_direct(host, port, _first(environment, "no_proxy")[1]):
        return ""
    address = proxy if "://" in proxy else f"http://{proxy}"
    if not is_web_address(address):
        raise ConfigurationError(f"{name}={proxy}: only http and https proxies are supported")
    return address


def _first(environment: Mapping[str, str], name: str) -> tuple[str, str]:
    """A variable in capitals or, if that is not set, in small letters."""
    for each in (name.upper(), name):
        if environment.get(each):
            return each, environment[each]
    return name.upper(), ""


def _is_direct(host: str, port: int, exceptions: str) -> bool:
    """Whether a server is reached without a proxy: on this machine, or by an exception."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if address is not None and address.is_loopback:
        return True
    words = (word.strip().lower() for word in exceptions.split(","))
    return any(_excepts(word, host, address, port) for word in words if word)


def _excepts(
    word: str, host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, port: int
) -> bool:
    """Whether an exception is about a server: all, an address or a range of them, or a domain; each may have a port."""
    if word == "*":
        return True
    if "/" in word:
        try:
            return address is not None and address in ipaddress.ip_network(word, strict=False)
        except ValueError:
            return False
    name, bound = _split_port(word)
    if bound is not None and bound != port:
        return False
    if address is not None:
        try:
            return ipaddress.ip_address(name) == address
        except ValueError:
            return False
    if name.startswith("*."):
        name = name[1:]
    return (
        host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")
    )


def _split_port(word: str) -> tuple[str, int | None]:
    """As in `example.com:6443` and `[::1]:6443`."""
    if word.startswith("["):
        name, _, rest = word[1:].partition("]")
        text = rest.removeprefix(":")
    elif word.count(":") == 1:
        name, _, text = word.partition(":")
    else:
        return word, None
    return name, int(text) if text.isdecimal() else None
