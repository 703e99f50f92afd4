"""Every use case has a rule, the whole matrix holds at the services, and nobody acts as somebody else."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from alertreview.access.guard import HIDDEN, Door, behind_door
from alertreview.access.roles import MATRIX, NOT_IN_DEMONSTRATION, Action, Actor, require
from alertreview.access.rules import NOT_FOR_PAGES, RULES, Rule
from alertreview.access.sessions import DEMONSTRATION
from alertreview.alerts.models import FilterChoices, WorklistFilters
from alertreview.application import Application
from alertreview.settings import Settings
from core.errors import NotFoundError, RefusedError, SignedOutError
from core.vocabulary import Answer, Decision, Role
from db.database import Database
from tests.support.sign_in_desk import SignInDesk
from tests.support.stored_site import StoredSite

pytestmark = pytest.mark.checklist("B1")

EXPECTED = {
    Role.VIEWER: "see_alerts see_runs see_studies see_results",
    Role.REVIEWER: "see_alerts see_runs see_studies see_results triage judge",
    Role.ADJUDICATOR: "see_alerts see_runs see_studies see_results triage judge adjudicate",
    Role.COORDINATOR: "see_alerts see_runs see_studies see_results triage judge manage_studies sign export",
    Role.RESEARCHER: "see_alerts see_runs see_studies see_results sign export",
    Role.ADMINISTRATOR: "see_runs see_studies manage_people see_audit operate",
}
"""The matrix once more, written by hand."""


class Everything:
    """An application in which every use case exists and says that it ran."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        path = self._prefix + name
        if path not in RULES:
            return Everything(f"{path}.")
        named = [
            inspect.Parameter(one, inspect.Parameter.KEYWORD_ONLY, default=None) for one in RULES[path].parameters()
        ]

        def use_case(**given: object) -> str:
            return f"{path} ran"

        use_case.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
        return use_case


def door(
    actor: Actor | None, inner: object | None = None, *, spent: Callable[[Actor], None] = lambda _actor: None
) -> Door:
    def who() -> Actor:
        if actor is None:
            raise SignedOutError("You are signed out.")
        return actor

    class Units:
        of_alert = staticmethod(lambda alert_id: "Ward A" if alert_id == 1 else "Ward B")
        of_case = staticmethod({1: "Ward A", 2: "Ward B"}.get)
        of_study = staticmethod(lambda slug: frozenset({"Ward A"} if slug == "a" else {"Ward A", "Ward B"}))

    return Door(Everything() if inner is None else inner, who, Units(), spent)


def call(opened: Door, path: str, **given: object) -> object:
    use_case: Any = opened
    for name in path.split("."):
        use_case = getattr(use_case, name)
    return use_case(**given)


def person(role: Role, units: frozenset[str] | None = None) -> Actor:
    return Actor(person_id=7, name="Ada", role=role, units=units, session_id=1)


def test_the_matrix_is_the_one_that_was_agreed() -> None:
    assert {role: {action.name.lower() for action in actions} for role, actions in MATRIX.items()} == {
        role: set(words.split()) for role, words in EXPECTED.items()
    }
    assert set(MATRIX) == set(Role)


@pytest.mark.parametrize("role", Role)
def test_every_use_case_runs_or_is_refused_as_the_matrix_says(role: Role) -> None:
    opened = door(person(role))
    for path, rule in RULES.items():
        allowed = rule.action is None or rule.action.name.lower() in EXPECTED[role].split()
        if allowed:
            assert call(opened, path) == f"{path} ran"
        else:
            with pytest.raises(RefusedError, match=f"Your role, {role.value}, may not .* Ask an administrator"):
                call(opened, path)


def test_nobody_may_do_anything_who_is_not_signed_in() -> None:
    for path in RULES:
        with pytest.raises(SignedOutError):
            call(door(None), path)


def test_a_role_that_no_line_names_may_do_nothing() -> None:
    stranger = Actor(person_id=1, name="x", role="superuser")  # type: ignore[arg-type]
    for action in Action:
        with pytest.raises(RefusedError):
            require_(stranger, action)


def require_(actor: Actor, action: Action) -> None:
    if actor.may(action):
        return
    with pytest.raises(AttributeError):
        require(actor, action)  # not even a role that could be named
    raise RefusedError("refused")


def test_the_visitor_of_a_demonstration_may_do_all_but_hand_out_accounts() -> None:
    for path, rule in RULES.items():
        if rule.action in NOT_IN_DEMONSTRATION:
            with pytest.raises(RefusedError, match="demonstration cannot"):
                call(door(DEMONSTRATION), path)
        else:
            assert call(door(DEMONSTRATION), path) == f"{path} ran"


