"""What is reported as held twice."""

from __future__ import annotations

from pathlib import Path

from cluster.contract.clusters import in_process
from drayman.cluster.informers import Informers
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import DEVICE_TAINT_RULES, PODS, RESOURCE_CLAIMS
from drayman.scheduler.rivals import Rivals
from drayman.scheduler.tally import Tally
from placement.test_rivals import claim, seen


async def test_a_decision_that_is_not_written_is_no_second_holder(tmp_path: Path) -> None:
    """It will be refused, or give way. Once the server shows that both have the device, that is reported."""
    theirs, ours = claim("theirs", 5, "whole-0"), claim("ours", 7, "whole-0")
    state = seen([theirs, claim("ours", 6)])
    assert ours.status.allocation is not None
    state.hold("ours", ours.status.allocation)
    tally = Tally()
    async with in_process(tmp_path) as client:
        informers = Informers(client)
        claims, pods = informers.informer(RESOURCE_CLAIMS), informers.informer(PODS)
        rules = informers.informer(DEVICE_TAINT_RULES)
        rivals = Rivals(client, state, claims, pods, rules, EventRecorder(client, "tester"), tally)
        rivals._judge(theirs)
        assert tally.held_twice == 0
        state.set_claim(ours)
        rivals._judge(theirs)
        assert tally.held_twice == 1
