"""Integers in texts, as upstream reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.core import Pod
from drayman.api.integers import INT64_MAX, parse_count, parse_integer
from drayman.api.meta import ObjectMeta
from drayman.api.workloads import ReplicaSet
from drayman.apiserver.kinds.checks import at_most_whole
from drayman.apiserver.protocol.errors import StatusError
from drayman.apiserver.verbs.metadata import version_of
from drayman.workloads import shares
from drayman.workloads.deployments.lineage import REVISION, revision_of
from drayman.workloads.jobs.indexes import IndexSet
from drayman.workloads.jobs.pods import INDEX, count_in, index_of

LONG = "9" * 5_000
"""More digits than Python turns into an integer."""


@given(st.integers(-INT64_MAX - 1, INT64_MAX), st.integers(0, 5_000))
def test_integers_of_64_bits_are_read(number: int, zeros: int) -> None:
    sign = "-" if number < 0 else ""
    assert parse_integer(f"{sign}{'0' * zeros}{abs(number)}") == number


@pytest.mark.parametrize(
    "text", ["", "-", "+", "a", "1.0", "1e3", " 1", "1_000", "0x1", "²", "٣", LONG, str(2**63)]
)
def test_other_texts_are_not(text: str) -> None:
    assert parse_integer(text) is None


def test_a_count_that_is_too_large_is_the_largest() -> None:
    assert parse_count(LONG) == INT64_MAX
    assert parse_count("12") == 12


def test_numbers_that_users_write_may_be_of_any_length() -> None:
    """Controllers and checks read them from annotations and shares."""
    annotated = ObjectMeta(annotations={INDEX: LONG, REVISION: LONG, "n": LONG})
    pod = Pod(metadata=annotated)
    assert index_of(pod, 3) is None
    assert count_in(pod, "n") == 0
    assert revision_of(ReplicaSet(metadata=annotated)) == 0
    assert str(IndexSet.parse(f"1,{LONG},2-{LONG}", 5)) == "1"
    assert list(at_most_whole(f"{LONG}%", "spec.maxUnavailable"))
    assert not list(at_most_whole("0" * 5_000 + "%", "spec.maxUnavailable"))
    assert shares.resolve(f"{LONG}%", 3, up=True) > 3
    assert version_of({"resourceVersion": "0" * 5_000 + "7"}) == 7
    with pytest.raises(StatusError):
        version_of({"resourceVersion": LONG})
