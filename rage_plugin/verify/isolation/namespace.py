"""The program that enters new namespaces, builds the view and becomes the parent of a check.

Separate because it runs as a process of its own (`python -I -S namespace.py CONFIG REPORT`, two
file descriptors) and must start fast: it imports the standard library only and nothing of RAGE.
`overlay.py` writes CONFIG and reads REPORT, one JSON object a line.

Order: namespaces, a tmpfs, an overlay over each folder whose writes are to vanish, what must stay
reachable bound back, the delta placed, a process namespace, `prepare`, the check. Nothing of it is
seen outside, and the kernel takes all of it down with the last process.
"""

from __future__ import annotations

# pathlib would cost a third of the start; the check is an argv by design.
# ruff: noqa: PTH101, PTH102, PTH106, PTH108, PTH112, PTH114, PTH115, PTH116, PTH120, PTH123
# ruff: noqa: PTH208, PTH211, S606
import ctypes
import json
import os
import signal
import stat
import sys
from collections.abc import Callable
from functools import partial

NEWNS, NEWUSER, NEWPID = 0x00020000, 0x10000000, 0x20000000
MS_BIND, MS_REC, MS_PRIVATE, MS_NOSUID, MS_NODEV, MS_NOEXEC = 4096, 16384, 1 << 18, 2, 4, 8
MNT_DETACH = 2
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

_libc = ctypes.CDLL(None, use_errno=True)


