"""Gangs in less usual circumstances: groups that come, go and come back, members that cannot start, and what members share."""

from __future__ import annotations

from typing import Any

from controllers.world import NAMESPACE, eventually
from drayman.cluster.resources import JOBS, PODS, STATEFUL_SETS, JsonObject, generic
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import POD_VALUES, Stage, devices_of, from_template, users_of, wants
from scheduler.behaviour.test_gang_life import (
    KAI_GROUPS,
    PLUGIN_GROUPS,
    TOPOLOGIES,
    kai_gang,
    racks,
    restart,
    start_with,
)
from scheduler.behaviour.test_gangs import (
    GROUP_VALUES,
    RACK,
    group_says,
    make_gang,
    nodes_of,
    prepare,
    start,
)

IN_GROUP: dict[str, Any] = {"schedulingGroup": {"podGroupName": "g"}}
PRIORITIES = generic("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", namespaced=False)
ZONE = "topology.kubernetes.io/zone"
KUEUE = "kueue.x-k8s.io/pod-group-"


async def bound_number(stage: Stage, number: int) -> dict[str, str]:
    """Waits until so many pods have a node, and no more of them get one."""
    found = await eventually(
        lambda: nodes_of(stage), lambda nodes: sum(map(bool, nodes.values())) == number
    )
    return {name: node for name, node in found.items() if node}


async def test_a_group_that_is_replaced_by_another(cluster: Cluster) -> None:
    """While pods wait, their group is deleted and made again with a smaller number."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        await make_gang(stage, 3)
        await start(stage, "p", "q")
        await stage.refused("p", "has 2 of the 3 pods")
        await stage.patch(GROUP_VALUES, "g", {"metadata": {"finalizers": None}})
        await stage.delete(GROUP_VALUES, "g")
        await stage.refused("p", "Pod group default/g does not exist")
        await make_gang(stage, 2)
        await stage.bound("p", "q")


async def test_a_member_with_a_gate(cluster: Cluster) -> None:
    """The others wait for it, and say so."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        await make_gang(stage, 2)
        await start(stage, "p")
        gates = [{"name": "example.com/later"}]
        await stage.start_pod("q", from_template(), schedulingGates=gates, **IN_GROUP)
        await stage.refused("p", "has 1 of the 2 pods that start together and are ready. Pod q:")
        await stage.keeps_waiting("p")
        await stage.patch(POD_VALUES, "q", {"spec": {"schedulingGates": []}})
        await stage.bound("p", "q")


async def test_a_member_with_a_gate_that_is_not_needed(cluster: Cluster) -> None:
    """The others start without it, and it joins them later."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1", "gpu-2")
        await make_gang(stage, 2)
        gates = [{"name": "example.com/later"}]
        await stage.start_pod("q", from_template(), schedulingGates=gates, **IN_GROUP)
        await start(stage, "p", "r")
        await stage.bound("p", "r")
        await stage.patch(POD_VALUES, "q", {"spec": {"schedulingGates": []}})
        await stage.bound("q")


async def test_a_member_of_another_scheduler(cluster: Cluster) -> None:
    """It exists but is not ours to start: the reason says so. Two names that we serve may be mixed."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        await make_gang(stage, 2)
        await start(stage, "p")
        await stage.start_pod("q", from_template(), schedulerName="another", **IN_GROUP)
        text = await stage.refused("p", "has 1 of the 2 pods that start together and are ready")
        assert "another" in text
        await stage.start_pod("r", from_template(), schedulerName="drayman", **IN_GROUP)
        await stage.bound("p", "r")


