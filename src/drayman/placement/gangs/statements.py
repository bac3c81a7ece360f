"""Annotations that state something about a gang: on a pod, or on the Job whose pod it is. What the pod itself says comes first."""

from __future__ import annotations

from collections.abc import Mapping

from drayman.api.core import Pod
from drayman.api.formats import label_key_problems
from drayman.api.times import parse_duration
from drayman.placement.gangs.gang import Flaw, FlawKind, GangKey, InvalidGangError


class Statements:
    """Reads annotations one by one. What does not make sense raises InvalidGangError."""

    __slots__ = ("_annotations", "_behind", "_behind_title", "_title")

    def __init__(
        self,
        title: str,
        annotations: Mapping[str, str],
        behind_title: str = "",
        behind: Mapping[str, str] | None = None,
    ) -> None:
        """`behind` has what counts where the object itself does not say anything."""
        self._title = title
        self._annotations = annotations
        self._behind_title = behind_title
        self._behind = behind or {}

    @staticmethod
    def of(pod: Pod, owner: str = "", stated: Mapping[str, str] | None = None) -> Statements:
        """What a pod states, and behind it what its owner does."""
        metadata = pod.metadata
        title = f"pod {metadata.namespace}/{metadata.name}"
        return Statements(title, metadata.annotations, owner, stated)

    def text(self, name: str) -> str:
        """Empty where it is not stated."""
        found = self._annotations.get(name)
        return self._behind.get(name, "") if found is None else found

    def count(self, name: str, *, least: int = 1) -> int | None:
        text = self.text(name)
        return None if not text else count(text, field_of(name), least=least)

    def level(self, name: str) -> str | None:
        text = self.text(name)
        return None if not text else level(text, field_of(name))

    def duration(self, name: str) -> float | None:
        text = self.text(name)
        if not text:
            return None
        try:
            return parse_duration(text)
        except ValueError as error:
            raise InvalidGangError(field_of(name), str(error)) from error

    def flaw(self, key: GangKey, error: InvalidGangError) -> Flaw:
        """Names the object that has the annotation."""
        name = error.field.partition("[")[2].rstrip("]")
        is_behind = name in self._behind and name not in self._annotations
        title = self._behind_title if is_behind else self._title
        return Flaw(key, FlawKind.INVALID, title, error.message, error.field)


def field_of(annotation: str) -> str:
    """The path of an annotation."""
    return f"metadata.annotations[{annotation}]"


def count(text: str, field: str, *, least: int = 1) -> int:
    """The number that a text is. Raises InvalidGangError."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise InvalidGangError(field, f"{text!r} is not a number of pods")
    if int(text) < least:
        raise InvalidGangError(field, f"{text} is less than {least}")
    return int(text)


def level(text: str, field: str) -> str:
    """The level that a text names. Raises InvalidGangError."""
    if label_key_problems(text):
        message = f"{text!r} is not the name of a node label or a device attribute"
        raise InvalidGangError(field, message)
    return text