def public(kind: type) -> Iterator[tuple[str, Any]]:
    for name in dir(kind):
        if not name.startswith("_"):
            yield name, inspect.getattr_static(kind, name)


@pytest.fixture
def whole(sqlite_database: Database, tmp_path: Path) -> Application:
    return Application(Settings(tmp_path, "sqlite://"), sqlite_database)


def use_cases(application: Application) -> dict[str, Any]:
    """Every public method and property of the application and of its services, by path."""
    found = {name: getattr(Application, name) for name, _ in public(Application)}
    for name, service in vars(application).items():
        if name.startswith("_"):
            continue
        found[name] = None
        if type(service).__module__.startswith("alertreview") and name not in NOT_FOR_PAGES:
            found |= {f"{name}.{one}": getattr(type(service), one) for one, _ in public(type(service))}
            del found[name]
    return found


def test_every_public_method_of_the_application_and_its_services_has_a_rule(whole: Application) -> None:
    without = sorted(set(use_cases(whole)) - set(RULES) - NOT_FOR_PAGES)
    assert without == [], "add a line to alertreview/access/rules.py (or to NOT_FOR_PAGES) for each"


def test_every_rule_is_of_a_use_case_and_names_parameters_it_has(whole: Application) -> None:
    known = use_cases(whole)
    for path, rule in RULES.items():
        assert path in known, f"the rule of '{path}' is of nothing"
        if callable(known[path]):
            missing = set(rule.parameters()) - set(inspect.signature(known[path]).parameters)
            assert not missing, f"'{path}' has no parameter {missing}"


def test_every_use_case_that_reads_a_case_an_alert_or_a_whole_study_checks_its_unit(whole: Application) -> None:
    own = {"review.queue", "review.is_blinded", "review.next_case", "review.my_judgments", "exports.past"}
    own |= {"reports.signatures"}
    own |= {"studies.view", "panels.next_alert"}
    for path, use_case in use_cases(whole).items():
        rule = RULES.get(path)
        if rule is None or not callable(use_case) or path in own:
            continue
        parameters = inspect.signature(use_case).parameters
        checked = set(rule.parameters())
        for name in ("alert_id", "case_id", "filters"):
            assert name not in parameters or name in checked, f"'{path}' takes {name} and its rule does not check it"
        assert "slug" not in parameters or checked or rule.all_units, (
            f"'{path}' takes a study and its rule checks no unit"
        )


def test_what_has_no_rule_is_refused_and_what_is_not_there_is_not_there(whole: Application) -> None:
    opened = door(person(Role.COORDINATOR), whole)
    for name in ("close", "database", "settings", "sessions", "sign_in"):
        with pytest.raises(RefusedError, match=f"No rule says who may use '{name}', so nobody may"):
            getattr(opened, name)
    with pytest.raises(RefusedError, match="No rule"):
        _ = opened.audit_trail.export
    with pytest.raises(RefusedError, match="No rule"):
        _ = opened.exports.study
    for name in ("nothing_like_it", "_inner_secret", "__dict__"):
        with pytest.raises(AttributeError):
            getattr(opened, name)
    assert not hasattr(opened, "nothing_like_it")


class Acts:
    """Use cases that say as whom they ran; one object is all services."""

    def __init__(self) -> None:
        self.review = self.reports = self.worklist = self

    def submit_judgment(self, slug: str, person_id: int, case_id: int) -> tuple[str, int, int]:
        return slug, person_id, case_id

    def report(self, slug: str, person_id: int | None = None) -> tuple[str, int | None]:
        return slug, person_id

    def page(self, filters: WorklistFilters, after: str | None = None) -> WorklistFilters:
        return filters

    def filter_choices(self, run_id: int) -> FilterChoices:
        return FilterChoices(("Ward A", "Ward B"), ())

    def alert(self, alert_id: int, filters: WorklistFilters | None = None, person_id: int | None = None) -> object:
        return alert_id, filters, person_id

    def sign(self, slug: str, person_id: int, meaning: str) -> str:
        return meaning


def test_the_person_comes_from_the_session_and_nobody_acts_as_somebody_else() -> None:
    opened = door(person(Role.COORDINATOR), Acts())
    assert opened.review.submit_judgment("demo", 7, 3) == ("demo", 7, 3)
    assert opened.reports.report("demo") == opened.reports.report("demo", None) == ("demo", 7)
    for claimed in (8, 0, "7", True):
        with pytest.raises(RefusedError, match="cannot act as person"):
            opened.review.submit_judgment("demo", claimed, 3)
    visitor = door(DEMONSTRATION, Acts())
    assert visitor.review.submit_judgment("demo", 3, 1) == ("demo", 3, 1)
    assert visitor.reports.report("demo") == ("demo", None)


