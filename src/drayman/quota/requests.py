"""From a workload's pod sets to what they ask of quota.

In this order: what containers ask for (with the defaults of LimitRanges, and limits where no request is given), without the prefixes
that are excluded, transformed, and then the devices at their price in place of the names that the price stands for.

Limits become requests before the defaults of a LimitRange apply, as they do for the pods in the end; Kueue takes the defaults first and may
charge less than the pods ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from msgspec.structs import replace

from drayman.api.core import Container, Pod, PodSpec
from drayman.api.kueue import pod_template_of
from drayman.api.kueue_workload import PodSet, ReclaimablePods
from drayman.api.limit_ranges import LimitRange
from drayman.api.meta import ObjectMeta
from drayman.api.quantity import Quantity
from drayman.placement.fit.requests import CPU, in_units, requests_of
from drayman.placement.gpu_shares import RESOURCE as GPU_SHARE
from drayman.placement.gpu_shares import asks_for_share
from drayman.quota.amounts import Amounts, plus, saturated
from drayman.quota.demands import Charged, PodSetDemand, PodSetRequest, Pricing, Unpriced
from drayman.quota.settings import REPLACE, ResourceSettings, Transformation

_CONTAINER = "Container"
_FREE = Charged({})


def demands_of(
    namespace: str,
    workload: str,
    pod_sets: Sequence[PodSet],
    reclaimable: Iterable[ReclaimablePods],
    limit_ranges: Sequence[LimitRange],
    settings: ResourceSettings,
    pricing: Pricing | None,
) -> tuple[PodSetDemand, ...] | Unpriced:
    """What each set asks for, or why they have no price. Raises DecodeError where a template makes no sense.

    `workload` is the key by which prices know the workload.
    """
    done = {each.name: each.count for each in reclaimable}
    asked = [_asked(pod_set, done.get(pod_set.name, 0)) for pod_set in pod_sets]
    for pods in asked:
        problem = limit_problem(pods.template.spec, limit_ranges)
        if problem is not None:
            path = f"spec.podSets[{pods.name}].template.spec.{problem}"
            return Unpriced(path, retryable=False)
    prices: Mapping[str, Charged] = {}
    if pricing is not None:
        found = pricing.price_workload(namespace, asked, workload=workload)
        if isinstance(found, Unpriced):
            return found
        prices = found
    return tuple(
        _demand(namespace, pod_set, each, limit_ranges, settings, prices.get(each.name, _FREE))
        for pod_set, each in zip(pod_sets, asked, strict=True)
    )


def _asked(pod_set: PodSet, done: int) -> PodSetRequest:
    """The pods of a set that are still to be run, or running."""
    count, least = max(0, pod_set.count - done), pod_set.min_count
    return PodSetRequest(
        pod_set.name,
        count,
        pod_template_of(pod_set.template),
        None if least is None else min(least, count),
    )


def _sample(namespace: str, pods: PodSetRequest) -> Pod | None:
    """One of the pods, if they may ask for devices."""
    if not pods.may_ask_for_devices:
        return None
    name, template = f"sample-of-{pods.name}", pods.template
    metadata = ObjectMeta(
        name=name, namespace=namespace, uid=f"<{name}>", labels=template.metadata.labels
    )
    return Pod(metadata=metadata, spec=template.spec)


def _demand(
    namespace: str,
    pod_set: PodSet,
    pods: PodSetRequest,
    limit_ranges: Sequence[LimitRange],
    settings: ResourceSettings,
    price: Charged,
) -> PodSetDemand:
    spec = with_defaults(pods.template.spec, limit_ranges)
    of_nodes = dict(requests_of(Pod(spec=spec)).amounts)
    asked = dict(of_nodes)
    of_nodes.pop(GPU_SHARE, None)  # a device serves it
    if asks_for_share(pods.template.metadata.annotations):
        asked[GPU_SHARE] = 1  # which the API server adds to the pods
    counted = transformed(_without(asked, settings.exclude_resource_prefixes), settings)
    kept = {name: amount for name, amount in counted.items() if name not in price.replaced}
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return PodSetDemand(
        name=pod_set.name,
        count=pods.count,
        min_count=pods.min_count,
        per_pod={name: max(0, amount) for name, amount in plus(kept, price.charges).items()},
        devices=price.charges,
        claims=price.claims,
        of_nodes=of_nodes,
        node_selector=spec.node_selector,
        affinity=affinity.required_during_scheduling_ignored_during_execution if affinity else None,
        tolerations=spec.tolerations,
        topology=pod_set.topology_request,
        sample=_sample(namespace, pods),
        priced=pods if price.varies else None,
        admin_devices=price.admin_devices,
    )


def limit_problem(spec: PodSpec, limit_ranges: Sequence[LimitRange]) -> str | None:
    """Why the API server would refuse such pods: a container asks for more than its limit, or for what a LimitRange forbids."""
    items = [item for each in limit_ranges for item in each.spec.limits if item.type_ == _CONTAINER]
    with_requests = with_defaults(spec, limit_ranges)
    for container in (*with_requests.init_containers, *with_requests.containers):
        where = f"containers[{container.name}].resources"
        requests, limits = container.resources.requests, container.resources.limits
        for name, quantity in requests.items():
            limit = limits.get(name, quantity)
            if quantity > limit:
                return f"{where}.requests[{name}]: {quantity} is more than the limit of {limit}"
            for item in items:
                if name in item.max_ and limit > item.max_[name]:
                    return f"{where}[{name}]: {limit} is more than the {item.max_[name]} of a LimitRange"
                if name in item.min_ and quantity < item.min_[name]:
                    return f"{where}[{name}]: {quantity} is less than the {item.min_[name]} of a LimitRange"
    return None


def with_defaults(spec: PodSpec, limit_ranges: Sequence[LimitRange]) -> PodSpec:
    """A pod's spec with the requests that its containers will have."""
    containers = (*spec.containers, *spec.init_containers)
    if not limit_ranges and not any(each.resources.limits for each in containers):
        return spec
    defaults = [
        item
        for limit_range in limit_ranges
        for item in limit_range.spec.limits
        if item.type_ == _CONTAINER
    ]
    requests: dict[str, Quantity] = {}
    for item in defaults:
        for name, quantity in (*item.default_request.items(), *item.default.items()):
            requests.setdefault(name, quantity)
    return replace(
        spec,
        containers=tuple(_with_requests(each, requests) for each in spec.containers),
        init_containers=tuple(_with_requests(each, requests) for each in spec.init_containers),
    )


