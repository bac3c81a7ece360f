"""A scenario: objects, what happens to them, and when to look."""

from __future__ import annotations

from typing import Any

from msgspec import field

from drayman.api.errors import ApiError
from drayman.api.struct import ApiStruct, Json

Object = dict[str, Any]


class ScenarioError(ApiError):
    """A scenario that cannot be replayed: something happens to an object that is not there."""


class Target(ApiStruct):
    """An object that something happens to."""

    kind: str = "Workload"
    name: str = ""
    namespace: str = ""
    subresource: str = ""
    body: Json = None


class Step(ApiStruct):
    """One of these."""

    create: tuple[Object, ...] | None = None
    patch: Target | None = None
    delete: Target | None = None
    finish: Target | None = None
    settle: str | None = None


class Scenario(ApiStruct):
    name: str = ""
    config: Json = None
    gates: dict[str, bool] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
