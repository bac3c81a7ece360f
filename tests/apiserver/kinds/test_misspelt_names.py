"""Names of labels and annotations that nobody reads, and that look like one that somebody does."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.kinds.circumstances import created, make_context, resource_of
from apiserver.kinds.test_own_annotations import a_pod, template, workload
from drayman.apiserver.kinds.misspelt_names import misspelt

QUEUE = "kueue.x-k8s.io/queue-name"
NAMES = {
    "all is well": ({"labels": {QUEUE: "q"}, "annotations": {"drayman.dev/room": "x"}}, []),
    "of somebody else": ({"labels": {"example.com/queue-nmae": "q"}}, []),
    "like nothing": ({"labels": {"kueue.x-k8s.io/sandwich": "q"}}, []),
    "without names": ({}, []),
    "a slip in a label": (
        {"labels": {"kueue.x-k8s.io/queue-nmae": "q"}},
        [f"metadata.labels[kueue.x-k8s.io/queue-nmae]: nobody reads this; did you mean {QUEUE}?"],
    ),
    "a slip in an annotation": (
        {"annotations": {"kueue.x-k8s.io/pod-group-total-cuont": "2"}},
        [
            "metadata.annotations[kueue.x-k8s.io/pod-group-total-cuont]: nobody reads this; did you mean"
            " kueue.x-k8s.io/pod-group-total-count?"
        ],
    ),
    "a slip in a label of ours": (
        {"labels": {"drayman.dev/redy-after": "2s"}},
        [
            "metadata.labels[drayman.dev/redy-after]: nobody reads this; did you mean"
            " drayman.dev/ready-after?"
        ],
    ),
    "the name of another group": (
        {"labels": {"drayman.dev/queue-name": "q"}},
        [f"metadata.labels[drayman.dev/queue-name]: nobody reads this; did you mean {QUEUE}?"],
    ),
}


@pytest.mark.parametrize(("metadata", "told"), NAMES.values(), ids=NAMES)
def test_a_slip_is_told_with_what_was_meant(metadata: dict[str, Any], told: list[str]) -> None:
    """And nothing else: not what looks like no name that is read, nor what was there before."""
    assert list(misspelt(metadata)) == told
    assert list(misspelt(metadata, metadata)) == []


SLIP = "kueue.x-k8s.io/queue-nmae"
TOLD = f"[{SLIP}]: nobody reads this; did you mean {QUEUE}?"


def a_set(kind: str) -> dict[str, Any]:
    made = workload({}, template("Always"), selector={"matchLabels": {"app": "w"}})
    made["spec"] |= {"serviceName": "w"} if kind == "StatefulSet" else {}
    return made


@pytest.mark.parametrize(
    ("group", "kind", "value"),
    [
        ("", "Pod", a_pod()),
        ("batch", "Job", workload({}, template())),
        ("apps", "Deployment", a_set("Deployment")),
        ("apps", "StatefulSet", a_set("StatefulSet")),
    ],
)
def test_whatever_may_be_queued(group: str, kind: str, value: dict[str, Any]) -> None:
    """On its own metadata, once, and in its template."""
    resource, context = resource_of(group, kind), make_context()
    value["metadata"]["labels"] = {SLIP: "q"}
    made = created(resource, value, context)
    assert f"metadata.labels{TOLD}" in resource.strategy.warnings(made, None, context)
    if "template" in made["spec"]:
        made["spec"]["template"]["metadata"]["labels"][SLIP] = "q"
        said = resource.strategy.warnings(made, None, context)
        assert f"spec.template.metadata.labels{TOLD}" in said
