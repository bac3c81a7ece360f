"""Answers in a form in which two servers can be compared: what each of them chooses freely becomes a placeholder."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from conformance.records import JsonObject

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_AGE: Final = re.compile(r"(\d+[smhdy])+|<invalid>")
_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_RANDOM_LETTERS: Final = 5
_LONGEST_BASE: Final = 58
"""A longer `generateName` is cut before the random letters are added."""


class Placeholders:
    """Replaces what a server chose in the answers to one vector. Ids, versions and generated names are numbered as they come up."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._uids: dict[str, str] = {}
        self._versions: dict[tuple[str, str], str] = {}
        self._bases: set[str] = set()
        self._generated: dict[str, str] = {}

    def expect_generated_name(self, body: Any) -> None:
        """Note that a request leaves the name of its object to the server."""
        match body:
            case {"metadata": {"generateName": str(base)}}:
                self._bases.add(base[:_LONGEST_BASE])

    def replaced(self, body: Any, *, managed_fields: bool) -> Any:
        """A body with placeholders, without what is never compared."""
        return self._value(_comparable(body, managed_fields=managed_fields))

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            made = {self._text(key): self._value(item) for key, item in value.items()}
            self._versions_in(value, made)
            return made
        if isinstance(value, list):
            return [self._value(item) for item in value]
        return self._text(value) if isinstance(value, str) else value

    def _versions_in(self, given: JsonObject, made: JsonObject) -> None:
        """Number the version and the id in the metadata of an object. A list has a version too, but no id."""
        metadata = given.get("metadata")
        if not isinstance(metadata, dict):
            return
        uid, version = metadata.get("uid"), metadata.get("resourceVersion")
        if uid:
            made["metadata"]["uid"] = _numbered(self._uids, uid, "uid")
        if version:
            number = _numbered(self._versions, (uid, version), "rv") if uid else "<rv>"
            made["metadata"]["resourceVersion"] = number

    def _text(self, text: str) -> str:
        if text in self._uids:
            return self._uids[text]
        if _TIME.fullmatch(text):
            return "<time>" if _is_about_now(text) else text
        if text[:-_RANDOM_LETTERS] in self._bases:
            number = _numbered(self._generated, text, "generated")
            text = text[:-_RANDOM_LETTERS] + number
        return text.replace(self._token, "{u}")


def _numbered(known: dict[Any, str], key: Any, word: str) -> str:
    return known.setdefault(key, f"<{word}:{len(known) + 1}>")


def _is_about_now(text: str) -> bool:
    return abs(datetime.now(UTC) - datetime.fromisoformat(text)) < timedelta(days=1)


def _comparable(value: Any, *, managed_fields: bool) -> Any:
    """A body without bookmarks and columns' descriptions, and with what a kind leaves to the server made equal."""
    value = _without(value, None if managed_fields else "managedFields")
    if not isinstance(value, dict):
        return value
    if "events" in value and isinstance(value["events"], list):
        value["events"] = [event for event in value["events"] if not _is_plain_bookmark(event)]
    if value.get("kind") == "Table":
        _free_cells(value)
    if value.get("kind") == "Service":
        _free_addresses(value)
    if value.get("metadata", {}).get("continue"):
        value["metadata"]["continue"] = "<continue>"
    return value


def _without(value: Any, member: str | None) -> Any:
    """A copy of a value without the member of that name, wherever it is."""
    if isinstance(value, dict):
        return {key: _without(item, member) for key, item in value.items() if key != member}
    if isinstance(value, list):
        return [_without(item, member) for item in value]
    return value


def _is_plain_bookmark(event: JsonObject) -> bool:
    annotations = event.get("object", {}).get("metadata", {}).get("annotations", {})
    return event.get("type") == "BOOKMARK" and _INITIAL_EVENTS_END not in annotations


def _free_cells(value: JsonObject) -> None:
    for column in value.get("columnDefinitions") or []:
        column.pop("description", None)
    for row in value.get("rows") or []:
        row["cells"] = [
            "<age>" if isinstance(cell, str) and _AGE.fullmatch(cell) else cell
            for cell in row["cells"]
        ]


def _free_addresses(value: JsonObject) -> None:
    spec = value["spec"]
    if spec.get("clusterIP", "None") != "None":
        spec["clusterIP"] = "<ip>"
        spec["clusterIPs"] = ["<ip>" for _ in spec["clusterIPs"]]