async def test_a_member_is_deleted_while_the_gang_waits(cluster: Cluster) -> None:
    """The gang is incomplete then, until another one comes."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0")
        await make_gang(stage, 2)
        await start(stage, "p", "q")
        await stage.refused("p", "holds 1 of 2 pods")
        await stage.remove(POD_VALUES, "q")
        await stage.refused("p", "has 1 of the 2 pods")
        await start(stage, "r")
        await stage.refused("r", "holds 1 of 2 pods")
        await stage.node("node-b", "gpu-0")
        await stage.bound("p", "r")


async def test_subgroups_of_which_not_all_have_to_start(cluster: Cluster) -> None:
    """Two of three parts are enough; the one with a member that fits nowhere is left out."""
    async with cluster() as stage:
        await prepare(stage, *(f"gpu-{n}" for n in range(6)))
        parts = [{"name": n, "minMember": 2} for n in "xyz"]
        spec = {"minSubGroup": 2, "subGroups": parts}
        await stage.create(KAI_GROUPS, {"metadata": {"name": "g"}, "spec": spec})
        named = {"pod-group-name": "g"}
        container: JsonObject = {"name": "main", "image": "example.com/image:1"}
        for part in "xyz":
            for number in range(2):
                made: JsonObject = {
                    "containers": [container],
                    "resourceClaims": [from_template()],
                }
                if (part, number) == ("x", 1):
                    made["nodeSelector"] = {"no": "such"}
                labels = {"kai.scheduler/subgroup-name": part}
                metadata = {"name": f"{part}{number}", "annotations": named, "labels": labels}
                await stage.create(POD_VALUES, {"metadata": metadata, "spec": made})
        await stage.bound("y0", "y1", "z0", "z1")
        await stage.refused("x1")
        await stage.keeps_waiting("x1")


async def test_a_pod_group_of_kueue(cluster: Cluster) -> None:
    """It starts with its last pod."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1", "gpu-2")
        marks: dict[str, Any] = {
            "labels": {f"{KUEUE}name": "k"},
            "annotations": {f"{KUEUE}total-count": "3"},
        }
        await start_with(stage, "p", "q", **marks)
        await stage.refused("p", "has 2 of the 3 pods that start together")
        await start_with(stage, "r", **marks)
        await stage.bound("p", "q", "r")


