"""Gangs for whose members room is kept."""

from __future__ import annotations

from drayman.api.codec import convert
from drayman.api.resource import AllocationResult
from scheduler.laws.yard import Work, Yard


def kept(device: str) -> tuple[AllocationResult, ...]:
    """What a claim of one device would get."""
    results = [{"request": "r0", "driver": "gpu.example.com", "pool": "n0", "device": device}]
    return (convert(AllocationResult, {"devices": {"results": results}}),)


def test_members_may_get_what_was_kept_for_each_other() -> None:
    """Each member is kept the device that the other one gets."""
    yard = Yard([(2, 4)])
    gang = Work("gang", arrives=0, pods=2, devices=1, cpu=1, runs=10, declares=False)
    for number, device in enumerate(("d1", "d0")):
        yard.nominations.keep(yard.pod(gang, number), "n0", kept(device))
    yard.arrive(gang)
    yard.decide()
    assert sorted(yard.running) == ["gang-0", "gang-1"]
    assert not yard.nominations
