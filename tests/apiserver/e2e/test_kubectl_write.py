"""kubectl writes: create, apply, diff, replace, patch, label, annotate, scale, wait, cordon."""

from __future__ import annotations

import base64
import json

import pytest
import yaml

from apiserver.e2e.driving import Kubectl
from apiserver.e2e.manifests import Object, config_map, deployment, node, pod


def data_of(kubectl: Kubectl, name: str = "settings") -> dict[str, str]:
    data: dict[str, str] = kubectl.object("configmap", name).get("data", {})
    return data


# Several of these go out as protobuf.
@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("configmap settings --from-literal=a=1", "configmap/settings created"),
        ("secret generic password --from-literal=a=1", "secret/password created"),
        ("serviceaccount robot", "serviceaccount/robot created"),
        ("job once --image=app -- sleep 1", "job.batch/once created"),
        ("cronjob often --image=app --schedule=*/5****", None),
        ("deployment web --image=app --replicas=3 --port=80", "deployment.apps/web created"),
        ("service clusterip web --tcp=80:8080", "service/web created"),
        ("poddisruptionbudget two --selector=a=b --min-available=2", "poddisruptionbudget.policy/two created"),
        ("role reader --verb=get --resource=pods", "role.rbac.authorization.k8s.io/reader created"),
        ("rolebinding reads --role=reader --user=jane", "rolebinding.rbac.authorization.k8s.io/reads created"),
    ],
    ids=lambda value: value.split()[0] if value else "",
)  # fmt: skip
def test_create_by_name(kubectl: Kubectl, command: str, answer: str | None) -> None:
    """Each generator of kubectl makes an object that can be read back; nonsense is refused."""
    kind, *words = command.split()
    if answer is None:
        assert "schedule" in kubectl.refused("create", kind, *words)
        return
    assert kubectl("create", kind, *words).strip() == answer
    name = words[1] if words[0] in ("generic", "clusterip") else words[0]
    assert kubectl.object(kind, name)["metadata"]["name"] == name


def test_protobuf_bodies_are_whole(kubectl: Kubectl) -> None:
    """What kubectl sends as protobuf arrives with all of its fields."""
    kubectl("create", "job", "once", "--image=app", "--", "sleep", "1")
    kubectl("create", "secret", "generic", "password", "--from-literal=word=geheim")
    kubectl("create", "namespace", f"{kubectl.namespace}-other")
    job = kubectl.object("job", "once")
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert (container["image"], container["command"]) == ("app", ["sleep", "1"])
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    secret = kubectl.object("secret", "password")
    assert base64.b64decode(secret["data"]["word"]) == b"geheim"
    assert secret["type"] == "Opaque"
    other = kubectl.object("namespace", f"{kubectl.namespace}-other")
    assert other["status"]["phase"] == "Active"


def test_create_twice_is_refused(kubectl: Kubectl) -> None:
    """The second of the same name is a conflict, and a server-side dry run keeps nothing."""
    manifest = config_map("settings")
    assert "dry run" in kubectl("create", "--dry-run=server", "-f", "-", given=manifest)
    assert kubectl("create", "-f", "-", given=manifest) == "configmap/settings created\n"
    assert "(AlreadyExists)" in kubectl.refused("create", "-f", "-", given=manifest)


def test_misspelt_fields_are_refused(kubectl: Kubectl) -> None:
    """Validation, which kubectl leaves to the server, names the field that does not exist."""
    manifest = {**config_map("settings"), "dta": {"a": "1"}}
    assert 'unknown field "dta"' in kubectl.refused("create", "-f", "-", given=manifest)
    assert "created" in kubectl("create", "--validate=false", "-f", "-", given=manifest)


def test_invalid_objects_are_refused(kubectl: Kubectl) -> None:
    """Errors of fields come out as kubectl prints them."""
    manifest: Object = pod("broken")
    manifest["spec"]["containers"] = []
    refusal = kubectl.refused("create", "-f", "-", given=manifest)
    assert 'The Pod "broken" is invalid: spec.containers: Required value' in refusal


def test_client_side_apply(kubectl: Kubectl) -> None:
    """Apply creates, then changes only what changed, and drops what the manifest no longer has."""
    first = config_map("settings", {"a": "1", "b": "2"})
    assert kubectl("apply", "-f", "-", given=first) == "configmap/settings created\n"
    assert kubectl("apply", "-f", "-", given=first) == "configmap/settings unchanged\n"
    kubectl("patch", "configmap", "settings", "-p", '{"data":{"theirs":"x"}}')
    second = config_map("settings", {"a": "1", "c": "3"})
    assert kubectl("apply", "-f", "-", given=second) == "configmap/settings configured\n"
    assert data_of(kubectl) == {"a": "1", "c": "3", "theirs": "x"}


