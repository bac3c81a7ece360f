"""Runs one container: a process and whatever it starts. A program of its own, which imports nothing but the standard library.

    python -I -S shim.py FOLDER                        run what FOLDER/start.json says
    python -I -S shim.py --enter PID ROOT COMMAND...   run a command where a container lives
    python -I -S shim.py --check                       say whether containers can have mounts of their own

It outlives the agent that started it, so that an agent that is killed neither loses an exit code nor starts a container twice. What is
known about the container is in files of its folder, each written as a whole:

lock    held by this process while it lives. Whoever gets the lock knows that it is not running.
shim    the pid of this process.
child   the pid of the container's first process, and when it started. It leads a session and a process group.
log     what the container wrote, in the format of the container runtime interface.
exit    how it ended. If it is there before the start, nothing is started: somebody has given the container up.

A container that has mounts or devices sees a root of its own, in a mount namespace of its own: the host's files, the mounts where they are
wanted, and in /dev the usual devices and its own. Directories that have to be made for mounts are made there and not on the host.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import stat
import sys
import time
from typing import Any

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
PR_SET_CHILD_SUBREAPER = 36
LONGEST_LINE = 16 * 1024
START_ERROR = 128
USUAL_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")
DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}

_libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def write_whole(path: str, text: str) -> None:
    """Other processes see the file complete or not at all."""
    temporary = f"{path}.new"
    with open(temporary, "w") as file:
        file.write(text)
    os.replace(temporary, path)


def started_at(pid: int) -> int:
    """When a process started, in ticks since the boot: a pid that is used again has another."""
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[19])


# --- The root of a container --------------------------------------------------------------------


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    result = _libc.mount(
        source.encode(),
        target.encode(),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        data.encode() or None,
    )
    checked(result, f"mounting {source} on {target}")


def bind(source: str, target: str, read_only: bool = False) -> None:
    """Show a file or a directory in another place, which is made if need be."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.lexists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    mount(source, target, flags=MS_BIND | MS_REC)
    if read_only:
        # What the mount below forbids cannot be allowed here, and has to be said again.
        kept = os.statvfs(target).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC)
        mount("none", target, flags=MS_REMOUNT | MS_BIND | MS_RDONLY | kept)


def private_mounts() -> None:
    """From here on, mounts are this process's own business."""
    try:
        checked(_libc.unshare(CLONE_NEWNS), "a mount namespace")
    except PermissionError:
        user, group = os.geteuid(), os.getegid()
        checked(_libc.unshare(CLONE_NEWNS | CLONE_NEWUSER), "a user and a mount namespace")
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    mount("none", "/", flags=MS_REC | MS_PRIVATE)


def folders_to_open(paths: list[str]) -> set[str]:
    """The host's directories that have to be put together anew because something is to be made in them."""
    found = {"/", "/dev"}
    for path in paths:
        parent = path
        while not os.path.lexists(parent):
            parent = os.path.dirname(parent)
            if os.path.lexists(parent):
                while parent not in found:
                    found.add(parent)
                    parent = os.path.dirname(parent)
    return found


def copy_folder(folder: str, root: str, opened: set[str]) -> None:
    """A directory of the host in the new root, entry by entry."""
    for entry in os.scandir(folder):
        target = root + entry.path
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), target)
        elif entry.path in opened:
            os.mkdir(target, stat.S_IMODE(entry.stat().st_mode))
            if entry.path != "/dev":
                copy_folder(entry.path, root, opened)
        else:
            bind(entry.path, target)


