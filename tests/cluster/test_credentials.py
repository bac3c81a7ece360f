"""The server proves who it is, and so do we, also with credentials that change."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cluster.certificates import Authority
from cluster.fake_apiserver import FakeApiServer, Seen
from drayman.cluster import HttpClient
from drayman.cluster.errors import (
    ConfigurationError,
    CredentialsError,
    UnauthorizedError,
    UnreachableError,
    UntrustedError,
)
from drayman.cluster.kube.connection import Connection, Trust
from drayman.cluster.kube.credentials import (
    ClientCertificate,
    Credential,
    Credentials,
    StaticCredentials,
    TokenFileCredentials,
)
from drayman.cluster.kube.exec_plugin import ExecCredentials, ExecPlugin
from drayman.cluster.kube.retries import NO_RETRIES
from drayman.cluster.resources import CONFIG_MAPS

V1 = "client.authentication.k8s.io/v1"


def takes(*tokens: str) -> Callable[[Seen], bool]:
    """A server's opinion of tokens."""
    return lambda seen: seen.headers.get("authorization") in {f"Bearer {token}" for token in tokens}


async def ask(server: FakeApiServer, trust: Trust, credentials: Credentials) -> None:
    """One request, which succeeds or raises."""
    connection = Connection(server.url, trust, credentials)
    async with HttpClient(connection, retries=NO_RETRIES) as client:
        await client.list(CONFIG_MAPS, "ns")


NOBODY = StaticCredentials()


async def test_a_server_of_the_trusted_authority_is_trusted(tmp_path: Path) -> None:
    """The CA of the kubeconfig vouches for the server, and nobody else can."""
    authority, other = Authority(), Authority()
    tls = authority.server(tmp_path, "127.0.0.1")
    async with FakeApiServer().running(tls) as server:
        await ask(server, Trust(authority.pem()), NOBODY)
        for trust in (Trust(other.pem()), Trust()):
            with pytest.raises(UntrustedError):
                await ask(server, trust, NOBODY)
        await ask(server, Trust(insecure=True), NOBODY)


async def test_the_name_in_the_certificate_counts(tmp_path: Path) -> None:
    """A certificate for another name is refused, unless that name is what was asked for."""
    authority = Authority()
    async with FakeApiServer().running(authority.server(tmp_path, "kubernetes")) as server:
        with pytest.raises(UntrustedError):
            await ask(server, Trust(authority.pem()), NOBODY)
        await ask(server, Trust(authority.pem(), server_name="kubernetes"), NOBODY)


async def test_client_certificates(tmp_path: Path) -> None:
    """A server that wants a certificate gets it."""
    authority = Authority()
    tls = authority.server(tmp_path, "127.0.0.1", clients=True)
    mine = StaticCredentials(Credential(certificate=ClientCertificate(*authority.issue("me"))))
    async with FakeApiServer().running(tls) as server:
        await ask(server, Trust(authority.pem()), mine)
        with pytest.raises(UnreachableError):
            await ask(server, Trust(authority.pem()), NOBODY)


async def test_certificates_that_are_none_are_a_matter_of_configuration(tmp_path: Path) -> None:
    """What cannot be loaded is said before anything is sent."""
    authority = Authority()
    odd = StaticCredentials(Credential(certificate=ClientCertificate(b"no", b"pem")))
    async with FakeApiServer().running(authority.server(tmp_path, "127.0.0.1")) as server:
        with pytest.raises(ConfigurationError, match="certificate-authority"):
            await ask(server, Trust(b"no pem"), NOBODY)
        with pytest.raises(ConfigurationError, match="client certificate"):
            await ask(server, Trust(authority.pem()), odd)
        assert server.seen == []


async def test_credentials_do_not_travel_in_the_clear() -> None:
    """Over plain http nobody may listen in on a token, so none is sent; kubectl does the same."""
    async with FakeApiServer().running() as server:
        await ask(server, Trust(), StaticCredentials(Credential("Bearer secret")))
        assert "authorization" not in server.seen[0].headers


async def test_a_refused_token_stays_refused(tmp_path: Path) -> None:
    """A token that never changes is not tried twice."""
    authority = Authority()
    async with FakeApiServer(authorize=takes("right")).running(
        authority.server(tmp_path, "127.0.0.1")
    ) as server:
        await ask(server, Trust(authority.pem()), StaticCredentials(Credential("Bearer right")))
        with pytest.raises(UnauthorizedError):
            await ask(server, Trust(authority.pem()), StaticCredentials(Credential("Bearer wrong")))
        assert len(server.seen) == 2


async def test_a_rotated_token_is_read_again(tmp_path: Path) -> None:
    """A token file is read again when the server refuses the token, and after a minute."""
    file = tmp_path / "token"
    file.write_text("one\n")
    now = 0.0
    credentials = TokenFileCredentials(file, clock=lambda: now)
    authority = Authority()
    tls = authority.server(tmp_path, "127.0.0.1")
    async with FakeApiServer(authorize=takes("one")).running(tls) as server:
        await ask(server, Trust(authority.pem()), credentials)
        file.write_text("two\n")
        await ask(server, Trust(authority.pem()), credentials)
        assert server.seen[-1].headers["authorization"] == "Bearer one", "it was read each time"
        server.authorize = takes("two")
        await ask(server, Trust(authority.pem()), credentials)
        file.write_text("three\n")
        server.authorize = takes("two", "three")
        now = 61.0
        await ask(server, Trust(authority.pem()), credentials)
        assert server.seen[-1].headers["authorization"] == "Bearer three"