async def test_late_group_of_the_plugin_and_kai(cluster: Cluster) -> None:
    """Groups of the same name and different kinds are different groups, and may come after their pods."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1", "gpu-2", "gpu-3")
        await start_with(stage, "p", "q", labels={"scheduling.x-k8s.io/pod-group": "g"})
        await start_with(stage, "r", "s", annotations={"pod-group-name": "g"})
        for name in "pr":
            await stage.refused(name, "Pod group default/g does not exist")
        await stage.create(PLUGIN_GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 2}})
        await stage.bound("p", "q")
        await stage.create(KAI_GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 2}})
        await stage.bound("r", "s")


async def test_the_basic_policy_with_a_level(cluster: Cluster) -> None:
    """Pods start one by one, in the domain of the first."""
    async with cluster() as stage:
        await racks(stage, a=1)
        spec = {
            "schedulingPolicy": {"basic": {}},
            "schedulingConstraints": {"topology": [{"key": RACK}]},
        }
        await stage.create(GROUP_VALUES, {"metadata": {"name": "g"}, "spec": spec})
        await start(stage, "p")
        assert await stage.bound("p") == "node-a"
        await stage.node("node-b", "gpu-0", labels={RACK: "b"})
        await start(stage, "q")
        await stage.refused("q", "Members run in rack a")
        await stage.node("node-c", "gpu-0", labels={RACK: "a"})
        assert await stage.bound("q") == "node-c"


async def test_a_shared_claim_and_a_level(cluster: Cluster) -> None:
    """The gang goes to the rack in which the device that it shares can be reached."""
    async with cluster() as stage:
        await racks(stage, a=4, b=2)
        await stage.device_class("link", "device.driver == 'link.example.com'")
        terms = [{"matchExpressions": [{"key": RACK, "operator": "In", "values": ["b"]}]}]
        await stage.slice(
            "links", "link-0", driver="link.example.com", nodeSelector={"nodeSelectorTerms": terms}
        )
        await stage.make_template("gpu", wants(select="device.driver == 'gpu.example.com'"))
        await stage.make_template("link", wants(device_class="link"))
        await make_gang(
            stage,
            2,
            resourceClaims=[from_template("link", "link")],
            schedulingConstraints={"topology": [{"key": RACK}]},
        )
        for name in ("p", "q"):
            entries = (from_template("gpu"), from_template("link", "link"))
            await stage.start_pod(name, *entries, **IN_GROUP)
        assert await stage.bound("p", "q") == "node-b"
        shared = (await stage.generated("p"))["link"]
        claim = await stage.allocated(shared or "")
        assert (users_of(claim), devices_of(claim)) == (["g"], ["link-0"])


async def test_a_shared_claim_by_name_that_has_its_device(cluster: Cluster) -> None:
    """The gang goes where the device is."""
    async with cluster() as stage:
        await racks(stage, a=3, b=3)
        await stage.make_claim("c")
        entry = {"name": "c", "resourceClaimName": "c"}
        await make_gang(
            stage,
            2,
            resourceClaims=[entry],
            schedulingConstraints={"topology": [{"key": RACK}]},
        )
        await stage.allocate_by_hand("c", "gpu-2", "node-b")
        for name in ("p", "q"):
            await stage.start_pod(name, entry, **IN_GROUP)
        assert await stage.bound("p", "q") == "node-b"
        assert users_of(await stage.allocated("c")) == ["g"]


async def test_members_that_keep_apart(cluster: Cluster) -> None:
    """Each member has a node of its own."""
    async with cluster() as stage:
        await prepare(stage)
        await stage.node("node-b")
        await make_gang(stage, 3)
        term = {
            "labelSelector": {"matchLabels": {"app": "train"}},
            "topologyKey": "kubernetes.io/hostname",
        }
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        container: JsonObject = {"name": "main", "image": "example.com/image:1"}
        for name in "pqr":
            metadata = {"name": name, "labels": {"app": "train"}}
            spec = {"containers": [container], "affinity": affinity, **IN_GROUP}
            await stage.create(POD_VALUES, {"metadata": metadata, "spec": spec})
        await stage.refused("p", "the cluster holds at most 2 of 3 pods", "anti-affinity")
        await stage.node("node-c")
        await stage.bound(*"pqr")
        assert len(set((await nodes_of(stage)).values())) == 3


async def test_members_with_the_same_port(cluster: Cluster) -> None:
    """Each has a node of its own."""
    async with cluster() as stage:
        await prepare(stage)
        await make_gang(stage, 2)
        container: JsonObject = {
            "name": "main",
            "image": "example.com/image:1",
            "ports": [{"containerPort": 80, "hostPort": 80}],
        }
        for name in "pq":
            spec = {"containers": [container], **IN_GROUP}
            await stage.create(POD_VALUES, {"metadata": {"name": name}, "spec": spec})
        await stage.refused("p", "1 of 2")
        await stage.node("node-b")
        await stage.bound(*"pq")


async def test_a_member_without_its_claim(cluster: Cluster) -> None:
    """The others wait for it, and name it and the claim."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        await make_gang(stage, 2)
        await start(stage, "p")
        await stage.start_pod("q", "missing", **IN_GROUP)
        await stage.refused("p", "are ready. Pod q:", "missing")
        await stage.make_claim("missing")
        await stage.bound("p", "q")


