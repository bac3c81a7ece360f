"""How much at a time."""

from __future__ import annotations

import pytest

from building import Harness, decoded
from drayman.apiserver.exchange import StreamingResponse
from drayman.apiserver.limits import Limits


async def test_requests_beyond_the_limit_are_told_to_come_again() -> None:
    """429 with a time to wait."""
    harness = Harness()
    harness.server.limits = Limits(most_requests=0)
    response = await harness.send("GET", "/api/v1/pods")
    assert (response.status, response.headers["Retry-After"]) == (429, "1")
    assert decoded(response)["details"]["retryAfterSeconds"] == 1


async def test_watches_beyond_the_limit_are_refused_until_one_ends() -> None:
    """A closed watch makes room."""
    harness = Harness()
    await harness.namespace()
    harness.server.limits = Limits(most_watches=1)
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
