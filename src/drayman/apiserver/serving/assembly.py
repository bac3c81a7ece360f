"""The server assembled from its parts: every built-in resource, admission, health. Security and sockets come from outside."""

from __future__ import annotations

from drayman.api.pod_security import PodSecuritySettings
from drayman.apiserver.describing.openapi import OpenApiDocuments
from drayman.apiserver.extensions.serving import install_extensions
from drayman.apiserver.kinds import admission_plugins, builtin_resources
from drayman.apiserver.kinds.certificates import NoMasters
from drayman.apiserver.lifecycle.admission import NamespaceLifecycle
from drayman.apiserver.protocol.environment import Clock, Ids, RandomIds, SystemClock
from drayman.apiserver.serving.server import ApiServer
from drayman.apiserver.verbs.core import Core
from drayman.cluster.embedded.store import Store


def make_server(
    store: Store,
    *,
    clock: Clock | None = None,
    ids: Ids | None = None,
    pod_security: PodSecuritySettings | None = None,
) -> ApiServer:
    """A server over a store. It allows everything to every caller until configured otherwise."""
    core = Core(store, clock=clock or SystemClock(), ids=ids or RandomIds())
    for resource in builtin_resources():
        core.resources.add(resource)
    install_extensions(core)
    core.admission.plugins.extend(
        [NamespaceLifecycle(), NoMasters(), *admission_plugins(pod_security)]
    )
    return ApiServer(core, openapi=OpenApiDocuments(core.resources, core.clock))