async def test_a_gang_of_a_stateful_set(cluster: Cluster) -> None:
    """Its pods start together if it makes them together."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        container: JsonObject = {"name": "main", "image": "example.com/image:1"}
        labels = {"app": "web"}
        template = {
            "metadata": {"labels": labels, "annotations": {"drayman.dev/gang": "3"}},
            "spec": {"containers": [container], "resourceClaims": [from_template()]},
        }
        spec = {
            "replicas": 3,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "serviceName": "web",
            "template": template,
        }
        await stage.create(STATEFUL_SETS.as_values(), {"metadata": {"name": "web"}, "spec": spec})

        async def pods() -> list[str]:
            return [p.metadata.name for p in (await stage.client.list(PODS, NAMESPACE)).items]

        await eventually(pods, lambda names: len(names) == 3)
        await stage.refused("web-0", "Gang default/statefulset/web")
        await stage.node("node-b", "gpu-0")
        await stage.bound("web-0", "web-1", "web-2")


async def test_a_gang_of_a_job_that_makes_fewer_pods_at_a_time(cluster: Cluster) -> None:
    """It says that pods are missing."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1", "gpu-2", "gpu-3")
        container: JsonObject = {"name": "main", "image": "example.com/image:1"}
        template = {
            "spec": {
                "containers": [container],
                "resourceClaims": [from_template()],
                "restartPolicy": "Never",
            }
        }
        spec = {"completions": 4, "parallelism": 2, "template": template}
        await stage.create(
            JOBS.as_values(),
            {"metadata": {"name": "train", "annotations": {"drayman.dev/gang": "4"}}, "spec": spec},
        )

        async def pods() -> list[str]:
            return [p.metadata.name for p in (await stage.client.list(PODS, NAMESPACE)).items]

        names = await eventually(pods, lambda names: len(names) == 2)
        await stage.refused(names[0], "Gang default/job/train has 2 of the 4 pods")


async def test_gangs_in_the_order_of_their_priority(cluster: Cluster) -> None:
    """What becomes free goes to the more important of two gangs that wait, though it came later."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        for name, value in (("most", 3000), ("more", 2000), ("less", 1000)):
            made = {"metadata": {"name": name}, "value": value, "preemptionPolicy": "Never"}
            await stage.create(PRIORITIES, made)
        for name in ("x", "y"):
            await stage.start_pod(name, from_template(), priorityClassName="most")
        await stage.bound("x", "y")
        for gang, priority in (("l", "less"), ("m", "more")):
            await make_gang(stage, 2, gang)
            for number in range(2):
                await stage.start_pod(
                    f"{gang}{number}",
                    from_template(),
                    schedulingGroup={"podGroupName": gang},
                    priorityClassName=priority,
                )
            await stage.refused(f"{gang}0", "fit at once")
        for name in ("x", "y"):
            await stage.remove(POD_VALUES, name)
        await stage.bound("m0", "m1")
        await stage.keeps_waiting("l0")


async def test_a_member_that_somebody_else_has_bound(cluster: Cluster) -> None:
    """It counts, and those that waited for it start."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        await make_gang(stage, 2)
        await start(stage, "p")
        await stage.refused("p", "has 1 of the 2 pods")
        container: JsonObject = {"name": "main", "image": "example.com/image:1"}
        spec = {"containers": [container], "nodeName": "node-a", **IN_GROUP}
        await stage.create(POD_VALUES, {"metadata": {"name": "q"}, "spec": spec})
        await stage.bound("p")


async def test_many_members_that_can_go_nowhere(cluster: Cluster) -> None:
    """Of twelve members the four that fit nowhere are anywhere in the order: the other eight are enough."""
    async with cluster() as stage:
        await prepare(stage, *(f"gpu-{n}" for n in range(12)))
        await make_gang(stage, 8)
        for number in range(12):
            spec: dict[str, Any] = {}
            if number in (0, 3, 6, 11):
                spec["nodeSelector"] = {"only": f"x{number}"}
            await stage.start_pod(f"p{number:02}", from_template(), **IN_GROUP, **spec)
        found = await bound_number(stage, 8)
        assert not found.keys() & {"p00", "p03", "p06", "p11"}


