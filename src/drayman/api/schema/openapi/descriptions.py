"""What messages and fields are for, as `kubectl explain` shows it.

The texts are in `data/descriptions`, a file for each group: a message at the left margin as `Name: text`, its fields below it, indented by
one space, as `name: text`. They hold for all versions of the group that have a message or field of that name. After `Name like Other`, or
`Name like group.Other`, the fields that are not described are those of the other message. `shared.txt` has the fields that every kind has.
"""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from drayman.api.schema.model import Message

_PACKAGE: Final = "drayman.api.schema"
_SHARED: Final = "shared"
_OBJECT: Final = "Object"
_LIKE: Final = " like "


@dataclass(slots=True)
class Described:
    """What is written about a message. `like` names the group and the message that have the rest."""

    text: str
    like: tuple[str, str] | None = None
    fields: dict[str, str] = field(default_factory=dict)


def message_description(message: Message) -> str:
    """What a message is for; empty where nothing is written about it."""
    found = descriptions_of(_group(message)).get(message.name)
    return found.text if found is not None else ""


def field_description(message: Message, name: str) -> str:
    """What a field is for; empty where nothing is written about it."""
    own = _field_text(_group(message), message.name, name)
    if own or not message.is_kind:
        return own
    return _field_text(_SHARED, _OBJECT, name)


def _field_text(group: str, message: str, name: str) -> str:
    found = descriptions_of(group).get(message)
    if found is None:
        return ""
    own = found.fields.get(name, "")
    return own or (_field_text(*found.like, name) if found.like is not None else "")


def _group(message: Message) -> str:
    return message.package.partition("/")[0]


@cache
def descriptions_of(group: str) -> dict[str, Described]:
    """What is written about the messages of a group."""
    try:
        data = pkgutil.get_data(_PACKAGE, f"data/descriptions/{group}.txt")
    except FileNotFoundError:
        return {}
    assert data is not None, "packages are installed with a loader that has data"
    found: dict[str, Described] = {}
    current = Described("")
    for line in data.decode().splitlines():
        name, _, text = line.strip().partition(": ")
        if line[0] == " ":
            current.fields[name] = text
            continue
        own_name, _, like = name.partition(_LIKE)
        current = found[own_name] = Described(text, _target(group, like))
    return found


def _target(group: str, like: str) -> tuple[str, str] | None:
    if not like:
        return None
    other, dot, name = like.partition(".")
    return (other, name) if dot else (group, like)
