"""What the requests of claims cost together."""

from __future__ import annotations

from drayman.api.resource import DeviceRequest, ResourceClaimSpec
from drayman.quota.charging.asked import Asked, Origin, Terms
from drayman.quota.charging.demand import Competition, DeviceDemand
from drayman.quota.charging.outcome import Code, Item, RefusedError, refuse


class ClaimPricing:
    """Prices claims for one workload, with the devices of a fleet."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._competition = Competition()
        self.of_pod: list[ResourceClaimSpec] = []
        """The claims that were added, until somebody clears the list: those that one pod has."""

    def add(self, spec: ResourceClaimSpec, origin: Origin) -> None:
        """Put the requests of a claim on the bill. Raises RefusedError."""
        self.of_pod.append(spec)
        for index, request in enumerate(spec.devices.requests):
            path = f"{origin.path}.devices.requests[{index}]"
            if request.exactly is not None:
                asked = Asked(self._terms, request.name, request.exactly, f"{path}.exactly", origin)
                self._put(asked.items(), asked)
            elif request.first_available:
                self._put_dearest(request, path, origin)
            else:
                text = "neither `exactly` nor `firstAvailable` says what is asked for"
                raise refuse(Code.UNSUPPORTED, path, text)
        if not self._terms.rules.all_pods:
            self.settle()
            self._competition = Competition()

    def settle(self) -> None:
        """Raise RefusedError if there are not enough devices for all claims that were added."""
        self._competition.check()

    def _put_dearest(self, request: DeviceRequest, path: str, origin: Origin) -> None:
        """Of several alternatives, the most that any may cost under each name: which one it will be is known when it is allocated."""
        if not self._terms.rules.alternatives:
            text = "`firstAvailable` is not charged; ask for one kind of device with `exactly`"
            raise refuse(Code.UNSUPPORTED, f"{path}.firstAvailable", text)
        dearest: dict[str, Item] = {}
        reasons: list[RefusedError] = []
        chosen: list[Asked] = []
        for index, (name, sub) in enumerate(request.alternatives()):
            asked = Asked(self._terms, name, sub, f"{path}.firstAvailable[{index}]", origin)
            try:
                items = asked.items()
            except RefusedError as error:
                # What is short may come back; what makes no sense makes no sense in any place of the list.
                if error.refusal.code not in (Code.DEVICE_SHORTAGE, Code.POLICY_REJECTS):
                    raise
                reasons.append(error)
                continue
            chosen.append(asked)
            for item in items:
                known = dearest.get(item.resource)
                if known is None or item.amount > known.amount:
                    dearest[item.resource] = item
        if not chosen:
            raise reasons[0]
        self._put(list(dearest.values()), *chosen)

    def _put(self, items: list[Item], *chosen: Asked) -> None:
        demands = [demand for asked in chosen if (demand := asked.demand()) is not None]
        if demands and len(demands) == len(chosen):
            self._competition.add(_any_of(demands))
        bill = self._terms.bill
        bill.items += items
        bill.admin_devices += max((asked.admin_devices for asked in chosen), default=0)
        bill.measured |= {m.name for asked in chosen for m in asked.mappings if m.sources}


def _any_of(demands: list[DeviceDemand]) -> DeviceDemand:
    """What alternatives need at least: as many devices as the most modest of them, from those that serve any."""
    first = demands[0]
    if len(demands) == 1:
        return first
    devices = shareable = 0
    for demand in demands:
        devices |= demand.devices
        shareable |= demand.shareable
    count = min(demand.count for demand in demands)
    return DeviceDemand(first.path, first.device_class, devices, shareable, count, first.pods)
