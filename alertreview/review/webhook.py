"""The digest of a whole site, posted to a webhook: how much waits in which study, and where; no person, no patient."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import httpx

from core.errors import ProviderUnavailableError
from core.number_texts import counted

if TYPE_CHECKING:
    from alertreview.settings import WebhookSettings

PATIENCE_SECONDS: Final = 20.0
"""For the whole exchange: a server that sends a byte now and then holds nobody up."""


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
    # The address is a secret of its own: only the host is named.
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
