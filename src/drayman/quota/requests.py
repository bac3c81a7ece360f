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
from drayman.api.kueue import PodTemplate, pod_template_of
from drayman.api.kueue_workload import PodSet, ReclaimablePods
from drayman.api.limit_ranges import LimitRange
from drayman.api.meta import ObjectMeta
from drayman.api.quantity import Quantity
from drayman.placement.fit.requests import CPU, in_units, requests_of
from drayman.quota.amounts import Amounts, plus, saturated
from drayman.quota.charging.outcome import Charges
from drayman.quota.demands import Charged, PodSetDemand, Pricing, Unpriced
from drayman.quota.settings import REPLACE, ResourceSettings, Transformation

_CONTAINER = "Container"


def demands_of(
    namespace: str,
    pod_sets: Sequence[PodSet],
    reclaimable: Iterable[ReclaimablePods],
    limit_ranges: Sequence[LimitRange],
    settings: ResourceSettings,
    pricing: Pricing | None,
) -> tuple[PodSetDemand, ...] | Unpriced:
    """What each set asks for, or why one of them has no price. Raises DecodeError where a template makes no sense."""
    done = {each.name: each.count for each in reclaimable}
    demands = []
    for pod_set in pod_sets:
        template = pod_template_of(pod_set.template)
        price = Charged({}) if pricing is None else pricing.price(namespace, pod_set.name, template)
        if isinstance(price, Unpriced):
            return price
        demands.append(
            _demand(pod_set, template, done.get(pod_set.name, 0), limit_ranges, settings, price)
        )
        if _may_ask_for_devices(template.spec):
            demands[-1] = replace(demands[-1], sample=_sample(namespace, pod_set.name, template))
    return tuple(demands)


def _may_ask_for_devices(spec: PodSpec) -> bool:
    containers = (*spec.containers, *spec.init_containers)
    return bool(spec.resource_claims) or any(
        "/" in name for each in containers for name in each.resources.requests
    )


def _sample(namespace: str, pod_set: str, template: PodTemplate) -> Pod:
    name = f"sample-of-{pod_set}"
    metadata = ObjectMeta(
        name=name, namespace=namespace, uid=f"<{name}>", labels=template.metadata.labels
    )
    return Pod(metadata=metadata, spec=template.spec)


def _demand(
    pod_set: PodSet,
    template: PodTemplate,
    done: int,
    limit_ranges: Sequence[LimitRange],
    settings: ResourceSettings,
    price: Charged,
) -> PodSetDemand:
    spec = with_defaults(template.spec, limit_ranges)
    asked = requests_of(Pod(spec=spec)).amounts
    counted = transformed(_without(asked, settings.exclude_resource_prefixes), settings)
    kept = {name: amount for name, amount in counted.items() if name not in price.replaced}
    affinity = spec.affinity.node_affinity if spec.affinity else None
    least = pod_set.min_count
    count = max(0, pod_set.count - done)
    return PodSetDemand(
        name=pod_set.name,
        count=count,
        min_count=None if least is None else min(least, count),
        per_pod={name: max(0, amount) for name, amount in plus(kept, price.charges).items()},
        once=price.once if isinstance(price, Charges) else {},
        of_nodes=asked,
        node_selector=spec.node_selector,
        affinity=affinity.required_during_scheduling_ignored_during_execution if affinity else None,
        tolerations=spec.tolerations,
        topology=pod_set.topology_request,
    )


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
