"""ReplicationControllers: defaults from the template, and what is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from apiserver.kinds.circumstances import NOW, created, make_context, refusals, resource_of
from drayman.apiserver.served.strategy import Object

RESOURCE = resource_of("", "ReplicationController")
TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "main", "image": "i:1"}]},
}
LABELS = "spec.template.metadata.labels"


def make(**spec: Any) -> Object:
    body = {"metadata": {"name": "x", "namespace": "ns"}, "spec": copy.deepcopy(spec)}
    return created(RESOURCE, body, make_context())


def test_labels_of_the_template_are_the_selector_and_its_own() -> None:
    """One pod, told by the labels of the template, which the controller takes over where it has none."""
    made = make(template=TEMPLATE)
    assert (made["spec"]["replicas"], made["spec"]["selector"]) == (1, {"a": "b"})
    assert made["metadata"]["labels"] == {"a": "b"}
    assert RESOURCE.strategy.validate(made, make_context()) == []


REFUSED: dict[str, tuple[dict[str, Any], set[tuple[str, str]]]] = {
    "nothing said": ({}, {("spec.selector", "Required"), ("spec.template", "Required")}),
    "a template without labels": (
        {"template": {"spec": TEMPLATE["spec"]}},
        {("spec.selector", "Required")},
    ),
    "a selector for other pods": (
        {"selector": {"a": "c"}, "template": TEMPLATE},
        {(LABELS, "Invalid")},
    ),
    "fewer than none": (
        {"replicas": -1, "minReadySeconds": -1, "template": TEMPLATE},
        {("spec.replicas", "Invalid"), ("spec.minReadySeconds", "Invalid")},
    ),
    "pods that end": (
        {"template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never", "activeDeadlineSeconds": 5}}},
        {("spec.template.spec.restartPolicy", "NotSupported"), ("spec.template.spec.activeDeadlineSeconds", "Forbidden")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    """The field and reason of every error."""
    spec, causes = REFUSED[case]
    assert refusals(RESOURCE.strategy.validate(make(**spec), make_context())) == causes


def test_the_selector_may_change() -> None:
    """Unlike that of a ReplicaSet."""
    old = make(template=TEMPLATE)
    new = copy.deepcopy(old)
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"] = "1"
    new["spec"]["selector"] = new["spec"]["template"]["metadata"]["labels"] = {"c": "d"}
    assert RESOURCE.strategy.validate_update(new, old, make_context()) == []


def test_its_row_shows_numbers_and_labels() -> None:
    """Wanted, there and ready pods; wide tables show the labels by which they are told."""
    made = make(replicas=3, template=TEMPLATE)
    made["status"] = {"replicas": 2, "readyReplicas": 1}
    row = {column.name: column.cell(made, NOW) for column in RESOURCE.columns}
    assert (row["Desired"], row["Current"], row["Ready"]) == (3, 2, 1)
    assert row["Selector"] == "a=b"
