"""Checking files: what is said about them, and where."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from api.objects import accept_selectors
from drayman.api.checking import MAX_ERRORS, Report, check_files
from drayman.api.loading import Severity
from drayman.cel.device import ProblemKind, SelectorProblem

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: claim
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.example.com
"""
BETA = """\
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata:
  name: slice
spec:
  driver: gpu.example.com
  nodeName: node
  pool: {name: p, resourceSliceCount: 1}
  devices:
  - name: d
    allNodes: true
    basic:
      future: 1
      attributes:
        model: {}
"""


def check(*texts: str) -> Report:
    inputs = [(f"{index}.yaml", text.encode()) for index, text in enumerate(texts)]
    return check_files(inputs, accept_selectors)


def said(report: Report) -> list[str]:
    return [str(finding) for finding in report.findings]


def test_a_good_file() -> None:
    """Nothing is said about a valid object; defaults are filled in before the rules apply."""
    report = check(CLAIM)
    assert report.ok
    assert report.findings == ()
    assert [loaded.title for loaded in report.objects] == ["ResourceClaim claim"]


def test_errors_have_file_line_object_and_field() -> None:
    """An error says where it is, about what, and what is wrong."""
    report = check(
        CLAIM, CLAIM.replace("name: gpu", "name: GPU").replace("name: claim", "name: other")
    )
    (error,) = report.errors
    assert (error.file, error.line, error.object) == ("1.yaml", 8, "ResourceClaim other")
    assert error.path == "spec.devices.requests[0].name"
    assert error.error is not None
    assert str(error).startswith(
        '1.yaml:8: ResourceClaim other: spec.devices.requests[0].name: Invalid value: "GPU": '
    )
    assert not report.ok


def test_older_versions_are_understood() -> None:
    """Errors in another version are found at the lines of that version; its unknown fields are warnings."""
    report = check(BETA)
    assert [(f.severity, f.line, f.path) for f in report.findings] == [
        (Severity.WARNING, 11, "spec.devices[0].allNodes"),
        (Severity.WARNING, 13, "spec.devices[0].basic.future"),
        (Severity.ERROR, 15, "spec.devices[0].attributes[model]"),
    ]


WRONG = {
    "type": (
        CLAIM.replace("name: gpu", "name: 5"),
        "0.yaml:8: ResourceClaim claim: spec.devices.requests[0].name: ",
    ),
    "no kind": ("apiVersion: v1\n", "0.yaml:1: kind: a text is required"),
    "no apiVersion": (
        "kind: Pod\nmetadata: {name: x}\n",
        "0.yaml:1: Pod x: apiVersion: a text is required",
    ),
    "odd kind": ("apiVersion: v1\nkind: [x]\n", "0.yaml:2: kind: a text is required"),
    "no such version": (
        CLAIM.replace("io/v1", "io/v9"),
        "0.yaml:1: ResourceClaim claim: apiVersion: ",
    ),
    "odd metadata": (
        "apiVersion: v1\nkind: Node\nmetadata: 5\n",
        "0.yaml:3: Node: metadata: expected object",
    ),
    "odd metadata of a strange kind": (
        "apiVersion: a/v1\nkind: B\nmetadata:\n  name: c\n  labels: []\n",
        "0.yaml:5: B c: metadata.labels: expected object, got array",
    ),
    "absurd quantity": (
        BETA.replace("model: {}", "model: {int: 1}") + "      capacity: {mem: {value: 1e400}}\n",
        "0.yaml:16: ResourceSlice slice: spec.devices[0].capacity[mem].value: quantities are limited",
    ),
    "status": (
        CLAIM + "status:\n  reservedFor:\n  - {resource: pods, name: p, uid: u}\n",
        "0.yaml:12: ResourceClaim claim: status.reservedFor: Forbidden",
    ),
    "node": (
        "apiVersion: v1\nkind: Node\nmetadata: {name: A}\n",
        "0.yaml:3: Node A: metadata.name: Invalid value",
    ),
    "namespace": (
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: a.b}\n",
        "0.yaml:3: Namespace a.b: metadata.name: Invalid value",
    ),
    "broken": ("a: [", "0.yaml:1: not valid YAML"),
}


@pytest.mark.parametrize(("text", "wanted"), WRONG.values(), ids=WRONG)
def test_bad_input(text: str, wanted: str) -> None:
    """Whatever is wrong with a file is an error with its place, and the only one."""
    report = check(text)
    (error,) = report.errors
    assert str(error).startswith(wanted)


