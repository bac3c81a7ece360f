"""What may be passed to questions from Python: checked once, before anything is read or asked."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from drayman.questions.errors import QuestionError

MOST_COPIES: Final = 100_000
"""How many copies of manifests can be planned."""


def checked_times(times: object) -> int:
    """How many copies to plan. Raises TypeError and QuestionError."""
    if isinstance(times, bool) or not isinstance(times, int):
        raise TypeError(f"times must be a whole number, not {_type_of(times)}")
    if not 1 <= times <= MOST_COPIES:
        raise QuestionError(f"times must be from 1 to {MOST_COPIES}")
    return times


def checked_manifests(text: object, name: str = "manifests") -> bytes:
    """Manifests, or other documents, as bytes. Raises TypeError and QuestionError."""
    if isinstance(text, bytes | bytearray):
        return bytes(text)
    if isinstance(text, str):
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            raise QuestionError(f"the {name} are not text: {error}") from error
    advice = "; pass its read_text()" if isinstance(text, PurePath) else ""
    raise TypeError(f"{name} must be YAML or JSON text, not {_type_of(text)}{advice}")


def checked_text(name: str, value: object) -> str | None:
    """An argument that is text or left out. Raises TypeError."""
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"{name} must be text, not {_type_of(value)}")


def _type_of(value: object) -> str:
    return "None" if value is None else f"an object of type {type(value).__name__}"