async def test_a_token_file_that_is_gone_is_named(tmp_path: Path) -> None:
    """The error says which file it is about."""
    with pytest.raises(CredentialsError, match=r"token file .*missing"):
        await TokenFileCredentials(tmp_path / "missing").current()
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(CredentialsError, match="visible ASCII"):
        await TokenFileCredentials(tmp_path / "empty").current()


def plugin(folder: Path, body: str, **options: object) -> ExecPlugin:
    """A plugin whose program is the given Python, which counts its runs in the file `runs`."""
    script = folder / "plugin.py"
    count = f"open({str(folder / 'runs')!r}, 'a').write('x')\n"
    script.write_text("import json, os, sys\n" + count + textwrap.dedent(body))
    settings = {"interactive": "Never", "arguments": (str(script),)} | options
    return ExecPlugin(V1, sys.executable, **settings)  # type: ignore[arg-type]


def printing(value: object) -> str:
    return f"print({json.dumps(value)!r})"


def credential(**status: str) -> dict:
    return {"apiVersion": V1, "kind": "ExecCredential", "status": status}


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text())


async def test_a_plugin_is_run_once_until_its_token_expires(tmp_path: Path) -> None:
    """The credential is kept, and renewed shortly before it expires."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    value = credential(token="t", expirationTimestamp="2026-01-01T01:00:00Z")
    credentials = ExecCredentials(plugin(tmp_path, printing(value)), clock=lambda: now)
    assert await credentials.current() == Credential("Bearer t")
    assert await credentials.current() == Credential("Bearer t")
    assert runs(tmp_path) == 1
    now += timedelta(minutes=59, seconds=55)
    await credentials.current()
    assert runs(tmp_path) == 2


async def test_a_plugin_is_run_again_when_its_token_is_refused(tmp_path: Path) -> None:
    """A 401 costs one more run, and the request gets through."""
    numbered = f"""
        number = len(open({str(tmp_path / "runs")!r}).read())
        status = {{"token": f"t{{number}}"}}
        print(json.dumps({{"apiVersion": {V1!r}, "kind": "ExecCredential", "status": status}}))
    """
    credentials = ExecCredentials(plugin(tmp_path, numbered))
    authority = Authority()
    async with FakeApiServer(authorize=takes("t2")).running(
        authority.server(tmp_path, "127.0.0.1")
    ) as server:
        await ask(server, Trust(authority.pem()), credentials)
        assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer t1", "Bearer t2"]


async def test_a_plugin_may_give_a_certificate(tmp_path: Path) -> None:
    """Certificates from a plugin are used as those of a kubeconfig."""
    authority = Authority()
    chain, key = authority.issue("me")
    value = credential(clientCertificateData=chain.decode(), clientKeyData=key.decode())
    credentials = ExecCredentials(plugin(tmp_path, printing(value)))
    tls = authority.server(tmp_path, "127.0.0.1", clients=True)
    async with FakeApiServer().running(tls) as server:
        await ask(server, Trust(authority.pem()), credentials)


async def test_a_plugin_is_told_what_it_is_for(tmp_path: Path) -> None:
    """Environment, cluster and interactivity reach the program."""
    body = f"""
        info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
        assert info["apiVersion"] == {V1!r} and info["spec"]["interactive"] is False
        token = info["spec"]["cluster"]["server"] + os.environ["EXTRA"]
        print(json.dumps({{"apiVersion": {V1!r}, "kind": "ExecCredential", "status": {{"token": token}}}}))
    """
    made = plugin(tmp_path, body, environment={"EXTRA": "!"}, cluster={"server": "https://c"})
    assert await ExecCredentials(made).current() == Credential("Bearer https://c!")


FAILURES = [
    ("fails", "sys.exit('no luck')", "ended with status 1: no luck"),
    ("prints nothing", "", "printed no ExecCredential"),
    (
        "other version",
        printing(credential(token="t") | {"apiVersion": "v1"}),
        "printed v1 ExecCredential",
    ),
    ("no status", printing({"apiVersion": V1, "kind": "ExecCredential"}), "neither a token nor"),
    ("half a pair", printing(credential(clientKeyData="k")), "without its key"),
    ("bad token", printing(credential(token="a b")), "visible ASCII"),
    ("bad time", printing(credential(token="t", expirationTimestamp="soon")), "is not a time"),
]


@pytest.mark.parametrize(("name", "body", "message"), FAILURES, ids=[case[0] for case in FAILURES])
async def test_a_plugin_that_fails_is_quoted(
    tmp_path: Path, name: str, body: str, message: str
) -> None:
    """What the program did wrong is said."""
    with pytest.raises(CredentialsError, match=message):
        await ExecCredentials(plugin(tmp_path, body)).current()


async def test_a_plugin_that_is_not_installed_comes_with_a_hint(tmp_path: Path) -> None:
    """The kubeconfig's own hint is shown."""
    missing = ExecPlugin(
        V1, "./no-such-program", folder=tmp_path, install_hint="Get it at the shop."
    )
    with pytest.raises(CredentialsError, match="Get it at the shop"):
        await ExecCredentials(missing).current()
