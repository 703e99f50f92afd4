"""Every use case has a rule, the whole matrix holds at the services, and nobody acts as somebody else."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from alertreview.access.sessions import DEMONSTRATION
from alertreview.alerts.models import WorklistFilters
from alertreview.application import Application, Services
from alertreview.rights import (
    MATRIX,
    NOT_IN_DEMONSTRATION,
    Action,
    Actor,
    Rule,
    Service,
    guarded,
    operator_only,
    require,
    require_all_units,
    requires,
    roles_that_may,
    rule_of,
)
from alertreview.settings import Settings
from core.errors import NotFoundError, RefusedError, SignedOutError
from core.vocabulary import Answer, Decision, Role, TriageState
from db.database import Database
from tests.support.documents import ROOT
from tests.support.sign_in_desk import SignInDesk
from tests.support.stored_site import StoredSite

pytestmark = pytest.mark.checklist("B1")

EXPECTED = {
    Role.VIEWER: "see_alerts see_runs see_studies see_results",
    Role.REVIEWER: "see_alerts see_runs see_studies see_results triage judge",
    Role.ADJUDICATOR: "see_alerts see_runs see_studies see_results triage judge adjudicate",
    Role.COORDINATOR: "see_alerts see_runs see_studies see_results triage judge manage_studies manage_tasks sign "
    "export",
    Role.RESEARCHER: "see_alerts see_runs see_studies see_results sign export",
    Role.ADMINISTRATOR: "see_runs see_studies manage_people see_audit operate",
}
"""The matrix once more, written by hand."""
FOR_OPERATORS = {
    "accounts.find", "accounts.owner_code", "audit_trail.export", "exchange.cases", "exchange.read",
    "exports.labels", "exports.study", "site.person_named", "studies.case_rows", "studies.create_study",
    "studies.votes",
}  # fmt: skip
ANY = WorklistFilters()
NO_UNIT_TO_CHECK = {
    "exports.past", "panels.next_alert", "reports.signatures", "review.is_blinded", "review.my_judgments",
    "review.next_case", "review.queue", "review.read_ahead", "studies.head", "studies.view",
}  # fmt: skip
"""Take a study, and show counts of it or the reader's own cases within the reader's units."""


class FakeCaller:
    """One actor, None for nobody; alert 1, case 1 and study "a" are Ward A's, all others also or only Ward B's."""

    def __init__(self, actor: Actor | None) -> None:
        self.actor = actor
        self.spent: list[int] = []

    def who(self) -> Actor:
        if self.actor is None:
            raise SignedOutError("You are signed out.")
        return self.actor

    def spend_confirmation(self, actor: Actor) -> None:
        self.spent.append(actor.person_id)

    def unit_of_alert(self, alert_id: int) -> str:
        return "Ward A" if alert_id == 1 else "Ward B"

    def unit_of_case(self, case_id: int) -> str | None:
        return {1: "Ward A", 2: "Ward B"}.get(case_id)

    def units_of_study(self, slug: str) -> frozenset[str]:
        return frozenset({"Ward A"} if slug == "a" else {"Ward A", "Ward B"})


def person(role: Role, units: frozenset[str] | None = None) -> Actor:
    return Actor(person_id=7, name="Ada", role=role, units=units, session_id=1)


@pytest.fixture
def whole(sqlite_database: Database, tmp_path: Path) -> Application:
    return Application(Settings(tmp_path, "sqlite://"), sqlite_database)


def use_cases(services: Services) -> dict[str, Any]:
    """Return every public method and property of the services, by service and name."""
    return {
        f"{name}.{method}": inspect.getattr_static(type(service), method)
        for name, service in vars(services).items()
        if isinstance(service, Service)
        for method in dir(type(service))
        if not method.startswith("_")
    }


@pytest.fixture
def rules(whole: Application) -> dict[str, Rule]:
    found = {path: rule_of(use_case) for path, use_case in use_cases(whole).items()}
    return {path: rule for path, rule in found.items() if rule is not None}


def admit(rule: Rule, actor: Actor | None) -> None:
    """Ask a rule about a call without arguments."""
    rule.admit(FakeCaller(actor), inspect.signature(lambda: None).bind())


def test_the_matrix_is_the_one_that_was_agreed() -> None:
    assert {role: {action.name.lower() for action in actions} for role, actions in MATRIX.items()} == {
        role: set(words.split()) for role, words in EXPECTED.items()
    }
    assert set(MATRIX) == set(Role)


@pytest.mark.parametrize("role", Role)
def test_every_use_case_is_open_or_refused_as_the_matrix_says(role: Role, rules: dict[str, Rule]) -> None:
    for rule in rules.values():
        if rule.operator_only:
            continue
        if rule.action is None or rule.action.name.lower() in EXPECTED[role].split():
            admit(rule, person(role))
        else:
            with pytest.raises(RefusedError, match=f"Your role, {role.value}, may not .* Ask an(other)? administrator"):
                admit(rule, person(role))


def test_nobody_may_do_anything_who_is_not_signed_in(rules: dict[str, Rule]) -> None:
    for rule in rules.values():
        with pytest.raises(RefusedError if rule.operator_only else SignedOutError):
            admit(rule, None)


@pytest.mark.parametrize("role", Role)
def test_an_administrator_is_not_sent_to_an_administrator(role: Role) -> None:
    action = next(action for action in Action if role not in roles_that_may(action))
    with pytest.raises(RefusedError) as refused:
        require(Actor(1, "Ada", role), action)
    with pytest.raises(RefusedError) as partly:
        require_all_units(Actor(1, "Ada", role, units=frozenset({"A"})), {"B"}, "The report")
    for error in (refused, partly):
        assert ("Ask another administrator" in str(error.value)) is (role is Role.ADMINISTRATOR)
        assert ("Ask an administrator" in str(error.value)) is (role is not Role.ADMINISTRATOR)


def test_a_role_that_no_line_names_may_do_nothing() -> None:
    stranger = Actor(person_id=1, name="x", role="superuser")  # type: ignore[arg-type]
    for action in Action:
        assert not stranger.may(action)
        with pytest.raises(RefusedError):
            require(stranger, action)


def test_the_visitor_of_a_demonstration_may_do_all_but_hand_out_accounts(rules: dict[str, Rule]) -> None:
    for rule in rules.values():
        if rule.action in NOT_IN_DEMONSTRATION:
            with pytest.raises(RefusedError, match="demonstration cannot"):
                admit(rule, DEMONSTRATION)
        elif not rule.operator_only:
            admit(rule, DEMONSTRATION)


def test_every_public_method_that_a_page_can_reach_has_a_rule(whole: Application, rules: dict[str, Rule]) -> None:
    assert sorted(set(use_cases(whole)) - set(rules)) == [], "put @requires(...) or @operator_only on each"
    assert {path for path, rule in rules.items() if rule.operator_only} == FOR_OPERATORS


def test_what_no_page_asks_for_is_for_operators_alone(rules: dict[str, Rule]) -> None:
    pages = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "dashboard").rglob("*.py"))
    for path, rule in rules.items():
        _, name = path.split(".")
        assert rule.operator_only or re.search(rf"\.{name}\b", pages), f"no page asks for '{path}': @operator_only"


def test_every_use_case_that_reads_a_case_an_alert_or_a_whole_study_checks_its_unit(
    whole: Application, rules: dict[str, Rule]
) -> None:
    for path, use_case in use_cases(whole).items():
        rule = rules[path]
        if isinstance(use_case, property) or rule.operator_only or path in NO_UNIT_TO_CHECK:
            continue
        parameters = inspect.signature(use_case).parameters
        for name in ("alert_id", "case_id"):
            assert name not in parameters or rule.unit_of == name, f"'{path}' takes {name} and does not check its unit"
        assert "slug" not in parameters or rule.unit_of or rule.all_units, f"'{path}' takes a study, checks no unit"


def test_a_page_reaches_the_services_and_nothing_else(whole: Application) -> None:
    page = whole.for_session(None)
    assert type(page) is Services
    assert vars(page).keys() == {name for name, found in vars(whole).items() if isinstance(found, Service)}
    for name in ("settings", "database", "sessions", "sign_in", "close", "finish_writing", "for_session"):
        assert hasattr(whole, name)
        assert not hasattr(page, name)
    for name, service in vars(page).items():
        assert vars(service).keys() == {"_guard"}, f"'{name}' hands data of the service to pages"


def test_a_method_without_a_rule_finds_nothing_to_work_on_and_operators_need_no_rule() -> None:
    class Forgotten(Service):
        def __init__(self) -> None:
            self._rows = ["of a patient"]

        def rows(self) -> list[str]:
            return self._rows

        @operator_only
        def written(self) -> list[str]:
            return self.rows()

    service = Forgotten()
    assert service.rows() == service.written() == ["of a patient"]
    page = cast("Forgotten", guarded({"it": service}, FakeCaller(person(Role.COORDINATOR)))["it"])
    with pytest.raises(AttributeError, match="no attribute '_rows'"):
        page.rows()
    with pytest.raises(RefusedError, match="Only the command line"):
        page.written()


def test_a_rule_names_a_parameter_that_every_call_must_give() -> None:
    with pytest.raises(KeyError, match="case_id"):

        @requires(Action.JUDGE, unit_of="case_id")
        def _without(self: Service) -> None: ...

    with pytest.raises(TypeError, match="takes no default"):

        @requires(Action.JUDGE, unit_of="case_id")
        def _optional(self: Service, case_id: int = 1) -> None: ...


class Acts(Service):
    """Use cases that say as whom they ran."""

    def __init__(self) -> None:
        """Work without a database."""

    @requires(Action.JUDGE, unit_of="case_id")
    def judge(self, slug: str, person_id: int, case_id: int) -> tuple[str, int, int]:
        return slug, person_id, case_id

    @requires(Action.SEE_RESULTS, unit_of="slug")
    def report(self, slug: str, person_id: int | None = None) -> tuple[str, int | None]:
        return slug, person_id

    @requires(Action.SEE_ALERTS)
    def page(self, filters: WorklistFilters, after: str | None = None) -> WorklistFilters:
        return filters

    @requires(Action.SEE_ALERTS)
    def choices(self, run_id: int, *, within: tuple[str, ...] | None = None) -> tuple[str, ...] | None:
        return within

    @requires(Action.SEE_ALERTS, unit_of="alert_id")
    def alert(
        self, alert_id: int, filters: WorklistFilters = ANY, person_id: int | None = None
    ) -> tuple[int, WorklistFilters, int | None]:
        return alert_id, filters, person_id

    @requires(Action.TRIAGE, unit_of="targets")
    def act(self, targets: dict[int, int]) -> dict[int, int]:
        return targets

    @requires(Action.MANAGE_STUDIES, all_units=True)
    def create(self, slug: str, *, actor: str = "command line") -> str:
        return actor

    @requires(Action.SIGN, unit_of="slug", fresh=True)
    def sign(self, slug: str, person_id: int, meaning: str) -> str:
        return meaning

    @requires(Action.SEE_RESULTS)
    def report_twice(self, slug: str) -> tuple[tuple[str, int | None], ...]:
        return self.report(slug), self.report(slug, 99)


def acts(actor: Actor | None, caller: FakeCaller | None = None) -> Acts:
    return cast("Acts", guarded({"acts": Acts()}, caller or FakeCaller(actor))["acts"])


def test_the_person_comes_from_the_session_and_nobody_acts_as_somebody_else() -> None:
    page = acts(person(Role.COORDINATOR))
    assert page.judge("demo", 7, 3) == ("demo", 7, 3)
    assert page.report("demo") == page.report("demo", None) == ("demo", 7)
    assert page.create("x") == page.create("x", actor="somebody else") == "person 7"
    assert page.page(WorklistFilters(reader=99)).reader == 7
    for claimed in (8, 0, "7", True):
        with pytest.raises(RefusedError, match="cannot act as person"):
            page.judge("demo", claimed, 3)  # type: ignore[arg-type]
    visitor = acts(DEMONSTRATION)
    assert visitor.judge("demo", 3, 1) == ("demo", 3, 1)
    assert visitor.report("demo") == ("demo", None)
    assert visitor.create("x") == "demonstration"
    assert visitor.page(WorklistFilters(reader=99)).reader == 99
    assert Acts().create("x") == "command line"


def test_who_acts_is_asked_again_at_every_call() -> None:
    caller = FakeCaller(person(Role.COORDINATOR))
    page = acts(None, caller)
    assert page.judge("demo", 7, 3) == ("demo", 7, 3)
    caller.actor = person(Role.VIEWER)
    with pytest.raises(RefusedError, match="viewer, may not judge"):
        page.judge("demo", 7, 3)
    caller.actor = None
    with pytest.raises(SignedOutError):
        page.judge("demo", 7, 3)


def test_one_use_case_that_calls_another_is_checked_once() -> None:
    assert acts(person(Role.VIEWER)).report_twice("demo") == (("demo", None), ("demo", 99))


def test_units_narrow_lists_and_close_alerts_cases_and_whole_studies() -> None:
    ward_a = frozenset({"Ward A"})
    limited = acts(person(Role.COORDINATOR, ward_a))
    assert limited.page(WorklistFilters(unit="Ward B", within=("Ward B",))).within == ("Ward A",)
    assert limited.choices(1) == limited.choices(1, within=("Ward B",)) == ("Ward A",)
    assert limited.alert(1)[1].within == ("Ward A",)
    assert limited.judge("x", 7, 1) == ("x", 7, 1)
    assert limited.act({1: 0}) == {1: 0}
    closed: tuple[Callable[[], object], ...] = (
        lambda: limited.alert(2),
        lambda: limited.judge("x", 7, 2),
        lambda: limited.judge("x", 7, 99),
        lambda: limited.act({1: 0, 2: 0}),
    )
    for call in closed:
        with pytest.raises(NotFoundError, match="does not exist, or belongs to a unit that is not yours"):
            call()
    assert limited.report("a") == ("a", 7)
    with pytest.raises(RefusedError, match="a part of it would look like the whole"):
        limited.report("b")
    with pytest.raises(RefusedError, match="not all units are yours"):
        limited.create("x")
    assert acts(person(Role.VIEWER, frozenset())).page(WorklistFilters()).within == ()
    everywhere = acts(person(Role.VIEWER))
    assert everywhere.page(WorklistFilters(within=("Ward B",))).within == ("Ward B",)
    assert everywhere.choices(1) is None


def test_a_signature_spends_fresh_credentials_after_every_other_check() -> None:
    caller = FakeCaller(person(Role.RESEARCHER))
    page = acts(None, caller)
    assert page.sign("a", 7, "I approve") == "I approve"
    assert caller.spent == [7]
    with pytest.raises(RefusedError, match="cannot act as"):
        page.sign("a", 8, "I approve")
    caller.actor = person(Role.REVIEWER)
    with pytest.raises(RefusedError, match="may not sign"):
        page.sign("a", 7, "x")
    assert caller.spent == [7]


def test_on_a_stored_site_roles_and_units_hold_through_the_whole_way(site: StoredSite, tmp_path: Path) -> None:
    desk = SignInDesk(site.database, site.clock)
    run_id = site.publish([site.alert(0, 0, 1, Decision.OMISSION), site.alert(1, 0, 2, Decision.OMISSION)])
    readers = site.study(6, 1, n_slots=1)
    desk.accounts.create("demo reader 0", Role.REVIEWER, login="rita", units=["Ward A"])
    token = desk.sign_in.with_code("rita", desk.accounts.reset(readers[0]), "four boats in winter")
    application = Application(Settings(tmp_path, "sqlite://"), site.database)
    for name in ("sessions", "accounts", "sign_in"):
        setattr(application, name, getattr(desk, name))
    application.review = site.review
    page = application.for_session(token)
    seen = WorklistFilters(run_id=run_id, alerts_per_patient_day=float("inf"), include_cut_windows=True)
    listed = application.worklist.page(seen).rows
    assert {row.unit for row in listed} == {"Ward A", "Ward B"}
    assert page.worklist.page(seen).rows == (), "all of them are still to be judged blindly"
    assert application.worklist.filter_choices(run_id).units == ("Ward A", "Ward B")
    assert page.worklist.filter_choices(run_id).units == ("Ward A",)
    met = set()
    while (case := page.review.next_case("demo", readers[0])) is not None:
        page.review.submit_judgment(
            "demo", readers[0], case.case_id, answer=Answer.USUAL, version_seen=0, form_key=case.form_key
        )
        met.add(case.case_id)
    assert {row.unit for row in page.worklist.page(seen).rows} == {"Ward A"}
    with site.database.read() as uow:
        study = uow.studies.by_slug("demo")
        assert met == uow.units.cases_within(study.id, ["Ward A"])
        other = min(uow.units.cases_within(study.id, ["Ward B"]))
    with pytest.raises(NotFoundError, match="unit that is not yours"):
        page.review.case("demo", readers[0], other)
    with pytest.raises(RefusedError, match="may not export"):
        page.exports.labels_download("demo", "csv", "long")
    with pytest.raises(RefusedError, match="Only the command line"):
        page.exports.study("demo", ["csv"], tmp_path / "out")
    both = {row.unit: row.alert_id for row in listed}
    for targets in ({both["Ward B"]: 0}, {both["Ward A"]: 0, both["Ward B"]: 0}):
        with pytest.raises(NotFoundError, match="unit that is not yours"):
            page.triage.act(readers[0], targets, TriageState.IN_REVIEW, form_key="press")
    assert page.triage.act(readers[0], {both["Ward A"]: 0}, TriageState.IN_REVIEW, form_key="press").n_done == 1
    desk.accounts.set_role(readers[0], Role.VIEWER)
    with pytest.raises(RefusedError, match="Your role, viewer, may not judge cases"):
        page.review.next_case("demo", readers[0])
    desk.sessions.log_out(token)
    with pytest.raises(SignedOutError):
        page.worklist.page(seen)
