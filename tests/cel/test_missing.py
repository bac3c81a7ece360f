"""Names that a selector reads and devices do not have."""

from __future__ import annotations

from cel.environments import device
from drayman.cel.device import compile_selector
from drayman.cel.missing import MissingName, missing_names

DRIVER = "gpu.example.com"
GPUS = [
    (
        DRIVER,
        device(attributes={"model": {"string": "h100"}}, capacity={"memory": {"value": "80Gi"}}),
    )
] * 63 + [(DRIVER, device(attributes={"model": {"string": "h100"}, "spare": {"bool": True}}))]


def missing(expression: str, share: float = 0.0) -> tuple[MissingName, ...]:
    return missing_names(compile_selector(expression).reads, GPUS, at_most=share)


def test_suggests_the_name_that_was_meant() -> None:
    """A misspelt name comes with how rare it is and the name that it is like."""
    (found,) = missing(f'device.capacity["{DRIVER}"].memroy.isInteger()')
    assert str(found) == "`memroy` is on 0 of 64 devices; did you mean `memory`?"
    assert found.suggestions[0].devices == 63


def test_suggests_another_domain() -> None:
    """A name that exists in another domain is suggested with it."""
    (found,) = missing('device.attributes["example.com"].model == "h100"')
    assert str(found) == f"`model` is on 0 of 64 devices; did you mean `{DRIVER}/model`?"


def test_suggests_the_other_kind() -> None:
    """A capacity that is looked up as an attribute is suggested as what it is."""
    (found,) = missing(f'device.attributes["{DRIVER}"].memory == 1')
    assert str(found) == "`memory` is on 0 of 64 devices; did you mean `capacity memory`?"


def test_names_that_are_there() -> None:
    """Names that devices have are not reported."""
    assert missing(f'device.attributes["{DRIVER}"].model == "h100"') == ()


def test_rare_names() -> None:
    """On request names that few devices have are reported too."""
    expression = f'device.attributes["{DRIVER}"].spare'
    assert missing(expression) == ()
    (found,) = missing(expression, share=0.1)
    assert str(found) == "`spare` is on 1 of 64 devices"


def test_nothing_alike() -> None:
    """Without a similar name there is no suggestion."""
    (found,) = missing(f'device.attributes["{DRIVER}"].zzz == 1')
    assert str(found) == "`zzz` is on 0 of 64 devices"
