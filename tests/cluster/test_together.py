"""Many writes in few transactions: those that can be made are, and one that is refused concerns nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.fake_apiserver import Answer, Drop, FakeApiServer, Seen, status
from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.backend import ServerBackend
from drayman.cluster import Client, CreateWrite, HttpClient, InProcessClient
from drayman.cluster.embedded import Store
from drayman.cluster.errors import (
    AlreadyExistsError,
    ClusterError,
    ConflictError,
    ForbiddenError,
    UnreachableError,
)
from drayman.cluster.kube.connection import Connection
from drayman.cluster.kube.retries import NO_RETRIES
from drayman.cluster.resources import CONFIG_MAPS, JsonObject
from drayman.cluster.together import LARGEST, Bundle, write_in_turn, write_together
from drayman.cluster.writes import PartsWrite, Write
from rounds import rounds

TAKEN = "taken"


class Counting(InProcessClient):
    """Counts transactions, and the writes of each."""

    def __init__(self, backend: ServerBackend) -> None:
        super().__init__(backend)
        self.sizes: list[int] = []

    async def write_many(self, writes: Sequence[Write]) -> tuple[object, ...]:
        self.sizes.append(len(writes))
        return await super().write_many(writes)

    async def write_all(self, writes: Sequence[Write]) -> None:
        self.sizes.append(len(writes))
        await super().write_all(writes)


@asynccontextmanager
async def embedded() -> AsyncIterator[Counting]:
    """An embedded server in which a name is taken."""
    with Store.open(None) as store:
        core = make_server(store).core
        await create_first_objects(core)
        client = Counting(ServerBackend(core))
        await client.create(CONFIG_MAPS, config_map(TAKEN), "default")
        yield client


@asynccontextmanager
async def over_http() -> AsyncIterator[tuple[FakeApiServer, HttpClient]]:
    async with (
        FakeApiServer().running() as server,
        HttpClient(Connection(server.url), retries=NO_RETRIES) as client,
    ):
        yield server, client


def config_map(name: str) -> JsonObject:
    return {"metadata": {"name": name}}


def create(name: str) -> CreateWrite[JsonObject]:
    return CreateWrite(CONFIG_MAPS, config_map(name), "default")


@dataclass(slots=True)
class Heard:
    """What bundles, by their number, hear."""

    written: list[tuple[int, list[str]]] = field(default_factory=list)
    refused: list[tuple[int, ClusterError]] = field(default_factory=list)

    def bundle(self, number: int, *names: str) -> Bundle:
        return Bundle(
            [create(name) for name in names],
            lambda error: self.refused.append((number, error)),
            partial(self._note_written, number),
        )

    def _note_written(self, number: int, answers: Sequence[object]) -> None:
        names = [CONFIG_MAPS.codec.identity(answer).name for answer in answers]  # type: ignore[arg-type]
        self.written.append((number, names))


async def names_in_order(client: Client) -> list[str]:
    """What was created, in the order of the revisions."""
    found = (await client.list(CONFIG_MAPS, "default")).items
    made = sorted(found, key=lambda each: int(CONFIG_MAPS.codec.identity(each).resource_version))
    names = [CONFIG_MAPS.codec.identity(each).name for each in made]
    return [name for name in names if name.startswith("x")]


BUNDLES = st.lists(
    st.tuples(st.integers(0, 3), st.none() | st.integers(0, 2)), min_size=1, max_size=12
)
"""How many writes each bundle has, and after how many of those comes one that the server refuses."""


@settings(max_examples=rounds(25), deadline=None)
@given(BUNDLES, st.integers(1, 12))
def test_all_that_can_be_written_is_and_nothing_of_the_rest(
    sizes: list[tuple[int, int | None]], largest: int
) -> None:
    """Each bundle is written as a whole or not at all, in order, and hears of it once; a refusal touches no other bundle."""

    async def run() -> None:
        heard, wanted, bundles = Heard(), [], []
        for number, (size, refused_after) in enumerate(sizes):
            names = [f"x{number}-{each}" for each in range(size)]
            if refused_after is None:
                wanted.append((number, names))
            else:
                names.insert(min(refused_after, size), TAKEN)
            bundles.append(heard.bundle(number, *names))
        async with embedded() as client:
            await write_together(client, bundles, largest=largest)
            assert heard.written == wanted
            refused = [number for number, (_, after) in enumerate(sizes) if after is not None]
            assert [number for number, _ in heard.refused] == refused
            assert all(isinstance(error, AlreadyExistsError) for _, error in heard.refused)
            written = [name for _, names in wanted for name in names]
            assert await names_in_order(client) == written
            whole = max(len(bundle.writes) for bundle in bundles)
            assert max(client.sizes, default=0) <= max(largest, whole)

    asyncio.run(run())


async def test_changes_share_transactions() -> None:
    """What nobody refuses takes as few transactions as its bound allows."""
    async with embedded() as client:
        heard = Heard()
        await write_together(client, [heard.bundle(n, f"x{n}") for n in range(LARGEST + 1)])
        assert client.sizes == [LARGEST, 1]


async def test_a_culprit_is_found_by_halves() -> None:
    """One bundle among many that is refused costs transactions by the logarithm of their number."""
    async with embedded() as client:
        heard = Heard()
        names = [f"x{n}" for n in range(16)]
        names[5] = TAKEN
        await write_together(client, [heard.bundle(n, name) for n, name in enumerate(names)])
        assert [number for number, _ in heard.refused] == [5]
        assert client.sizes == [16, 8, 4, 4, 2, 1, 1, 2, 8]


async def test_a_conflict_is_a_refusal_like_any_other() -> None:
    """A bundle that was decided on an older version hears so; those beside it are made."""
    async with embedded() as client:
        old = await client.get(CONFIG_MAPS, TAKEN, "default")
        await client.update(CONFIG_MAPS, {**old, "data": {"by": "another"}})
        heard = Heard()
        stale = Bundle(
            [PartsWrite.of(CONFIG_MAPS, old, {("data",): {"by": "us"}})],
            lambda error: heard.refused.append((1, error)),
        )
        await write_together(client, [heard.bundle(0, "x0"), stale, heard.bundle(2, "x2")])
        assert [number for number, _ in heard.written] == [0, 2]
        ((_, error),) = heard.refused
        assert isinstance(error, ConflictError)
        now = await client.get(CONFIG_MAPS, TAKEN, "default")
        assert now["data"] == {"by": "another"}


async def test_a_listener_that_raises_ends_it() -> None:
    """What a refusal makes its listener raise is raised, and bundles behind it are not tried."""
    async with embedded() as client:

        def refused(error: ClusterError) -> None:
            raise error

        heard = Heard()
        bad = Bundle([create(TAKEN)], refused)
        with pytest.raises(AlreadyExistsError):
            await write_together(
                client, [heard.bundle(0, "x0"), bad, heard.bundle(2, "x2")], largest=1
            )
        assert await names_in_order(client) == ["x0"]


async def test_a_closed_client_is_not_asked_twice() -> None:
    """Without an answer there is nothing to be found by halves: every bundle hears that there was none."""
    async with embedded() as client:
        await client.close()
        heard = Heard()
        await write_together(client, [heard.bundle(n, f"x{n}") for n in range(4)], largest=2)
        assert client.sizes == [2]
        assert [number for number, _ in heard.refused] == [0, 1, 2, 3]
        assert all(isinstance(error, UnreachableError) for _, error in heard.refused)


def names_of(server: FakeApiServer) -> list[str]:
    return [name for _, _, name in server.objects]


def creates(name: str):
    def applies(seen: Seen) -> bool:
        return seen.method == "POST" and f'"{name}"'.encode() in seen.body

    return applies


async def test_without_transactions_each_change_is_written_for_itself() -> None:
    """Over HTTP a refusal costs no request more: what was written before it stays and is not written again."""
    async with over_http() as (server, client):
        server.inject(Answer(403, status(403, "Forbidden")), when=creates("x1"))
        heard = Heard()
        await write_together(client, [heard.bundle(n, f"x{n}") for n in range(3)])
        assert [number for number, _ in heard.written] == [0, 2]
        ((number, error),) = heard.refused
        assert number == 1
        assert isinstance(error, ForbiddenError)
        assert [seen.method for seen in server.seen] == ["POST", "POST", "POST"]


async def test_after_a_lost_connection_nothing_more_is_tried() -> None:
    """A write whose answer is lost may have been done: it hears that nobody knows, and so do those behind it, which were not sent."""
    async with over_http() as (server, client):
        server.inject(Drop(after=True), when=creates("x1"))
        heard = Heard()
        await write_together(client, [heard.bundle(n, f"x{n}") for n in range(4)])
        assert [number for number, _ in heard.written] == [0]
        assert [number for number, _ in heard.refused] == [1, 2, 3]
        for _, error in heard.refused:
            assert isinstance(error, UnreachableError)
            assert error.outcome_unknown
        assert names_of(server) == ["x0", "x1"]
        assert len(server.seen) == 2


async def test_in_turn_is_all_or_nothing_where_there_are_transactions() -> None:
    """In one transaction nothing is left of writes of which one is refused."""
    async with embedded() as client:
        with pytest.raises(AlreadyExistsError):
            await write_in_turn(client, [create("x0"), create(TAKEN), create("x1")])
        assert await names_in_order(client) == []


async def test_in_turn_leaves_what_was_written_where_there_are_none() -> None:
    """Over HTTP a refusal ends it, and what came before it is not taken back."""
    async with over_http() as (server, client):
        server.inject(Answer(403, status(403, "Forbidden")), when=creates("x1"))
        with pytest.raises(ForbiddenError):
            await write_in_turn(client, [create("x0"), create("x1"), create("x2")])
        assert names_of(server) == ["x0"]
