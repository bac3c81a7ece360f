"""Waiting times, and what is worth another try."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.cluster.backoff import Backoff
from drayman.cluster.errors import (
    ClusterError,
    CredentialsError,
    ProtocolError,
    SilentError,
    UnreachableError,
    UntrustedError,
    error_from_response,
)
from drayman.cluster.kube.retries import FOR_PEOPLE, RetryPolicy


@given(
    initial=st.floats(0.001, 10),
    cap=st.floats(0.001, 100),
    failures=st.integers(1, 10_000),
    seed=st.integers(),
)
def test_delays_grow_to_a_cap_and_are_never_nothing(
    initial: float, cap: float, failures: int, seed: int
) -> None:
    """A delay is between half and all of what doubling gives, and at most the cap."""
    delay = Backoff(initial, cap, random.Random(seed)).delay(failures)
    longest = min(cap, initial * 2.0 ** min(failures - 1, 60))
    assert longest / 2 <= delay <= longest


def refusal(code: int, after: str | None = None) -> ClusterError:
    return error_from_response(code, b"", after)


UNSENT = UnreachableError("refused", outcome_unknown=False)
LOST = UnreachableError("reset", outcome_unknown=True)

CASES = [
    # name, error, may a read be repeated, may a write
    ("connection refused", UNSENT, True, True),
    ("connection lost after sending", LOST, True, False),
    ("certificate not trusted", UntrustedError("self-signed"), False, False),
    ("429 with a time", refusal(429, "1"), True, True),
    ("429 without: a disruption budget", refusal(429), True, False),
    ("503 with a time", refusal(503, "1"), True, True),
    ("503 without", refusal(503), True, False),
    ("500", refusal(500), True, False),
    ("504 with a time", refusal(504, "1"), True, False),
    ("404", refusal(404), False, False),
    ("409", refusal(409, "1"), False, False),
    ("410", refusal(410), False, False),
    ("asked to stay away too long", refusal(429, "3600"), False, False),
    ("nonsense", ProtocolError("?"), False, False),
    ("no credentials", CredentialsError("?"), False, False),
]


@pytest.mark.parametrize(("name", "error", "read", "write"), CASES, ids=[case[0] for case in CASES])
def test_what_is_repeated(name: str, error: ClusterError, read: bool, write: bool) -> None:
    """Reads are repeated after anything that may pass, writes only if they cannot have been carried out."""
    policy = RetryPolicy()
    assert (policy.delay(error, is_read=True, failures=1) is not None) is read
    assert (policy.delay(error, is_read=False, failures=1) is not None) is write


def test_a_time_that_was_asked_for_is_kept() -> None:
    """The delay is never shorter than Retry-After, and not the same for all."""
    delays = {RetryPolicy().delay(refusal(429, "5"), is_read=True, failures=1) for _ in range(8)}
    assert min(delay or 0 for delay in delays) > 5
    assert len(delays) > 1


def test_attempts_are_bounded() -> None:
    """After the last attempt the error is the caller's."""
    policy = RetryPolicy(attempts=3)
    assert policy.delay(UNSENT, is_read=True, failures=2) is not None
    assert policy.delay(UNSENT, is_read=True, failures=3) is None


PEOPLE = [
    # name, error, whether it is repeated before the server has ever answered, and afterwards
    ("connection refused", UNSENT, False, True),
    ("connection lost after sending", LOST, False, True),
    ("no answer in time", SilentError("silent"), False, False),
    ("429 with a time", refusal(429, "1"), True, True),
]


@pytest.mark.parametrize(
    ("name", "error", "first", "later"), PEOPLE, ids=[case[0] for case in PEOPLE]
)
def test_people_do_not_wait_for_nobody(
    name: str, error: ClusterError, first: bool, later: bool
) -> None:
    """A server that never answered is asked once; one that has answered gets the chance to come back."""
    for answered, repeated in ((False, first), (True, later)):
        delay = FOR_PEOPLE.delay(error, is_read=True, failures=1, answered=answered)
        assert (delay is not None) is repeated
    assert RetryPolicy().delay(error, is_read=True, failures=1, answered=False) is not None, (
        "control loops go on asking"
    )
