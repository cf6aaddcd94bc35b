"""Where a worker may listen, and what it finds there."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from plait.runtime.errors import LinkError
from plait.runtime.serve import endpoint
from plait.runtime.serve.endpoint import is_loopback, listen
from plait.runtime.serve.keys import create_keys
from plait.runtime.serve.link import Link

from .fakes import Recorder, running_worker


def test_a_private_endpoint_is_unique_and_removed() -> None:
    one, two = listen(None), listen(None)
    assert one.endpoint != two.endpoint
    folder = Path(one.endpoint.removeprefix("ipc://")).parent
    assert folder.is_dir()
    one.close()
    one.close()
    two.close()
    assert not folder.exists()


def test_a_path_in_use_is_refused_by_name(tmp_path: Path) -> None:
    path = f"ipc://{tmp_path}/x.sock"
    first = listen(path)
    with pytest.raises(LinkError, match=r"x\.sock is in use"):
        listen(path)
    first.close()
    listen(path).close()
    assert list(tmp_path.iterdir()) == []


def test_a_path_in_use_by_another_program_is_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "x.sock"))
        other.listen()
        with pytest.raises(LinkError, match="in use"):
            listen(f"ipc://{tmp_path}/x.sock")
    assert (tmp_path / "x.sock").exists()


def test_a_stale_socket_file_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "x.sock"))
    listen(f"ipc://{tmp_path}/x.sock").close()


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "x.sock").write_text("a letter")
    with pytest.raises(LinkError, match="not a socket"):
        listen(f"ipc://{tmp_path}/x.sock")
    assert (tmp_path / "x.sock").read_text() == "a letter"


def test_a_socket_anywhere_is_open_to_this_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        listener = listen(f"ipc://{tmp_path}/new/x.sock")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "new" / "x.sock").stat().st_mode) == 0o600
    listener.close()


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("ipc://relative.sock", "absolute"),
        ("ipc://@abstract", "absolute"),
        ("ipc://*", "absolute"),
        (f"ipc:///tmp/{'x' * 120}", "107 bytes"),
        ("tcp://127.0.0.1", "HOST:PORT"),
        ("tcp://0.0.0.0:5757", "CURVE"),
        ("tcp://*:5757", "CURVE"),
        ("tcp://example.com:5757", "CURVE"),
        ("tcp://[::]:5757", "CURVE"),
        ("udp://127.0.0.1:5757", "ipc://PATH or tcp://HOST:PORT"),
        ("", "ipc://PATH or tcp://HOST:PORT"),
        ("tcp://127.0.0.1:99999", "HOST:PORT"),
        ("tcp://192.0.2.1:5757", "CURVE"),
    ],
)
def test_an_endpoint_that_may_not_be_is_refused_with_the_reason(where: str, reason: str) -> None:
    with pytest.raises(LinkError, match=reason):
        listen(where)


def test_a_port_in_use_is_refused_by_name() -> None:
    first = listen("tcp://127.0.0.1:0")
    with pytest.raises(LinkError, match=f"{first.endpoint} is in use"):
        listen(first.endpoint)
    first.close()


@pytest.mark.parametrize(
    ("host", "expected"),
    [("localhost", True), ("127.0.0.2", True), ("[::1]", True), ("0.0.0.0", False), ("*", False)],
)
def test_loopback_is_known(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_a_long_temporary_folder_falls_back_to_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    folder = endpoint.private_folder()
    assert len(str(folder / endpoint.SOCKET_NAME)) <= endpoint.MAX_IPC_PATH
    folder.rmdir()


def test_a_client_with_an_admitted_key_is_served_over_curve(tmp_path: Path) -> None:
    create_keys(tmp_path)
    with running_worker("tcp://127.0.0.1:0", keys=tmp_path / "server") as worker:
        link = Link(worker.endpoint, keys=tmp_path / "client")
        link.connect(5)
        heard = Recorder()
        link.submit(link.open(b"", heard), 0, b"secret")
        heard.wait(1)
        link.close()


def test_one_folder_of_keys_serves_both_sides(tmp_path: Path) -> None:
    create_keys(tmp_path)
    with running_worker("tcp://127.0.0.1:0", keys=tmp_path) as worker:
        link = Link(worker.endpoint, keys=tmp_path)
        link.connect(5)
        link.close()


def test_keys_are_this_users_alone_and_are_not_replaced(tmp_path: Path) -> None:
    create_keys(tmp_path / "keys")
    files = [path for path in (tmp_path / "keys").rglob("*") if path.is_file()]
    assert len(files) == 4
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    folders = [path for path in (tmp_path / "keys").rglob("*") if path.is_dir()]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    before = {path: path.read_bytes() for path in files}
    with pytest.raises(LinkError, match="exists already"):
        create_keys(tmp_path / "keys")
    assert before == {path: path.read_bytes() for path in files}


def test_keys_for_an_ipc_socket_are_refused_not_dropped(tmp_path: Path) -> None:
    create_keys(tmp_path)
    with pytest.raises(LinkError, match="takes no keys"):
        listen(None, keys=tmp_path)
    with pytest.raises(LinkError, match="takes no keys"):
        Link(f"ipc://{tmp_path}/x.sock", keys=tmp_path)


def test_a_client_without_an_admitted_key_is_not_served(tmp_path: Path) -> None:
    create_keys(tmp_path / "ours")
    create_keys(tmp_path / "theirs")
    stranger = tmp_path / "theirs" / "client"
    (stranger / "server.key").write_bytes((tmp_path / "ours/client/server.key").read_bytes())
    with running_worker("tcp://127.0.0.1:0", keys=tmp_path / "ours" / "server") as worker:
        for keys in (stranger, None):
            with pytest.raises(LinkError, match="no plait runtime answers"):
                Link(worker.endpoint, keys=keys).connect(0.5)
        assert not worker.worker.counts


def test_keys_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(LinkError, match=r"server\.key_secret"):
        listen("tcp://127.0.0.1:0", keys=tmp_path)
    with pytest.raises(LinkError, match=r"client\.key_secret"):
        Link("tcp://127.0.0.1:1", keys=tmp_path)


def test_a_server_that_admits_nobody_is_refused(tmp_path: Path) -> None:
    create_keys(tmp_path)
    (tmp_path / "server" / "clients" / "client.key").unlink()
    with pytest.raises(LinkError, match="nobody could connect"):
        listen("tcp://127.0.0.1:0", keys=tmp_path / "server")
