"""Signing in: right and wrong passwords, the lock, one-time codes, what others vouch for, and what the trail keeps."""

import json
import threading
from dataclasses import replace

import pytest

from alertreview.access.passwords import check_password, code_hash, new_code
from alertreview.access.sign_in import WRONG, SignIn
from alertreview.access.throttle import FAILURES_OF_ADDRESS
from core.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError, SignedOutError
from core.vocabulary import Role, SignInSource
from tests.support.sign_in_desk import PASSWORD, SignInDesk, minutes
from tests.support.stored_site import StoredSite, new_instances, new_snapshot, new_tasks

pytestmark = pytest.mark.checklist("A1")


@pytest.fixture
def desk(site: StoredSite) -> SignInDesk:
    return SignInDesk(site.database, site.clock)


def fail(desk: SignInDesk, login: str, password: str = "not the password") -> str:
    with pytest.raises(RefusedError) as refused:
        desk.sign_in.with_password(login, password)
    return str(refused.value)


def test_the_right_password_opens_a_session_and_the_database_keeps_neither_password_nor_token(
    desk: SignInDesk, site: StoredSite
) -> None:
    person = desk.account("ada")
    token = desk.enter(" ADA ")
    actor = desk.sessions.who(token)
    assert (actor.person_id, actor.name, actor.role, actor.units) == (person, "Person ada", Role.REVIEWER, None)
    with site.database.read() as uow:
        rows = [uow.accounts.all(), uow.sessions.open(seen_since=site.clock() - minutes(15), now=site.clock())]
        trail = uow.audit.latest(100)
    stored = f"{rows} {trail}"
    assert token not in stored
    assert PASSWORD not in stored
    assert "$argon2id$" in stored
    assert desk.acts(1) == [(f"person {person}", "signed in", f"session {actor.session_id}")]


def test_whatever_is_wrong_the_answer_and_the_work_are_the_same(desk: SignInDesk, site: StoredSite) -> None:
    desk.account("ada")
    gone = desk.account("gone")
    desk.accounts.set_active(gone, False)
    desk.accounts.create("New", Role.VIEWER, login="new")
    said, looks, rows = set(), [], []
    for login in ("ada", "nobody", "gone", "new", "", "ada'--", "\x00", "ä" * 1000):
        before, n_rows = desk.passwords.n_looks, len(desk.acts(500))
        said.add(fail(desk, login))
        looks.append(desk.passwords.n_looks - before)
        rows.append(len(desk.acts(500)) - n_rows)
    assert said == {WRONG}
    assert set(looks) == {1}
    assert set(rows) == {1}


def test_what_was_typed_as_a_login_is_never_kept(desk: SignInDesk, site: StoredSite) -> None:
    fail(desk, "my secret passphrase typed in the wrong field")
    with site.database.read() as uow:
        assert "secret" not in str(uow.audit.latest(5))
    assert desk.acts(1) == [("sign-in", "sign-in failed", "unknown account")]


def test_five_failures_lock_the_account_for_fifteen_minutes(desk: SignInDesk, site: StoredSite) -> None:
    person = desk.account("ada")
    for _ in range(FAILURES_OF_ADDRESS):
        fail(desk, "ada")
    assert ("sign-in", "account locked", f"person {person}") in desk.acts(2)
    assert fail(desk, "ada", PASSWORD) == WRONG
    assert desk.accounts.find("ada").locked_until is not None
    assert [failure.what for failure in desk.accounts.failures()].count("account locked") == 1
    site.clock.pass_hours(0.26)
    assert desk.sessions.who(desk.enter("ada")).person_id == person
    for _ in range(FAILURES_OF_ADDRESS - 1):
        fail(desk, "ada")
    assert desk.enter("ada")


