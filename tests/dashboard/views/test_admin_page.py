"""The Admin page over a real store: people, roles and units are changed by an administrator, and only by one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from alertreview.access.audit_trail import AuditTrailService
from alertreview.rights import Actor
from alertreview.settings import load_settings
from core.vocabulary import Role
from dashboard import context, texts
from db.database import Database
from tests.dashboard.conftest import OpenPage, words
from tests.dashboard.doubles.application import FakeApplication
from tests.dashboard.doubles.sign_in import FakeSessions
from tests.support.sign_in_desk import SignInDesk
from tests.support.stored_site import Clock, StoredSite

HOSTILE = '<img src=x onerror="window.pwned=1">'


class Site(FakeApplication):
    """The double, with real accounts and a real trail behind it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.accounts = self.desk.accounts
        self.audit_trail = AuditTrailService(self.desk.database, self.clock)
        self.sessions = FakeSessions(self.actor)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[SignInDesk]:
    with Database(f"sqlite:///{tmp_path / 'site.db'}") as database:
        database.upgrade()
        site = StoredSite(database)
        desk = SignInDesk(database, Clock())
        desk.account("root", Role.ADMINISTRATOR)
        site.person("Rita Reader")
        yield desk


def double(desk: SignInDesk, role: Role = Role.ADMINISTRATOR) -> FakeApplication:
    number = desk.accounts.find("root").person_id
    actor = Actor(person_id=number, name="Person root", role=role, session_id=1)
    kind = type("Bound", (Site,), {"desk": desk, "actor": actor})
    made: FakeApplication = kind()
    return made


def press(page: AppTest, label: str) -> AppTest:
    next(button for button in page.button if button.label == label).click().run()
    assert not page.exception
    return page


def codes(page: AppTest) -> list[str]:
    """One-time codes on the page; what else stands in a box are commands."""
    return [one.value for one in page.code if not one.value.startswith("alertreview ")]


def test_every_table_says_in_words_what_it_holds(open_page: OpenPage, desk: SignInDesk) -> None:
    page = open_page("admin", double(desk))
    tables = [one.proto.alt for one in page.dataframe]
    assert len(tables) == 3, "people, sessions, audit; nobody failed to sign in, and there is no backup"
    assert tables[0] == "2 people of this site"
    assert all(tables)


def test_on_a_phone_no_column_of_a_table_is_out_of_sight(
    open_page: OpenPage, desk: SignInDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = open_page("admin", double(desk))
    cells = {str(cell) for one in wide.dataframe for row in one.value.astype(str).to_numpy() for cell in row if cell}
    monkeypatch.setattr(ContextProxy, "headers", {"User-Agent": "Mobile"})
    page = open_page("admin", double(desk))
    assert len(page.dataframe) == 0
    said = words(page).replace("\\", "")
    assert "Signs in by a password of this site" in said
    assert [cell for cell in cells if texts.shorten(cell, 300) not in said] == []


def test_an_administrator_creates_limits_and_deactivates_people(open_page: OpenPage, desk: SignInDesk) -> None:
    page = open_page("admin", double(desk))
    assert not page.exception
    page.text_input(key="admin_new_name").set_value(f"Vera {HOSTILE}")
    page.text_input(key="admin_new_login").set_value("Vera")
    page.multiselect(key="admin_new_role").set_value([Role.COORDINATOR])
    press(page, "Create account")
    vera = desk.accounts.find("vera")
    assert (vera.role, vera.units, vera.awaits_code) == (Role.COORDINATOR, None, True)
    assert len(codes(page)) == 1
    page.run()
    assert codes(page) == [], "the code is shown once"
    page.selectbox(key="admin_whom").set_value(vera.person_id).run()
    page.multiselect(key=f"admin_role_{vera.person_id}").set_value([Role.VIEWER])
    page.radio(key=f"admin_{vera.person_id}_scope").set_value("Only these units")
    page.multiselect(key=f"admin_{vera.person_id}_units").set_value(["Ward A"])
    press(page, "Save roles and units")
    assert (desk.accounts.find("vera").role, desk.accounts.find("vera").units) == (Role.VIEWER, ("Ward A",))
    press(page, "Deactivate")
    assert not desk.accounts.find("vera").active
    actor = f"person {desk.accounts.find('root').person_id}"
    acts = [(who, act) for who, act, _ in desk.acts()]
    for act in ("account created", "role changed", "units changed", "person deactivated"):
        assert (actor, act) in acts


def test_what_is_refused_is_said_and_changes_nothing(open_page: OpenPage, desk: SignInDesk) -> None:
    page = open_page("admin", double(desk))
    root = desk.accounts.find("root").person_id
    page.selectbox(key="admin_whom").set_value(root).run()
    press(page, "Deactivate")
    assert "Ask another administrator" in words(page)
    assert desk.accounts.find("root").active


def test_failed_sign_ins_and_the_trail_are_shown(open_page: OpenPage, desk: SignInDesk) -> None:
    with pytest.raises(Exception, match="wrong"):
        desk.sign_in.with_password("root", "no")
    page = open_page("admin", double(desk))
    shown = "\n".join(frame.value.to_string() for frame in page.dataframe)
    assert "sign-in failed" in shown
    assert "account created" in shown
    press(page, "Verify the chain")
    assert "Whole:" in words(page)


def test_the_trail_names_people_and_says_changes_in_words(open_page: OpenPage, desk: SignInDesk) -> None:
    site = double(desk)
    root = desk.accounts.find("root").person_id
    vera = desk.account("vera", Role.REVIEWER)
    desk.accounts.set_role(vera, Role.VIEWER, actor=f"person {root}", reason="left the panel")
    trail = next(one.value for one in open_page("admin", site).dataframe if "Act" in one.value)
    row = trail.set_index("Act").loc["role changed"]
    assert row["On"] == "Person vera"
    assert row["Details"] == "reviewer → viewer; because: left the panel"
    assert not trail["Details"].str.contains(r"[{}\"_]|sealed").any()


def test_the_site_is_examined_on_demand(open_page: OpenPage, desk: SignInDesk, demo_home: Path) -> None:
    site = double(desk)
    site.settings = load_settings(demo_home)
    page = open_page("admin", site)
    assert "There is no verified backup" in words(page)
    assert any(f"backup create --home {demo_home}" in code.value for code in page.code)
    press(page, "Examine the site")
    shown = words(page)
    assert ":orange-badge[warning] **Backups**" in shown
    assert f"Run: alertreview backup create --to DIR --home {demo_home}" in shown
    assert ":green-badge[good] **Audit trail**" in shown
    assert shown.index("**Backups**") < shown.index("**Audit trail**"), "what needs somebody comes first"


@pytest.mark.checklist("B1")
@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMINISTRATOR])
def test_nobody_else_sees_people(open_page: OpenPage, desk: SignInDesk, role: Role) -> None:
    page = open_page("admin", double(desk, role))
    assert f"Your role, {role.value}, may not manage people" in words(page)
    assert len(page.dataframe) == 0


