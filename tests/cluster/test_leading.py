"""Leader election: one leads, nobody leads on a lease that was lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from cluster.fake_apiserver import Answer, FakeApiServer
from drayman.cluster import Election, HttpClient, LeaderElector
from drayman.cluster.errors import LeadershipLostError
from drayman.cluster.kube.connection import Connection
from drayman.cluster.kube.retries import NO_RETRIES

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
    deadline: float = 0.5,
    lease: int = 1,
    retry_period: float = 0.01,
) -> LeaderElector:
    return LeaderElector(
        client,
        Election(
            name="lead",
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

        async def work() -> None:
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

        async def work() -> None:
            lease = server.objects[LEASE]
            await server.put(*LEASE, apiVersion=lease["apiVersion"], spec=lease["spec"])

        await elector(client, deadline=60.0, lease=90, retry_period=30.0).lead(work)
        assert server.objects[LEASE]["spec"]["holderIdentity"] == ""


async def test_a_silent_holder_is_succeeded() -> None:
    """A lease that is not renewed for its duration is free."""
    async with pair() as (server, client):
        spec = {"holderIdentity": "gone", "leaseDurationSeconds": 1, "leaseTransitions": 4}
        await server.put("leases", "ns", "lead", apiVersion="coordination.k8s.io/v1", spec=spec)
        led = []

        async def work() -> None:
            led.append(server.objects[LEASE]["spec"]["leaseTransitions"])

        await elector(client).lead(work)
        assert led == [5]


async def test_a_leader_whose_lease_was_taken_stops() -> None:
    """Work is cancelled when somebody else holds the lease."""
    async with pair() as (server, client):
        cancelled = asyncio.Event()

        async def work() -> None:
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

        async def work() -> None:
            server.inject(Answer(500, "oops"), times=10_000)
            await forever()

        with pytest.raises(LeadershipLostError):
            await elector(client, deadline=0.05).lead(work)


async def test_what_the_work_raises_is_raised_and_the_lease_given_up() -> None:
    """A leader that fails lets the next one in at once."""
    async with pair() as (server, client):

        async def work() -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await elector(client).lead(work)
        assert server.objects[LEASE]["spec"]["holderIdentity"] == ""


async def test_cancelling_a_leader_gives_up_its_lease() -> None:
    """A clean shutdown does not make the others wait."""
    async with pair() as (server, client):
        working = asyncio.Event()

        async def work() -> None:
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
            async def work() -> None:
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
        Election(name="a", namespace="b", identity="c", lease_seconds=10, renew_deadline=10)
