"""Data and text on standard output."""

from __future__ import annotations

import io
import json
import logging

import pytest
import yaml

from drayman.cli.output import console, date_log_lines, print_data
from drayman.cli.progress import tracked

DATA = {"name": "größe", "items": [1, {"deep": None}]}


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_data_is_printed_so_that_it_reads_back(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is printed as JSON or YAML is the data."""
    print_data(DATA, form)
    text = capsys.readouterr().out
    assert (json.loads if form == "json" else yaml.safe_load)(text) == DATA


def test_output_to_a_file_is_plain_text_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """No colours and a fixed width where no terminal is."""
    monkeypatch.delenv("COLUMNS", raising=False)
    target = io.StringIO()
    out = console(target)
    out.print("[bold red]word[/]")
    assert (target.getvalue(), out.width) == ("word\n", 80)


def test_tracking_progress_changes_nothing_about_the_items() -> None:
    """Every item comes once, in order, and no bar is drawn where no terminal is."""
    assert list(tracked([3, 1, 2], "working")) == [3, 1, 2]


def test_the_log_of_a_server_has_the_time_of_each_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """In UTC, and nothing in the line controls a terminal."""
    handler = logging.StreamHandler(io.StringIO())
    monkeypatch.setattr(logging, "lastResort", handler)
    date_log_lines()
    record = logging.makeLogRecord({"msg": "lease \x9b lost", "created": 1794850845.0})
    assert handler.format(record) == "2026-11-16T17:40:45Z lease \\x9b lost"
