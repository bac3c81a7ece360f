"""The root of a container. Part of the shim: it imports nothing but the standard library.

A container that has mounts or devices sees a root of its own, in a mount namespace of its own: the host's files, the mounts where they are
wanted, and in /dev the usual devices and its own. Directories that have to be made for mounts are made there and not on the host.
With the root of an image, that is what it sees instead of the host's files; what it changes is kept in its folder, or refused.

Directories with the credentials of the cluster and the files of other pods are hidden under empty ones. A container of root could look
behind them: at the root of another process by /proc, through a mount or a namespace of its own, or at the disk itself. So it leaves the
host's root for good, loses the capabilities that serve this, and gets a Landlock domain, in which no process outside can be examined and
nothing can be mounted or unmounted.

Device files that a program of root makes itself cannot be opened there: NVIDIA's libraries make those of all GPUs where they miss one.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from contextlib import ExitStack, suppress
from typing import Any

from drayman.node.agent.processes import beneath

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
PR_CAPBSET_DROP = 24
REVEALING_CAPABILITIES = {
    "DAC_READ_SEARCH": 2,
    "SYS_MODULE": 16,
    "SYS_RAWIO": 17,
    "SYS_PTRACE": 19,
    "SYS_ADMIN": 21,
    "MKNOD": 27,
    "PERFMON": 38,
    "BPF": 39,
}
"""With one of these a container can see what is hidden from it: files by handle, other processes, mounts, disks, memory."""
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
LANDLOCK_VERSION, LANDLOCK_PATH_BENEATH = 1, 1
LANDLOCK_MAKE_BLOCK, LANDLOCK_REFER = 1 << 11, 1 << 13
LANDLOCK_NEEDED = 2
"""The first version in which files can be moved between directories."""
USUAL_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}

HOST_FILES = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf")
"""What a container with the root of an image has of the host, because it shares its network."""
KERNEL_SETTINGS = ("/proc/sys", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper")
"""Where root can name a program that the kernel then runs outside of all containers, such as for core dumps, or stop the machine."""
KERNEL_TREES = ("/proc", "/sys")
"""What they show changes all the time, so they cannot be put together anew."""

libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(
    source: str, target: str, kind: str = "", flags: int = 0, data: str = "", *, about: str = ""
) -> None:
    """`about`: what an error calls it, where the paths say little."""
    result = libc.mount(
        source.encode(),
        target.encode(),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        data.encode() or None,
    )
    checked(result, f"mounting {about or f'{source} on {target}'}")


def unmount(target: str, flags: int = 0) -> None:
    checked(libc.umount2(target.encode(), flags), f"unmounting {target}")


def bind(source: str, root: str, path: str, read_only: bool = False, sub_path: str = "") -> None:
    """Show a file or a directory, or what lies below it, in a root. The place is made if need be, and not looked for through links."""
    about = f"{os.path.join(source, sub_path)} on {path}"
    with ExitStack() as opened:

        def held(descriptor: int) -> int:
            opened.callback(os.close, descriptor)
            return descriptor

        base = held(os.open(root, os.O_PATH | os.O_DIRECTORY))
        what = held(os.open(source, os.O_PATH))
        if sub_path:
            what = held(beneath.open_below(what, sub_path, follows=True))
        is_folder = stat.S_ISDIR(os.fstat(what).st_mode)
        if not is_folder:
            folder, name = place_of(base, path)
            held(folder)
            with suppress(FileExistsError):
                os.close(os.open(name, os.O_CREAT | os.O_EXCL, 0o644, dir_fd=folder))
        place = held(beneath.open_below(base, path, mode=0o755 if is_folder else None))
        mount(
            beneath.by_descriptor(what),
            beneath.by_descriptor(place),
            flags=MS_BIND | MS_REC,
            about=about,
        )
        if read_only:
            top = held(beneath.open_below(base, path))  # what has been mounted, not what it covers
            # What the mount below forbids cannot be allowed here, and has to be said again.
            kept = os.fstatvfs(top).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC)
            flags = MS_REMOUNT | MS_BIND | MS_RDONLY | kept
            mount("none", beneath.by_descriptor(top), flags=flags, about=about)


def place_of(root: int, path: str) -> tuple[int, str]:
    """The directory that a path of a root is in, which is made if need be, and its name there."""
    folder, name = os.path.split(path.rstrip("/"))
    return beneath.open_below(root, folder, mode=0o755), name


def private_mounts() -> bool:
    """From here on, mounts are this process's own business. Whether that took a user namespace."""
    is_user = False
    try:
        checked(libc.unshare(CLONE_NEWNS), "a mount namespace")
    except PermissionError:
        is_user = True
        user, group = os.geteuid(), os.getegid()
        checked(libc.unshare(CLONE_NEWNS | CLONE_NEWUSER), "a user and a mount namespace")
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    return is_user


