"""What stock components of Kubernetes 1.36 follow from their start on is there to be listed and watched.

kube-scheduler does not start while a single one is missing; controllers of kube-controller-manager stay idle for theirs.
"""

from __future__ import annotations

import msgspec
import pytest

from drayman.apiserver.protocol.exchange import Query, Request, Response, StreamingResponse
from drayman.apiserver.serving.assembly import make_server
from drayman.cluster.embedded.store import Store

CORE = "api/v1"
SCHEDULER = {
    CORE: "namespaces nodes persistentvolumeclaims persistentvolumes pods replicationcontrollers services",
    "apis/apps/v1": "replicasets statefulsets",
    "apis/policy/v1": "poddisruptionbudgets",
    "apis/resource.k8s.io/v1": "deviceclasses resourceclaims resourceslices",
    "apis/resource.k8s.io/v1beta2": "devicetaintrules",
    "apis/scheduling.k8s.io/v1alpha2": "podgroups workloads",
    "apis/storage.k8s.io/v1": "csidrivers csinodes csistoragecapacities storageclasses volumeattachments",
}
CONTROLLER_MANAGER = {
    CORE: "configmaps endpoints namespaces nodes persistentvolumeclaims persistentvolumes pods replicationcontrollers "
    "resourcequotas secrets serviceaccounts services",
    "apis/apps/v1": "controllerrevisions daemonsets deployments replicasets statefulsets",
    "apis/autoscaling/v2": "horizontalpodautoscalers",
    "apis/batch/v1": "cronjobs jobs",
    "apis/certificates.k8s.io/v1": "certificatesigningrequests",
    "apis/coordination.k8s.io/v1": "leases",
    "apis/discovery.k8s.io/v1": "endpointslices",
    "apis/networking.k8s.io/v1": "ipaddresses servicecidrs",
    "apis/policy/v1": "poddisruptionbudgets",
    "apis/rbac.authorization.k8s.io/v1": "clusterroles",
    "apis/resource.k8s.io/v1": "deviceclasses resourceclaims resourceclaimtemplates resourceslices",
    "apis/resource.k8s.io/v1alpha3": "resourcepoolstatusrequests",
    "apis/resource.k8s.io/v1beta2": "devicetaintrules",
    "apis/scheduling.k8s.io/v1alpha2": "podgroups",
    "apis/storage.k8s.io/v1": "csidrivers csinodes storageclasses volumeattachments volumeattributesclasses",
}
"""But for ValidatingAdmissionPolicies, whose types one controller checks: see docs/differences.md."""
FOLLOWED = sorted(
    {
        f"/{version}/{resource}"
        for followed in (SCHEDULER, CONTROLLER_MANAGER)
        for version, resources in followed.items()
        for resource in resources.split()
    }
)


@pytest.mark.parametrize("path", FOLLOWED)
async def test_it_can_be_listed_and_watched(path: str) -> None:
    """A list, and a watch from there on."""
    server = make_server(Store.open(None))
    listed = await server.handle(Request("GET", path))
    assert isinstance(listed, Response)
    assert listed.status == 200, listed.body
    version = msgspec.json.decode(listed.body)["metadata"]["resourceVersion"]
    query = Query((("watch", "true"), ("resourceVersion", version), ("timeoutSeconds", "1")))
    watched = await server.handle(Request("GET", path, query))
    assert isinstance(watched, StreamingResponse)
    assert watched.status == 200
