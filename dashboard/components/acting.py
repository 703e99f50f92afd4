"""Who is reading in this session: who is signed in, or whom the visitor of a demonstration has chosen."""

from html import escape
from urllib.parse import quote

import streamlit as st

from alertreview.access.site import PersonView
from dashboard.context import acting_person, looking_person, people_who_look, people_who_read, read_as, signed_in
from dashboard.texts import shorten


def _changed() -> None:
    """Read as somebody else: the case in the address was the other one's."""
    read_as(st.session_state["w_person"])
    st.query_params.pop("case", None)


def reading_as() -> PersonView | None:
    """Draw the chooser "Reading as" and return the person; None when nobody may judge yet."""
    return _choose(people_who_read(), acting_person())


def looking_as() -> PersonView | None:
    """Draw the same chooser on pages that everybody may look at; None on a site without people."""
    return _choose(people_who_look(), looking_person())


def _choose(people: tuple[PersonView, ...], person: PersonView | None) -> PersonView | None:
    if person is None or not signed_in().is_demo:
        return person
    names = {p.person_id: shorten(p.name, 40) for p in people}
    if st.session_state.get("w_person") not in names or st.session_state.w_person != person.person_id:
        st.session_state["w_person"] = person.person_id
    st.selectbox(
        "Reading as",
        list(names),
        key="w_person",
        format_func=lambda person_id: names.get(person_id, "–"),
        label_visibility="collapsed",
        width=230,
        on_change=_changed,
        help="Reading as: in the demonstration you can be anybody; your own site asks you to sign in.",
    )
    return person


def confirm_link(target: str) -> None:
    """Draw the link to where fresh credentials are given for a signature; a demonstration asks for none."""
    if not signed_in().is_demo:
        base = str(st.get_option("server.baseUrlPath") or "").strip("/")
        address = escape(f"{'/' + base if base else ''}/confirm?next={quote(target, safe='')}")
        st.html(f'1. <a href="{address}" target="_self">Confirm your identity</a> 2. sign within five minutes.')
