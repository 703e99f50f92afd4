"""The digest: one message a day to everybody whose work waits, and one to a webhook with the totals of the studies.

Numbers and links, and nothing of a patient.

What was sent is in the audit trail, so a second start on the same day sends only what could not be sent before.
"""

import smtplib
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from email.message import EmailMessage
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

import httpx

from alertreview.review.adjudication import AdjudicationService
from alertreview.review.review import ReviewService
from alertreview.rights import Action, roles_that_may
from alertreview.settings import Clock
from alertreview.studies.studies import StudyService
from core.errors import ProviderUnavailableError, SettingsError
from core.number_texts import counted
from core.vocabulary import PersonId, StudyStatus
from db.database import Database
from db.models import Person

if TYPE_CHECKING:
    from alertreview.settings import WebhookSettings

if TYPE_CHECKING:
    from alertreview.settings import DigestSettings, WebhookSettings

SENT = "digest sent"
POSTED = "digest posted"
_WEBHOOK = "webhook"
DEFAULT_PORT = 587
PATIENCE_SECONDS = 20.0
SETTINGS_NEEDED = (
    "No mail server and no webhook is set. Add a table [digest] with smtp, sender and site, or a table [webhook] with "
    "url_file and site, to alertreview.toml in the home; "
    "see 'Digest' in docs/operations.md."
)


@dataclass(frozen=True)
class OpenWork:
    """What waits for a person in one study, as the person's own pages count it."""

    slug: str
    n_to_judge: int
    n_put_off: int
    n_to_adjudicate: int


@dataclass(frozen=True)
class Digest:
    """The message of one person."""

    person_id: PersonId
    name: str
    address: str  # empty for somebody whose mail address is not known
    work: tuple[OpenWork, ...]

    @property
    def n_cases(self) -> int:
        """How many cases wait in all studies."""
        return sum(one.n_to_judge + one.n_put_off + one.n_to_adjudicate for one in self.work)


@dataclass(frozen=True)
class Outcome:
    """What became of the digests of a day."""

    sent: tuple[Digest, ...]
    sent_before: tuple[Digest, ...]
    without_address: tuple[Digest, ...]
    n_posted: int = 0  # studies whose totals the webhook took


class Post(Protocol):
    """A connection to a mail server."""

    def send_message(self, msg: EmailMessage) -> object:
        """Hand a message over; an error means that it was not taken."""


