"""Doubles of the sessions: the visitor of a demonstration, or somebody who is signed in."""

from dataclasses import dataclass

from alertreview.access.roles import Actor
from alertreview.access.sessions import DEMONSTRATION
from core.errors import SignedOutError


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


class NoUnits:
    """Nobody in these doubles is limited to units."""

    def of_alert(self, alert_id: int) -> str:
        return f"unit of {alert_id}"

    def of_case(self, case_id: int) -> str | None:
        return f"unit of {case_id}"

    def of_study(self, slug: str) -> frozenset[str]:
        return frozenset({slug})