def test_units_narrow_lists_and_close_alerts_cases_and_whole_studies() -> None:
    limited = door(person(Role.COORDINATOR, frozenset({"Ward A"})), Acts())
    assert limited.worklist.page(WorklistFilters(unit="Ward B", within=("Ward B",))).within == ("Ward A",)
    assert limited.worklist.filter_choices(1).units == ("Ward A",)
    assert limited.worklist.alert(1)[1].within == ("Ward A",)
    assert limited.review.submit_judgment("x", 7, 1) == ("x", 7, 1)
    for act in (
        lambda: limited.worklist.alert(2),
        lambda: limited.review.submit_judgment("x", 7, 2),
        lambda: limited.review.submit_judgment("x", 7, 99),
    ):
        with pytest.raises(NotFoundError, match="is not here, or belongs to a unit that is not yours"):
            act()
    assert limited.reports.report("a") == ("a", 7)
    with pytest.raises(RefusedError, match="a part of it would look like the whole"):
        limited.reports.report("b")
    with pytest.raises(RefusedError, match="not all units are yours"):
        call(door(person(Role.COORDINATOR, frozenset({"Ward A"}))), "studies.create_study")
    nowhere = door(person(Role.VIEWER, frozenset()), Acts())
    assert nowhere.worklist.page(WorklistFilters()).within == ()


def test_a_signature_spends_fresh_credentials_after_every_other_check() -> None:
    spent: list[int] = []
    opened = door(person(Role.RESEARCHER), Acts(), spent=lambda actor: spent.append(actor.person_id))
    assert opened.reports.sign("a", 7, "I approve") == "I approve"
    assert spent == [7]
    with pytest.raises(RefusedError, match="cannot act as"):
        opened.reports.sign("a", 8, "I approve")
    with pytest.raises(RefusedError, match="may not sign"):
        door(person(Role.REVIEWER), Acts(), spent=lambda actor: spent.append(1)).reports.sign("a", 7, "x")
    assert spent == [7]


def test_rules_are_plain_data() -> None:
    assert all(isinstance(rule, Rule) for rule in RULES.values())
    assert all(isinstance(rule.action, Action | None) for rule in RULES.values())
    assert HIDDEN


def test_on_a_stored_site_roles_and_units_hold_through_the_whole_way(site: StoredSite, tmp_path: Path) -> None:
    desk = SignInDesk(site.database, site.clock)
    run_id = site.publish([site.alert(0, 0, 1, Decision.OMISSION), site.alert(1, 0, 2, Decision.OMISSION)])
    readers = site.study(6, 1, n_slots=1)
    desk.accounts.create("demo reader 0", Role.REVIEWER, login="rita", units=["Ward A"])
    token = desk.sign_in.with_code("rita", desk.accounts.reset(readers[0]), "four boats in winter")
    application = Application(Settings(tmp_path, "sqlite://"), site.database)
    for name in ("sessions", "accounts", "sign_in", "unit_lookup"):
        setattr(application, name, getattr(desk, name))
    application.review = site.review
    opened = behind_door(application, token)
    seen = WorklistFilters(run_id=run_id, alerts_per_patient_day=float("inf"), include_cut_windows=True)
    assert {row.unit for row in application.worklist.page(seen).rows} == {"Ward A", "Ward B"}
    assert opened.worklist.page(seen).rows == (), "all of them are still to be judged blindly"
    met = set()
    while (case := opened.review.next_case("demo", readers[0])) is not None:
        opened.review.submit_judgment(
            "demo", readers[0], case.case_id, answer=Answer.USUAL, version_seen=0, form_key=case.form_key
        )
        met.add(case.case_id)
    assert {row.unit for row in opened.worklist.page(seen).rows} == {"Ward A"}
    with site.database.read() as uow:
        study = uow.studies.by_slug("demo")
        assert met == uow.units.cases_within(study.id, ["Ward A"])
        other = min(uow.units.cases_within(study.id, ["Ward B"]))
    with pytest.raises(NotFoundError, match="unit that is not yours"):
        opened.review.case("demo", readers[0], other)
    with pytest.raises(RefusedError, match="may not export"):
        opened.exports.labels_download("demo", "csv", "long")
    desk.accounts.set_role(readers[0], Role.VIEWER)
    with pytest.raises(RefusedError, match="Your role, viewer, may not judge cases"):
        opened.review.next_case("demo", readers[0])
    desk.sessions.log_out(token)
    with pytest.raises(SignedOutError):
        opened.worklist.page(seen)
