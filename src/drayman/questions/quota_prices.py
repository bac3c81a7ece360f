"""What manifests would cost in quota, and why: their requests, and their devices as `quota.charging` prices them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.custom_groups import KUEUE, spec_of
from drayman.api.documents import Document, read_documents
from drayman.api.errors import DecodeError
from drayman.api.jobs import Job
from drayman.api.kueue import (
    PodTemplate,
    ResourceFlavor,
    ResourceFlavorSpec,
    pod_template_of,
)
from drayman.api.kueue_workload import PodSet, Workload, WorkloadSpec
from drayman.api.quantity import Format
from drayman.api.struct import ApiStruct
from drayman.api.workloads import DaemonSet
from drayman.cluster import Client
from drayman.cluster.resources import typed
from drayman.placement.fit.requests import requests_of
from drayman.placement.world import World
from drayman.questions.errors import QuestionError
from drayman.questions.manifests import read_manifests
from drayman.questions.reading import Reader
from drayman.quota.amounts import Amounts, plus, quantity_of, times
from drayman.quota.charging.mappings import DeviceClassMappings
from drayman.quota.charging.outcome import Charges, Item, PriceRefusal
from drayman.quota.charging.pricing import DevicePricing
from drayman.quota.charging.rules import Gates, Rules
from drayman.quota.demands import PodSetRequest
from drayman.simulate.expanding import Workload as Planned
from drayman.workloads.queued.composing import CompositionError, pod_sets_of
from drayman.workloads.queued.kinds import BY_KIND, JOB

_MAIN: Final = "main"


class PricedResource(ApiStruct):
    """What a pod set is charged of one resource."""

    name: str
    each: str
    """For each pod."""
    once: str
    """For all of them together, beside that."""
    total: str


class PricedItem(ApiStruct):
    """One request for devices, and what it comes to."""

    source: str
    request: str
    device_class: str
    resource: str
    devices: int
    amount: str
    why: str
    is_shared: bool


class PricedPodSet(ApiStruct):
    name: str
    pods: int
    resources: tuple[PricedResource, ...]
    items: tuple[PricedItem, ...]
    replaced: tuple[str, ...]
    """Resources that containers ask for and that are charged as devices instead."""
    admin_devices: int


class NoPrice(ApiStruct):
    """Why there is no price."""

    reason: str
    condition: str
    """The reason that Kueue's condition QuotaReserved has for it."""
    field: str
    message: str
    may_pass: bool
    """Whether it may have a price later, without being changed."""


class PricedWorkload(ApiStruct):
    """One thing that would be queued."""

    title: str
    namespace: str
    flavor: str
    """The flavor whose devices were looked at; empty for all of the cluster."""
    pod_sets: tuple[PricedPodSet, ...]
    no_price: NoPrice | None = None


class PriceAnswer(ApiStruct):
    workloads: tuple[PricedWorkload, ...]
    ignored: tuple[str, ...] = ()
    """Kinds of objects that are not queued, or not known."""

    @property
    def is_complete(self) -> bool:
        """Whether everything has a price."""
        return all(workload.no_price is None for workload in self.workloads)


@dataclass(frozen=True, slots=True)
class Conditions:
    """What prices are made with."""

    mappings: DeviceClassMappings
    rules: Rules
    gates: Gates
    flavors: Mapping[str, Mapping[str, str]]
    """Node labels of flavors, by name."""
    by_flavor: bool = False


@dataclass(frozen=True, slots=True)
class _Queued:
    title: str
    namespace: str
    pod_sets: tuple[PodSetRequest, ...]


async def price(
    world: World, inputs: Iterable[tuple[str, bytes]], namespace: str, conditions: Conditions
) -> PriceAnswer:
    """What the workloads of files, given as names and bytes, would cost in a cluster. Raises QuestionError."""
    files = list(inputs)
    manifests = await read_manifests(files, world, namespace)
    others = _Others.of(files, namespace)
    queued = [*_planned(manifests.wanted.workloads), *others.queued]
    ignored = [kind for kind in manifests.ignored if kind not in others.known]
    ignored += [w.kind for w in manifests.wanted.workloads if isinstance(w.owner, DaemonSet)]
    if not queued:
        names = ", ".join(name for name, _ in files)
        raise QuestionError(f"{names}: nothing there would be queued")
    joined = world.with_objects(world.objects.joined(manifests.wanted.objects))
    pricing = DevicePricing(
        joined.state, conditions.mappings, rules=conditions.rules, gates=conditions.gates
    )
    flavors = {**conditions.flavors, **others.flavors} if conditions.by_flavor else {}
    if conditions.by_flavor and not flavors:
        raise QuestionError("there are no ResourceFlavors, neither in the cluster nor in the files")
    scopes: Sequence[tuple[str, Mapping[str, str] | None]] = list(flavors.items()) or [("", None)]
    answers = tuple(
        _priced(each, pricing, flavor, labels) for each in queued for flavor, labels in scopes
    )
    return PriceAnswer(workloads=answers, ignored=tuple(dict.fromkeys(ignored)))


async def flavors_of(client: Client) -> dict[str, Mapping[str, str]]:
    """The flavors of a cluster with their node labels; none where Kueue's kinds are not served, or may not be read."""
    found = await Reader(client, None).read(typed(ResourceFlavor))
    return {each.metadata.name: spec_of(ResourceFlavorSpec, each).node_labels for each in found}


