"""A certificate authority for a test, and TLS contexts of servers that it vouches for."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_PEM = serialization.Encoding.PEM
_DAY = datetime.timedelta(days=1)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


@dataclass(slots=True)
class Authority:
    """Signs certificates."""

    name: str = "test CA"
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    def _build(self, subject: str, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(_name(subject))
            .issuer_name(_name(self.name))
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
        )

    def pem(self) -> bytes:
        """The authority's own certificate."""
        basic = x509.BasicConstraints(ca=True, path_length=None)
        builder = self._build(self.name, self.key.public_key()).add_extension(basic, critical=True)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(_PEM)

    def issue(self, subject: str, *hosts: str) -> tuple[bytes, bytes]:
        """A certificate and its key, for a client or for a server at these hosts."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._build(subject, key.public_key())
        if hosts:
            names = [_general_name(host) for host in hosts]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self.key, hashes.SHA256()).public_bytes(_PEM)
        plain = serialization.NoEncryption()
        return certificate, key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, plain)

    def server(self, folder: Path, *hosts: str, clients: bool = False) -> ssl.SSLContext:
        """TLS settings of a server at these hosts; with `clients`, one that wants certificates of its clients."""
        chain, key = folder / "server.crt", folder / "server.key"
        for path, data in zip((chain, key), self.issue("server", *hosts), strict=True):
            path.write_bytes(data)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key)
        if clients:
            context.load_verify_locations(cadata=self.pem().decode())
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
