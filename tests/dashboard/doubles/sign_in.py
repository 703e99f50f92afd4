"""Doubles of the sessions: the visitor of a demonstration, or somebody who is signed in; and the guard on doubles."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from alertreview.access.sessions import DEMONSTRATION
from alertreview.rights import Actor, Service, rule_of
from core.errors import SignedOutError

Double = TypeVar("Double", bound=type[Service])


def guarded_as(real: type[Service]) -> Callable[[Double], Double]:
    """Guard the use cases of a double by the rules of the service that it stands for."""

    def guard(double: Double) -> Double:
        for name, use_case in list(vars(double).items()):
            rule = rule_of(inspect.getattr_static(real, name, None))
            if rule is not None and isinstance(use_case, property):
                setattr(double, name, property(rule.guard(use_case.fget)))  # type: ignore[type-var]
            elif rule is not None:
                setattr(double, name, rule.guard(use_case))
        return double

    return guard


@dataclass
class FakeSessions:
    """Answers with one actor, None for nobody."""

    actor: Actor | None = DEMONSTRATION
    cookie_name: str = "alertreview_double"
    spent: int = 0

    def who(self, token: str | None, *, is_act: bool = True) -> Actor:
        del token, is_act
        if self.actor is None:
            raise SignedOutError("You are signed out. Sign in again.")
        return self.actor

    def use_confirmation(self, actor: Actor) -> None:
        del actor
        self.spent += 1

    def has_accounts(self) -> bool:
        return self.actor is None or not self.actor.is_demo


@dataclass
class FakeCaller:
    """Whoever these sessions answer with; nobody in these doubles is limited to units."""

    sessions: FakeSessions

    def who(self) -> Actor:
        return self.sessions.who(None)

    def spend_confirmation(self, actor: Actor) -> None:
        self.sessions.use_confirmation(actor)

    def unit_of_alert(self, alert_id: int) -> str:
        return f"unit of {alert_id}"

    def unit_of_case(self, case_id: int) -> str | None:
        return f"unit of {case_id}"

    def units_of_study(self, slug: str) -> frozenset[str]:
        return frozenset({slug})
