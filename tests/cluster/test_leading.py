"""Leader election: one leads, nobody leads on a lease that was lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from cluster.fake_apiserver import Answer, FakeApiServer
from drayman.cluster import Election, HttpClient, LeaderElector
from drayman.cluster.errors import ConflictError, LeadershipLostError, Status
from drayman.cluster.kube.connection import Connection
from drayman.cluster.kube.retries import NO_RETRIES
from patience import PATIENCE_S

LEASE = ("leases", "ns", "lead")


@asynccontextmanager
async def pair() -> AsyncIterator[tuple[FakeApiServer, HttpClient]]:
    async with (
        FakeApiServer().running() as server,
        HttpClient(Connection(server.url), retries=NO_RETRIES) as client,
    ):
        yield server, client


def elector(
    client: HttpClient,
    identity: str = "me",
    deadline: float = 60.0,
    lease: int = 90,
    retry_period: float = 0.01,
) -> LeaderElector:
    return LeaderElector(
        client,
        Election(
            names=("lead",),
            namespace="ns",
            identity=identity,
            lease_seconds=lease,
            renew_deadline=deadline,
            retry_period=retry_period,
        ),
    )


async def forever() -> None:
    await asyncio.Event().wait()


async def test_a_leader_renews_and_in_the_end_gives_up_its_lease() -> None:
    """The lease names the leader while it works, and nobody afterwards."""
    async with pair() as (server, client):

        async def work(_: object = None) -> None:
            renewed = server.objects[LEASE]["spec"]["renewTime"]
            assert server.objects[LEASE]["spec"]["holderIdentity"] == "me"
            while server.objects[LEASE]["spec"]["renewTime"] == renewed:
                await asyncio.sleep(0.001)

        await elector(client).lead(work)
        assert server.objects[LEASE]["spec"]["holderIdentity"] == ""
        assert server.objects[LEASE]["spec"]["leaseTransitions"] == 1


async def test_a_lease_is_given_up_though_a_renewal_had_no_answer() -> None:
    """The lease was renewed after the leader last heard of it: it is given up in its newest form."""
    async with pair() as (server, client):

        async def work(_: object = None) -> None:
            lease = server.objects[LEASE]
            await server.put(*LEASE, apiVersion=lease["apiVersion"], spec=lease["spec"])

        await elector(client, deadline=60.0, lease=90, retry_period=30.0).lead(work)
        assert server.objects[LEASE]["spec"]["holderIdentity"] == ""


async def test_a_lease_that_keeps_changing_is_left_to_run_out() -> None:
    """And the event loop is not blocked meanwhile: a renewal that is being written could never be read otherwise."""

    class Overtaken(HttpClient):
        async def update(self, *args: Any, **options: Any) -> Any:
            if not is_over:
                return await super().update(*args, **options)
            raise ConflictError(Status(reason="Conflict", code=409))

        async def get(self, *args: Any, **options: Any) -> Any:
            return found if is_over else await super().get(*args, **options)

    is_over = False
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with FakeApiServer().running() as server:
        async with Overtaken(Connection(server.url), retries=NO_RETRIES) as client:

            async def work(_: object = None) -> None:
                nonlocal is_over, found
                found, is_over = server.objects[LEASE], True

            found: Any = None
            counting = asyncio.create_task(count_turns())
            await elector(client, deadline=60.0, lease=90, retry_period=30.0).lead(work)
            counting.cancel()
        assert server.objects[LEASE]["spec"]["holderIdentity"] == "me"
        assert turns > 20


async def test_a_silent_holder_is_succeeded() -> None:
    """A lease that is not renewed for its duration is free."""
    async with pair() as (server, client):
        spec = {"holderIdentity": "gone", "leaseDurationSeconds": 1, "leaseTransitions": 4}
        await server.put("leases", "ns", "lead", apiVersion="coordination.k8s.io/v1", spec=spec)
        led = []

        async def work(_: object = None) -> None:
            led.append(server.objects[LEASE]["spec"]["leaseTransitions"])

        await elector(client).lead(work)
        assert led == [5]


async def test_a_leader_whose_lease_was_taken_stops() -> None:
    """Work is cancelled when somebody else holds the lease."""
    async with pair() as (server, client):
        cancelled = asyncio.Event()

        async def work(_: object = None) -> None:
            try:
                lease = server.objects[LEASE]
                spec = lease["spec"] | {"holderIdentity": "thief"}
                await server.put("leases", "ns", "lead", **{**lease, "spec": spec})
                await forever()
            finally:
                cancelled.set()

        with pytest.raises(LeadershipLostError, match="thief"):
            await elector(client, deadline=3600, lease=7200).lead(work)
        assert cancelled.is_set()
        assert server.objects[LEASE]["spec"]["holderIdentity"] == "thief"


async def test_a_leader_that_cannot_renew_stops() -> None:
    """Without a server, leadership ends by itself, before anybody else may take the lease."""
    async with pair() as (server, client):

        async def work(_: object = None) -> None:
            server.inject(Answer(500, "oops"), times=10_000)
            await forever()

        with pytest.raises(LeadershipLostError, match="ns/lead could not be renewed in time"):
            await elector(client, deadline=0.05).lead(work)


async def test_what_the_work_raises_is_raised_and_the_lease_given_up() -> None:
    """A leader that fails lets the next one in at once."""
    async with pair() as (server, client):

        async def work(_: object = None) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await elector(client).lead(work)
        assert server.objects[LEASE]["spec"]["holderIdentity"] == ""


async def test_cancelling_a_leader_gives_up_its_lease() -> None:
    """A clean shutdown does not make the others wait."""
    async with pair() as (server, client):
        working = asyncio.Event()

        async def work(_: object = None) -> None:
            working.set()
            await forever()

        leading = asyncio.create_task(elector(client).lead(work))
        await working.wait()
        leading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leading
        assert server.objects[LEASE]["spec"]["holderIdentity"] == ""


async def test_of_many_candidates_one_works_at_a_time() -> None:
    """Whatever the order, two never lead together, and everybody gets a turn."""
    async with pair() as (_, client):
        working = 0
        turns: list[str] = []

        async def lead(identity: str) -> None:
            async def work(_: object = None) -> None:
                nonlocal working
                working += 1
                assert working == 1
                await asyncio.sleep(0.002)
                turns.append(identity)
                working -= 1

            await elector(client, identity).lead(work)

        await asyncio.gather(*(lead(f"candidate-{index}") for index in range(6)))
        assert sorted(turns) == [f"candidate-{index}" for index in range(6)]


def test_times_that_cannot_work_are_refused() -> None:
    """A leader must notice that it lost before another may begin."""
    with pytest.raises(ValueError, match="renew deadline < lease duration"):
        Election(names=("a",), namespace="b", identity="c", lease_seconds=10, renew_deadline=10)


def elector_of(client: HttpClient, identity: str, *names: str, **options: Any) -> LeaderElector:
    terms = Election(
        names=names,
        namespace="ns",
        identity=identity,
        lease_seconds=90,
        renew_deadline=60.0,
        retry_period=0.01,
    )
    return LeaderElector(client, terms, **options)


def holders_of(server: FakeApiServer, *names: str) -> list[str]:
    return [server.objects["leases", "ns", name]["spec"]["holderIdentity"] for name in names]


async def steal(server: FakeApiServer, name: str, holder: str) -> None:
    lease = server.objects["leases", "ns", name]
    spec = lease["spec"] | {"holderIdentity": holder, "leaseDurationSeconds": 3600}
    await server.put("leases", "ns", name, **{**lease, "spec": spec})


async def test_a_candidate_works_with_the_leases_that_are_free() -> None:
    """And with the others too as soon as their holder gives them up."""
    async with pair() as (server, client):
        terms: asyncio.Queue[frozenset[str]] = asyncio.Queue()
        found: list[dict[str, str]] = []

        async def work(held: frozenset[str]) -> None:
            await terms.put(held)
            await forever()

        first = asyncio.create_task(elector_of(client, "first", "b").lead(work))
        assert await terms.get() == {"b"}
        both = asyncio.create_task(
            elector_of(client, "both", "b", "a", report=lambda each: found.append({**each})).lead(
                work
            )
        )
        assert await terms.get() == {"a"}
        assert found[-1] == {"a": "both", "b": "first"}
        first.cancel()
        assert await terms.get() == {"a", "b"}
        assert (holders_of(server, "a", "b"), found[-1]) == (
            ["both"] * 2,
            dict.fromkeys("ab", "both"),
        )
        both.cancel()
        await asyncio.wait((first, both))
        assert (holders_of(server, "a", "b"), found[-1]) == ([""] * 2, dict.fromkeys("ab", ""))


async def test_a_leader_that_loses_one_of_its_leases_goes_on_with_the_others() -> None:
    """It ends when the last is lost."""
    async with pair() as (server, client):
        terms: list[list[str]] = []
        at_work = 0

        async def work(held: frozenset[str]) -> None:
            nonlocal at_work
            at_work += 1
            assert at_work == 1
            terms.append(sorted(held))
            try:
                await steal(server, max(held), "thief")
                await forever()
            finally:
                at_work -= 1

        with pytest.raises(LeadershipLostError, match="ns/a, ns/b was lost to 'thief'"):
            await elector_of(client, "me", "a", "b").lead(work)
        assert terms == [["a", "b"], ["a"]]
        assert holders_of(server, "a", "b") == ["thief", "thief"]


async def test_candidates_with_overlapping_wishes_leave_nothing_undone() -> None:
    """However their wishes overlap, and never do two the same thing."""
    async with pair() as (_, client):
        doing: dict[str, str] = {}
        complete = asyncio.Event()

        def work_of(identity: str) -> Any:
            async def work(held: frozenset[str]) -> None:
                assert not held & doing.keys()
                doing.update(dict.fromkeys(held, identity))
                if len(doing) == 3:
                    complete.set()
                try:
                    await forever()
                finally:
                    for name in held:
                        del doing[name]

            return work

        wishes = {"x": "ab", "y": "bc", "z": "ca"}
        candidates = [
            asyncio.create_task(elector_of(client, who, *names).lead(work_of(who)))
            for who, names in wishes.items()
        ]
        async with asyncio.timeout(PATIENCE_S):
            await complete.wait()
        for candidate in candidates:
            candidate.cancel()
        ended = await asyncio.gather(*candidates, return_exceptions=True)
        assert {type(each) for each in ended} == {asyncio.CancelledError}


async def test_a_lease_counts_from_before_its_renewal_was_sent() -> None:
    """A renewal whose answer took longer than the deadline holds nothing: others may have counted from when it was written."""

    class Slow(HttpClient):
        async def create(self, *args: Any, **options: Any) -> Any:
            written = await super().create(*args, **options)
            clock.append(loop.time())
            loop.time = lambda: clock[0] + 0.6  # type: ignore[method-assign]
            return written

    loop = asyncio.get_running_loop()
    clock: list[float] = []
    async with (
        FakeApiServer().running() as server,
        Slow(Connection(server.url), retries=NO_RETRIES) as client,
    ):
        candidate = elector(client, deadline=0.5)
        try:
            for lease in candidate._leases:
                await lease.acquire()
            assert holders_of(server, "lead") == ["me"]
            assert candidate.held == frozenset()
        finally:
            del loop.time  # type: ignore[method-assign]


async def test_a_successor_with_the_same_identity_does_not_wait() -> None:
    """Its predecessor was killed, and its lease is not over for an hour: no other could be meant."""
    async with pair() as (server, client):
        spec = {"holderIdentity": "me", "leaseDurationSeconds": 3600, "leaseTransitions": 4}
        await server.put(*LEASE, apiVersion="coordination.k8s.io/v1", spec=spec)
        led = []

        async def work(_: object = None) -> None:
            led.append(server.objects[LEASE]["spec"]["leaseTransitions"])

        await elector(client).lead(work)
        assert led == [4]
