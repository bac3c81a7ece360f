"""The environment of a container, and values that a pod knows about itself: functions of what has been read before."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from drayman.api.codec import to_dict
from drayman.api.pod_sources import config_maps_of, secrets_of
from drayman.api.quantity import Quantity
from drayman.api.struct import Json
from drayman.node.agent.spec import (
    Container,
    EnvVar,
    ResourceFieldRef,
    RunnablePod,
    WholeRef,
)

_REFERENCE: Final = re.compile(r"\$(\$|\(([^()]*)\))")
_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]", re.DOTALL)
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class SourceError(Exception):
    """Something that a container needs is not there, or makes no sense. The message names it."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The ConfigMaps and Secrets that a pod names, by name; one that does not exist is missing."""

    config_maps: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)

    def config_map(self, name: str, optional: bool) -> Mapping[str, bytes]:
        """Raises SourceError."""
        return _found(self.config_maps, "configmap", name, optional)

    def secret(self, name: str, optional: bool) -> Mapping[str, bytes]:
        """Raises SourceError."""
        return _found(self.secrets, "secret", name, optional)


def _found(
    known: Mapping[str, Mapping[str, bytes]], kind: str, name: str, optional: bool
) -> Mapping[str, bytes]:
    if name not in known and not optional:
        raise SourceError(f'{kind} "{name}" not found')
    return known.get(name, {})


def config_map_data(value: Mapping[str, Json]) -> dict[str, bytes]:
    """The content of a ConfigMap."""
    texts = {key: text.encode() for key, text in (value.get("data") or {}).items()}
    return texts | _decoded(value.get("binaryData"))


def secret_data(value: Mapping[str, Json]) -> dict[str, bytes]:
    """The content of a Secret."""
    return _decoded(value.get("data"))


def _decoded(data: Mapping[str, str] | None) -> dict[str, bytes]:
    return {key: base64.b64decode(text) for key, text in (data or {}).items()}


def wanted_sources(pod: RunnablePod) -> tuple[set[str], set[str]]:
    """The names of the ConfigMaps and of the Secrets that a pod reads."""
    value = to_dict(pod)
    return set(config_maps_of(value)), set(secrets_of(value))


@dataclass(frozen=True, slots=True)
class OwnFacts:
    """What a pod can learn about itself beyond its object."""

    node: str
    host_ip: str
    allocatable: Mapping[str, Quantity]


def field_value(pod: RunnablePod, path: str, facts: OwnFacts) -> str:
    """A field of a pod, for the downward API. Raises SourceError."""
    meta = pod.metadata
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript is not None:
        values = meta.labels if subscript[1] == "labels" else meta.annotations
        return values.get(subscript[2], "")
    # Pods share the network of their node, so its address is theirs.
    found = {
        "metadata.name": meta.name,
        "metadata.namespace": meta.namespace,
        "metadata.uid": meta.uid,
        "metadata.labels": _lines(meta.labels),
        "metadata.annotations": _lines(meta.annotations),
        "spec.nodeName": facts.node,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "status.hostIP": facts.host_ip,
        "status.hostIPs": facts.host_ip,
        "status.podIP": facts.host_ip,
        "status.podIPs": facts.host_ip,
    }.get(path)
    if found is None:
        raise SourceError(f"field {path} is not known to this node")
    return found


def _lines(values: Mapping[str, str]) -> str:
    return "\n".join(f'{key}="{_escaped(values[key])}"' for key in sorted(values))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def resource_value(
    pod: RunnablePod, container: Container, reference: ResourceFieldRef, facts: OwnFacts
) -> str:
    """A resource of a container, rounded up to the divisor. A limit that is not set is what the node has. Raises SourceError."""
    if reference.container_name:
        named = [c for c in pod.spec.all_containers if c.name == reference.container_name]
        if not named:
            raise SourceError(f"container {reference.container_name} not found")
        container = named[0]
    kind, _, resource = reference.resource.partition(".")
    limits, requests = container.resources.limits, container.resources.requests
    amount = (limits if kind == "limits" else requests).get(resource)
    if amount is None and kind == "limits":
        amount = facts.allocatable.get(resource)
    if amount is None:
        return "0"
    divisor = (reference.divisor or Quantity.parse("1")).milli() or 1000
    return str(-(-amount.milli() // divisor))


def environment(
    pod: RunnablePod, container: Container, sources: Sources, facts: OwnFacts
) -> dict[str, str]:
    """The variables of a container, without what its devices add. Raises SourceError."""
    found: dict[str, str] = {
        "PATH": _PATH,
        "HOME": "/root",
        "HOSTNAME": pod.spec.hostname or pod.metadata.name,
    }
    for whole in container.env_from:
        found |= {
            whole.prefix + key: value.decode("utf-8", "replace")
            for key, value in _wholes(sources, whole.config_map_ref, whole.secret_ref)
        }
    for variable in container.env:
        value = _value(pod, container, variable, sources, facts, found)
        if value is not None:
            found[variable.name] = value
    return found


def _wholes(
    sources: Sources, config_map: WholeRef | None, secret: WholeRef | None
) -> Iterator[tuple[str, bytes]]:
    if config_map is not None:
        yield from sources.config_map(config_map.name, config_map.optional).items()
    if secret is not None:
        yield from sources.secret(secret.name, secret.optional).items()


def _value(
    pod: RunnablePod,
    container: Container,
    variable: EnvVar,
    sources: Sources,
    facts: OwnFacts,
    known: Mapping[str, str],
) -> str | None:
    """None where the value is optional and there is none."""
    source = variable.value_from
    if source is None:
        return expanded(variable.value, known)
    if source.field_ref is not None:
        return field_value(pod, source.field_ref.field_path, facts)
    if source.resource_field_ref is not None:
        return resource_value(pod, container, source.resource_field_ref, facts)
    reference = source.config_map_key_ref or source.secret_key_ref
    if reference is None:
        raise SourceError(f"variable {variable.name} has a source that is not known to this node")
    if source.config_map_key_ref is not None:
        kind, data = "configmap", sources.config_map(reference.name, reference.optional)
    else:
        kind, data = "secret", sources.secret(reference.name, reference.optional)
    if reference.key in data:
        return data[reference.key].decode("utf-8", "replace")
    if reference.optional:
        return None
    raise SourceError(f"couldn't find key {reference.key} in {kind} {reference.name}")


def expanded(text: str, known: Mapping[str, str]) -> str:
    """`$(NAME)` replaced by what is known; `$$` is a dollar sign, and a name that is not known stays as it is."""

    def replacement(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        return known.get(match[2], match[0])

    return _REFERENCE.sub(replacement, text)


def all_expanded(texts: Iterable[str], known: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(expanded(text, known) for text in texts)
