"""Who may do what: roles, actions, units of a hospital; one matrix, as data, and everything not in it is refused."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from core.errors import NotFoundError, RefusedError
from core.vocabulary import Role, SignInSource


class Action(StrEnum):
    """What a use case does, in words that a message can repeat."""

    SEE_ALERTS = "see alerts and the patients behind them"
    TRIAGE = "note what the ward did with an alert"
    SEE_RUNS = "see scoring runs"
    SEE_STUDIES = "see studies and how far they are"
    JUDGE = "judge cases"
    ADJUDICATE = "settle disagreements between reviewers"
    MANAGE_STUDIES = "set up, open and lock studies"
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
    Role.COORDINATOR: _LOOK | {Action.TRIAGE, Action.JUDGE, Action.MANAGE_STUDIES, Action.SIGN, Action.EXPORT},
    Role.RESEARCHER: _LOOK | {Action.SIGN, Action.EXPORT},
    # Keeps the site running and needs no patient for it; somebody who does both has two accounts.
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
    """Who acts, as the session says; never as a browser says.

    Parameters
    ----------
    person_id : int
        0 for the visitor of a demonstration, who may act as any of its people.
    name : str
    role : Role
    units : frozenset of str or None
        Units whose patients the person may see; None for all of them.
    session_id : int
        0 in a demonstration.
    source : SignInSource or None
        Who vouched for the person; None in a demonstration.
    confirmed_at : datetime or None
        When fresh credentials were given for a signature that is still to come.
    login : str
        By what name the source knows the person.
    is_demo : bool
        The visitor of a demonstration: simulated patients, this machine only, no password.
    """

    person_id: int
    name: str
    role: Role
    units: frozenset[str] | None = None
    session_id: int = 0
    source: SignInSource | None = None
    confirmed_at: datetime | None = None
    login: str = ""
    is_demo: bool = False

    def may(self, action: Action) -> bool:
        """Return whether the role allows an action."""
        if self.is_demo:
            return action not in NOT_IN_DEMONSTRATION
        return action in MATRIX.get(self.role, frozenset())

    def sees(self, unit: str) -> bool:
        """Return whether patients of a unit are this person's to see."""
        return self.units is None or unit in self.units


def require(actor: Actor, action: Action) -> None:
    """Refuse an action that the actor's role does not allow.

    Raises
    ------
    RefusedError
        It names the role, the action and whom to ask.
    """
    if not actor.may(action):
        if actor.is_demo:
            raise RefusedError(f"The demonstration cannot {action.value}; a site of your own can.")
        raise RefusedError(
            f"Your role, {actor.role.value}, may not {action.value}. Ask an administrator if you need to."
        )


def require_unit(actor: Actor, unit: str, thing: str) -> None:
    """Refuse a thing of a unit that is not the actor's; the answer is that of a thing that is not there.

    Raises
    ------
    NotFoundError
        It does not say whether the thing exists.
    """
    if not actor.sees(unit):
        raise NotFoundError(f"{thing} is not here, or belongs to a unit that is not yours.")


def require_all_units(actor: Actor, units: Collection[str], thing: str) -> None:
    """Refuse what shows several units at once unless all are the actor's: a part would look like the whole.

    Raises
    ------
    RefusedError
        If one of the units is not the actor's.
    """
    if not all(actor.sees(unit) for unit in units):
        raise RefusedError(
            f"{thing} covers units that are not yours, and a part of it would look like the whole. "
            "Ask an administrator for those units, or a person who has them."
        )


@dataclass(frozen=True)
class PersonView:
    """Somebody who may use the dashboard."""

    person_id: int
    name: str
    role: Role
    simulated: bool