def overlay(base: str, folder: str, target: str) -> None:
    """Show a directory in another place; what is changed there is kept in a folder."""
    upper, work = os.path.join(folder, "upper"), os.path.join(folder, "work")
    for each in (upper, work):
        os.makedirs(each, 0o755, exist_ok=True)
    layers = (("lowerdir", base), ("upperdir", upper), ("workdir", work))
    mount(
        "overlay",
        target,
        "overlay",
        MS_NODEV,
        data=",".join(f"{name}={escaped(path)}" for name, path in layers),
    )


def escaped(path: str) -> str:
    return "".join(f"\\{letter}" if letter in "\\:," else letter for letter in path)


def inside(base: str, path: str) -> str:
    """Where a path leads in another root, whose links lead nowhere else."""
    done, left, links = "", path.split("/"), 0
    while left:
        part = left.pop(0)
        full = f"{base}{done}/{part}"
        if part == "..":
            done = os.path.dirname(done).rstrip("/")
        elif part and part != "." and os.path.islink(full):
            links += 1
            if links > beneath.MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            target = os.readlink(full)
            done = "" if target.startswith("/") else done
            left = target.split("/") + left
        elif part and part != ".":
            done += f"/{part}"
    return done or "/"


def folders_to_open(base: str, paths: list[str]) -> set[str]:
    """The directories of a root that have to be put together anew because something is to be made in them."""
    found = {"/", "/dev"}
    for path in paths:
        parent = path
        while not os.path.lexists(base + parent):
            parent = os.path.dirname(parent)
            if not base and parent.startswith(KERNEL_TREES):
                raise OSError(errno.ENOENT, "only what is there can be covered by a mount", path)
            if os.path.lexists(base + parent):
                while parent not in found:
                    found.add(parent)
                    parent = os.path.dirname(parent)
    return found


def copy_folder(base: str, folder: str, root: str, opened: set[str]) -> None:
    """A directory of the host, or of an image, in the new root, entry by entry. Images are not changed."""
    for entry in os.scandir(base + folder):
        place = entry.path[len(base) :]
        target = root + place
        if place in opened and not entry.is_symlink():
            make_folder_like(entry, target)
            if place != "/dev":
                copy_folder(base, place, root, opened)
            continue
        with suppress(FileNotFoundError):  # others may remove theirs at any time
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), target)
            else:
                bind(entry.path, root, place, read_only=bool(base))


def make_folder_like(entry: os.DirEntry[str], target: str) -> None:
    """With its mode and owner, as far as an owner can be given: in a user namespace there is one user."""
    found = entry.stat()
    os.mkdir(target)
    with suppress(OSError):
        os.chown(target, found.st_uid, found.st_gid)
    os.chmod(target, stat.S_IMODE(found.st_mode))


def device_place(base: str, path: str) -> str:
    """Where a device is put: in a /dev that is made anew, whatever links the other one has, or where the path leads."""
    return path if path.startswith("/dev/") else inside(base, path)


