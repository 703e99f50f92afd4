"""Who may do what: the matrix of roles and actions, and `requires`, which guards a use case by it.

Services carry their rules with them. Operators call them as they are; a page gets them through `guarded`, as copies
without any data, on which nothing works but a use case that says what it requires.
"""

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

from core.errors import NotFoundError, RefusedError
from core.vocabulary import AlertId, CaseId, PersonId, Role, SessionId, SignInSource

if TYPE_CHECKING:
    from db.database import Database

_NO_SESSION = SessionId(0)
COMMAND_LINE = "command line"
"""Who acts, as the audit trail says it, where nobody is signed in."""


class Action(StrEnum):
    """What a use case does, in words that a message can repeat."""

    SEE_ALERTS = "see alerts and the patients behind them"
    TRIAGE = "note what the ward did with an alert"
    SEE_RUNS = "see scoring runs"
    SEE_STUDIES = "see studies and how far they are"
    JUDGE = "judge cases"
    ADJUDICATE = "settle disagreements between reviewers"
    MANAGE_STUDIES = "set up, open and lock studies"
    MANAGE_TASKS = "change what is asked about"
    SEE_RESULTS = "see reports"
    SIGN = "sign reports"
    EXPORT = "export judgments and labels"
    MANAGE_PEOPLE = "manage people, roles and sessions"
    SEE_AUDIT = "see the audit trail"
    OPERATE = "see health and backups"


_LOOK = frozenset({Action.SEE_ALERTS, Action.SEE_RUNS, Action.SEE_STUDIES, Action.SEE_RESULTS})
MATRIX: Mapping[Role, frozenset[Action]] = {
    Role.VIEWER: _LOOK,
    Role.REVIEWER: _LOOK | {Action.TRIAGE, Action.JUDGE},
    Role.ADJUDICATOR: _LOOK | {Action.TRIAGE, Action.JUDGE, Action.ADJUDICATE},
    Role.COORDINATOR: _LOOK
    | {
        Action.TRIAGE,
        Action.JUDGE,
        Action.MANAGE_STUDIES,
        Action.MANAGE_TASKS,
        Action.SIGN,
        Action.EXPORT,
    },
    Role.RESEARCHER: _LOOK | {Action.SIGN, Action.EXPORT},
    # Keeps the site running and needs no patient for it; somebody who does both holds two roles.
    Role.ADMINISTRATOR: frozenset(
        {Action.SEE_RUNS, Action.SEE_STUDIES, Action.MANAGE_PEOPLE, Action.SEE_AUDIT, Action.OPERATE}
    ),
}
"""What each role may do; an action that is not listed is refused."""


def roles_that_may(action: Action) -> frozenset[Role]:
    """Return the roles that the matrix allows an action: the one rule for pages and use cases alike."""
    return frozenset(role for role, actions in MATRIX.items() if action in actions)


NOT_IN_DEMONSTRATION = frozenset({Action.MANAGE_PEOPLE})
"""The demonstration asks for no password, so it must not hand any out."""


@dataclass(frozen=True)
class Actor:
    """Who acts, as the session says; never as a browser says."""

    person_id: PersonId  # 0 for the visitor of a demonstration, who may act as any of its people
    name: str
    role: Role  # with several roles, the one named first
    units: frozenset[str] | None = None  # units whose patients the person may see; None for all of them
    session_id: SessionId = _NO_SESSION  # 0 in a demonstration
    source: SignInSource | None = None  # who vouched for the person; None in a demonstration
    confirmed_at: datetime | None = None  # when fresh credentials were given for a signature that is still to come
    login: str = ""  # by what name the source knows the person
    is_demo: bool = False  # the visitor of a demonstration: simulated patients, this machine only, no password
    further_roles: frozenset[Role] = frozenset()  # also held; rights combine

    @property
    def roles(self) -> frozenset[Role]:
        """Every role of the actor."""
        return self.further_roles | {self.role}

    def may(self, action: Action) -> bool:
        """Return whether one of the roles allows an action."""
        if self.is_demo:
            return action not in NOT_IN_DEMONSTRATION
        if action in MATRIX.get(self.role, frozenset()):
            return True
        return any(action in MATRIX.get(role, frozenset()) for role in self.further_roles)

    def sees(self, unit: str) -> bool:
        """Return whether patients of a unit are this person's to see."""
        return self.units is None or unit in self.units