async def test_members_of_two_kinds(cluster: Cluster) -> None:
    """There is room for the small ones only, and they are enough."""
    async with cluster() as stage:
        await prepare(stage, *(f"gpu-{n}" for n in range(4)))
        await stage.make_template("four", wants(count=5))
        await make_gang(stage, 3)
        for number in range(3):
            await stage.start_pod(f"a-large{number}", from_template("four"), **IN_GROUP)
        await start(stage, "small0", "small1", "small2", "small3")
        found = await bound_number(stage, 4)
        assert all(name.startswith("small") for name in found)


async def test_members_of_two_kinds_that_are_in_each_others_way(cluster: Cluster) -> None:
    """One large member and two small ones fit, or four small ones; three are needed."""
    async with cluster() as stage:
        await prepare(stage, *(f"gpu-{n}" for n in range(4)))
        await stage.make_template("two", wants(count=2))
        await make_gang(stage, 3)
        for number in range(3):
            await stage.start_pod(f"a-large{number}", from_template("two"), **IN_GROUP)
        await start(stage, "small0", "small1")
        found = await bound_number(stage, 3)
        assert len(found) == 3


async def test_a_group_that_is_deleted_while_its_pods_run(cluster: Cluster) -> None:
    """They go on. One that comes later waits for its group."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1", "gpu-2")
        await stage.create(PLUGIN_GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 2}})
        marks = {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}
        await start_with(stage, "p", "q", **marks)
        await stage.bound("p", "q")
        await stage.delete(PLUGIN_GROUPS, "g")
        await start_with(stage, "r", **marks)
        await stage.refused("r", "Pod group default/g does not exist")
        await stage.stays_bound("p")
        await stage.create(PLUGIN_GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 3}})
        await stage.bound("r")


async def test_members_that_join_slices(cluster: Cluster) -> None:
    """Those beyond the quorum are in slices, too: two go to one rack, though they come one after the other."""
    async with cluster() as stage:
        await racks(stage, a=2)
        said = {"drayman.dev/gang": "2", "drayman.dev/gang-name": "g"}
        said |= {"drayman.dev/slice-size": "2", "drayman.dev/slice-level": RACK}
        index = "batch.kubernetes.io/job-completion-index"
        for number in range(2):
            await start_with(stage, f"p{number}", annotations=said, labels={index: str(number)})
        assert await stage.bound("p0", "p1") == "node-a"
        for rack in "bc":
            await stage.node(f"node-{rack}", "gpu-0", "gpu-1", labels={RACK: rack})
        homes = []
        for number in (2, 3):
            await start_with(stage, f"p{number}", annotations=said, labels={index: str(number)})
            homes.append(await stage.bound(f"p{number}"))
        assert homes[0] == homes[1] != "node-a"


async def test_job_set_pods_are_one_gang(cluster: Cluster) -> None:
    """The pods of two Jobs of a JobSet start together."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1", "gpu-2", "gpu-3")
        container: JsonObject = {"name": "main", "image": "example.com/image:1"}
        labels = {
            "jobset.sigs.k8s.io/jobset-name": "set",
            "jobset.sigs.k8s.io/jobset-uid": "set-uid",
        }
        template = {
            "metadata": {"labels": labels, "annotations": {"drayman.dev/gang": "4"}},
            "spec": {
                "containers": [container],
                "resourceClaims": [from_template()],
                "restartPolicy": "Never",
            },
        }
        spec = {"completions": 2, "parallelism": 2, "template": template}

        async def pods() -> list[str]:
            return [p.metadata.name for p in (await stage.client.list(PODS, NAMESPACE)).items]

        await stage.create(JOBS.as_values(), {"metadata": {"name": "set-a-0"}, "spec": spec})
        names = await eventually(pods, lambda names: len(names) == 2)
        await stage.refused(names[0], "Gang default/jobset/set has 2 of the 4 pods")
        await stage.create(JOBS.as_values(), {"metadata": {"name": "set-b-0"}, "spec": spec})
        await bound_number(stage, 4)


