"""The one door to the use cases: who acts is read from the session, and a use case without a rule is refused."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from alertreview.access.roles import Actor, require, require_all_units, require_unit
from alertreview.access.rules import RULES, Rule
from alertreview.alerts.models import AlertDetail, FilterChoices, WorklistFilters
from core.errors import RefusedError
from db.database import Database

ACTING = "person_id"
"""A parameter of this name is the person who acts, in every use case."""
NAMED_ACTOR = "actor"
"""A parameter of this name is what the audit trail calls who acts."""
HIDDEN = "not shown"
"""Stands for a patient who may lie in a unit that is not the actor's."""


class Units(Protocol):
    """Says which unit a thing belongs to."""

    def of_alert(self, alert_id: int) -> str:
        """Return the unit of an alert."""

    def of_case(self, case_id: int) -> str | None:
        """Return the unit of a case; None when there is no such case."""

    def of_study(self, slug: str) -> frozenset[str]:
        """Return the units of a study's cases."""


class Door:
    """An application as one person may use it; every call asks again who that is.

    Parameters
    ----------
    inner : object
        The application, or one of its services.
    who : callable
        Gives the actor as the session, role and units stand at this moment; raises SignedOutError.
    units : Units
        Says which unit alerts, cases and studies belong to.
    spend : callable
        Spends the fresh credentials of an actor, or refuses.
    path : str
        Name of the service, with a dot after it.
    """

    __slots__ = ("_inner", "_path", "_spend", "_units", "_who")

    def __init__(
        self,
        inner: object,
        who: Callable[[], Actor],
        units: Units,
        spend: Callable[[Actor], None],
        path: str = "",
    ) -> None:
        self._inner, self._who, self._units, self._spend, self._path = inner, who, units, spend, path

    def __getattr__(self, name: str) -> Any:
        path = self._path + name
        if name.startswith("_"):
            raise AttributeError(name)
        rule = RULES.get(path)
        if rule is None:
            if hasattr(self._inner, name) and any(known.startswith(f"{path}.") for known in RULES):
                return Door(getattr(self._inner, name), self._who, self._units, self._spend, f"{path}.")
            if not hasattr(type(self._inner), name) and not hasattr(self._inner, name):
                raise AttributeError(name)
            raise RefusedError(f"No rule says who may use '{path}', so nobody may. Whoever develops this adds one.")
        if isinstance(getattr(type(self._inner), name, None), property) or not callable(getattr(self._inner, name)):
            _check(rule, self._who())
            return getattr(self._inner, name)
        return self._guarded(getattr(self._inner, name), rule)

    def _guarded(self, use_case: Callable[..., Any], rule: Rule) -> Callable[..., Any]:
        @functools.wraps(use_case)
        def call(*args: Any, **kwargs: Any) -> Any:
            actor = self._who()
            _check(rule, actor)
            given = _signature(use_case).bind(*args, **kwargs)
            _sign(given, actor)
            _read_as(rule, given, actor)
            self._keep_to_units(rule, given, actor)
            if rule.fresh:
                self._spend(actor)
            return _within(use_case(*given.args, **given.kwargs), actor)

        return call

    def _keep_to_units(self, rule: Rule, given: inspect.BoundArguments, actor: Actor) -> None:
        if actor.units is None:
            return
        if rule.all_units:
            raise RefusedError("This chooses among the patients of all units, and not all units are yours.")
        alerts = [thing.alert_id for thing in given.arguments.get(rule.alerts) or ()]
        if rule.alert and given.arguments.get(rule.alert) is not None:
            alerts.append(given.arguments[rule.alert])
        for alert_id in alerts:
            require_unit(actor, self._units.of_alert(alert_id), f"Alert {alert_id}")
        if rule.case and given.arguments.get(rule.case) is not None:
            case_id = given.arguments[rule.case]
            require_unit(actor, self._units.of_case(case_id) or "", f"Case {case_id}")
        if rule.study and given.arguments.get(rule.study) is not None:
            slug = given.arguments[rule.study]
            require_all_units(actor, self._units.of_study(slug), f"Study '{slug}'")
        if rule.filters:
            asked = given.arguments.get(rule.filters) or WorklistFilters()
            given.arguments[rule.filters] = replace(asked, within=tuple(sorted(actor.units)))


def _signature(use_case: Callable[..., Any]) -> inspect.Signature:
    """Return the parameters of a use case without itself."""
    method = getattr(use_case, "__func__", None)
    return inspect.signature(use_case) if method is None else _signature_of_method(method)


@functools.lru_cache(maxsize=512)
def _signature_of_method(method: Callable[..., Any]) -> inspect.Signature:
    whole = inspect.signature(method)
    return whole.replace(parameters=list(whole.parameters.values())[1:])


def behind_door(application: Any, token: str | None) -> Any:
    """Return an application as the person behind a token may use it.

    Parameters
    ----------
    application : Application
        The whole one.
    token : str or None
        From the cookie of the browser.
    """
    sessions = application.sessions
    return Door(application, lambda: sessions.who(token), application.unit_lookup, sessions.use_confirmation)


def _check(rule: Rule, actor: Actor) -> None:
    if rule.action is not None:
        require(actor, rule.action)


def _sign(given: inspect.BoundArguments, actor: Actor) -> None:
    """Put in who acts; nobody acts as somebody else but the visitor of a demonstration, among its people."""
    parameters = given.signature.parameters
    names_actor = NAMED_ACTOR in parameters
    if actor.is_demo:
        if names_actor:
            given.arguments.setdefault(NAMED_ACTOR, "demonstration")
        return
    if ACTING in parameters:
        claimed = given.arguments.get(ACTING)
        if claimed is not None and claimed != actor.person_id:
            raise RefusedError(
                f"You are signed in as person {actor.person_id} and cannot act as person {claimed}. Reload the page."
            )
        given.arguments[ACTING] = actor.person_id
    if names_actor:
        given.arguments[NAMED_ACTOR] = f"person {actor.person_id}"


def _read_as(rule: Rule, given: inspect.BoundArguments, actor: Actor) -> None:
    """Put into the filters of a list whose unjudged cases it leaves out; the visitor of a demonstration says whose."""
    if rule.filters and not actor.is_demo:
        asked = given.arguments.get(rule.filters) or WorklistFilters()
        given.arguments[rule.filters] = replace(asked, reader=actor.person_id)


def _within(answer: Any, actor: Actor) -> Any:
    """Leave out of an answer what belongs to other units: names of units, and whose stays the similar ones were."""
    if actor.units is None:
        return answer
    if isinstance(answer, FilterChoices):
        return replace(answer, units=tuple(unit for unit in answer.units if unit in actor.units))
    if isinstance(answer, AlertDetail):
        return replace(answer, neighbours=tuple(replace(one, patient_id=HIDDEN) for one in answer.neighbours))
    return answer


class UnitLookup:
    """Units of things.

    Parameters
    ----------
    database : Database
        Of the site.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_alert(self, alert_id: int) -> str:
        """Return the unit of an alert.

        Raises
        ------
        NotFoundError
            If there is no such alert.
        """
        with self._database.read() as uow:
            return uow.units.of_alert(alert_id)

    def of_case(self, case_id: int) -> str | None:
        """Return the unit of a case; None when there is no such case."""
        with self._database.read() as uow:
            return uow.units.of_case(case_id)

    def of_study(self, slug: str) -> frozenset[str]:
        """Return the units of a study's cases; empty for a study that is not there."""
        with self._database.read() as uow:
            return uow.units.of_study(slug)
