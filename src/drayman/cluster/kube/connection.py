"""Where an API server is and how to authenticate there, as a kubeconfig context or a pod's own files say."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from drayman.cluster.errors import ConfigurationError
from drayman.cluster.kube.credentials import ANONYMOUS, ClientCertificate, Credentials


@dataclass(frozen=True, slots=True)
class Trust:
    """How the server proves who it is. Without its own CA, by the system's."""

    ca: bytes | None = None
    """PEM."""
    insecure: bool = False
    """Accept any certificate. Only with an explicit `insecure-skip-tls-verify`."""
    server_name: str = ""
    """The name in the server's certificate, where it is not that of the address."""


@dataclass(frozen=True, slots=True)
class Connection:
    """One server and one user of it."""

    server: str
    """Address, perhaps with a path: `https://10.0.0.1:6443`."""
    trust: Trust = Trust()
    credentials: Credentials = ANONYMOUS
    proxy: str = ""
    namespace: str = "default"
    """The namespace that a user of this context means when they name none."""
    headers: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    """Sent with every request, such as impersonation."""
    name: str = ""
    """What people call it: `context prod`."""

    def __str__(self) -> str:
        """The cluster as shown to people."""
        return f"{self.name} ({self.server})" if self.name else self.server

    @property
    def uses_tls(self) -> bool:
        return self.server.startswith("https://")

    @property
    def begins_with_tls(self) -> bool:
        """Whether TLS is used to the server or to the proxy in front of it."""
        return self.uses_tls or self.proxy.startswith("https://")


def tls_context(trust: Trust, certificate: ClientCertificate | None) -> ssl.SSLContext:
    """The TLS settings of a connection. Raises ConfigurationError where a certificate or key cannot be used."""
    try:
        context = ssl.create_default_context(
            cadata=None if trust.ca is None else trust.ca.decode("ascii")
        )
    except (ssl.SSLError, ValueError) as error:
        raise ConfigurationError(
            f"certificate-authority is not a PEM certificate: {error}"
        ) from error
    # From Python 3.13 on certificates must follow every rule of RFC 5280, and those of many clusters do not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if trust.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _load_certificate(context, certificate)
    return context


def _load_certificate(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    # OpenSSL's binding reads certificate and key from files only. The folder is private to the user and removed at once.
    with tempfile.TemporaryDirectory(prefix="drayman-") as folder:
        chain, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
        chain.write_bytes(certificate.chain)
        key.touch(mode=0o600)
        key.write_bytes(certificate.key)
        try:
            # A password is asked for on the terminal unless one is given, and this may be a service without any.
            context.load_cert_chain(chain, key, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            raise ConfigurationError(
                f"client certificate or key cannot be used: {error}"
            ) from error


def _no_password() -> str:
    raise ConfigurationError("the client key is encrypted, which is not supported")
