"""NVIDIA's quick start for v1beta1, migrated, is NVIDIA's quick start for v1."""

from __future__ import annotations

from pathlib import Path

import pytest

from drayman.api.struct import Json
from drayman.migrate import migrate
from drayman.migrate.text.files import read_documents

MANIFESTS = Path(__file__).parents[3] / "shared" / "manifests"
OLD, NEW = MANIFESTS / "nvidia-quickstart-v1beta1", MANIFESTS / "nvidia-quickstart"

pytestmark = pytest.mark.skipif(not OLD.exists(), reason="../shared/manifests is not there")


def objects(text: str) -> list[Json]:
    """The objects in a text, without the namespace they are in: upstream's pod of gpu-test-vfiopci is in two."""
    found = [each.value for each in read_documents("f", text) if each.value is not None]
    for value in found:
        assert isinstance(value, dict)
        metadata = value["metadata"]
        assert isinstance(metadata, dict)
        metadata.pop("namespace", None)
    return found


def unindented(value: Json) -> Json:
    """A value in which the lines of texts have no indentation: upstream's selector of gpu-test6 lost a column."""
    if isinstance(value, dict):
        return {key: unindented(item) for key, item in value.items()}
    if isinstance(value, list):
        return [unindented(item) for item in value]
    return (
        "\n".join(line.strip() for line in value.split("\n")) if isinstance(value, str) else value
    )


@pytest.mark.parametrize("path", sorted(OLD.glob("*.yaml")), ids=lambda path: path.name)
def test_migrated_quick_start(path: Path) -> None:
    """Each file becomes its counterpart, and nothing is lost or to be said."""
    result = migrate([(path.name, path.read_text())])
    upstream = (NEW / path.name).read_text()
    assert result.remarks == []
    assert unindented(objects(result.files[0].after)) == unindented(objects(upstream))


def test_the_pairs_are_there() -> None:
    """All nine files of v1beta1 have a counterpart."""
    assert (
        len({path.name for path in OLD.glob("*.yaml")} & {path.name for path in NEW.glob("*.yaml")})
        == 9
    )
