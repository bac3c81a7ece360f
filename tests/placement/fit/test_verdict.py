"""Verdicts, and the message that sums them up."""

from __future__ import annotations

from drayman.placement.fit import FITS, Cause, Verdict, refused_everywhere, unschedulable_message

CAUSE = Cause.RESOURCES


def test_equal_refusals_are_one_object() -> None:
    """Refusals are compared by identity; whether preemption helps is part of them."""
    assert Verdict.refusal(CAUSE, "a", "b") is Verdict.refusal(CAUSE, "a", "b")
    assert Verdict.refusal(CAUSE, "a") is not Verdict.refusal(CAUSE, "a", resolvable=True)
    assert FITS.fits
    assert not Verdict.refusal(CAUSE, "a").fits


def test_message_counts_reasons_and_sorts_texts() -> None:
    """Reasons are counted over nodes and ordered as texts, numbers included."""
    verdicts = [
        *[Verdict.refusal(CAUSE, "Insufficient cpu", "Insufficient memory")] * 2,
        *[Verdict.refusal(CAUSE, "Insufficient cpu")] * 8,
        Verdict.refusal(CAUSE, "node(s) were unschedulable"),
    ]
    assert unschedulable_message(11, verdicts) == (
        "0/11 nodes are available: 1 node(s) were unschedulable, 10 Insufficient cpu,"
        " 2 Insufficient memory."
    )


def test_message_about_the_pod() -> None:
    """A reason that lies with the pod is told without a number of nodes."""
    refusal = Verdict.refusal(CAUSE, 'persistentvolumeclaim "x" not found')
    expected = '0/3 nodes are available: persistentvolumeclaim "x" not found.'
    assert refused_everywhere(3, refusal) == expected


def test_message_without_nodes() -> None:
    """An empty cluster is called that."""
    assert unschedulable_message(0, []) == "no nodes available to schedule pods."
    assert (
        refused_everywhere(0, Verdict.refusal(CAUSE, "x")) == "no nodes available to schedule pods."
    )
