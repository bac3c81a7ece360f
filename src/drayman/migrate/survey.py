"""What all the manifests say together, which is needed to rewrite each of them.

A claim of v1alpha2 names an object with its parameters. A template that is to be added must not have a name that is taken. A node
selector that a claim had belongs to the pods that use the claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from drayman.api.resource import GROUP
from drayman.migrate.pod_specs import pod_spec_of
from drayman.migrate.shapes import Object, Path, child, group_and_version, objects, text

Reference = tuple[str, str, str, str]
"""Group, kind, namespace and name of an object."""

CLAIM = "ResourceClaim"
TEMPLATE = "ResourceClaimTemplate"
CLAIM_SPECS: dict[str, Path] = {CLAIM: ("spec",), TEMPLATE: ("spec", "spec")}
"""Where the kinds that ask for devices have the specification of a claim."""


@dataclass(slots=True)
class Survey:
    """What was found in all of the input."""

    found: dict[Reference, Object] = field(default_factory=dict)
    node_selectors: dict[Reference, dict[str, str]] = field(default_factory=dict)
    """The labels of nodes that claims and templates ask for."""
    used_by_pods: set[Reference] = field(default_factory=set)
    """The claims and templates that a pod of the input names."""
    names_of_templates: set[tuple[str, str]] = field(default_factory=set)
    """(namespace, name), those that are being added included."""
    referred_parameters: dict[Reference, str] = field(default_factory=dict)
    """Objects with parameters, and the claim or class that names them."""
    still_needed: set[Reference] = field(default_factory=set)
    """Objects with parameters that are named by something that stays unchanged."""
    resources_of_classes: set[str] = field(default_factory=set)
    """Resources that a class of the input provides: pods may go on asking for those."""
    with_pod_groups: bool = False
    """Whether groups of pods are to become Kubernetes' own."""

    def parameters(self, namespace: str, reference: Object) -> tuple[Reference, Object | None]:
        """The object that a `parametersRef` names, None where it is not in the input."""
        key = (
            text(reference, "apiGroup"),
            text(reference, "kind"),
            namespace,
            text(reference, "name"),
        )
        return key, self.found.get(key)

    def generated(self, kind: str, source: Reference) -> Object | None:
        """The object of resource.k8s.io that a driver has made from its own parameters."""
        for (group, own, namespace, _), value in self.found.items():
            if group == GROUP and own == kind and namespace == source[2]:
                origin = child(value, "generatedFrom")
                named = text(origin, "apiGroup"), text(origin, "kind"), text(origin, "name")
                if named == (source[0], source[1], source[3]):
                    return value
        return None

    def free_template_name(self, namespace: str, wanted: str) -> str:
        """A name that no template has yet; marks it as taken."""
        name, number = wanted, 2
        while (namespace, name) in self.names_of_templates:
            name, number = f"{wanted}-{number}", number + 1
        self.names_of_templates.add((namespace, name))
        return name


def survey(values: Iterable[Object], *, with_pod_groups: bool = False) -> Survey:
    """Look through all objects."""
    result = Survey(with_pod_groups=with_pod_groups)
    for value in values:
        group, _ = group_and_version(value)
        kind, namespace = text(value, "kind"), text(value, "metadata", "namespace")
        own = (group, kind, namespace, text(value, "metadata", "name"))
        result.found[own] = value
        if group == GROUP and kind == TEMPLATE:
            result.names_of_templates.add((namespace, own[3]))
        if group == GROUP and kind == "DeviceClass":
            result.resources_of_classes.add(text(value, "spec", "extendedResourceName"))
        if group == GROUP and kind in CLAIM_SPECS:
            _note_claim(result, own, child(value, *CLAIM_SPECS[kind]))
        if group == GROUP and kind == "ResourceClass":
            reference = child(value, "parametersRef")
            key, _ = result.parameters(text(reference, "namespace"), reference)
            result.referred_parameters[key] = f"{kind} {own[3]}"
        result.used_by_pods.update(_claims_of(value, namespace))
    return result


def _note_claim(result: Survey, own: Reference, spec: Object) -> None:
    _, kind, namespace, name = own
    if labels := dict(node_labels(spec)):
        result.node_selectors[own] = labels
    if reference := child(spec, "parametersRef"):
        key, _ = result.parameters(namespace, reference)
        result.referred_parameters[key] = f"{kind} {name}"


def node_labels(spec: Object) -> Iterator[tuple[str, str]]:
    """The node labels that the constraints of a claim of v1alpha2 ask for, as in some guides."""
    for constraint in objects(spec, "constraints"):
        for key, value in child(constraint, "nodeSelector").items():
            if isinstance(value, str):
                yield key, value


def _claims_of(value: Object, namespace: str) -> Iterator[Reference]:
    for claim in objects(child(value, *(pod_spec_of(value) or ("none",))), "resourceClaims"):
        yield from claims_named(claim, namespace)


def claims_named(claim: Object, namespace: str) -> Iterator[Reference]:
    """What an entry of a pod's `resourceClaims` names, in the current form or the one before 1.31."""
    for holder in (claim, child(claim, "source")):
        if name := text(holder, "resourceClaimName"):
            yield GROUP, CLAIM, namespace, name
        if name := text(holder, "resourceClaimTemplateName"):
            yield GROUP, TEMPLATE, namespace, name