def test_client_side_apply_merges_lists_by_name(kubectl: Kubectl) -> None:
    """A strategic merge patch changes one container and leaves what others added."""
    kubectl("apply", "-f", "-", given=deployment("web"))
    sidecar = {"name": "sidecar", "image": "sidecar:1"}
    patch = {"spec": {"template": {"spec": {"containers": [sidecar]}}}}
    kubectl("patch", "deployment", "web", "-p", json.dumps(patch))
    changed = deployment("web")
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "app:2"
    kubectl("apply", "-f", "-", given=changed)
    containers = kubectl.object("deployment", "web")["spec"]["template"]["spec"]["containers"]
    assert {c["name"]: c["image"] for c in containers} == {"main": "app:2", "sidecar": "sidecar:1"}


def test_server_side_apply_and_its_conflicts(kubectl: Kubectl) -> None:
    """A field of another manager is a conflict; force takes it, and agreement shares it."""
    apply = ("apply", "--server-side", "-f", "-")
    mine = config_map("settings", {"a": "1", "b": "2"})
    assert kubectl(*apply, given=mine) == "configmap/settings serverside-applied\n"
    theirs = config_map("settings", {"a": "9"})
    refusal = kubectl.refused(*apply, "--field-manager=other", given=theirs)
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.a' in refusal
    kubectl(*apply, "--field-manager=other", "--force-conflicts", given=theirs)
    assert data_of(kubectl) == {"a": "9", "b": "2"}
    assert 'conflict with "other": .data.a' in kubectl.refused(*apply, given=mine)
    agreed = config_map("settings", {"a": "9"})
    kubectl(*apply, given=agreed)
    assert data_of(kubectl) == {"a": "9"}


def test_managed_fields_name_every_writer(kubectl: Kubectl) -> None:
    """`--show-managed-fields` shows who owns what."""
    kubectl("apply", "--server-side", "-f", "-", given=config_map("settings", {"a": "1"}))
    kubectl("label", "configmap", "settings", "x=y")
    shown = kubectl("get", "configmap", "settings", "-o", "yaml", "--show-managed-fields")
    managers = yaml.safe_load(shown)["metadata"]["managedFields"]
    owned = {(m["manager"], m["operation"]): m["fieldsV1"] for m in managers}
    assert owned["kubectl", "Apply"] == {"f:data": {"f:a": {}}}
    assert owned["kubectl-label", "Update"] == {"f:metadata": {"f:labels": {".": {}, "f:x": {}}}}


@pytest.mark.parametrize("option", [[], ["--server-side"]], ids=["client-side", "server-side"])
def test_diff(kubectl: Kubectl, option: list[str]) -> None:
    """`diff` shows what apply would change, exits 1 for that, and changes nothing."""
    kubectl("apply", *option, "-f", "-", given=config_map("settings", {"a": "1"}))
    same = kubectl.attempt("diff", *option, "-f", "-", given=config_map("settings", {"a": "1"}))
    assert (same.returncode, same.stdout) == (0, "")
    other = kubectl.attempt("diff", *option, "-f", "-", given=config_map("settings", {"a": "2"}))
    assert other.returncode == 1
    assert '-  a: "1"\n+  a: "2"\n' in other.stdout
    assert data_of(kubectl) == {"a": "1"}


def test_replace(kubectl: Kubectl) -> None:
    """Replace puts the whole object, and not over a newer one."""
    kubectl("create", "-f", "-", given=config_map("settings", {"a": "1"}))
    before = kubectl.object("configmap", "settings")
    kubectl("replace", "-f", "-", given=config_map("settings", {"b": "2"}))
    assert data_of(kubectl) == {"b": "2"}
    refusal = kubectl.refused("replace", "-f", "-", given=before)
    assert (
        "the object has been modified; please apply your changes to the latest version" in refusal
    )
    kubectl("replace", "--force", "-f", "-", given=config_map("settings", {"c": "3"}))
    after = kubectl.object("configmap", "settings")
    assert after["data"] == {"c": "3"}
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


@pytest.mark.parametrize(
    ("kind", "patch", "expected"),
    [
        ("strategic", {"data": {"b": "2", "gone": None}}, {"a": "1", "b": "2"}),
        ("merge", {"data": {"b": "2", "gone": None}}, {"a": "1", "b": "2"}),
        (
            "json",
            [
                {"op": "test", "path": "/data/a", "value": "1"},
                {"op": "move", "from": "/data/gone", "path": "/data/b"},
            ],
            {"a": "1", "b": "0"},
        ),
    ],
    ids=["strategic", "merge", "json"],
)
def test_patch(kubectl: Kubectl, kind: str, patch: object, expected: dict[str, str]) -> None:
    """The three types of patch."""
    kubectl("create", "-f", "-", given=config_map("settings", {"a": "1", "gone": "0"}))
    answer = kubectl("patch", "configmap", "settings", "--type", kind, "-p", json.dumps(patch))
    assert answer == "configmap/settings patched\n"
    assert data_of(kubectl) == expected


