"""The read-only interface: rights of the token's person, rows of the exports, nothing written but audit rows."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from alertreview.access.api_tokens import ApiTokens
from alertreview.application import Application, open_application
from alertreview.cli.main import cli
from alertreview.rights import MATRIX, Action
from core.errors import InvalidInputError, NotFoundError, RefusedError, SignedOutError
from core.vocabulary import Role
from dashboard.gate import api

PATHS = ["/api/v1/alerts", "/api/v1/studies", "/api/v1/studies/demo/labels"]
NEEDS = dict(zip(PATHS, [Action.SEE_ALERTS, Action.SEE_STUDIES, Action.EXPORT], strict=True))


@pytest.fixture
def site(own_home: Path) -> Iterator[Application]:
    with open_application(own_home) as opened:
        for role in Role:
            opened.accounts.create(role.value.title(), role, login=role.value)
        yield opened


def token_of(site: Application, role: Role) -> str:
    return site.api_tokens.create(site.accounts.find(role.value).person_id, "a test", 30)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def audit_rows(site: Application) -> list[tuple[str, str, str]]:
    with site.database.read() as uow:
        return [(row.actor, row.action, row.object) for row in uow.audit.latest(3)]


@pytest.mark.parametrize("path", PATHS)
def test_without_a_valid_token_nothing_is_said(
    browser: Callable[..., TestClient], site: Application, path: str
) -> None:
    visitor = browser(site=site)
    for headers in ({}, bearer(""), bearer("x" * 43), {"authorization": token_of(site, Role.COORDINATOR)}):
        answer = visitor.get(path, headers=headers)
        assert answer.status_code == 401
        assert set(answer.json()) == {"error"}


def test_the_cookie_of_a_browser_is_no_token_and_a_token_no_cookie(
    browser: Callable[..., TestClient], site: Application
) -> None:
    token = token_of(site, Role.RESEARCHER)
    visitor = browser(site=site)
    visitor.cookies.set(site.sessions.cookie_name, token)
    assert visitor.get("/api/v1/alerts").status_code == 401
    with pytest.raises(SignedOutError):
        site.sessions.who(token)


@pytest.mark.parametrize("role", Role)
def test_each_role_reads_what_its_pages_show(browser: Callable[..., TestClient], site: Application, role: Role) -> None:
    visitor, headers = browser(site=site), bearer(token_of(site, role))
    for path in PATHS:
        allowed = NEEDS[path] in MATRIX[role]
        assert visitor.get(path, headers=headers).status_code == (200 if allowed else 403), (role, path)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_nothing_can_be_written(browser: Callable[..., TestClient], site: Application, method: str) -> None:
    visitor, headers = browser(site=site), bearer(token_of(site, Role.COORDINATOR))
    for path in PATHS:
        assert visitor.request(method, path, headers=headers).status_code == 405


def test_alerts_are_those_of_the_command_line(
    browser: Callable[..., TestClient], site: Application, own_home: Path
) -> None:
    headers = bearer(token_of(site, Role.VIEWER))
    answer = browser(site=site).get("/api/v1/alerts?limit=7&decision=omission", headers=headers)
    options = ["--top", "7", "--decision", "omission", "--format", "json", "--home", str(own_home)]
    assert answer.json() == json.loads(CliRunner().invoke(cli, ["alerts", *options]).output)
    assert len(answer.json()) == 7


@pytest.mark.parametrize("layout", ["wide", "long"])
def test_labels_are_the_rows_of_the_export(
    browser: Callable[..., TestClient], site: Application, tmp_path: Path, layout: str
) -> None:
    headers = bearer(token_of(site, Role.RESEARCHER))
    answer = browser(site=site).get(f"/api/v1/studies/demo/labels?layout={layout}", headers=headers)
    n_rows = site.exports.labels("demo", "jsonl", layout, tmp_path / "labels.jsonl")
    assert answer.content == (tmp_path / "labels.jsonl").read_bytes()
    assert len(answer.text.splitlines()) == n_rows > 0


def test_each_answer_has_an_audit_row_of_the_person(browser: Callable[..., TestClient], site: Application) -> None:
    me = f"person {site.accounts.find('researcher').person_id}"
    visitor, headers = browser(site=site), bearer(token_of(site, Role.RESEARCHER))
    visitor.get("/api/v1/alerts", headers=headers)
    assert audit_rows(site)[0] == (me, "API read", "/api/v1/alerts")
    visitor.get("/api/v1/studies/demo/labels", headers=headers)
    assert audit_rows(site)[:2] == [(me, "API read", "/api/v1/studies/demo/labels"), (me, "exported", "study demo")]
    visitor.get("/api/v1/alerts", headers=bearer("unknown"))
    assert audit_rows(site)[0][2] == "/api/v1/studies/demo/labels"


def test_a_revoked_token_is_refused_from_the_next_request_on(
    browser: Callable[..., TestClient], site: Application
) -> None:
    visitor, headers = browser(site=site), bearer(token_of(site, Role.VIEWER))
    assert visitor.get("/api/v1/alerts", headers=headers).status_code == 200
    (row,) = site.api_tokens.all()
    site.api_tokens.revoke(row.token_id)
    assert visitor.get("/api/v1/alerts", headers=headers).status_code == 401
    with pytest.raises(NotFoundError, match="token list"):
        site.api_tokens.revoke(row.token_id)


def test_rights_are_those_of_the_moment(browser: Callable[..., TestClient], site: Application) -> None:
    person_id = site.accounts.find("researcher").person_id
    visitor, headers = browser(site=site), bearer(token_of(site, Role.RESEARCHER))
    site.accounts.set_role(person_id, Role.VIEWER)
    assert visitor.get("/api/v1/studies/demo/labels", headers=headers).status_code == 403
    site.accounts.set_units(person_id, ["Nowhere"])
    assert visitor.get("/api/v1/alerts", headers=headers).json() == []
    site.accounts.set_active(person_id, False)
    assert visitor.get("/api/v1/alerts", headers=headers).status_code == 401


def test_labels_of_other_units_are_refused(browser: Callable[..., TestClient], site: Application) -> None:
    site.accounts.set_units(site.accounts.find("researcher").person_id, ["Nowhere"])
    answer = browser(site=site).get(PATHS[2], headers=bearer(token_of(site, Role.RESEARCHER)))
    assert answer.status_code == 403
    assert "units" in answer.json()["error"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("alerts?limit=0", "limit"),
        ("alerts?limit=9999", "limit"),
        ("alerts?decision=perhaps", "decision"),
        ("alerts?top=3", "top"),
        ("studies?x=1", "x"),
        ("studies/demo/labels?layout=tall", "layout"),
    ],
)
def test_a_parameter_that_cannot_be_used_is_named(
    browser: Callable[..., TestClient], site: Application, query: str, said: str
) -> None:
    answer = browser(site=site).get(f"/api/v1/{query}", headers=bearer(token_of(site, Role.COORDINATOR)))
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(f"{said}: ")


def test_what_does_not_exist_is_404(browser: Callable[..., TestClient], site: Application) -> None:
    visitor, headers = browser(site=site), bearer(token_of(site, Role.COORDINATOR))
    for path in ("/api", "/api/v2/alerts", "/api/v1/patients", "/api/v1/studies/none/labels"):
        assert visitor.get(path, headers=headers).status_code in {403, 404}, path


def test_a_person_in_a_hurry_is_slowed_down_and_nobody_else(
    browser: Callable[..., TestClient], site: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "AT_ONCE", 3)
    moment = [1000.0]
    monkeypatch.setattr(api.time, "monotonic", lambda: moment[0])
    visitor, hurried, calm = (
        browser(site=site),
        bearer(token_of(site, Role.VIEWER)),
        bearer(token_of(site, Role.REVIEWER)),
    )
    found = [visitor.get("/api/v1/studies", headers=hurried).status_code for _ in range(5)]
    assert found == [200, 200, 200, 429, 429]
    assert visitor.get("/api/v1/studies", headers=calm).status_code == 200
    moment[0] += 1.0
    assert [visitor.get("/api/v1/studies", headers=hurried).status_code for _ in range(2)] == [200, 429]


def test_from_another_machine_it_does_not_answer(browser: Callable[..., TestClient], site: Application) -> None:
    headers = bearer(token_of(site, Role.VIEWER))
    assert browser(site=site, peer="10.0.0.9").get("/api/v1/alerts", headers=headers).status_code == 403


def test_the_description_names_every_address_and_parameter(browser: Callable[..., TestClient]) -> None:
    described = browser().get("/api/v1/openapi.json").json()
    assert set(described["paths"]) == {"/api" + path for path in api.ANSWERS}
    for path, (_, model, _) in api.ANSWERS.items():
        (operation,) = described["paths"]["/api" + path].values()
        assert operation["summary"]
        names = {one["name"] for one in operation["parameters"]}
        assert names == set(model.model_fields) | ({"slug"} if "{slug}" in path else set())
        assert all(one["description"] and one["schema"] for one in operation["parameters"])
    assert "$ref" not in json.dumps(described)
    assert described["security"] == [{"token": []}]


def test_tokens_expire_and_are_given_for_accounts_only(site: Application) -> None:
    person_id = site.accounts.find("viewer").person_id
    later = ApiTokens(site.database, lambda: datetime.now(UTC) + timedelta(days=30, seconds=1))
    token = site.api_tokens.create(person_id, "short", 30)
    assert site.api_tokens.who(token).person_id == person_id
    with pytest.raises(SignedOutError):
        later.who(token)
    assert [row.state for row in later.all()] == ["expired"]
    for purpose, days in (("", 30), ("x" * 81, 30), ("a\nb\x00", 30), ("x", 0), ("x", 367)):
        with pytest.raises(InvalidInputError):
            site.api_tokens.create(person_id, purpose, days)
    without_account = next(one for one in site.site.people() if not site.accounts.find(one.name).login)
    with pytest.raises(RefusedError, match="no account"):
        site.api_tokens.create(without_account.person_id, "x", 30)
    with pytest.raises(RefusedError, match="signs nothing"):
        site.api_tokens.use_confirmation(site.api_tokens.who(token))


def test_the_commands_print_a_token_once_and_list_it_without(site: Application, own_home: Path) -> None:
    home = ["--home", str(own_home)]
    made = CliRunner().invoke(cli, ["account", "token", "create", "viewer", "--purpose", "nightly", *home])
    token = made.stdout.strip()
    assert site.api_tokens.who(token).name == "Viewer"
    listed = CliRunner().invoke(cli, ["account", "token", "list", "--format", "json", *home]).output
    assert token not in listed
    (row,) = json.loads(listed)
    assert (row["name"], row["purpose"], row["state"]) == ("Viewer", "nightly", "valid")
    with site.database.read() as uow:
        assert token not in "".join(event["details"] for event in uow.audit.all())
    assert CliRunner().invoke(cli, ["account", "token", "revoke", str(row["token"]), *home]).exit_code == 0
    with pytest.raises(SignedOutError):
        site.api_tokens.who(token)
