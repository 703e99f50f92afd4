"""Admin: people with their roles and units, who is signed in, what failed, what was done, health and backups."""

from collections.abc import Callable

import pandas as pd
import streamlit as st

from alertreview.access.accounts import AccountView
from alertreview.rights import Action, role_words
from core.errors import AlertReviewError, InvalidInputError
from core.number_texts import counted
from core.vocabulary import PersonId, Role, SignInSource
from dashboard import texts
from dashboard.components import admin_words, cards, site_health
from dashboard.context import application, command, signed_in

ALL = "All units"
SOME = "Only these units"
SAID = "admin_said"
CODE_LINE = "shown only now, valid for 24 hours; the person opens the dashboard and chooses “I have a one-time code”"


def page() -> None:
    """Draw the page."""
    app = application()
    if not signed_in().may(Action.MANAGE_PEOPLE) and not signed_in().is_demo:
        app.accounts.all()  # refused, with the sentence that says why
    with cards.header("Admin", "accounts, audit trail, health and backups", simulated=app.site.simulated):
        pass
    if signed_in().is_demo:
        st.info(
            "The demonstration asks for no password, so nobody is managed here. This command ends it; from then on "
            "everybody signs in:"
        )
        st.code(
            command('account create "Your Name" --role administrator --login yourname'), language=None, wrap_lines=True
        )
        return
    people = app.accounts.all()
    parts: dict[str, Callable[[], None]] = {
        "People": lambda: _people(people, app.accounts.units()),
        "Sessions": _sessions,
        "Failed sign-ins": _failures,
        "Audit": lambda: _audit(people),
        "Health": site_health.health,
        "Backups": site_health.backups,
    }
    for tab, draw in zip(st.tabs(list(parts)), parts.values(), strict=True):
        with tab:
            draw()


def _people(people: tuple[AccountView, ...], units: tuple[str, ...]) -> None:
    said = st.session_state.pop(SAID, None)
    if said is not None:
        kind, text, code = said
        (st.success if kind == "done" else st.error)(texts.plain(text, 300))
        if code:
            st.code(code, language=None)
            st.caption(CODE_LINE)
    table = pd.DataFrame(
        {
            "Name": [person.name for person in people],
            "Login": [person.login or "no account" for person in people],
            "Role": [role_words(person.roles) for person in people],
            "Units": [ALL if person.units is None else ", ".join(person.units) or "none" for person in people],
            "Signs in by": [_source_text(person.source) if person.source else "–" for person in people],
            "State": [_state(person) for person in people],
            "Open sessions": [person.n_sessions for person in people],
        }
    )
    cards.table(
        table, key=f"admin_people_{len(people)}", alt=f"{texts.plural(len(people), 'person', 'people')} of this site"
    )
    left, right = st.columns(2)
    with left, cards.card("Change a person"):
        _change(people, units)
    with right, cards.card("New account"):
        _create(units)


def _state(person: AccountView) -> str:
    if not person.active:
        return "deactivated"
    if person.locked_until is not None:
        return f"locked until {person.locked_until:%H:%M} UTC"
    return "one-time code not used yet" if person.awaits_code else "active"


def _change(people: tuple[AccountView, ...], units: tuple[str, ...]) -> None:
    by_id = {person.person_id: person for person in people}
    chosen = st.selectbox(
        "Person", list(by_id), key="admin_whom", format_func=lambda number: texts.shorten(by_id[number].name, 60)
    )
    person = by_id[chosen]
    with st.form(f"admin_change_{chosen}", border=False):
        held = [person.role, *sorted(person.further_roles)]
        st.multiselect("Roles; rights combine", list(Role), held, key=f"admin_role_{chosen}", format_func=str)
        _units_fields(f"admin_{chosen}", person.units, units)
        st.text_input("Reason, for the audit trail", key=f"admin_reason_{chosen}", max_chars=200)
        st.form_submit_button("Save roles and units", type="primary", on_click=_save, args=(chosen,))
    with st.container(horizontal=True):
        st.button("End all sessions", key=f"admin_end_{chosen}", on_click=_end, args=(chosen,))
        if person.source is SignInSource.LOCAL:
            st.button("New one-time code", key=f"admin_reset_{chosen}", on_click=_reset, args=(chosen,))
        words = "Deactivate" if person.active else "Activate"
        st.button(words, key=f"admin_active_{chosen}", on_click=_activate, args=(chosen, not person.active))


def _units_fields(key: str, mine: tuple[str, ...] | None, units: tuple[str, ...]) -> None:
    st.radio("Patients of", [ALL, SOME], 0 if mine is None else 1, key=f"{key}_scope", horizontal=True)
    offered = sorted({*units, *(mine or ())})
    label = "Which units, if only these (none: sees no patient)"
    st.multiselect(label, offered, list(mine or ()), key=f"{key}_units", placeholder="none")


def _chosen_units(key: str) -> tuple[str, ...] | None:
    return None if st.session_state[f"{key}_scope"] == ALL else tuple(st.session_state[f"{key}_units"])


def _create(units: tuple[str, ...]) -> None:
    with st.form("admin_new", border=False):
        st.text_input("Name, as printed under signatures", key="admin_new_name", max_chars=120)
        st.text_input("Login", key="admin_new_login", max_chars=120)
        st.multiselect("Roles; rights combine", list(Role), [Role.REVIEWER], key="admin_new_role", format_func=str)
        st.selectbox("Signs in by", list(SignInSource), key="admin_new_source", format_func=_source_text)
        _units_fields("admin_new", None, units)
        st.form_submit_button("Create account", type="primary", on_click=_create_clicked)


