"""Deleting what is in the way: pods that use what is needed, and claims that no pod uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.meta import ObjectMeta
from drayman.api.pods import is_leaving
from drayman.api.resource import ResourceClaim, ResourceClaimStatus
from drayman.explain.answer import Operation, Remedy
from drayman.explain.remedies.case import Case, remedy
from drayman.explain.remedies.commands import delete_commands
from drayman.explain.remedies.linked_pods import LinkedPods
from drayman.explain.remedies.rooms import Room
from drayman.explain.remedies.trying import Fit
from drayman.reasons.wording import and_list, named
from drayman.workloads.makers import maker_of


def freed_pods(found: Sequence[Room]) -> Iterator[Remedy]:
    """The cheapest room."""
    for room in found[:1]:
        yield deleting(room.victims, room.fit, "")


def released_claims(case: Case) -> Iterator[Remedy]:
    """Claims that have their devices where the pod cannot go: without the pods that use them, they are allocated again."""
    for claim in case.demand.held:
        linked = case.pods.linked_to_claim(claim)
        if linked is None or not linked.pods:
            continue
        released = {each.metadata.uid for each in linked.claims}
        claims = [
            replace(each, status=ResourceClaimStatus()) if each.metadata.uid in released else each
            for each in case.demand.claims
        ]
        with case.state.trial() as trial:
            linked.leave(trial)
            fit = case.trials.ask(case.pod, claims, list(case.state.nodes.values()))
        if fit is not None:
            yield deleting([linked], fit, f" so that claim {claim.metadata.name} can move")


def removed_leftovers(case: Case) -> Iterator[Remedy]:
    """A claim for extended resources that an earlier attempt has left behind: the next one makes its own."""
    claim = case.demand.stale_extended
    if claim is None or case.state.is_under_way(claim):
        return
    with case.state.trial():
        case.state.remove_claim(claim)
        fit = case.trials.ask(case.pod, case.demand.claims)
    if fit is not None:
        name = _full_name(claim)
        yield remedy(
            f"delete claim {name}, which an earlier attempt has left behind",
            (_operation("delete", claim.kind, claim.metadata),),
            fit,
            (_delete_command(claim),),
        )


def deleting(victims: Sequence[LinkedPods], fit: Fit, purpose: str) -> Remedy:
    """Deleting pods, and claims that no pod uses, after which it fits."""
    pods = sorted((pod for linked in victims for pod in linked.pods), key=_full_name)
    leaving = [pod for pod in pods if is_leaving(pod)]
    deleted = [pod for pod in pods if not is_leaving(pod)]
    unused = [claim for linked in victims if not linked.pods for claim in linked.claims]
    operations = [_operation("wait", pod.kind, pod.metadata) for pod in leaving]
    operations += [_operation("delete", pod.kind, pod.metadata) for pod in deleted]
    operations += [_operation("delete", claim.kind, claim.metadata) for claim in unused]
    parts = []
    if leaving:
        verb = "is" if len(leaving) == 1 else "are"
        parts.append(f"wait for {_listed(leaving)}, which {verb} being deleted")
    if deleted:
        parts.append(f"delete {_listed(deleted)}")
    if unused:
        claims = named("claim", [_full_name(claim) for claim in unused])
        parts.append(f"delete {claims}, which no pod uses")
    commands = [*delete_commands(deleted), *(_delete_command(claim) for claim in unused)]
    sentence = f"{', and '.join(parts)}{purpose}{_returning(deleted)}"
    return remedy(sentence, tuple(operations), fit, tuple(commands))


def _delete_command(claim: ResourceClaim) -> str:
    return f"kubectl delete resourceclaim {claim.metadata.name} -n {claim.metadata.namespace}"


def _returning(pods: Sequence[Pod]) -> str:
    """A warning for pods that a controller would recreate."""
    again = "it" if len(pods) == 1 else "them"
    makers = {maker: None for pod in pods if (maker := maker_of(pod)) is not None}
    jobs = [f"job/{maker.name}" for maker in makers if maker.kind == "Job"]
    others = [f"{maker.kind.lower()}/{maker.name}" for maker in makers if maker.kind != "Job"]
    parts = [
        f"{verb} {and_list(names)}"
        for verb, names in (("suspend", jobs), ("scale down", others))
        if names
    ]
    return f", and {' and '.join(parts)}, which would recreate {again}" if parts else ""


def _operation(verb: str, kind: str, metadata: ObjectMeta) -> Operation:
    return Operation(verb=verb, kind=kind, name=metadata.name, namespace=metadata.namespace)


def _listed(pods: Sequence[Pod]) -> str:
    return named("pod", [_full_name(pod) for pod in pods])


def _full_name(owned: Pod | ResourceClaim) -> str:
    return f"{owned.metadata.namespace}/{owned.metadata.name}"
