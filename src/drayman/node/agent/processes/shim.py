"""Runs one container: a process and whatever it starts. A program of its own, which imports nothing but the standard library.

    python -I -S shim.py FOLDER                              run what FOLDER/start.json says
    python -I -S shim.py --enter FOLDER RECEIVER COMMAND...  run a command where that container lives; RECEIVER is the descriptor of a
                                                             socket for the other end of its terminal, or empty
    python -I -S shim.py --check                             say whether containers can have mounts of their own, and whether
                                                             these can hide something from them (`hides`) or not (`shows`)
    python -I -S shim.py --check-overlay FOLDER              say whether changes to a root can be kept in a folder

It outlives the agent that started it, so that an agent that is killed neither loses an exit code nor starts a container twice. What is
known about the container is in files of its folder, each written as a whole:

lock    held by this process while it lives. Whoever gets the lock knows that it is not running.
shim    the pid of this process.
child   the pid of the container's first process, and when it started. It leads a session and a process group.
running there once that process has become the container's program.
log     what the container wrote (`log_files`).
attach  a socket for those who attach to it (`attaching`).
room    what `exit` will be written to, as large as that gets, so that an end can be told when the disk has become full.
exit    how it ended. If it is there before the start, nothing is started: somebody has given the container up.

What the container sees of the machine's files is in `roots`.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import select
import signal
import socket
import stat
import sys
import termios
import time
from typing import Any, NamedTuple

if __name__ == "__main__":  # a program alone does not know where its package is
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4)))

from drayman.node.agent.processes import attaching, roots
from drayman.node.agent.processes.log_files import Log, now

PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
START_ERROR = 128
END_BYTES = 4096
"""What is kept free for how a container ended. Only the reason for which a program could not be started can be longer."""
BEGIN_S, BEGIN_LOOK_S = 30.0, 0.01
"""How long a command waits for the program of its container to begin, and how often it looks."""
STRAYS_S, STRAYS_LOOK_S = 10.0, 0.005
"""How long the end of what a container has left behind is awaited, and how often it is checked. A debugger or a device can delay it."""
TERM = "xterm"
"""The sort of terminal that clients have, unless the container says another: what container runtimes say."""
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)
KINDS = {"stdout": attaching.STDOUT, "stderr": attaching.STDERR}


def write_whole(path: str, text: str) -> None:
    """Other processes see the file complete or not at all."""
    temporary = f"{path}.new"
    with open(temporary, "w") as file:
        file.write(text)
    os.replace(temporary, path)


def reserve(path: str) -> None:
    """Make a file that can be written over without further room, where the file system writes in place."""
    with open(path, "wb") as file:
        file.write(b" " * END_BYTES)


def started_at(pid: int) -> int:
    """When a process started, in ticks since the boot: a pid that is used again has another."""
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[19])


def take_terminal(receiver: int, user: int | None) -> None:
    """Have a new terminal for everything, and for control; its other end goes to a socket."""
    near, far = os.openpty()
    if user is not None:
        os.fchown(far, user, -1)
    with socket.socket(fileno=receiver) as there:
        socket.send_fds(there, [b"t"], [near])
    os.close(near)
    for target in (0, 1, 2):
        os.dup2(far, target)
    if far > 2:
        os.close(far)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def give_streams(user: int) -> None:
    """Let a user open its streams again, as /dev/stdout and so on. Only pipes: /dev/null is everybody's."""
    for stream in (0, 1, 2):
        if stat.S_ISFIFO(os.fstat(stream).st_mode):
            os.fchown(stream, user, -1)


# --- The process --------------------------------------------------------------------------------


def join(folders: list[str]) -> None:
    """Move this process into control groups."""
    for folder in folders:
        with open(os.path.join(folder, "cgroup.procs"), "w") as file:
            file.write("0")


