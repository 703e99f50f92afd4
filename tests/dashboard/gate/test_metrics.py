"""The address that Prometheus scrapes: closed without its token, silent about patients, open while others work."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text
from starlette.testclient import TestClient

from alertreview.application import Application, open_application
from alertreview.configuration import MetricsSettings, WebSettings
from core.errors import AlertReviewError, SettingsError, StoreError
from dashboard.gate import metrics

TOKEN = "a-token-of-more-than-24-characters"


@pytest.fixture
def web(tmp_path: Path) -> WebSettings:
    file = tmp_path / "metrics-token"
    file.write_text(TOKEN + "\n")
    return WebSettings(metrics=MetricsSettings(token_file=file))


@pytest.fixture
def own_site(own_home: Path) -> Iterator[Application]:
    with open_application(own_home) as site:
        yield site


def bearer(token: str = TOKEN, **headers: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}", **headers}


def test_without_the_setting_there_is_no_such_page(browser: Callable[..., TestClient]) -> None:
    assert browser().get("/metrics", headers=bearer()).status_code == 404


@pytest.mark.parametrize("headers", [{}, bearer(""), bearer(TOKEN[:-1]), bearer(TOKEN + "x"), {"authorization": TOKEN}])
def test_without_the_token_nothing_is_said(
    browser: Callable[..., TestClient], web: WebSettings, headers: dict[str, str]
) -> None:
    answer = browser(web).get("/metrics", headers=headers)
    assert answer.status_code == 401
    assert "alertreview_" not in answer.text


def test_from_another_machine_it_does_not_answer(browser: Callable[..., TestClient], web: WebSettings) -> None:
    assert browser(web, peer="10.0.0.9").get("/metrics", headers=bearer()).status_code == 403
    assert browser(web, url="http://review.example").get("/metrics", headers=bearer()).status_code == 403


def test_both_formats_of_prometheus_hold_the_site_and_the_process(
    browser: Callable[..., TestClient], web: WebSettings, application: Application
) -> None:
    visitor = browser(web, site=application)
    with metrics.page_timed("worklist"):
        pass
    plain = visitor.get("/metrics", headers=bearer())
    opened = visitor.get("/metrics", headers=bearer(accept="application/openmetrics-text; version=1.0.0"))
    assert plain.headers["content-type"].startswith("text/plain")
    assert opened.headers["content-type"].startswith("application/openmetrics-text")
    for families in (list(read_text(plain.text)), list(read_openmetrics(opened.text))):
        names = {family.name for family in families}
        assert {"alertreview_runs", "alertreview_page_seconds", "alertreview_page_errors"} <= names
    assert 'alertreview_page_seconds_count{page="worklist"}' in plain.text


def test_answers_are_counted(browser: Callable[..., TestClient], web: WebSettings, application: Application) -> None:
    visitor = browser(web, site=application)

    def refused() -> float:
        text = visitor.get("/metrics", headers=bearer()).text
        return sum(s.value for f in read_text(text) for s in f.samples if s.labels.get("status") == "4xx")

    before = refused()
    visitor.get("/metrics")
    assert refused() == before + 1


def test_errors_of_pages_are_counted_unless_a_rule_foresaw_them() -> None:
    found = metrics.meters()
    assert found is not None
    before = found.errors._value.get()
    for error in (StoreError("The study is locked."), ValueError("a surprise")):
        with pytest.raises(type(error)), metrics.page_timed("review"):
            raise error
    assert isinstance(StoreError(""), AlertReviewError)
    assert found.errors._value.get() == before + 1


def test_a_scrape_in_mid_import_answers(
    browser: Callable[..., TestClient], web: WebSettings, own_site: Application
) -> None:
    visitor, answers = browser(web, site=own_site), []
    with own_site.database.write() as uow:
        snapshot = uow.snapshots.latest()
        assert snapshot is not None
        uow.audit.append(snapshot.created_at, "test", "half done", "import", {})
        scraping = threading.Thread(target=lambda: answers.append(visitor.get("/metrics", headers=bearer())))
        scraping.start()
        scraping.join(60)
        assert [answer.status_code for answer in answers] == [200]


def test_a_site_that_cannot_be_read_is_unavailable_without_the_reason(
    browser: Callable[..., TestClient], web: WebSettings
) -> None:
    class Closed:
        @property
        def database(self) -> object:
            raise OSError("canary of a patient")

    answer = browser(web, site=Closed()).get("/metrics", headers=bearer())
    assert (answer.status_code, answer.text) == (503, "not ready")


def test_a_token_that_can_be_guessed_or_a_missing_package_stops_the_start(
    web: WebSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    web.check_secrets()
    monkeypatch.setattr("alertreview.configuration.find_spec", lambda _name: None)
    with pytest.raises(SettingsError, match=r"alertreview\[metrics\]"):
        web.check_secrets()
    assert web.metrics is not None
    web.metrics.token_file.write_text("short")
    with pytest.raises(SettingsError, match="5 characters"):
        WebSettings(metrics=MetricsSettings(token_file=web.metrics.token_file)).check_secrets()
