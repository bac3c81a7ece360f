"""Stated alignments on a whole cluster: devices, the annotation of the claim, and its end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controllers.world import CLAIM_VALUES
from drayman.cluster.errors import StatusError
from scheduler.behaviour.beside import scheduling, served
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import Stage, asks, devices_of, from_template, wants

ALIGN = "drayman.dev/align"
ALIGNMENT = "drayman.dev/alignment"
ROOT = "resource.kubernetes.io/pcieRoot"
NUMA = "resource.kubernetes.io/numaNode"
BOTH = (wants("gpu", "gpu"), wants("nic", "nic"))


def at(name: str, root: str, numa: int) -> dict[str, Any]:
    return {"name": name, "attributes": {ROOT: {"string": root}, NUMA: {"int": numa}}}


async def one_node(stage: Stage) -> None:
    """Two GPUs and a card beside the second one."""
    await stage.device_class("gpu", "device.driver == 'gpu.example.com'")
    await stage.device_class("nic", "device.driver == 'nic.example.com'")
    await stage.node("node-a", at("gpu-0", "r0", 0), at("gpu-1", "r1", 1))
    await stage.slice("node-a", at("nic-0", "r1", 1), driver="nic.example.com", nodeName="node-a")


async def aligned_claim(stage: Stage, name: str, text: str) -> None:
    metadata = {"name": name, "annotations": {ALIGN: text}}
    await stage.create(CLAIM_VALUES, {"metadata": metadata, "spec": asks(*BOTH)})


async def test_the_life_of_an_alignment(cluster: Cluster) -> None:
    """Noted on the claim together with the devices, and gone with them."""
    async with cluster() as stage:
        await one_node(stage)
        await aligned_claim(stage, "c", "pcieRoot > any")
        await stage.start_pod("p", "c")
        await stage.bound("p")
        claim = await stage.allocated("c")
        assert devices_of(claim) == ["gpu-1", "nic-0"]
        (note,) = json.loads(claim.metadata.annotations[ALIGNMENT])
        assert (note["level"], note["score"], note["requests"]) == ("pcieRoot", 100, ["gpu", "nic"])
        await stage.finish("p")
        claim = await stage.until_claim("c", lambda claim: not claim.metadata.finalizers)
        assert claim.metadata.annotations == {ALIGN: "pcieRoot > any"}


async def test_claims_from_a_template_carry_its_statement(cluster: Cluster) -> None:
    """The annotations of the template's claims count; the claim is made, aligned and noted in one go."""
    async with cluster() as stage:
        await one_node(stage)
        await stage.make_template("t", *BOTH, annotations={ALIGN: "numaNode"})
        await stage.start_pod("p", from_template("t"))
        await stage.bound("p")
        claim = await stage.claim_of("p")
        assert devices_of(claim) == ["gpu-1", "nic-0"]
        assert json.loads(claim.metadata.annotations[ALIGNMENT])[0]["level"] == "numaNode"


async def test_the_server_refuses_what_makes_no_sense(cluster: Cluster) -> None:
    """With the object and the field."""
    async with cluster() as stage:
        with pytest.raises(StatusError) as refused:
            await aligned_claim(stage, "c", "numa > any")
        text = str(refused.value)
        assert 'ResourceClaim.resource.k8s.io "c" is invalid' in text
        assert f"metadata.annotations[{ALIGN}]" in text
        assert "did you mean numaNode?" in text


async def test_a_scheduler_beside_the_server_notes_it_too(tmp_path: Path) -> None:
    """Without transactions, the annotation is written with the finalizer, before the devices."""
    async with served(tmp_path, guard=False) as (stage, connect):
        await one_node(stage)
        async with scheduling(connect(), "default-scheduler"):
            await aligned_claim(stage, "c", "one numaNode > any")
            await stage.start_pod("p", "c")
            await stage.bound("p")
            claim = await stage.allocated("c")
            assert json.loads(claim.metadata.annotations[ALIGNMENT])[0]["level"] == "one numaNode"