def test_a_broken_file_does_not_hide_the_others() -> None:
    """Files are checked to the end, whatever one of them is."""
    report = check("a: [", CLAIM)
    assert len(report.errors) == 1
    assert len(report.objects) == 1


OTHER = CLAIM.replace("deviceClassName: gpu", "deviceClassName: nic")
DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: x}\n"
TWICE: dict[str, tuple[list[str], list[str]]] = {
    "identical": ([CLAIM, CLAIM], []),
    "identical in one file": ([f"{CLAIM}---\n{CLAIM}"], []),
    "identical as JSON": ([CLAIM, json.dumps(yaml.safe_load(CLAIM))], []),
    "identical with the namespace": (
        [CLAIM, CLAIM.replace("name: claim", "name: claim\n  namespace: default")],
        [],
    ),
    "identical in another version": ([CLAIM, CLAIM.replace("io/v1", "io/v1beta2")], []),
    "elsewhere": ([CLAIM, OTHER.replace("name: claim", "name: claim\n  namespace: x")], []),
    "different": ([CLAIM, OTHER], ["1.yaml:4: warning"]),
    "different in what is unknown": ([CLAIM, f"{CLAIM}other: 1\n"], ["1.yaml:4: warning"]),
    "different in one file": ([f"{CLAIM}---\n{OTHER}"], ["0.yaml:15: ResourceClaim"]),
    "other kinds": ([DEPLOYMENT, DEPLOYMENT], []),
    "other kinds, different": ([DEPLOYMENT, f"{DEPLOYMENT}spec: {{}}\n"], ["1.yaml:3: warning"]),
}


@pytest.mark.parametrize(("texts", "starts"), TWICE.values(), ids=TWICE)
def test_the_same_object_twice(texts: list[str], starts: list[str]) -> None:
    """Saying the same twice is fine; another content replaces the first, and is an error within one file."""
    report = check(*texts)
    found = [str(finding) for finding in report.findings if finding.path == "metadata.name"]
    assert [line[: len(start)] for line, start in zip(found, starts, strict=True)] == starts
    assert all(line.endswith("already, with other content") for line in found)
    assert report.ok is all("warning" in start for start in starts)


def test_other_kinds_are_not_checked() -> None:
    """An object of a kind without rules is reported as such, and never as an error."""
    report = check(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {anything: 1}\n"
    )
    assert report.ok
    assert [loaded.title for loaded in report.not_checked] == ["Deployment d"]


def test_pods_are_checked_in_part() -> None:
    """Of a pod only what concerns devices is known, so its other fields are not called unknown."""
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  volumes: []\n  resourceClaims: [{name: a}]\n"
    report = check(pod)
    assert [finding.path for finding in report.findings] == ["spec.resourceClaims[0]"]


def test_selectors_are_compiled_by_the_caller() -> None:
    """The checker that is handed in sees each expression, and its problem becomes an error of the field."""

    def checker(expression: str, stored: bool) -> SelectorProblem | None:
        return (
            None
            if stored
            else SelectorProblem(ProblemKind.FORBIDDEN, f"{expression} costs too much")
        )

    text = CLAIM + "        selectors:\n        - cel: {expression: 'true'}\n"
    (error,) = check_files([("f", text.encode())], checker).errors
    assert str(error) == (
        "f:12: ResourceClaim claim: spec.devices.requests[0].exactly.selectors[0].cel.expression:"
        " Forbidden: true costs too much"
    )


@pytest.mark.parametrize(
    ("label", "ok"),
    [("", False), ("\n  labels: {resource.kubernetes.io/admin-access: 'true'}", True)],
)
def test_admin_access_is_checked_where_the_namespace_is_known(label: str, ok: bool) -> None:
    """A namespace among the files decides about admin access of the claims in it."""
    claim = CLAIM + "        adminAccess: true\n"
    namespace = f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: default{label}\n"
    assert check(claim).ok
    assert check(claim, namespace).ok is ok


def test_driver_names_in_upper_case_are_warned_about() -> None:
    """The API server accepts such names with a warning, and so do we."""
    text = BETA.replace("driver: gpu", "driver: GPU").replace("model: {}", "model: {int: 1}")
    assert "spec.driver" in [finding.path for finding in check(text).warnings]
    assert check(text).ok


