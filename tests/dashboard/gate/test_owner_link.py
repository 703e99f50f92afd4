"""The first minute alone: a link signs the owner of a site without accounts in, once; a person of several roles."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from alertreview.configuration import WebSettings
from alertreview.rights import Action
from core.errors import RefusedError
from core.vocabulary import Role, SignInSource
from dashboard.gate.gate import Gate
from dashboard.launch import show_first_page
from db.database import Database
from tests.dashboard.guarded import BEHIND, MovingClock
from tests.support.sign_in_desk import PASSWORD, SignInDesk

pytestmark = pytest.mark.checklist("A1")


@pytest.fixture
def empty(tmp_path: Path, clock: MovingClock) -> Iterator[SignInDesk]:
    """A site on which nobody has an account."""
    with Database(f"sqlite:///{tmp_path / 'empty.db'}") as database:
        database.upgrade()
        yield SignInDesk(database, clock)


def visitor(desk: SignInDesk) -> TestClient:
    gate = Gate(BEHIND, WebSettings(), lambda: desk)  # type: ignore[arg-type, return-value]
    return TestClient(gate, "http://127.0.0.1:8501", client=("127.0.0.1", 5), follow_redirects=False)


def test_the_link_signs_the_owner_in_once_with_every_right(empty: SignInDesk) -> None:
    code = empty.accounts.owner_code("ada")
    browser = visitor(empty)
    entered = browser.get(f"/login/link?code={code}")
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    owner = empty.sessions.who(browser.cookies[empty.sessions.cookie_name])
    assert owner.name == "ada"
    assert all(owner.may(action) for action in Action)
    assert browser.get("/worklist").status_code == 200
    again = visitor(empty).get(f"/login/link?code={code}")
    assert again.status_code == 403
    assert "alertreview dashboard" in again.text
    assert ("person 1", "signed in", f"session {owner.session_id}") in empty.acts()


@pytest.mark.parametrize("code", ["", "0", "ABCD-EFGH-JKLM", "x" * 500])
def test_another_code_signs_nobody_in_and_five_lock(empty: SignInDesk, code: str) -> None:
    right = empty.accounts.owner_code("ada")
    for _ in range(5):
        assert visitor(empty).get("/login/link", params={"code": code}).status_code == 403
    assert visitor(empty).get(f"/login/link?code={right}").status_code == 403


def test_a_link_ends_with_the_next_start_and_after_a_day(empty: SignInDesk, clock: MovingClock) -> None:
    first, second = empty.accounts.owner_code("ada"), empty.accounts.owner_code("ada")
    assert visitor(empty).get(f"/login/link?code={first}").status_code == 403
    assert visitor(empty).get(f"/login/link?code={second}").status_code == 303
    third = empty.accounts.owner_code("ada")
    clock.added += timedelta(hours=25)
    assert visitor(empty).get(f"/login/link?code={third}").status_code == 403


def test_there_is_no_link_once_somebody_signs_in_in_another_way(empty: SignInDesk, desk: SignInDesk) -> None:
    assert desk.accounts.owner_code("root") == "", "ada has an account"
    code = empty.accounts.owner_code("ada")
    empty.sign_in.with_code("owner", code, PASSWORD)
    assert empty.accounts.owner_code("ada") == "", "the owner has a password"


def test_no_form_is_shown_where_nobody_has_a_password(empty: SignInDesk) -> None:
    for _ in range(2):
        shown = visitor(empty).get("/login").text
        assert "prints a link" in shown
        assert 'type="password"' not in shown
        code = empty.accounts.owner_code("ada")
        visitor(empty).get(f"/login/link?code={code}")
    empty.sign_in.with_code("owner", empty.accounts.owner_code("ada"), PASSWORD)
    assert 'type="password"' in visitor(empty).get("/login").text


def test_an_outside_login_called_owner_is_not_the_owner(empty: SignInDesk) -> None:
    empty.accounts.create("Eve", Role.VIEWER, login="owner", source=SignInSource.OIDC)
    assert empty.accounts.owner_code("ada") == ""


def test_rights_of_several_roles_add_up_and_are_told(empty: SignInDesk) -> None:
    empty.accounts.create("Root", Role.ADMINISTRATOR, login="root")
    code = empty.accounts.create("Vera", Role.VIEWER, login="vera", further_roles=[Role.ADMINISTRATOR])
    bo = empty.sessions.who(empty.sign_in.with_code("vera", code, PASSWORD))
    assert bo.may(Action.SEE_ALERTS)
    assert bo.may(Action.MANAGE_PEOPLE)
    assert not bo.may(Action.JUDGE)
    view = empty.accounts.find("vera")
    assert view.roles == {Role.VIEWER, Role.ADMINISTRATOR}
    empty.accounts.set_active(empty.accounts.find("root").person_id, False)
    with pytest.raises(RefusedError, match="last administrator"):
        empty.accounts.set_role(view.person_id, Role.VIEWER)
    empty.accounts.set_role(view.person_id, Role.RESEARCHER, further_roles=[Role.ADMINISTRATOR, Role.RESEARCHER])
    assert empty.accounts.find("vera").roles == {Role.RESEARCHER, Role.ADMINISTRATOR}
    assert empty.acts(1) == [("command line", "role changed", f"person {view.person_id}")]


def test_the_terminal_shows_a_link_only_where_there_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    show_first_page(8501, "/", open_browser=False)
    assert capsys.readouterr().out == ""
    show_first_page(8501, "/login/link?code=X", open_browser=False)
    assert "http://127.0.0.1:8501/login/link?code=X" in capsys.readouterr().out


def test_the_page_without_accounts_names_the_way_in(empty: SignInDesk) -> None:
    page = visitor(empty).get("/login").text
    assert "alertreview dashboard" in re.sub(r"<[^>]*>", "", page)
