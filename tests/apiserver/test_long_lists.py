"""Lists that are put together while they are sent: the same text as in one piece, whatever the sizes of the objects are."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence

import aiohttp
import pytest

from building import Harness, config
from drayman.apiserver.protocol.exchange import PIECE, LongResponse, Response
from drayman.apiserver.serving.http import Listener, start

SIZES = {
    "nothing": (),
    "one small": (10,),
    "one large": (3 * PIECE,),
    "many small": (100,) * 2_000,
    "pieces end with the list": (PIECE, PIECE),
    "pieces end before the list": (PIECE, PIECE, 1),
    "large among small": (1, 1, 2 * PIECE, 1, PIECE, 1),
}


async def _with_configs(sizes: Sequence[int]) -> tuple[Harness, str]:
    harness = Harness()
    base = f"{await harness.namespace()}/configmaps"
    for number, size in enumerate(sizes):
        answer = await harness.send(
            "POST", base, {**config(f"c{number:04}"), "data": {"a": "x" * size}}
        )
        assert answer.status == 201
    return harness, base


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
async def test_pieces_are_the_whole(sizes: Sequence[int]) -> None:
    """All objects are there, in order, without kind and apiVersion, and the length said before is the length sent."""
    harness, base = await _with_configs(sizes)
    answer = await harness.answer("GET", base)
    if isinstance(answer, LongResponse):
        said = answer.length
        whole = answer.whole()
        assert len(whole.body) == said > PIECE
    else:
        assert isinstance(answer, Response)
        whole = answer
        assert len(whole.body) <= PIECE
    assert whole.body.endswith(b"]}\n")
    value = json.loads(whole.body)
    assert (value["kind"], value["apiVersion"]) == ("ConfigMapList", "v1")
    assert [len(item["data"]["a"]) for item in value["items"]] == list(sizes)
    assert not any("kind" in item or "apiVersion" in item for item in value["items"])


async def test_over_a_socket() -> None:
    """Plain, compressed and the headers alone say the same of a long list."""
    harness, base = await _with_configs(SIZES["large among small"])
    server = await start(harness.server, Listener())
    try:
        async with aiohttp.ClientSession(server.url, auto_decompress=False) as session:
            plain = {"Accept-Encoding": "identity"}
            async with session.get(base, headers=plain) as response:
                body = await response.read()
                assert int(response.headers["Content-Length"]) == len(body)
            async with session.get(base, headers={"Accept-Encoding": "gzip"}) as response:
                assert response.headers["Content-Encoding"] == "gzip"
                assert gzip.decompress(await response.read()) == body
            async with session.head(base, headers=plain) as response:
                assert await response.read() == b""
            async with session.get(base, headers=plain, params={"limit": "3"}) as response:
                first = json.loads(await response.read())
            following = {"limit": "3", "continue": first["metadata"]["continue"]}
            async with session.get(base, headers=plain, params=following) as response:
                second = json.loads(await response.read())
        assert [*first["items"], *second["items"]] == json.loads(body)["items"]
    finally:
        await server.stop()