def fill_devices(root: str, nodes: list[dict[str, Any]]) -> None:
    """A /dev with the usual devices and those of the container."""
    os.makedirs(f"{root}/dev", 0o755, exist_ok=True)
    for name in USUAL_DEVICES:
        if os.path.exists(f"/dev/{name}"):
            bind(f"/dev/{name}", root, f"/dev/{name}")
    # Terminals of its own: the host's multiplexer does not find them from another place.
    os.mkdir(f"{root}/dev/pts")
    options = "newinstance,ptmxmode=0666,mode=0620"
    mount("devpts", f"{root}/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, options)
    os.mkdir(f"{root}/dev/shm", 0o1777)
    mount("shm", f"{root}/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
    for name, target in DEVICE_LINKS.items():
        os.symlink(target, f"{root}/dev/{name}")
    for node in nodes:
        is_as_on_host = node["uid"] is None and node["gid"] is None
        if is_as_on_host and os.path.exists(node["host"]):
            bind(node["host"], root, node["path"])
        else:
            bind_new_device(root, node)


def bind_new_device(root: str, node: dict[str, Any]) -> None:
    """A device whose file is not on the host, or not like that. It is made where devices can be opened, and shown from there."""
    folder = os.path.join(os.path.dirname(root), "devices")
    os.makedirs(folder, 0o700, exist_ok=True)
    mount("devices", folder, "tmpfs", MS_NOSUID, "mode=700")
    try:
        kind = {"b": stat.S_IFBLK, "p": stat.S_IFIFO}.get(node["type"], stat.S_IFCHR)
        made = os.path.join(folder, "device")
        os.mknod(made, kind, os.makedev(node["major"], node["minor"]))
        os.chown(made, node["uid"] or 0, node["gid"] or 0)
        os.chmod(made, node["mode"])
        bind(made, root, node["path"])
    finally:
        unmount(folder, MNT_DETACH)


def hide(root: str, path: str) -> None:
    """Cover a directory or a file of a root with an empty one. Links lead nowhere, and what is not there needs no cover."""
    base = os.open(root, os.O_PATH | os.O_DIRECTORY)
    try:
        place = beneath.open_below(base, path)
        try:
            target = beneath.by_descriptor(place)
            if stat.S_ISDIR(os.fstat(place).st_mode):
                options = "mode=755,size=4k"
                flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC
                mount("hidden", target, "tmpfs", flags, options, about=f"what hides {path}")
            else:
                mount("/dev/null", target, flags=MS_BIND, about=f"what hides {path}")
        finally:
            os.close(place)
    except FileNotFoundError:
        pass
    finally:
        os.close(base)


def hide_below(root: str, hidden: list[str], source: str, path: str) -> None:
    """Cover what is hidden in a directory of the host that a root shows at a path."""
    start = "" if source == "/" else source
    for each in hidden:
        if each.startswith(f"{start}/"):
            hide(root, path.rstrip("/") + each[len(start) :])


def freeze_below(root: str, source: str, path: str) -> None:
    """Make the settings of the kernel read-only in a directory of the host that a root shows at a path."""
    start = "" if source == "/" else source
    for each in KERNEL_SETTINGS:
        if f"{each}/".startswith(f"{start}/"):
            freeze(root, path.rstrip("/") + each[len(start) :])
        elif start.startswith(f"{each}/"):
            freeze(root, path)


def freeze(root: str, path: str) -> None:
    """Make what a root shows there read-only. What is mounted below goes, and what is not there needs nothing."""
    with ExitStack() as opened:

        def found() -> str:
            place = beneath.open_below(base, path)
            opened.callback(os.close, place)
            return beneath.by_descriptor(place)

        base = os.open(root, os.O_PATH | os.O_DIRECTORY)
        opened.callback(os.close, base)
        with suppress(FileNotFoundError):
            place = found()
            mount(place, place, flags=MS_BIND, about=path)
            kept = os.statvfs(found()).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC)
            flags = MS_REMOUNT | MS_BIND | MS_RDONLY | kept
            mount("none", found(), flags=flags, about=path)


def leave_host(root: str) -> None:
    """Make a root the only one of this process and its mount namespace, so that no way leads out of it."""
    os.chdir(root)
    try:
        checked(libc.pivot_root(b".", b"."), "leaving the host's root")
    except OSError as error:
        # Otherwise the host's root is an initial file system, which cannot be left.
        if error.errno != errno.EINVAL:
            raise
        os.chroot(".")
    else:
        unmount(".", MNT_DETACH)
    os.chdir("/")


def landlock_version() -> int:
    """What the kernel has of Landlock; less than 1 for nothing."""
    return int(libc.syscall(LANDLOCK_CREATE, None, ctypes.c_size_t(0), LANDLOCK_VERSION))


def seal() -> None:
    """Give up, for this process and all that it becomes or starts, what could reveal what is hidden. Raises OSError."""
    handled = (ctypes.c_uint64 * 1)(LANDLOCK_MAKE_BLOCK | LANDLOCK_REFER)
    size = ctypes.c_size_t(ctypes.sizeof(handled))
    rules = libc.syscall(LANDLOCK_CREATE, handled, size, 0)
    checked(rules, "a Landlock domain")
    try:
        top = os.open("/", os.O_PATH | os.O_DIRECTORY)
        try:
            # Without this rule, nothing could be moved from one directory to another.
            rule = struct.pack("=Qi", LANDLOCK_REFER, top)
            checked(
                libc.syscall(LANDLOCK_ADD, rules, LANDLOCK_PATH_BENEATH, rule, 0),
                "a rule of a Landlock domain",
            )
        finally:
            os.close(top)
        checked(libc.syscall(LANDLOCK_RESTRICT, rules, 0), "entering a Landlock domain")
    finally:
        os.close(rules)
    for name, number in REVEALING_CAPABILITIES.items():
        # EINVAL: the kernel does not have this capability.
        if libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0) < 0 and ctypes.get_errno() != errno.EINVAL:
            checked(-1, f"giving up the capability {name}")