def count_killed_for_memory(path: str) -> int:
    """How often the kernel killed something in a control group because there was no memory left."""
    if not path:
        return 0
    with open(path) as file:
        counts = dict(line.split() for line in file)
    return int(counts.get("oom_kill", 0))


def obey_signals() -> None:
    """Do not hand on that signals are ignored here, by the shim or by Python."""
    for number in (*IGNORED, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)


class ProgramError(OSError):
    """A program cannot be run."""

    def in_words(self) -> str:
        """As runc says it."""
        name = str(self.filename)
        if self.errno != errno.ENOENT:
            why = os.strerror(self.errno or 0).lower()
        elif "/" not in name:
            why = "executable file not found in $PATH"
        else:
            why = f"stat {name}: no such file or directory"
        return f'exec: "{name}": {why}'


def live_as_told(start: dict[str, Any], argv: list[str]) -> None:
    """Be who a container is, where it lives, and run a program there."""
    user, group = start["user"], start["group"]
    is_another = user not in (None, os.getuid()) or group not in (None, os.getgid())
    # Not where nothing changes: in a user namespace nobody may.
    if is_another or start["groups"]:
        os.setgroups(start["groups"])
    if group is not None:
        os.setgid(group)
    if user is not None:
        if user != os.getuid():
            give_streams(user)
        os.setuid(user)
    if start.get("no_new_privileges"):  # earlier versions do not say
        roots.checked(roots.libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "giving up privileges")
    os.chdir(start["cwd"])
    obey_signals()
    if not argv[0]:  # which Python does not look for
        raise ProgramError(errno.ENOENT, os.strerror(errno.ENOENT), "")
    try:
        os.execvpe(argv[0], argv, start["env"])
    except OSError as error:
        # Of a program that is looked for in several folders, the last one would be named.
        raise ProgramError(error.errno, error.strerror, argv[0]) from error


def become(
    start: dict[str, Any], folder: str, streams: tuple[int, int, int], near: int, failure: int
) -> None:
    """Turn into the container's first process. Never returns; says on `failure` why it cannot.

    `near`: the socket for the other end of its terminal, if it is to have one.
    """
    try:
        join([group["path"] for group in start["cgroups"] if group["holds"]])
        if start["cpus"]:
            os.sched_setaffinity(0, start["cpus"])
        os.setsid()
        for target, source in enumerate(streams):
            os.dup2(source, target)
        if start["own_root"]:
            roots.enter_own_root(os.path.join(folder, "root"), start)
        if start["is_sealed"]:
            roots.seal()
        if start["tty"]:
            take_terminal(near, start["user"])
            start["env"].setdefault("TERM", TERM)
        live_as_told(start, start["argv"])
    except OSError as error:
        what = error.filename or start["argv"][0]
        reason = error.strerror or str(error)
        os.write(failure, f"{what}: {reason}".encode())
    except BaseException as error:
        os.write(failure, f"{type(error).__name__}: {error}".encode())
    os._exit(START_ERROR)


def follow(
    child: int, streams: dict[int, str], log: Log, attached: attaching.Attached, poll: select.poll
) -> None:
    """Write down what a container says until its first process has ended, and what is left in the pipes then."""
    process = os.pidfd_open(child)
    for each in (process, *streams):
        poll.register(each, select.POLLIN)
    has_ended = was_held_up = False
    while streams or not has_ended:
        is_held_up = attached.is_held_up() and not has_ended
        if is_held_up != was_held_up:
            was_held_up = is_held_up
            for each in streams:
                poll.unregister(each) if is_held_up else poll.register(each, select.POLLIN)
        ready = poll.poll(0 if has_ended else 500 if is_held_up else None)
        if has_ended and not ready:
            return  # somebody else holds the pipe, and has escaped
        for each, event in ready:
            if each == process:
                has_ended = True
                poll.unregister(process)
                end_group(child)
            elif each not in streams:
                attached.handle(each, event)
            elif data := read_some(each):
                log.add(streams[each], data)
                attached.say(KINDS[streams[each]], data)
            else:
                poll.unregister(each)
                del streams[each]


