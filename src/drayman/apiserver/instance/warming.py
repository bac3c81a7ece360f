"""Spares the first user a wait.

How objects of a kind are read, checked, defaulted and written is worked out when the first of them arrives. For pods and claims that
takes longer than all the rest of creating one, so a pod and a claim are created for show, right after the start.
"""

from __future__ import annotations

import logging
from typing import Final

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError
from drayman.cluster.options import WriteOptions
from drayman.cluster.resources import PODS, RESOURCE_CLAIMS

_log: Final = logging.getLogger(__name__)

_FOR_SHOW: Final = WriteOptions(dry_run=True)
_CLAIM: Final = {
    "metadata": {"generateName": "first-", "namespace": "default"},
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "any",
                    "exactly": {
                        "deviceClassName": "any",
                        "selectors": [{"cel": {"expression": "true"}}],
                    },
                }
            ]
        }
    },
}
_POD: Final = {
    "metadata": {"generateName": "first-", "namespace": "default"},
    "spec": {
        "containers": [
            {
                "name": "any",
                "image": "any",
                "resources": {"claims": [{"name": "any"}], "requests": {"cpu": "1"}},
            }
        ],
        "resourceClaims": [{"name": "any", "resourceClaimTemplateName": "any"}],
    },
}


async def warm_up(client: Client) -> None:
    """Create a claim and a pod, as far as that goes without any being there afterwards."""
    try:
        claim = codec.convert(ResourceClaim, _CLAIM)
        await client.create(RESOURCE_CLAIMS, claim, options=_FOR_SHOW)
        await client.create(PODS, codec.convert(Pod, _POD), options=_FOR_SHOW)
    except ClusterError as error:
        # Whatever keeps pods out of the namespace, being refused has warmed up as well.
        _log.info("nothing could be created for show: %s", error)
