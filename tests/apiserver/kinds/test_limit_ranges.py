"""Limit ranges: what they fill in, and what they keep out."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.kinds.circumstances import Objects, make_context, pod, resource_of
from drayman.apiserver.kinds import admission_plugins
from drayman.apiserver.kinds.limit_ranges import ANNOTATION
from drayman.apiserver.protocol.errors import StatusError
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.admission import Admission, Admitted

PODS = resource_of("", "Pod")
CLAIMS = resource_of("", "PersistentVolumeClaim")


def limited(*limits: Object) -> Objects:
    """Objects with a limit range as the server stores it."""
    obj: Object = {"metadata": {"name": "l", "namespace": "ns"}, "spec": {"limits": list(limits)}}
    resource_of("", "LimitRange").strategy.default(obj, make_context())
    objects = Objects()
    objects.add("limitranges", obj)
    return objects


def admitted(obj: Object, objects: Objects, resource: Any = PODS) -> Object:
    """The object after admission. Raises StatusError."""
    context = make_context(objects)
    resource.strategy.default(obj, context)
    write = Admitted("CREATE", resource, "", "ns", obj["metadata"]["name"], obj, None, context)
    admission = Admission(admission_plugins())
    admission.admit(write)
    admission.validate(write)
    return obj


def test_containers_get_what_the_namespace_has_for_them() -> None:
    """Amounts that a container does not name come from the limit range, and an annotation tells which."""
    obj = pod()
    obj["spec"]["initContainers"] = [
        {"name": "i", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    ]
    made = admitted(obj, limited({"type": "Container", "default": {"cpu": "2"}}))
    assert made["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "2"},
        "requests": {"cpu": "2"},
    }
    assert made["spec"]["initContainers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert made["metadata"]["annotations"][ANNOTATION] == (
        "LimitRanger plugin set: cpu request for container main; cpu limit for container main;"
        " cpu limit for init container i"
    )


@pytest.mark.parametrize(
    ("limit", "resources", "why"),
    [
        pytest.param(
            {"type": "Container", "max": {"cpu": "1"}},
            {"limits": {"cpu": "2"}},
            "maximum cpu usage per Container is 1, but limit is 2",
            id="too much",
        ),
        pytest.param(
            {"type": "Container", "min": {"memory": "2Gi"}},
            {"requests": {"memory": "1Gi"}},
            "minimum memory usage per Container is 2Gi, but request is 1Gi",
            id="too little",
        ),
        pytest.param(
            {"type": "Pod", "max": {"cpu": "1"}},
            {},
            "maximum cpu usage per Pod is 1.  No limit is specified",
            id="no limit for the pod",
        ),
        pytest.param(
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
            id="too far apart",
        ),
    ],
)
def test_a_pod_out_of_range_is_refused(limit: Object, resources: Object, why: str) -> None:
    """What a pod asks for lies within the range of its namespace, or it is refused with the reason."""
    obj = pod()
    obj["spec"]["containers"][0]["resources"] = resources
    with pytest.raises(StatusError) as refusal:
        admitted(obj, limited(limit))
    assert refusal.value.code == 403
    assert str(refusal.value.message).endswith(why)


def test_a_volume_claim_out_of_range_is_refused() -> None:
    """Storage has a range too."""
    claim = {
        "metadata": {"name": "c", "namespace": "ns"},
        "spec": {"resources": {"requests": {"storage": "5Gi"}}},
    }
    objects = limited({"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}})
    with pytest.raises(StatusError) as refusal:
        admitted(claim, objects, CLAIMS)
    assert "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 5Gi" in str(
        refusal.value.message
    )
