"""What becomes of manifests, one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from drayman.api.errors import DocumentError
from drayman.api.struct import Json
from drayman.cel.device import check_selector
from drayman.migrate import Remark, migrate
from drayman.migrate.text.files import read_documents
from migrate.cases import ALPHA2, VERSIONS, Case
from migrate.plugin_cases import GANGS, PLUGINS

CASES = [*VERSIONS, *ALPHA2, *PLUGINS, *GANGS]


def said(remark: Remark) -> str:
    """A remark without where it is about."""
    return f"{remark.field}: {remark.message}" if remark.field else remark.message


def expressions(value: Json) -> Iterator[str]:
    """The CEL expressions anywhere in a value."""
    if isinstance(value, dict):
        if isinstance(found := value.get("expression"), str):
            yield found
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        yield from expressions(item)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_manifest(case: Case) -> None:
    """The text comes out as it should, with what is to be said about it."""
    result = migrate([("f.yaml", case.before)], with_pod_groups=case.pod_groups)
    assert result.files[0].after == case.after
    lost = [said(each) for each in result.remarks if each.is_lost]
    noted = [said(each) for each in result.remarks if not each.is_lost]
    for found, wanted in ((lost, case.lost), (noted, case.noted)):
        assert len(found) == len(wanted), found
        assert [each for each in wanted if not any(one.startswith(each) for one in found)] == []
    assert result.is_complete == (not case.lost)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_migrating_twice_changes_nothing_more(case: Case) -> None:
    """What was migrated is left alone."""
    again = migrate([("f.yaml", case.after)], with_pod_groups=case.pod_groups)
    assert again.files[0].after == case.after


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_selectors_compile(case: Case) -> None:
    """Every selector that is written is one that the API server takes."""
    for document in read_documents("f.yaml", case.after):
        for expression in expressions(document.value):
            assert check_selector(expression, stored=False) is None


def test_remarks_name_file_line_and_object() -> None:
    """Somebody who reads a remark finds the place."""
    text = "a: 1\n---\nkind: Pod\napiVersion: v1\nmetadata: {name: p}\nspec:\n  containers:\n"
    text += "  - resources:\n      limits:\n        nvidia.com/gpu.shared: 1\n"
    (remark,) = migrate([("some/pod.yaml", text)]).remarks
    assert (remark.file, remark.line, remark.object) == ("some/pod.yaml", 10, "Pod p")


def test_files_are_looked_at_together() -> None:
    """A claim finds its parameters, and pods their claim's node selector, in other files."""
    claim = VERSIONS[0].before.replace("v1beta1", "v1alpha2")
    claim = claim[: claim.index("spec:")]
    claim += "spec:\n  resourceClassName: x\n  constraints:\n  - nodeSelector: {zone: a}\n"
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  resourceClaims:\n"
    pod += "  - {name: c, resourceClaimName: c}\n"
    result = migrate([("claim.yaml", claim), ("pod.yaml", pod)])
    assert result.is_complete
    assert result.files[1].after == f"{pod}  nodeSelector:\n    zone: a\n"


def test_a_pod_that_chooses_other_nodes_than_its_claim_is_reported() -> None:
    """Of two different values of a label the pod keeps its own."""
    claim = "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaim\nmetadata: {name: c}\n"
    claim += "spec: {resourceClassName: x, constraints: [{nodeSelector: {zone: a}}]}\n"
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
    pod += "spec: {nodeSelector: {zone: b}, resourceClaims: [{name: c, resourceClaimName: c}]}\n"
    result = migrate([("f.yaml", f"{claim}---\n{pod}")])
    assert [said(each) for each in result.remarks if each.is_lost] == [
        "spec.nodeSelector[zone]: ResourceClaim c asks for a instead; left as it is"
    ]


def test_names_of_templates_are_not_taken_twice() -> None:
    """Two workloads of one name get templates of two names, and one that exists is not overwritten."""
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n"
    pod += "  - {name: a, resources: {limits: {nvidia.com/gpu: 1}}}\n"
    taken = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: p-gpu}\n"
    result = migrate([("a.yaml", pod), ("b.yaml", pod), ("c.yaml", taken)])
    names = [re.findall(r"resourceClaimTemplateName: (.+)", each.after) for each in result.files]
    assert names == [["p-gpu-2"], ["p-gpu-3"], []]


BROKEN = {
    "not YAML": ("a: [\n", 1),
    "a key twice": ("a: 1\n---\nb: 1\nb: 2\n", 4),
    "a tab": ("a:\n\t- b\n", 2),
    "nested without end": ("[" * 1000, 1),
    "a tag": ("a: !!python/object x\n", 1),
}


@pytest.mark.parametrize(("text", "line"), BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_read_is_refused_with_its_line(text: str, line: int) -> None:
    """A file that is no YAML is an error that says where."""
    with pytest.raises(DocumentError) as caught:
        migrate([("f.yaml", text)])
    assert (caught.value.file, caught.value.line) == ("f.yaml", line)