async def test_a_group_with_topology_that_does_not_exist(cluster: Cluster) -> None:
    """It waits for the topology."""
    async with cluster() as stage:
        await racks(stage, a=2)
        wish = {"topology": "t", "requiredTopologyLevel": "rack"}
        spec = {"minMember": 2, "topologyConstraint": wish}
        await stage.create(KAI_GROUPS, {"metadata": {"name": "g"}, "spec": spec})
        await start_with(stage, "p", "q", annotations={"pod-group-name": "g"})
        await stage.refused("p", "spec.topologyConstraint.topology: topology t does not exist")
        levels = [{"nodeLabel": RACK, "alias": "rack"}]
        await stage.create(TOPOLOGIES, {"metadata": {"name": "t"}, "spec": {"levels": levels}})
        await stage.bound("p", "q")


async def test_a_pod_that_succeeds_before_the_last_member_comes(cluster: Cluster) -> None:
    """What it has done counts, and those that come later join."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        await make_gang(stage, 2)
        await start(stage, "p", "q")
        await stage.bound("p", "q")
        await stage.finish("p")
        await start(stage, "r")
        await stage.bound("r")
        await group_says(stage, "True")


async def test_same_group_name_in_two_dialects(cluster: Cluster) -> None:
    """Members of one do not count for the other."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        await make_gang(stage, 2)
        await stage.create(PLUGIN_GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 1}})
        await start(stage, "p")
        await start_with(stage, "q", labels={"scheduling.x-k8s.io/pod-group": "g"})
        await stage.bound("q")
        await stage.refused("p", "has 1 of the 2 pods")
        await bound_number(stage, 1)


async def test_a_part_of_a_part_comes_back_to_its_domain(cluster: Cluster) -> None:
    """The part around them has to be in one zone, each of them in a rack: also if all of one are replaced."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.make_template("t")
        for zone in "xy":
            for rack in "12":
                for n in range(2):
                    await stage.node(
                        f"{zone}{rack}-{n}", "gpu-0", labels={ZONE: zone, RACK: f"{zone}{rack}"}
                    )
        levels = [{"nodeLabel": ZONE}, {"nodeLabel": RACK}]
        await stage.create(TOPOLOGIES, {"metadata": {"name": "t"}, "spec": {"levels": levels}})

        def wish(level: str) -> JsonObject:
            return {"topology": "t", "requiredTopologyLevel": level}

        parts = [
            {"name": "d", "minSubGroup": 2, "topologyConstraint": wish(ZONE)},
            {"name": "d1", "parent": "d", "minMember": 2, "topologyConstraint": wish(RACK)},
            {"name": "d2", "parent": "d", "minMember": 2, "topologyConstraint": wish(RACK)},
        ]
        spec = {"subGroups": parts, "stalenessGracePeriod": "-1s"}
        await stage.create(KAI_GROUPS, {"metadata": {"name": "g"}, "spec": spec})
        named = {"pod-group-name": "g"}
        for part in ("d1", "d2"):
            labels = {"kai.scheduler/subgroup-name": part}
            await start_with(stage, f"{part}a", f"{part}b", annotations=named, labels=labels)
        homes = {}
        for part in ("d1", "d2"):
            for n in "ab":
                homes[part + n] = (await stage.bound(part + n)).split("-")[0]
        assert homes["d1a"] == homes["d1b"] != homes["d2a"] == homes["d2b"]
        assert homes["d1a"][0] == homes["d2a"][0]
        await restart(stage, "d2b", annotations=named, labels={"kai.scheduler/subgroup-name": "d2"})
        assert (await stage.bound("d2b")).split("-")[0] == homes["d2a"]
        for n in "ab":
            await stage.finish(f"d2{n}", "Failed")
            await stage.remove(POD_VALUES, f"d2{n}")
        for n in "ab":
            await start_with(
                stage, f"d2{n}", annotations=named, labels={"kai.scheduler/subgroup-name": "d2"}
            )
        for n in "ab":
            assert (await stage.bound(f"d2{n}"))[0] == homes["d1a"][0]


async def test_a_pod_of_kueue_comes_back_to_its_slice(cluster: Cluster) -> None:
    """The label of the group has its index."""
    async with cluster() as stage:
        await racks(stage, a=2, b=2, c=2)

        def meta(role: str, index: int) -> dict[str, Any]:
            return {
                "labels": {
                    "kueue.x-k8s.io/pod-group-name": "k",
                    "kueue.x-k8s.io/podset": role,
                    "kueue.x-k8s.io/pod-group-pod-index": str(index),
                },
                "annotations": {
                    "kueue.x-k8s.io/pod-group-total-count": "4",
                    "kueue.x-k8s.io/podset-slice-required-topology": RACK,
                    "kueue.x-k8s.io/podset-slice-size": "2",
                },
            }

        for n in range(4):
            await start_with(stage, f"w{n}", **meta("w", n))
        home = [await stage.bound(f"w{n}") for n in range(4)]
        assert home[0] == home[1] != home[2] == home[3]
        await restart(stage, "w3", **meta("w", 3))
        assert await stage.bound("w3") == home[2]


async def test_a_shared_claim_outlives_its_first_pods(cluster: Cluster) -> None:
    """All members are replaced one by one, the shared claim stays."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        await make_gang(stage, 2, resourceClaims=[from_template()])
        await start(stage, "p", "q")
        await stage.bound("p", "q")
        (claim,) = await stage.claims()
        for name in "pq":
            await stage.finish(name, "Failed")
            await stage.remove(POD_VALUES, name)
            await start(stage, name)
            await stage.bound(name)
        (again,) = await stage.claims()
        assert again.metadata.uid == claim.metadata.uid
        assert users_of(again) == ["g"]


