"""kubectl and kinds that stock components look for: replication controllers, requests for certificates, addresses."""

from __future__ import annotations

import base64
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from apiserver.e2e.driving import Kubectl, running


def test_a_replication_controller_is_created_scaled_and_described(kubectl: Kubectl) -> None:
    """kubectl finds its scale, its pods and its events."""
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "app"}]},
    }
    body = {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": "web"},
        "spec": {"replicas": 1, "template": template},
    }
    assert kubectl("create", "-f", "-", given=body).strip() == "replicationcontroller/web created"
    assert "web scaled" in kubectl("scale", "rc", "web", "--replicas=2")
    kubectl("wait", "rc/web", "--for=jsonpath={.status.replicas}=2", "--timeout=150s")
    pods = kubectl("get", "pods", "-l", "app=web", "-o", "name").split()
    assert len(pods) == 2
    described = kubectl("describe", "rc", "web")
    assert "2 current / 2 desired" in described
    assert "SuccessfulCreate" in described
    assert "replicationcontroller/web" in kubectl("get", "all", "-o", "name")
    wide = kubectl("get", "rc", "-o", "wide").splitlines()
    assert wide[0].split() == ["NAME", "DESIRED", "CURRENT", "READY", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]  # fmt: skip
    assert wide[1].split()[-1] == "app=web"
    assert "replicas" in kubectl("explain", "rc.spec")


def test_a_request_for_a_certificate_is_approved_once(kubectl: Kubectl) -> None:
    """kubectl writes the approval; afterwards nobody denies it."""
    name = f"{kubectl.namespace}-jane"
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    key = ec.generate_private_key(ec.SECP256R1())
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    text = base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()
    body = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {"request": text, "signerName": "example.com/team", "usages": ["client auth"]},
    }
    kubectl("create", "-f", "-", given=body)
    assert kubectl("get", "csr", name, "--no-headers").split()[-1] == "Pending"
    assert "approved" in kubectl("certificate", "approve", name)
    (condition,) = kubectl.object("csr", name)["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("Approved", "KubectlApprove")
    assert "already Approved" in kubectl.refused("certificate", "deny", name)
    assert "jane" in kubectl("describe", "csr", name)


def test_ranges_and_addresses_are_listed(kubectl: Kubectl) -> None:
    """With the columns that kubectl shows of them."""
    name = kubectl.namespace
    body = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": name},
        "spec": {"cidrs": ["10.7.0.0/24"]},
    }
    kubectl("create", "-f", "-", given=body)
    header, row = kubectl("get", "servicecidr", name).splitlines()
    assert header.split() == ["NAME", "CIDRS", "AGE"]
    assert row.split()[:2] == [name, "10.7.0.0/24"]
    assert "No resources found" in kubectl.attempt("get", "ipaddresses").stderr


def test_an_autoscaler_is_made_and_shown(kubectl: Kubectl) -> None:
    """In whichever version kubectl asks for it."""
    kubectl("create", "deployment", "web", "--image=app")
    said = kubectl.attempt("autoscale", "deployment", "web", "--max=3", "--cpu-percent=50")
    assert "horizontalpodautoscaler.autoscaling/web autoscaled" in said.stdout
    assert "it scales nothing" in said.stderr
    row = kubectl("get", "hpa", "web", "--no-headers").split()
    assert row[:6] == ["web", "Deployment/web", "cpu:", "<unknown>/50%", "1", "3"]
    old = kubectl.object("horizontalpodautoscalers.v1.autoscaling", "web")
    assert old["spec"]["targetCPUUtilizationPercentage"] == 50


def test_what_nobody_acts_on_is_told(kubectl: Kubectl) -> None:
    """kubectl prints it when the object is created, and not when it is applied again."""
    said = kubectl.attempt("create", "cronjob", "nightly", "--image=app", "--schedule=0 3 * * *")
    assert said.stdout.strip() == "cronjob.batch/nightly created"
    assert said.stderr.strip() == (
        "Warning: CronJob nightly is stored, but no CronJob controller runs here: it starts no Jobs"
    )
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team"},
        "spec": {"hard": {"pods": "1"}},
    }
    for applied, is_warned in (("--server-side", True), ("--server-side", False)):
        said = kubectl.attempt("apply", applied, "-f", "-", given=quota)
        assert ("it limits nothing" in said.stderr) == is_warned


def test_beside_other_controllers_nothing_is_said(tmp_path: Path, kubectl_home: Path) -> None:
    """Without controllers of its own, the server leaves it to those that run beside it."""
    with running(tmp_path / "config", "--ephemeral", "--no-controllers") as server:
        alone = Kubectl(server, "default", kubectl_home)
        said = alone.attempt("create", "cronjob", "nightly", "--image=app", "--schedule=0 3 * * *")
        assert (said.returncode, said.stderr) == (0, "")
