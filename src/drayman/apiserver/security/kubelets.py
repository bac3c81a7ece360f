"""How the server and the kubelets of its nodes recognise each other: by certificates of the cluster's authority."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from drayman.apiserver.protocol.environment import Clock
from drayman.apiserver.security.authority import ensure_client_certificate

COMMON_NAME: Final = "kube-apiserver-kubelet-client"
ORGANIZATION: Final = "system:masters"


def kubelet_context(directory: Path, clock: Clock) -> ssl.SSLContext:
    """Believes what the cluster's authority signed, and shows a certificate of it. Raises AuthorityError."""
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, COMMON_NAME),
        ]
    )
    certificate, key = ensure_client_certificate(directory, "kubelet-client", subject, clock.now())
    context = ssl.create_default_context(cafile=directory / "ca.crt")
    context.load_cert_chain(certificate, key)
    return context
