"""Which changes to other pods may help a pod that is kept from nodes by the rules about other pods.

This is what kube-scheduler calls queueing hints. Pods are placed all the time, and most of them help no waiting pod. So a pod that was
refused leaves a hint that says which pods it hopes for, and only a change that matches the hint is a reason to try again. Pods that leave
need no hint: they free resources as well, so that every waiting pod is tried.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from drayman.placement.fit import Cause, PodNeeds, Verdict
from drayman.placement.fit.terms import AffinityTerm, Labels, SpreadTerm, terms_of
from drayman.placement.wake import Wake


class PodChange(Struct, frozen=True):
    """A pod was placed, or a placed pod has changed."""

    before: PodNeeds | None
    """None if it was placed just now."""
    after: PodNeeds
    namespace_labels: Labels


class NamespaceChange(Struct, frozen=True):
    """The labels of a namespace have changed."""

    name: str
    before: Labels
    after: Labels


Change: TypeAlias = Wake | PodChange | NamespaceChange
"""What may help pods that wait."""


class Hint(Struct, frozen=True):
    """Which pods, elsewhere than now, would help pods that were refused. Copies of a pod have equal hints."""

    namespace: str
    affinity: tuple[AffinityTerm, ...] = ()
    """No node has a pod near it that matches all of these."""
    anti_affinity: tuple[AffinityTerm, ...] = ()
    """Pods that match one of these are in the way."""
    spread: tuple[SpreadTerm, ...] = ()
    """Pods that match these are spread unevenly."""
    is_repelled: bool = False
    """Whether placed pods may keep these pods away."""

    @staticmethod
    def of(needs: PodNeeds, verdicts: Iterable[Verdict]) -> Hint | None:
        """The hint of a pod that nodes have refused with these verdicts; None if no other pod can help it by its presence."""
        causes = {verdict.cause for verdict in set(verdicts)}
        if causes.isdisjoint((Cause.SPREAD, Cause.POD_AFFINITY, Cause.POD_ANTI_AFFINITY)):
            return None
        terms, is_kept_apart = terms_of(needs), Cause.POD_ANTI_AFFINITY in causes
        return Hint(
            needs.namespace,
            terms.affinity if Cause.POD_AFFINITY in causes else (),
            terms.anti_affinity if is_kept_apart else (),
            terms.hard_spread if Cause.SPREAD in causes else (),
            is_kept_apart,
        )

    def matches(self, change: PodChange | NamespaceChange) -> bool:
        """Whether a change may help."""
        if isinstance(change, PodChange):
            return self._matches_pod(change)
        if self.is_repelled and change.name == self.namespace:
            return True
        return any(
            term.namespace_selector.matches(change.before)
            != term.namespace_selector.matches(change.after)
            for term in (*self.affinity, *self.anti_affinity)
        )

    def _matches_pod(self, change: PodChange) -> bool:
        before, after = change.before, change.after
        for spread in self.spread:
            was_counted = before is not None and spread.counts(self.namespace, before)
            if spread.counts(self.namespace, after) != was_counted:
                return True
        labels = change.namespace_labels
        # A pod that no longer matches helps as well: the first pod of a group may go anywhere.
        if self.affinity and _match_all(self.affinity, before, labels) != _match_all(
            self.affinity, after, labels
        ):
            return True
        if before is None or not self.is_repelled:
            return False
        return terms_of(before).anti_affinity != terms_of(after).anti_affinity or any(
            _match_all((term,), before, labels) and not _match_all((term,), after, labels)
            for term in self.anti_affinity
        )


def _match_all(terms: Iterable[AffinityTerm], pod: PodNeeds | None, labels: Labels) -> bool:
    return pod is not None and all(
        term.matches(pod.namespace, pod.labels, labels) for term in terms
    )