def role_words(roles: Iterable[Role]) -> str:
    """Return roles in words, the least powerful first: "reviewer, administrator"."""
    held = frozenset(roles)
    return ", ".join(role.value for role in Role if role in held)


def require(actor: Actor, action: Action) -> None:
    """Raise RefusedError, naming role, action and whom to ask, for an action that the actor's role does not allow."""
    if not actor.may(action):
        if actor.is_demo:
            raise RefusedError(f"The demonstration cannot {action.value}; a site of your own can.")
        raise RefusedError(f"{_role_named(actor)} may not {action.value}. {_whom_to_ask(actor)} if you need to.")


def _whom_to_ask(actor: Actor) -> str:
    """Nobody changes the own roles and units, so an administrator needs another one."""
    return f"Ask {'another' if Role.ADMINISTRATOR in actor.roles else 'an'} administrator"


def _role_named(actor: Actor) -> str:
    return f"Your role{'s' if len(actor.roles) > 1 else ''}, {role_words(actor.roles)},"


def require_unit(actor: Actor, unit: str, thing: str) -> None:
    """Refuse a thing of a unit that is not the actor's as one that is not there: raise NotFoundError."""
    if not actor.sees(unit):
        raise NotFoundError(f"{thing} does not exist, or belongs to a unit that is not yours.")


def require_all_units(actor: Actor, units: Collection[str], thing: str) -> None:
    """Refuse what shows several units at once unless all are the actor's: a part would look like the whole."""
    if not all(actor.sees(unit) for unit in units):
        raise RefusedError(
            f"{thing} covers units that are not yours, and a part of it would look like the whole. "
            f"{_whom_to_ask(actor)} for those units, or a person who has them."
        )


class Caller(Protocol):
    """Whoever uses services from a page; everything is looked up again at every call."""

    def who(self) -> Actor:
        """Return who acts, as role, units and activity stand now; raise SignedOutError if nobody is signed in."""

    def spend_confirmation(self, actor: Actor) -> None:
        """Spend the fresh credentials of an actor for one act, or refuse."""

    def unit_of_alert(self, alert_id: AlertId) -> str:
        """Return the unit of an alert; raise NotFoundError if there is no such alert."""

    def unit_of_case(self, case_id: CaseId) -> str | None:
        """Return the unit of a case; None if there is no such case."""

    def units_of_study(self, slug: str) -> frozenset[str]:
        """Return the units of a study's cases; empty if there is no such study."""


