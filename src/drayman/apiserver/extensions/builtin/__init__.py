"""Definitions that every instance has: PodGroup of the scheduler plugins, Kueue's kinds, PodGroup, Queue and Topology of the KAI Scheduler.

Each is a JSON file of this package, written for what Drayman reads and permissive about the rest. Definitions that a user
installs instead, such as those of a real Kueue, are not changed, and replace these when they are applied over them.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from drayman.api.struct import Json
from drayman.apiserver.extensions.definition import HUB
from drayman.apiserver.served.strategy import Object

_FILES: Final = ("scheduling.json", "kueue.json", "kai.json")
_VERSIONS: Final = "x-drayman-versions"
"""In a schema: the versions that have the property. All, where it does not say."""


@cache
def _loaded() -> tuple[bytes, ...]:
    return tuple(files(__name__).joinpath(name).read_bytes() for name in _FILES)


def builtin_definitions() -> list[Object]:
    """The definitions, newly built on each call."""
    return [_definition(one) for data in _loaded() for one in msgspec.json.decode(data)]


def _definition(one: Object) -> Object:
    """A definition from its short form, which states once what all versions share."""
    shared: Object = {"served": True}
    if one["status"]:
        shared["subresources"] = {"status": {}}
    if one["columns"]:
        shared["additionalPrinterColumns"] = one["columns"]
    versions = [
        {
            "name": name,
            "storage": name == one["storage"],
            **shared,
            "schema": {"openAPIV3Schema": _schema_in(one["schema"], name)},
        }
        for name in one["versions"]
    ]
    spec = {part: one[part] for part in ("group", "names", "scope")}
    return {
        "apiVersion": HUB.api_version,
        "kind": HUB.kind,
        "metadata": {"name": f"{one['names']['plural']}.{one['group']}"},
        "spec": {**spec, "versions": versions},
    }


def _schema_in(schema: Json, version: str) -> Json:
    """The schema of a version: without the properties that only other versions have."""
    if isinstance(schema, list):
        return [_schema_in(each, version) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _schema_in(value, version)
        for name, value in schema.items()
        if name != _VERSIONS
        and (not isinstance(value, dict) or version in value.get(_VERSIONS, (version,)))
    }