def test_many_guesses_at_once_get_no_more_looks_than_one_after_another(desk: SignInDesk) -> None:
    desk.account("ada")
    looked_at: list[bool] = []
    real = desk.passwords.matches
    desk.passwords.matches = lambda stored, password: looked_at.append(stored is not None) or real(stored, password)  # type: ignore[func-returns-value,method-assign]
    threads = [threading.Thread(target=fail, args=(desk, "ada")) for _ in range(15)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(looked_at) == 15
    assert sum(looked_at) == FAILURES_OF_ADDRESS


def test_a_one_time_code_works_once_within_a_day_and_for_its_own_login(desk: SignInDesk, site: StoredSite) -> None:
    code = desk.accounts.create("Ada", Role.REVIEWER, login="ada")
    desk.accounts.create("Eve", Role.REVIEWER, login="eve")
    with pytest.raises(RefusedError, match="do not belong together"):
        desk.sign_in.with_code("eve", code, PASSWORD)
    with pytest.raises(InvalidInputError, match="12 to 200 characters"):
        desk.sign_in.with_code("ada", code, "short")
    spelled = code.lower().replace("-", " ")
    assert desk.sign_in.with_code("ada", spelled, PASSWORD)
    with pytest.raises(RefusedError, match="was used"):
        desk.sign_in.with_code("ada", code, "another " + PASSWORD)
    late = desk.accounts.reset(desk.accounts.find("ada").person_id)
    site.clock.pass_hours(24.1)
    with pytest.raises(RefusedError, match="too old"):
        desk.sign_in.with_code("ada", late, PASSWORD)


def test_a_reset_ends_every_session_and_the_old_password(desk: SignInDesk) -> None:
    person = desk.account("ada")
    token = desk.enter("ada")
    code = desk.accounts.reset(person, actor="person 99")
    with pytest.raises(SignedOutError):
        desk.sessions.who(token)
    assert fail(desk, "ada", PASSWORD) == WRONG
    assert desk.sign_in.with_code("ada", code, PASSWORD)
    assert ("person 99", "one-time code given", f"person {person}") in desk.acts()


def test_changing_the_password_takes_the_old_one_and_ends_the_other_sessions(desk: SignInDesk) -> None:
    desk.account("ada")
    here, there = desk.enter("ada"), desk.enter("ada")
    actor = desk.sessions.who(here)
    with pytest.raises(RefusedError):
        desk.sign_in.change_password(actor, "wrong", "a new one of five words")
    with pytest.raises(InvalidInputError, match="must not contain the login"):
        desk.sign_in.change_password(actor, PASSWORD, "I am ada and nobody else")
    desk.sign_in.change_password(actor, PASSWORD, "a new one of five words")
    assert desk.sessions.who(here) == actor
    with pytest.raises(SignedOutError):
        desk.sessions.who(there)
    assert fail(desk, "ada", PASSWORD) == WRONG


def test_an_outside_name_opens_only_the_account_of_its_own_source(desk: SignInDesk) -> None:
    desk.account("ada")
    desk.accounts.create("Vera", Role.VIEWER, login="vera@clinic", source=SignInSource.OIDC)
    with pytest.raises(RefusedError, match="no account here"):
        desk.sign_in.vouched(SignInSource.OIDC, "ada")
    with pytest.raises(RefusedError, match="no account here"):
        desk.sign_in.vouched(SignInSource.PROXY, "vera@clinic")
    assert fail(desk, "vera@clinic", PASSWORD) == WRONG
    actor = desk.sessions.who(desk.sign_in.vouched(SignInSource.OIDC, "Vera@Clinic"))
    assert (actor.name, actor.source, actor.login) == ("Vera", SignInSource.OIDC, "vera@clinic")
    with pytest.raises(RefusedError, match="sign in at your hospital"):
        desk.sign_in.change_password(actor, "x", PASSWORD)


@pytest.mark.checklist("A5")
def test_fresh_credentials_serve_one_signature_within_five_minutes(desk: SignInDesk, site: StoredSite) -> None:
    desk.account("ada", Role.COORDINATOR)
    actor = desk.sessions.who(desk.enter("ada"))
    with pytest.raises(RefusedError, match="fresh credentials"):
        desk.sessions.use_confirmation(actor)
    with pytest.raises(RefusedError):
        desk.sign_in.confirm(actor, "wrong")
    desk.sign_in.confirm(actor, PASSWORD)
    desk.sessions.use_confirmation(actor)
    with pytest.raises(RefusedError, match="fresh credentials"):
        desk.sessions.use_confirmation(actor)
    desk.sign_in.confirm(actor, PASSWORD)
    site.clock.pass_hours(0.1)
    with pytest.raises(RefusedError, match="fresh credentials"):
        desk.sessions.use_confirmation(actor)
    assert [act for _, act, _ in desk.acts()].count("credentials confirmed") == 2


def test_roles_are_changed_by_others_and_one_administrator_stays(desk: SignInDesk) -> None:
    root = desk.account("root", Role.ADMINISTRATOR)
    ada = desk.account("ada")
    desk.accounts.set_role(ada, Role.COORDINATOR, actor=f"person {root}", reason="leads the panel")
    with desk.database.read() as uow:
        row = uow.audit.latest(1)[0]
    assert (row.actor, row.action, row.object) == (f"person {root}", "role changed", f"person {ada}")
    details = json.loads(row.details)
    assert list(details.pop("sealed")) == [f"person {row.object.split()[-1]}"]
    assert details == {"before": "reviewer", "after": "coordinator", "reason": "leads the panel"}
    with pytest.raises(RefusedError, match="another administrator"):
        desk.accounts.set_role(root, Role.VIEWER, actor=f"person {root}")
    for act in (lambda: desk.accounts.set_role(root, Role.VIEWER), lambda: desk.accounts.set_active(root, False)):
        with pytest.raises(RefusedError, match="last administrator"):
            act()
    desk.account("second", Role.ADMINISTRATOR)
    desk.accounts.set_active(root, False, reason="left")
    assert not desk.accounts.find("root").active


def test_every_act_about_people_has_one_audit_row_and_the_chain_is_whole(desk: SignInDesk) -> None:
    ada = desk.account("ada")
    token = desk.enter("ada")
    steps = {
        "units changed": lambda: desk.accounts.set_units(ada, ["Ward A"]),
        "role changed": lambda: desk.accounts.set_role(ada, Role.VIEWER),
        "sessions ended": lambda: desk.accounts.end_sessions(ada),
        "person deactivated": lambda: desk.accounts.set_active(ada, False),
        "person activated": lambda: desk.accounts.set_active(ada, True),
    }
    for action, step in steps.items():
        before = len(desk.acts(500))
        step()
        assert [act for _, act, _ in desk.acts(len(desk.acts(500)) - before)] == [action]
        step()  # once more changes nothing
    assert [act for _, act, _ in desk.acts()].count("role changed") == 1
    with pytest.raises(SignedOutError):
        desk.sessions.who(token)
    with desk.database.read() as uow:
        uow.audit.require_whole()


def test_an_account_is_given_once_and_to_the_person_who_judged_before(desk: SignInDesk, site: StoredSite) -> None:
    reader = site.person("Rita Reader")
    desk.accounts.create("Rita Reader", Role.REVIEWER, login="rita")
    assert desk.accounts.find("rita").person_id == reader
    with pytest.raises(ConflictError, match="has an account already"):
        desk.accounts.create("Rita Reader", Role.REVIEWER, login="rita2")
    with pytest.raises(ConflictError, match="login 'rita' is taken"):
        desk.accounts.create("Other", Role.REVIEWER, login="RITA")
    with pytest.raises(NotFoundError, match="no person with login or name 'zoe'"):
        desk.accounts.find("zoe")
    for name in ("", "  ", "a\nb\x00", "x" * 121):
        with pytest.raises(InvalidInputError, match="printable characters"):
            desk.accounts.create(name, Role.VIEWER)


def test_codes_are_readable_and_hashed_as_typed() -> None:
    codes = {new_code() for _ in range(200)}
    assert len(codes) == 200
    assert all(code_hash(code) == code_hash(f" {code.lower()} ") for code in codes)
    assert not set("".join(codes)) & set("01IO")


@pytest.mark.parametrize("password", ["short", "x" * 201, "aaaaaaaaaaaaaaaa", "Person Ada has it"])
def test_passwords_that_are_easy_to_guess_are_refused_without_being_repeated(password: str) -> None:
    with pytest.raises(InvalidInputError, match="A password") as refused:
        check_password(password, "ada", "Person Ada")
    assert password not in str(refused.value)


WEAK = [
    "password1234",
    "qwertyuiop12",
    "p4ssw0rd2024!",
    "P@$$w0rd1234",
    "alertreview12",
    "AlertReview#1",
    "Alertreview2026!",
    "hospital2026!",
    "Krankenhaus1!",
    "patient12345",
    "Summer2024!!!",
    "Winter2025/26",
    "Welcome12345",
    "letmein12345",
    "iloveyou2024",
    "admin1234567",
    "dragonmonkey1",
    "passwordpassword",
    "123456789012",
    "987654321098",
    "0987654321ab",
    "abcdefghijkl",
    "1q2w3e4r5t6y",
    "1qaz2wsx3edc",
    "qazwsxedcrfv",
    "asdfghjkl123",
    "zxcvbnm12345",
    "poiuytrewq12",
    "qwertz123456",
    "abcabcabcabc",
    "aaaabbbbcccc",
    "xyxyxyxyxyxyabc",
]


@pytest.mark.parametrize("password", WEAK)
def test_common_words_keyboard_walks_repetitions_and_years_are_refused(password: str) -> None:
    with pytest.raises(InvalidInputError, match=r"guessed first|different characters"):
        check_password(password)


@pytest.mark.parametrize(
    "password",
    [
        PASSWORD,
        "correct horse battery staple",
        "Mein Hund frisst gern Apfel",
        "xK9#mQ2$vL7p",
        "nurse drinks tea at 4",
        "my password is a turtle",
        "Klinikbett am Fenster",
    ],
)
def test_sentences_and_random_characters_are_accepted(password: str) -> None:
    check_password(password, "ada", "Person Ada", site=["horse.turtle.example", "Station Apfel", "at"])


def test_names_of_host_records_and_units_do_not_make_a_password(desk: SignInDesk, site: StoredSite) -> None:
    record = replace(new_snapshot("c" * 64), mapping_name="eppendorf")
    instance = replace(new_instances(1)[0], unit="St. Marien")
    with desk.database.write() as uow:
        uow.snapshots.add(record, [instance], new_tasks(1))
        uow.commit()
    sign_in = SignIn(desk.database, desk.passwords, site.clock, ["review.charite.example"])
    code = desk.accounts.create("Person Ada", Role.REVIEWER, login="ada")
    for password in ("Eppendorf2026!", "Charite#2026!!", "St.Marien2026!", "3pp3nd0rfMarien"):
        with pytest.raises(InvalidInputError, match="names of this site"):
            sign_in.with_code("ada", code, password)
    token = desk.sign_in.with_code("ada", code, "Charite#2026!!")
    with pytest.raises(InvalidInputError, match="names of this site"):
        sign_in.change_password(desk.sessions.who(token), "Charite#2026!!", "Marien-Eppendorf-26")
