"""Searches for devices where others wait: short ones at once, long ones elsewhere.

Hardly any search takes long, but a pod may ask for thousands of devices with constraints between them. Where no more than a limit may be
worked out (`inventory.allowance`), such a search is not carried out but handed to the caller, who does it in another thread and asks again.
A view is a snapshot, so what is found there is what would have been found here, as long as the node is the same.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from math import inf
from typing import Final

from drayman.allocator import Outcome, Plan, Policy, Question, Refusal, search
from drayman.allocator.problem.limits import STEPS_AT_ONCE, WIDTH_AT_ONCE
from drayman.bounded import Bounded
from drayman.inventory.allowance import STEP, Allowance, UnfinishedError
from drayman.inventory.view import NodeView

_MOST_KEPT: Final = 64


class Searches:
    """Searches for one kind of pod."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._found: Bounded[Hashable, tuple[Question, Outcome]] = Bounded(_MOST_KEPT)
        """What was found elsewhere."""

    def search(
        self, view: NodeView, question: Question, allowance: Allowance, epoch: int
    ) -> Outcome:
        """What there is for the claims. `epoch` stands for the device classes. Raises UnfinishedError."""
        allowance.spend(STEP)
        if allowance.left == inf:
            return search(view, question, policy=self._policy)
        key = (epoch, view.state, id(question.requests))
        known = self._found.get(key) if self._found else None
        if known is not None and known[0].claims == question.claims:
            return known[1]
        is_wide = question.width > WIDTH_AT_ONCE
        # Also of a wide one the first step is done here, for which selectors are evaluated within the limit.
        most = 1 if is_wide else STEPS_AT_ONCE
        outcome = search(view, question, policy=self._policy, max_steps=most)
        allowance.note(outcome.steps * STEP)
        if outcome.steps < most and not (is_wide and isinstance(outcome, Refusal)):
            return outcome
        raise UnfinishedError(partial(self._search_elsewhere, key, view, question))

    def _search_elsewhere(self, key: Hashable, view: NodeView, question: Question) -> None:
        try:
            outcome = search(view, question, policy=self._policy)
        except UnfinishedError:
            return  # a selector was forgotten meanwhile; it is tried again from the beginning
        # These are worked out when first asked for.
        if isinstance(outcome, Plan):
            _ = outcome.quality
        elif isinstance(outcome, Refusal):
            _ = outcome.diagnosis
        self._found[key] = (question, outcome)