def can_hide() -> bool:
    """Whether what is hidden stays hidden. Asked in a mount namespace of its own, which cannot be used for anything else then."""
    mount("root", "/proc", "tmpfs")
    try:
        os.chdir("/proc")
        checked(libc.pivot_root(b".", b"."), "leaving the host's root")
    except OSError:
        return False
    return os.geteuid() != 0 or landlock_version() >= LANDLOCK_NEEDED


def enter_own_root(root: str, start: dict[str, Any]) -> None:
    """Build the root of a container and live there."""
    is_user = private_mounts()
    # Without root, no process can change them.
    is_frozen = start["is_sealed"] and not is_user
    base = start["image_root"]
    shown = list(start["binds"])
    if base:
        shared = [(path, path, True, "") for path in HOST_FILES if os.path.exists(path)]
        shown = [("/proc", "/proc", False, ""), ("/sys", "/sys", True, ""), *shared, *shown]
    binds = [(source, inside(base, path), *how) for source, path, *how in shown]
    nodes = [{**node, "path": device_place(base, node["path"])} for node in start["devices"]]
    if base and start["is_writable"]:
        overlay(base, os.path.dirname(root), root)
        os.makedirs(f"{root}/dev", 0o755, exist_ok=True)
        mount("dev", f"{root}/dev", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    else:
        mount("root", root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
        places = [*(path for _, path, *_ in binds), *(node["path"] for node in nodes)]
        opened = folders_to_open(base, places)
        copy_folder(base, "/", root, opened)
    hidden = start["hidden"]
    hide_below(root, hidden, os.path.realpath(base) if base else "/", "/")
    if is_frozen and not base:
        freeze_below(root, "/", "/")
    fill_devices(root, nodes)
    for source, path, read_only, sub_path in binds:
        bind(source, root, path, read_only, sub_path)
        shown_there = os.path.realpath(os.path.join(source, sub_path))
        hide_below(root, hidden, shown_there, path)
        if is_frozen:
            freeze_below(root, shown_there, path)
    if base and not start["is_writable"]:
        mount("none", root, flags=MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    leave_host(root)
