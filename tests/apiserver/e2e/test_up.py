"""`drayman up` and the commands around it, as a person meets them: ready lines, refusals in one sentence, an orderly end."""

from __future__ import annotations

import json
import os
import pty
import shlex
import signal
import socket
import ssl
import stat
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import kubernetes
import pytest
import yaml

from apiserver.e2e.driving import DRAYMAN, PATIENCE_S, running, spawn, wait_ready


def drayman(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command that ends by itself."""
    return subprocess.run(
        [*DRAYMAN, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def refusal(*words: str | Path) -> str:
    """The one sentence with which a command gives up."""
    done = drayman(*words)
    assert (done.returncode, done.stdout) == (1, ""), done
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def used(data: Path) -> Path:
    """A data directory with a cluster in it that does not run."""
    with running(data / "kubeconfig", "--data-dir", data):
        pass
    return data


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield listener.getsockname()[1]


def test_termination_is_an_orderly_end(data: Path) -> None:
    """SIGTERM, SIGINT and SIGHUP stop the server with exit status 0, and nothing says that it runs."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        server = wait_ready(spawn("--data-dir", data), data / "kubeconfig")
        server.process.send_signal(number)
        output, _ = server.process.communicate(timeout=PATIENCE_S)
        assert server.process.returncode == 0, output
        assert output.splitlines()[-1] == "stopped"
        assert "Traceback" not in output
        assert not (data / "instance.json").exists()


def test_secrets_are_for_their_owner(used: Path) -> None:
    """The kubeconfig, tokens, keys and objects can be read by their owner only."""
    files = [path for path in used.rglob("*") if path.is_file()]
    assert {"kubeconfig", "admin.token", "store.db", "ca.key"} <= {path.name for path in files}
    assert {path.name for path in files if stat.S_IMODE(path.stat().st_mode) != 0o600} == set()
    assert stat.S_IMODE(used.stat().st_mode) == 0o700


def test_the_kubeconfig_stays_good(used: Path, tmp_path: Path) -> None:
    """Certificates and the token outlive a restart."""
    before = json.loads((used / "kubeconfig").read_bytes())
    copy = tmp_path / "copy"
    with running(copy, "--data-dir", used):
        after = json.loads(copy.read_bytes())
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert after["users"] == before["users"]
    authority = "certificate-authority-data"
    assert after["clusters"][0]["cluster"][authority] == before["clusters"][0]["cluster"][authority]


def test_ephemeral_needs_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that the environment names is left alone; one on the command line is a contradiction."""
    monkeypatch.setenv("DRAYMAN_DATA_DIR", str(tmp_path / "named"))
    with running(tmp_path / "config", "--ephemeral"):
        assert not (tmp_path / "named").exists()
    done = drayman("up", "--ephemeral", "--data-dir", tmp_path / "named")
    assert done.returncode == 2
    assert "--ephemeral keeps nothing, so it cannot be combined with --data-dir" in done.stderr


def test_ephemeral_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a data directory nothing stays behind but the kubeconfig that was asked for."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with running(tmp_path / "config", "--ephemeral"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["config"]


def test_a_second_start_on_the_same_directory(data: Path) -> None:
    """Two servers cannot share a data directory, in the foreground or the background."""
    with running(data / "kubeconfig", "--data-dir", data) as server:
        for option in ([], ["--detach"]):
            sentence = refusal("up", "--port", "0", "--data-dir", data, *option)
            assert str(data) in sentence
            assert f"in use by process {server.process.pid}, which serves https://" in sentence
            assert sentence.endswith(
                "stop it with `drayman down`, or start another cluster with --data-dir DIR --port 0"
            )


def test_what_an_earlier_run_left_is_announced(data: Path) -> None:
    """In the foreground and the background; a new directory has nothing to announce."""
    first = drayman("up", "--detach", "--port", "0", "--data-dir", data, "--profile", "example=2")
    assert "found" not in first.stdout
    drayman("down", "--data-dir", data)
    again = drayman("up", "--detach", "--port", "0", "--data-dir", data)
    assert again.stdout.splitlines()[1] == "found           2 nodes from an earlier run"
    drayman("down", "--data-dir", data)
    with running(data / "kubeconfig", "--data-dir", data) as server:
        assert server.process.stdout is not None
        printed = [server.process.stdout.readline() for _ in range(2)]
    assert printed[1] == "found           2 nodes from an earlier run\n"


def test_a_second_scheduler_for_the_same_pods_that_elects_no_leader_warns(data: Path) -> None:
    """Unless the embedded one is left out, or it serves other pods."""

    def said(*words: str) -> str:
        command = [*DRAYMAN, "scheduler", "--data-dir", data, *words]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert process.stderr.readline().startswith("scheduling pods of")
            process.terminate()
            return process.communicate()[1]

    with running(data / "kubeconfig", "--data-dir", data):
        alone = "--no-leader-elect"
        warning = "already schedules pods of drayman there; start it with --no-scheduler"
        assert warning in said(alone)
        assert said(alone, "--scheduler-name", "other") == "stopped\n"
    with running(data / "kubeconfig", "--data-dir", data, "--no-scheduler"):
        assert said(alone) == "stopped\n"


def test_the_status_of_a_cluster_shows_the_scheduler_of_another_process(data: Path) -> None:
    """Ready alone would be misleading where no scheduler runs; the status shows one as soon as it holds its Lease."""
    with running(data / "kubeconfig", "--data-dir", data, "--no-scheduler"):
        printed = drayman("status", "--data-dir", data).stdout
        assert "scheduler       none holds a Lease: pods without a node wait until" in printed
        assert "ready           yes, but no scheduler runs" in printed
        found = json.loads(drayman("status", "--data-dir", data, "-o", "json").stdout)
        assert found["ready"] is True
        assert (found["scheduler"], found["problem"].partition(":")[0]) == ("", "no scheduler runs")
        command = [
            *DRAYMAN,
            "scheduler",
            "--data-dir",
            data,
            "--scheduler-name",
            "default-scheduler",
        ]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            assert process.stderr.readline().startswith("scheduling pods of")
            printed = drayman("status", "--data-dir", data).stdout
            assert "scheduler       default-scheduler: " in printed
            assert "ready           yes\n" in printed
            process.terminate()
            process.communicate()


def test_a_start_that_is_refused_leaves_no_new_directory(data: Path, taken: int) -> None:
    """One that existed before stays."""
    for option in ([], ["--detach"]):
        refusal("up", "--port", str(taken), "--data-dir", data, *option)
        assert not data.exists()
        refusal("up", "--profile", "example=0", "--data-dir", data, *option)
        assert not data.exists()
    data.mkdir()
    refusal("up", "--port", str(taken), "--data-dir", data)
    assert data.is_dir()


@pytest.mark.parametrize("option", [[], ["--detach"]], ids=["foreground", "detached"])
def test_a_taken_port(data: Path, taken: int, option: list[str]) -> None:
    """The sentence names the address."""
    sentence = refusal("up", "--port", str(taken), "--data-dir", data, *option)
    assert sentence.endswith(
        f"cannot listen on 127.0.0.1:{taken}: address already in use;"
        " choose another port with --port, or any with --port 0"
    )
    assert not (data / "instance.json").exists()


@pytest.mark.parametrize("option", [[], ["--detach"]], ids=["foreground", "detached"])
@pytest.mark.parametrize(
    ("driver", "folder", "said"),
    [
        ("nowhere:Driver", "data", "driver nowhere:Driver: there is no module 'nowhere'"),
        ("broken:Driver", "data", "driver broken:Driver cannot be imported: half a wheel"),
        ("gpu.example.com", "d" * 100, "the path of a socket has at most 107 bytes"),
    ],
    ids=["unknown", "broken", "long-path"],
)
def test_a_node_that_does_not_start(
    tmp_path: Path,
    option: list[str],
    driver: str,
    folder: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The cluster counts as started only when its node and drivers run; otherwise one sentence says why, and nothing is left."""
    (tmp_path / "broken.py").write_text("raise ImportError('half a wheel')")
    monkeypatch.chdir(tmp_path)
    data = tmp_path / folder
    sentence = refusal(
        "up", "--node", "--driver", driver, "--port", "0", "--data-dir", data, *option
    )
    assert said in sentence
    assert sentence.startswith("it did not start: ") == bool(option)
    assert not data.exists()


@pytest.mark.parametrize("option", [[], ["--detach"]], ids=["foreground", "detached"])
def test_folders_that_cannot_be(tmp_path: Path, option: list[str]) -> None:
    """A data directory that is a file, or below one."""
    (tmp_path / "file").touch()
    start = ("up", "--port", "0", *option, "--data-dir")
    assert refusal(*start, tmp_path / "file") == f"{tmp_path / 'file'} is not a directory"
    below = tmp_path / "file" / "below"
    assert refusal(*start, below) == f"cannot make {below}: not a directory"


def test_a_folder_that_cannot_be_written(data: Path) -> None:
    """A data directory without the right to write in it."""
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    data.mkdir(mode=0o500)
    assert refusal("up", "--data-dir", data) == f"cannot write in {data}: permission denied"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("store.db", b"no database" * 1000, "is not a Drayman store"),
        ("store.db", b"SQLite format 3\0" + b"\xff" * 5000, "store.db"),
        ("pki/ca.crt", b"rubbish", "is not a certificate; remove it to have a new one"),
        ("pki/server.key", b"rubbish", "is not a private key; remove it to have a new one"),
        ("accounts.key", b"rubbish", "is no signing key; remove it to have a new one"),
        ("admin.token", b"", "holds no token; remove it to have a new one"),
        ("admin.token", b"\xff\xfe", "holds no token; remove it to have a new one"),
    ],
    ids=["other-file", "damaged", "certificate", "key", "signing-key", "no-token", "bad-token"],
)
def test_a_broken_data_file(used: Path, name: str, content: bytes, words: str) -> None:
    """The sentence names the file, which is left as it is."""
    (used / name).write_bytes(content)
    sentence = refusal("up", "--port", "0", "--data-dir", used)
    assert sentence.startswith(str(used / name))
    assert words in sentence
    assert (used / name).read_bytes() == content