class Digests:
    """Digests of a site, by mail and to a webhook."""

    def __init__(
        self,
        database: Database,
        studies: StudyService,
        review: ReviewService,
        adjudication: AdjudicationService,
        mail: "DigestSettings | None",
        clock: Clock,
        webhook: "WebhookSettings | None" = None,
        connect: Callable[["DigestSettings"], AbstractContextManager[Post]] | None = None,
    ) -> None:
        self._database = database
        self._studies = studies
        self._review = review
        self._adjudication = adjudication
        self._mail = mail
        self._clock = clock
        self._webhook = webhook
        self._connect = connect or connected

    def open(self) -> tuple[Digest, ...]:
        """Return the digest of everybody who has an account and open work, in the order of their numbers."""
        studies = [study.slug for study in self._studies.all() if study.status is StudyStatus.OPEN]
        with self._database.read() as uow:
            logins = {account.person_id: account.login for account in uow.accounts.all()}
            people = [person for person in uow.people.all(active_only=True) if person.id in logins]
            seen = {person.id: uow.units.of_person(person.id) for person in people}
            units = {slug: uow.units.of_study(slug) for slug in studies}
        found = []
        for person in people:
            scope = seen[person.id]
            work = [self._open_work(slug, person, sees_all=scope is None or units[slug] <= scope) for slug in studies]
            waiting = tuple(one for one in work if one.n_to_judge or one.n_put_off or one.n_to_adjudicate)
            if waiting:
                login = logins[person.id]
                address = (self._mail.addresses if self._mail else {}).get(login, login if "@" in login else "")
                found.append(Digest(person.id, person.name, address, waiting))
        return tuple(found)

    def send(self) -> Outcome:
        """Send the digests of today, each at most once a day, and note each in the audit trail when the server took it.

        Raise SettingsError if neither mail server nor webhook is set, ProviderUnavailableError if a server does not
        take a message (those sent before, and to the other server, stand in the audit trail), RefusedError if another
        process sends at this moment.
        """
        if self._mail is None and self._webhook is None:
            raise SettingsError(SETTINGS_NEEDED)
        now = self._clock()
        with self._database.digest_job():
            digests = self.open()
            failures: list[ProviderUnavailableError] = []
            n_posted = self._post(digests, now, failures)
            if self._mail is None:
                return _told(failures, Outcome((), (), (), n_posted))
            before = {digest.person_id for digest in digests if self._was_sent(_thing(digest), SENT, now.date())}
            due = tuple(digest for digest in digests if digest.address and digest.person_id not in before)
            if due:
                self._send(self._mail, now, due, failures)
        outcome = Outcome(
            sent=due,
            sent_before=tuple(digest for digest in digests if digest.person_id in before),
            without_address=tuple(digest for digest in digests if not digest.address),
            n_posted=n_posted,
        )
        return _told(failures, outcome)

    def _open_work(self, slug: str, person: Person, *, sees_all: bool) -> OpenWork:
        n_to_judge = n_put_off = n_to_adjudicate = 0
        if person.roles & roles_that_may(Action.JUDGE):
            queue = self._review.queue(slug, person.id)
            n_to_judge, n_put_off = queue.n_left - queue.n_later, queue.n_later
        if sees_all and person.roles & roles_that_may(Action.ADJUDICATE):
            n_to_adjudicate = len(self._adjudication.disagreements(slug, person.id))
        return OpenWork(slug, n_to_judge, n_put_off, n_to_adjudicate)

    def _post(self, digests: tuple[Digest, ...], now: datetime, failures: list[ProviderUnavailableError]) -> int:
        """Post the totals unless they were posted today, and return of how many studies."""
        totals = _totals(digests)
        if self._webhook is None or not totals or self._was_sent(_WEBHOOK, POSTED, now.date()):
            return 0
        try:
            post(self._webhook, payload(totals, self._webhook.site, now))
        except ProviderUnavailableError as error:
            failures.append(error)
            return 0
        self._note(now, POSTED, _WEBHOOK, sum(one.n_judgments + one.n_to_adjudicate for one in totals))
        return len(totals)

    def _note(self, now: datetime, action: str, thing: str, n_open: int) -> None:
        with self._database.write() as uow:
            uow.audit.append(now, "command line", action, thing, {"day": now.date().isoformat(), "open": n_open})
            uow.commit()

    def _send(
        self,
        mail: "DigestSettings",
        now: datetime,
        due: tuple[Digest, ...],
        failures: list[ProviderUnavailableError],
    ) -> None:
        n_sent = 0
        try:
            with self._connect(mail) as post:
                for digest in due:
                    post.send_message(message(digest, mail, now))
                    self._note(now, SENT, _thing(digest), digest.n_cases)
                    n_sent += 1
        except (OSError, smtplib.SMTPException) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            failures.append(
                ProviderUnavailableError(
                    f"The mail server {mail.smtp} did not take a message ({reason}). {n_sent} of {len(due)} digests "
                    "were sent; the same command sends the rest."
                )
            )

    def _was_sent(self, thing: str, action: str, day: date) -> bool:
        with self._database.read() as uow:
            last = next(iter(uow.audit.latest(1, action=action, thing=thing)), None)
        return last is not None and last.moment.date() == day


def _thing(digest: Digest) -> str:
    return f"person {digest.person_id}"


def _told(failures: list[ProviderUnavailableError], outcome: Outcome) -> Outcome:
    """Return the outcome, or raise what failed in one error."""
    if failures:
        raise ProviderUnavailableError(" ".join(map(str, failures)))
    return outcome


def _totals(digests: tuple[Digest, ...]) -> "list[StudyTotal]":
    """Add up what waits in each study; a case to adjudicate waits for all adjudicators and is counted once."""
    work = [one for digest in digests for one in digest.work]
    totals = []
    for slug in dict.fromkeys(one.slug for one in work):
        mine = [one for one in work if one.slug == slug]
        judgments = [one.n_to_judge + one.n_put_off for one in mine]
        to_adjudicate = max(one.n_to_adjudicate for one in mine)
        totals.append(StudyTotal(slug, sum(judgments), sum(n > 0 for n in judgments), to_adjudicate))
    return totals


