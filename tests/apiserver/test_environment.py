"""Ids that the server gives out."""

from __future__ import annotations

import uuid

from drayman.apiserver.protocol.environment import NAME_ALPHABET, SUFFIX_LENGTH, RandomIds


def test_uids_are_random_uuids_and_never_repeat() -> None:
    """Each is a UUID of version 4; thousands of them, over many refills of the pool, are all different."""
    ids = RandomIds()
    given = [ids.uid() for _ in range(3000)]
    assert len(set(given)) == len(given)
    for text in given:
        found = uuid.UUID(text)
        assert str(found) == text
        assert (found.version, found.variant) == (4, uuid.RFC_4122)


def test_suffixes_use_the_whole_alphabet() -> None:
    """Five letters of Kubernetes' alphabet, all of which occur."""
    ids = RandomIds()
    given = [ids.suffix() for _ in range(2000)]
    assert {len(suffix) for suffix in given} == {SUFFIX_LENGTH}
    assert set("".join(given)) == set(NAME_ALPHABET)