async def test_a_group_that_needs_no_number_of_pods(cluster: Cluster) -> None:
    """Each starts when it can, in the domain of the first."""
    async with cluster() as stage:
        await racks(stage, a=2, b=1)
        levels = [{"nodeLabel": RACK}]
        await stage.create(TOPOLOGIES, {"metadata": {"name": "t"}, "spec": {"levels": levels}})
        wish = {"topology": "t", "requiredTopologyLevel": RACK}
        await kai_gang(stage, "p", minMember=0, topologyConstraint=wish)
        home = await stage.bound("p")
        await start_with(stage, "q", annotations={"pod-group-name": "g"})
        await start_with(stage, "r", annotations={"pod-group-name": "g"})
        nodes = await bound_number(stage, 2 if home == "node-a" else 1)
        assert len(set(nodes.values())) == 1


async def test_a_job_that_is_annotated_while_its_pods_wait(cluster: Cluster) -> None:
    """They are a gang from then on."""
    async with cluster() as stage:
        await prepare(stage)
        container: JsonObject = {"name": "main", "image": "example.com/image:1"}
        template = {
            "spec": {
                "containers": [container],
                "resourceClaims": [from_template()],
                "restartPolicy": "Never",
            }
        }
        spec = {"completions": 2, "parallelism": 2, "template": template}
        await stage.create(JOBS.as_values(), {"metadata": {"name": "train"}, "spec": spec})

        async def pods() -> list[str]:
            return [p.metadata.name for p in (await stage.client.list(PODS, NAMESPACE)).items]

        names = await eventually(pods, lambda names: len(names) == 2)
        await stage.refused(names[0])
        await stage.patch(
            JOBS.as_values(), "train", {"metadata": {"annotations": {"drayman.dev/gang": "2"}}}
        )
        await stage.refused(names[0], "gang default/job/train")
        await stage.node("node-b", "gpu-0")
        await stage.refused(names[0], "1 of 2")
        await stage.node("node-c", "gpu-0")
        await stage.bound(*names)
