"""The page about writing drivers, and the driver that `drayman driver new` writes, work as they are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from drayman.cli.main import run
from drayman.drivers import kit
from drayman.drivers.kit.errors import KitError
from drayman.drivers.kit.skeleton import skeleton
from drayman.drivers.known import DRIVERS, UnknownDriverError, find_driver

PAGE = Path(__file__).parents[2] / "docs" / "writing-a-driver.md"
MOST_LINES = 40


def test_the_driver_of_the_page_has_less_than_40_lines_and_its_test_passes() -> None:
    """Empty lines included. Both are run as they are printed."""
    driver, test = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(driver.splitlines()) < MOST_LINES
    names: dict[str, object] = {"__name__": "sensor_driver"}
    exec(compile(driver + test, str(PAGE), "exec"), names)
    names["test_a_container_gets_its_card"]()


def test_a_new_driver_works_with_its_test(tmp_path: Path) -> None:
    """Written by the command, run by pytest; a second time nothing is overwritten."""
    words = ["driver", "new", "sensor-card.example.com", "--to", str(tmp_path)]
    assert run(words) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "sensor_card_driver.py",
        "test_sensor_card_driver.py",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert run(words) == 1


@pytest.mark.parametrize(
    ("name", "module", "class_"),
    [
        ("sensor.example.com", "sensor_driver", "SensorDriver"),
        ("my-npu.vendor.io", "my_npu_driver", "MyNpuDriver"),
        ("3d.example.com", "x_3d_driver", "X3dDriver"),
    ],
)
def test_a_new_driver_is_called_after_its_name(name: str, module: str, class_: str) -> None:
    """In names that Python has, and it is Python."""
    made = skeleton(name)
    assert (made.module, made.class_) == (module, class_)
    for path, text in made.files.items():
        compile(text, path, "exec")


def test_a_name_that_no_driver_can_have_is_refused() -> None:
    """Before a file is written."""
    with pytest.raises(KitError, match="'Sensor Card' cannot name a driver"):
        skeleton("Sensor Card")


@pytest.mark.parametrize("name", kit.__all__)
def test_every_public_name_of_the_kit_is_there(name: str) -> None:
    """What the kit lists can be had from it."""
    assert getattr(kit, name) is not None


@pytest.mark.parametrize("name", DRIVERS)
def test_drivers_that_come_along_have_the_names_they_are_found_by(name: str) -> None:
    """And commands with help."""
    from drayman.drivers.kit.command import command_of

    found = find_driver(name)
    assert found.name == name
    shown = CliRunner().invoke(command_of(found), ["--help"])
    assert shown.exit_code == 0
    assert "--registry-dir" in shown.output


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nonsense", "there is no driver 'nonsense'; there are gpu.example.com"),
        ("gpu.exmaple.com", "there is no driver 'gpu.exmaple.com'; did you mean gpu.example.com"),
        ("no_such_module:X", "there is no module 'no_such_module'"),
        ("json:X", "json has no 'X'"),
        ("json:loads", "loads is no Driver"),
    ],
)
def test_a_driver_that_is_not_there_says_what_is_missing(name: str, problem: str) -> None:
    """By name, module or class."""
    with pytest.raises(UnknownDriverError, match=re.escape(problem)):
        find_driver(name)


@pytest.mark.parametrize("words", ["--help", "driver --help", "profiles"])
def test_grpc_is_imported_only_by_what_serves_or_calls(words: str) -> None:
    """It takes a tenth of a second. The embedded cluster does without it, too."""
    code = (
        "import sys; from drayman.cli.main import run; import drayman.apiserver.instance;"
        f"run({words.split()!r}); sys.exit(any(m.split('.')[0] in ('grpc', 'google') for m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0