def read_some(stream: int) -> bytes:
    """Empty at the end of a pipe, and at that of a terminal, which says so in another way."""
    try:
        return os.read(stream, 32768)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return b""


def end_group(child: int) -> None:
    """Nothing of a container outlives its first process, as in a pid namespace."""
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    own = f"/proc/self/task/{os.getpid()}/children"
    end = time.monotonic() + STRAYS_S
    while True:
        with open(own) as file:
            strays = [int(pid) for pid in file.read().split() if int(pid) != child]
        if not strays:
            return
        if time.monotonic() > end:
            sys.stderr.write(f"processes that do not end are left behind: {strays}\n")
            return
        for pid in strays:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, os.WNOHANG)
        time.sleep(STRAYS_LOOK_S)


class Begun(NamedTuple):
    """A container's first process, and what leads to it."""

    child: int
    moment: str
    out: int
    err: int
    sink: int
    """What its input is written to; -1 if it has none."""
    why: int
    """Says why the program could not be started, and ends when it has been."""
    near: socket.socket
    """Gets the other end of its terminal."""


def begin(folder: str, start: dict[str, Any], lock: int) -> Begun:
    """Fork the container's first process, which goes on when it is written down who it is.

    So there is none that nobody knows: if this process is killed before, the other one ends by itself.
    """
    (out, out_end), (err, err_end), (why, why_end) = os.pipe(), os.pipe(), os.pipe()
    in_end, sink = os.pipe() if start["stdin"] else (os.open("/dev/null", os.O_RDONLY), -1)
    go_end, go = os.pipe()
    near, near_end = socket.socketpair()
    moment = now()
    child = os.fork()
    if child == 0:
        # The lock says that the shim lives, and must be free when it does not.
        os.close(lock)
        os.close(go)
        obey_signals()
        if os.read(go_end, 1):
            become(start, folder, (in_end, out_end, err_end), near_end.fileno(), why_end)
        os._exit(START_ERROR)
    near_end.close()
    for each in (in_end, out_end, err_end, why_end, go_end):
        os.close(each)
    write_whole(os.path.join(folder, "child"), f"{child} {started_at(child)} {moment}")
    try:
        os.write(go, b"g")
    except BrokenPipeError:
        pass  # somebody was quick to kill it
    os.close(go)
    return Begun(child, moment, out, err, sink, why, near)


def run(folder: str) -> None:
    lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    ended = os.path.join(folder, "exit")
    if os.path.exists(ended):
        return
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    roots.libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    write_whole(os.path.join(folder, "shim"), str(os.getpid()))
    with open(os.path.join(folder, "start.json")) as file:
        start = json.load(file)
    room = os.path.join(folder, "room")
    reserve(room)
    listener = attaching.listener(folder)
    begun = begin(folder, start, lock)
    log = Log(os.path.join(folder, "log"))
    failure = b""
    while data := os.read(begun.why, 4096):
        failure += data
    if not failure:
        os.close(os.open(os.path.join(folder, "running"), os.O_WRONLY | os.O_CREAT, 0o600))
    streams, sink = {begun.out: "stdout", begun.err: "stderr"}, begun.sink
    terminal = socket.recv_fds(begun.near, 1, 1)[1] if start["tty"] else []
    if terminal:
        streams[terminal[0]] = "stdout"
        sink = os.dup(terminal[0])
    poll = select.poll()
    attached = attaching.Attached(
        listener,
        poll,
        sink,
        is_terminal=bool(terminal),
        has_input=start["stdin"],
        once=start["stdin_once"],
    )
    follow(begun.child, streams, log, attached, poll)
    log.finish()
    attached.finish()
    with open(room, "rb+") as file:
        file.write(json.dumps(end_of(begun, failure, start["oom_file"])).encode())
    os.rename(room, ended)
    os.waitpid(begun.child, 0)