NO_SUCH_KIND = {
    "misspelt": ("resource.k8s.io/v1", "ResourceClam", "kind", "did you mean ResourceClaim?"),
    "nothing like it": ("resource.k8s.io/v1", "Gadget", "kind", "resource.k8s.io has no such kind"),
    "a kind of an older version": (
        "resource.k8s.io/v1alpha2",
        "ResourceClass",
        "kind",
        "no such kind any more; `drayman migrate`",
    ),
    "an older version": (
        "resource.k8s.io/v1alpha2",
        "ResourceClaim",
        "apiVersion",
        "v1beta1; `drayman migrate` rewrites",
    ),
    "wrong group": ("v1", "ResourceClaim", "apiVersion", "it is in resource.k8s.io/v1, "),
    "version without a group": ("v1beta1", "Pod", "apiVersion", "expected GROUP/VERSION, or v1"),
    "group without a version": ("apps/", "Deployment", "apiVersion", "expected GROUP/VERSION"),
    "version without a name": ("/v1", "Deployment", "apiVersion", "expected GROUP/VERSION"),
    "two slashes": ("apps/v1/x", "Deployment", "apiVersion", "expected GROUP/VERSION, or v1"),
}


@pytest.mark.parametrize(
    ("version", "kind", "path", "message"), NO_SUCH_KIND.values(), ids=NO_SUCH_KIND
)
def test_kinds_that_cannot_exist(version: str, kind: str, path: str, message: str) -> None:
    """A kind no API server can have is an error, where it might pass for one that is only unknown here."""
    (error,) = check(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n").errors
    assert error.path == path
    assert message in error.message


def test_errors_without_end_are_cut_off() -> None:
    """After so many errors checking stops and says so; the file never counts as valid."""
    report = check("a: 1\n---\n" * (MAX_ERRORS + 500))
    assert len(report.findings) == MAX_ERRORS + 1
    assert "nothing beyond them has been checked" in report.findings[-1].message
    assert not report.ok


def test_warnings_without_end_are_counted() -> None:
    """Too many warnings hide no error, and those left out are counted."""
    unknown = "".join(f"x{number}: 1\n" for number in range(MAX_ERRORS + 7))
    other = CLAIM.replace("name: claim", "name: other").replace("name: gpu", "name: GPU")
    report = check(CLAIM + unknown, other)
    assert report.findings[-1].message == "7 more warnings left out"
    assert [error.path for error in report.errors] == ["spec.devices.requests[0].name"]


LONG = "x" * 1_000_000
ENDLESS = {
    "name": CLAIM.replace("name: claim", f"name: {LONG}"),
    "namespace": CLAIM.replace("name: claim", f"name: C\n  namespace: {LONG}"),
    "kind": f"apiVersion: resource.k8s.io/v1\nkind: {LONG}\n",
    "version": f"apiVersion: resource.k8s.io/{LONG}\nkind: ResourceClaim\n",
    "key": f"apiVersion: v1\nkind: Node\nmetadata: {{labels: {{? {LONG} : []}}}}\n",
    "key twice": f"? {LONG}\n: 1\n? {LONG}\n: 2\n",
    "time": f"apiVersion: v1\nkind: Node\nmetadata: {{creationTimestamp: {LONG}}}\n",
    "tag": f"a: !{LONG} b\n",
    "alias": f"a: *{LONG}\n",
}


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS)
def test_messages_end(text: str) -> None:
    """However long a name is, what is said about it can be read."""
    report = check(text)
    assert not report.ok
    assert max(len(str(finding)) for finding in report.findings) < 6_000


fragments = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from(["", "v1", "Pod", "ResourceClaim", "a b"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    "apiVersion",
                    "kind",
                    "metadata",
                    "spec",
                    "devices",
                    "name",
                    "items",
                    "requests",
                    "basic",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)
kinds = st.sampled_from(
    [
        ("resource.k8s.io/v1", "ResourceClaim"),
        ("resource.k8s.io/v1beta1", "ResourceSlice"),
        ("resource.k8s.io/v1beta1", "ResourceClaimTemplate"),
        ("v1", "Pod"),
        ("v1", "List"),
    ]
)


@given(
    kinds,
    st.dictionaries(
        st.sampled_from(["metadata", "spec", "status", "items"]), fragments, max_size=3
    ),
)
def test_any_object_gets_an_answer(kind: tuple[str, str], fields: dict[str, object]) -> None:
    """Whatever an object holds, checking ends in a report, and every finding has a file."""
    value = {"apiVersion": kind[0], "kind": kind[1], **fields}
    report = check_files([("f", json.dumps(value).encode())], accept_selectors)
    assert all(finding.file == "f" and str(finding) for finding in report.findings)
