"""Where a worker listens, and how a client dials it.

A private ipc socket, loopback, or beyond it with CURVE keys.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import os
import shutil
import socket as stdlib_socket
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import zmq
from zmq.auth.thread import ThreadAuthenticator

from .. import protocol
from ..errors import LinkError
from .keys import secure_client, secure_server
from .stale import remove_stale

MAX_IPC_PATH = 107  # bytes: sockaddr_un without its final zero
SOCKET_NAME = "plait.sock"
_PREFIX = "plait-"
LINGER_MS = 500
SEND_HWM = 256  # messages to one client inside libzmq; the worker queues the rest itself
RECEIVE_HWM = 8192
HEARTBEAT_INTERVAL_MS = 500
HEARTBEAT_TIMEOUT_MS = 2500


@dataclass(slots=True)
class Listener:
    """A bound ROUTER and all that must be undone when it stops. The worker owns it."""

    endpoint: str
    socket: zmq.Socket[bytes]
    _undo: contextlib.ExitStack = field(repr=False)

    def close(self) -> None:
        """Close the socket and remove its files. Idempotent; bounded by LINGER_MS."""
        self._undo.close()


def private_folder() -> Path:
    """Make a folder that only this user can enter, short enough for an ipc path.

    Those that killed workers have left beside it are removed.
    """
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    if len(os.fsencode(folder / SOCKET_NAME)) > MAX_IPC_PATH:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp"))
    remove_stale(folder.parent, _PREFIX, f"{SOCKET_NAME}.lock")
    return folder


def listen(endpoint: str | None, keys: Path | None = None) -> Listener:
    """Bind a worker's socket: `ipc://PATH`, `tcp://HOST:PORT`, or None for a private ipc.

    A socket file whose owner is gone is replaced. Raises: LinkError, if the endpoint is in
    use, is not allowed or cannot be bound.
    """
    with contextlib.ExitStack() as undo:
        if endpoint is None:
            folder = private_folder()
            undo.callback(shutil.rmtree, folder, ignore_errors=True)
            endpoint = f"ipc://{folder / SOCKET_NAME}"
        _check_keys(endpoint, keys)
        kind, _, address = endpoint.partition("://")
        if kind == "ipc":
            socket = _bind_ipc(Path(address), undo)
        elif kind == "tcp":
            socket = _bind_tcp(address, keys, undo)
        else:
            raise LinkError(f"{endpoint}: write ipc://PATH or tcp://HOST:PORT")
        bound = socket.getsockopt(zmq.LAST_ENDPOINT)
        assert isinstance(bound, bytes)
        return Listener(bound.rstrip(b"\0").decode(), socket, undo.pop_all())


def dial(
    context: zmq.Context[zmq.Socket[bytes]], endpoint: str, keys: Path | None
) -> zmq.Socket[bytes]:
    """Connect a client's DEALER; whether someone answers shows later. Raises: LinkError."""
    _check_keys(endpoint, keys)
    socket = context.socket(zmq.DEALER)
    try:
        _set_common(socket)
        socket.setsockopt(zmq.RCVHWM, 0)  # credits bound what may come
        socket.setsockopt(zmq.RECONNECT_IVL, 50)
        if endpoint.startswith("tcp://["):
            socket.setsockopt(zmq.IPV6, 1)
        if keys is not None:
            secure_client(socket, keys)
        socket.connect(endpoint)
    except (zmq.ZMQError, LinkError) as error:
        socket.close(linger=0)
        if isinstance(error, LinkError):
            raise
        raise LinkError(
            f"{endpoint}: cannot connect ({error}); write ipc://PATH or tcp://HOST:PORT"
        ) from error
    return socket


def _check_keys(endpoint: str, keys: Path | None) -> None:
    if keys is not None and endpoint.startswith("ipc://"):
        raise LinkError(
            f"{endpoint}: an ipc socket takes no keys, its folder is this user's alone; "
            "leave --keys out, or use tcp://HOST:PORT"
        )