def message(digest: Digest, mail: "DigestSettings", now: datetime) -> EmailMessage:
    """Return the message of a person: how much waits in which study, and where."""
    mine = EmailMessage()
    mine["From"], mine["To"] = mail.sender, digest.address
    mine["Date"] = now
    # The same for a second message of the day, should the first be taken and its note lost: mail programs show one.
    mine["Message-ID"] = f"<alertreview-{now:%Y%m%d}-{digest.person_id}@{mail.sender.rpartition('@')[2]}>"
    mine["Auto-Submitted"] = "auto-generated"
    mine["Subject"] = f"alertreview: {_cases(digest.n_cases)} waiting for you"
    lines = [f"Dear {digest.name},", ""]
    for one in digest.work:
        parts = [
            f"{_cases(one.n_to_judge)} to judge" if one.n_to_judge else "",
            f"{_cases(one.n_put_off)} that you put off" if one.n_put_off else "",
            f"{_cases(one.n_to_adjudicate)} to adjudicate" if one.n_to_adjudicate else "",
        ]
        page = "review" if one.n_to_judge or one.n_put_off else "adjudication"
        lines += [
            f"Study {one.slug}: {', '.join(part for part in parts if part)}.",
            f"    {mail.site.rstrip('/')}/{page}?study={quote(one.slug)}",
            "",
        ]
    lines += ["This message names no patient. It is sent at most once a day, while work is open.", ""]
    mine.set_content("\n".join(lines))
    return mine


def _cases(n: int) -> str:
    return "1 case" if n == 1 else f"{n} cases"


@contextmanager
def connected(mail: "DigestSettings") -> Iterator[Post]:
    """Connect to the mail server as the settings say; a server that offers no TLS where it is asked for is an error."""
    host, _, port = mail.smtp.partition(":")
    address = (host, int(port or DEFAULT_PORT))
    context = ssl.create_default_context()
    if mail.security == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(*address, timeout=PATIENCE_SECONDS, context=context)
    else:
        server = smtplib.SMTP(*address, timeout=PATIENCE_SECONDS)
    with server:
        if mail.security == "starttls":
            server.starttls(context=context)
        if mail.user:
            server.login(mail.user, mail.password)
        yield server


@dataclass(frozen=True)
class StudyTotal:
    """What waits in one study."""

    slug: str
    n_judgments: int  # judgments that its readers have yet to make, those put off included
    n_readers: int  # readers who have some
    n_to_adjudicate: int  # cases that an adjudicator sees


def payload(totals: Sequence[StudyTotal], site: str, now: datetime) -> dict[str, Any]:
    """Return what is posted: ``text`` for chat services, and the same as numbers for programs."""
    studies = []
    for one in totals:
        page = "review" if one.n_judgments else "adjudication"
        studies.append(
            {
                "study": one.slug,
                "judgments": one.n_judgments,
                "readers": one.n_readers,
                "adjudications": one.n_to_adjudicate,
                "link": f"{site.rstrip('/')}/{page}?study={quote(one.slug)}",
            }
        )
    lines = [
        "alertreview: open work",
        *(_line(one, str(said["link"])) for one, said in zip(totals, studies, strict=True)),
    ]
    return {"text": "\n".join(lines), "day": now.date().isoformat(), "studies": studies}


def _line(one: StudyTotal, link: str) -> str:
    parts = []
    if one.n_judgments:
        parts.append(f"{counted(one.n_judgments, 'judgment')} by {counted(one.n_readers, 'reader')}")
    if one.n_to_adjudicate:
        parts.append(f"{counted(one.n_to_adjudicate, 'case')} to adjudicate")
    return f"Study {one.slug}: {', '.join(parts)}. {link}"


def post(webhook: "WebhookSettings", body: dict[str, Any]) -> None:
    """Post to the webhook.

    Raise ProviderUnavailableError if the server does not say within `PATIENCE_SECONDS` that it took the message,
    SettingsError if the file with the address cannot be used.
    """
    address = httpx.URL(webhook.url)
    came: list[httpx.Response | httpx.HTTPError] = []

    def exchange() -> None:
        # The same for a second post of the day: a receiver that knows the header drops it.
        headers = {"Idempotency-Key": f"alertreview-digest-{body['day']}"}
        try:
            with (
                httpx.Client(timeout=PATIENCE_SECONDS, trust_env=False, follow_redirects=False) as client,
                client.stream("POST", address, json=body, headers=headers) as answer,
            ):
                came.append(answer)
        except httpx.HTTPError as error:
            came.append(error)

    thread = threading.Thread(target=exchange, daemon=True)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    # The address itself is a secret: only the host is named.
    if not came:
        raise ProviderUnavailableError(_said(address, f"did not answer within {PATIENCE_SECONDS:.0f} s"))
    if isinstance(came[0], httpx.HTTPError):
        raise ProviderUnavailableError(_said(address, f"could not be reached ({type(came[0]).__name__})"))
    if came[0].is_redirect:
        raise ProviderUnavailableError(
            _said(address, f"answered {came[0].status_code}, and redirects are not followed; give the final address")
        )
    if not came[0].is_success:
        raise ProviderUnavailableError(_said(address, f"answered {came[0].status_code}"))


def _said(address: httpx.URL, what: str) -> str:
    return f"The webhook at {address.host} {what}. Nothing is noted as posted; the same command tries again."
