"""CURVE keys: who may use a worker beyond loopback, and how a client knows the worker.

    FOLDER/server/server.key_secret      the worker's pair
    FOLDER/server/clients/NAME.key       public keys of the clients it admits
    FOLDER/client/server.key             the worker's public key
    FOLDER/client/client.key_secret      the client's own pair

`plait keys FOLDER` writes both. Each side is given FOLDER, or its own half of it alone:
`plait serve --keys FOLDER`; on the client's machine `plait run --keys FOLDER/client`.
"""

from __future__ import annotations

from pathlib import Path

import zmq
import zmq.auth
from zmq.auth.thread import ThreadAuthenticator

from ..errors import LinkError


def create_keys(folder: Path) -> None:
    """Write a new pair for a worker and one for a client, in the layout above.

    Only this user can read them. Raises: LinkError, if there are keys or if they cannot be
    written.
    """
    server, client = folder / "server", folder / "client"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in (server, server / "clients", client):
            path.mkdir(mode=0o700)  # before the files: nobody else may look into it
        zmq.auth.create_certificates(server, "server")
        zmq.auth.create_certificates(client, "client")
        (server / "server.key").rename(client / "server.key")
        (client / "client.key").rename(server / "clients" / "client.key")
        for path in (*server.rglob("*.key*"), *client.iterdir()):
            path.chmod(0o600)
    except FileExistsError as error:
        raise LinkError(
            f"{error.filename}: it exists already; keys are not replaced: choose another folder"
        ) from error
    except OSError as error:
        raise LinkError(f"{folder}: cannot write keys there ({error})") from error


def secure_server(socket: zmq.Socket[bytes], folder: Path) -> ThreadAuthenticator:
    """Make `socket` a CURVE server that admits the clients in `folder`; call before bind.

    The caller stops the authenticator once the socket is closed. Raises: LinkError.
    """
    folder = _half(folder, "server")
    public, secret = _load(folder / "server.key_secret")
    clients = folder / "clients"
    if not list(clients.glob("*.key")):
        raise LinkError(f"{clients}: no client's public key (*.key) in it, nobody could connect")
    authenticator = ThreadAuthenticator(socket.context)
    authenticator.start()
    authenticator.configure_curve(domain="plait", location=str(clients))
    socket.curve_publickey, socket.curve_secretkey = public, secret
    socket.curve_server = True
    socket.zap_domain = b"plait"
    return authenticator


def secure_client(socket: zmq.Socket[bytes], folder: Path) -> None:
    """Make `socket` a CURVE client of the worker named in `folder`. Raises: LinkError."""
    folder = _half(folder, "client")
    socket.curve_publickey, socket.curve_secretkey = _load(folder / "client.key_secret")
    socket.curve_serverkey = _load(folder / "server.key", is_secret=False)[0]


def _half(folder: Path, side: str) -> Path:
    return folder / side if (folder / side).is_dir() else folder


def _load(path: Path, *, is_secret: bool = True) -> tuple[bytes, bytes]:
    try:
        public, secret = zmq.auth.load_certificate(path)
    except (OSError, ValueError) as error:
        raise LinkError(
            f"{path}: not a CURVE key ({error}); `plait keys FOLDER` makes a folder of keys"
        ) from error
    if is_secret and secret is None:
        raise LinkError(f"{path}: it has no secret key")
    return public, secret or b""