class Service:
    """Base of the services: their public methods are use cases, each with a rule."""

    _guard: "tuple[Caller, Service] | None" = None
    """Set on the copy that a page gets: who calls, and the service behind it."""

    def __init__(self, database: "Database", clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock


def guarded(services: Mapping[str, object], caller: Caller) -> dict[str, Service]:
    """Return the services among some objects as a caller may use them.

    What is returned holds none of a service's data: a method without a rule finds nothing to work on.
    """
    found = {}
    for name, service in services.items():
        if isinstance(service, Service):
            found[name] = copy = object.__new__(type(service))
            vars(copy)["_guard"] = caller, service
    return found


UseCase = TypeVar("UseCase", bound=Callable[..., Any])
Scoped = Literal["alert_id", "targets", "case_id", "slug", "from_slug"]


@dataclass(frozen=True)
class Rule:
    """What a use case requires of whoever calls it from a page; see `requires`."""

    action: Action | None
    unit_of: Scoped | None = None
    all_units: bool = False
    fresh: bool = False
    operator_only: bool = False

    def admit(self, caller: Caller, given: inspect.BoundArguments) -> None:
        """Refuse a call, or write into its arguments who acts and which units the answer is kept to."""
        if self.operator_only:
            raise RefusedError("Only the command line does this. Ask whoever runs this site.")
        actor = caller.who()
        if self.action is not None:
            require(actor, self.action)
        _fill_in(actor, given)
        if actor.units is not None:
            self._keep_to_units(actor, caller, given.arguments)
        if self.fresh:
            caller.spend_confirmation(actor)

    def guard(self, use_case: UseCase) -> UseCase:
        """Return a use case that checks the rule when a page calls it; its signature stays."""
        rule, signature = self, inspect.signature(use_case)
        if self.unit_of is not None and signature.parameters[self.unit_of].default is not inspect.Parameter.empty:
            raise TypeError(f"{use_case.__qualname__}: '{self.unit_of}' is checked for its unit and takes no default.")

        @functools.wraps(use_case)
        def guarded_use_case(self: Service, *args: Any, **kwargs: Any) -> Any:
            if self._guard is None:
                return use_case(self, *args, **kwargs)
            caller, service = self._guard
            given = signature.bind(service, *args, **kwargs)
            rule.admit(caller, given)
            return use_case(*given.args, **given.kwargs)

        vars(guarded_use_case)["rule"] = rule
        return cast("UseCase", guarded_use_case)

    def _keep_to_units(self, actor: Actor, caller: Caller, given: Mapping[str, Any]) -> None:
        if self.all_units:
            raise RefusedError("This chooses among the patients of all units, and not all units are yours.")
        if self.unit_of is None:
            return
        thing = given[self.unit_of]
        match self.unit_of:
            case "case_id":
                require_unit(actor, caller.unit_of_case(thing) or "", f"Case {thing}")
            case "alert_id" | "targets":
                for alert_id in [thing] if self.unit_of == "alert_id" else thing:
                    require_unit(actor, caller.unit_of_alert(alert_id), f"Alert {alert_id}")
            case "slug" | "from_slug":
                require_all_units(actor, caller.units_of_study(thing), f"Study '{thing}'")


def requires(
    action: Action | None, *, unit_of: Scoped | None = None, all_units: bool = False, fresh: bool = False
) -> Callable[[UseCase], UseCase]:
    """Guard a use case of a service by a rule; its signature stays. Without an action it is for whoever is signed in.

    Parameters of these names are filled in, whatever a page gave: `person_id` with who acts, `actor` with what the
    audit trail calls who acts, `filters` with whose cases to judge are left out and which units are listed, `within`
    with those units.

    `unit_of` is the parameter that names an alert, a case, alerts or a study: an alert or a case must be of a unit that
    the actor may see, a study of such units only. `all_units` is for nobody who is limited to units: the use case
    chooses among all patients. `fresh`: credentials must have been given again, for this one act.
    """
    return Rule(action, unit_of, all_units, fresh).guard


def operator_only(use_case: UseCase) -> UseCase:
    """Refuse a use case to every page: it is for the command line alone."""
    return Rule(None, operator_only=True).guard(use_case)


def rule_of(use_case: object) -> Rule | None:
    """Return the rule of a method or property of a service; None if it has none."""
    found = use_case.fget if isinstance(use_case, property) else use_case
    rule = getattr(found, "rule", None)
    return rule if isinstance(rule, Rule) else None


def _fill_in(actor: Actor, given: inspect.BoundArguments) -> None:
    """Fill in who acts; nobody acts as somebody else but the visitor of a demonstration, among its people."""
    parameters, arguments = given.signature.parameters, given.arguments
    if actor.is_demo:
        if "actor" in parameters:
            arguments.setdefault("actor", "demonstration")
        return
    if "person_id" in parameters:
        claimed = arguments.get("person_id")
        if claimed is not None and claimed != actor.person_id:
            raise RefusedError(
                f"You are signed in as person {actor.person_id} and cannot act as person {claimed}. Reload the page."
            )
        arguments["person_id"] = actor.person_id
    if "actor" in parameters:
        arguments["actor"] = f"person {actor.person_id}"
    within = None if actor.units is None else tuple(sorted(actor.units))
    if "within" in parameters:
        arguments["within"] = within
    if "filters" in parameters:
        asked = arguments.get("filters", parameters["filters"].default)
        narrowed = {"reader": actor.person_id} | ({} if within is None else {"within": within})
        arguments["filters"] = replace(asked, **narrowed)