def _with_requests(container: Container, defaults: Mapping[str, Quantity]) -> Container:
    resources = container.resources
    if not defaults and not resources.limits:
        return container
    requests = {**defaults, **resources.limits, **resources.requests}
    return replace(container, resources=replace(resources, requests=requests))


def transformed(asked: Amounts, settings: ResourceSettings) -> dict[str, int]:
    """Requests with the outputs of transformations, which are added up exactly and rounded once."""
    rules = {each.input: each for each in settings.transformations}
    kept: dict[str, int] = {}
    outputs: dict[str, Fraction] = {}
    for name, amount in asked.items():
        rule = rules.get(name)
        if rule is None or rule.strategy != REPLACE:
            kept[name] = amount
        if rule is not None:
            _add_outputs(outputs, rule, amount, asked)
    made = {name: max(0, saturated(in_units(name, total))) for name, total in outputs.items()}
    return plus(kept, made)


def _add_outputs(
    outputs: dict[str, Fraction], rule: Transformation, amount: int, asked: Amounts
) -> None:
    quantity = _exact(rule.input, amount)
    if rule.multiply_by in asked:
        quantity *= _exact(rule.multiply_by, asked[rule.multiply_by])
    for name, factor in rule.outputs.items():
        outputs[name] = outputs.get(name, Fraction(0)) + quantity * factor.amount


def _exact(name: str, amount: int) -> Fraction:
    return Fraction(amount, 1000) if name == CPU else Fraction(amount)


def _without(asked: Amounts, prefixes: tuple[str, ...]) -> Amounts:
    if not prefixes:
        return asked
    return {name: amount for name, amount in asked.items() if not name.startswith(prefixes)}