class Config(dict[str, object]):
    """CONFIG as a mapping, read through two typed accessors."""

    def text(self, key: str) -> str:
        return str(self[key])

    def texts(self, key: str) -> list[str]:
        value = self[key]
        return [str(v) for v in value] if isinstance(value, list) else []


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """unshare(2)."""
    _check(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """mount(2); empty strings are null pointers."""
    args = [os.fsencode(text) if text else None for text in (source, target, kind)]
    _check(
        _libc.mount(*args, ctypes.c_ulong(flags), os.fsencode(data) if data else None),
        f"mount {kind or 'bind'} on {target}",
    )


def die_with_parent() -> None:
    """Be killed when the parent dies."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


# --- users -------------------------------------------------------------------------------------


def new_users(flags: int = 0) -> None:
    """A new user namespace in which everybody keeps the id he has outside.

    A helper forked before writes the maps where it may map all ids (root); otherwise the process
    itself maps its own id alone, which everybody may.
    """
    uid, gid = os.getuid(), os.getgid()
    whole = {kind: _identity(f"/proc/self/{kind}_map") for kind in ("uid", "gid")}
    me = os.getpid()
    ready, done = os.pipe(), os.pipe()
    helper = os.fork()
    if helper == 0:
        os.read(ready[0], 1)
        try:
            for kind, text in whole.items():
                _write(f"/proc/{me}/{kind}_map", text)
                os.write(done[1], kind[:1].encode())
        finally:
            os._exit(0)
    os.close(done[1])
    try:
        unshare(NEWUSER | flags)
    finally:
        os.write(ready[1], b"x")
        os.waitpid(helper, 0)
    mapped = os.read(done[0], 2)
    for fd in (*ready, done[0]):
        os.close(fd)
    if b"u" not in mapped:
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
    if b"g" not in mapped:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")


def _identity(path: str) -> str:
    with open(path) as file:
        ranges = [line.split() for line in file]
    return "".join(f"{inside} {inside} {count}\n" for inside, _, count in ranges)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


# --- mounts ------------------------------------------------------------------------------------


def enter_mounts() -> None:
    """A new mount namespace in which this process may mount."""
    try:
        # Real root mounts without a user namespace: there, submounts are not locked.
        if os.geteuid() != 0:
            raise PermissionError
        unshare(NEWNS)
    except OSError:
        new_users(NEWNS)
    mount("", "/", flags=MS_REC | MS_PRIVATE)


def build_view(config: Config) -> None:
    """Mount an overlay over each folder and bind back what must stay as it is."""
    spool = config.text("spool")
    covered = config.texts("overlays")
    kept = _inside(covered, [*_mount_points(), *config.texts("keep")])
    mount("tmpfs", spool, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700")
    # Everything below is relative to here, so that no path needs the escapes of mount options.
    os.chdir(spool)
    root, optional = config.text("root"), set(config.texts("optional"))
    steps: list[tuple[str, Callable[[], None]]] = []
    for number, path in enumerate(covered):
        for part in ("lower", "upper", "work"):
            os.mkdir(f"{part}{number}")
        try:
            mount(path, f"lower{number}", flags=MS_BIND)
            _copy_mode(path, f"upper{number}")
        except OSError:
            if path in optional:
                continue
            raise
        steps.append((path, partial(_overlay, path, number, path in optional)))
    for number, path in enumerate(kept):
        if os.path.isdir(path):
            os.mkdir(f"kept{number}")
        else:
            os.close(os.open(f"kept{number}", os.O_CREAT | os.O_WRONLY))
        mount(path, f"kept{number}", flags=MS_BIND | MS_REC)
        steps.append((path, partial(mount, f"kept{number}", path, flags=MS_BIND | MS_REC)))
    os.mkdir("stage")
    mount(config.text("stage"), "stage", flags=MS_BIND)
    # From the outside in: a folder inside another one is mounted on top of it.
    for _, step in sorted(steps, key=lambda pair: pair[0].count("/") if pair[0] != "/" else 0):
        step()
    place(root, config.texts("removed"), config.texts("placed"))
    # The overlays hold what they need; without a path nobody reaches the lower folders.
    _check(_libc.umount2(b".", MNT_DETACH), "umount")
    if not os.path.isdir(config.text("cwd")):
        raise NotADirectoryError(f"there is no folder {config.text('cwd')} in this tree")
    os.chdir(root)


def _overlay(path: str, number: int, optional: bool) -> None:
    layers = f"lowerdir=lower{number},upperdir=upper{number},workdir=work{number}"
    try:
        mount("overlay", path, "overlay", 0, f"{layers},userxattr")
    except OSError:
        if not optional:
            raise


def _copy_mode(path: str, to: str) -> None:
    info = os.stat(path)
    os.chmod(to, stat.S_IMODE(info.st_mode))
    os.chown(to, info.st_uid, info.st_gid)


def _mount_points() -> list[str]:
    """Every mount point: inside an overlay only the bare folder below it would be seen."""
    found = []
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            point = line.split(b" ")[4]
            for octal in (b"040", b"011", b"012", b"134"):
                point = point.replace(b"\\" + octal, bytes([int(octal, 8)]))
            found.append(os.fsdecode(point))
    return found


def _inside(folders: list[str], paths: list[str]) -> list[str]:
    """The paths that lie inside one of the folders and are none of them."""
    below = tuple(f"{folder}/" for folder in folders)
    return sorted({p for p in paths if p.startswith(below) and p not in folders})


# --- files -------------------------------------------------------------------------------------


def place(root: str, removed: list[str], placed: list[str]) -> None:
    """Take away and copy in, inside the overlay; empty folders go as git would let them go."""
    for path in removed:
        _remove(f"{root}/{path.rstrip('/')}", deep=path.endswith("/"))
        parent = os.path.dirname(path.rstrip("/"))
        while parent and _empty(f"{root}/{parent}"):
            os.rmdir(f"{root}/{parent}")
            parent = os.path.dirname(parent)
    for path in placed:
        folder = root
        for part in path.split("/")[:-1]:
            folder = f"{folder}/{part}"
            if not os.path.isdir(folder) or os.path.islink(folder):
                _remove(folder, deep=True)
                os.mkdir(folder)
        _remove(f"{root}/{path}", deep=True)
        _copy(f"stage/{path}", f"{root}/{path}")


def _empty(folder: str) -> bool:
    return os.path.isdir(folder) and not os.path.islink(folder) and not os.listdir(folder)


def _remove(path: str, *, deep: bool) -> None:
    if not os.path.lexists(path):
        return
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
    elif deep:
        for name in os.listdir(path):
            _remove(f"{path}/{name}", deep=True)
        os.rmdir(path)


def _copy(source: str, target: str) -> None:
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
        return
    mode = stat.S_IMODE(os.stat(source).st_mode)
    reader = os.open(source, os.O_RDONLY)
    writer = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    while chunk := os.read(reader, 1 << 20):
        os.write(writer, chunk)
    os.fchmod(writer, mode)
    os.close(reader)
    os.close(writer)


# --- processes ---------------------------------------------------------------------------------


def supervise(config: Config, report: int) -> None:
    """Run `prepare` and the check, alone with their children; report how they ended."""
    # Once in a process namespace there is no way back, so it is tried in a child.
    for alone in (True, False):
        child = os.fork()
        if child == 0:
            die_with_parent()
            try:
                _supervise(config, report, alone=alone)
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFEXITED(status) or os.WEXITSTATUS(status) != 77:
            return


def _supervise(config: Config, report: int, *, alone: bool) -> None:
    if not alone:
        _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _run_both(config, report)
        _kill_children()
        return
    try:
        unshare(NEWPID)
    except OSError:
        os._exit(77)
    init = os.fork()
    if init == 0:
        die_with_parent()
        try:
            # Without a /proc of its own, a process would find strangers under its own number.
            mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        except OSError:
            os._exit(77)
        try:
            _run_both(config, report)
        finally:
            os._exit(0)
    _, status = os.waitpid(init, 0)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0)


def _run_both(config: Config, report: int) -> None:
    prepare = config.texts("prepare")
    if prepare:
        status = _spawn(prepare, config, report)
        if status != 0:
            tell(report, prepare=_ended(status))
            return
    tell(report, **_ended(_spawn(config.texts("argv"), config, report)))


def _spawn(argv: list[str], config: Config, report: int) -> int:
    """Fork, drop what rights are left, execute; the wait status, orphans reaped meanwhile."""
    child = os.fork()
    if child == 0:
        try:
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            if os.geteuid() == 0:
                # Root of an inner namespace cannot unmount what the outer one mounted.
                new_users()
            os.chdir(config.text("cwd"))
            environment = config["env"]
            os.set_inheritable(report, False)
            os.execvpe(argv[0], argv, environment if isinstance(environment, dict) else {})
        except (OSError, ValueError) as error:
            tell(report, failed=f"{argv[0]} could not be started: {reason(error)}")
        finally:
            os._exit(127)
    while True:
        pid, status = os.wait()
        if pid == child:
            return status


def _ended(status: int) -> dict[str, int]:
    if os.WIFSIGNALED(status):
        return {"signal": os.WTERMSIG(status)}
    return {"exit": os.WEXITSTATUS(status)}


def _kill_children() -> None:
    """Kill what was orphaned to this process until nothing is left."""
    me = str(os.getpid())
    while True:
        children = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat") as file:
                    if file.read().rsplit(")", 1)[1].split()[1] == me:
                        children.append(int(name))
            except OSError:
                continue
        if not children:
            return
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def tell(report: int, **fact: object) -> None:
    """Write one line to whoever waits outside."""
    os.write(report, (json.dumps(fact) + "\n").encode())


def reason(error: Exception) -> str:
    """An error's own words, without the names that Python adds."""
    return getattr(error, "strerror", None) or str(error)


def main() -> None:
    """Build and run; what fails before the check is reported as `broken`."""
    die_with_parent()
    source, report = int(sys.argv[1]), int(sys.argv[2])
    with os.fdopen(source, "rb") as file:
        config = Config(json.load(file))
    try:
        enter_mounts()
        die_with_parent()  # new rights may have cleared it
        if os.getppid() != config["parent"]:
            return  # the parent died before it could be watched
        build_view(config)
    except OSError as error:
        tell(report, broken=reason(error))
        return
    supervise(config, report)


if __name__ == "__main__":
    main()
