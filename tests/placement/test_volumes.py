"""Volumes that decisions have promised."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from drayman.api.storage import PersistentVolume, PersistentVolumeClaim
from drayman.api.volume_binding import SELECTED_NODE
from drayman.placement.fit import NodeFacts, PodNeeds, VolumeChoice, volume_check
from drayman.placement.volumes import Taken, Volumes
from placement.fit.objects import facts, needs
from placement.fit.storage import HOST, claim, storage_class, volume

Seen = tuple[list[PersistentVolume | None], list[PersistentVolumeClaim | None], list[str]]
NODES = [facts(name, labels={HOST: name}) for name in ("n1", "n2")]


def uses(*names: str) -> PodNeeds:
    return needs(
        volumes=[{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in names],
    )


def cluster(disks: int = 3, claims: int = 3) -> Volumes:
    """Disks on two nodes for claims `local-0` and so on, and claims `fast-0` for which volumes are made."""
    volumes = Volumes()
    volumes.set_class(storage_class())
    volumes.set_class(storage_class("fast", "ebs.csi.aws.com"))
    for number in range(disks):
        volumes.set_volume(volume(f"v{number}", f"{10 + number}Gi", host=f"n{number % 2 + 1}"))
    for number in range(claims):
        volumes.set_claim(claim(f"local-{number}"))
        volumes.set_claim(claim(f"fast-{number}", storageClassName="fast"))
    return volumes


def seen(volumes: Volumes) -> Seen:
    kinds = ("local", "fast")
    return (
        [volumes.volume(f"v{number}") for number in range(3)],
        [volumes.claim("default", f"{kind}-{n}") for kind in kinds for n in range(3)],
        sorted(each.metadata.name for each in volumes.of_class("local")),
    )


def take(volumes: Volumes, pod: PodNeeds, node: NodeFacts) -> Taken | None:
    chosen = volume_check(pod, volumes).choose(node)
    return volumes.take(chosen, node.name) if isinstance(chosen, VolumeChoice) else None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("local-0", "local-1", "local-2", "fast-0", "fast-1")),
            st.sampled_from(NODES),
        ),
        max_size=6,
    )
)
def test_taking_and_giving_back_is_identity(asked: list[tuple[str, NodeFacts]]) -> None:
    """However decisions are taken back, everything is then as it was."""
    volumes = cluster()
    before = seen(volumes)
    taken = [take(volumes, uses(name), node) for name, node in asked]
    for each in reversed(taken):
        if each is not None:
            volumes.give_back(each)
    assert seen(volumes) == before


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(NODES)), max_size=8))
def test_no_volume_is_promised_twice(asked: list[tuple[int, NodeFacts]]) -> None:
    """Whoever asks, in whatever order: a volume has one claim, and a claim one volume or one node."""
    volumes = cluster(claims=6)
    for number, node in asked:
        take(volumes, uses(f"local-{number}"), node)
        take(volumes, uses(f"fast-{number}"), node)
    holders = [v.spec.claim_ref.name for v in volumes.of_class("local") if v.spec.claim_ref]
    assert len(holders) == len(set(holders))


def test_a_pod_that_shares_a_claim_follows_the_first() -> None:
    """The second pod goes where the first one's volume is, has nothing to write and waits for the same."""
    volumes = cluster()
    first = take(volumes, uses("local-0"), NODES[1])
    assert first is not None
    assert take(volumes, uses("local-0"), NODES[0]) is None
    second = take(volumes, uses("local-0"), NODES[1])
    assert second is not None
    assert (second.volumes, second.claims) == ((), ())
    assert [c.metadata.name for c in second.awaited] == ["local-0"]
    made = take(volumes, uses("fast-0"), NODES[1])
    assert made is not None
    assert [c.metadata.annotations[SELECTED_NODE] for c in made.claims] == ["n2"]
    assert take(volumes, uses("fast-0"), NODES[0]) is None
    again = take(volumes, uses("fast-0"), NODES[1])
    assert again is not None
    assert again.claims == ()


def test_what_the_server_says_late_does_not_undo_a_write() -> None:
    """After a write is through, an older version that is still on its way changes nothing."""
    volumes = cluster()
    taken = take(volumes, uses("local-0"), NODES[0])
    assert taken is not None
    (wanted,) = taken.volumes
    older = volumes.known_volume(wanted)
    assert older is not None
    volumes.set_volume(older)
    assert volumes.volume(wanted.metadata.name) is wanted
    written = replace(wanted, metadata=replace(wanted.metadata, resource_version="7"))
    volumes.confirm(written)
    volumes.set_volume(older)
    volumes.give_back(taken)
    assert volumes.volume(wanted.metadata.name) is written


def test_what_has_gone_stays_gone() -> None:
    """The answer to a write about a volume or a claim that was deleted meanwhile does not bring it back."""
    volumes = cluster()
    taken = take(volumes, uses("local-0", "fast-0"), NODES[0])
    assert taken is not None
    (volume_, claim_) = taken.volumes[0], taken.claims[0]
    volumes.remove_volume(volume_)
    volumes.remove_claim(claim_)
    volumes.confirm(volume_)
    volumes.confirm(claim_)
    assert volumes.volume(volume_.metadata.name) is None
    assert volumes.claim("default", "fast-0") is None


@pytest.mark.parametrize("is_written", [True, False], ids=["written", "given back"])
def test_what_has_gone_leaves_others_of_its_name_alone(is_written: bool) -> None:
    """A decision about an object that was deleted is over; one about an object that was created under its name since then is not."""
    volumes = cluster()
    taken = take(volumes, uses("local-0", "fast-0"), NODES[0])
    assert taken is not None
    (volume_, claim_) = taken.volumes[0], taken.claims[0]
    known_volume, known_claim = volumes.known_volume(volume_), volumes.known_claim(claim_)
    assert known_volume is not None
    assert known_claim is not None
    volumes.remove_volume(volume_)
    volumes.remove_claim(claim_)
    volumes.set_volume(replace(known_volume, metadata=replace(known_volume.metadata, uid="new")))
    volumes.set_claim(replace(known_claim, metadata=replace(known_claim.metadata, uid="new")))
    again = take(volumes, uses("local-0", "fast-0"), NODES[0])
    assert again is not None
    if is_written:
        volumes.confirm(volume_)
        volumes.confirm(claim_)
    else:
        volumes.give_back(taken)
    assert volumes.volume(volume_.metadata.name) is again.volumes[0]
    assert volumes.claim("default", "fast-0") is again.claims[0]
