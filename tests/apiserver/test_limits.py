"""How much at a time."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from building import Harness, config, decoded
from drayman.apiserver.protocol.access import User
from drayman.apiserver.protocol.errors import MOST_ERROR_TEXT, StatusError
from drayman.apiserver.protocol.exchange import StreamingResponse
from drayman.apiserver.protocol.limits import MOST_OBJECT_BYTES, ServerLimits, shares_of
from drayman.apiserver.protocol.shares import Shares
from drayman.apiserver.protocol.totals import BODIES, REQUESTS, SESSIONS, WATCHES, Limit
from drayman.apiserver.verbs.patches import MERGE_PATCH


async def test_requests_beyond_the_limit_are_told_to_come_again() -> None:
    """429 with a time to wait."""
    harness = Harness()
    harness.server.limits = ServerLimits(requests=Shares(0))
    response = await harness.send("GET", "/api/v1/pods")
    assert (response.status, response.headers["Retry-After"]) == (429, "1")
    assert decoded(response)["details"]["retryAfterSeconds"] == 1


ALICE, BOB = User("alice"), User("bob")
USED_UP: list[tuple[str, Limit, Callable[[ServerLimits, User], object], str]] = [
    ("requests", REQUESTS, lambda limits, user: limits.request(user), "450 of 1000 requests at a time"),
    ("watches", WATCHES, lambda limits, user: limits.check_watches(user), "4500 of 10000 watches and followed logs at a time"),
    ("sessions", SESSIONS, lambda limits, user: limits.check_sessions(user), "225 of 500 sessions in containers at a time"),
    ("body_bytes", BODIES, lambda limits, user: limits.body(user, 100_000), "115.2 of 256 MiB of large bodies and answers at a time"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "limit", "take", "text"), USED_UP, ids=[row[0] for row in USED_UP]
)
def test_a_refusal_names_the_limit_its_value_and_who_has_used_it_up(
    name: str, limit: Limit, take: Callable[[ServerLimits, User], object], text: str
) -> None:
    """One user alone gets 45 per cent, and the option of the server is named with which that changes."""
    limits = ServerLimits()
    shares: Shares = getattr(limits, name)
    alone = (shares.most - shares.reserve) // 2
    with shares.taking(ALICE, alone), pytest.raises(StatusError) as refused:
        take(limits, ALICE)
    error = refused.value
    assert (error.code, error.reason, error.headers["Retry-After"]) == (429, "TooManyRequests", "1")
    assert f': {text} are in use, {limit.shown(alone)} by "alice"; ' in error.message
    assert f"one user alone gets at most {limit.shown(alone)} ({limit.option})" in error.message
    with (
        shares.taking(ALICE, alone),
        shares.taking(BOB, alone),
        pytest.raises(StatusError) as refused,
    ):
        take(limits, BOB)
    assert (
        f'{limit.shown(alone)} by "bob" and {limit.shown(alone)} by "alice"'
        in refused.value.message
    )


def test_a_user_has_no_more_than_a_refusal_says() -> None:
    """Of an odd number, too, whose half is rounded up."""
    limits = ServerLimits(watches=Shares(10, 1))
    for _ in range(5):
        limits.check_watches(ALICE)
        limits.watches.add(ALICE.name, 1)
    with pytest.raises(StatusError, match=r'5 by "alice"; .* one user alone gets at most 5 '):
        limits.check_watches(ALICE)


def test_other_totals_can_be_chosen() -> None:
    """A tenth of each is reserved for administrators and nodes."""
    for limit in (REQUESTS, WATCHES, SESSIONS, BODIES):
        shares = shares_of(limit, 50)
        assert (shares.most, shares.reserve) == (50 * limit.unit, 50 * limit.unit // 10)


async def test_a_body_of_too_many_values_is_answered_with_the_limit() -> None:
    """Without a time to wait: it is too large at any time."""
    harness = Harness()
    base = await harness.namespace()
    response = await harness.send(
        "POST", f"{base}/configmaps", config("a", **{f"k{n}": "" for n in range(100_001)})
    )
    answer = decoded(response)
    assert (response.status, answer["reason"]) == (429, "TooManyRequests")
    assert "has more than 100000 texts, numbers, lists and objects" in answer["message"]
    assert "Retry-After" not in response.headers


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


def _controllers(count: int) -> list[dict[str, object]]:
    return [
        {"apiVersion": "v1", "kind": "Node", "name": f"n{number}", "uid": f"u{number}", "controller": True}
        for number in range(count)
    ]  # fmt: skip


async def _refused(count: int) -> tuple[str, list[dict[str, str]]]:
    """The message and the causes for an object with so many controllers, each of which the server refuses with all of them."""
    harness = Harness()
    path = f"{await harness.namespace()}/configmaps"
    body = {"metadata": {"name": "c", "ownerReferences": _controllers(count)}}
    answer = await harness.send("POST", path, body)
    assert answer.status == 422
    assert len(answer.body) < 3 * MOST_ERROR_TEXT
    status = json.loads(answer.body)
    return status["message"], status["details"]["causes"]


async def test_few_errors_are_all_shown() -> None:
    """With few errors the answer is the one that Kubernetes gives."""
    message, causes = await _refused(3)
    quoted = json.dumps(_controllers(3), separators=(",", ":"))
    assert [cause["message"] for cause in causes] == [
        f'Invalid value: {quoted}: Only one reference can have Controller set to true. Found "true" in references for '
        f"Node/n0 and Node/n{number}"
        for number in (1, 2)
    ]
    assert message.endswith("Node/n0 and Node/n2]")


async def test_errors_that_quote_a_long_list_are_not_all_shown() -> None:
    """Each of the errors quotes all references. The first ones are shown, with the number of the others."""
    message, causes = await _refused(900)
    assert 1 <= len(causes) < 10
    assert message.endswith(f", and {899 - len(causes)} more]")


def test_large_limits_are_shown_as_plain_numbers() -> None:
    """Four digits and more are not abbreviated: `2048 MiB`."""
    assert BODIES.shown(2048 * BODIES.unit) == "2048"
    assert BODIES.shown(BODIES.unit * 5 // 4) == "1.2"