def test_a_store_that_lost_its_end(used: Path) -> None:
    """A store that was cut short is refused, not served as if it were whole."""
    store = used / "store.db"
    os.truncate(store, store.stat().st_size // 2)
    assert str(store) in refusal("up", "--port", "0", "--data-dir", used)


@pytest.mark.parametrize("option", ["--kubeconfig", "--audit-log"])
def test_files_that_cannot_be_written(tmp_path: Path, option: str) -> None:
    """The sentence names the file that was asked for."""
    path = tmp_path / "nowhere" / "file"
    sentence = refusal("up", "--port", "0", "--ephemeral", option, path)
    assert f"{path}: no such file or directory" in sentence


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_other_machines_are_kept_out(host: str) -> None:
    """An address that others can reach needs a word of consent, which says what it means."""
    sentence = refusal("up", "--ephemeral", "--port", "0", "--host", host)
    assert sentence.startswith(f"{host} can be reached by other machines")
    assert "--expose" in sentence


def test_a_host_that_nobody_knows_is_not_said_to_be_reached() -> None:
    """Whether others reach it is no question before it has an address."""
    sentence = refusal("up", "--ephemeral", "--port", "0", "--host", "nowhere.invalid")
    assert sentence.startswith("--host: 'nowhere.invalid' has no address: ")


@pytest.mark.parametrize(("option", "value"), [("--driver", "gpu.example.com"), ("--images", "")])
def test_options_of_a_node_need_one(tmp_path: Path, option: str, value: str) -> None:
    """The sentence names the one that was given, and the one that is missing."""
    given = value or tmp_path / "images.yaml"
    (tmp_path / "images.yaml").write_text("images: {}")
    words = [*DRAYMAN, "up", "--ephemeral", option, given]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"Error: {option} needs --node, which makes this machine a node\n" in done.stderr


def test_exposing_it_on_purpose(tmp_path: Path) -> None:
    """With that word it listens there, and loopback clients can use it too."""
    options = ("--ephemeral", "--host", "0.0.0.0", "--expose")
    with running(tmp_path / "config", *options) as server:
        assert server.url.startswith("https://")
        port = server.url.rpartition(":")[2]
        unchecked = ssl._create_unverified_context()
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/healthz", context=unchecked) as got:
            assert got.read() == b"ok"


def test_in_the_background_and_back(data: Path) -> None:
    """up --detach, status, kubeconfig and down find each other through the data directory."""
    where = ("--data-dir", data)
    started = drayman("up", "--detach", "--port", "0", *where)
    assert started.returncode == 0, started
    url = started.stdout.split()[2]
    try:
        status = json.loads(drayman("status", "-o", "json", *where).stdout)
        assert yaml.safe_load(drayman("status", "-o", "yaml", *where).stdout) == status
        assert (status["running"], status["url"]) == (True, url)
        assert status["schedulerNames"] == ["default-scheduler", "drayman", "kai-scheduler"]
        assert url in drayman("status", *where).stdout
        config = json.loads(drayman("kubeconfig", *where).stdout)
        assert config["clusters"][0]["cluster"]["server"] == url
        path = drayman("kubeconfig", "--path", *where).stdout.strip()
        assert json.loads(Path(path).read_bytes()) == config
    finally:
        ended = drayman("down", *where)
    assert ended.returncode == 0
    stopped = f"stopped process {status['pid']}, which served {url}"
    assert ended.stdout.splitlines() == [stopped, f"state kept in {data}"]
    nothing = f"nothing runs on {data}; start it with: drayman up --data-dir {data}"
    for command in ("status", "kubeconfig"):
        assert refusal(command, *where) == nothing
    assert refusal("down", *where) == f"nothing runs on {data}"
    status_now = drayman("status", "-o", "json", *where)
    assert (status_now.returncode, json.loads(status_now.stdout)["running"]) == (1, False)


def test_what_is_detached_is_ready(data: Path) -> None:
    """When --detach returns the hardware can be used, every look at it sees all of it, and the server says that it is ready."""
    where = ("--data-dir", data)
    started = drayman("up", "--detach", "--port", "0", "--profile", "example=60", *where)
    assert started.returncode == 0, started
    try:
        states = [
            json.loads(drayman("top", "devices", "-o", "json", *where).stdout)["devices"]
            for _ in range(2)
        ]
        assert states[0] == states[1]
        assert {device["node"] for device in states[0]} == {f"example-{n}" for n in range(60)}
        assert json.loads(drayman("status", "-o", "json", *where).stdout)["ready"] is True
        assert "ready           yes" in drayman("status", *where).stdout
        unchecked = ssl._create_unverified_context()
        url = started.stdout.split()[2]
        logged = drayman("logs", *where).stdout.splitlines()
        assert f" server info {url} is ready" in "\n".join(logged)
        assert all(line.startswith("20") for line in logged), logged  # each names its component
        with urllib.request.urlopen(f"{url}/readyz?verbose", context=unchecked) as got:
            assert "[+]control-plane ok" in got.read().decode()
    finally:
        drayman("down", *where)


def test_the_api_alone_has_no_hardware() -> None:
    """--profile asks for what --no-controllers leaves out, which is said rather than forgotten."""
    done = drayman("up", "--ephemeral", "--no-controllers", "--profile", "example=1")
    assert done.returncode == 2
    assert (
        "--no-controllers serves the API alone, so it cannot be combined with --profile"
        in done.stderr
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--feature-gates", "Unheard=true"), "'Unheard' is not one of WorkloadWithJob"),
        (
            ("--feature-gates", "WorkloadWithJob=yes"),
            "WorkloadWithJob is either true or false, not 'yes'",
        ),
        (
            ("--no-controllers", "--feature-gates", "WorkloadWithJob=true"),
            "it cannot be combined with --feature-gates",
        ),
    ],
)
def test_gates_that_cannot_be_switched(options: tuple[str, ...], sentence: str) -> None:
    """A gate that nothing here has, a value that it cannot have, and one whose controller does not run."""
    done = drayman("up", "--ephemeral", *options)
    assert done.returncode == 2
    assert sentence in done.stderr


