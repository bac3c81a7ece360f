"""How much at a time."""

from __future__ import annotations

import json

import pytest

from building import Harness, decoded
from drayman.apiserver.protocol.exchange import StreamingResponse
from drayman.apiserver.protocol.limits import MOST_OBJECT_BYTES, ServerLimits
from drayman.apiserver.protocol.shares import Shares
from drayman.apiserver.verbs.patches import MERGE_PATCH


async def test_requests_beyond_the_limit_are_told_to_come_again() -> None:
    """429 with a time to wait."""
    harness = Harness()
    harness.server.limits = ServerLimits(requests=Shares(0))
    response = await harness.send("GET", "/api/v1/pods")
    assert (response.status, response.headers["Retry-After"]) == (429, "1")
    assert decoded(response)["details"]["retryAfterSeconds"] == 1


async def test_watches_beyond_the_limit_are_refused_until_one_ends() -> None:
    """A closed watch makes room."""
    harness = Harness()
    await harness.namespace()
    harness.server.limits = ServerLimits(watches=Shares(1))
    path = "/api/v1/namespaces"
    first = await harness.answer("GET", path, watch="1")
    assert isinstance(first, StreamingResponse)
    await anext(first.chunks)
    assert (await harness.send("GET", path, watch="1")).status == 429
    await first.chunks.aclose()  # type: ignore[attr-defined]
    assert isinstance(await harness.answer("GET", path, watch="1"), StreamingResponse)


@pytest.mark.parametrize(
    ("timeout", "status"),
    [("32s", 200), ("1m30s", 200), ("0", 200), ("", 200), ("1.5h", 200), ("soon", 400), ("5", 400)],
)
async def test_a_timeout_is_a_duration(timeout: str, status: int) -> None:
    """As Go writes them."""
    harness = Harness()
    assert (await harness.send("GET", "/api", timeout=timeout)).status == status


async def test_an_object_grows_to_a_limit_and_can_always_be_deleted() -> None:
    """Patches, each of them small enough, stop at a size; what is there stays as it was, and goes when it is told to."""
    harness = Harness()
    base = await harness.namespace()
    held = {"metadata": {"name": "a", "finalizers": ["example.com/held"]}}
    await harness.json("POST", f"{base}/configmaps", held)
    answers = []
    for number in range(4):
        text = "x" * (MOST_OBJECT_BYTES // 3 - 1_000)
        change = {"data": {f"k{number}": text}}
        headers = {"content-type": MERGE_PATCH}
        answers.append(await harness.send("PATCH", f"{base}/configmaps/a", change, headers))
    assert [answer.status for answer in answers] == [200, 200, 200, 413]
    refusal = decoded(answers[-1])
    assert refusal["reason"] == "RequestEntityTooLarge"
    assert refusal["message"].startswith('configmaps "a" is too large: ')
    found = await harness.json("GET", f"{base}/configmaps/a")
    assert sorted(found["data"]) == ["k0", "k1", "k2"]
    filling = {"data": {"last": "x" * (MOST_OBJECT_BYTES - len(json.dumps(found)) - 20)}}
    headers = {"content-type": MERGE_PATCH}
    await harness.send("PATCH", f"{base}/configmaps/a", filling, headers)
    assert (await harness.send("DELETE", f"{base}/configmaps/a")).status == 200
    freed = {"metadata": {"finalizers": None}}
    assert (await harness.send("PATCH", f"{base}/configmaps/a", freed, headers)).status == 200
    assert (await harness.send("GET", f"{base}/configmaps/a")).status == 404
