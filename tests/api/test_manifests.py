"""Manifests become typed objects as the API server would store them."""

from __future__ import annotations

import pytest

from drayman import DeviceClass, Node, ResourceClaim, load
from drayman.api.errors import DocumentError

CLAIM = """\
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: c, namespace: default}
spec:
  devices:
    requests:
    - name: gpu
      deviceClassName: gpu.example.com
"""


def test_objects_are_of_the_current_version_and_have_defaults() -> None:
    """A claim of an older version asks for one device where it says nothing."""
    (claim,) = load(CLAIM)
    assert isinstance(claim, ResourceClaim)
    exactly = claim.spec.devices.requests[0].exactly
    assert exactly is not None
    assert (exactly.allocation_mode, exactly.count) == ("ExactCount", 1)


def test_objects_come_in_the_order_of_the_text() -> None:
    """Of YAML documents and of a List in JSON alike, as text and as bytes."""
    node = "{apiVersion: v1, kind: Node, metadata: {name: node}}"
    kind = "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: d}}"
    listed = b"""{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}},
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "d"}}]}"""
    for text in (f"{node}\n---\n{kind}\n", listed):
        assert [type(item) for item in load(text)] == [Node, DeviceClass]


WRONG = {
    "no YAML": ("a: [", "f.yaml:1: not valid YAML"),
    "no kind": ("apiVersion: v1", "f.yaml:1: kind: a text is required"),
    "a kind without a type": (
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}",
        "f.yaml:1: ConfigMap m: there is no type for this kind",
    ),
    "an unknown field": (
        CLAIM.replace("requests:", "request:"),
        "f.yaml:6: ResourceClaim default/c: spec.devices.request: unknown field",
    ),
    "a wrong type": (
        CLAIM.replace("gpu.example.com", "3"),
        "f.yaml:8: ResourceClaim default/c: spec.devices.requests[0].exactly.deviceClassName",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_with_its_place(name: str) -> None:
    """File, line, object and field."""
    text, message = WRONG[name]
    with pytest.raises(DocumentError) as raised:
        load(text, "f.yaml")
    assert str(raised.value).startswith(message)
