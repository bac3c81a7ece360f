"""`drayman driver run` beside nodes: where it finds them, and what it says where there is none."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from apiserver.e2e.driving import DRAYMAN, running
from drayman.cli.driver_run import is_of_kubelet
from drayman.cli.errors import UserError
from drayman.cli.node_agent import machine_name
from drayman.cli.node_root import record_node, refuse_root_of_another
from drayman.plugins.sockets import REGISTRY

NODE = machine_name()
DRIVER = (*DRAYMAN, "driver", "run", "gpu.example.com", "--node", NODE)


def test_a_driver_beside_a_node_of_drayman_is_found_by_it() -> None:
    """With the root directory of the node its folders are those of the node, which registers it. It has to be that of its own node."""
    with tempfile.TemporaryDirectory(prefix="n") as text:  # sockets need short paths
        data = Path(text)
        config = data / "kubeconfig"
        with running(config, "--data-dir", data, "--node"):
            words = ("--node-dir", data / "node", "--kubeconfig", config, "--verbose")
            with subprocess.Popen([*DRIVER, *words], stderr=subprocess.PIPE, text=True) as driver:
                assert driver.stderr is not None
                lines = iter(driver.stderr.readline, "")
                registered = any("gpu.example.com: registered with the node" in e for e in lines)
                is_there = (data / "node" / "plugins" / "gpu.example.com").is_dir()
                driver.terminate()
                driver.communicate()
            other = [*DRIVER[:-1], "node-2", *map(str, words)]
            refused = subprocess.run(other, capture_output=True, text=True, check=False)
    assert registered
    assert is_there
    said = f"error: {data / 'node'} is the root directory of {NODE}, not of node-2\n"
    assert (refused.returncode, refused.stderr) == (1, said)


def test_the_root_directory_of_an_older_node_is_taken_at_its_word(tmp_path: Path) -> None:
    """It does not say whose it is; one that does is refused for any other node."""
    refuse_root_of_another(tmp_path, "node-2")
    record_node(tmp_path, "node-3")
    refuse_root_of_another(tmp_path, "node-3")
    with pytest.raises(UserError, match="is the root directory of node-3, not of node-2"):
        refuse_root_of_another(tmp_path, "node-2")


def test_a_driver_logs_as_other_commands_do() -> None:
    """When, and what; not which module says it."""
    with tempfile.TemporaryDirectory(prefix="n") as text:
        folder = Path(text)
        config = folder / "kubeconfig"
        (folder / "plugins_registry").mkdir()
        words = [*DRIVER[:-1], "nosuch", "--node-dir", folder, "--kubeconfig", config]
        with (
            running(config, "--ephemeral"),
            subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as driver,
        ):
            assert driver.stderr is not None
            line = driver.stderr.readline()
            driver.terminate()
            driver.communicate()
    assert re.fullmatch(r"\S+Z slices of gpu.example.com: .*nosuch.* not found\n", line)


def test_a_folder_that_is_no_node(tmp_path: Path) -> None:
    """It is named, with where the right one is."""
    words = [*DRIVER, "--node-dir", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"error: {tmp_path} is not the root directory of a node: there is no" in done.stderr


def test_where_no_kubelet_is_the_option_for_nodes_of_drayman_is_named(tmp_path: Path) -> None:
    """Nobody would find the driver, and folders that it made there could be taken for those of a kubelet."""
    if is_of_kubelet(REGISTRY):
        pytest.skip("there is a kubelet")
    before = REGISTRY.exists()
    words = [*DRIVER, "--kubeconfig", str(tmp_path / "none")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {REGISTRY.parent} is not the directory of a kubelet")
    assert "--node-dir" in done.stderr
    assert REGISTRY.exists() == before


def test_what_tells_the_folders_of_a_kubelet(tmp_path: Path) -> None:
    """Those that drivers make when they wait for one are not, or the second driver would not be warned."""
    registry = tmp_path / "plugins_registry"
    assert not is_of_kubelet(registry)
    registry.mkdir()
    (tmp_path / "plugins" / "gpu.example.com").mkdir(parents=True)
    assert not is_of_kubelet(registry)
    (tmp_path / "pods").mkdir()
    assert is_of_kubelet(registry)
    assert is_of_kubelet(Path("/proc"))  # mounted, as in a pod


def test_the_help_of_a_driver_has_examples() -> None:
    """With its own name in them."""
    done = subprocess.run([*DRIVER, "--help"], capture_output=True, text=True, check=False)
    assert "drayman driver run gpu.example.com --node node-1 --node-dir DIR" in done.stdout


def test_the_help_of_a_driver_says_which_cluster_it_finds_by_itself() -> None:
    """Also the one that runs here, which the kit's own command does not know of."""
    done = subprocess.run([*DRIVER, "--help"], capture_output=True, text=True, check=False)
    assert "else the one that `drayman up` runs, else that of ~/.kube" in " ".join(
        done.stdout.split()
    )
