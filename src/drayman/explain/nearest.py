"""The nearest miss: the node that came closest to taking a pod, and what was missing there.

Nodes are compared by these, each deciding where those before it are equal:

 1. how many devices would be missing, over all requests, with nothing in use and nothing tainted, the fewer the better. So a node that
    could serve the pod one day is nearer than one that never could;
 2. how far its devices come even then: the first test that leaves too few for some request, the later the better;
 3. the first test of node fit that it fails, the later the better, and best if it fails none;
 4. how many devices are missing as things are;
 5. how far its devices come as things are;
 6. where resources of the node are short: whether the empty node would have enough, then the part that is missing, the smaller the
    better;
 7. the order of arrival.

Of the alternatives of a request, the one that comes furthest counts. If all requests find enough and the node still refuses, they cannot
be served together; what is missing then is how many more devices a matching of devices to requests would need.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from drayman.allocator.pruning.flow import largest_matching
from drayman.allocator.refusals.sieve import Hurdle, Sieve
from drayman.explain.answer import Miss
from drayman.explain.blocking import Blocking
from drayman.explain.holders import Holders
from drayman.explain.survey import Outlook, Site, Survey
from drayman.inventory.bitsets import positions
from drayman.reasons.causes import FitTest
from drayman.reasons.naming import resource_title
from drayman.reasons.wording import and_list, counted

_ALL_PASSED: Final = len(Hurdle)
_ALL_FIT: Final = len(FitTest)
_Key: TypeAlias = tuple[object, ...]


class DeviceProgress(Struct, frozen=True):
    """How far the devices of a node come."""

    stage: int
    missing: int
    sieves: tuple[Sieve, ...]
    """For each request, the alternative that comes furthest."""


def progress(requests: tuple[tuple[Sieve, ...], ...], shareable: int) -> DeviceProgress:
    """By the request that comes least far; what is missing is added up. `shareable` devices serve many requests."""
    best = tuple(min(alternatives, key=_remoteness) for alternatives in requests if alternatives)
    stage = min((_stage(sieve) for sieve in best), default=_ALL_PASSED)
    missing = sum(sieve.missing for sieve in best)
    if stage == _ALL_PASSED and best:
        missing = _unmatched(best, shareable)
    return DeviceProgress(stage, missing, best)


def _remoteness(sieve: Sieve) -> tuple[int, int]:
    return -_stage(sieve), sieve.missing


def _stage(sieve: Sieve) -> int:
    short = sieve.short_at
    return _ALL_PASSED if short is None else short.test.order


def _unmatched(served: Sequence[Sieve], shareable: int) -> int:
    """How many devices are missing for all requests to have their own."""
    exclusive = [sieve for sieve in served if not sieve.would_do & shareable]
    rows = [sieve.would_do for sieve in exclusive for _ in range(sieve.number)]
    return len(rows) - largest_matching(rows)


def progress_now(outlook: Outlook) -> DeviceProgress:
    """As things are."""
    return progress(outlook.now, outlook.view.hardware.shareable)


def progress_ever(outlook: Outlook) -> DeviceProgress:
    """With nothing in use and nothing tainted."""
    return progress(outlook.ever, outlook.view.hardware.shareable)


def nearest_site(survey: Survey) -> Site | None:
    """The node that came closest."""
    only = survey.demand.only_node
    if only in survey.state.nodes:
        # Devices that the pod has already tie it to this node.
        return next(site for site in survey.sites if site.name == only)
    best: tuple[_Key, Site] | None = None
    for outlook in survey.outlooks:
        site = _nearest_of(survey, outlook)
        ever, now = progress_ever(outlook), progress_now(outlook)
        key = (
            *(ever.missing, -ever.stage, -_fit_stage(site), now.missing, -now.stage),
            *_shortage(survey, site),
            site.node.index,
        )
        if best is None or key < best[0]:
            best = (key, site)
    return None if best is None else best[1]


def _nearest_of(survey: Survey, outlook: Outlook) -> Site:
    """The nearest of nodes whose devices are alike."""
    furthest = max(_fit_stage(site) for site in outlook.sites)
    sites = [site for site in outlook.sites if _fit_stage(site) == furthest]
    return min(sites, key=lambda site: (*_shortage(survey, site), site.node.index))


def _fit_stage(site: Site) -> int:
    return _ALL_FIT if site.unfit is None else site.unfit.test.order


def _shortage(survey: Survey, site: Site) -> tuple[bool, float]:
    """How far a node is from having the resources: whether it is too small, and the largest part that is missing."""
    if site.unfit is None or site.unfit.test is not FitTest.RESOURCES:
        return False, 0.0
    amounts = _amounts(survey, site)
    too_small = any(asked > there for _, asked, _, there in amounts)
    missing = max(((asked - free) / asked for _, asked, free, _ in amounts if asked), default=0.0)
    return too_small, missing


def _amounts(survey: Survey, site: Site) -> list[tuple[str, int, int, int]]:
    """For each resource that is short: the amounts requested, free and in total."""
    if site.unfit is None:
        return []
    pod, node, usage = survey.demand.needs.shape, site.node.facts.shape, site.node.usage
    extended = dict(pod.extended)
    known = {
        "cpu": (pod.cpu, node.cpu - usage.cpu, node.cpu),
        "memory": (pod.memory, node.memory - usage.memory, node.memory),
        "ephemeral-storage": (pod.storage, node.storage - usage.storage, node.storage),
        "pods": (1, node.pods - len(usage.pods), node.pods),
    }
    found = []
    for name in site.unfit.reasons:
        there = node.extended.get(name, 0)
        other = (extended.get(name, 0), there - usage.extended.get(name, 0), there)
        found.append((name, *known.get(name, other)))
    return found


def nearest_miss(survey: Survey, site: Site, known: Holders, *, searched: bool = True) -> Miss:
    """What was missing on a node. `searched`: it is known that the node does not serve all requests together."""
    ever, now = progress_ever(site.outlook), progress_now(site.outlook)
    never = ever.stage < _ALL_PASSED
    would_do: dict[str, None] = {}
    for sieve in now.sieves:
        for position in positions(sieve.would_do):
            would_do[str(site.view.id_of(position))] = None
    blocking = Blocking(site.view, known)
    blocked: dict[str, str] = {}
    for sieve in now.sieves:
        if not sieve.is_enough:
            blocked.update(blocking.reasons(sieve))
    for device in would_do:
        blocked.pop(device, None)
    return Miss(
        node=site.name,
        sentence=_sentence(
            survey, site, ever if never else now, blocking, never=never, searched=searched
        ),
        devices=tuple(would_do),
        missing=now.missing,
        blocked=blocked,
    )


def _sentence(
    survey: Survey,
    site: Site,
    found: DeviceProgress,
    blocking: Blocking,
    *,
    never: bool,
    searched: bool,
) -> str:
    parts = []
    if site.unfit is not None:
        parts.append(_unfit_words(survey, site))
    lacking = [sieve for sieve in found.sieves if not sieve.is_enough]
    # Where several requests together do not meet a constraint, some of them may have what they need.
    lacking = [sieve for sieve in lacking if sieve.missing] or lacking
    claims = site.outlook.wanted.claims
    parts += [blocking.sentence(sieve, claims, never=never) for sieve in lacking]
    if found.sieves and not lacking:
        if site.unfit is not None:
            parts.append("its devices would do")
        else:
            parts.append(_together(survey, site, found, searched))
    return f"Node {site.name}: {'; '.join(parts)}."


def _together(survey: Survey, site: Site, found: DeviceProgress, searched: bool) -> str:
    """For a node on which every request finds devices, and which still does not serve the pod."""
    flaws = [flaw for flaw in site.outlook.wanted.question.pointless if flaw is not None]
    if flaws or survey.demand.impossible is not None:
        return "its devices would do, but the pod cannot have any as it is"
    if not searched:
        return (
            "each request alone would find its devices;"
            " whether all of them would together is not known"
        )
    if len(found.sieves) == 1:
        (sieve,) = found.sieves
        would_do = sieve.would_do.bit_count()
        return f"{would_do} would do, but not {counted(sieve.number, 'device')} at once"
    more = f"; {counted(found.missing, 'more device')} would be needed" if found.missing else ""
    return f"each request alone would find its devices, but not all of them together{more}"


def _unfit_words(survey: Survey, site: Site) -> str:
    unfit = site.unfit
    if unfit is None:
        return ""
    match unfit.test:
        case FitTest.CORDON:
            return "it is cordoned"
        case FitTest.NAME:
            return "the pod names another node"
        case FitTest.TAINTS:
            return f"the pod does not tolerate its taint {unfit.reasons[0]}"
        case FitTest.RESOURCES:
            return and_list([_short_words(*amounts) for amounts in _amounts(survey, site)])
        case FitTest.SELECTOR:
            return "it does not match the pod's node selector or affinity"
        case FitTest.SPREAD | FitTest.NEIGHBOURS | FitTest.SPOT:
            return f"it is {and_list(unfit.reasons)}"
        case _:
            return and_list(unfit.reasons)


def _short_words(name: str, asked: int, free: int, there: int) -> str:
    if name == "pods":
        return f"it already has the {counted(there, 'pod')} that it can have"
    if asked > there:
        return f"{resource_title(name, asked)} {name} wanted, it has {resource_title(name, there)}"
    free = max(free, 0)
    return f"{resource_title(name, asked)} {name} wanted, {resource_title(name, free)} free"
