"""The certificates of the server: its own authority, and what that signs, for serving, for reaching kubelets, and for others who ask.

Made on the first start and kept in the data directory, so that a kubeconfig stays valid across restarts. Private keys are readable by their
owner only.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from drayman.apiserver.security.private_files import write_private
from drayman.controllers.certificates.signing import SigningError
from drayman.workloads.certificates.signers import CLIENT_AUTH, KEY_ENCIPHERMENT, SERVER_AUTH
from drayman.workloads.certificates.texts import request_in

AUTHORITY_LIFETIME: Final = timedelta(days=3650)
SERVING_LIFETIME: Final = timedelta(days=365)
RENEW_BEFORE: Final = timedelta(days=30)
LOOK_EVERY: Final = timedelta(days=1)
"""How often a process that runs on looks whether a certificate of its own is to be renewed."""
_CLOCK_SKEW: Final = timedelta(minutes=5)
AUTHORITY: Final = "ca.crt"
_KEY: Final = "ca.key"
NODES_AUTHORITY: Final = "nodes-ca.crt"
_NODES_KEY: Final = "nodes-ca.key"
"""Signs what nodes serve with. Only the API server believes it: with an address that it made up, a node could otherwise pass for the API
server to everybody who has a kubeconfig."""
_CRITICAL: Final = (x509.BasicConstraints, x509.KeyUsage)
_AUTH: Final = {
    SERVER_AUTH: ExtendedKeyUsageOID.SERVER_AUTH,
    CLIENT_AUTH: ExtendedKeyUsageOID.CLIENT_AUTH,
}


class AuthorityError(Exception):
    """The certificates in a directory cannot be used; says which file and why."""


@dataclass(frozen=True, slots=True)
class ServingFiles:
    """The paths of a server's certificates."""

    authority: Path
    authority_key: Path
    certificate: Path
    key: Path

    @classmethod
    def below(cls, directory: Path) -> ServingFiles:
        names = (AUTHORITY, _KEY, "server.crt", "server.key")
        return cls(*(directory / name for name in names))

    @property
    def authority_pem(self) -> bytes:
        return self.authority.read_bytes()


