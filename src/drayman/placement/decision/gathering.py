"""The claims of a pod: those it names, those made for it, and drafts of those to be made from its templates."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from drayman.api.claim_generation import SUFFIX_ALPHABET, SUFFIX_LENGTH, make_claim
from drayman.api.core import Pod, PodResourceClaim
from drayman.api.resource import ResourceClaim
from drayman.placement.claims import ClaimLack, ClaimsNotReadyError, claims_of
from drayman.placement.state import ClusterState

Suffix = Callable[[], str]
"""Gives a unique ending for the name of a claim."""


def gathered(
    state: ClusterState, pod: Pod, suffix: Suffix | None = None
) -> tuple[ResourceClaim, ...]:
    """The claims that the pod's entries stand for, in order. Raises ClaimsNotReadyError.

    With `suffix`, claims that are still to be made from templates are drafted; without it, making them is left to others. Those that
    the pod shares with its group are always made by the controller, for the group.

    Raises ClaimsNotReadyError, also where no class offers the share of a GPU that the pod asks for.
    """
    state.gpu_shares.request(pod)  # which raises if it cannot be served
    if not pod.spec.resource_claims:
        return ()
    group = state.gangs.pod_group_of(pod)
    lacks_group = group is None and pod.spec.scheduling_group is not None

    def draft(pod: Pod, entry: PodResourceClaim) -> ResourceClaim | None:
        name = entry.resource_claim_template_name or ""
        if lacks_group:
            raise _no_group(pod)
        if group is not None and entry in group.spec.resource_claims:
            raise ClaimsNotReadyError(
                f"waiting for the claim of entry {entry.name}, which the pod shares with its group,"
                f" to be made from template {name}",
                ClaimLack.GENERATED,
                name,
            )
        template = state.find_template(pod.metadata.namespace, name)
        if template is None or suffix is None:
            return None
        return make_claim(pod, entry, template, suffix())

    claims = claims_of(pod, state.find_claim, draft)
    if lacks_group and claims:
        raise _no_group(pod)
    return claims


def _no_group(pod: Pod) -> ClaimsNotReadyError:
    """Only the group knows which of the claims are its own."""
    group = pod.spec.scheduling_group
    name = "" if group is None else group.pod_group_name or ""
    return ClaimsNotReadyError(f'pod group "{name}" does not exist', ClaimLack.GROUP, name)


def counting() -> Suffix:
    """Suffixes that count up, so that the same question gives the same answer."""
    numbers = count(1)

    def suffix() -> str:
        digits, rest = [], next(numbers)
        for _ in range(SUFFIX_LENGTH):
            rest, digit = divmod(rest, len(SUFFIX_ALPHABET))
            digits.append(SUFFIX_ALPHABET[digit])
        return "".join(reversed(digits))

    return suffix
