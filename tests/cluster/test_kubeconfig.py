"""Kubeconfig files and a pod's own files lead to a connection, or to a sentence that says what is wrong."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml

from drayman.cluster.errors import ConfigurationError
from drayman.cluster.kube.connection import Connection
from drayman.cluster.kube.credentials import (
    ClientCertificate,
    Credential,
    StaticCredentials,
    TokenFileCredentials,
)
from drayman.cluster.kube.exec_plugin import ExecCredentials
from drayman.cluster.kube.kubeconfig import Kubeconfig, default_paths
from drayman.cluster.kube.locating import find_connection, in_cluster_connection


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def config(cluster: dict | None = None, user: dict | None = None, **context: str) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [
            {"name": "c", "cluster": {"server": "https://example.com:6443"} | (cluster or {})}
        ],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"} | context}],
        "preferences": None,
    }


def write(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(value))
    return path


def connection(tmp_path: Path, value: object, context: str = "") -> Connection:
    return Kubeconfig.load([write(tmp_path / "config", value)]).connection(context)


def test_a_plain_context(tmp_path: Path) -> None:
    """Server, namespace and a token."""
    found = connection(tmp_path, config(user={"token": "secret"}, namespace="team"))
    assert (found.server, found.namespace) == ("https://example.com:6443", "team")
    assert found.credentials == StaticCredentials(Credential("Bearer secret"))
    assert "secret" not in repr(found), "secrets do not show up in logs"


def test_inline_data_and_files(tmp_path: Path) -> None:
    """Certificates come inline or from files beside the kubeconfig; inline data wins."""
    for name in ("ca.crt", "me.crt", "me.key"):
        (tmp_path / name).write_text(f"file {name}")
    files = config(
        {"certificate-authority": "ca.crt"},
        {"client-certificate": "me.crt", "client-key": "me.key"},
    )
    found = connection(tmp_path, files)
    assert found.trust.ca == b"file ca.crt"
    certificate = ClientCertificate(b"file me.crt", b"file me.key")
    assert found.credentials == StaticCredentials(Credential(certificate=certificate))
    files["clusters"][0]["cluster"]["certificate-authority-data"] = encoded("inline")
    assert connection(tmp_path, files).trust.ca == b"inline"


def test_the_ways_to_say_who_one_is(tmp_path: Path) -> None:
    """Token file, user and password, exec plugin, nobody."""
    by_file = connection(tmp_path, config(user={"token": "old", "tokenFile": "token"})).credentials
    assert isinstance(by_file, TokenFileCredentials)
    assert by_file.path == tmp_path / "token"
    basic = connection(tmp_path, config(user={"username": "me", "password": "pw"})).credentials
    assert basic == StaticCredentials(Credential(f"Basic {encoded('me:pw')}"))
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "login",
        "args": ["--now"],
        "env": [{"name": "A", "value": "b"}],
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    by_plugin = connection(tmp_path, config(user={"exec": plugin})).credentials
    assert isinstance(by_plugin, ExecCredentials)
    assert by_plugin.plugin.arguments == ("--now",)
    assert by_plugin.plugin.environment == {"A": "b"}
    assert by_plugin.plugin.cluster == {"server": "https://example.com:6443"}
    assert connection(tmp_path, config()).credentials == StaticCredentials()


def test_the_rest_of_a_cluster_entry(tmp_path: Path) -> None:
    """Proxy, server name, no verification, and a path below the address."""
    found = connection(
        tmp_path,
        config(
            {
                "server": "https://example.com/k8s/clusters/c-1/",
                "proxy-url": "http://proxy:3128",
                "tls-server-name": "kubernetes",
                "insecure-skip-tls-verify": True,
            }
        ),
    )
    assert found.server == "https://example.com/k8s/clusters/c-1"
    assert found.proxy == "http://proxy:3128"
    assert (found.trust.server_name, found.trust.insecure) == ("kubernetes", True)


def test_impersonation(tmp_path: Path) -> None:
    """Acting as somebody else is a matter of headers."""
    user = {"as": "jane", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"scope": ["x"]}}
    assert connection(tmp_path, config(user=user)).headers == {
        "Impersonate-User": "jane",
        "Impersonate-Uid": "7",
        "Impersonate-Group": ("a", "b"),
        "Impersonate-Extra-scope": ("x",),
    }


def test_several_files_count_as_one(tmp_path: Path) -> None:
    """Of two entries of one name the first wins; paths belong to the file they stand in."""
    first = config({"certificate-authority": "ca.crt"})
    first["users"] = []
    second = config({"server": "https://other"}, {"token": "t"})
    second["current-context"] = "elsewhere"
    second["contexts"].append({"name": "elsewhere", "context": {"cluster": "c"}})
    one, two = write(tmp_path / "one" / "config", first), write(tmp_path / "two" / "config", second)
    (tmp_path / "one" / "ca.crt").write_text("first's")
    merged = Kubeconfig.load([one, two])
    found = merged.connection()
    assert found.server == "https://example.com:6443"
    assert found.trust.ca == b"first's"
    assert found.credentials == StaticCredentials(Credential("Bearer t"))
    assert merged.connection("elsewhere").credentials == StaticCredentials()


def exec_user(**changes: object) -> dict:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "x",
        "interactiveMode": "Never",
    }
    return {"exec": plugin | changes}


PROBLEMS = [
    ("no current context", config() | {"current-context": ""}, "no current-context"),
    ("unknown context", config() | {"current-context": "there"}, "no context 'there'; it has: here"),
    ("unknown cluster", config() | {"clusters": []}, "no cluster 'c'; it has: none"),
    ("unknown user", config() | {"users": []}, "no user 'u'"),
    ("no address", config({"server": "example.com"}), "not an http or https address"),
    ("no port", config({"server": "https://localhost:99999"}), "not an http or https address"),
    ("half an address", config({"server": "https://[::1"}), "not an http or https address"),
    (
        "half a proxy",
        config({"server": "https://x", "proxy-url": "http://[::1"}),
        "only http and https proxies",
    ),
    ("socks proxy", config({"proxy-url": "socks5://p"}), "only http and https proxies"),
    ("bad base64", config({"certificate-authority-data": "?"}), "certificate-authority-data is not base64"),
    ("missing file", config({"certificate-authority": "gone"}), "certificate-authority: .*No such file"),
    (
        "insecure with a CA",
        config({"certificate-authority-data": encoded("x"), "insecure-skip-tls-verify": True}),
        "insecure-skip-tls-verify together",
    ),
    ("key without certificate", config(user={"client-key-data": encoded("k")}), "needs its key"),
    ("token with a line end", config(user={"token": "a\nb"}), "visible ASCII"),
    ("auth provider", config(user={"auth-provider": {"name": "gcp"}}), "auth-provider was removed"),
    ("old exec version", config(user=exec_user(apiVersion="v1alpha1")), "exec apiVersion 'v1alpha1'"),
    ("exec without command", config(user=exec_user(command="")), "no command"),
    ("exec without mode", config(user=exec_user(interactiveMode="")), "no interactiveMode"),
    ("exec with certificate", config(
        user=exec_user() | {"client-certificate-data": encoded("c"), "client-key-data": encoded("k")}
    ), "together with a client certificate"),
    ("groups without a user", config(user={"as-groups": ["a"]}), "need as"),
    ("wrong type", config() | {"clusters": "c"}, "Expected `array`"),
    ("a list", ["what"], "Expected `object`"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "message"), PROBLEMS, ids=[case[0] for case in PROBLEMS])
def test_what_is_wrong_is_said(tmp_path: Path, name: str, value: object, message: str) -> None:
    """Every problem is one sentence about the entry that has it."""
    with pytest.raises(ConfigurationError, match=message):
        connection(tmp_path, value)


@pytest.mark.parametrize(
    ("text", "line"), [("a: [", 1), ("\x00", 1), ("\t- x", 1), ("a: b\nc: d: e\n", 2)]
)
def test_what_is_no_yaml_is_refused(tmp_path: Path, text: str, line: int) -> None:
    """File and line are named."""
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=f"^kubeconfig {path}:{line}: not valid YAML: "):
        Kubeconfig.load([path])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("kind: Pod\n---\nkind: Pod\n", "it has 2 documents"),
        ("kind: Pod\n", "kind is 'Pod', not 'Config'"),
    ],
)
def test_manifests_are_no_kubeconfigs(tmp_path: Path, text: str, why: str) -> None:
    """They are good YAML, so that is not what is wrong with them."""
    path = tmp_path / "pod.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=f"^{path} is no kubeconfig: {why}$"):
        Kubeconfig.load([path])


def test_documents_without_content_do_not_count(tmp_path: Path) -> None:
    """As after a last line of three hyphens."""
    path = tmp_path / "config"
    path.write_text("kind: Config\ncurrent-context: a\n---\n")
    assert Kubeconfig.load([path]).current_context == "a"


def test_where_kubeconfigs_are_looked_for(tmp_path: Path) -> None:
    """KUBECONFIG is a list of which only files that exist count; else it is the one at home."""
    one = write(tmp_path / "one", config())
    listed = {"KUBECONFIG": f"{one}:{tmp_path / 'missing'}:", "HOME": str(tmp_path)}
    assert default_paths(listed) == [one]
    assert default_paths({"HOME": str(tmp_path)}) == []
    home = write(tmp_path / ".kube" / "config", config())
    assert default_paths({"HOME": str(tmp_path)}) == [home]


def test_a_named_file_must_exist(tmp_path: Path) -> None:
    """A file that was asked for is not passed over."""
    with pytest.raises(ConfigurationError, match="missing: cannot be read: no such file"):
        find_connection(tmp_path / "missing")


def service_account(folder: Path) -> Path:
    (folder / "token").write_text("t")
    (folder / "ca.crt").write_text("ca")
    (folder / "namespace").write_text("mine\n")
    return folder


@pytest.mark.parametrize(
    ("host", "server"), [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
def test_inside_a_pod(tmp_path: Path, host: str, server: str) -> None:
    """A pod finds its server by its environment and its credentials in its files."""
    environment = {
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": "443",
        "HOME": str(tmp_path / "home"),
    }
    found = find_connection(environment=environment, service_account=service_account(tmp_path))
    assert (found.server, found.namespace, found.trust.ca) == (server, "mine", b"ca")
    assert isinstance(found.credentials, TokenFileCredentials)


def test_nowhere_to_go(tmp_path: Path) -> None:
    """Without any configuration the error says where it was looked for."""
    with pytest.raises(ConfigurationError, match="no cluster to talk to"):
        find_connection(environment={"HOME": str(tmp_path)})
    with pytest.raises(ConfigurationError, match="not in a pod"):
        in_cluster_connection({})
    pod = {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1", "HOME": str(tmp_path)}
    with pytest.raises(ConfigurationError, match="service account"):
        find_connection(environment=pod, service_account=tmp_path)
    (tmp_path / "ca.crt").write_text("ca")
    with pytest.raises(ConfigurationError, match="no service account token"):
        find_connection(environment=pod, service_account=tmp_path)