def _planned(workloads: Iterable[Planned]) -> Iterator[_Queued]:
    for workload in workloads:
        if isinstance(workload.owner, DaemonSet):
            continue
        template = PodTemplate(spec=workload.template.spec)
        count, least = _numbers(workload)
        pod_set = PodSetRequest(_MAIN, count, template, least)
        yield _Queued(workload.title, workload.metadata.namespace, (pod_set,))


def _numbers(workload: Planned) -> tuple[int, int | None]:
    """How many pods run at a time, and the least that it can do with."""
    owner = workload.owner
    if owner is None:
        return 1, None
    if isinstance(owner, Job):
        (place,) = JOB.places(codec.to_dict(owner))
        return place.count, place.min_count
    assert not isinstance(owner, DaemonSet)  # they are not queued
    return owner.spec.replicas, None


@dataclass(frozen=True, slots=True)
class _Others:
    """What files have beside the kinds of Kubernetes: Workloads, kinds of which a Workload is made, and flavors."""

    queued: list[_Queued]
    flavors: dict[str, Mapping[str, str]]
    known: set[str]

    @classmethod
    def of(cls, files: Iterable[tuple[str, bytes]], namespace: str) -> _Others:
        found = cls([], {}, set())
        for name, data in files:
            for document in read_documents(name, data):
                try:
                    found._take(document, namespace)
                except (DecodeError, CompositionError) as error:
                    raise QuestionError(f"{document.file}:{document.line}: {error}") from error
        return found

    def _take(self, document: Document, namespace: str) -> None:
        value = document.value
        group = str(value.get("apiVersion", "")).rpartition("/")[0]
        kind = str(value.get("kind", ""))
        metadata = value.get("metadata") or {}
        where = str(metadata.get("namespace") or namespace)
        title = f"{kind.lower()}/{metadata.get('name', '')}"
        if group == KUEUE:
            self.known.add(kind)
        if (group, kind) == (KUEUE, "ResourceFlavor"):
            flavor = codec.convert(ResourceFlavor, value)
            self.flavors[flavor.metadata.name] = spec_of(ResourceFlavorSpec, flavor).node_labels
        elif (group, kind) == (KUEUE, "Workload"):
            spec = spec_of(WorkloadSpec, codec.convert(Workload, value))
            self.queued.append(_Queued(title, where, _requests(spec.pod_sets)))
        elif (group, kind) in BY_KIND and BY_KIND[group, kind] is not JOB:
            self.known.add(kind)
            sets = pod_sets_of(BY_KIND[group, kind], value)
            self.queued.append(_Queued(title, where, _requests(sets)))


def _requests(pod_sets: Iterable[PodSet]) -> tuple[PodSetRequest, ...]:
    return tuple(
        PodSetRequest(each.name, each.count, pod_template_of(each.template), each.min_count)
        for each in pod_sets
    )


def _priced(
    queued: _Queued, pricing: DevicePricing, flavor: str, labels: Mapping[str, str] | None
) -> PricedWorkload:
    found = pricing.price_workload(queued.namespace, queued.pod_sets, flavor=labels)
    if isinstance(found, PriceRefusal):
        reason = NoPrice(
            reason=found.code.value,
            condition=found.reason,
            field=found.path,
            message=found.message,
            may_pass=found.retryable,
        )
        return PricedWorkload(
            title=queued.title,
            namespace=queued.namespace,
            flavor=flavor,
            pod_sets=(),
            no_price=reason,
        )
    return PricedWorkload(
        title=queued.title,
        namespace=queued.namespace,
        flavor=flavor,
        pod_sets=tuple(_pod_set(each, found[each.name]) for each in queued.pod_sets),
    )


def _pod_set(asked: PodSetRequest, charges: Charges) -> PricedPodSet:
    """The requests of the pods with the price of their devices, as the engine of quota adds them up."""
    own = requests_of(Pod(spec=asked.template.spec)).amounts
    own = {name: max(0, amount) for name, amount in own.items() if name not in charges.replaced}
    each = plus(own, charges.charges)
    total = plus(times(each, asked.count), charges.once)
    resources = tuple(
        PricedResource(
            name=name,
            each=_text(name, each.get(name, 0), charges),
            once=_text(name, charges.once.get(name, 0), charges),
            total=_text(name, amount, charges),
        )
        for name, amount in _devices_first(total, charges)
    )
    return PricedPodSet(
        name=asked.name,
        pods=asked.count,
        resources=resources,
        items=tuple(_item(item, charges) for item in charges.items),
        replaced=tuple(sorted(charges.replaced)),
        admin_devices=charges.admin_devices,
    )


def _devices_first(total: Amounts, charges: Charges) -> list[tuple[str, int]]:
    devices = charges.charges.keys() | charges.once.keys()
    return sorted(total.items(), key=lambda item: (item[0] not in devices, item[0]))


def _item(item: Item, charges: Charges) -> PricedItem:
    return PricedItem(
        source=item.source,
        request=item.request,
        device_class=item.device_class,
        resource=item.resource,
        devices=item.devices,
        amount=_text(item.resource, item.amount, charges),
        why=item.why,
        is_shared=item.is_shared,
    )


def _text(resource: str, amount: int, charges: Charges) -> str:
    form = Format.BINARY_SI if resource in charges.measured else None
    return str(quantity_of(resource, amount, form))
