"""The certificate with which a node serves, and its key: in one private file, so that they belong together whenever somebody looks."""

from __future__ import annotations

import hashlib
import random
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from drayman.api.node_identity import NODES, user_of
from drayman.plugins.files import write_atomically

_RENEW: Final = (0.7, 0.9)
"""The part of its time after which a certificate is renewed, at random, so that nodes that began together do not ask together."""
_PRIVATE: Final = 0o600


class KeyFile:
    """The key of a request that is under way. It outlives the agent, so that the next one waits for the same request."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def key(self) -> ec.EllipticCurvePrivateKey:
        """Made if there is none. Raises OSError."""
        if self._path.exists():
            found = _read_key(self._path.read_bytes())
            if found is not None:
                return found
        key = ec.generate_private_key(ec.SECP256R1())
        write_atomically(self._path, _key_pem(key), _PRIVATE)
        return key

    def forget(self) -> None:
        self._path.unlink(missing_ok=True)


class ServingFile:
    """Certificate and key of one node at one address, for the cluster with this authority (PEM)."""

    def __init__(self, path: Path, node: str, address: str, authority: bytes) -> None:
        self.path = path
        self._node = node
        self._address = address
        self._authority = authority

    def write(self, certificate: bytes, key: ec.EllipticCurvePrivateKey) -> None:
        """Raises OSError."""
        content = self._issued_under(), certificate.rstrip(), _key_pem(key)
        write_atomically(self.path, b"\n".join(content), _PRIVATE)

    def renewal(self, now: datetime) -> datetime | None:
        """When the certificate in the file is to be renewed; None if there is none that could be used now. Raises OSError."""
        if not self.path.exists():
            return None
        data = self.path.read_bytes()
        certificate = self._usable(data)
        if certificate is None or certificate.not_valid_after_utc <= now:
            return None
        begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        return begin + random.uniform(*_RENEW) * (end - begin)

    def _usable(self, data: bytes) -> x509.Certificate | None:
        key = _read_key(data)
        try:
            if key is None or not belong_together(data, key):
                return None
            certificate = x509.load_pem_x509_certificate(data)
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        except (ValueError, x509.ExtensionNotFound):
            return None
        is_ours = (
            data.startswith(self._issued_under())
            and certificate.subject == _subject(self._node)
            and _general_name(self._address) in names.value
        )
        return certificate if is_ours else None

    def _issued_under(self) -> bytes:
        """The first line of the file. Another cluster does not know the certificate; whether its authority signed it says nothing about
        that, because a cluster may sign for nodes with another one."""
        return b"authority " + hashlib.sha256(self._authority).hexdigest().encode()


def request_for(key: ec.EllipticCurvePrivateKey, node: str, address: str) -> bytes:
    """A request for a certificate with which a node serves at an address; PEM."""
    names = x509.SubjectAlternativeName([_general_name(address)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(_subject(node))
    request = builder.add_extension(names, critical=False).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM)


def request_name(key: ec.EllipticCurvePrivateKey, node: str, address: str) -> str:
    """The name of the object for such a request: the same for the same key, and nobody else can know it before."""
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    digest = hashlib.sha256(b"\0".join((node.encode(), address.encode(), public))).hexdigest()
    return f"node-csr-{digest[:40]}"


def belong_together(certificate: bytes, key: ec.EllipticCurvePrivateKey) -> bool:
    """Whether a certificate, in PEM, is that of a key. Raises ValueError if it is none."""
    return x509.load_pem_x509_certificate(certificate).public_key() == key.public_key()


def _subject(node: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, NODES),
            x509.NameAttribute(NameOID.COMMON_NAME, user_of(node)),
        ]
    )


def _general_name(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _read_key(data: bytes) -> ec.EllipticCurvePrivateKey | None:
    try:
        key = serialization.load_pem_private_key(data[data.find(b"-----BEGIN PRIVATE KEY") :], None)
    except (ValueError, TypeError):
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) else None


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