def fill_devices(root: str, nodes: list[dict[str, Any]]) -> None:
    """A /dev with the usual devices and those of the container."""
    for name in USUAL_DEVICES:
        if os.path.exists(f"/dev/{name}"):
            bind(f"/dev/{name}", f"{root}/dev/{name}")
    os.mkdir(f"{root}/dev/shm", 0o1777)
    mount("shm", f"{root}/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
    for name, target in DEVICE_LINKS.items():
        os.symlink(target, f"{root}/dev/{name}")
    for node in nodes:
        target = root + node["path"]
        if os.path.exists(node["host"]):
            bind(node["host"], target)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            kind = {"b": stat.S_IFBLK, "p": stat.S_IFIFO}.get(node["type"], stat.S_IFCHR)
            os.mknod(target, kind | node["mode"], os.makedev(node["major"], node["minor"]))


def enter_own_root(root: str, start: dict[str, Any]) -> None:
    """Build the root of a container and live there."""
    private_mounts()
    mount("root", root, "tmpfs", MS_NOSUID, "mode=755")
    binds = [(source, os.path.realpath(path), ro) for source, path, ro in start["binds"]]
    opened = folders_to_open([path for _, path, _ in binds])
    copy_folder("/", root, opened)
    fill_devices(root, start["devices"])
    for source, path, read_only in binds:
        bind(source, root + path, read_only)
    os.chroot(root)


# --- The process --------------------------------------------------------------------------------


def become(start: dict[str, Any], folder: str, output: int, errors: int, failure: int) -> None:
    """Turn into the container's first process. Never returns; says on `failure` why it cannot."""
    try:
        os.setsid()
        nothing = os.open("/dev/null", os.O_RDONLY)
        for source, target in ((nothing, 0), (output, 1), (errors, 2)):
            os.dup2(source, target)
        if start["own_root"]:
            enter_own_root(os.path.join(folder, "root"), start)
        if start["groups"]:
            os.setgroups(start["groups"])
        if start["group"] is not None:
            os.setgid(start["group"])
        if start["user"] is not None:
            os.setuid(start["user"])
        os.chdir(start["cwd"])
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        os.execvpe(start["argv"][0], start["argv"], start["env"])
    except OSError as error:
        # Of a program that is looked for in several folders, the last one would be named.
        what = error.filename if isinstance(error.filename, str) else start["argv"][0]
        reason = error.strerror or str(error)
        os.write(failure, f"{what}: {reason}".encode())
    except BaseException as error:
        os.write(failure, f"{type(error).__name__}: {error}".encode())
    os._exit(START_ERROR)


class Log:
    """Lines of both streams, each with its time."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
        self._rest = {"stdout": b"", "stderr": b""}

    def add(self, stream: str, data: bytes) -> None:
        *lines, rest = (self._rest[stream] + data).split(b"\n")
        text = b"".join(self._stamped(stream, line) for line in lines)
        while len(rest) > LONGEST_LINE:
            text += self._entry(stream, "P", rest[:LONGEST_LINE])
            rest = rest[LONGEST_LINE:]
        self._rest[stream] = rest
        self._write(text)

    def finish(self) -> None:
        for stream, rest in self._rest.items():
            if rest:
                self._write(self._entry(stream, "P", rest))

    def _stamped(self, stream: str, line: bytes) -> bytes:
        parts = b""
        while len(line) > LONGEST_LINE:
            parts += self._entry(stream, "P", line[:LONGEST_LINE])
            line = line[LONGEST_LINE:]
        return parts + self._entry(stream, "F", line)

    @staticmethod
    def _entry(stream: str, tag: str, line: bytes) -> bytes:
        return f"{now()} {stream} {tag} ".encode() + line + b"\n"

    def _write(self, text: bytes) -> None:
        while text:
            text = text[os.write(self._file, text) :]


def now() -> str:
    seconds, nanos = divmod(time.time_ns(), 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{nanos:09d}Z"


def follow(child: int, output: int, errors: int, log: Log) -> None:
    """Write down what a container says until its first process has ended, and what is left in the pipes then."""
    streams = {output: "stdout", errors: "stderr"}
    process = os.pidfd_open(child)
    poll = select.poll()
    for each in (process, output, errors):
        poll.register(each, select.POLLIN)
    has_ended = False
    while streams or not has_ended:
        ready = poll.poll(0 if has_ended else None)
        if has_ended and not ready:
            return  # somebody else holds the pipe, and has escaped
        for each, _ in ready:
            if each == process:
                has_ended = True
                poll.unregister(process)
                end_group(child)
                continue
            data = os.read(each, 65536)
            if data:
                log.add(streams[each], data)
            else:
                poll.unregister(each)
                del streams[each]


def end_group(child: int) -> None:
    """Nothing of a container outlives its first process, as in a pid namespace."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    own = f"/proc/self/task/{os.getpid()}/children"
    for _ in range(1000):
        with open(own) as file:
            strays = [int(pid) for pid in file.read().split() if int(pid) != child]
        if not strays:
            return
        for pid in strays:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def run(folder: str) -> None:
    lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    ended = os.path.join(folder, "exit")
    if os.path.exists(ended):
        return
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    write_whole(os.path.join(folder, "shim"), str(os.getpid()))
    with open(os.path.join(folder, "start.json")) as file:
        start = json.load(file)
    (out, out_end), (err, err_end), (why, why_end) = os.pipe(), os.pipe(), os.pipe()
    begun = now()
    child = os.fork()
    if child == 0:
        become(start, folder, out_end, err_end, why_end)
    for each in (out_end, err_end, why_end):
        os.close(each)
    write_whole(os.path.join(folder, "child"), f"{child} {started_at(child)} {begun}")
    log = Log(os.path.join(folder, "log"))
    failure = b""
    while data := os.read(why, 4096):  # until the program has been started, or could not be
        failure += data
    follow(child, out, err, log)
    log.finish()
    # Not yet reaped, so that its pid means nothing else while somebody may want to signal it.
    found = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert found is not None
    signalled = found.si_code != os.CLD_EXITED
    end = {
        "code": 128 + found.si_status if signalled else found.si_status,
        "signal": found.si_status if signalled else 0,
        "began": begun,
        "ended": now(),
        "failure": failure.decode("utf-8", "replace"),
    }
    write_whole(ended, json.dumps(end))
    os.waitpid(child, 0)


def enter(pid: str, has_own_root: bool, argv: list[str]) -> None:
    """Become a command that sees what a container sees, as its user."""
    cwd = os.environ.pop("DRAYMAN_CWD", "/")
    if has_own_root:
        root = os.open(f"/proc/{pid}/root", os.O_RDONLY)
        for kind in ("user", "mnt"):
            here, there = os.stat(f"/proc/self/ns/{kind}"), os.stat(f"/proc/{pid}/ns/{kind}")
            if here.st_ino != there.st_ino:
                space = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
                checked(_libc.setns(space, 0), f"entering the {kind} namespace of {pid}")
        os.fchdir(root)
        os.chroot(".")
    os.chdir(cwd)
    group, user = os.environ.pop("DRAYMAN_GROUP", ""), os.environ.pop("DRAYMAN_USER", "")
    if group:
        os.setgid(int(group))
    if user:
        os.setuid(int(user))
    os.execvpe(argv[0], argv, dict(os.environ))


def main() -> None:
    if sys.argv[1] == "--check":
        private_mounts()
        return
    if sys.argv[1] != "--enter":
        run(sys.argv[1])
        return
    argv = sys.argv[4:]
    try:
        enter(sys.argv[2], sys.argv[3] == "own", argv)
    except OSError as error:
        sys.stderr.write(f"{error.filename or argv[0]}: {error.strerror or error}\n")
        sys.exit(127 if error.errno == errno.ENOENT else 126)


if __name__ == "__main__":
    main()
