"""A client's link and a worker, over a service that echoes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from plait.runtime.errors import LinkError
from plait.runtime.serve.endpoint import private_folder
from plait.runtime.serve.limits import WorkerLimits
from plait.runtime.serve.link import Link

from .fakes import Recorder, RunningWorker, running_worker


@pytest.fixture
def worker() -> Iterator[RunningWorker]:
    with running_worker() as running:
        yield running


@pytest.fixture
def link(worker: RunningWorker) -> Iterator[Link]:
    link = Link(worker.endpoint)
    link.connect(5)
    yield link
    link.close()


def test_answers_come_back_in_order(link: Link) -> None:
    heard = Recorder()
    session = link.open(b"", heard)
    for seq in range(100):
        link.submit(session, seq, b"%d" % seq)
    heard.wait(100)
    assert heard.payloads == [b"%d" % seq for seq in range(100)]


def test_the_welcome_carries_the_services_description(link: Link) -> None:
    assert link.description == b"echo"


def test_a_bad_segment_is_refused_and_the_session_goes_on(link: Link) -> None:
    heard = Recorder()
    session = link.open(b"", heard)
    link.submit(session, 0, b"bad")
    link.submit(session, 1, b"good")
    heard.wait(1, refused=1)
    assert heard.refused == [(0, "invalid_request", "bad payload")]
    assert heard.payloads == [b"good"]


def test_a_bad_session_is_refused_and_the_others_go_on(link: Link) -> None:
    bad, good = Recorder(), Recorder()
    link.submit(link.open(b"bad", bad), 0, b"x")
    link.submit(link.open(b"", good), 0, b"x")
    bad.wait(refused=1)
    good.wait(1)
    assert bad.refused[0][:2] == (None, "invalid_request")


def test_a_service_that_breaks_ends_that_session_alone(
    link: Link, caplog: pytest.LogCaptureFixture
) -> None:
    broken, good = Recorder(), Recorder()
    link.submit(link.open(b"", broken), 0, b"crash")
    link.submit(link.open(b"", good), 0, b"x")
    broken.wait(refused=1)
    good.wait(1)
    assert broken.refused[0][:2] == (None, "internal")
    assert "ZeroDivisionError" in broken.refused[0][2]


def test_twenty_thousand_segments_are_answered_exactly_once(link: Link) -> None:
    heard = Recorder()
    for i in range(20_000):
        link.submit(link.open(b"", heard), 0, b"%d" % i)
    heard.wait(20_000)
    assert sorted(map(int, heard.payloads)) == list(range(20_000))


def test_segments_wait_in_the_client_until_there_is_credit() -> None:
    with running_worker(limits=WorkerLimits(credits=3)) as worker:
        link = Link(worker.endpoint)
        link.connect(5)
        heard = Recorder()
        session = link.open(b"", heard)
        for seq in range(3):
            link.submit(session, seq, b"hold")
        for seq in range(3, 50):
            link.submit(session, seq, b"x")
        time.sleep(0.1)
        assert heard.payloads == []
        link.cancel(session, b"them", after=2)
        heard.wait(48)
        link.close()
        assert worker.worker.counts["refused"] == 0


def test_a_cancel_waits_behind_the_segment_that_it_means() -> None:
    with running_worker(limits=WorkerLimits(credits=1)) as worker:
        link = Link(worker.endpoint)
        link.connect(5)
        first, second = Recorder(), Recorder()
        one, two = link.open(b"", first), link.open(b"", second)
        link.submit(one, 0, b"hold")
        link.submit(two, 0, b"hold")
        link.cancel(two, b"two", after=0)
        time.sleep(0.05)
        assert second.payloads == []
        link.cancel(one, b"one", after=0)
        second.wait(1)
        assert second.payloads == [b"cancelled two"]
        link.close()


def test_closing_a_session_gives_its_credits_to_others() -> None:
    with running_worker(limits=WorkerLimits(credits=1)) as worker:
        link = Link(worker.endpoint)
        link.connect(5)
        heard = Recorder()
        one, two = link.open(b"", Recorder()), link.open(b"", heard)
        link.submit(one, 0, b"hold")
        link.submit(two, 0, b"x")
        link.close_session(one)
        heard.wait(1)
        link.close()


def test_a_worker_that_stops_is_noticed_at_once(worker: RunningWorker, link: Link) -> None:
    heard = Recorder()
    link.open(b"", heard)
    worker.stop()
    heard.wait(lost=1)
    with pytest.raises(LinkError, match="stopping"):
        link.open(b"", Recorder())


@pytest.mark.slow
def test_a_silent_worker_is_noticed_within_three_seconds(worker: RunningWorker, link: Link) -> None:
    heard = Recorder()
    link.open(b"", heard)
    release = threading.Event()
    worker.call(lambda: release.wait(10))  # its loop hangs
    start = time.monotonic()
    heard.wait(lost=1)
    assert time.monotonic() - start < 3.0
    release.set()


def test_an_engine_that_owes_and_stands_still_is_an_error(worker: RunningWorker) -> None:
    link = Link(worker.endpoint, stuck_s=0.5)
    link.connect(5)
    heard = Recorder()
    link.submit(link.open(b"", heard), 0, b"hold")
    heard.wait(lost=1)
    assert "the runtime lives, but its engine has made no step for" in str(heard.lost[0])
    link.close()


def test_an_engine_that_owes_nothing_may_stand_still(worker: RunningWorker) -> None:
    link = Link(worker.endpoint, stuck_s=0.3)
    link.connect(5)
    time.sleep(1)
    assert link.error is None
    link.close()


def test_a_worker_of_another_epoch_is_noticed(worker: RunningWorker, link: Link) -> None:
    heard = Recorder()
    link.open(b"", heard)
    worker.call(lambda: setattr(worker.worker, "epoch", "another"))
    heard.wait(lost=1)
    assert "restarted" in str(heard.lost[0])


def test_a_client_that_leaves_has_its_sessions_closed(worker: RunningWorker, link: Link) -> None:
    for _ in range(50):
        link.submit(link.open(b"", Recorder()), 0, b"hold")
    deadline = time.monotonic() + 5
    while worker.service.num_opened < 50 and time.monotonic() < deadline:
        time.sleep(0.01)
    link.close()
    while worker.service.num_closed < 50 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert worker.service.num_closed == 50
    assert worker.worker.num_sessions == 0


def test_closing_a_link_tells_its_sessions_once(link: Link) -> None:
    heard = Recorder()
    link.open(b"", heard)
    link.close()
    link.close()
    assert len(heard.lost) == 1


def test_nobody_there_is_an_error_after_the_timeout() -> None:
    folder = private_folder()
    link = Link(f"ipc://{folder}/plait.sock")
    start = time.monotonic()
    with pytest.raises(LinkError, match="no plait runtime answers"):
        link.connect(0.2)
    assert time.monotonic() - start < 2
    folder.rmdir()


@pytest.mark.parametrize("endpoint", ["nowhere", "udp://x:1", "tcp://"])
def test_an_endpoint_without_meaning_is_refused(endpoint: str) -> None:
    with pytest.raises(LinkError, match="ipc://PATH or tcp://HOST:PORT"):
        Link(endpoint)


@pytest.mark.slow
def test_a_handler_that_sleeps_does_not_count_as_a_dead_client(link: Link) -> None:
    class Sleepy(Recorder):
        def on_events(self, payload: bytes) -> None:
            if not self.payloads:
                time.sleep(4)
            super().on_events(payload)

    heard = Sleepy()
    session = link.open(b"", heard)
    for seq in range(1000):
        link.submit(session, seq, b"x")
    heard.wait(1000)
    assert link.error is None
