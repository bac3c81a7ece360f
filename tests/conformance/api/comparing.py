"""Where an answer differs from the recorded one: in its outcome, in the fields it refuses, in its body. Texts are another matter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET

from conformance.api.vectors import Cause, Expected
from conformance.records import JsonObject


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered: decoded JSON, or the media type of anything else."""

    status: int
    body: Any

    warnings: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        return str(self._refusal.get("reason", ""))

    @property
    def message(self) -> str:
        return str(self._refusal.get("message", ""))

    @property
    def causes(self) -> list[Cause]:
        causes = (self._refusal.get("details") or {}).get("causes") or ()
        return [msgspec.convert(cause, Cause) for cause in causes]

    @property
    def _refusal(self) -> JsonObject:
        is_refusal = self.status >= 400 and self.body.get("kind") == "Status"
        return dict(self.body) if is_refusal else {}


def differences(expect: Expected, answer: Answer, normal: Any) -> Iterator[str]:
    """What differs. `normal` is the body of the answer with placeholders."""
    if (answer.status, answer.reason) != (expect.status, expect.reason):
        outcome = f"{answer.status} {answer.reason}".strip()
        yield f"{outcome} instead of {expect.status} {expect.reason}".strip()
    wanted, given = _fields(expect.causes), _fields(answer.causes)
    yield from (f"refuses {name} as {reason}" for name, reason in given - wanted)
    yield from (f"does not refuse {name} as {reason}" for name, reason in wanted - given)
    if expect.body is not UNSET:
        yield from unequal(_without_texts(expect.body), _without_texts(normal))


def _fields(causes: Iterable[Cause]) -> set[tuple[str, str]]:
    return {(cause.field, cause.reason) for cause in causes}


def unequal(expected: Any, found: Any, path: str = "") -> Iterator[str]:
    """The places where two JSON values differ."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in {**expected, **found}:
            yield from unequal(expected.get(key, UNSET), found.get(key, UNSET), f"{path}/{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from unequal(one, other, f"{path}/{number}")
    elif expected != found or type(expected) is not type(found):
        yield f"{path or '/'} is {found!r} instead of {expected!r}"


def _without_texts(body: Any) -> Any:
    """A body without what is compared apart or not at all: the texts of a refusal, and what is not JSON."""
    if "contentType" in body:
        return {"contentType": body["contentType"]}
    if body.get("kind") != "Status" or body.get("status") != "Failure":
        return body
    details = {key: value for key, value in (body.get("details") or {}).items() if key != "causes"}
    return {**{key: value for key, value in body.items() if key != "message"}, "details": details}
