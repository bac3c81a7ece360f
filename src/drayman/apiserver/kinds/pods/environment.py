"""The environment of containers: variables, and where they come from."""

from __future__ import annotations

import re
from typing import Final

from drayman.api.struct import Json
from drayman.api.validation.field_errors import invalid, not_found
from drayman.api.validation.names import dns_label, dns_subdomain
from drayman.apiserver.kinds.checks import data_key, required_name
from drayman.apiserver.kinds.pods.downward import (
    ENVIRONMENT_FIELDS,
    amount_reference,
    field_reference,
)
from drayman.apiserver.kinds.pods.paths import without_backsteps
from drayman.apiserver.kinds.reading import at, each_at, text_at
from drayman.apiserver.kinds.rules import Errors
from drayman.apiserver.served.strategy import Object

_SOURCES: Final = (
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
)
_ALL_SOURCES: Final = ("configMapRef", "secretRef")
_NAME: Final = re.compile(r"[ -<>-~]+")
_NAME_RULE: Final = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_ONE_AT_A_TIME: Final = "may not have more than one field specified at a time"


def check_environment(container: Object, volumes: list[Json], path: str) -> Errors:
    """Variables one by one, and all entries of a ConfigMap or a Secret. `volumes` are the pod's."""
    for where, variable in each_at(container, path, "env"):
        yield from _variable(variable, where)
        if isinstance(file := at(variable, "valueFrom", "fileKeyRef"), dict):
            place = f"{where}.valueFrom.fileKeyRef.volumeName"
            yield from _file_volume(text_at(file, "volumeName"), volumes, place)
    if container.get("envFrom"):
        for where, source in each_at(container, path, "envFrom"):
            yield from _all_of(source, where, f"{path}.envFrom")


def _variable(variable: Object, path: str) -> Errors:
    yield from required_name(text_at(variable, "name"), f"{path}.name", _name)
    if isinstance(source := variable.get("valueFrom"), dict):
        yield from _value_source(source, text_at(variable, "value"), f"{path}.valueFrom")


def _name(name: str, path: str) -> Errors:
    if not _NAME.fullmatch(name):
        yield invalid(path, name, _NAME_RULE)


def _value_source(source: Object, value: str, path: str) -> Errors:
    given = [name for name in _SOURCES if source.get(name) is not None]
    for name in given:
        yield from _reference(name, source[name], f"{path}.{name}")
    if not given:
        names = ", ".join(f"`{name}`" for name in _SOURCES[:-1])
        yield invalid(path, "", f"must specify one of: {names} or `{_SOURCES[-1]}`")
    elif value:
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid(path, "", _ONE_AT_A_TIME)


def _reference(name: str, reference: Object, path: str) -> Errors:
    match name:
        case "fieldRef":
            yield from field_reference(reference, ENVIRONMENT_FIELDS, path)
        case "resourceFieldRef":
            yield from amount_reference(reference, path, names_container=False)
        case "fileKeyRef":
            yield from _file_key(reference, path)
        case _:
            yield from dns_subdomain(text_at(reference, "name"), f"{path}.name")
            yield from required_name(text_at(reference, "key"), f"{path}.key", data_key)


def _file_key(reference: Object, path: str) -> Errors:
    for member, form in (("key", _name), ("volumeName", dns_label), ("path", without_backsteps)):
        yield from required_name(text_at(reference, member), f"{path}.{member}", form)


def _file_volume(name: str, volumes: list[Json], path: str) -> Errors:
    """Files that variables are read from must be in the pod's own volumes."""
    sources = [volume for volume in volumes if text_at(volume, "name") == name]
    if not sources:
        yield not_found(path, name)
    elif sources[-1].get("emptyDir") is None:
        yield invalid(path, name, "referenced volume must be of type emptyDir")


def _all_of(source: Object, path: str, list_path: str) -> Errors:
    if prefix := text_at(source, "prefix"):
        yield from _name(prefix, f"{path}.prefix")
    given = [name for name in _ALL_SOURCES if source.get(name) is not None]
    for name in given:
        target = text_at(source, name, "name")
        yield from required_name(target, f"{path}.{name}.name", dns_subdomain)
    if not given:
        # As upstream, the error is on the list and not on its item.
        yield invalid(list_path, "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(given) > 1:
        yield invalid(list_path, "", _ONE_AT_A_TIME)
