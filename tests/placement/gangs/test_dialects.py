"""How each dialect states a gang, and what is said where it does not make sense."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.core import Pod
from drayman.api.custom_groups import KaiPodGroup, PluginPodGroup
from drayman.placement.gangs.book import GangBook
from drayman.placement.gangs.gang import Dialect, Flaw, FlawKind, GangKey, Slices, Subgroup, Wish
from placement.gangs.building import (
    INDEX,
    custom,
    gang_in,
    group,
    job,
    job_reference,
    pod,
    read,
    topology,
)

GANG = {"gang": {"minCount": 3}}
TOTAL = "kueue.x-k8s.io/pod-group-total-count"
RACKS = topology(("example.com/block", "block"), ("example.com/rack", ""))
LABELS = ("example.com/block", "example.com/rack")


# Kubernetes' own.


def test_a_gang_of_kubernetes() -> None:
    """The group has the number, the level and how it is preempted; the pod has its rank."""
    spec = {
        "schedulingPolicy": GANG,
        "schedulingConstraints": {"topology": [{"key": "example.com/rack"}]},
        "disruptionMode": "PodGroup",
        "priority": 7,
    }
    member = pod(group="g", labels={INDEX: "2"})
    gang = gang_in(group(spec), of=member)
    assert gang.key == GangKey(Dialect.KUBERNETES, "ml", "g")
    assert (gang.least, gang.priority, gang.goes_as_one) == (3, 7, True)
    assert gang.wish == Wish(required="example.com/rack")
    assert gang.since == 1767225610.0
    book = GangBook()
    book.see(member)
    known = book.member("uid-p")
    assert known is not None
    assert known.membership.rank == 2


def test_a_basic_group_is_not_a_gang() -> None:
    """Unless its pods are to be kept together: then each starts when it can."""
    basic = {"schedulingPolicy": {"basic": {}}}
    assert read(group(basic), of=pod(group="g")) is None
    kept = {**basic, "schedulingConstraints": {"topology": [{"key": "rack"}]}}
    gang = gang_in(group(kept), of=pod(group="g"))
    assert (gang.least, gang.wish) == (0, Wish("rack"))


def test_annotations_add_what_a_group_cannot_say() -> None:
    """A preferred level, and slices; for a group of the plugin also the required level."""
    stated = {
        "drayman.dev/preferred-level": "rack",
        "drayman.dev/slice-size": "4",
        "drayman.dev/slice-level": "host",
    }
    constraints = {"schedulingConstraints": {"topology": [{"key": "block"}]}}
    own = group({"schedulingPolicy": GANG, **constraints}, stated=stated)
    gang = gang_in(own, of=pod(group="g"))
    assert gang.wish == Wish("block", "rack")
    assert gang.slices == (Slices(4, Wish("host")),)
    other = custom(PluginPodGroup, {"minMember": 2}, stated={"drayman.dev/required-level": "rack"})
    member = pod(labels={"scheduling.x-k8s.io/pod-group": "g"})
    assert gang_in(other, of=member).wish == Wish("rack")


# The plugin.


def test_a_group_of_the_plugin() -> None:
    """Number, timeout and resources."""
    spec = {"minMember": 8, "scheduleTimeoutSeconds": 300, "minResources": {"cpu": "8"}}
    member = pod(labels={"scheduling.x-k8s.io/pod-group": "g"})
    gang = gang_in(custom(PluginPodGroup, spec), of=member)
    assert (gang.least, gang.timeout_s) == (8, 300.0)
    assert {name: str(value) for name, value in gang.least_resources.items()} == {"cpu": "8"}
    assert gang_in(custom(PluginPodGroup, None), of=member).least == 1


# KAI.


def kai_pod(subgroup: str = "") -> Pod:
    labels = {"kai.scheduler/subgroup-name": subgroup} if subgroup else {}
    return pod(stated={"pod-group-name": "g"}, labels=labels)


def test_a_group_of_kai() -> None:
    """Levels are resolved by label or alias, and the topology says which there are."""
    spec = {
        "minMember": 2,
        "preemptibility": "non-preemptible",
        "preemptionDelay": "1m30s",
        "topologyConstraint": {
            "topology": "racks",
            "requiredTopologyLevel": "block",
            "preferredTopologyLevel": "example.com/rack",
        },
    }
    gang = gang_in(custom(KaiPodGroup, spec), RACKS, of=kai_pod())
    assert (gang.least, gang.is_preemptible, gang.preemption_delay_s) == (2, False, 90.0)
    assert gang.wish == Wish(*LABELS, LABELS)
    assert (gang.goes_as_one, gang.goes_singly, gang.grace_s) == (False, False, 60.0)


@pytest.mark.parametrize(
    ("given", "wanted"), [(None, 60.0), ("5s", 5.0), ("0s", 0.0), ("-1s", None)]
)
def test_how_long_a_group_of_kai_may_be_below_its_minimum(
    given: str | None, wanted: float | None
) -> None:
    """A minute by default; a negative period is for ever."""
    spec = {"stalenessGracePeriod": given}
    gang = gang_in(custom(KaiPodGroup, spec), of=kai_pod())
    assert gang.grace_s == wanted
    assert gang.least == 1


def test_subgroups_of_kai() -> None:
    """A tree, parents first, in whichever order it is written; leaves have one pod at least unless they say otherwise."""
    subgroups = [
        {"name": "workers", "parent": "decode", "minMember": 4},
        {"name": "leaders", "parent": "decode"},
        {"name": "spare", "minMember": 0},
        {
            "name": "decode",
            "minSubGroup": 1,
            "topologyConstraint": {"topology": "racks", "requiredTopologyLevel": "block"},
        },
    ]
    spec = {"minSubGroup": 1, "subGroups": subgroups}
    gang = gang_in(custom(KaiPodGroup, spec), RACKS, of=kai_pod("workers"))
    assert (gang.least, gang.least_children) == (0, 1)
    assert gang.subgroups == (
        Subgroup("spare", least=0),
        Subgroup("decode", least_children=1, wish=Wish("example.com/block", among=LABELS)),
        Subgroup("workers", "decode", 4),
        Subgroup("leaders", "decode", 1),
    )


def test_a_job_with_annotations_of_kai() -> None:
    """Its pods are the gang, though neither they nor an object say so."""
    stated = {
        "kai.scheduler/batch-min-member": "4",
        "kai.scheduler/topology": "racks",
        "kai.scheduler/topology-preferred-placement": "block",
        "kai.scheduler/segment-size": "2",
        "kai.scheduler/segment-topology-required-placement": "example.com/rack",
    }
    member = pod(owner=job_reference())
    gang = gang_in(job(stated), RACKS, of=member)
    assert gang.key == GangKey(Dialect.KAI, "ml", "job/train", "train")
    assert gang.least == 4
    assert gang.wish == Wish(None, "example.com/block", LABELS)
    assert gang.slices == (Slices(2, Wish("example.com/rack", among=LABELS)),)


# Kueue.


def kueue_pod(total: str = "3", name: str = "p", podset: str = "", **stated: str) -> Pod:
    labels = {"kueue.x-k8s.io/pod-group-name": "g"}
    if podset:
        labels["kueue.x-k8s.io/podset"] = podset
    given = {f"kueue.x-k8s.io/{key.replace('_', '-')}": text for key, text in stated.items()}
    return pod(name, labels=labels, stated={TOTAL: total, **given})


def test_a_pod_group_of_kueue() -> None:
    """The pods say how many they are and how near they are to be."""
    gang = gang_in(of=kueue_pod(podset_required_topology="block", podset_preferred_topology="rack"))
    assert gang.key == GangKey(Dialect.KUEUE, "ml", "g")
    assert (gang.least, gang.most, gang.wish) == (3, 3, Wish("block", "rack"))


def test_slices_of_kueue() -> None:
    """One layer by two annotations, or up to three by one, sizes as numbers or as text."""
    one = gang_in(of=kueue_pod(podset_slice_required_topology="rack", podset_slice_size="2"))
    assert one.slices == (Slices(2, Wish("rack")),)
    layers = '[{"topology": "block", "size": 8}, {"topology": "rack", "size": "4"}]'
    several = gang_in(of=kueue_pod(podset_slice_required_topology_constraints=layers))
    assert several.slices == (Slices(8, Wish("block")), Slices(4, Wish("rack")))


def test_a_served_group_of_kueue_does_not_wait_for_its_last_pod() -> None:
    """A group that is admitted with its first pod may have pods that are made one after the other."""
    assert gang_in(of=kueue_pod(pod_group_fast_admission="true")).least == 0


def test_pod_sets_of_kueue() -> None:
    """Each is a subgroup with a wish of its own; those that belong together have a parent, and one wish."""
    together = {"podset_group_name": "both", "podset_required_topology": "block"}
    members = [
        kueue_pod(name="a", podset="leader", **together),
        kueue_pod(name="b", podset="worker", **together),
        kueue_pod(name="c", podset="other", podset_preferred_topology="rack"),
    ]
    gang = gang_in(*members, of=members[0])
    assert gang.subgroups == (
        Subgroup("podset-group/both", wish=Wish("block")),
        Subgroup("leader", "podset-group/both"),
        Subgroup("other", wish=Wish(None, "rack")),
        Subgroup("worker", "podset-group/both"),
    )


@pytest.mark.parametrize(
    ("labels", "stated", "rank"),
    [
        ({"kueue.x-k8s.io/pod-group-pod-index": "1"}, {}, 1),
        ({"example.com/i": "5", INDEX: "1"}, {"pod_group_pod_index_label": "example.com/i"}, 5),
        ({}, {"pod_group_pod_index_label": "example.com/i"}, None),
        ({INDEX: "4"}, {}, 4),
        ({}, {}, None),
    ],
)
def test_ranks_in_a_pod_group_of_kueue(
    labels: dict[str, str], stated: dict[str, str], rank: int | None
) -> None:
    """By the label that an annotation names, by Kueue's own, or by the one that a controller gives."""
    given = {f"kueue.x-k8s.io/{key.replace('_', '-')}": text for key, text in stated.items()}
    named = {"kueue.x-k8s.io/pod-group-name": "g", **labels}
    book = GangBook()
    book.see(pod(labels=named, stated={TOTAL: "3", **given}))
    member = book.member("uid-p")
    assert member is not None
    assert member.membership.rank == rank


