"""`drayman validate` says what is wrong, where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from drayman.cli.main import cli

ROOT = Path(__file__).parent.parent.parent

GOOD = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: good
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.nvidia.com
"""

BAD_COUNT = GOOD.replace("good", "bad").rstrip() + "\n        count: -1\n"

BAD_SELECTOR = (
    GOOD.rstrip()
    + """
        selectors:
        - cel:
            expression: device.drivr == 'x'
"""
)


def validate(*arguments: str, stdin: str | bytes = "") -> Result:
    return CliRunner().invoke(cli, ["validate", *arguments], input=stdin)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_valid_manifests_exit_0(folder: Path) -> None:
    """Nothing is printed about a manifest that is right, but how many objects were checked."""
    (folder / "good.yaml").write_text(GOOD)
    result = validate("good.yaml")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "1 object checked: no errors\n"


def test_errors_name_file_line_object_and_field(folder: Path) -> None:
    """The second document's count is at its own line."""
    (folder / "two.yaml").write_text(f"{GOOD}---\n{BAD_COUNT}")
    result = validate("two.yaml")
    line = len(GOOD.splitlines()) + 1 + len(BAD_COUNT.splitlines())
    start = f"two.yaml:{line}: ResourceClaim bad: spec.devices.requests[0].exactly.count: "
    assert result.exit_code == 1
    assert result.stdout.startswith(start)


def test_selectors_are_compiled_and_show_the_column(folder: Path) -> None:
    """A selector that does not compile is an error with a caret below the place."""
    (folder / "selector.yaml").write_text(BAD_SELECTOR)
    result = validate("selector.yaml")
    assert result.exit_code == 1
    assert "selectors[0].cel.expression" in result.stdout
    assert "drivr" in result.stdout
    assert "^" in result.stdout


def test_errors_as_data(folder: Path) -> None:
    """With -o the same findings are a document."""
    (folder / "bad.yaml").write_text(BAD_COUNT)
    as_json = json.loads(validate("-o", "json", "bad.yaml").stdout)
    as_yaml = yaml.safe_load(validate("-o", "yaml", "bad.yaml").stdout)
    assert as_json == as_yaml
    assert as_json["valid"] is False
    (finding,) = as_json["findings"]
    assert finding["file"] == "bad.yaml"
    assert finding["line"] == len(BAD_COUNT.splitlines())
    assert finding["reason"] == "FieldValueInvalid"


def test_standard_input_is_read(folder: Path) -> None:
    """A dash stands for standard input, which is called <stdin> in messages."""
    result = validate("-", stdin=BAD_COUNT)
    assert result.exit_code == 1
    assert result.stdout.startswith("<stdin>:")


def test_a_folder_stands_for_its_manifests(folder: Path) -> None:
    """Manifests directly inside are checked, other files are not."""
    (folder / "a.yaml").write_text(GOOD)
    (folder / "b.json").write_text(json.dumps(yaml.safe_load(GOOD.replace("good", "other"))))
    (folder / "notes.txt").write_text("not a manifest")
    assert validate(".").stderr == "2 objects checked: no errors\n"


OTHER = "{apiVersion: example.com/v1, kind: Rocket, metadata: {name: %s}}"
MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: m}}"
SUMMARIES = {
    "all are checked": ([GOOD, BAD_COUNT], ["2 objects checked: 1 error"]),
    "some are": (
        [GOOD, OTHER % "a", MAP, OTHER % "b"],
        [
            "1 object checked: no errors",
            "3 objects of other kinds not checked: 1 ConfigMap, 2 Rocket",
        ],
    ),
    "none is": (
        [MAP],
        ["0 objects checked: no errors", "1 object of other kinds not checked: 1 ConfigMap"],
    ),
    "of many kinds": (
        [MAP.replace("ConfigMap", f"Kind{number}") for number in range(10)],
        [
            "0 objects checked: no errors",
            "10 objects of other kinds not checked:"
            f" {', '.join(f'1 Kind{n}' for n in range(8))} and 2 kinds more",
        ],
    ),
}


@pytest.mark.parametrize("name", SUMMARIES)
def test_the_summary_tells_what_was_checked_and_what_was_not(name: str) -> None:
    """Only objects that were checked are counted with the errors; of the others it says how many of which kind there are."""
    documents, said = SUMMARIES[name]
    assert validate("-", stdin="\n---\n".join(documents)).stderr.splitlines() == said
    data = json.loads(validate("-", "-o", "json", stdin="\n---\n".join(documents)).stdout)
    assert data["objects"] == len(documents)
    assert sum(data["notChecked"].values()) == sum(
        text not in (GOOD, BAD_COUNT) for text in documents
    )


def test_a_missing_file_does_not_hide_the_others(folder: Path) -> None:
    """Every readable file is checked; the missing one is an error."""
    (folder / "bad.yaml").write_text(BAD_COUNT)
    result = validate("missing.yaml", "bad.yaml")
    assert result.exit_code == 1
    assert "missing.yaml: cannot be read: no such file or directory" in result.stdout
    assert "bad.yaml:" in result.stdout


NONSENSE = {
    "nothing": b"",
    "no object": b"just text\n",
    "broken yaml": b"a: [b\n",
    "broken json": b'{"kind": ',
    "not text": b"\xff\xfe\x00",
    "no kind": b"apiVersion: v1\n",
    "wrong types": b"apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: 7\n",
    "deep nesting": b"[" * 100_000,
    "deep yaml": b"a: " + b"{a: " * 20_000,
    "aliases without end": b"a: &a [x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nd: &d [*c,*c]\n",
    "huge quantity": (
        b"apiVersion: v1\nkind: Node\nmetadata: {name: n}\n"
        b"status: {capacity: {cpu: '1e400000000'}}\n"
    ),
    "duplicate key": b"apiVersion: v1\napiVersion: v1\nkind: Node\n",
}


@pytest.mark.parametrize("data", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_a_clear_error(data: bytes) -> None:
    """Bad input of any kind ends in exit status 1 or, when empty, 0; never in an exception."""
    result = validate("-", stdin=data)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.exit_code == (1 if data else 0)
    if data:
        assert result.stdout.startswith("<stdin>")


def test_names_cannot_steer_the_terminal() -> None:
    """Control characters of an object's name are spelt out."""
    result = validate("-", stdin=GOOD.replace("good", '"a\\e[2Jb"'))
    assert "ResourceClaim a\\x1b[2Jb: metadata.name" in result.stdout


def test_examples_are_valid() -> None:
    """Every example of the repository passes."""
    result = validate(str(ROOT / "examples"), str(ROOT / "examples" / "classes"))
    assert result.stdout == ""
    assert result.exit_code == 0


REFUSED = (
    GOOD.rstrip()
    + """
    config:
    - opaque:
        driver: gpu.nvidia.com
        parameters:
          apiVersion: resource.nvidia.com/v1beta1
          kind: GpuConfig
          sharing: {strategy: MPSS}
"""
)


def test_what_a_driver_will_refuse_is_a_warning(folder: Path) -> None:
    """The API server accepts it, so it is no error; the line and the field are named all the same."""
    (folder / "refused.yaml").write_text(REFUSED)
    result = validate("refused.yaml", "-o", "json")
    assert result.exit_code == 0
    (finding,) = json.loads(result.stdout)["findings"]
    assert finding["severity"] == "warning"
    assert finding["field"] == "spec.devices.config[0].opaque.parameters"
    assert finding["message"] == (
        "driver gpu.nvidia.com refuses it: sharing.strategy: 'MPSS' is none of TimeSlicing, MPS"
    )