def test_the_demonstration_says_how_it_ends_and_manages_nobody(open_page: OpenPage) -> None:
    page = open_page("admin", FakeApplication())
    assert 'account create "Your Name" --role administrator' in page.code[0].value
    assert len(page.dataframe) == 0


@pytest.mark.checklist("B3")
def test_a_page_whose_session_ended_shows_one_sentence_and_nothing_of_anybody(open_page: OpenPage) -> None:
    site = FakeApplication()
    page = open_page("worklist", site)
    assert len(page.dataframe) + len(page.metric) + len(page.button) > 0
    site.sessions.actor = None
    page.run()
    assert words(page).strip() == "You are signed out. Sign in again."
    assert len(page.dataframe) == 0


@pytest.mark.checklist("B3")
def test_a_window_forgets_the_person_before(open_page: OpenPage) -> None:
    site = FakeApplication()
    site.sessions.actor = Actor(1, "Ada", Role.REVIEWER, session_id=1)
    page = open_page("review", site)
    page.session_state["left by ada"] = "a comment"
    page.run()
    assert "left by ada" in page.session_state
    site.sessions.actor = Actor(2, "Bob", Role.REVIEWER, session_id=2)
    page.run()
    assert "left by ada" not in page.session_state
    assert context.READER_ROLES


def test_who_is_signed_in_reads_as_nobody_else(open_page: OpenPage) -> None:
    site = FakeApplication()
    site.sessions.actor = Actor(3, "Reader 2 (simulated)", Role.REVIEWER, session_id=1)
    page = open_page("review", site)
    assert not page.exception
    assert [box.key for box in page.selectbox if box.key == "w_person"] == []
    asked = {arguments[1] for name, arguments in site.calls if name in {"next_case", "queue"} and len(arguments) > 1}
    assert asked <= {3}


@pytest.mark.parametrize("n_more", [0, 20])
def test_a_table_that_scrolls_says_how_many_rows_it_has(desk: SignInDesk, open_page: OpenPage, n_more: int) -> None:
    site = StoredSite.reopen(desk.database)
    for number in range(n_more):
        site.person(f"Person {number}")
    shown = open_page("admin", double(desk))
    assert (f"{len(shown.dataframe[0].value)} rows; the table scrolls" in words(shown)) is (n_more > 0)
    assert len(shown.dataframe[0].value) > n_more
