"""The real dashboard behind the nginx example, below a path of its own on a shared host: sign-in, pages, websocket."""

import json
import re
import signal
from collections.abc import Iterator

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.support.served import Visitor, dashboard, new_site, nginx

BASE = "/alertreview"
HOST = "alertreview.example"


@pytest.fixture(scope="module")
def behind_nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int, str]]:
    """Port of nginx, port of the dashboard behind it, and the one-time code of ada."""
    folder = tmp_path_factory.mktemp("base-path")
    code = new_site(folder / "home")
    environment = {"ALERTREVIEW_HOSTS": HOST, "ALERTREVIEW_BASE_PATH": BASE}
    with dashboard(folder / "home", folder / "log", **environment) as (port, server), nginx(folder, port) as shown:
        yield shown, port, code
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=60) == 130, "Ctrl+C ends it in order"
    assert (folder / "log").read_text(encoding="utf-8").rstrip().endswith("The dashboard has stopped.")


@pytest.mark.checklist("B4")
def test_below_the_base_path_everything_works_from_the_deep_link_to_the_websocket(
    behind_nginx: tuple[int, int, str],
) -> None:
    port, _, code = behind_nginx
    visitor = Visitor(port, HOST)
    assert visitor.ask(BASE).location.endswith(f"{BASE}/")

    stranger = Visitor(port, HOST)
    with pytest.raises((InvalidStatus, ConnectionClosed)):
        stranger.draw(f"{BASE}/_stcore/stream")
    assert stranger.ask(f"{BASE}/_stcore/host-config").status == 401

    sent_on = visitor.ask(f"{BASE}/worklist?run=1")
    assert (sent_on.status, sent_on.location) == (303, f"{BASE}/login?next=%2Falertreview%2Fworklist%3Frun%3D1")
    page = visitor.ask(sent_on.location)
    files = re.findall(r'(?:href|src|action)="([^"]+)"', page.text)
    assert files
    assert all(file.startswith(f"{BASE}/") for file in files), files
    assert {visitor.ask(file).status for file in files} == {200}

    entered = visitor.choose_password(BASE, code, f"{BASE}/worklist?run=1")
    assert (entered.status, entered.location) == (303, f"{BASE}/worklist?run=1")
    session = next(cookie for cookie in entered.cookies if "form" not in cookie)
    assert "; Path=/alertreview/" in session
    assert "; Secure" in session
    assert "; HttpOnly" in session
    assert "samesite=strict" in session.lower()

    shown = visitor.ask(entered.location)
    assert shown.status == 200
    assert f'src="{BASE}/login/watch.js"' in shown.text
    scripts = [file for file in re.findall(r'(?:src|href)="([^"]+)"', shown.text) if "/static/" in file]
    assert scripts
    for file in scripts[:3]:
        assert visitor.ask(f"{BASE}/{file.removeprefix('./')}" if file.startswith("./") else file).status == 200
    drawn = visitor.draw(f"{BASE}/_stcore/stream")
    assert "Ada" in drawn
    assert f'href="{BASE}/logout"' in drawn
    assert visitor.ask(f"{BASE}/session").status == 204
    left = visitor.ask(f"{BASE}/logout")
    assert f'action="{BASE}/logout"' in left.text


def test_health_answers_through_nginx_and_beside_it(behind_nginx: tuple[int, int, str]) -> None:
    port, behind, _ = behind_nginx
    for visitor, base in ((Visitor(port, HOST), BASE), (Visitor(behind), BASE), (Visitor(behind), "")):
        for path, word in (("health", "alive"), ("ready", "ready")):
            answer = visitor.ask(f"{base}/{path}")
            assert (answer.status, json.loads(answer.text)) == (200, {"status": word})
            assert "default-src 'self'" in answer.headers["content-security-policy"]
    assert Visitor(port, HOST).ask("/health").status == 404, "the rest of the host is not ours"


def test_a_path_that_only_begins_like_the_base_path_is_outside(behind_nginx: tuple[int, int, str]) -> None:
    _, behind, _ = behind_nginx
    answer = Visitor(behind, HOST).ask("/alertreviewlogin")
    assert (answer.status, answer.location) == (303, f"{BASE}/login?next=%2Falertreview%2Falertreviewlogin")
    assert Visitor(behind, HOST).ask("/alertreviewhealth").status == 303
