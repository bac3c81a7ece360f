"""What tests of drivers need: a cluster in this process, a node that speaks the other side of the protocol, and machines made of folders.

async with TestCluster(folder) as cluster, FakeKubelet(cluster.client, "node-1", folder) as kubelet:
    await cluster.add_node("node-1")
    async with Plugin(YourDriver("node-1"), cluster.client, kubelet.options()):
        claim = await cluster.allocate("a-claim", YourDriver.name, "node-1", {"request": "device-0"})
        answer = await kubelet.prepare(YourDriver.name, claim)
        assert kubelet.container(answer).env == {...}
"""

from drayman.testing.cluster import TestCluster
from drayman.testing.hardware import FakeMachine
from drayman.testing.kubelet import FakeKubelet
from drayman.testing.nvml import FakeGpu, FakeNvml

__all__ = ["FakeGpu", "FakeKubelet", "FakeMachine", "FakeNvml", "TestCluster"]