def is_loopback(host: str) -> bool:
    """True if `host` can be reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _router(undo: contextlib.ExitStack) -> zmq.Socket[bytes]:
    context = zmq.Context()
    undo.callback(context.term)
    socket = context.socket(zmq.ROUTER)
    undo.callback(socket.close, linger=LINGER_MS)
    socket.setsockopt(zmq.ROUTER_MANDATORY, 1)  # an error in place of a silent drop
    socket.setsockopt(zmq.RCVHWM, RECEIVE_HWM)
    _set_common(socket)
    return socket


def _set_common(socket: zmq.Socket[bytes]) -> None:
    socket.setsockopt(zmq.SNDHWM, SEND_HWM)
    socket.setsockopt(zmq.MAXMSGSIZE, protocol.MAX_FRAME_BYTES)
    socket.setsockopt(zmq.LINGER, LINGER_MS)
    # libzmq's own threads answer these, so a peer that is busy in Python stays alive.
    socket.setsockopt(zmq.HEARTBEAT_IVL, HEARTBEAT_INTERVAL_MS)
    socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT_MS)


def _bind_ipc(path: Path, undo: contextlib.ExitStack) -> zmq.Socket[bytes]:
    if not path.is_absolute():
        raise LinkError(f"ipc://{path}: give an absolute path to a file, such as ipc:///run/x.sock")
    if len(os.fsencode(path)) > MAX_IPC_PATH:
        raise LinkError(f"ipc://{path}: longer than {MAX_IPC_PATH} bytes; choose a shorter path")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Before the socket, so undone after it: closing it makes libzmq remove the file.
        _lock(path, undo)
        _check_unused(path)
        undo.callback(path.unlink, missing_ok=True)
        socket = _router(undo)
        before = os.umask(0o177)  # only this user may connect, from the first moment on
        try:
            socket.bind(f"ipc://{path}")
        finally:
            os.umask(before)
    except (OSError, zmq.ZMQError) as error:
        raise LinkError(f"ipc://{path}: cannot listen there ({error})") from error
    return socket


def _lock(path: Path, undo: contextlib.ExitStack) -> None:
    """Hold the path for the life of this process: libzmq would take it from a live worker."""
    lock = path.with_name(path.name + ".lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    undo.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_ours = os.fstat(descriptor).st_ino == lock.stat().st_ino
    except OSError:  # held by another, or removed by one that is just stopping
        is_ours = False
    if not is_ours:
        raise _in_use(f"ipc://{path}")
    undo.callback(lock.unlink, missing_ok=True)


def _check_unused(path: Path) -> None:
    if not path.exists():
        return
    if not path.is_socket():
        raise LinkError(f"ipc://{path}: a file that is not a socket is there; choose another path")
    with stdlib_socket.socket(stdlib_socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:  # its owner is gone
            path.unlink()
            return
    raise _in_use(f"ipc://{path}")


def _bind_tcp(address: str, keys: Path | None, undo: contextlib.ExitStack) -> zmq.Socket[bytes]:
    endpoint = f"tcp://{address}"
    host, _, port = address.rpartition(":")
    if not host or not (port == "*" or (port.isdecimal() and int(port) < 65_536)):
        raise LinkError(f"{endpoint}: write tcp://HOST:PORT, such as tcp://127.0.0.1:5757")
    if keys is None and not is_loopback(host):
        raise LinkError(
            f"{endpoint}: beyond loopback only with CURVE keys; pass --keys FOLDER, "
            "or listen on 127.0.0.1 or an ipc path"
        )
    socket = _router(undo)
    if host.startswith("["):
        socket.setsockopt(zmq.IPV6, 1)
    if keys is not None:
        authenticator: ThreadAuthenticator = secure_server(socket, keys)
        undo.callback(_stop_authenticator, authenticator, socket)
    try:
        socket.bind(f"tcp://{host}:*" if port == "0" else endpoint)
    except zmq.ZMQError as error:
        if error.errno == zmq.EADDRINUSE:
            raise _in_use(endpoint) from error
        raise LinkError(f"{endpoint}: cannot listen there ({error})") from error
    return socket


def _stop_authenticator(authenticator: ThreadAuthenticator, socket: zmq.Socket[bytes]) -> None:
    socket.close(linger=LINGER_MS)
    authenticator.stop()


def _in_use(endpoint: str) -> LinkError:
    return LinkError(
        f"{endpoint} is in use by another process; stop it, or choose another --listen"
    )
