"""Metrics of a running dashboard: the figures of its site, how long pages take and what requests are answered with."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, Response

from alertreview.access.passwords import same_secret
from alertreview.configuration import MetricsSettings
from alertreview.operations.metrics import SiteCollector
from core.errors import AlertReviewError
from dashboard.context import steers_streamlit

if TYPE_CHECKING:
    from prometheus_client import Metric
    from prometheus_client.registry import Collector

    from alertreview.application import Application

METRICS_PATH = "/metrics"
SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Meters:
    """What this process has counted since it started; needs prometheus-client."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector

        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.answers = Counter(
            "alertreview_http_answers", "Answers to requests by status class.", ["status"], registry=self.registry
        )
        self.pages = Histogram(
            "alertreview_page_seconds", "Time to draw a page.", ["page"], buckets=SECONDS, registry=self.registry
        )
        self.errors = Counter("alertreview_page_errors", "Pages that ended in an error.", registry=self.registry)


class _Both:
    """What this process counts, then what the site holds."""

    def __init__(self, *collectors: "Collector") -> None:
        self._collectors = collectors

    def collect(self) -> "Iterator[Metric]":
        for collector in self._collectors:
            yield from collector.collect()


@cache
def meters() -> Meters | None:
    """Return the meters of this process; None where prometheus-client is not installed."""
    try:
        return Meters()
    except ImportError:
        return None


@contextmanager
def page_timed(page: str) -> Iterator[None]:
    """Measure how long a page takes, by the name that it has in its address, and count errors that no rule foresaw."""
    began, found = time.perf_counter(), meters()
    try:
        yield
    except Exception as error:
        if not (isinstance(error, AlertReviewError) or steers_streamlit(error)):
            page_failed()
        raise
    finally:
        if found is not None:
            found.pages.labels(page or "start").observe(time.perf_counter() - began)


def answered(status: int) -> None:
    """Count an answer."""
    if (found := meters()) is not None:
        found.answers.labels(f"{status // 100}xx").inc()


def page_failed() -> None:
    """Count a page that ended in an error."""
    if (found := meters()) is not None:
        found.errors.inc()


def scrape(connection: HTTPConnection, settings: MetricsSettings | None, site: Callable[[], "Application"]) -> Response:
    """Answer Prometheus, which shows the token of the site.

    An address without settings answers like one that does not exist. While the site cannot be read, the answer is 503
    without the reason, and Prometheus counts the dashboard as down.
    """
    found = meters()
    if settings is None or found is None:
        return PlainTextResponse("There is no such page.", 404)
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not same_secret(token.strip(), settings.token):
        return PlainTextResponse("Send the token of the setting 'metrics'.", 401, {"www-authenticate": "Bearer"})
    from prometheus_client.exposition import choose_encoder

    encode, kind = choose_encoder(connection.headers.get("accept", ""))
    try:
        content = encode(_Both(found.registry, SiteCollector(site())))
    except Exception:  # noqa: BLE001 - whatever it is, a watchdog never hears the reason
        return PlainTextResponse("not ready", 503)
    return Response(content, media_type=kind)
