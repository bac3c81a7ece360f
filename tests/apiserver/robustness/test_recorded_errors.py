"""The errors of the server that are tolerated, against the exchanges recorded from the real one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from robustness.hostile import is_as_the_real_one

from conformance.records import API, records

PLACEHOLDER = "<rv>"


def recorded() -> Iterator[tuple[str, int, str]]:
    """Each answer with a 5xx: the vector it is in, its code and its message."""
    for file in API:
        for vector in records(file):
            for step in vector["steps"]:
                expected = step["expect"]
                if expected["status"] >= 500:
                    message = expected.get("message") or expected["body"]["message"]
                    yield vector["name"], expected["status"], message.replace(PLACEHOLDER, "1")


def test_recorded_errors_are_the_tolerated_ones() -> None:
    """What the real server was seen to answer with a 5xx is tolerated of this one."""
    found = list(recorded())
    assert found
    assert [entry for entry in found if not is_as_the_real_one(*entry[1:])] == []


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (500, "Internal error occurred: unexpected error, see the server's log"),
        (500, "list element types are not identical: [[a] [map[]]]"),
        (500, "expected a []interface {}, but received a string"),
        (500, 'unable to find api field in struct Pod for the json field "zz"'),
        (500, "failed to decode managed fields: zz"),
        (500, "Timeout: Too large resource version: 9, current: 1"),
        (503, "resourceVersion should not be set on objects to be created"),
    ],
)
def test_other_errors_of_the_server_are_not(code: int, message: str) -> None:
    """Neither what is a mistake in here nor what could be a 4xx."""
    assert not is_as_the_real_one(code, message)
