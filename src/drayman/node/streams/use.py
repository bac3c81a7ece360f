"""What a node and its containers have used, as kubelets tell it at `/metrics/resource`: counters in Prometheus' text format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from msgspec import Struct

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_CPU: Final = "cpu_usage_seconds_total"
_MEMORY: Final = "memory_working_set_bytes"
_LINE: Final = re.compile(r"(\w+)(?:\{(.*)\})? ([0-9.eE+-]+)(?: ([0-9]+))?")
_LABEL: Final = re.compile(r'(?<!\w)(\w+)="((?:[^"\\]|\\.)*)"')
_MOST: Final = 2.0**62
_LATEST_MS: Final = 253_402_300_799_999
"""The last moment of the year 9999, beyond which there are no dates."""
_HELP: Final = {
    f"node_{_CPU}": ("counter", "CPU time that the node has used, in seconds"),
    f"node_{_MEMORY}": ("gauge", "Memory of the node that cannot be taken back, in bytes"),
    f"container_{_CPU}": ("counter", "CPU time that the container has used, in seconds"),
    f"container_{_MEMORY}": (
        "gauge",
        "Memory of the container that cannot be taken back, in bytes",
    ),
    f"pod_{_CPU}": ("counter", "CPU time that the containers of the pod have used, in seconds"),
    f"pod_{_MEMORY}": ("gauge", "Memory of the pod that cannot be taken back, in bytes"),
}


class ContainerKey(NamedTuple):
    namespace: str
    pod: str
    container: str


class Use(Struct, frozen=True):
    """What has been used by a moment."""

    cpu_s: float
    """Since the beginning, in seconds of one CPU."""
    memory: int
    """At that moment, in bytes, without what is kept only because there is room."""
    at_ms: int
    """Since the epoch."""


class NodeUse(Struct, frozen=True):
    """Of a node and of the containers that run on it."""

    node: Use | None
    containers: Mapping[ContainerKey, Use]


def to_text(use: NodeUse) -> str:
    """For a page of metrics."""
    lines: dict[str, list[str]] = {name: [] for name in _HELP}

    def add(kind: str, labels: str, found: Use) -> None:
        lines[f"{kind}_{_CPU}"].append(f"{labels} {found.cpu_s!r} {found.at_ms}")
        lines[f"{kind}_{_MEMORY}"].append(f"{labels} {found.memory} {found.at_ms}")

    if use.node is not None:
        add("node", "", use.node)
    for key, found in use.containers.items():
        add("container", _labels(key._asdict()), found)
    for (namespace, pod), found in _of_pods(use).items():
        add("pod", _labels({"namespace": namespace, "pod": pod}), found)
    text = []
    for name, (kind, about) in _HELP.items():
        text += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
        text += [f"{name}{line}" for line in lines[name]]
    return "\n".join(text) + "\n"


def from_text(text: str) -> NodeUse:
    """What a page of metrics says; what else it has, and amounts and times that cannot be, are passed over."""
    cpu: dict[ContainerKey | None, tuple[float, int]] = {}
    memory: dict[ContainerKey | None, float] = {}
    for name, labels, value, at_ms in _samples(text):
        kind, _, what = name.partition("_")
        if kind not in ("node", "container") or what not in (_CPU, _MEMORY):
            continue
        key = None
        if kind == "container":
            key = ContainerKey(*(labels.get(each, "") for each in ContainerKey._fields))
        if what == _CPU:
            cpu[key] = value, at_ms
        else:
            memory[key] = value
    both = {
        key: Use(seconds, int(memory[key]), at_ms)
        for key, (seconds, at_ms) in cpu.items()
        if key in memory
    }
    containers = {key: use for key, use in both.items() if key is not None}
    return NodeUse(both.get(None), containers)


def _samples(text: str) -> Iterator[tuple[str, dict[str, str], float, int]]:
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        value = None if match is None else _amount(match[3])
        at_ms = None if match is None else _time(match[4] or "0")
        if match is not None and value is not None and at_ms is not None:
            labels = {name: _unescaped(value) for name, value in _LABEL.findall(match[2] or "")}
            yield match[1], labels, value, at_ms


def _amount(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if 0 <= found <= _MOST else None


def _time(digits: str) -> int | None:
    found = int(digits) if len(digits) <= len(str(_LATEST_MS)) else _LATEST_MS + 1
    return found if found <= _LATEST_MS else None


def _of_pods(use: NodeUse) -> dict[tuple[str, str], Use]:
    found: dict[tuple[str, str], Use] = {}
    for key, each in use.containers.items():
        pod = key.namespace, key.pod
        before = found.get(pod, Use(0.0, 0, each.at_ms))
        found[pod] = Use(before.cpu_s + each.cpu_s, before.memory + each.memory, each.at_ms)
    return found


def _labels(labels: Mapping[str, str]) -> str:
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{','.join(pairs)}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _unescaped(value: str) -> str:
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], value)
