"""The cluster that a question is asked about: one that runs, with the rules of its API server, or one in a file."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from drayman.cluster.resources import generic
from drayman.placement.followed import RULES
from drayman.questions.errors import QuestionError
from drayman.questions.reading import Reader, read_world

if TYPE_CHECKING:
    from drayman.api.struct import Json
    from drayman.cluster import Client
    from drayman.placement.world import World

DEFAULT_NAMESPACE: Final = "default"
"""For anything that names none, in a cluster for which no namespace was chosen."""


def read_file(name: str, data: bytes) -> World:
    """The cluster in a snapshot; `name` is what errors call the file. Raises QuestionError."""
    from drayman.simulate.snapshot import SnapshotError, read_snapshot

    try:
        return read_snapshot(name, data, now=time.time())
    except SnapshotError as error:
        raise QuestionError(str(error)) from error


async def read_with_rules(
    client: Client,
    namespace: str | None,
    *,
    workloads: bool = False,
    moves: bool = False,
    queues: bool = False,
) -> World:
    """The cluster with what its API server uses when pods are made. Raises MayNotListError and ClusterError."""
    world, (rules, unseen) = await asyncio.gather(
        read_world(client, namespace=namespace, workloads=workloads, moves=moves, queues=queues),
        _read_rules(client, namespace),
    )
    world = world.with_objects(replace(world.objects, rules=rules))
    world.unseen = (*world.unseen, *unseen)
    return world


async def _read_rules(
    client: Client, namespace: str | None
) -> tuple[tuple[dict[str, Json], ...], list[str]]:
    reader = Reader(client, namespace)
    found: list[dict[str, Json]] = []
    for rule in RULES:
        resource = generic(rule.api_version, rule.plural, rule.kind, namespaced=rule.namespaced)
        found += await reader.read(resource, namespace)
    return tuple(found), reader.unseen
