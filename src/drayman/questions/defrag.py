"""Which moves would make room for what waits in a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from drayman.questions.errors import NamingError
from drayman.questions.explaining import find_object, missing
from drayman.questions.subjects import BENEFICIARIES, POD_GROUP, Target
from drayman.simulate.moving.proposing import MOST_MOVES, propose
from drayman.simulate.moving.units import Unit, waiting_units
from drayman.workloads.makers import makers_of

if TYPE_CHECKING:
    from drayman.api.core import Pod
    from drayman.cluster import Client
    from drayman.placement.world import World
    from drayman.simulate.moving.report import DefragReport


def defrag(
    world: World, subject: Target | None, namespace: str, *, most: int = MOST_MOVES
) -> DefragReport:
    """The cheapest moves that make room, for a subject or for everything that waits and asks for devices. Raises QuestionError.

    `most` is how many pods may be moved for one pod or gang.
    """
    return propose(world, units_of(world, subject, namespace), most=most)


def units_of(world: World, subject: Target | None, namespace: str) -> list[Unit]:
    """The pods and gangs that wait, the most important first: all, or those of a subject. Raises QuestionError."""
    if subject is None:
        return waiting_units(world)
    if subject.kind not in BENEFICIARIES:
        raise NamingError(
            f"room is made for pods: name one of {', '.join(BENEFICIARIES)}, not {subject}."
        )
    if find_object(world, subject, namespace) is None:
        raise missing(world, subject, namespace)
    waiting = [p for p in _pods_of(world, subject, namespace) if _waits(p)]
    return waiting_units(world, waiting)


def _pods_of(world: World, subject: Target, namespace: str) -> Iterator[Pod]:
    gangs = world.state.gangs
    for pod in world.objects.pods:
        if pod.metadata.namespace != namespace:
            continue
        if subject.kind == "pod":
            if pod.metadata.name == subject.name:
                yield pod
        elif subject.kind == POD_GROUP:
            key = gangs.key_of(pod)
            if key is not None and not key.uid and key.name == subject.name:
                yield pod
        elif any((m.kind.lower(), m.name) == (subject.kind, subject.name) for m in makers_of(pod)):
            yield pod


def _waits(pod: Pod) -> bool:
    from drayman.api.pods import is_active

    return not pod.spec.node_name and is_active(pod)


async def read_for_moves(client: Client, subject: Target | None, namespace: str) -> World:
    """As much of the cluster as a proposal needs. Raises MayNotListError and ClusterError."""
    from drayman.questions.reading import read_world

    return await read_world(
        client,
        namespace=namespace,
        engine="drayman.simulate.moving.proposing",
        workloads=subject is not None and subject.needs_workloads,
        moves=True,
    )
