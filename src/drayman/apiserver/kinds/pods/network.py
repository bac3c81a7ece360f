"""The names and addresses of a pod: its host's, and those used for DNS lookups."""

from __future__ import annotations

import re
from typing import Final

from drayman.api import formats
from drayman.api.validation.field_errors import forbidden, invalid, required, too_long
from drayman.api.validation.names import dns_subdomain
from drayman.apiserver.kinds.checks import ip_address
from drayman.apiserver.kinds.reading import each_at, items_at, map_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.strategy import Object

_MOST_SERVERS: Final = 3
_MOST_SEARCHES: Final = 32
_LONGEST_SEARCH_LIST: Final = 2048
_LONGEST_HOST_NAME: Final = 64
_SEARCH_PART: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH: Final = re.compile(rf"{_SEARCH_PART}(\.{_SEARCH_PART})*")
_SEARCH_LENGTH: Final = 253


def check_names(spec: Object, path: str) -> Errors:
    """A pod's settings for DNS lookups and for its own name."""
    if spec.get("dnsPolicy") == "None" or spec.get("dnsConfig"):
        yield from _lookup(spec, f"{path}.dnsConfig")
    if spec.get("hostAliases"):
        for where, alias in each_at(spec, path, "hostAliases"):
            yield from ip_address(text_at(alias, "ip"), f"{where}.ip")
            for index, name in enumerate(items_at(alias, "hostnames")):
                yield from dns_subdomain(name, f"{where}.hostnames[{index}]")
    if spec.get("hostnameOverride") is not None:
        yield from _override(spec, f"{path}.hostnameOverride")


def check_host_network(spec: Object, path: str, *, is_pod: bool) -> Errors:
    """On the host network, a container's port is the node's."""
    for place, container in each_at(spec, path, "containers"):
        for where, port in each_at(container, place, "ports"):
            host, own = port.get("hostPort") or 0, port.get("containerPort") or 0
            if (is_pod or host) and host != own:
                detail = "must match `containerPort` when `hostNetwork` is true"
                yield invalid(f"{where}.hostPort", host, detail)


def _lookup(spec: Object, path: str) -> Errors:
    config = map_at(spec, "dnsConfig")
    servers, searches = items_at(config, "nameservers"), items_at(config, "searches")
    if spec.get("dnsPolicy") == "None":
        if spec.get("dnsConfig") is None:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not servers:
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{path}.nameservers", detail)
            return
    if len(servers) > _MOST_SERVERS:
        detail = f"must not have more than {_MOST_SERVERS} nameservers"
        yield invalid(f"{path}.nameservers", servers, detail)
    for index, server in enumerate(servers):
        yield from ip_address(server, f"{path}.nameservers[{index}]")
    yield from _searches(searches, f"{path}.searches")
    for where, option in each_at(config, path, "options"):
        if not text_at(option, "name"):
            yield required(where, "must not be empty")


def _searches(searches: list[str], path: str) -> Errors:
    if len(searches) > _MOST_SEARCHES:
        detail = f"must not have more than {_MOST_SEARCHES} search paths"
        yield invalid(path, searches, detail)
    if len(" ".join(searches).encode()) > _LONGEST_SEARCH_LIST:
        detail = f"must not have more than {_LONGEST_SEARCH_LIST} characters (including spaces) in the search list"
        yield invalid(path, searches, detail)
    for index, search in enumerate(searches):
        name = search.removesuffix(".")
        if search == ".":
            continue
        if len(name.encode()) > _SEARCH_LENGTH or not _SEARCH.fullmatch(name):
            detail = (
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must"
                f" start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SEARCH.pattern}')"
            )
            yield invalid(f"{path}[{index}]", name, detail)


def _override(spec: Object, path: str) -> Errors:
    name = text_at(spec, "hostnameOverride")
    if spec.get("setHostnameAsFQDN"):
        yield forbidden(path, "may not be specified when setHostnameAsFQDN is true")
    if spec.get("hostNetwork"):
        yield forbidden(path, "may not be specified when hostNetwork is true")
    if formats.byte_length(name) > _LONGEST_HOST_NAME:
        yield too_long(path, _LONGEST_HOST_NAME)
    yield from dns_subdomain(name, path)
