"""kubectl and kinds that somebody defines while the server runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from apiserver.e2e.driving import Kubectl
from apiserver.e2e.manifests import config_map, owned_by

Object = dict[str, Any]

SCHEMA: Object = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "description": "How many."},
                "colour": {"type": "string", "default": "red", "enum": ["red", "blue"]},
            },
            "x-kubernetes-validations": [
                {"rule": "self.colour != 'blue' || self.size < 10", "message": "too much blue"}
            ],
        },
        "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
    },
}


@pytest.fixture
def widgets(kubectl: Kubectl) -> Iterator[str]:
    """A kind of the test's own; its group."""
    group = f"{kubectl.namespace}.example.com"
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": SCHEMA},
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.size",
                            "statusReplicasPath": ".status.ready",
                        },
                    },
                    "additionalPrinterColumns": [
                        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                        {"name": "Colour", "type": "string", "jsonPath": ".spec.colour"},
                    ],
                }
            ],
        },
    }
    kubectl("create", "-f", "-", given=definition)
    kubectl("wait", "--for=condition=Established", f"crd/widgets.{group}", "--timeout=150s")
    yield group
    kubectl("delete", "crd", f"widgets.{group}")


def widget(group: str, name: str, **spec: object) -> Object:
    return {
        "apiVersion": f"{group}/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": spec,
    }


def test_a_custom_object_lives_like_any_other(kubectl: Kubectl, widgets: str) -> None:
    """Defaults, columns, patches, scale, apply and explain."""
    kind = f"widgets.{widgets}"
    kubectl("apply", "-f", "-", given=widget(widgets, "one", size=3))
    header, row = (line.split() for line in kubectl("get", kind).splitlines())
    assert (header, row) == (["NAME", "SIZE", "COLOUR"], ["one", "3", "red"])
    kubectl("scale", kind, "one", "--replicas=5")
    kubectl("patch", kind, "one", "--type=merge", "-p", '{"spec":{"colour":"blue"}}')
    assert kubectl.object(kind, "one")["spec"] == {"size": 5, "colour": "blue"}
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=widget(widgets, "one", size=6))  # fmt: skip
    assert kubectl.object(kind, "one")["spec"]["size"] == 6
    assert "How many." in kubectl("explain", f"{kind}.spec.size")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"size": 0}, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        ({"colour": "red"}, "spec.size: Required value"),
        ({"size": 1, "colour": "green"}, 'spec.colour: Unsupported value: "green"'),
        ({"size": 10, "colour": "blue"}, "too much blue"),
        ({"size": 1, "shape": "round"}, 'unknown field "spec.shape"'),
    ],
    ids=["minimum", "required", "enum", "rule", "unknown"],
)  # fmt: skip
def test_the_schema_is_enforced(kubectl: Kubectl, widgets: str, spec: Object, words: str) -> None:
    """What the schema forbids is refused with the field."""
    assert words in kubectl.refused("create", "-f", "-", given=widget(widgets, "bad", **spec))


def test_status_is_separate(kubectl: Kubectl, widgets: str) -> None:
    """A write of the object leaves the status, a write of the status the rest."""
    kind = f"widgets.{widgets}"
    kubectl("create", "-f", "-", given={**widget(widgets, "one", size=3), "status": {"ready": 9}})
    assert "status" not in kubectl.object(kind, "one")
    patch = json.dumps({"status": {"ready": 2}, "spec": {"size": 1}})
    kubectl("patch", kind, "one", "--subresource=status", "--type=merge", "-p", patch)
    found = kubectl.object(kind, "one")
    assert (found["spec"]["size"], found["status"]) == (3, {"ready": 2})
    assert found["metadata"]["generation"] == 1


def test_custom_objects_own_others(kubectl: Kubectl, widgets: str) -> None:
    """Garbage collection follows owners of kinds that came later."""
    kubectl("create", "-f", "-", given=widget(widgets, "one", size=3))
    owner = kubectl.object(f"widgets.{widgets}", "one")
    kubectl("create", "-f", "-", given=config_map("owned", ownerReferences=owned_by(owner)))
    kubectl("delete", f"widgets.{widgets}", "one")
    kubectl("wait", "--for=delete", "configmap/owned", "--timeout=150s")


def test_objects_go_with_their_definition(kubectl: Kubectl, widgets: str) -> None:
    """When a definition comes back, the objects of the old one do not."""
    kind = f"widgets.{widgets}"
    kubectl("create", "-f", "-", given=widget(widgets, "one", size=3))
    definition = kubectl.object("crd", kind)
    kubectl("delete", "crd", kind)
    definition["metadata"] = {"name": kind}
    kubectl("create", "-f", "-", given=definition)
    kubectl("wait", "--for=condition=Established", f"crd/{kind}", "--timeout=150s")
    assert kubectl("get", kind, "-o", "name") == ""
