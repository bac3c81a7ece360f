"""The comparison of answers notices what it is for, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from conformance.api.answers import Placeholders
from conformance.api.comparing import Answer, differences
from conformance.api.texts import text_differences
from conformance.api.vectors import Cause, Expected
from conformance.records import JsonObject

TOKEN = "v0000001"
UID = "01234567-89ab-4cde-8f01-23456789abcd"
NOW = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def found(expect: Expected, status: int, body: JsonObject) -> list[str]:
    normal = Placeholders(TOKEN).replaced(body, managed_fields=False)
    return list(differences(expect, Answer(status, body), normal))


def refusal(
    field: str = "spec", cause: str = "FieldValueInvalid", reason: str = "Invalid", text: str = "m"
) -> JsonObject:
    causes = [{"reason": cause, "field": field, "message": text}]
    details = {"name": "x", "causes": causes}
    body = {"kind": "Status", "status": "Failure", "reason": reason, "details": details}
    return {**body, "message": text, "code": 422}


REFUSED = Expected(422, "Invalid", (Cause("FieldValueInvalid", "spec", "m"),), "m")
REFUSALS: dict[str, tuple[int, JsonObject, str]] = {
    "another status": (400, refusal(), "400 Invalid instead of 422 Invalid"),
    "another reason": (422, refusal(reason="Conflict"), "422 Conflict instead of"),
    "another field": (422, refusal("metadata"), "refuses metadata as FieldValueInvalid"),
    "another cause": (422, refusal(cause="FieldValueRequired"), "does not refuse spec"),
    "no refusal": (201, {"kind": "Pod"}, "201 instead of 422 Invalid"),
}


@pytest.mark.parametrize(("status", "body", "noticed"), REFUSALS.values(), ids=REFUSALS)
def test_other_refusals_are_noticed(status: int, body: JsonObject, noticed: str) -> None:
    """Status, reason and refused fields count."""
    assert found(REFUSED, 422, refusal()) == []
    assert noticed in "; ".join(found(REFUSED, status, body))


def test_texts_are_compared_apart() -> None:
    """Another text is no other answer, but it is another text."""
    other = refusal(text="n")
    assert found(REFUSED, 422, other) == []
    assert len(list(text_differences(REFUSED, Answer(422, other), TOKEN))) == 2
    assert list(text_differences(REFUSED, Answer(422, refusal()), TOKEN)) == []


@pytest.mark.parametrize(
    ("recorded", "text", "is_same"),
    [
        ("ns-{u}", f"ns-{TOKEN}", True),
        ("ns-{u}", "ns-v0000002", False),
        ("UID <uid:2>, version <rv:3>", f"UID {UID}, version 17", True),
        ("version <rv:3>", "version x", False),
        ("at <time>.", "at 2026-01-01T00:00:00Z.", True),
        ('"gen-<generated:1>" (not found)', '"gen-x7k2q" (not found)', True),
        ("a.c", "abc", False),
    ],
)
def test_placeholders_in_texts_stand_for_what_a_server_chose(
    recorded: str, text: str, is_same: bool
) -> None:
    """And everything else for itself."""
    answer = Answer(404, {"kind": "Status", "message": text})
    expect = Expected(404, message=recorded)
    assert (list(text_differences(expect, answer, TOKEN)) == []) == is_same


def test_warnings_are_compared() -> None:
    """By their texts, in their order."""
    expect = Expected(200, warnings=('old "x"', "older"))
    quoted = ('299 - "old \\"x\\""', '299 - "older"')
    assert list(text_differences(expect, Answer(200, {}, quoted), TOKEN)) == []
    for other in (quoted[:1], quoted[::-1], ()):
        assert list(text_differences(expect, Answer(200, {}, other), TOKEN)) != []


def pod(name: str = "p", uid: str = UID, version: str = "7", **fields: Any) -> JsonObject:
    metadata = {"name": name, "uid": uid, "resourceVersion": version, "creationTimestamp": NOW}
    return {"kind": "Pod", "metadata": {**metadata, **fields}}


CREATED = {
    "name": "p",
    "uid": "<uid:1>",
    "resourceVersion": "<rv:1>",
    "creationTimestamp": "<time>",
}
BODIES: dict[str, tuple[JsonObject, bool]] = {
    "other ids, versions and times": (pod(uid=UID[::-1], version="8"), True),
    "fields' managers": (pod(managedFields=[]), True),
    "another name": (pod("q"), False),
    "a field more": (pod(labels={}), False),
    "a field that is null": (pod(labels=None), False),
    "a time of another year": (pod(creationTimestamp="2024-01-01T00:00:00Z"), False),
    "another kind": ({**pod(), "kind": "Node"}, False),
}


@pytest.mark.parametrize(("body", "is_same"), BODIES.values(), ids=BODIES)
def test_bodies_are_equal_but_for_what_a_server_chooses(body: JsonObject, is_same: bool) -> None:
    """Ids, versions and times are free; everything else counts, absence included."""
    expect = Expected(200, body={"kind": "Pod", "metadata": CREATED})
    assert (found(expect, 200, body) == []) == is_same


def test_versions_tell_whether_an_object_has_changed() -> None:
    """The same version has the same number, the next one the next, and a list none."""
    placeholders = Placeholders(TOKEN)

    def number(body: JsonObject) -> Any:
        replaced = placeholders.replaced(body, managed_fields=False)
        return replaced["metadata"]["resourceVersion"]

    versions = [number(pod(version=version)) for version in ("7", "7", "9")]
    assert versions == ["<rv:1>", "<rv:1>", "<rv:2>"]
    assert number(pod(uid="other", version="9")) == "<rv:3>"
    assert number({"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": []}) == "<rv>"


def test_generated_names_are_numbered() -> None:
    """Where a request has left the name to the server."""
    placeholders = Placeholders(TOKEN)
    assert placeholders.replaced({"name": "gen-abcde"}, managed_fields=True) == {
        "name": "gen-abcde"
    }
    placeholders.expect_generated_name({"metadata": {"generateName": "gen-"}})
    names = [{"name": name} for name in ("gen-abcde", "gen-fghij", "gen-abcde", "gen-x")]
    made = placeholders.replaced(names, managed_fields=True)
    numbered = ["gen-<generated:1>", "gen-<generated:2>", "gen-<generated:1>", "gen-x"]
    assert [each["name"] for each in made] == numbered


def test_watches_are_compared_without_bookmarks() -> None:
    """But for the one that ends the initial events."""
    annotations = {"k8s.io/initial-events-end": "true"}
    last = {"type": "BOOKMARK", "object": {"metadata": {"annotations": annotations}}}
    plain = {"type": "BOOKMARK", "object": {"metadata": {}}}
    replaced = Placeholders(TOKEN).replaced({"events": [plain, last]}, managed_fields=False)
    assert replaced == {"events": [last]}
