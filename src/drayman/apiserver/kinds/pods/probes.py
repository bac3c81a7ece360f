"""What is run in or against a container besides its own command: probes, and hooks at its start and end."""

from __future__ import annotations

import re
from typing import Final

from drayman.api.signals import SIGNALS
from drayman.api.validation.field_errors import forbidden, invalid, required
from drayman.apiserver.kinds.checks import not_negative, port_number, port_number_or_name, supported
from drayman.apiserver.kinds.pods.defaults import PROBES
from drayman.apiserver.kinds.reading import at, each_at, items_at, number_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.strategy import Object

_HOOK_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "sleep")
_PROBE_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
_PROBE_NUMBERS: Final = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_WINDOWS_SIGNALS: Final = ("SIGKILL", "SIGTERM")
_SCHEMES: Final = ("HTTP", "HTTPS")
_HEADER: Final = re.compile("[-A-Za-z0-9]+")
_HEADER_RULE: Final = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name',"
    f" regex used for validation is '{_HEADER.pattern}')"
)


def check_lifecycle(container: Object, grace: int | None, os: str, path: str) -> Errors:
    """Hooks, the signal at the end, and probes. `grace` is how long the pod may take to end, `os` the system that it is for."""
    if container.get("lifecycle"):
        if signal := text_at(container, "lifecycle", "stopSignal"):
            yield from _stop_signal(signal, os, f"{path}.lifecycle.stopSignal")
        for hook in ("postStart", "preStop"):
            if isinstance(handler := at(container, "lifecycle", hook), dict):
                yield from _handler(handler, _HOOK_HANDLERS, grace, f"{path}.lifecycle.{hook}")
    for name in PROBES:
        if isinstance(probe := container.get(name), dict):
            yield from _probe(probe, f"{path}.{name}", readiness=name == "readinessProbe")


def _stop_signal(name: str, os: str, path: str) -> Errors:
    if not os:
        yield forbidden(path, "may not be set for containers with empty `spec.os.name`")
    else:
        yield from supported(name, path, _WINDOWS_SIGNALS if os == "windows" else sorted(SIGNALS))


def no_lifecycle(container: Object, path: str) -> Errors:
    """A container that runs to completion before others start has neither."""
    for name in ("lifecycle", *PROBES):
        if container.get(name) is not None:
            detail = "may not be set for init containers without restartPolicy=Always"
            yield forbidden(f"{path}.{name}", detail)


def _probe(probe: Object, path: str, *, readiness: bool) -> Errors:
    yield from _handler(probe, _PROBE_HANDLERS, None, path)
    for name in _PROBE_NUMBERS:
        yield from not_negative(probe.get(name), f"{path}.{name}")
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None:
        if grace <= 0:
            yield invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")
        if readiness:
            detail = "must not be set for readinessProbes"
            yield invalid(f"{path}.terminationGracePeriodSeconds", grace, detail)
    if not readiness and probe.get("successThreshold") != 1:
        yield invalid(f"{path}.successThreshold", probe.get("successThreshold"), "must be 1")


def _handler(handler: Object, kinds: tuple[str, ...], grace: int | None, path: str) -> Errors:
    given = [name for name in kinds if handler.get(name) is not None]
    if not given:
        yield required(path, "must specify a handler type")
        return
    yield from _action(given[0], handler[given[0]], grace, f"{path}.{given[0]}")
    for name in given[1:]:
        yield forbidden(f"{path}.{name}", "may not specify more than 1 handler type")


def _action(name: str, action: Object, grace: int | None, path: str) -> Errors:
    match name:
        case "exec":
            if not items_at(action, "command"):
                yield required(f"{path}.command")
        case "httpGet":
            yield from _http_get(action, path)
        case "tcpSocket":
            yield from port_number_or_name(_port(action), f"{path}.port")
        case "grpc":
            yield from port_number(number_at(action, "port"), f"{path}.port")
        case "sleep":
            seconds = number_at(action, "seconds")
            if grace is not None and not 0 <= seconds <= grace:
                detail = (
                    f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                )
                yield invalid(path, seconds, detail)


def _port(action: Object) -> int | str:
    port = action.get("port")
    return port if isinstance(port, int | str) else 0


def _http_get(action: Object, path: str) -> Errors:
    if not text_at(action, "path"):
        yield required(f"{path}.path")
    yield from port_number_or_name(_port(action), f"{path}.port")
    yield from supported(text_at(action, "scheme"), f"{path}.scheme", _SCHEMES)
    for _, header in each_at(action, path, "httpHeaders"):
        name = text_at(header, "name")
        if not _HEADER.fullmatch(name):
            yield invalid(f"{path}.httpHeaders", name, _HEADER_RULE)
