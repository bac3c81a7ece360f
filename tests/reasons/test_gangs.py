"""Why a gang waits before a place is looked for."""

from __future__ import annotations

import pytest

from drayman.placement.gangs.gang import Dialect, Flaw, FlawKind, Gang, GangKey, missing
from drayman.placement.gangs.quorum import Shortfall
from drayman.reasons.gangs import flawed, incomplete

GROUP = GangKey(Dialect.PLUGIN, "ml", "train")
OF_JOB = GangKey(Dialect.DRAYMAN, "ml", "job/train", "uid")

INCOMPLETE: dict[str, tuple[GangKey, Shortfall, str]] = {
    "pods": (GROUP, Shortfall(5, 8), "Pod group ml/train has 5 of the 8 pods that start together."),
    "pods of a Job": (
        OF_JOB,
        Shortfall(0, 2),
        "Gang ml/job/train has 0 of the 2 pods that start together.",
    ),
    "a subgroup": (
        GROUP,
        Shortfall(1, 4, "workers"),
        "Subgroup workers of pod group ml/train has 1 of the 4 pods that start together.",
    ),
    "subgroups": (
        GROUP,
        Shortfall(1, 2, counts_subgroups=True),
        "Pod group ml/train has 1 complete subgroup, and 2 start together.",
    ),
}


@pytest.mark.parametrize("case", INCOMPLETE)
def test_a_gang_without_enough_members(case: str) -> None:
    """The gang, or the part of it, with what it has and what it needs."""
    key, lack, sentence = INCOMPLETE[case]
    headline = incomplete(Gang(key=key, least=lack.needs), lack)
    assert str(headline) == f"GangIncomplete (held): {sentence}"


def test_a_group_that_does_not_exist() -> None:
    """It may still be created."""
    sentence = "Pod group ml/train does not exist."
    assert str(flawed(missing(GROUP))) == f"PodGroupMissing (held): {sentence}"


def test_a_gang_that_makes_no_sense() -> None:
    """Waiting does not help."""
    flaw = Flaw(
        OF_JOB, FlawKind.INVALID, "job ml/train", "0 is less than 1", "metadata.annotations[a]"
    )
    sentence = "Job ml/train, metadata.annotations[a]: 0 is less than 1."
    assert str(flawed(flaw)) == f"GangInvalid (never): {sentence}"
