"""Compute domains get the claim template that their workloads name, and a status."""

from __future__ import annotations

from drayman.cluster.resources import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from drayman.node.simulated.compute_domains import DOMAINS
from node.simulated.world import NAMESPACE, world

TEMPLATES = RESOURCE_CLAIM_TEMPLATES.as_values()
CLAIMS = RESOURCE_CLAIMS.as_values()


async def test_a_domain_has_a_template_and_becomes_ready() -> None:
    """The template asks for a channel of this domain; once a node has one, the domain is Ready there."""
    async with world("gb200-nvl72=1") as w:
        spec = {"numNodes": 1, "channel": {"resourceClaimTemplate": {"name": "channel-0"}}}
        domain = await w.client.create(
            DOMAINS, {"metadata": {"name": "d"}, "spec": spec}, NAMESPACE
        )
        template = await w.until(TEMPLATES, "channel-0", lambda _: True)
        uid = domain["metadata"]["uid"]
        assert template["metadata"]["ownerReferences"][0]["uid"] == uid
        devices = template["spec"]["spec"]["devices"]
        assert devices["config"][0]["opaque"]["parameters"]["domainID"] == uid
        found = await w.until(DOMAINS, "d", lambda d: "status" in d)
        assert found["status"] == {"status": "NotReady", "nodes": []}
        node = "gb200-nvl72-0-03"
        await w.claim("c", ("compute-domain.nvidia.com", node, "channel-0"), spec=devices)
        ready = await w.until(DOMAINS, "d", lambda d: d["status"]["status"] == "Ready")
        assert [each["name"] for each in ready["status"]["nodes"]] == [node]