def test_patch_of_status(kubectl: Kubectl) -> None:
    """A subresource is patched on its own: the rest of the object stays."""
    kubectl("create", "-f", "-", given=pod("worker"))
    patch = {"metadata": {"labels": {"no": "no"}}, "status": {"phase": "Running"}}
    kubectl("patch", "pod", "worker", "--subresource=status", "-p", json.dumps(patch))
    assert kubectl("get", "pod", "worker", "--no-headers").split()[2] == "Running"


def test_label_and_annotate(kubectl: Kubectl) -> None:
    """Labels and annotations are set, refused where they would be overwritten, and removed."""
    kubectl("create", "configmap", "settings")
    assert kubectl("label", "configmap", "settings", "tier=web") == "configmap/settings labeled\n"
    refusal = kubectl.refused("label", "configmap", "settings", "tier=data")
    assert "already has a value (web), and --overwrite is false" in refusal
    kubectl("label", "--overwrite", "configmap", "settings", "tier=data")
    kubectl("annotate", "configmap", "settings", "note=one two")
    metadata = kubectl.object("configmap", "settings")["metadata"]
    assert metadata["labels"] == {"tier": "data"}
    assert metadata["annotations"] == {"note": "one two"}
    assert kubectl("label", "configmap", "settings", "tier-") == "configmap/settings unlabeled\n"
    kubectl("annotate", "configmap", "--all", "note-")
    metadata = kubectl.object("configmap", "settings")["metadata"]
    assert not {"labels", "annotations"} & metadata.keys()


def test_scale(kubectl: Kubectl) -> None:
    """Scale changes the number of replicas, if there are as many as one thinks."""
    kubectl("create", "-f", "-", given=deployment("web", replicas=2))
    assert kubectl("scale", "deployment", "web", "--replicas=5") == "deployment.apps/web scaled\n"
    refusal = kubectl.refused("scale", "deployment", "web", "--current-replicas=2", "--replicas=1")
    assert "Expected replicas to be 2, was 5" in refusal
    found = kubectl.object("deployment", "web")
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (5, 2)


def test_wait(kubectl: Kubectl) -> None:
    """`wait` sees conditions, values and the end of an object, and gives up in time."""
    kubectl("create", "-f", "-", given=pod("worker"))
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    refusal = kubectl.refused("wait", "--for=condition=Ready", "pod/worker", "--timeout=0s")
    assert "timed out" in refusal or "condition not met" in refusal
    with kubectl.streaming("wait", "--for=condition=Ready", "pod/worker") as lines:
        kubectl("patch", "pod", "worker", "--subresource=status", "-p", json.dumps(ready))
        assert lines.next() == ["pod/worker", "condition", "met"]
    kubectl("wait", "--for=jsonpath={.status.phase}=Pending", "pod/worker")
    kubectl("wait", "--for=create", "pod/worker")
    kubectl("delete", "pod", "worker", "--wait=false")
    kubectl("wait", "--for=delete", "pod/worker", "--timeout=150s")


def test_cordon_and_drain(kubectl: Kubectl) -> None:
    """A cordoned node takes no pods; drain evicts those it has; uncordon opens it again."""
    name = f"node-of-{kubectl.namespace}"
    kubectl("create", "-f", "-", given=node(name))
    assert kubectl("cordon", name) == f"node/{name} cordoned\n"
    assert "SchedulingDisabled" in kubectl("get", "node", name)
    assert kubectl.object("node", name)["spec"]["unschedulable"] is True
    assert kubectl("uncordon", name) == f"node/{name} uncordoned\n"
    assert "unschedulable" not in kubectl.object("node", name)["spec"]
    assert f"node/{name} drained" in kubectl("drain", name)
    kubectl("taint", "node", name, "gpu=broken:NoExecute")
    taints = kubectl.object("node", name)["spec"]["taints"]
    assert {"key": "gpu", "value": "broken", "effect": "NoExecute"} in taints


def test_edit(kubectl: Kubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    """`edit` sends what the editor leaves."""
    kubectl("create", "-f", "-", given=config_map("settings", {"mode": "slow"}))
    monkeypatch.setenv("KUBE_EDITOR", "sed -i s/slow/fast/")
    assert kubectl("edit", "configmap", "settings") == "configmap/settings edited\n"
    assert data_of(kubectl) == {"mode": "fast"}