def test_a_killed_server_does_not_count_as_running(data: Path) -> None:
    """What a killed server left behind says nothing, even if its number belongs to another process now."""
    server = wait_ready(spawn("--data-dir", data), data / "kubeconfig")
    server.kill()
    record = json.loads((data / "instance.json").read_bytes())
    (data / "instance.json").write_text(json.dumps({**record, "pid": os.getpid()}))
    assert refusal("down", "--data-dir", data).startswith("nothing runs on")
    with running(data / "kubeconfig", "--data-dir", data) as again:
        assert json.loads((data / "instance.json").read_bytes())["pid"] == again.process.pid


def test_the_audit_log_has_a_line_for_each_request(tmp_path: Path) -> None:
    """Who did what, and how it ended."""
    log = tmp_path / "audit.jsonl"
    with running(tmp_path / "config", "--ephemeral", "--audit-log", log) as server:
        config = str(server.kubeconfig)
        with kubernetes.config.new_client_from_config(config) as client:
            kubernetes.client.CoreV1Api(client).read_namespace("default")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    (line,) = (line for line in lines if "namespaces/default" in line["requestURI"])
    assert (line["verb"], line["user"]["username"]) == ("get", "kubernetes-admin")
    assert line["responseStatus"]["code"] == 200


@pytest.mark.parametrize(
    ("before", "after", "returns"),
    [("exec nohup", ">/dev/null 2>&1", False), ("", "--detach", True)],
    ids=["nohup", "detached"],
)
def test_the_server_outlives_its_terminal(
    data: Path, before: str, after: str, returns: bool
) -> None:
    """With --detach, or under nohup, it goes on when the terminal is closed that it was started from."""
    where = ("--data-dir", data)
    words = shlex.join([*DRAYMAN, "up", "--port", "0", *map(str, where)])
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv("/bin/sh", ["/bin/sh", "-c", f"{before} {words} {after}"])
    try:
        if returns:
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        wait_until(lambda: drayman("status", *where).returncode == 0, "the server to run")
    finally:
        os.close(terminal)  # the system tells everybody who has it as their terminal to hang up
    status = json.loads(drayman("status", "-o", "json", *where).stdout)
    assert status["running"]
    os.kill(status["pid"], signal.SIGTERM)
    if not returns:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    wait_until(lambda: drayman("status", *where).returncode == 1, "the server to end")


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S:.0f} s for {what}"
