"""The schedulers of a cluster that run in other processes, by their Leases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from drayman.api.workloads import Lease
    from drayman.cluster import Client

NONE_RUNS: Final = "none holds a Lease: pods without a node wait until one runs"
"""What `schedulers_in_words` returns where no scheduler runs."""
NO_SCHEDULER: Final = "no scheduler runs: none holds a Lease in kube-system"


async def read_leases(client: Client) -> tuple[Lease, ...]:
    """The Leases among which those of schedulers are. Raises ClusterError."""
    from drayman.api.workloads import Lease
    from drayman.cluster.resources import typed
    from drayman.placement.schedulers import LEASE_NAMESPACE

    return (await client.list_all(typed(Lease), LEASE_NAMESPACE)).items


def schedulers_in_words(leases: Iterable[Lease], now: float) -> str:
    """Which process serves each `schedulerName` that the embedded scheduler would serve, as in `default-scheduler: host_1`."""
    from drayman.placement.schedulers import SERVED, Leases

    known = Leases(leases, now)
    held = {name: holder for name in sorted(SERVED) if (holder := known.holder(name))}
    return "; ".join(f"{name}: {holder}" for name, holder in held.items()) or NONE_RUNS
