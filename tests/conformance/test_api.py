"""Recorded answers of an API server, compared with those of the embedded one to the same requests over HTTP."""

from __future__ import annotations

import asyncio

import pytest

from conformance.api.replaying import Replayed, replayer
from conformance.api.vectors import Vector
from conformance.differences import assert_only_known_differences
from conformance.records import API, typed
from drayman.apiserver.verbs import planning

AREAS = [(file, area) for file in API for area in sorted({v.area for v in typed(file, Vector)})]


@pytest.mark.parametrize("planned", ["at once", "beside"])
@pytest.mark.parametrize(("file", "area"), AREAS, ids=["-".join(each) for each in AREAS])
def test_the_server_answers_as_a_real_one(
    file: str, area: str, planned: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In status, reason, refused fields and bodies; and in the texts of refusals and warnings. Writes that are planned in another
    thread, as large ones are, come to the same."""
    if planned == "beside":
        monkeypatch.setattr(planning, "is_large", lambda call, size: True)
    vectors = [vector for vector in typed(file, Vector) if vector.area == area]

    async def replay() -> list[Replayed]:
        async with replayer() as client:
            return await client.replay(vectors)

    replayed = asyncio.run(replay())
    names = [each.name for each in replayed]
    differing = {each.name: "; ".join(each.differences) for each in replayed if each.differences}
    assert_only_known_differences(file, names, differing)
    texts = {each.name: "; ".join(each.texts) for each in replayed if each.texts}
    assert_only_known_differences(f"{file} texts", names, texts)
