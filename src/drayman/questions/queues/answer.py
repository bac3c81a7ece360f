"""Queues as data: what `drayman queues` and `drayman queue` draw, and print with -o json."""

from __future__ import annotations

from drayman.api.quantity import Quantity
from drayman.api.struct import ApiStruct
from drayman.explain.answer import Estimate
from drayman.explain.queue_answer import HoldingWorkload, Need
from drayman.questions.queues.shares import ShareRow
from drayman.reasons.reason import Headline


class QuotaRow(ApiStruct, kw_only=True):
    """One flavor and resource of a queue or cohort."""

    flavor: str
    resource: str
    nominal: Quantity
    used: Quantity
    """What workloads hold, reserved quota included. For a cohort: of what its members share."""
    borrowed: Quantity
    """What is used beyond the nominal quota."""
    lent: Quantity
    """What others use of it: divided among those that have something unused, in proportion to that."""
    reserved: Quantity
    """What is held by workloads that have quota but are not admitted yet."""
    free: Quantity
    """What could still be used here, borrowed quota included."""
    shared: Quantity | None = None
    """For a cohort: all that its members share, its own quota included."""
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class CohortRow(ApiStruct, kw_only=True):
    name: str
    parent: str = ""
    depth: int = 0
    """How many cohorts are above it."""
    quotas: tuple[QuotaRow, ...] = ()
    """Of its own quota, and of what is used below it."""
    queues: int = 0
    weighted_share: int | None = None


class QueueRow(ApiStruct, kw_only=True):
    """A cluster queue."""

    name: str
    cohort: str = ""
    depth: int = 0
    active: bool = True
    why_inactive: str = ""
    strategy: str = "BestEffortFIFO"
    pending: int = 0
    """Workloads that wait, whether for quota or for something else."""
    reserving: int = 0
    """Workloads with quota."""
    admitted: int = 0
    local_queues: tuple[str, ...] = ()
    """As namespace/name."""
    quotas: tuple[QuotaRow, ...] = ()
    weighted_share: int | None = None
    """Where fair sharing is on: what it borrows in relation to what could be lent, by weight, in thousandths."""


class QueuesAnswer(ApiStruct, kw_only=True):
    """All queues of a cluster, in their trees: a cohort comes before what is in it."""

    queues: tuple[QueueRow, ...] = ()
    cohorts: tuple[CohortRow, ...] = ()
    order: tuple[str, ...] = ()
    """Cohorts (with a slash in front) and queues as they come in the trees."""
    fair_sharing: bool = False
    shares: tuple[ShareRow, ...] = ()
    """Queues in the sense of the KAI Scheduler, each below its parent."""
    problems: tuple[str, ...] = ()
    """Objects that could not be understood."""
    unseen: tuple[str, ...] = ()


class PendingRow(ApiStruct, kw_only=True):
    """A workload that waits."""

    workload: str
    owner: str = ""
    local_queue: str
    position: int | None = None
    """None where it does not wait for its turn."""
    priority: int = 0
    created: str | None = None
    headline: Headline
    ahead: tuple[str, ...] = ()
    victims: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    estimate: Estimate


class QueueAnswer(ApiStruct, kw_only=True):
    """One cluster queue, or what one local queue has of it."""

    queue: QueueRow
    local_queue: str = ""
    """As namespace/name, if the question is about that one."""
    cohorts: tuple[str, ...] = ()
    """The nearest first."""
    holders: tuple[HoldingWorkload, ...] = ()
    pending: tuple[PendingRow, ...] = ()
    problems: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
