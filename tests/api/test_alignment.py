"""What users state about alignment: the syntax of ladders and groups, and where mistakes are reported."""

from __future__ import annotations

from typing import Any

import pytest

from api.objects import CLAIM, TEMPLATE, changed, decoded
from drayman.api import validation
from drayman.api.alignment import (
    AlignmentError,
    StatedGroup,
    ladder_of,
    ladder_of_parameters,
    stated_groups,
)
from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.resource import DeviceClass

LADDERS = {
    "pcieRoot > numaNode > any": False,
    "pcieRoot>numaNode": True,
    " one   numaNode > numaNode > socket > any ": False,
    "nvlink > pcieRoot": True,
    "any": False,
}
WRONG = {
    "": "names no level",
    "pcieRoot > ": "'', which is not a level",
    "pcieroot > any": "did you mean pcieRoot?",
    "numaNode > pcieRoot": "pcieRoot after numaNode: levels go from near to far",
    "numaNode > one numaNode": "could never be reached first",
    "any > numaNode": "numaNode after any",
    "pcieRoot > pcieRoot": "names pcieRoot twice",
    "one any": "'one any', which means nothing",
    "gpu, : any": "empty name before the colon",
    "gpu, gpu: any": "names gpu twice",
    "any;": "names no level",
    ";".join(["any"] * 9): "more than 8 groups",
    "x" * 2000: "longer than 1024 characters",
}
POLICY = {"apiVersion": "drayman.dev/v1alpha1", "kind": "AlignmentPolicy", "levels": ["numaNode"]}


@pytest.mark.parametrize(("text", "is_required"), LADDERS.items())
def test_the_end_of_a_ladder_says_whether_it_is_required(text: str, is_required: bool) -> None:
    """With `any` at the end it is a wish. A ladder is printed the way it is written."""
    (group,) = stated_groups(text)
    assert group.ladder.is_required is is_required
    assert stated_groups(str(group.ladder)) == (StatedGroup((), group.ladder),)


@pytest.mark.parametrize(("text", "why"), WRONG.items(), ids=range(len(WRONG)))
def test_a_statement_that_makes_no_sense_says_why(text: str, why: str) -> None:
    """Every mistake is named, with what was probably meant."""
    with pytest.raises(AlignmentError) as error:
        stated_groups(text)
    assert why in str(error.value)


def test_groups_name_their_requests() -> None:
    """Groups are separated by semicolons; the requests of each stand before a colon."""
    one, other = stated_groups("gpu, nic: pcieRoot > any; gpu,cpu:numaNode")
    assert one.requests == ("gpu", "nic")
    assert other.requests == ("gpu", "cpu")
    assert other.ladder == ladder_of(["numaNode"])


def test_scores_fall_from_the_first_level_to_the_last() -> None:
    """The first level scores 100, the end of a wish 0; what is required is worth something even at the end."""
    soft, hard = ladder_of(["pcieRoot", "numaNode", "any"]), ladder_of(["pcieRoot", "numaNode"])
    assert [soft.score(index) for index in range(3)] == [100, 50, 0]
    assert [hard.score(index) for index in range(2)] == [100, 50]
    assert ladder_of(["any"]).score(0) == 100


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"levels": []}, "names no level"),
        ({"levels": "numaNode"}, "a list of texts"),
        ({"levels": ["numa"]}, "did you mean numaNode?"),
        ({"kind": "Alignment"}, "kind AlignmentPolicy"),
        ({"apiVersion": "drayman.dev/v2"}, "apiVersion drayman.dev/v1alpha1"),
        ({"level": ["numaNode"]}, "unknown field level; did you mean levels?"),
    ],
)
def test_parameters_are_read_strictly(change: dict[str, Any], why: str) -> None:
    """What is not understood is not ignored."""
    with pytest.raises(AlignmentError) as error:
        ladder_of_parameters({**POLICY, **change})
    assert why in str(error.value)


def configured(parameters: Any, **fields: Any) -> dict[str, Any]:
    return {**fields, "opaque": {"driver": "drayman.dev", "parameters": parameters}}


def errors_of(value: Any) -> dict[str, str]:
    found = validation.validate(value, lambda _text, _stored: None)
    return {error.path: error.detail for error in found}


def test_claims_are_checked() -> None:
    """The field that is wrong is named, in the annotation and in the configuration."""
    annotated = {"metadata/annotations": {"drayman.dev/align": "gpus: pcieRoot"}}
    found = errors_of(decoded(changed(CLAIM, annotated)))
    assert list(found) == ["metadata.annotations[drayman.dev/align]"]
    assert "names gpus, which is not a request" in next(iter(found.values()))
    found = errors_of(
        decoded(changed(CLAIM, {"spec/devices/config": [configured({**POLICY, "levels": ["x"]})]}))
    )
    assert list(found) == ["spec.devices.config[0].opaque.parameters"]
    assert "'x', which is not a level" in next(iter(found.values()))


def test_templates_are_checked_where_claims_get_their_annotations_from() -> None:
    """The annotations of the future claim count, not those of the template."""
    future = {"spec/metadata": {"annotations": {"drayman.dev/align": "nowhere"}}}
    found = errors_of(decoded(changed(TEMPLATE, future)))
    assert list(found) == ["spec.metadata.annotations[drayman.dev/align]"]


def test_an_annotation_is_only_checked_when_it_changes() -> None:
    """What another API server has accepted must not make a claim impossible to change."""
    wrong = {"metadata/annotations": {"drayman.dev/align": "nowhere"}, "metadata/uid": "u"}
    old = decoded(changed(CLAIM, wrong))
    labelled = decoded(changed(CLAIM, {**wrong, "metadata/labels": {"a": "b"}}))
    other = decoded(changed(CLAIM, {**wrong, "metadata/annotations": {"drayman.dev/align": "x"}}))

    def update(new: Any) -> list[str]:
        found = validation.validate_update(new, old, lambda _text, _stored: None)
        return [error.path for error in found]

    assert "metadata.annotations[drayman.dev/align]" not in update(labelled)
    assert "metadata.annotations[drayman.dev/align]" in update(other)


def test_pods_are_checked() -> None:
    """Also where manifests are checked without a server."""
    metadata = {"name": "p", "annotations": {"drayman.dev/align": "gpu: numaNode"}}
    entries = [{"name": "gpus", "resourceClaimName": "g"}]
    value = convert(Pod, {"metadata": metadata, "spec": {"resourceClaims": entries}})
    found = errors_of(value)
    assert list(found) == ["metadata.annotations[drayman.dev/align]"]
    assert "did you mean gpus?" in next(iter(found.values()))


def test_classes_are_checked() -> None:
    """A class may have the configuration too."""
    spec = {"config": [configured({**POLICY, "levels": ["any", "any"]})]}
    value = convert(DeviceClass, {"metadata": {"name": "c"}, "spec": spec})
    assert list(errors_of(value)) == ["spec.config[0].opaque.parameters"]
