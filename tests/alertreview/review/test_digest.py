"""The digest: to whom, with which numbers, once a day, also when the mail server is away in between."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_string
from email.message import EmailMessage
from email.policy import default as email_policy
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from alertreview.application import Application, open_application
from alertreview.cli.main import main
from alertreview.configuration import DigestSettings, read_configuration
from alertreview.review.digest import SENT, Digests, Outcome, connected, message
from core.errors import ProviderUnavailableError, RefusedError, SettingsError
from core.vocabulary import Role, SignInSource

MORNING = datetime(2026, 11, 30, 6, 0, tzinfo=UTC)
MAIL = DigestSettings(
    smtp="127.0.0.1:25",
    sender="alertreview@hospital.example",
    site="https://review.hospital.example/alertreview/",
    security="none",
    addresses={"rita": "rita@hospital.example"},
)


@pytest.fixture
def site(own_home: Path) -> Iterator[Application]:
    """The demonstration with an open study, two readers with open work, and people without any."""
    with open_application(own_home) as opened:
        (study,) = [one for one in opened.studies.all() if one.slug == "demo"]
        if study.status != "open":
            opened.studies.reopen_study("demo", reason="for the test")
        for name, login in (("Rita", "rita"), ("Vera", "vera@clinic.example"), ("Nils", "nils")):
            source = SignInSource.OIDC if "@" in login else SignInSource.LOCAL
            opened.accounts.create(name, Role.REVIEWER, login=login, source=source)
        opened.accounts.create("Ada", Role.ADMINISTRATOR, login="ada@clinic.example", source=SignInSource.OIDC)
        readers = [opened.site.person_named(name).person_id for name in ("Rita", "Vera", "Nils")]
        opened.studies.add_readers("demo", readers)
        yield opened


class Outbox:
    """A mail server that keeps what it takes, and goes away after some messages."""

    def __init__(self, takes: int = 100) -> None:
        self.messages: list[EmailMessage] = []
        self._takes = takes

    @contextmanager
    def connect(self, _mail: DigestSettings) -> Iterator["Outbox"]:
        yield self

    def send_message(self, msg: EmailMessage) -> None:
        if len(self.messages) == self._takes:
            raise ConnectionResetError(104, "Connection reset by peer")
        self.messages.append(msg)

    @property
    def receivers(self) -> list[str]:
        return [str(one["To"]) for one in self.messages]


def send(site: Application, outbox: Outbox | None = None, at: datetime = MORNING, **changed: object) -> Outcome:
    connect = connected if outbox is None else outbox.connect
    return digests_of(site, at, connect, **changed).send()


def digests_of(site: Application, at: datetime = MORNING, connect: Any = connected, **changed: object) -> Digests:
    mail = MAIL.model_copy(update=changed)
    return Digests(site.database, site.studies, site.review, site.adjudication, mail, lambda: at, connect=connect)


def test_those_with_open_work_and_an_address_get_one_and_the_rest_are_named(site: Application) -> None:
    outbox = Outbox()
    outcome = send(site, outbox)
    assert outbox.receivers == ["rita@hospital.example", "vera@clinic.example"]
    assert [digest.name for digest in outcome.without_address] == ["Nils"]


def test_the_numbers_are_those_of_the_readers_own_page(site: Application) -> None:
    digests = {digest.name: digest for digest in digests_of(site).open()}
    assert "Ada" not in digests
    for name in ("Rita", "Vera", "Nils"):
        queue = site.review.queue("demo", site.site.person_named(name).person_id)
        (work,) = digests[name].work
        assert work.n_to_judge + work.n_put_off == queue.n_left > 0
        assert work.n_put_off == queue.n_later
        text = message(digests[name], MAIL, MORNING).get_content()
        assert (
            f"Study demo: {queue.n_left} cases to judge.\n    https://review.hospital.example/alertreview/review?study=demo\n"
            in text
        )


def test_a_message_holds_nothing_of_a_patient_and_no_title(site: Application, own_home: Path) -> None:
    engine = sa.create_engine(f"sqlite:///{own_home / 'alertreview.db'}")
    with engine.connect() as connection:
        secret = {
            str(value)
            for query in ("SELECT patient_id FROM instance", "SELECT stay_id FROM instance", "SELECT name FROM task",
                          "SELECT title FROM study", "SELECT unit FROM instance")
            for (value,) in connection.execute(sa.text(query))
        }  # fmt: skip
    engine.dispose()
    outbox = Outbox()
    send(site, outbox)
    for one in outbox.messages:
        assert not {value for value in secret if len(value) > 4 and value in one.as_string()}


def test_nobody_gets_two_on_one_day_and_the_next_day_counts_anew(site: Application) -> None:
    outbox = Outbox()
    for hours in (0, 1, 17):
        outcome = send(site, outbox, at=MORNING + timedelta(hours=hours))
    assert outcome.sent == ()
    assert len(outcome.sent_before) == len(outbox.messages) == 2
    send(site, outbox, at=MORNING + timedelta(hours=24))
    assert len(outbox.messages) == 4


def test_a_server_that_goes_away_loses_nothing_and_repeats_nothing(site: Application) -> None:
    first, second = Outbox(takes=1), Outbox()
    with pytest.raises(ProviderUnavailableError, match=r"127.0.0.1:25 did not take.*1 of 2 digests were sent"):
        send(site, first)
    send(site, second)
    assert first.receivers + second.receivers == ["rita@hospital.example", "vera@clinic.example"]


def test_a_server_that_does_not_answer_at_all_is_one_sentence(site: Application) -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as free:
        port = free.server_address[1]
    with pytest.raises(ProviderUnavailableError, match=r"Connection refused.*0 of 2 digests"):
        send(site, smtp=f"127.0.0.1:{port}")
    with site.database.read() as uow:
        assert not uow.audit.latest(5, action=SENT)


def test_two_at_once_send_one(site: Application) -> None:
    with open_application(site.settings.home) as other, other.database.digest_job():
        outbox = Outbox()
        with pytest.raises(RefusedError, match="another process"):
            send(site, outbox)
        assert outbox.messages == []
    send(site, outbox)
    assert len(outbox.messages) == 2


class Session(socketserver.StreamRequestHandler):
    """As much of SMTP as a message needs."""

    def handle(self) -> None:
        self.wfile.write(b"220 test\r\n")
        for line in self.rfile:
            command = line.strip().upper()
            if command == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                body = b""
                while not body.endswith(b"\r\n.\r\n"):
                    body += self.rfile.readline()
                self.server.taken.append(body.removesuffix(b".\r\n").decode())  # type: ignore[attr-defined]
            self.wfile.write(b"221 bye\r\n" if command == b"QUIT" else b"250 ok\r\n")
            if command == b"QUIT":
                return


@contextmanager
def mail_server() -> Iterator[tuple[int, list[str]]]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session) as server:
        server.taken = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], server.taken  # type: ignore[attr-defined]
        server.shutdown()


def test_a_message_arrives_at_a_server_as_it_was_written(site: Application) -> None:
    with mail_server() as (port, taken):
        send(site, smtp=f"127.0.0.1:{port}")
    (digest, _) = [one for one in digests_of(site).open() if one.address]
    arrived = message_from_string(taken[0], policy=email_policy)
    written = message(digest, MAIL, MORNING)
    assert len(taken) == 2
    assert arrived.get_content().replace("\r\n", "\n") == written.get_content()
    assert arrived["Subject"] == written["Subject"]
    assert arrived["Message-ID"] == written["Message-ID"]


def test_a_server_without_tls_gets_no_message_unless_the_settings_say_so(site: Application) -> None:
    with mail_server() as (port, taken):
        with pytest.raises(ProviderUnavailableError, match="SMTPNotSupportedError"):
            send(site, smtp=f"127.0.0.1:{port}", security="starttls")
        assert taken == []


def test_the_command_without_a_mail_server_says_what_to_set(
    demo_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["digest", "--home", str(demo_home)]) == SettingsError.exit_code
    assert "[digest]" in capsys.readouterr().err
    assert main(["digest", "--dry-run", "--home", str(demo_home)]) == 0
    assert capsys.readouterr().out == "Nobody with an account has open work.\n"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ('smtp = "mail.example:x"', "'digest.smtp'"),
        ('smtp = "m"\nsender = "nobody"', "'digest.sender'"),
        ('smtp = "m"\nsender = "a@b"\nsite = "review.example"', "'digest.site'"),
        ('smtp = "m"\nsender = "a@b"\nsite = "https://r"\nsecurity = "perhaps"', "'digest.security'"),
        ('smtp = "m"\nsender = "a@b"\nsite = "https://r"\n[digest.addresses]\nrita = "rita, all@b"', "rita"),
        ('smtp = "m"', "'digest.sender'"),
        ('smtp = "m"\nsender = "a@b"\nsite = "https://r"\npassword = "x"', "not a setting"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(tmp_path: Path, wrong: str, said: str) -> None:
    (tmp_path / "alertreview.toml").write_text(f"[digest]\n{wrong}\n")
    with pytest.raises(SettingsError, match=said):
        read_configuration(tmp_path)
