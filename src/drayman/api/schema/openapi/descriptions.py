"""What messages and fields are for, as `kubectl explain` shows it.

The texts are in `data/descriptions.txt`: a message at the left margin as `group Name: text`, its fields below it, indented by one
space, as `name: text`. They hold for all versions of a group that have a message or field of that name. Where the group is `*`
the fields are those that any message may have.
"""

from __future__ import annotations

import pkgutil
from functools import cache

from drayman.api.schema.model import Message

_PACKAGE = "drayman.api.schema"


def message_description(message: Message) -> str:
    """What a message is for; empty where nothing is written about it."""
    return _texts().get(_key(message), "")


def field_description(message: Message, name: str) -> str:
    """What a field is for; empty where nothing is written about it."""
    texts = _texts()
    own = texts.get(f"{_key(message)}.{name}", "")
    if own or not message.is_kind:
        return own
    return texts.get(f"* Object.{name}", "")


def _key(message: Message) -> str:
    return f"{message.package.partition('/')[0]} {message.name}"


@cache
def _texts() -> dict[str, str]:
    data = pkgutil.get_data(_PACKAGE, "data/descriptions.txt")
    assert data is not None, "packages are installed with a loader that has data"
    texts: dict[str, str] = {}
    message = ""
    for line in data.decode().splitlines():
        name, _, text = line.strip().partition(": ")
        if line[0] != " ":
            message = name
            texts[name] = text
        else:
            texts[f"{message}.{name}"] = text
    return texts
