"""System calls that Python 3.11 does not have: namespaces, mounts, and the death of a parent."""

import ctypes
import os
import signal
from enum import IntFlag


class Namespaces(IntFlag):
    MOUNT = 0x00020000
    CGROUP = 0x02000000
    UTS = 0x04000000
    IPC = 0x08000000
    PID = 0x20000000
    NETWORK = 0x40000000


class Mount(IntFlag):
    NONE = 0
    READ_ONLY = 1
    REMOUNT = 1 << 5
    BIND = 1 << 12
    RECURSIVE = 1 << 14
    PRIVATE = 1 << 18
    SHARED = 1 << 20


_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def unshare(namespaces: Namespaces) -> None:
    """Leave the namespaces of these kinds for new ones; that of pids is the children's."""
    _call("unshare", int(namespaces))


def enter(namespace: int) -> None:
    """Enter the namespace of an open file."""
    _call("setns", namespace, 0)


def mount(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    kind: str = "",
    flags: Mount = Mount.NONE,
    options: str = "",
) -> None:
    texts = [os.fsencode(text) for text in (source, target, kind)]
    _call("mount", *texts, ctypes.c_ulong(flags), os.fsencode(options), about=os.fspath(target))


def die_with_parent() -> None:
    _call("prctl", _PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))


def _call(name: str, *arguments: object, about: str | None = None) -> None:
    if getattr(_LIBC, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}", about)