def end_of(begun: Begun, failure: bytes, oom_file: str) -> dict[str, Any]:
    """How a container has ended. Its process is not reaped yet, so that its pid means nothing else while somebody may want to signal it."""
    found = os.waitid(os.P_PID, begun.child, os.WEXITED | os.WNOWAIT)
    assert found is not None
    signalled = found.si_code != os.CLD_EXITED
    return {
        "code": 128 + found.si_status if signalled else found.si_status,
        "signal": found.si_status if signalled else 0,
        "began": begun.moment,
        "ended": now(),
        "failure": failure.decode("utf-8", "replace"),
        "out_of_memory": count_killed_for_memory(oom_file) > 0,
    }


def check_lives(folder: str, pid: int, started: int) -> None:
    """Raises OSError if the first process of a container has ended."""
    if started_at(pid) != started:
        raise ProcessLookupError(errno.ESRCH, "the container has ended", folder)


def await_program(folder: str, pid: int, started: int) -> None:
    """Returns when the first process of a container has become its program. Raises OSError if it does not."""
    end = time.monotonic() + BEGIN_S
    while not os.path.exists(os.path.join(folder, "running")):
        check_lives(folder, pid, started)
        if time.monotonic() > end:
            raise TimeoutError(errno.ETIMEDOUT, "the container does not begin", folder)
        time.sleep(BEGIN_LOOK_S)


def enter(folder: str, receiver: int | None, argv: list[str]) -> None:
    """Become a command that sees what a container sees, as its user.

    What it is told comes from the folder of the container, and nothing from the environment of this process: that of the container could
    otherwise have this one, which is the agent's and outside, load a library.
    """
    with open(os.path.join(folder, "start.json")) as file:
        start = json.load(file)
    with open(os.path.join(folder, "child")) as file:
        pid, started, _ = file.read().split()
    if start["own_root"]:  # which it enters last: until then its root is that of the machine
        await_program(folder, int(pid), int(started))
    root = os.open(f"/proc/{pid}/root", os.O_PATH) if start["own_root"] else -1
    check_lives(folder, int(pid), int(started))
    join([group["path"] for group in start["cgroups"] if group["holds"]])
    if start["cpus"]:
        os.sched_setaffinity(0, start["cpus"])
    if root >= 0:
        for kind in ("user", "mnt"):
            here, there = os.stat(f"/proc/self/ns/{kind}"), os.stat(f"/proc/{pid}/ns/{kind}")
            if here.st_ino != there.st_ino:
                space = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
                roots.checked(roots.libc.setns(space, 0), f"entering the {kind} namespace of {pid}")
        os.fchdir(root)
        os.chroot(".")
    if start.get("is_sealed"):  # earlier versions do not say
        roots.seal()
    if receiver is not None:
        take_terminal(receiver, start["user"])
        start["env"].setdefault("TERM", TERM)
    live_as_told(start, argv)


def main() -> None:
    if sys.argv[1] == "--check":
        roots.private_mounts()
        print("hides" if roots.can_hide() else "shows")
        return
    if sys.argv[1] == "--check-overlay":
        if roots.private_mounts():
            sys.exit("in a user namespace, files of users that it does not have cannot be changed")
        roots.overlay("/etc", sys.argv[2], sys.argv[2])
        return
    if sys.argv[1] != "--enter":
        run(sys.argv[1])
        return
    receiver, argv = sys.argv[3], sys.argv[4:]
    try:
        enter(sys.argv[2], int(receiver) if receiver else None, argv)
    except OSError as error:
        if isinstance(error, ProgramError):
            why = error.in_words()
        else:
            why = f"{error.filename or argv[0]}: {error.strerror or error}"
        sys.stderr.write(f"{why}\n")
        sys.exit(127 if error.errno == errno.ENOENT else 126)


if __name__ == "__main__":
    main()
