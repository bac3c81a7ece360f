"""Pods and what makes pods: how they name claims, ask for devices and choose nodes."""

from __future__ import annotations

from drayman.api.resource import GROUP
from drayman.migrate import gangs
from drayman.migrate.device_requests import Ask, asks_of, named, requests_for, with_claims
from drayman.migrate.model import Scope
from drayman.migrate.node_choice import Selectors, move_labels
from drayman.migrate.parameters import exact_request
from drayman.migrate.pod_specs import pod_spec_of
from drayman.migrate.shapes import (
    Object,
    changed,
    changed_items,
    child,
    objects,
    text,
    without,
)
from drayman.migrate.survey import TEMPLATE, claims_named


def rewrite(value: Object, scope: Scope) -> Object:
    """The object with its pods in the current form; unchanged where it makes none."""
    path = pod_spec_of(value)
    if path is None:
        return value
    prefix = ".".join(path)

    def change(spec: Object) -> Object:
        spec = changed_items(spec, "resourceClaims", _flattened)
        spec = _on_nodes_of_claims(spec, prefix, scope)
        return _with_requests(spec, prefix, scope)

    return gangs.join(changed(value, path, change), path, scope)


def _flattened(_index: int, claim: Object) -> Object:
    """Before 1.31 the claim's name was one level deeper."""
    source = claim.get("source")
    return {**without(claim, "source"), **source} if isinstance(source, dict) else claim


def _on_nodes_of_claims(spec: Object, path: str, scope: Scope) -> Object:
    """The pod on the nodes that its claims used to ask for."""
    labels = dict(child(spec, "nodeSelector"))
    for claim in objects(spec, "resourceClaims"):
        for reference in claims_named(claim, scope.namespace):
            for label, value in scope.survey.node_selectors.get(reference, {}).items():
                if labels.setdefault(label, value) != value:
                    scope.lost(
                        f"{path}.nodeSelector[{label}]",
                        f"{reference[1]} {reference[3]} asks for {value} instead; left as it is",
                    )
    return {**spec, "nodeSelector": labels} if labels else spec


def _with_requests(spec: Object, path: str, scope: Scope) -> Object:
    """The pod with a claim for the devices that its containers ask device plugins for."""
    found = asks_of(spec, path, scope)
    if not found:
        return spec
    asks = named(found)
    for ask in found:
        if not ask.count:
            scope.note(
                f"{path}.{ask.container[0]}[{ask.container[1]}].resources",
                f"no {ask.resource}: left out",
            )
    if not asks:
        return with_claims(spec, [], found, "")
    made = requests_for(asks)
    _note_more(made, path, scope)
    spec, selectors = move_labels(spec, path, {ask.device.class_name for ask in asks}, scope)
    claim = _claim_name(spec, made)
    template = _template(made, selectors, claim, scope)
    scope.created.append(template)
    spec = with_claims(spec, asks, found, claim)
    before = spec.get("resourceClaims")
    entry: Object = {"name": claim, "resourceClaimTemplateName": text(template, "metadata", "name")}
    return {**spec, "resourceClaims": [*(before if isinstance(before, list) else ()), entry]}


def _note_more(made: dict[str, Ask], path: str, scope: Scope) -> None:
    for ask in made.values():
        if ask.is_before_others:
            key, place = ask.container
            scope.note(
                f"{path}.{key}[{place}].resources",
                "asks for more devices than any container after it; it gets devices of its own,"
                " so the pod needs more in total than before",
            )


def _claim_name(spec: Object, made: dict[str, Ask]) -> str:
    """The pod's name for the claim: after the devices, where they are of one kind."""
    kinds = {ask.device.request for ask in made.values()}
    wanted = kinds.pop() if len(kinds) == 1 else "devices"
    taken = {text(claim, "name") for claim in objects(spec, "resourceClaims")}
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}-{number}", number + 1
    return name


def _template(made: dict[str, Ask], selectors: Selectors, claim: str, scope: Scope) -> Object:
    requests = [
        exact_request(
            name,
            ask.device.class_name,
            count=ask.count,
            selectors=(ask.device.selector, *selectors.get(ask.device.class_name, ())),
        )
        for name, ask in made.items()
    ]
    wanted = f"{scope.name}-{claim}" if scope.name else claim
    name = scope.survey.free_template_name(scope.namespace, wanted[:240].strip("-."))
    place = {"namespace": scope.namespace} if scope.namespace else {}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": TEMPLATE,
        "metadata": {"name": name, **place},
        "spec": {"spec": {"devices": {"requests": [*requests]}}},
    }
