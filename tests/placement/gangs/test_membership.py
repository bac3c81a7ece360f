"""Which gang counts for a pod that has marks of several."""

from __future__ import annotations

import pytest

from drayman.placement.gangs.gang import Dialect
from drayman.placement.gangs.membership import reading_of
from placement.gangs.building import job_reference, pod

LABELS = {
    Dialect.PLUGIN: {"scheduling.x-k8s.io/pod-group": "g"},
    Dialect.KUEUE: {"kueue.x-k8s.io/pod-group-name": "g"},
}
STATED = {
    Dialect.KAI: {"pod-group-name": "g"},
    Dialect.KUEUE: {"kueue.x-k8s.io/pod-group-total-count": "2"},
    Dialect.DRAYMAN: {"drayman.dev/gang": "2"},
}
ORDER = (Dialect.KUBERNETES, Dialect.PLUGIN, Dialect.KAI, Dialect.KUEUE, Dialect.DRAYMAN)
OF_OWNER = {"kai.scheduler/batch-min-member": "2"}


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_first_in_the_order_counts(first: int) -> None:
    """Objects before numbers, Kubernetes' own before others."""
    marks = ORDER[first:]
    labels = {key: text for each in marks for key, text in LABELS.get(each, {}).items()}
    stated = {key: text for each in marks for key, text in STATED.get(each, {}).items()}
    found = reading_of(
        pod(
            group="g" if Dialect.KUBERNETES in marks else "",
            labels=labels,
            stated=stated | OF_OWNER,
            owner=job_reference(),
        ),
        {},
    )
    assert found is not None
    assert found.membership.key.dialect is ORDER[first]


def test_annotations_from_which_kai_makes_groups_come_last() -> None:
    """On the pod or on its Job; without an owner they mean nothing."""
    owned = pod(owner=job_reference())
    found = reading_of(owned, {"train": OF_OWNER})
    assert found is not None
    assert found.membership.key.dialect is Dialect.KAI
    both = reading_of(owned, {"train": OF_OWNER | {"drayman.dev/gang": "2"}})
    assert both is not None
    assert both.membership.key.dialect is Dialect.DRAYMAN
    assert reading_of(pod(stated=OF_OWNER), {}) is None


def test_a_pod_on_its_own() -> None:
    """Other labels, annotations and owners do not make a gang."""
    lone = pod(labels={"app": "x"}, stated={"example.com/a": "b"}, owner=job_reference())
    assert reading_of(lone, {}) is None
    assert reading_of(lone, {"another": OF_OWNER}) is None
    assert reading_of(pod(), {"train": OF_OWNER}) is None
