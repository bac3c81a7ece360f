"""The annotation `drayman.dev/align` of pods, and of templates for pods and claims."""

from __future__ import annotations

import copy
from typing import Any

from apiserver.kinds.circumstances import created, make_context, pod, refusals, resource_of

ALIGN = "drayman.dev/align"
FIELD = f"metadata.annotations[{ALIGN}]"
ENTRIES = [{"name": "gpus", "resourceClaimName": "g"}, {"name": "nics", "resourceClaimName": "n"}]


def stated(text: str, entries: Any = ENTRIES) -> dict[str, Any]:
    value = pod(resourceClaims=entries)
    value["metadata"]["annotations"] = {ALIGN: text}
    return dict(value)


def refused(group: str, kind: str, value: dict[str, Any]) -> set[tuple[str, str]]:
    resource, context = resource_of(group, kind), make_context()
    return refusals(resource.strategy.validate(created(resource, value, context), context))


def test_a_pod_may_name_its_claims() -> None:
    """By entry, or by entry and request: which requests there are is known when the pod is placed."""
    for text in ("pcieRoot > any", "gpus, nics: numaNode", "gpus/a, nics/b: pcieRoot > any"):
        assert not refused("", "Pod", stated(text))


def test_a_mistake_in_a_pod_is_reported_with_its_field() -> None:
    """The level, or the claim, that does not exist."""
    for text in ("numa > any", "gpu: numaNode", ""):
        assert refused("", "Pod", stated(text)) == {(FIELD, "Invalid")}, text


def test_a_change_of_the_annotation_is_checked() -> None:
    """What is there already is left alone."""
    resource, context = resource_of("", "Pod"), make_context()
    old = created(resource, stated("any"), context)
    old["metadata"]["annotations"][ALIGN] = "stored elsewhere"
    same = copy.deepcopy(old)
    same["metadata"]["labels"] = {"a": "b"}
    assert not resource.strategy.validate_update(same, old, context)
    other = copy.deepcopy(old)
    other["metadata"]["annotations"][ALIGN] = "numa"
    assert (FIELD, "Invalid") in refusals(resource.strategy.validate_update(other, old, context))


def test_the_template_of_a_workload_is_checked_too() -> None:
    """Otherwise its pods could not be made, and only an event would say so."""
    template = stated("numa")
    template["spec"]["restartPolicy"] = "Never"
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "ns"}}
    found = refused("batch", "Job", {**job, "spec": {"template": template}})
    assert found == {(f"spec.template.{FIELD}", "Invalid")}


def test_an_annotation_of_a_claim_template_itself_has_no_effect() -> None:
    """Claims get their annotations from spec.metadata, and the client is warned."""
    resource = resource_of("resource.k8s.io", "ResourceClaimTemplate")
    exactly = {"deviceClassName": "gpu"}
    value = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "ns", "annotations": {ALIGN: "any"}},
        "spec": {"spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}},
    }
    context = make_context()
    stored = created(resource, value, context)
    (warning,) = resource.strategy.warnings(stored, None, context)
    assert "spec.metadata.annotations" in warning