def _source_text(source: SignInSource) -> str:
    return {
        SignInSource.LOCAL: "a password of this site",
        SignInSource.OIDC: "an identity provider",
        SignInSource.PROXY: "the proxy in front of this site",
    }[source]


def _create_clicked() -> None:
    state = st.session_state

    def act() -> tuple[str, str]:
        first, further = _roles("admin_new_role")
        code = application().accounts.create(
            state["admin_new_name"],
            first,
            further_roles=further,
            login=state["admin_new_login"],
            source=state["admin_new_source"],
            units=_chosen_units("admin_new"),
        )
        return f"{state['admin_new_name']} now has an account.", code

    _say(act)


def _roles(key: str) -> tuple[Role, list[Role]]:
    chosen = st.session_state[key]
    if not chosen:
        raise InvalidInputError("Nothing was saved: a person needs at least one role. Choose one.")
    return chosen[0], chosen[1:]


def _save(whom_id: PersonId) -> None:
    state = st.session_state

    def act() -> tuple[str, str]:
        accounts, (first, further) = application().accounts, _roles(f"admin_role_{whom_id}")
        accounts.set_role(whom_id, first, further_roles=further, reason=state[f"admin_reason_{whom_id}"])
        accounts.set_units(whom_id, _chosen_units(f"admin_{whom_id}"))
        return "Roles and units are saved; they apply from the person's next action.", ""

    _say(act)


def _end(whom_id: PersonId) -> None:
    _say(lambda: (f"Ended: {counted(application().accounts.end_sessions(whom_id), 'session')}.", ""))


def _reset(whom_id: PersonId) -> None:
    _say(lambda: ("One-time code:", application().accounts.reset(whom_id)))


def _activate(whom_id: PersonId, active: bool) -> None:
    def act() -> tuple[str, str]:
        reason = st.session_state.get(f"admin_reason_{whom_id}", "")
        application().accounts.set_active(whom_id, active, reason=reason)
        return ("Active again." if active else "Deactivated; every session has ended."), ""

    _say(act)


def _say(act: Callable[[], tuple[str, str]]) -> None:
    """Run one act and keep its message for the next run."""
    try:
        st.session_state[SAID] = ("done", *act())
    except AlertReviewError as error:
        st.session_state[SAID] = ("refused", str(error), "")


def _sessions() -> None:
    sessions = application().accounts.sessions()
    st.caption("Sessions end after 15 idle minutes, and after 12 hours at the latest. Times in UTC.")
    table = pd.DataFrame(
        {
            "Person": [row.name for row in sessions],
            "Signed in by": [_source_text(row.source) for row in sessions],
            "Since": [f"{row.since:%d %b %H:%M}" for row in sessions],
            "Last act": [f"{row.last_seen_at:%d %b %H:%M}" for row in sessions],
            "Browser": [admin_words.browser(row.browser) for row in sessions],
        }
    )
    cards.table(table, key=f"admin_sessions_{len(sessions)}", alt=f"{texts.plural(len(sessions), 'open session')}")


def _failures() -> None:
    failures = application().accounts.failures()
    if not failures:
        st.caption("No failed sign-ins.")
        return
    table = pd.DataFrame(
        {
            "When, UTC": [f"{row.at:%d %b %Y %H:%M:%S}" for row in failures],
            "What": [row.what for row in failures],
            "Whom": [row.whom for row in failures],
            "Way": [row.way for row in failures],
        }
    )
    cards.table(table, key=f"admin_failures_{len(failures)}", alt=f"{texts.plural(len(failures), 'failed sign-in')}")


def _audit(people: tuple[AccountView, ...]) -> None:
    trail = application().audit_trail
    names = {f"person {person.person_id}": person.name for person in people}
    kinds = ["", *trail.actions()]
    action = st.selectbox("Action", kinds, key="admin_action", format_func=lambda one: one or "all")
    before = st.session_state.get("admin_before") if st.session_state.get("admin_before_of") == action else None
    found = trail.page(before=before, action=action)
    table = pd.DataFrame(
        {
            "No.": [row.sequence for row in found.entries],
            "When, UTC": [f"{row.at:%d %b %Y %H:%M:%S}" for row in found.entries],
            "Who": [row.name or row.actor for row in found.entries],
            "Act": [row.action for row in found.entries],
            "On": [names.get(row.object, row.object) for row in found.entries],
            "Details": [texts.shorten(admin_words.details(row.details), 300) for row in found.entries],
        }
    )
    cards.table(table, key=f"admin_audit_{action}_{before}", alt="Audit trail, newest first")

    def older() -> None:
        st.session_state["admin_before"], st.session_state["admin_before_of"] = found.before, action

    def newest() -> None:
        st.session_state.pop("admin_before", None)

    def check() -> None:
        report = application().audit_trail.verify()
        whole = f"Whole: {texts.plural(report.n_events, 'row')}, head {report.head[:16]}…"
        st.session_state["admin_chain"] = report.problem or whole

    with st.container(horizontal=True):
        st.button("Older", key="admin_older", disabled=found.before is None, on_click=older)
        st.button("Newest", key="admin_newest", disabled=before is None, on_click=newest)
        st.button("Verify the chain", key="admin_check", on_click=check)
    if "admin_chain" in st.session_state:
        st.caption(texts.plain(st.session_state["admin_chain"], 200))


page()