# Annotations of our own.


def test_a_gang_by_annotation() -> None:
    """On the pods of a controller, which are the gang."""
    stated = {
        "drayman.dev/gang": "8",
        "drayman.dev/gang-timeout": "10m",
        "drayman.dev/required-level": "block",
        "drayman.dev/preferred-level": "rack",
        "drayman.dev/slice-size": "2",
        "drayman.dev/slice-level": "host",
    }
    gang = gang_in(of=pod(stated=stated, owner=job_reference("set", "StatefulSet")))
    assert gang.key == GangKey(Dialect.DRAYMAN, "ml", "statefulset/set", "set")
    assert (gang.least, gang.timeout_s, gang.wish) == (8, 600.0, Wish("block", "rack"))
    assert gang.slices == (Slices(2, Wish("host")),)


def test_a_gang_by_annotation_of_a_job() -> None:
    """The same, without a word on the pods; what a pod says itself comes first."""
    on_job = job({"drayman.dev/gang": "8", "drayman.dev/required-level": "rack"})
    assert gang_in(on_job, of=pod(owner=job_reference())).least == 8
    own = pod(owner=job_reference(), stated={"drayman.dev/gang": "4"})
    gang = gang_in(on_job, of=own)
    assert (gang.least, gang.wish) == (4, Wish("rack"))
    assert read(on_job, of=pod(owner=job_reference("other"))) is None


