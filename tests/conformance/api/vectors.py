"""A vector: requests in their order, each with the answer that a Kubernetes 1.36.4 API server gave."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from conformance.records import JsonObject


class Cause(Struct, frozen=True):
    """One of the reasons why a request is refused, at a field of its object."""

    reason: str = ""
    field: str = ""
    message: str = ""


class Expected(Struct, frozen=True):
    """What is recorded of an answer. `body` is there where it is compared."""

    status: int
    reason: str = ""
    causes: tuple[Cause, ...] = ()
    message: str | None = None
    """The text of a refusal, recorded where it has at most one cause."""
    warnings: tuple[str, ...] = ()
    body: JsonObject | UnsetType = UNSET


class Step(Struct, frozen=True):
    """A request and the answer to it."""

    method: str
    path: str
    expect: Expected
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = UNSET
    raw: str | None = None
    """Text that is sent as it is, in place of a body."""
    pad: dict[str, int] = field(default_factory=dict)
    """How long to make a string of the body, by JSON pointer."""
    stream: bool = False
    """Whether the answer is a watch, which ends by itself."""
    poll_s: float = 0.0
    """For how long the request may be repeated until the answer has the recorded status."""
    capture: dict[str, str] = field(default_factory=dict)
    """Names for parts of the answer, by JSON pointer, that later steps refer to."""

    def content(self) -> bytes | None:
        """The body as it is sent: compact, since some limits count bytes."""
        if self.raw is not None:
            return self.raw.encode()
        if self.body is UNSET:
            return None
        for pointer, length in self.pad.items():
            *parents, last = parts(pointer)
            resolve(self.body, parents)[last] = length * "x"
        return msgspec.json.encode(self.body)


class Vector(Struct, frozen=True):
    """A short story in a namespace of its own."""

    name: str
    steps: tuple[msgspec.Raw, ...]
    """Steps as text, whose placeholders are still to be filled in."""
    namespace_labels: dict[str, str] = field(default_factory=dict)
    managed_fields: bool = False
    """Whether `metadata.managedFields` is compared."""

    @property
    def area(self) -> str:
        return self.name.split("/", maxsplit=1)[0]


def filled_in(step: msgspec.Raw, token: str, captured: dict[str, str]) -> Step:
    """A step with its placeholders replaced, except in what is expected, where they stand for what the server chose."""
    made = msgspec.json.decode(_replaced(bytes(step).decode(), token, captured), type=Step)
    expect = msgspec.json.decode(step, type=_Answered).expect
    return msgspec.structs.replace(made, expect=expect)


class _Answered(Struct, frozen=True):
    expect: Expected


def _replaced(text: str, token: str, captured: dict[str, str]) -> str:
    text = text.replace("{u}", token)
    for name, value in captured.items():
        text = text.replace(f"{{${name}}}", value)
    return text


def parts(pointer: str) -> list[str]:
    """The parts of a JSON pointer."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def resolve(value: Any, path: list[str]) -> Any:
    """What a JSON pointer points to; the empty text where that is absent."""
    for part in path:
        value = value[int(part)] if isinstance(value, list) else value.get(part, "")
    return value
