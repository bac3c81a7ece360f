"""A cluster that changes while it is read, or since its objects were written, is explained as it was found.

Lists are read one after the other, so that a pod may name a claim that is gone, a claim may be reserved for a pod that is not there yet,
and devices may be held that nothing publishes. Whatever has gone, come or shrunk: there is an answer, or one of the errors that say why
there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from hypothesis import event, example, given
from hypothesis import strategies as st

from drayman.api import codec
from drayman.explain.answer import Explanation
from drayman.placement.world import Objects, World
from drayman.questions.errors import QuestionError
from drayman.questions.explaining import explanation_of
from drayman.questions.subjects import CLUSTER, KINDS, Target
from drayman.reasons.reason import Reason
from explain.scenarios.collected import SCENARIOS
from explain.scenarios.scene import NOW, TYPES, Scene

GONE: Final = "gone"
"""The name of something that nothing else names."""
SUBJECTS: Final = {
    "pods": "pod",
    "claims": "resourceclaim",
    "jobs": "job",
    "nodes": "node",
    "namespaces": "namespace",
}


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to an object: it goes, comes from another cluster, gets another name, or loses one of its parts."""

    field: str
    what: str
    which: int
    part: int


def changes() -> st.SearchStrategy[list[Change]]:
    numbers = st.integers(0, 60)
    what = st.sampled_from(("goes", "comes", "is renamed", "is another", "loses", "loses"))
    return st.lists(
        st.builds(Change, st.sampled_from(sorted(TYPES)), what, numbers, numbers), max_size=8
    )


def applied(change: Change, scene: Scene, other: Scene) -> None:
    values = scene.objects[change.field]
    if change.what == "comes" and other.objects[change.field]:
        choice = other.objects[change.field]
        values.append(choice[change.which % len(choice)])
    elif not values:
        return
    position = change.which % len(values)
    value = deepcopy(values[position])
    metadata = value.setdefault("metadata", {})
    match change.what:
        case "goes":
            del values[position]
            return
        case "is renamed":
            metadata["name"] = GONE
        case "is another":
            metadata["uid"] = GONE
        case "loses":
            lists = [each for each in _containers(value) if each]
            if not lists:
                return
            chosen = lists[change.part % len(lists)]
            key = list(chosen)[change.which % len(chosen)] if isinstance(chosen, dict) else -1
            del chosen[key]
    if _is_valid(change.field, value):
        values[position] = value


def _containers(value: Any) -> Iterator[Any]:
    """The lists and mappings in an object, beginning with what is deepest, without its metadata as a whole."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(each, dict | list) and key != "metadata":
            yield from _containers(each)
            yield each


def _is_valid(field: str, value: dict[str, Any]) -> bool:
    try:
        codec.convert(TYPES[field], value)
    except msgspec.ValidationError:
        return False
    return True


def subjects(objects: Objects) -> Iterator[tuple[Target, str]]:
    yield Target(CLUSTER, ""), "default"
    for field, kind in SUBJECTS.items():
        for each in getattr(objects, field):
            yield Target(kind, each.metadata.name), each.metadata.namespace or "default"
    for kind in KINDS:
        yield Target(kind, "nothing-of-the-kind"), "default"


def explained(world: World, subject: Target, namespace: str) -> Explanation | None:
    try:
        return explanation_of(world, subject, namespace)
    except QuestionError:
        return None


HALF_FULL: Final = next(each for each in SCENARIOS if each.reason is Reason.FRAGMENTED)


@given(st.sampled_from(SCENARIOS), st.sampled_from(SCENARIOS), changes())
@example(HALF_FULL, HALF_FULL, [Change("claims", "is renamed", 0, 0)])  # reserved for a stranger
def test_a_cluster_in_any_state_is_explained(
    scenario: Any, another: Any, what_happens: list[Change]
) -> None:
    """Every object that is there has an answer, which is a reason of the list with a sentence, and can be printed."""
    scene, other = scenario.scene(), another.scene()
    for change in what_happens:
        applied(change, scene, other)
    world = World(scene.world().objects, NOW, features=scene.features)
    for subject, namespace in subjects(world.objects):
        found = explained(world, subject, namespace)
        if found is None:
            assert subject.name == "nothing-of-the-kind", subject
            continue
        event(found.headline.reason.value)
        assert found.headline.reason in Reason
        assert found.headline.sentence.endswith("."), found.headline
        text = codec.encode(found).decode()
        assert "\\u0000" not in text, text
        for remedy in found.remedies:
            assert remedy.operations, remedy
