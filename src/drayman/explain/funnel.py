"""The funnel: nodes and devices left after each test, over the whole cluster, for each request and each of its alternatives.

At node fit, every node that passes counts; after that a node counts while it has a device left, and at the count while it has enough
for the request. Devices are counted once, even where several nodes can use them. Tests about capacity, counters and features are listed
where they are asked for or take something away.
Where every request finds nodes and the pod still fits nowhere, a last step says so: no node serves all requests together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from drayman.allocator.refusals.funnel import left_out
from drayman.allocator.refusals.sieve import Hurdle, Sieve
from drayman.explain.answer import Funnel, Step
from drayman.explain.counting import SharedDevices, Tally
from drayman.explain.survey import Outlook, Site, Survey
from drayman.inventory.bitsets import positions
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.identity import DeviceId
from drayman.inventory.view import NodeView
from drayman.reasons.causes import FitTest
from drayman.reasons.naming import claim_title, taint_title

NODE_FIT: Final = "node fit"
TOGETHER: Final = "together"
_ONLY_IF_LOST: Final = (Hurdle.FEATURE, Hurdle.CAPACITY, Hurdle.COUNTERS)


def node_fit_steps(survey: Survey) -> tuple[Step, ...]:
    """The tests before devices that some node fails, in order, with what is left after each."""
    shared = SharedDevices(_all_hardware(survey))
    left = list(survey.sites)
    steps: list[Step] = []
    for test in FitTest:
        failed = [site for site in left if site.unfit is not None and site.unfit.test is test]
        if failed:
            left = [site for site in left if site.unfit is None or site.unfit.test is not test]
            reasons = Counter(why for site in failed if site.unfit for why in site.unfit.reasons)
            devices = _devices_on(left, shared).total
            step = Step(test=test.value, nodes=len(left), devices=devices, lost=dict(reasons))
            steps.append(step)
    return tuple(steps)


def funnels(survey: Survey, *, refused: bool = True) -> tuple[Funnel, ...]:
    """One funnel for each request and alternative, in the order of the claims. `refused`: a search has found that no node does."""
    shared = SharedDevices(_all_hardware(survey))
    rows: dict[tuple[str, str], _Row] = {}
    for outlook in survey.outlooks:
        for request, alternatives in enumerate(outlook.now):
            for sieve in alternatives:
                claim = claim_title(outlook.wanted.claims[sieve.wanted.claim])
                key = (claim, sieve.wanted.name)
                row = rows.setdefault(key, _Row(claim, request, sieve))
                row.add(outlook, sieve, shared)
    made = list(rows.values())
    if refused and _each_finds_nodes(made):
        for row in made:
            row.steps.append(_Count(Hurdle.COUNT, TOGETHER))
    return tuple(row.funnel() for row in made)


def _each_finds_nodes(rows: Sequence[_Row]) -> bool:
    served = {(row.claim, row.request) for row in rows if row.steps[-1].nodes}
    return bool(rows) and all((row.claim, row.request) in served for row in rows)


def _all_hardware(survey: Survey) -> Iterable[NodeHardware]:
    return (hardware for site in survey.sites for hardware in _hardware_of(site.view))


def _hardware_of(view: NodeView) -> tuple[NodeHardware, ...]:
    if not view.left_out:
        return (view.hardware,)
    return (view.hardware, *(usage.hardware for usage in view.left_out))


def _devices_on(sites: Iterable[Site], shared: SharedDevices) -> Tally:
    tally = Tally()
    for hardware in dict.fromkeys(h for site in sites for h in _hardware_of(site.view)):
        shared.count(tally, hardware, hardware.everything & hardware.selects_node)
    return tally


@dataclass(slots=True)
class _Count:
    """One step, counted over outlooks."""

    test: Hurdle
    title: str
    detail: str = ""
    nodes: int = 0
    devices: Tally = field(default_factory=Tally)
    lost: Counter[str] = field(default_factory=Counter)
    listed: set[DeviceId] = field(default_factory=set)
    """The devices that are seen from several nodes and are counted among the lost ones."""

    def step(self) -> Step:
        found = [(why, number) for why, number in self.lost.items() if number]
        lost = dict(sorted(found, key=lambda item: (-item[1], item[0])))
        return Step(
            test=self.title,
            nodes=self.nodes,
            devices=self.devices.total,
            detail=self.detail,
            lost=lost,
        )


class _Row:
    """The funnel of one request while it is counted."""

    def __init__(self, claim: str, request: int, sieve: Sieve) -> None:
        self.claim = claim
        self.request = request
        self._name = sieve.wanted.name
        self._wanted = 0 if sieve.all_of is not None else sieve.number
        self._seen: set[NodeHardware] = set()
        self.steps = [
            _Count(Hurdle.CLASS, NODE_FIT),
            *(_Count(p.test, p.test.value, p.detail) for p in sieve.passed),
        ]

    def add(self, outlook: Outlook, sieve: Sieve, shared: SharedDevices) -> None:
        """Count the nodes of one outlook that pass node fit."""
        sites = outlook.fitting
        if not sites:
            return
        tracks = _tracks(sites, sieve)
        # Nodes that can use the same devices have their hardware in common: it is counted once.
        fresh = [(h, left) for h, left in tracks.items() if h not in self._seen]
        for index, step in enumerate(self.steps):
            if not index or any(left[index] for left in tracks.values()):
                step.nodes += len(sites)
            for hardware, left in fresh:
                shared.count(step.devices, hardware, left[index])
        views = {site.view.hardware: site.view for site in sites}
        for hardware, view in views.items():
            if hardware not in self._seen:
                self._count_lost(sieve, view, shared)
        self._seen.update(tracks)

    def _count_lost(self, sieve: Sieve, view: NodeView, shared: SharedDevices) -> None:
        before = sieve.everything
        for step, passed in zip(self.steps[1:], sieve.passed, strict=True):
            for why, devices in passed.lost:
                fresh = shared.fresh(step.listed, view.hardware, devices)
                step.lost[why] += fresh.bit_count()
            lost = before & ~passed.devices
            if lost and passed.test is Hurdle.TAINTS:
                fresh = shared.fresh(step.listed, view.hardware, lost)
                step.lost.update(_taints_of(view, fresh, sieve))
            before = passed.devices

    def funnel(self) -> Funnel:
        steps = [self.steps[0]]
        for step in self.steps[1:]:
            is_idle = steps[-1].devices.total == step.devices.total
            if step.test is Hurdle.CAPACITY and step.detail:
                is_idle = False  # it was asked for
            if step.test not in _ONLY_IF_LOST or not is_idle:
                steps.append(step)
        return Funnel(
            claim=self.claim,
            request=self._name,
            wanted=self._wanted,
            steps=tuple(step.step() for step in steps),
        )


def _tracks(sites: Sequence[Site], sieve: Sieve) -> dict[NodeHardware, tuple[int, ...]]:
    """For each hardware, what is left of its devices after node fit and after each test."""
    shown = (sieve.everything, *(passed.devices for passed in sieve.passed))
    tracks = {site.view.hardware: shown for site in sites}
    for site in sites:
        if site.view.left_out:
            for hardware, bits in left_out(site.view, sieve):
                if hardware not in tracks:
                    tracks[hardware] = (hardware.everything & hardware.selects_node, *bits)
    return tracks


def _taints_of(view: NodeView, devices: int, sieve: Sieve) -> Iterable[str]:
    """The taints that keep each of these devices from the request."""
    taints = view.hardware.taints(view.taints[0].rules)
    for position in positions(devices):
        record = view.hardware.records[position]
        for taint in taints.untolerated(record, sieve.wanted.spec.tolerations):
            yield taint_title(*taint)
