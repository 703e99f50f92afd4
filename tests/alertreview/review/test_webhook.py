"""The digest by webhook: totals once a day, and a server that is away, slow, or sends elsewhere."""

import http.server
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from alertreview.application import Application, open_application
from alertreview.cli.main import main
from alertreview.configuration import WebhookSettings, read_configuration
from alertreview.review import digest
from alertreview.review.digest import POSTED, Digests, Outcome
from core.errors import ProviderUnavailableError, SettingsError
from core.vocabulary import Role

MORNING = datetime(2026, 11, 30, 6, 0, tzinfo=UTC)
SITE = "https://review.hospital.example/alertreview/"


class Hook(http.server.BaseHTTPRequestHandler):
    """Keeps what is posted, and answers as its server says."""

    server: "Server"

    def do_POST(self) -> None:
        self.server.taken.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
        if self.server.drips:
            for letter in b"HTTP/1.1 200 OK\r\n" + b"X-Slow: " + b"." * 10_000:
                if self.server.is_over.wait(0.02):
                    return
                self.wfile.write(bytes([letter]))
        self.send_response(self.server.status)
        if self.server.status == 302:
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Be quiet."""


class Server(http.server.ThreadingHTTPServer):
    status, drips = 200, False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Hook)
        self.taken: list[tuple[dict[str, str], bytes]] = []
        self.is_over = threading.Event()


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.is_over.set()
        running.shutdown()
        thread.join()


def settings_of(tmp_path: Path, server: Server, path: str = "/secret-part") -> WebhookSettings:
    file = tmp_path / "url"
    file.write_text(f"http://127.0.0.1:{server.server_port}{path}\n")
    return WebhookSettings(url_file=file, site=SITE)


@pytest.fixture
def site(own_home: Path) -> Iterator[Application]:
    """The demonstration with an open study and two readers with open work."""
    with open_application(own_home) as opened:
        (study,) = [one for one in opened.studies.all() if one.slug == "demo"]
        if study.status != "open":
            opened.studies.reopen_study("demo", reason="for the test")
        for name, login in (("Rita", "rita"), ("Vera", "vera")):
            opened.accounts.create(name, Role.REVIEWER, login=login)
        readers = [opened.site.person_named(name).person_id for name in ("Rita", "Vera")]
        opened.studies.add_readers("demo", readers)
        yield opened


def send(site: Application, hook: WebhookSettings, at: datetime = MORNING) -> Outcome:
    return Digests(site.database, site.studies, site.review, site.adjudication, None, lambda: at, hook).send()


def test_the_totals_are_posted_once_a_day_without_anybody_s_name(
    site: Application, server: Server, tmp_path: Path
) -> None:
    hook = settings_of(tmp_path, server)
    assert [send(site, hook, MORNING + timedelta(hours=hours)).n_posted for hours in (0, 1, 17, 24)] == [1, 0, 0, 1]
    assert len(server.taken) == 2
    (headers, body), _ = server.taken
    said = json.loads(body)
    people = [site.site.person_named(name).person_id for name in ("Rita", "Vera")]
    waiting = sum(site.review.queue("demo", person).n_left for person in people)
    (study,) = said["studies"]
    assert (study["judgments"], study["readers"]) == (waiting, 2)
    assert study["link"] == "https://review.hospital.example/alertreview/review?study=demo"
    assert f"Study demo: {waiting} judgments by 2 readers" in said["text"]
    assert study["link"] in said["text"]
    assert headers["Idempotency-Key"] == "alertreview-digest-2026-11-30"
    assert set(said) == {"text", "day", "studies"}
    assert set(study) == {"study", "judgments", "readers", "adjudications", "link"}
    assert not any(name.encode() in body for name in ("Rita", "Vera", "SIM-"))


def test_what_was_not_taken_is_not_noted_and_comes_with_the_next_start(
    site: Application, server: Server, tmp_path: Path
) -> None:
    hook = settings_of(tmp_path, server)
    tries: list[tuple[dict[str, Any], str]] = [
        ({"status": 503}, "answered 503"),
        ({"status": 302}, "answered 302, and redirects are not followed"),
        ({"drips": True}, "did not answer within 0 s"),
    ]
    for changed, words in tries:
        vars(server).update(status=200, drips=False)
        vars(server).update(changed)
        start = time.monotonic()
        with pytest.MonkeyPatch.context() as patch:
            if server.drips:  # for minutes
                patch.setattr(digest, "PATIENCE_SECONDS", 0.4)
            with pytest.raises(ProviderUnavailableError, match=words) as refused:
                send(site, hook)
        assert time.monotonic() - start < 60
        assert "127.0.0.1" in str(refused.value)
        assert "secret-part" not in str(refused.value)
    assert not any(b"elsewhere" in body for _, body in server.taken)
    with site.database.read() as uow:
        assert not uow.audit.latest(5, action=POSTED)
    vars(server).update(status=200, drips=False)
    assert send(site, hook).n_posted == 1


@contextmanager
def nobody() -> Iterator[int]:
    with Server() as gone:
        port = gone.server_port
    yield port


def test_a_server_that_is_away_is_one_line_of_the_command(
    site: Application, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "url"
    with nobody() as port:
        file.write_text(f"http://127.0.0.1:{port}/secret-part")
        (site.settings.home / "alertreview.toml").write_text(f'[webhook]\nurl_file = "{file}"\nsite = "{SITE}"\n')
        assert main(["digest", "--home", str(site.settings.home)]) == ProviderUnavailableError.exit_code
    said = capsys.readouterr().err
    assert "The webhook at 127.0.0.1 could not be reached (ConnectError)." in said
    assert "secret-part" not in said


@pytest.mark.parametrize("text", ["http://hooks.example/x", "hooks.example", ""])
def test_an_address_that_is_not_encrypted_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "url").write_text(text)
    with pytest.raises(SettingsError, match="no address that begins with https://"):
        _ = WebhookSettings(url_file=tmp_path / "url", site=SITE).url


@pytest.mark.parametrize(("wrong", "said"), [('site = "https://r"', "'webhook.url_file'"), ('url_file = "u"', "site")])
def test_a_setting_that_is_missing_is_named(tmp_path: Path, wrong: str, said: str) -> None:
    (tmp_path / "alertreview.toml").write_text(f"[webhook]\n{wrong}\n")
    with pytest.raises(SettingsError, match=said):
        read_configuration(tmp_path)


def test_totals_count_a_case_to_adjudicate_once() -> None:
    totals = [digest.StudyTotal("a b", 0, 0, 1), digest.StudyTotal("c", 1, 1, 3)]
    said = digest.payload(totals, SITE, MORNING)
    assert said["text"].splitlines()[1:] == [
        "Study a b: 1 case to adjudicate. https://review.hospital.example/alertreview/adjudication?study=a%20b",
        (
            "Study c: 1 judgment by 1 reader, 3 cases to adjudicate. "
            "https://review.hospital.example/alertreview/review?study=c"
        ),
    ]
