"""Everything about a group of pods, of any kind that states gangs."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Final

import msgspec

from drayman.api.core import Pod
from drayman.api.pods import is_finished
from drayman.explain.answer import PLACED, Explanation, GangAnswer
from drayman.explain.estimates import Prospect, Prospects
from drayman.explain.gang import GangFinding, Gangs
from drayman.explain.pod import explain_member, explained
from drayman.explain.promised import Reserved, reserved_in, with_room_kept
from drayman.explain.shares import with_share
from drayman.explain.workload import Whole, explain_pods
from drayman.placement.gangs.book import GroupObject, key_of_group, ranked
from drayman.placement.gangs.gang import GangKey
from drayman.placement.world import World
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.waiting import held_by_itself, unscheduled
from drayman.reasons.wording import counted

_KIND: Final = "PodGroup"


def explain_group(world: World, group: GroupObject) -> Explanation:
    """Why the gang waits, or where it runs. The pods of a group that is not a gang are on their own."""
    key = key_of_group(group)
    pods = _pods(world, key)
    waiting = [p for p in pods if not p.spec.node_name and held_by_itself(p) is None]
    with (
        reserved_in(world) as reserved,
        reserved.as_seen_by(waiting[0]) if waiting else nullcontext(),
    ):
        gangs = Gangs(world)
        found = gangs.find(key)
        answer = None if found is None else gangs.answer(found)
        if found is not None and answer is not None and not _is_placed(found, answer):
            return _of_gang(world, group, gangs, found, answer, waiting, reserved)
    if answer is None:
        if pods:
            return explain_pods(world, Whole(_KIND, "pod group", group.metadata), pods)
        text = "The group is not a gang, and no pod is in it."
        return explained(world, _KIND, group.metadata, Headline.of(Reason.RUNS, text))
    # All of it has been placed: what is wrong is what is wrong with its pods.
    told = explain_pods(world, Whole(_KIND, "pod group", group.metadata), pods)
    parts = tuple(msgspec.structs.replace(part, gang=None) for part in told.parts)
    return msgspec.structs.replace(told, gang=answer, parts=parts)


def _is_placed(found: GangFinding, answer: GangAnswer) -> bool:
    """Whether there is nothing left to decide about a gang, and some pod of it is on a node without running."""
    return found.outcome is None and any(member.state == PLACED for member in answer.members)


def _of_gang(
    world: World,
    group: GroupObject,
    gangs: Gangs,
    found: GangFinding,
    answer: GangAnswer,
    waiting: list[Pod],
    reserved: Reserved,
) -> Explanation:
    prospect = Prospects(world, reserved.nominations).of(waiting[0]) if waiting else Prospect()
    first_line = prospect.held or _headline(found, answer)
    if found.refusal is not None:
        if waiting:
            first_line = reserved.with_workloads(first_line, waiting[0])
        first_line = with_room_kept(world, first_line, waiting)
        first_line = with_share(world, first_line, waiting[0]) if waiting else first_line
    if waiting:
        first_line = unscheduled(world, waiting[0], first_line)
    base = explained(world, _KIND, group.metadata, first_line)
    if found.refusal is not None and waiting:
        first = explain_member(world, waiting[0], gangs, found, reserved)
        changes = {"remedies": first.remedies, "untried": first.untried}
        base = msgspec.structs.replace(base, **changes)
    return msgspec.structs.replace(base, gang=answer, estimate=prospect.start(first_line))


def _pods(world: World, key: GangKey) -> list[Pod]:
    book = world.state.gangs
    members = [*ranked(book.waiting(key)), *ranked(book.placed(key))]
    return [member.pod for member in members if not is_finished(member.pod)]


def _headline(found: GangFinding, answer: GangAnswer) -> Headline:
    if found.outcome is None:
        runs = sum(member.has_node for member in answer.members)
        done = sum(member.state == "done" for member in answer.members)
        text = f"{counted(runs, 'pod')} of {found.key} {_have(runs)}{answer.where}."
        if done:
            text = f"{text} {counted(done, 'pod')} {'has' if done == 1 else 'have'} finished."
        return Headline.of(Reason.RUNS, text)
    if found.starts:
        left = sum(member.state == "no room" for member in answer.members)
        rest = f"; there is no room for {left:,} more" if left else ""
        text = f"{counted(len(found.seats), 'pod')} of {found.key} can start{rest}."
        return Headline.of(Reason.FITS, text)
    assert found.refusal is not None
    return found.refusal.headline


def _have(number: int) -> str:
    return "has a node" if number == 1 else "have their nodes"
