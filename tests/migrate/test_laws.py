"""What holds for any file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.errors import DocumentError
from drayman.migrate import migrate
from drayman.migrate.text.files import read_documents
from migrate.cases import ALPHA2, VERSIONS, Case
from migrate.plugin_cases import GANGS, PLUGINS

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "manifests"
CASES = [*VERSIONS, *ALPHA2, *PLUGINS, *GANGS]
YAML = [case for case in CASES if not case.before.startswith("{")]
OLD = sorted(ROOT.glob("examples/migrate/*.yaml"))
# These ask as one asks a device plugin, on purpose.
CLASSIC = (
    "5-extended-resource.yaml",
    "by-name.yaml",
    "one-too-many.yaml",
    "departments.yaml",
    "training.yaml",
)
CURRENT = [
    *(
        path
        for path in ROOT.glob("examples/**/*.yaml")
        if path not in OLD and path.name not in CLASSIC
    ),
    *SHARED.glob("example-driver/*.yaml"),
    *SHARED.glob("nvidia-quickstart/*.yaml"),
]


def migrated(text: str) -> str:
    """The text after migration."""
    return migrate([("f", text)], with_pod_groups=True).files[0].after


@pytest.mark.parametrize("path", CURRENT, ids=lambda path: path.name)
def test_manifests_of_today_stay_as_they_are(path: Path) -> None:
    """A file that is all v1 comes out byte for byte."""
    text = path.read_bytes().decode()
    result = migrate([(path.name, text)])
    assert (result.files[0].after, result.remarks) == (text, [])


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.name)
def test_examples_of_older_manifests_are_carried_over(path: Path) -> None:
    """All of what they ask for is, and the result is one of today."""
    result = migrate([(path.name, path.read_text())])
    after = result.files[0].after
    assert after != path.read_text()
    assert result.is_complete
    assert migrated(after) == after


def test_there_are_manifests_of_today() -> None:
    """The files that must not change are found."""
    assert len(CURRENT) > 3


@given(st.lists(st.sampled_from(YAML), min_size=1, max_size=4))
def test_migrating_is_idempotent(cases: list[Case]) -> None:
    """Whatever is in a file, migrating it once more changes nothing."""
    once = migrated("---\n".join(case.before for case in cases))
    assert migrated(once) == once


@given(st.sampled_from(CASES))
def test_line_ends_and_marks_stay(case: Case) -> None:
    """A file of Windows is one afterwards, with the byte order mark it had."""
    result = migrated("\ufeff" + case.before.replace("\n", "\r\n"))
    assert result == "\ufeff" + migrated(case.before).replace("\n", "\r\n")


@given(st.text(alphabet="abk:-{}[]#&*|>'\"\n !%?,", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing but an error about the document comes of a text that is no manifest."""
    try:
        result = migrated(text)
    except DocumentError:
        return
    assert result == text


EMPTY = {"nothing": "", "blank lines": "\n\n", "a comment": "# only\n", "separators": "---\n---\n"}


@pytest.mark.parametrize("text", EMPTY.values(), ids=EMPTY)
def test_files_without_objects_stay(text: str) -> None:
    """A file without objects is nothing to migrate."""
    assert migrated(text) == text


def test_anchors_of_other_parts_stay() -> None:
    """A pod that shares parts of itself by anchors keeps them where they are not what changes."""
    text = "kind: Pod\napiVersion: v1\nmetadata: &m {name: p}\nspec:\n  containers:\n"
    text += "  - &c\n    name: a\n    resources: {limits: {nvidia.com/gpu: 1}}\nextra: *m\n"
    result = migrate([("f", text)])
    assert result.is_complete
    assert "metadata: &m {name: p}" in result.files[0].after
    assert "  - &c\n    name: a\n    resources: {claims: [{name: gpu}]}" in result.files[0].after


def test_devices_that_two_containers_ask_for_by_one_alias() -> None:
    """What an alias stands for becomes different things; the result is right, and it is said that comments went."""
    text = "kind: Pod\napiVersion: v1\nmetadata: {name: p}\nspec:\n  containers:\n"
    text += "  - name: a\n    resources: &r  # GPU\n      limits: {nvidia.com/gpu: 1}\n"
    text += "  - name: b\n    resources: *r\n"
    result = migrate([("f", text)])
    _, pod = [each.value for each in read_documents("f", result.files[0].after)]
    assert isinstance(pod, dict)
    claims = [each["resources"] for each in pod["spec"]["containers"]]
    assert claims == [{"claims": [{"name": "gpu", "request": f"{name}-gpu"}]} for name in "ab"]


def test_a_large_list() -> None:
    """A list of hundreds of objects is rewritten in one go."""
    item = "- apiVersion: v1\n  kind: Pod\n  metadata: {{name: p{0}}}\n  spec:\n    containers:\n"
    item += "    - name: a\n      resources: {{limits: {{nvidia.com/gpu: 1}}}}\n"
    text = "apiVersion: v1\nkind: List\nitems:\n" + "".join(item.format(n) for n in range(300))
    result = migrated(text)
    assert result.count("kind: ResourceClaimTemplate") == 300
    assert "nvidia.com/gpu:" not in result