def ensure_certificates(directory: Path, hosts: Iterable[str], now: datetime) -> ServingFiles:
    """The certificates in a directory, made or renewed if necessary. Raises AuthorityError."""
    files = ServingFiles.below(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path, key, name in (
            (files.authority, files.authority_key, "drayman"),
            (directory / NODES_AUTHORITY, directory / _NODES_KEY, "drayman-nodes"),
        ):
            if not path.exists() or not key.exists():
                _make_authority(path, key, name, now)
    except OSError as error:
        raise AuthorityError(f"{error.filename or directory}: {error.strerror}") from error
    renew_serving(files, hosts, now)
    return files


def renew_serving(files: ServingFiles, hosts: Iterable[str], now: datetime) -> None:
    """If necessary, and by the authority that is there. Raises AuthorityError."""
    wanted = tuple(dict.fromkeys(hosts))
    try:
        if not _is_good(files, wanted, now):
            _make_serving(files, wanted, now)
    except OSError as error:
        raise AuthorityError(f"{error.filename}: {error.strerror}") from error


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _make_authority(path: Path, key_path: Path, name: str, now: datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name(name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    write_private(key_path, _key_pem(key))
    write_private(path, certificate.public_bytes(serialization.Encoding.PEM))


def ensure_client_certificate(
    directory: Path, stem: str, subject: x509.Name, now: datetime
) -> tuple[Path, Path]:
    """A certificate, and its key, by which the server proves to others who it is. Made or renewed if necessary. Raises AuthorityError."""
    certificate, key = directory / f"{stem}.crt", directory / f"{stem}.key"
    authority, authority_key = directory / AUTHORITY, directory / _KEY
    try:
        if not _is_current(authority, certificate, key, now):
            _issue(
                (authority, authority_key),
                (certificate, key),
                subject,
                [_key_usage(), x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])],
                now,
            )
    except OSError as error:
        raise AuthorityError(f"{error.filename or directory}: {error.strerror}") from error
    return certificate, key


@dataclass(frozen=True, slots=True)
class SigningAuthority:
    """Signs what others ask for, with the authorities in a directory. A key is read when it is used, and not kept."""

    directory: Path
    now: Callable[[], datetime]

    def sign(self, request: bytes, usages: tuple[str, ...], lifetime: timedelta) -> bytes:
        """Raises SigningError."""
        try:
            asked = request_in(request)
            names = (NODES_AUTHORITY, _NODES_KEY) if SERVER_AUTH in usages else (AUTHORITY, _KEY)
            certificate = _signed(
                (
                    _load_certificate(self.directory / names[0]),
                    _load_key(self.directory / names[1]),
                ),
                asked.public_key(),
                asked.subject,
                _extensions_for(asked, usages),
                self.now(),
                lifetime,
            )
        except AuthorityError as error:
            raise SigningError(str(error)) from error
        except OSError as error:
            raise SigningError(f"{error.filename}: {error.strerror}") from error
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise SigningError(f"the request cannot be signed: {error}") from error
        return certificate.public_bytes(serialization.Encoding.PEM)


def _extensions_for(
    asked: x509.CertificateSigningRequest, usages: Collection[str]
) -> list[x509.ExtensionType]:
    """The alternative names of a request. Whatever else it asks for, such as to be an authority, is not in the certificate."""
    auth = [oid for usage, oid in _AUTH.items() if usage in usages]
    names = [e.value for e in asked.extensions if e.oid == x509.SubjectAlternativeName.oid]
    return [
        x509.BasicConstraints(ca=False, path_length=None),
        _key_usage(encipherment=KEY_ENCIPHERMENT in usages),
        x509.ExtendedKeyUsage(auth),
        *names,
    ]


def _make_serving(files: ServingFiles, hosts: tuple[str, ...], now: datetime) -> None:
    names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
    use = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    _issue(
        (files.authority, files.authority_key),
        (files.certificate, files.key),
        _name("drayman-apiserver"),
        [_key_usage(), names, use],
        now,
    )


def _issue(
    signed_by: tuple[Path, Path],
    target: tuple[Path, Path],
    subject: x509.Name,
    extensions: Sequence[x509.ExtensionType],
    now: datetime,
) -> None:
    """Write a certificate and its key. `signed_by` and `target`: a certificate and its key each."""
    authority = _load_certificate(signed_by[0]), _load_key(signed_by[1])
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _signed(authority, key.public_key(), subject, extensions, now, SERVING_LIFETIME)
    write_private(target[1], _key_pem(key))
    write_private(target[0], certificate.public_bytes(serialization.Encoding.PEM))


def _signed(
    signed_by: tuple[x509.Certificate, ec.EllipticCurvePrivateKey],
    key: CertificatePublicKeyTypes,
    subject: x509.Name,
    extensions: Sequence[x509.ExtensionType],
    now: datetime,
    lifetime: timedelta,
) -> x509.Certificate:
    """Raises ValueError and TypeError for what cannot be in a certificate."""
    authority, signer = signed_by
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(min(now + lifetime, authority.not_valid_after_utc))
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=isinstance(extension, _CRITICAL))
    return builder.sign(signer, hashes.SHA256())


def _is_good(files: ServingFiles, hosts: tuple[str, ...], now: datetime) -> bool:
    """Whether the serving certificate exists, will stay valid, and names every host."""
    if not _is_current(files.authority, files.certificate, files.key, now):
        return False
    certificate = _load_certificate(files.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {_general_name(host) for host in hosts} <= set(names)


def _is_current(authority: Path, certificate: Path, key: Path, now: datetime) -> bool:
    """Whether a certificate exists, was signed by the authority, and will stay valid."""
    if not certificate.exists() or not key.exists():
        return False
    found = _load_certificate(certificate)
    if found.not_valid_after_utc - RENEW_BEFORE < now:
        return False
    return _belong_together(_load_certificate(authority), found, key)


def _belong_together(authority: x509.Certificate, certificate: x509.Certificate, key: Path) -> bool:
    """Whether the authority signed the certificate, and the key belongs to it. A crash between writes can leave mismatched files."""
    private = _load_key(key)
    if private.public_key() != certificate.public_key():
        return False
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _load_certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except ValueError as error:
        raise AuthorityError(f"{path} is not a certificate; remove it to have a new one") from error


def _load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError) as error:
        raise AuthorityError(f"{path} is not a private key; remove it to have a new one") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise AuthorityError(f"{path} is not an elliptic curve key; remove it to have a new one")
    return key


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_usage(*, signs_certificates: bool = False, encipherment: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=encipherment,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
