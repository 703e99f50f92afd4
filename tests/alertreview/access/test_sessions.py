"""Sessions end when they should: idle, old, signed out, person changed; and the guard asks at every call."""

import dataclasses

import pytest

from alertreview.access.sessions import BROWSER_LENGTH
from core.errors import DatabaseUnavailableError, SignedOutError
from core.vocabulary import Role, SignInSource
from tests.support.sign_in_desk import SignInDesk, minutes
from tests.support.stored_site import StoredSite, new_instances, new_snapshot, new_tasks


@pytest.fixture
def desk(site: StoredSite) -> SignInDesk:
    opened = SignInDesk(site.database, site.clock)
    opened.account("ada")
    return opened


def is_in(desk: SignInDesk, token: str | None, *, is_act: bool = True) -> bool:
    try:
        return desk.sessions.who(token, is_act=is_act).person_id > 0
    except SignedOutError:
        return False


@pytest.mark.checklist("B2")
def test_fifteen_minutes_without_an_act_end_a_session_and_acts_keep_it(desk: SignInDesk, site: StoredSite) -> None:
    token = desk.enter("ada")
    for _ in range(10):
        site.clock.pass_hours(14 / 60)
        assert is_in(desk, token)
    site.clock.pass_hours(15.1 / 60)
    assert not is_in(desk, token)
    assert not is_in(desk, token)


@pytest.mark.checklist("B2")
def test_looking_is_no_act(desk: SignInDesk, site: StoredSite) -> None:
    token = desk.enter("ada")
    for _ in range(3):
        site.clock.pass_hours(4.9 / 60)
        assert is_in(desk, token, is_act=False)
    site.clock.pass_hours(0.4 / 60)
    assert not is_in(desk, token, is_act=False)


@pytest.mark.checklist("B2")
def test_twelve_hours_end_the_busiest_session(desk: SignInDesk, site: StoredSite) -> None:
    token = desk.enter("ada")
    n_quarters = 0
    while is_in(desk, token):
        site.clock.pass_hours(0.2)
        n_quarters += 1
    assert n_quarters * 0.2 == pytest.approx(12.0)


@pytest.mark.checklist("C7")
def test_a_clock_that_was_set_back_does_not_lengthen_a_session(desk: SignInDesk, site: StoredSite) -> None:
    token = desk.enter("ada")
    site.clock.pass_hours(-1)
    assert not is_in(desk, token)


@pytest.mark.checklist("B3")
@pytest.mark.parametrize("act", ["log_out", "everywhere", "deactivate", "administrator", "reset"])
def test_what_ends_a_session_ends_it_in_every_tab_at_the_next_act(desk: SignInDesk, act: str) -> None:
    person = desk.accounts.find("ada").person_id
    token, other = desk.enter("ada"), desk.enter("ada")
    {
        "log_out": lambda: desk.sessions.log_out(token),
        "everywhere": lambda: desk.sessions.log_out_everywhere(token),
        "deactivate": lambda: desk.accounts.set_active(person, False),
        "administrator": lambda: desk.accounts.end_sessions(person),
        "reset": lambda: desk.accounts.reset(person),
    }[act]()
    assert not is_in(desk, token)
    assert is_in(desk, other) is (act == "log_out")


@pytest.mark.checklist("B3")
def test_a_new_role_and_new_units_hold_at_the_next_act(desk: SignInDesk) -> None:
    person = desk.accounts.find("ada").person_id
    token = desk.enter("ada")
    desk.accounts.set_role(person, Role.VIEWER)
    desk.accounts.set_units(person, ["Ward B", "Ward A"])
    actor = desk.sessions.who(token)
    assert (actor.role, actor.units) == (Role.VIEWER, frozenset({"Ward A", "Ward B"}))
    desk.accounts.set_units(person, [])
    assert desk.sessions.who(token).units == frozenset()
    desk.accounts.set_units(person, None)
    assert desk.sessions.who(token).units is None


@pytest.mark.parametrize("token", [None, "", "x", "\x00", "ä" * 10_000, "\ud800"])
def test_no_other_token_opens_anything(desk: SignInDesk, token: str | None) -> None:
    assert not is_in(desk, token)


def test_the_demonstration_ends_with_the_first_account(site: StoredSite) -> None:
    desk = SignInDesk(site.database, site.clock)
    visitor = desk.sessions.who(None)
    assert (visitor.is_demo, visitor.person_id) == (True, 0)
    desk.account("ada")
    assert not is_in(desk, None)


def test_a_site_with_real_patients_is_no_demonstration(site: StoredSite) -> None:
    desk = SignInDesk(site.database, site.clock)
    real = dataclasses.replace(new_snapshot("b" * 64), simulated=False)
    with site.database.write() as uow:
        uow.snapshots.add(real, new_instances(2), new_tasks(1))
        uow.commit()
    assert not is_in(desk, None)
    with pytest.raises(SignedOutError, match="You are signed out"):
        desk.sessions.who(None)


def test_a_store_that_cannot_be_written_still_shows_and_only_ends_sessions_sooner(
    desk: SignInDesk, site: StoredSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = desk.enter("ada")

    def full(**_options: object) -> None:
        raise DatabaseUnavailableError("The disk is full.")

    monkeypatch.setattr(site.database, "write", full)
    site.clock.pass_hours(0.2)
    assert is_in(desk, token)
    site.clock.pass_hours(0.1)
    assert not is_in(desk, token)


def test_what_a_browser_says_of_itself_is_kept_short_and_printable(desk: SignInDesk) -> None:
    desk.accounts.create("Vera", Role.VIEWER, login="vera", source=SignInSource.PROXY)
    desk.sign_in.vouched(SignInSource.PROXY, "vera", "Firefox\n\x1b[31m" + "x" * 500)
    (session,) = desk.accounts.sessions()
    assert session.browser.startswith("Firefox[31mx")
    assert len(session.browser) == BROWSER_LENGTH
    assert (session.name, session.source) == ("Vera", SignInSource.PROXY)
    assert minutes(0) <= session.last_seen_at - session.since < minutes(1)
