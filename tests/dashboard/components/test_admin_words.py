"""What the Admin page makes of stored details and user agents."""

import re
from typing import Any

import pytest

from alertreview.application import Application
from dashboard.components.admin_words import browser, details


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ({}, ""),
        ({"before": "draft", "after": "open", "reason": "", "sealed": {"study 1": "1:ab"}}, "draft → open"),
        ({"before": [], "after": [1, 2]}, "1, 2"),
        ({"before": [1], "after": []}, "1 → none"),
        ({"before": None, "after": {"answer": 3, "version": 1}, "reason": "x"}, "answer 3, version 1; because: x"),
        ({"format": "csv", "sha256": "ab" * 32, "n_alerts": 2}, "format: csv; checksum: abababababab…; alerts: 2"),
        ({"open_panel": True, "task_key": "LAB"}, "open panel: yes; task key: LAB"),
    ],
)
def test_details_are_words(stored: dict[str, Any], said: str) -> None:
    assert details(stored) == said


def test_no_row_of_a_trail_shows_json(application: Application) -> None:
    rows = list(application.audit_trail.page(limit=1000))
    assert len({row.action for row in rows}) > 4
    assert [row.details for row in rows if re.search(r'[{}\[\]"]|sealed|[0-9a-f]{16}', details(row.details))] == []


@pytest.mark.parametrize(
    ("user_agent", "said"),
    [
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox on Windows"),
        (
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
            "Chrome on Linux",
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36 Edg/126.0",
            "Edge on Windows",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1 Version/17.5 Mobile Safari/604.1",
            "Safari on iPhone",
        ),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 14_5) AppleWebKit/605.1 Version/17.5 Safari/605.1", "Safari on macOS"),
        (
            "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 Chrome/126.0 Mobile Safari/537.36",
            "Chrome on Android",
        ),
        ("curl/8.5.0", "another program"),
        ("", "not known"),
    ],
)
def test_a_browser_is_named_with_its_system(user_agent: str, said: str) -> None:
    assert browser(user_agent) == said