def test_the_pods_of_a_job_set_are_one_gang() -> None:
    """Though each is of one of its Jobs. Another JobSet of the same name is another gang."""
    stated = {"drayman.dev/gang": "2"}
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "train",
        "jobset.sigs.k8s.io/jobset-uid": "first",
    }
    members = [
        pod(name, stated=stated, labels=labels, owner=job_reference(f"train-{name}"))
        for name in ("leader", "worker")
    ]
    gang = gang_in(*members, of=members[0])
    assert gang.key == GangKey(Dialect.DRAYMAN, "ml", "jobset/train", "first")
    book = GangBook()
    for each in members:
        book.see(each)
    assert len(book.waiting(gang.key)) == 2


def test_a_named_gang() -> None:
    """Pods without a controller, or of several, are joined by a name."""
    stated = {"drayman.dev/gang": "2", "drayman.dev/gang-name": "pair"}
    members = [pod("a", stated=stated), pod("b", stated=stated, owner=job_reference())]
    gang = gang_in(*members, of=members[0])
    assert gang.key == GangKey(Dialect.DRAYMAN, "ml", "pair")
    book = GangBook()
    for each in members:
        book.see(each)
    assert set(book.waiting(gang.key)) == {"uid-a", "uid-b"}


def test_a_gang_that_consists_of_one_pod() -> None:
    """A pod that states levels, or a gang of one, and has no others is on its own."""
    assert read(of=pod(stated={"drayman.dev/required-level": "rack"})) is None
    assert read(of=pod(stated={"drayman.dev/gang": "1"})) is None


