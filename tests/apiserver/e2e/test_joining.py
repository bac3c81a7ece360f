"""A machine that joins with nothing but a kubeconfig: the commands as they are typed, in processes of their own."""

from __future__ import annotations

import base64
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from apiserver.e2e.driving import DRAYMAN, Kubectl, running
from drayman.testing.ports import kept_port
from patience import PATIENCE_S

NODE = "node-1"
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: p}}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: host
    command: [sh, -c, "echo up; touch {done}.not; while [ ! -e {done} ]; do sleep 0.05; done; echo end"]
    readinessProbe:
      exec: {{command: [test, -e, "{done}.not"]}}
      periodSeconds: 1
      timeoutSeconds: 30
"""


@contextmanager
def joined(kubeconfig: Path, root: Path) -> Iterator[None]:
    """A node that knows its kubeconfig and its own directory."""
    process = subprocess.Popen(
        [*DRAYMAN, "node", "run", "--name", NODE, "--root-dir", str(root), "--kubeconfig",
         str(kubeconfig), "--address", "127.0.0.1"],
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(f"node/{NODE} runs")
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0


def test_logs_and_commands_of_a_node_that_joined(kubectl_home: Path) -> None:
    """`kubectl logs`, `logs -f` and `exec` reach it: it has asked for a certificate, and the cluster has issued it."""
    with tempfile.TemporaryDirectory(prefix="join") as name:
        folder = Path(name)
        data, config = folder / "data", folder / "node.conf"
        with running(folder / "config", "--data-dir", data) as server:
            kubectl = Kubectl(server, "default", kubectl_home)
            words = [*DRAYMAN, "node", "kubeconfig", NODE, "--data-dir", str(data)]
            config.write_bytes(subprocess.run(words, check=True, capture_output=True).stdout)
            with joined(config, folder / "n"):
                (request,) = kubectl.object("csr")["items"]
                assert request["spec"]["username"] == f"system:node:{NODE}"
                kubectl("apply", "-f", "-", given=POD.format(done=folder / "done"))
                kubectl("wait", "--for=condition=Ready", "pod/p", f"--timeout={PATIENCE_S:.0f}s")
                assert kubectl("logs", "p") == "up\n"
                assert kubectl("exec", "-i", "p", "--", "cat", given="hello") == "hello"
                assert "exit code 3" in kubectl.refused("exec", "p", "--", "sh", "-c", "exit 3")
                (folder / "done").touch()
                assert kubectl("logs", "-f", "p") == "up\nend\n"
                kubectl("delete", "pod", "p")


def test_a_node_waits_for_a_cluster_that_is_away(tmp_path: Path) -> None:
    """It says what it waits for, once, and runs when the cluster is back at its address; Ctrl-C ends the waiting."""
    config = tmp_path / "node.conf"
    with tempfile.TemporaryDirectory(prefix="join") as name, kept_port() as port:
        folder = Path(name)
        data = ("--data-dir", str(folder / "data"))
        with running(folder / "config", *data, "--port", str(port)):
            words = [*DRAYMAN, "node", "kubeconfig", NODE, *data]
            config.write_bytes(subprocess.run(words, check=True, capture_output=True).stdout)
        words = [*DRAYMAN, "node", "run", "--name", NODE, "--root-dir", str(folder / "n"),
                 "--kubeconfig", str(config), "--address", "127.0.0.1"]  # fmt: skip
        with waiting(words):
            pass
        with (
            waiting(words) as process,
            running(folder / "config", *data, "--port", str(port)),
        ):
            assert process.stdout is not None
            assert process.stdout.readline().startswith(f"node/{NODE} runs")


@contextmanager
def waiting(words: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A node that has said that it waits for its cluster, until Ctrl-C."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert "connection refused; waiting for the cluster" in said
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0
    assert "waiting" not in said


def request_of(name: str, signer: str) -> tuple[dict[str, object], bytes]:
    """A request for a client certificate, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    pem = base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()
    value = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {"request": pem, "signerName": signer, "usages": ["client auth"]},
    }
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return value, private


def test_certificates_of_users(kubectl: Kubectl, tmp_path: Path) -> None:
    """After `kubectl certificate approve` there is one, with which its user is known; after `deny` there is none."""
    value, key = request_of("jane", "kubernetes.io/kube-apiserver-client")
    done = kubectl.attempt("create", "-f", "-", given=value)
    assert (done.returncode, done.stderr) == (0, "")
    kubectl("certificate", "approve", "jane")
    kubectl("wait", "csr/jane", "--for=jsonpath={.status.certificate}",
            f"--timeout={PATIENCE_S:.0f}s")  # fmt: skip
    certificate = kubectl.object("csr", "jane")["status"]["certificate"]
    (tmp_path / "tls.crt").write_bytes(base64.b64decode(certificate))
    (tmp_path / "tls.key").write_bytes(key)
    shown = ("--client-certificate", str(tmp_path / "tls.crt"),
             "--client-key", str(tmp_path / "tls.key"))  # fmt: skip
    assert "jane" in kubectl("auth", "whoami", *shown)
    value, _ = request_of("bob", "kubernetes.io/kube-apiserver-client")
    kubectl("create", "-f", "-", given=value)
    kubectl("certificate", "deny", "bob")
    assert kubectl("get", "csr", "bob").splitlines()[1].endswith("Denied")
    kubectl("delete", "csr", "jane", "bob")


def test_a_request_to_a_signer_that_does_not_run_here(kubectl: Kubectl) -> None:
    """Is stored, and its creator is told that nothing comes of it."""
    value, _ = request_of("stranger", "example.com/clients")
    done = kubectl.attempt("create", "-f", "-", given=value)
    assert "no signer of that name runs here" in done.stderr
    kubectl("delete", "csr", "stranger")
