"""The closed list of reasons. docs/reasons.md describes each of them; a test compares the two.

The kind says what to expect from waiting. *never*: no hardware here could do it, even with nothing in use. *not now*: it could, if enough
of what is in use were given back. *not here*: enough is free, but in the wrong places. *held*: neither hardware nor use is in the way, but
a decision, or something still to be done. A reason without a kind is not a reason to wait.
"""

from __future__ import annotations

from enum import Enum

from drayman.api.struct import ApiStruct


class Outlook(Enum):
    """What to expect from waiting."""

    NEVER = "never"
    NOT_NOW = "not now"
    NOT_HERE = "not here"
    HELD = "held"


class Reason(Enum):
    """One word for why something is as it is, with its kind."""

    kind: Outlook | None

    def __new__(cls, word: str, kind: Outlook | None) -> Reason:
        self = object.__new__(cls)
        self._value_ = word
        self.kind = kind
        return self

    # No reason to wait.
    RUNS = "Runs", None  # it has its node and devices, or has finished well
    FAILED = "Failed", None  # it has finished, and not well
    ALLOCATED = "Allocated", None  # a claim that has its devices
    FITS = "Fits", None  # a node and devices are there for it

    # The hardware cannot do it.
    NO_NODES = "NoNodes", Outlook.NEVER
    NODE_MISMATCH = "NodeMismatch", Outlook.NEVER  # selector, affinity or name match no node
    NODE_TOO_SMALL = "NodeTooSmall", Outlook.NEVER
    CLASS_MISSING = "ClassMissing", Outlook.NEVER
    SELECTOR_INVALID = "SelectorInvalid", Outlook.NEVER  # does not compile, or fails on devices
    ATTRIBUTE_UNKNOWN = "AttributeUnknown", Outlook.NEVER  # a selector reads what no device has
    NO_DEVICES = "NoDevices", Outlook.NEVER  # no node publishes any
    NO_SUCH_DEVICE = "NoSuchDevice", Outlook.NEVER  # none passes class and selectors
    CAPACITY_TOO_HIGH = "CapacityTooHigh", Outlook.NEVER
    COUNT_TOO_HIGH = "CountTooHigh", Outlook.NEVER  # no node has as many
    CONSTRAINT_UNMEETABLE = "ConstraintUnmeetable", Outlook.NEVER
    REQUESTS_CONFLICT = "RequestsConflict", Outlook.NEVER  # each alone, never together
    CLAIM_TOO_LARGE = "ClaimTooLarge", Outlook.NEVER  # more devices than a claim may have
    CLAIM_INVALID = "ClaimInvalid", Outlook.NEVER  # it does not make sense
    GANG_INVALID = "GangInvalid", Outlook.NEVER  # likewise
    GANG_OVERSIZED = "GangOversized", Outlook.NEVER  # for the cluster, or for each of its domains
    QUOTA_TOO_SMALL = "QuotaTooSmall", Outlook.NEVER  # even with everything that could be borrowed
    FLAVOR_MISMATCH = "FlavorMismatch", Outlook.NEVER  # its queue has no flavor for it

    # It is in use.
    NODES_FULL = "NodesFull", Outlook.NOT_NOW  # processors, memory, pods
    PORTS_IN_USE = "PortsInUse", Outlook.NOT_NOW
    DEVICES_IN_USE = "DevicesInUse", Outlook.NOT_NOW
    CAPACITY_IN_USE = "CapacityInUse", Outlook.NOT_NOW  # of devices that are shared
    COUNTERS_IN_USE = "CountersInUse", Outlook.NOT_NOW  # of devices that are partitioned
    VOLUME_IN_USE = "VolumeInUse", Outlook.NOT_NOW  # one that a single pod may use
    GANG_TOO_LARGE = "GangTooLarge", Outlook.NOT_NOW  # for what is free
    QUOTA_IN_USE = "QuotaInUse", Outlook.NOT_NOW  # of its queue, and what could be borrowed
    OVER_LIMIT = "OverLimit", Outlook.NOT_NOW  # of its queue, in the sense of KAI, or one above it
    NON_PREEMPTIBLE_OVER_QUOTA = "NonPreemptibleOverQuota", Outlook.NOT_NOW  # likewise
    QUOTA_WITHOUT_ROOM = "QuotaWithoutRoom", Outlook.NOT_NOW  # for all of its pods on nodes

    # Enough is free, in the wrong places.
    FRAGMENTED = "Fragmented", Outlook.NOT_HERE  # over several nodes
    GANG_SCATTERED = "GangScattered", Outlook.NOT_HERE  # over domains of the level that it requires
    MISALIGNED = "Misaligned", Outlook.NOT_HERE  # on one node, against the constraints
    REQUESTS_COMPETE = "RequestsCompete", Outlook.NOT_HERE  # for the same devices
    CLAIM_ELSEWHERE = "ClaimElsewhere", Outlook.NOT_HERE  # has its devices where the pod cannot run
    VOLUME_ELSEWHERE = "VolumeElsewhere", Outlook.NOT_HERE
    VOLUME_LACKING = "VolumeLacking", Outlook.NOT_HERE  # none to bind, and none can be made
    POD_AFFINITY = "PodAffinity", Outlook.NOT_HERE
    POD_ANTI_AFFINITY = "PodAntiAffinity", Outlook.NOT_HERE
    TOPOLOGY_SPREAD = "TopologySpread", Outlook.NOT_HERE
    QUOTA_SCATTERED = "QuotaScattered", Outlook.NOT_HERE  # over domains of a topology

    # A decision, or something still to be done.
    GATED = "Gated", Outlook.HELD
    SUSPENDED = "Suspended", Outlook.HELD
    QUEUE_DOES_NOT_EXIST = "QueueDoesNotExist", Outlook.HELD  # in the sense of KAI
    QUEUE_MISSING = "QueueMissing", Outlook.HELD  # it names none that exists and serves it
    QUEUE_INACTIVE = "QueueInactive", Outlook.HELD  # stopped, or incomplete
    BEHIND_IN_QUEUE = "BehindInQueue", Outlook.HELD  # of one that is strict
    QUOTA_PREEMPTING = "QuotaPreempting", Outlook.HELD  # others are giving it up
    QUOTA_BACK_OFF = "QuotaBackOff", Outlook.HELD  # evicted, and not to be tried yet
    CHECKS_PENDING = "ChecksPending", Outlook.HELD  # it has quota
    QUOTA_EVICTED = "QuotaEvicted", Outlook.HELD  # it has been told to give up its quota
    WORKLOAD_INACTIVE = "WorkloadInactive", Outlook.HELD
    NOT_CHARGED = "NotCharged", Outlook.HELD  # no Workload that is admitted covers the pod
    NO_PRICE = "NoPrice", Outlook.HELD  # its devices cannot be charged
    TERMINATING = "Terminating", Outlook.HELD
    OTHER_SCHEDULER = "OtherScheduler", Outlook.HELD
    NO_SCHEDULER = "NoScheduler", Outlook.HELD  # none that serves it runs
    NO_PODS = "NoPods", Outlook.HELD  # a workload whose controller has made none
    CLAIM_MISSING = "ClaimMissing", Outlook.HELD
    TEMPLATE_MISSING = "TemplateMissing", Outlook.HELD
    CLAIM_PENDING = "ClaimPending", Outlook.HELD  # its controller has yet to make it
    CLAIM_DELETING = "ClaimDeleting", Outlook.HELD
    CLAIM_FOREIGN = "ClaimForeign", Outlook.HELD  # was made for another pod
    CLAIM_UNUSED = "ClaimUnused", Outlook.HELD  # a claim that no pod uses is not allocated
    CLAIM_UNALLOCATED = "ClaimUnallocated", Outlook.HELD  # of a pod that names its node itself
    CLAIM_LEFT_BEHIND = (
        "ClaimLeftBehind",
        Outlook.HELD,
    )  # by an earlier attempt; it is being removed
    POD_GROUP_MISSING = "PodGroupMissing", Outlook.HELD
    ROOM_RESERVED = "RoomReserved", Outlook.HELD  # for a unit that comes first
    GANG_INCOMPLETE = "GangIncomplete", Outlook.HELD  # pods of it do not exist yet
    VOLUME_UNBOUND = "VolumeUnbound", Outlook.HELD
    DEVICES_NOT_READY = "DevicesNotReady", Outlook.HELD  # binding conditions
    BINDING_FAILED = "BindingFailed", Outlook.HELD
    NOT_STARTED = "NotStarted", Outlook.HELD  # on its node, and containers of it do not run
    NODES_CORDONED = "NodesCordoned", Outlook.HELD
    NODES_TAINTED = "NodesTainted", Outlook.HELD
    SPOT_NOT_ACCEPTED = "SpotNotAccepted", Outlook.HELD  # nodes that may be taken back at any time
    DEVICES_TAINTED = "DevicesTainted", Outlook.HELD
    NODE_GONE = "NodeGone", Outlook.HELD  # of something that has been placed
    NODE_NOT_READY = "NodeNotReady", Outlook.HELD
    DEVICES_GONE = "DevicesGone", Outlook.HELD
    POOL_INVALID = "PoolInvalid", Outlook.HELD  # slices that contradict each other
    POOL_INCOMPLETE = "PoolIncomplete", Outlook.HELD  # slices that are still missing
    FEATURE_OFF = "FeatureOff", Outlook.HELD
    SEARCH_LIMIT = "SearchLimit", Outlook.HELD  # the search was given up; it will be tried again

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong: it need not wait, and has not failed."""
        return self.kind is None and self is not Reason.FAILED

    @property
    def title(self) -> str:
        """As it is printed: the word and its kind."""
        return self.value if self.kind is None else f"{self.value} ({self.kind.value})"


class Headline(ApiStruct):
    """The first line. Conditions and events of a pod carry the same."""

    reason: Reason
    kind: str
    """Empty for a reason that is not a reason to wait."""
    sentence: str

    @staticmethod
    def of(reason: Reason, sentence: str) -> Headline:
        return Headline(
            reason=reason, kind=reason.kind.value if reason.kind else "", sentence=sentence
        )

    def __str__(self) -> str:
        return f"{self.reason.title}: {self.sentence}"
