"""How the server and the kubelets of its nodes recognise each other: by certificates of the cluster's two authorities."""

from __future__ import annotations

import logging
import ssl
from datetime import datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from drayman.apiserver.protocol.environment import Clock
from drayman.apiserver.security.authority import (
    LOOK_EVERY,
    NODES_AUTHORITY,
    AuthorityError,
    ensure_client_certificate,
)

COMMON_NAME: Final = "kube-apiserver-kubelet-client"
ORGANIZATION: Final = "system:masters"
_log: Final = logging.getLogger(__name__)


class KubeletTrust:
    """Believes what the authority of nodes signed, and shows a certificate of the cluster's, which is renewed in time."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self._context: ssl.SSLContext | None = None
        self._looked = clock.now()

    def context(self) -> ssl.SSLContext:
        """Always the same one: connections that are there go on, new ones show the latest certificate. Raises
        AuthorityError and OSError if there has never been one."""
        now = self._clock.now()
        if self._context is None:
            context = ssl.create_default_context(cafile=self._directory / NODES_AUTHORITY)
            self._load(context, now)
            self._context = context
        elif now - self._looked >= LOOK_EVERY:
            try:
                self._load(self._context, now)
            except (AuthorityError, OSError) as error:
                _log.warning("the certificate for kubelets is not renewed: %s", error)
        return self._context

    def _load(self, context: ssl.SSLContext, now: datetime) -> None:
        subject = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
                x509.NameAttribute(NameOID.COMMON_NAME, COMMON_NAME),
            ]
        )
        context.load_cert_chain(
            *ensure_client_certificate(self._directory, "kubelet-client", subject, now)
        )
        self._looked = now