def test_levels_alone_keep_pods_together() -> None:
    """Each of them starts when it can."""
    gang = gang_in(of=pod(stated={"drayman.dev/required-level": "rack"}, owner=job_reference()))
    assert (gang.least, gang.wish) == (0, Wish("rack"))


# What does not make sense.

ON_PLUGIN = pod(labels={"scheduling.x-k8s.io/pod-group": "g"})
OWNED = job_reference()


def subgroups(*given: dict[str, Any], **spec: Any) -> KaiPodGroup:
    return custom(KaiPodGroup, {"subGroups": list(given), **spec})


def placed_in(level: str, topology: str = "racks") -> KaiPodGroup:
    constraint = {"topology": topology, "requiredTopologyLevel": level}
    return custom(KaiPodGroup, {"topologyConstraint": constraint})


OURS = "metadata.annotations[drayman.dev/"
OF_KUEUE = "metadata.annotations[kueue.x-k8s.io/"
FLAWS: dict[str, tuple[tuple[Any, ...], Pod, str]] = {
    "no group of Kubernetes": ((), pod(group="g"), "pod group ml/g does not exist"),
    "no group of the plugin": ((), ON_PLUGIN, "pod group ml/g does not exist"),
    "no group of KAI": ((), kai_pod(), "pod group ml/g does not exist"),
    "two levels that are required": (
        (
            group(
                {
                    "schedulingPolicy": GANG,
                    "schedulingConstraints": {"topology": [{"key": "rack"}]},
                },
                stated={"drayman.dev/required-level": "block"},
            ),
        ),
        pod(group="g"),
        f"pod group ml/g, {OURS}required-level]: block is not the level of spec.schedulingConstraints: rack",
    ),
    "a number below one": (
        (custom(PluginPodGroup, {"minMember": 0}),),
        ON_PLUGIN,
        "pod group ml/g, spec.minMember: 0 is less than 1",
    ),
    "text for a number": (
        (custom(PluginPodGroup, {"minMember": "eight"}),),
        ON_PLUGIN,
        "pod group ml/g, spec.minMember: expected integer, got string",
    ),
    "a spec that is not an object": (
        (custom(KaiPodGroup, [1]),),
        kai_pod(),
        "pod group ml/g, spec: expected object, got array",
    ),
    "a negative timeout": (
        (custom(PluginPodGroup, {"scheduleTimeoutSeconds": -1}),),
        ON_PLUGIN,
        "pod group ml/g, spec.scheduleTimeoutSeconds: -1 is less than 0",
    ),
    "an amount below zero": (
        (custom(PluginPodGroup, {"minResources": {"cpu": "-1"}}),),
        ON_PLUGIN,
        "pod group ml/g, spec.minResources[cpu]: -1 is less than 0",
    ),
    "a resource that no node can have": (
        (custom(PluginPodGroup, {"minResources": {"gpus": "1"}}),),
        ON_PLUGIN,
        "pod group ml/g, spec.minResources[gpus]: is not a resource that nodes have",
    ),
    "a grace period that is no time": (
        (group({"schedulingPolicy": GANG}, stated={"drayman.dev/gang-grace": "soon"}),),
        pod(group="g"),
        f"pod group ml/g, {OURS}gang-grace]: 'soon' is not a duration; write it like 30s, 1m30s or 500ms",
    ),
    "both minima": (
        (custom(KaiPodGroup, {"minMember": 1, "minSubGroup": 1}),),
        kai_pod(),
        "pod group ml/g, spec.minSubGroup: cannot be combined with spec.minMember",
    ),
    "both minima of a subgroup": (
        (subgroups({"name": "a", "minMember": 1, "minSubGroup": 1}),),
        kai_pod("a"),
        "pod group ml/g, spec.subGroups[0].minSubGroup: cannot be combined with minMember",
    ),
    "more subgroups than there are": (
        (subgroups({"name": "a"}, minSubGroup=2),),
        kai_pod("a"),
        "pod group ml/g, spec.minSubGroup: 2 subgroups are required, and there are 1",
    ),
    "a parent that does not exist": (
        (subgroups({"name": "a", "parent": "b"}),),
        kai_pod("a"),
        "pod group ml/g, spec.subGroups[0].parent: there is no subgroup b",
    ),
    "a circle of parents": (
        (subgroups({"name": "c"}, {"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}),),
        kai_pod("c"),
        "pod group ml/g, spec.subGroups[1].parent: subgroup a is below itself",
    ),
    "too many subgroups": (
        (subgroups(*({"name": f"s{n}"} for n in range(10_000))),),
        kai_pod("s0"),
        "pod group ml/g, spec.subGroups: 10000 subgroups, and there can be 256",
    ),
    "too many subgroups within each other": (
        (
            subgroups(
                {"name": "s0"}, *({"name": f"s{n}", "parent": f"s{n - 1}"} for n in range(1, 256))
            ),
        ),
        kai_pod("s255"),
        "pod group ml/g, spec.subGroups[16].parent: is within 16 others, and there can be 15",
    ),
    "a name twice": (
        (subgroups({"name": "a"}, {"name": "a"}),),
        kai_pod("a"),
        "pod group ml/g, spec.subGroups[1].name: there is another subgroup a",
    ),
    "a pod in no subgroup": (
        (subgroups({"name": "a"}),),
        kai_pod(),
        "pod ml/p, metadata.labels[kai.scheduler/subgroup-name]: is required: pod group ml/g has subgroups",
    ),
    "a pod in a subgroup that does not exist": (
        (subgroups({"name": "a"}),),
        kai_pod("b"),
        "pod ml/p, metadata.labels[kai.scheduler/subgroup-name]: pod group ml/g has no subgroup b",
    ),
    "a pod in an inner subgroup": (
        (subgroups({"name": "a"}, {"name": "b", "parent": "a"}),),
        kai_pod("a"),
        "pod ml/p, metadata.labels[kai.scheduler/subgroup-name]:"
        " subgroup a of pod group ml/g consists of other subgroups",
    ),
    "a topology that does not exist": (
        (placed_in("block"),),
        kai_pod(),
        "pod group ml/g, spec.topologyConstraint.topology: topology racks does not exist",
    ),
    "a level without a topology": (
        (placed_in("block", ""),),
        kai_pod(),
        "pod group ml/g, spec.topologyConstraint.topology: is required: it has the levels",
    ),
    "a level that does not exist": (
        (placed_in("zone"), RACKS),
        kai_pod(),
        "pod group ml/g, spec.topologyConstraint.requiredTopologyLevel:"
        " topology racks has no level zone; it has block, example.com/rack",
    ),
    "a topology that makes no sense": (
        (placed_in("block"), custom(type(RACKS), {"levels": 3}, name="racks")),
        kai_pod(),
        "pod group ml/g, spec.topologyConstraint.topology:"
        " topology racks, spec.levels: expected array, got integer",
    ),
    "a delay that is not a duration": (
        (custom(KaiPodGroup, {"preemptionDelay": "soon"}),),
        kai_pod(),
        "pod group ml/g, spec.preemptionDelay: 'soon' is not a duration; write it like 30s, 1m30s or 500ms",
    ),
    "a pod of Kueue without a number": (
        (),
        pod(labels={"kueue.x-k8s.io/pod-group-name": "g"}),
        f"pod ml/p, {OF_KUEUE}pod-group-total-count]: is required",
    ),
    "pods of Kueue that disagree": (
        (kueue_pod("4", name="q"),),
        kueue_pod("3"),
        f"gang ml/g, {OF_KUEUE}pod-group-total-count]: its pods state different things: 3 and 4",
    ),
    "pods of Kueue that disagree about levels": (
        (kueue_pod(name="q", podset_required_topology="rack"),),
        kueue_pod(),
        f"gang ml/g, {OF_KUEUE}podset-required-topology]: its pods state different things: nothing and required rack",
    ),
    "constrained and not": (
        (),
        kueue_pod(podset_required_topology="rack", podset_unconstrained_topology="true"),
        f"pod ml/p, {OF_KUEUE}podset-unconstrained-topology]:"
        " cannot be combined with kueue.x-k8s.io/podset-required-topology",
    ),
    "slices without a size": (
        (),
        kueue_pod(podset_slice_required_topology="rack"),
        f"pod ml/p, {OF_KUEUE}podset-slice-size]: is required: the level of slices is stated",
    ),
    "layers that do not divide each other": (
        (),
        kueue_pod(
            podset_slice_required_topology_constraints='[{"topology":"b","size":8},{"topology":"r","size":3}]'
        ),
        f"pod ml/p, {OF_KUEUE}podset-slice-required-topology-constraints]:"
        " layer 1 does not divide the one around it: 8 by 3",
    ),
    "layers that are not JSON": (
        (),
        kueue_pod(podset_slice_required_topology_constraints="rack"),
        f"pod ml/p, {OF_KUEUE}podset-slice-required-topology-constraints]: is not JSON: ",
    ),
    "an index that is not a number": (
        (),
        pod(
            labels={"kueue.x-k8s.io/pod-group-name": "g", "i": "first"},
            stated={TOTAL: "2", "kueue.x-k8s.io/pod-group-pod-index-label": "i"},
        ),
        "pod ml/p, metadata.labels[i]: 'first' is not an index",
    ),
    "text for the size of a gang": (
        (),
        pod(stated={"drayman.dev/gang": "eight"}, owner=OWNED),
        f"pod ml/p, {OURS}gang]: 'eight' is not a number of pods",
    ),
    "a gang of none": (
        (),
        pod(stated={"drayman.dev/gang": "0"}, owner=OWNED),
        f"pod ml/p, {OURS}gang]: 0 is less than 1",
    ),
    "text for the size, on the Job": (
        (job({"drayman.dev/gang": "-1"}),),
        pod(owner=OWNED),
        f"job ml/train, {OURS}gang]: '-1' is not a number of pods",
    ),
    "a gang without others": (
        (),
        pod(stated={"drayman.dev/gang": "8"}),
        f"pod ml/p, {OURS}gang-name]: is required: 8 pods are to start together, and the pod has no controller",
    ),
    "a level that is no name": (
        (),
        pod(stated={"drayman.dev/required-level": "a rack"}, owner=OWNED),
        f"pod ml/p, {OURS}required-level]: 'a rack' is not the name of a node label or a device attribute",
    ),
    "a size of slices without a level": (
        (),
        pod(stated={"drayman.dev/slice-size": "2"}, owner=OWNED),
        f"pod ml/p, {OURS}slice-level]: is required: the size of slices is stated",
    ),
}


@pytest.mark.parametrize("case", FLAWS)
def test_what_does_not_make_sense_says_so(case: str) -> None:
    """The object and the field are named, and the pod is neither on its own nor in a gang."""
    objects, member, wanted = FLAWS[case]
    found = read(*objects, of=member)
    assert isinstance(found, Flaw)
    assert str(found).startswith(wanted)
    assert (found.kind is FlawKind.MISSING) == case.startswith("no group")
