"""How to reach the cluster that is meant: by a kubeconfig, or as a pod inside it.

The order is kubectl's: the file that was named, KUBECONFIG, the file in the home directory, and the service account of the pod we
run in.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from drayman.cluster.errors import ConfigurationError, NoClusterError
from drayman.cluster.kube.connection import Connection, Trust
from drayman.cluster.kube.credentials import TokenFileCredentials
from drayman.cluster.kube.kubeconfig import Kubeconfig, default_paths
from drayman.cluster.kube.proxies import proxy_of

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where kubelets put a pod's token, the cluster's CA and the pod's namespace."""


def find_connection(
    kubeconfig: Path | None = None,
    context: str = "",
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """Raises ConfigurationError, which says what was looked for."""
    paths = [kubeconfig] if kubeconfig is not None else default_paths(environment)
    if paths:
        return Kubeconfig.load(paths).connection(context)
    if listed := environment.get("KUBECONFIG"):
        raise ConfigurationError(f"KUBECONFIG is {listed}, and there is no such file")
    if context:
        raise NoClusterError(f"context {context!r}: there is no kubeconfig to look it up in")
    if "KUBERNETES_SERVICE_HOST" in environment:
        return in_cluster_connection(environment, service_account)
    raise NoClusterError(
        "no cluster to talk to: KUBECONFIG is not set, there is no ~/.kube/config, and this is not a pod"
    )


def in_cluster_connection(
    environment: Mapping[str, str] = os.environ, service_account: Path = SERVICE_ACCOUNT
) -> Connection:
    """As the service account of the pod we run in. Raises ConfigurationError."""
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ConfigurationError(
            "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"
        )
    namespace = service_account / "namespace"
    token = service_account / "token"
    try:
        authority = (service_account / "ca.crt").read_bytes()
        name = namespace.read_text().strip() if namespace.exists() else "default"
    except OSError as error:
        raise ConfigurationError(f"the pod's service account: {error}") from error
    if not token.exists():
        raise ConfigurationError(f"the pod has no service account token: {token} does not exist")
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return Connection(
        server=server,
        proxy=proxy_of(server, environment),
        name="the cluster of this pod",
        trust=Trust(authority),
        credentials=TokenFileCredentials(token),
        namespace=name,
    )
