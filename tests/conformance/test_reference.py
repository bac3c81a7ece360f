"""Where the folder that the records come from is beside the repository, it says the same."""

from __future__ import annotations

import json

import pytest

from conformance.records import FILES, REFERENCE, records


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="../shared/conformance is not there")
@pytest.mark.parametrize("file", FILES)
def test_the_records_are_those_of_the_reference(file: str) -> None:
    """No record is missing here, and none is different."""
    lines, whole = REFERENCE / f"{file}.jsonl", REFERENCE / f"{file}.json"
    if lines.exists():
        assert records(file) == [json.loads(line) for line in lines.read_text().splitlines()]
    else:
        assert records(file) == json.loads(whole.read_text())
