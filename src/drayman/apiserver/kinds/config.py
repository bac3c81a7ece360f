"""ConfigMaps and Secrets: data by keys, of limited size, that can be frozen."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from drayman.api.errors import BodyError
from drayman.api.syntax.json_text import parse_embedded
from drayman.api.validation.field_errors import forbidden, invalid, required, too_long
from drayman.api.validation.metadata import IMMUTABLE
from drayman.apiserver.kinds.checks import data_key
from drayman.apiserver.kinds.reading import map_at, member, set_default, text_at
from drayman.apiserver.kinds.rules import Errors, Rules
from drayman.apiserver.served.strategy import Context, Object, restore

LARGEST_DATA: Final = 1024 * 1024
_FROZEN: Final = "field is immutable when `immutable` is set"
_WHOLE_OBJECT: Final = "[]"
_REDACTED: Final = "<secret contents redacted>"
_ACCOUNT_ANNOTATION: Final = "kubernetes.io/service-account.name"
_SECRET_KEYS: Final = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
"""Keys that secrets of a type must have."""
_JSON_KEYS: Final = (".dockercfg", ".dockerconfigjson")


def _check_config_map(obj: Object, _context: Context) -> Errors:
    data, binary = map_at(obj, "data"), map_at(obj, "binaryData")
    for key in data:
        yield from data_key(key, f"data[{key}]")
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binary:
        yield from data_key(key, f"binaryData[{key}]")
    size = sum(len(value.encode()) for value in data.values())
    size += sum(_decoded_size(value) for value in binary.values())
    if size > LARGEST_DATA:
        yield too_long(_WHOLE_OBJECT, LARGEST_DATA)


def _decoded_size(text: str) -> int:
    """The decoded size of a base64 text in bytes."""
    return len(text) // 4 * 3 - text[-2:].count("=")


def _frozen(new: Object, old: Object, members: tuple[str, ...]) -> Errors:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield forbidden("immutable", _FROZEN)
    for name in members:
        if (new.get(name) or {}) != (old.get(name) or {}):
            yield forbidden(name, _FROZEN)


def _default_secret(obj: Object, _context: Context) -> None:
    set_default(obj, "type", "Opaque")
    texts = obj.pop("stringData", None)
    if texts:
        data = member(obj, "data")
        for key, value in texts.items():
            data[key] = base64.b64encode(value.encode()).decode()


def _check_secret(obj: Object, _context: Context) -> Errors:
    data = map_at(obj, "data")
    for key in data:
        yield from data_key(key, f"data[{key}]")
    if sum(_decoded_size(value) for value in data.values()) > LARGEST_DATA:
        yield too_long("data", LARGEST_DATA)
    kind = text_at(obj, "type")
    annotations = map_at(obj, "metadata", "annotations")
    if kind == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT_ANNOTATION):
        yield required(f"metadata.annotations[{_ACCOUNT_ANNOTATION}]")
    if kind == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        yield required("data[username]")
        yield required("data[password]")
    for key in _SECRET_KEYS.get(kind, ()):
        if key not in data:
            yield required(f"data[{key}]")
        elif key in _JSON_KEYS and (problem := _json_problem(data[key])):
            yield invalid(f"data[{key}]", _REDACTED, problem)


def _json_problem(encoded: str) -> str:
    """Why a base64 text does not hold a JSON object."""
    try:
        value = parse_embedded(base64.b64decode(encoded))
    except (binascii.Error, BodyError) as error:
        return str(error)
    return "" if isinstance(value, dict) else "a JSON object is wanted"


def _check_secret_update(new: Object, old: Object, _context: Context) -> Errors:
    if text_at(new, "type") != text_at(old, "type"):
        yield invalid("type", text_at(new, "type"), IMMUTABLE)
    yield from _frozen(new, old, ("data",))


class SecretRules(Rules):
    """Secrets. An update that names no type keeps the existing one."""

    def prepare_for_update(self, new: Object, old: Object, context: Context) -> None:
        if not new.get("type"):
            restore(new, old, "type")


CONFIG_MAP: Final = Rules(
    checks=_check_config_map,
    update_checks=lambda new, old, _context: _frozen(new, old, ("data", "binaryData")),
)
SECRET: Final = SecretRules(
    defaults=_default_secret, checks=_check_secret, update_checks=_check_secret_update
)
