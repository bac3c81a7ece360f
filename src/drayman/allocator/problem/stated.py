"""The alignments that claims, their pod and their classes state, as groups of what is wanted.

A pod's own statement comes first, then those of the claims in order: annotation, then configuration. What a class states is for requests
of that class together with all others of their claim, and only counts for claims that state nothing themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from drayman.api.alignment import (
    ALIGN,
    DRIVER,
    AlignmentError,
    Ladder,
    StatedGroup,
    ladder_of_parameters,
    stated_groups,
)
from drayman.api.resource import (
    DeviceClaimConfiguration,
    DeviceClass,
    DeviceClassConfiguration,
    ResourceClaim,
)
from drayman.inventory.identity import DeviceId


class AlignedRequests(Struct, frozen=True):
    """Requests that are to be aligned with each other."""

    ladder: Ladder
    claims: tuple[int, ...]
    """Of which claims, by position."""
    names: tuple[tuple[int, str], ...] = ()
    """Claims and requests, or alternatives of them; empty if all requests of the claims are meant."""
    origin: str = "claim"
    """What states it: `claim`, `pod`, or `class` with its name."""
    held: tuple[DeviceId, ...] = ()
    """Devices that other claims of the pod have already, and that the others are to be aligned with."""

    def includes(self, claim: int, name: str) -> bool:
        """Whether a request, or one of its alternatives, is meant."""
        if claim not in self.claims:
            return False
        parent = name.partition("/")[0]
        return not self.names or (claim, name) in self.names or (claim, parent) in self.names


class Misstated(Struct, frozen=True):
    """A statement that does not make sense, and the claim that it is about."""

    claim: int
    text: str


class HeldDevice(Struct, frozen=True):
    """A device that a claim of the pod has already."""

    entry: str
    request: str
    device: DeviceId


class PodAlignment(Struct, frozen=True):
    """What a pod states about the claims of a question."""

    text: str
    """Its annotation."""
    entries: tuple[str, ...]
    """By claim, the name of the pod's entry for it; empty for a claim that the pod does not name."""
    others: frozenset[str] = frozenset()
    """The entries whose claims have their devices already, or that need no claim."""
    held: tuple[HeldDevice, ...] = ()
    """What those have."""


class Statements(Struct, frozen=True):
    """What a question states, apart from classes."""

    groups: tuple[AlignedRequests, ...] = ()
    by_claim: frozenset[int] = frozenset()
    """The claims that a statement is about."""
    misstated: Misstated | None = None
    """The first statement that does not make sense."""
    has_held: bool = False
    """Whether devices that are held already count."""


_NOTHING = Statements()


def statements(claims: Sequence[ResourceClaim], pod: PodAlignment | None) -> Statements:
    """What the claims and their pod state."""
    if pod is None and not any(map(_states_something, claims)):
        return _NOTHING
    groups: list[AlignedRequests] = []
    try:
        if pod is not None:
            groups += _of_pod(claims, pod)
        for index, claim in enumerate(claims):
            groups += _of_claim(claim, index)
    except _MisstatedError as error:
        return Statements(misstated=error.misstated)
    about = frozenset(claim for group in groups for claim in group.claims)
    return Statements(tuple(groups), about, has_held=any(group.held for group in groups))


def of_class(device_class: DeviceClass) -> Iterator[Ladder]:
    """The ladders that a class states. Raises AlignmentError."""
    for config in device_class.spec.config:
        if _is_ours(config):
            yield _ladder(config)


def _states_something(claim: ResourceClaim) -> bool:
    return ALIGN in claim.metadata.annotations or any(map(_is_ours, claim.spec.devices.config))


def _is_ours(config: DeviceClaimConfiguration | DeviceClassConfiguration) -> bool:
    return config.opaque is not None and config.opaque.driver == DRIVER


def _ladder(config: DeviceClaimConfiguration | DeviceClassConfiguration) -> Ladder:
    assert config.opaque is not None  # it is ours
    try:
        return ladder_of_parameters(config.opaque.parameters)
    except AlignmentError as error:
        raise AlignmentError(f"configuration for {DRIVER} {error}") from error


class _MisstatedError(Exception):
    def __init__(self, misstated: Misstated) -> None:
        super().__init__(misstated.text)
        self.misstated = misstated


def _of_claim(claim: ResourceClaim, index: int) -> Iterator[AlignedRequests]:
    known = {request.name for request in claim.spec.devices.requests}
    known |= {name for r in claim.spec.devices.requests for name, _ in r.alternatives()}
    for group in _read(claim.metadata.annotations.get(ALIGN), index, "annotation"):
        for name in group.requests:
            if name not in known:
                raise _MisstatedError(
                    Misstated(index, f"annotation {ALIGN} names {name}, which is not a request")
                )
        yield AlignedRequests(group.ladder, (index,), tuple((index, n) for n in group.requests))
    for config in filter(_is_ours, claim.spec.devices.config):
        try:
            ladder = _ladder(config)
        except AlignmentError as error:
            raise _MisstatedError(Misstated(index, str(error))) from error
        yield AlignedRequests(ladder, (index,), tuple((index, name) for name in config.requests))


def _of_pod(claims: Sequence[ResourceClaim], pod: PodAlignment) -> Iterator[AlignedRequests]:
    everything = tuple(range(len(claims)))
    for group in _read(pod.text, 0, "the pod's annotation"):
        if not group.requests:
            held = tuple(each.device for each in pod.held)
            yield AlignedRequests(group.ladder, everything, origin="pod", held=held)
            continue
        names: list[tuple[int, str]] = []
        for reference in group.requests:
            names += _meant(claims, pod, reference)
        about = tuple(dict.fromkeys(claim for claim, _ in names))
        if about:
            held = tuple(each.device for each in pod.held if _is_meant(each, group.requests))
            yield AlignedRequests(group.ladder, about, tuple(names), "pod", held)


def _is_meant(held: HeldDevice, references: tuple[str, ...]) -> bool:
    parent = held.request.partition("/")[0]
    return held.entry in references or f"{held.entry}/{parent}" in references


def _meant(
    claims: Sequence[ResourceClaim], pod: PodAlignment, reference: str
) -> Iterator[tuple[int, str]]:
    """The requests that a reference in a pod's annotation stands for. Those that are served already do not count."""
    entry, _, wanted = reference.partition("/")
    if entry in pod.others:
        return
    if entry not in pod.entries:
        raise _MisstatedError(
            Misstated(
                0, f"the pod's annotation {ALIGN} names {entry}, which is not one of its claims"
            )
        )
    index = pod.entries.index(entry)
    names = [request.name for request in claims[index].spec.devices.requests]
    if wanted and wanted not in names:
        text = f"the pod's annotation {ALIGN} names {reference}, and the claim has no such request"
        raise _MisstatedError(Misstated(index, text))
    for name in [wanted] if wanted else names:
        yield index, name


def _read(text: str | None, claim: int, what: str) -> tuple[StatedGroup, ...]:
    if text is None:
        return ()
    try:
        return stated_groups(text)
    except AlignmentError as error:
        raise _MisstatedError(Misstated(claim, f"{what} {ALIGN} {error}")) from error
