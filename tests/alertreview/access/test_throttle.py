"""Throttling: attempts are refused before any work, locks hold where the failures came from, memory is bounded."""

import pytest

from alertreview.access import throttle
from alertreview.access.sign_in import MOST_FAILURES, WRONG
from alertreview.access.throttle import FAILURES_OF_ADDRESS, OF_ADDRESS, OF_ALL, Throttle, network_of
from core.errors import RefusedError
from tests.support.sign_in_desk import PASSWORD, SignInDesk
from tests.support.stored_site import Clock, StoredSite

HOME, ELSEWHERE = "192.0.2.1", "198.51.100.7"


@pytest.fixture
def desk(site: StoredSite) -> SignInDesk:
    return SignInDesk(site.database, site.clock)


def fail(desk: SignInDesk, address: str) -> None:
    with pytest.raises(RefusedError, match=WRONG[:30]):
        desk.sign_in.with_password("ada", "wrong", address=address)


@pytest.mark.checklist("B4")
def test_failures_close_an_account_where_they_come_from_and_nowhere_else(desk: SignInDesk, site: StoredSite) -> None:
    person = desk.account("ada")
    for _ in range(FAILURES_OF_ADDRESS + 3):
        fail(desk, ELSEWHERE)
    assert desk.sign_in.with_password("ada", PASSWORD, address=HOME)
    with pytest.raises(RefusedError):
        desk.sign_in.with_password("ada", PASSWORD, address=ELSEWHERE)
    assert desk.accounts.find("ada").locked_until is not None
    assert desk.acts(30).count(("sign-in", "account locked", f"person {person}")) == 1
    code = desk.accounts.reset(person)
    assert desk.accounts.find("ada").locked_until is None
    assert desk.sign_in.with_code("ada", code, PASSWORD, address=ELSEWHERE)


@pytest.mark.checklist("B4")
def test_failures_from_many_addresses_close_an_account_everywhere_in_the_end(desk: SignInDesk) -> None:
    desk.account("ada")
    for number in range(MOST_FAILURES):
        fail(desk, f"203.0.113.{number}")
    fail(desk, HOME)
    with pytest.raises(RefusedError):
        desk.sign_in.with_password("ada", PASSWORD, address=HOME)


@pytest.mark.checklist("B4")
def test_a_burst_begins_once_and_is_over_after_some_time(clock_of_test: Clock) -> None:
    limits = Throttle(clock_of_test)
    assert [limits.admit(ELSEWHERE) for _ in range(OF_ADDRESS.at_once)] == [(True, False)] * OF_ADDRESS.at_once
    assert [limits.admit(ELSEWHERE) for _ in range(200)] == [(False, True), *[(False, False)] * 199]
    assert limits.admit(HOME) == (True, False)
    clock_of_test.pass_hours(1)
    assert limits.admit(ELSEWHERE) == (True, False)


def test_all_addresses_together_have_a_limit_that_known_ones_do_not_meet(clock_of_test: Clock) -> None:
    limits = Throttle(clock_of_test)
    limits.succeeded(1, HOME)  # type: ignore[arg-type]
    admitted = sum(limits.admit(f"10.{n // 200}.{n % 200}.1")[0] for n in range(1000))
    assert admitted == OF_ALL.at_once
    assert limits.admit(HOME) == (True, False)


def test_memory_is_bounded(clock_of_test: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttle, "MOST_REMEMBERED", 50)
    limits = Throttle(clock_of_test)
    for number in range(500):
        limits.admit(f"10.0.{number // 250}.{number % 250}")
        limits.count(number, HOME)  # type: ignore[arg-type]
    assert len(limits._addresses) == len(limits._failures) == 50


@pytest.fixture
def clock_of_test() -> Clock:
    return Clock()


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
        ("x" * 500, "x" * 64),
    ],
)
def test_addresses_of_one_customer_count_as_one(address: str, network: str) -> None:
    assert network_of(address) == network


@pytest.mark.checklist("B4")
def test_an_address_is_known_for_half_a_day_after_a_sign_in(desk: SignInDesk, site: StoredSite) -> None:
    desk.account("ada")
    assert not desk.sign_in.throttle.knows(HOME)
    fail(desk, HOME)
    assert not desk.sign_in.throttle.knows(HOME)
    desk.sign_in.with_password("ada", PASSWORD, address=HOME)
    assert desk.sign_in.throttle.knows(HOME)
    assert not desk.sign_in.throttle.knows(ELSEWHERE)
    site.clock.pass_hours(13)
    assert not desk.sign_in.throttle.knows(HOME)
