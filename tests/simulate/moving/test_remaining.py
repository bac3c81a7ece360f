"""What is left of a proposal in a cluster that has changed: the steps that come next, or why it does not hold any more."""

from __future__ import annotations

from dataclasses import replace

from msgspec.structs import replace as with_

from drayman.placement.world import World
from drayman.simulate.moving.proposing import propose
from drayman.simulate.moving.remaining import Changed, Rest, remaining
from drayman.simulate.moving.report import Room
from drayman.simulate.moving.units import waiting_units
from simulate.cluster import pod
from simulate.moving.fragments import budget, fragmented, running

PRESENT = [running("x", "a", [0]), running("y", "a", [1])]


def proposed(world: World) -> tuple[Room, ...]:
    report = propose(world, waiting_units(world))
    assert report.fits
    return report.rooms


def next_of(rest: Rest | Changed) -> list[str]:
    """The names of the pods that are moved next."""
    assert isinstance(rest, Rest)
    return [each.metadata.name for step in rest.next for each in step.mover.pods]


def without(world: World, *names: str) -> World:
    """The world in which pods have ended."""
    objects = world.objects
    pods = tuple(p for p in objects.pods if p.metadata.name not in names)
    claims = tuple(
        c for c in objects.claims if c.metadata.name not in {f"{name}-gpu" for name in names}
    )
    return world.with_objects(replace(objects, pods=pods, claims=claims))


def test_steps_that_do_not_depend_on_each_other_are_made_together() -> None:
    """As many as are allowed at once."""
    world = fragmented({"a": 4, "b": 2}, PRESENT, [pod("big", "four")])
    rooms = proposed(world)
    assert next_of(remaining(world, rooms, 16)) == ["x", "y"]
    assert next_of(remaining(world, rooms, 1)) == ["x"]


def test_a_budget_lets_one_go_at_a_time() -> None:
    """Steps that a budget does not allow at the same time are made one after the other."""
    labels = {"metadata": {"labels": {"app": "web"}}}
    world = fragmented(
        {"a": 4, "b": 2},
        [running("x", "a", [0], **labels), running("y", "a", [1], **labels)],
        [pod("big", "four")],
        disruption_budgets=(budget("guard", 1, app="web"),),
    )
    assert next_of(remaining(world, proposed(world), 16)) == ["x"]


def test_pods_that_have_gone_need_not_move() -> None:
    """A pod that has ended by itself is not waited for."""
    world = fragmented({"a": 4, "b": 2}, PRESENT, [pod("big", "four")])
    rooms = proposed(world)
    assert next_of(remaining(without(world, "x"), rooms, 16)) == ["y"]
    assert next_of(remaining(without(world, "x", "y"), rooms, 16)) == []


def test_nothing_is_left_for_who_has_a_node() -> None:
    """Once a pod is placed, no more pods move for it."""
    world = fragmented({"a": 4, "b": 2}, PRESENT, [pod("big", "four")])
    rooms = proposed(world)
    pods = tuple(
        with_(p, spec=with_(p.spec, node_name="b")) if p.metadata.name == "big" else p
        for p in world.objects.pods
    )
    rest = remaining(world.with_objects(replace(world.objects, pods=pods)), rooms, 16)
    assert isinstance(rest, Rest)
    assert (rest.moves, rest.next) == ((), ())


def test_it_does_not_hold_if_the_places_are_taken() -> None:
    """If others have taken the places that the moved pods were to get, the rest does not work, and it says for which pod."""
    world = fragmented({"a": 4, "b": 2}, PRESENT, [pod("big", "four")])
    rooms = proposed(world)
    late = running("late", "b", [0, 1])
    objects = world.objects
    taken = replace(objects, pods=(*objects.pods, late[0]), claims=(*objects.claims, late[1]))
    found = remaining(world.with_objects(taken), rooms, 16)
    assert found == Changed("there is no other place for pod default/x")


def test_it_does_not_hold_if_a_pod_may_not_move_any_more() -> None:
    """A pod that is protected by now stays, and so does the rest."""
    world = fragmented({"a": 4, "b": 2}, PRESENT, [pod("big", "four")])
    rooms = proposed(world)
    guarded = replace(world.objects, disruption_budgets=(budget("all", 0),))
    found = remaining(world.with_objects(guarded), rooms, 16)
    assert found == Changed("pod default/x can no longer be moved")


def test_it_does_not_hold_without_its_beneficiary() -> None:
    """Nothing moves for a pod that is gone."""
    world = fragmented({"a": 4, "b": 2}, PRESENT, [pod("big", "four")])
    rooms = proposed(world)
    found = remaining(without(world, "big"), rooms, 16)
    assert found == Changed("pod big, for which room is made, is gone")
