"""Home: what to go on with, the studies, and where the alerts are."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import repeat
from zoneinfo import ZoneInfo

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from alertreview.access.site import PersonView
from alertreview.alerts.models import WorklistFilters, WorklistPage
from alertreview.alerts.triage_models import TriageChoice
from alertreview.review.models import QueueView
from alertreview.rights import Action
from alertreview.scoring.models import RunView
from alertreview.studies.models import StudyView
from core.vocabulary import Split
from dashboard import texts
from dashboard.charts.bars import alerts_by_unit
from dashboard.components import cards, first_steps, links
from dashboard.components.filters import PAGE_DEFAULTS
from dashboard.components.studies.choice import studies_to_read
from dashboard.context import acting_id, acting_person, application, colours, command, is_phone, may

MOST_UNITS = 8
STUDY_WIDTHS = [2, 5, 4, 4]
TOP = 5


def page() -> None:
    """Draw the page."""
    app = application()
    run = app.worklist.run()
    person = acting_person()
    if run is None:
        cards.nothing_published(app.site.simulated)
        _checks_card()
        return
    now = datetime.now(ZoneInfo(run.site_timezone))
    line = texts.joined(f"{now:%A} {texts.day(now)}", f"scoring run finished {texts.day_time(run.published_at)}")
    with cards.header(_greeting(now, person), line, simulated=app.site.simulated):
        pass
    first_steps.draw()
    _checks_card()
    studies = app.studies.all()
    left, right = st.columns([7, 5])
    with left:
        _continue_cards(person, studies)
        _studies_card(person, studies)
        filters, words = _shown(run, now)
        _changed_card(run, filters, studies, now)
        _run_card(run)
    with right:
        _units_card(filters, words)
        _highest_card(app.worklist.page(filters, limit=TOP), links.params_of(filters, latest_run=run.run_id), words)
    if app.site.simulated:
        # Without a seed: that of a run is not that of the simulation.
        words = "All patients, scores and readers marked as simulated on this site are made up."
        st.markdown(f":small[{cards.muted(f'{words} Nothing here describes a real person.')}]")


def _checks_card() -> None:
    """Draw what is wrong with the last import, for whoever may act on it, until it is right or accepted."""
    checks = application().catalogue.open_checks() if may(Action.MANAGE_TASKS) else ()
    if not checks:
        return
    red = any(check.is_red for check in checks)
    second = "nothing is scored until the red ones are right or accepted" if red else "not accepted yet"
    with cards.card("Checks of the last import", second, key="import-checks"):
        for check in checks:
            cards.check_line(check.name, check.sentence, check.effect, is_red=check.is_red)
        names = " ".join(f"--accept {check.name}" for check in checks)
        st.markdown(cards.muted("Correct the source or the mapping and import again, or accept them with the reason:"))
        st.code(command(f'score {names} --reason "WHY"'), language=None, wrap_lines=True)


def _greeting(now: datetime, person: PersonView | None) -> str:
    part = "Good morning" if now.hour < 12 else "Good afternoon" if now.hour < 18 else "Good evening"
    return f"{part}, {texts.plain(person.name, 60)}" if person is not None else part


def _continue_cards(person: PersonView | None, studies: tuple[StudyView, ...]) -> None:
    """Draw a card for each study in which cases wait for the reader, the one to go on with first."""
    lists = studies_to_read(studies, person)
    mine = [(study, queue) for study, queue in lists if queue is not None and queue.is_reader]
    if not mine:
        with cards.card("Reading list"):
            why = "No study is open." if not lists else "You are not a reader of an open study."
            st.markdown(cards.muted(f"{why} A coordinator opens studies and adds readers."))
    for number, (study, queue) in enumerate([one for one in mine if one[1].n_left] or mine[:1]):
        _continue_card(study, queue, is_first=number == 0)


def _continue_card(study: StudyView, queue: QueueView, *, is_first: bool) -> None:
    with cards.card(key="continue" if is_first else f"continue-{study.slug}"):
        with st.container(horizontal=True, vertical_alignment="center"):
            with st.container(gap="xsmall", width="stretch"):
                st.markdown(f"**{texts.plain(texts.study_name(study), 60)}** {cards.muted('your reading list')}")
                st.markdown(f"**{_queue_sentence(queue)}**")
            if queue.n_left and st.button(
                "Continue reviewing" if queue.n_submitted else "Start reviewing",
                key="home_continue" if is_first else f"home_continue_{study.slug}",
                type="primary" if is_first else "secondary",
                icon=":material/play_arrow:",
            ):
                st.switch_page("views/review.py", query_params={"study": study.slug})
        st.progress(min(queue.n_submitted / max(queue.n_mine, 1), 1.0))
        way = "here without score, or on the page of each alert" if study.is_open_panel else "blinded"
        parts = [f"{queue.n_later:,} marked for later" if queue.n_later else "", f"{way}, in your own fixed order"]
        st.markdown(f":small[{cards.muted(texts.joined(*parts))}]")


def _queue_sentence(queue: QueueView) -> str:
    if queue.n_mine == 0:
        return "Nothing assigned yet; ask the coordinator of the study"
    left = f"{queue.n_left:,} left, {texts.minutes_left(queue.n_left)}" if queue.n_left else "all done"
    return f"{queue.n_submitted:,} of {texts.plural(queue.n_mine, 'case')} read, {left}"


def _studies_card(person: PersonView | None, studies: tuple[StudyView, ...]) -> None:
    with cards.card("Studies"):
        if not studies:
            st.markdown(cards.muted("There is no study yet. A coordinator creates one on the Studies page."))
            return
        if not is_phone():
            with _line(STUDY_WIDTHS) as cells:
                for heading in ("State", "Study", "My cases", "All cases"):
                    next(cells).markdown(f":small[{cards.muted(heading)}]")
        for study in studies:
            _study_line(study, person)


def _study_line(study: StudyView, person: PersonView | None) -> None:
    queue = application().review.queue(study.slug, person.person_id) if person is not None else None
    mine = f"{queue.n_submitted:,} of {queue.n_mine:,} read" if queue is not None and queue.n_mine else ""
    with _line(STUDY_WIDTHS) as cells:
        with next(cells):
            st.badge(texts.STATUS_TEXTS[study.status], color=texts.STATUS_COLOURS[study.status])
        with next(cells):
            st.page_link(
                "views/studies.py",
                label=f":primary[{texts.plain(texts.study_name(study), 40)}]",
                query_params={"study": study.slug},
            )
        with next(cells):
            st.markdown(f":small[{mine}]", width="content")
        if not is_phone():
            next(cells).markdown(f":small[{study.n_complete:,} of {study.n_cases:,} complete]")


@contextmanager
def _line(widths: list[int]) -> Iterator[Iterator[DeltaGenerator]]:
    """Return one line of a list: columns, or a horizontal box on a phone."""
    if is_phone():
        box = st.container(horizontal=True, vertical_alignment="center", gap="small")
        yield repeat(box)
    else:
        yield iter(st.columns(widths, vertical_alignment="center"))


def _changed_card(run: RunView, filters: WorklistFilters, studies: tuple[StudyView, ...], now: datetime) -> None:
    yesterday = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
    moved = application().triage.moved_by_others(yesterday, filters)
    states = ", ".join(f"{n:,} {texts.TRIAGE_TEXTS[state].lower()}" for state, n in moved.items())
    lines = [
        _alerts_sentence(run, filters, yesterday),
        f"{texts.plural(sum(moved.values()), 'alert')} moved by colleagues: {states}" if moved else "",
        *(
            f"{texts.plain(texts.study_name(study), 60)} {word} {texts.short_time(when)}"
            for study in studies
            for word, when in (("opened", study.opened_at), ("locked", study.locked_at))
            if when is not None and when >= yesterday
        ),
    ]
    if not any(lines[1:]):
        lines.append("No alert moved by colleagues, no study opened or locked")
    with cards.card("What changed", f"since yesterday, {texts.short_day(yesterday)}"):
        st.markdown("\n".join(f"- {line}" for line in lines if line))


def _alerts_sentence(run: RunView, filters: WorklistFilters, yesterday: datetime) -> str:
    """Compare the alerts within the budget with yesterday's where the lists are of today, else with the run before.

    Whatever was done with them: else the older ones would be fewer because they were closed.
    """
    app = application()

    def count(shown: WorklistFilters) -> int:
        shown = replace(shown, triage=TriageChoice.ANY)
        return sum(omissions + commissions for _, omissions, commissions in app.alert_lists.units(shown))

    n_now = count(filters)
    said = f"{texts.plural(n_now, 'alert')} within the budget, closed ones included"
    days = app.worklist.filter_choices(run.run_id).days
    if filters.first_day is not None:
        if days is None or days[0] > yesterday.date():
            return said
        n_before = count(replace(filters, first_day=yesterday.date(), last_day=yesterday.date()))
        before = "yesterday"
    else:
        runs = app.worklist.runs(2)
        if len(runs) < 2:
            return f"{said}, in the first run of this site"
        n_before = count(replace(filters, run_id=runs[1].run_id))
        before = f"in the run of {texts.short_time(runs[1].published_at)}"
    if n_now == n_before:
        return f"{said}, as many as {before}"
    return f"{said}, {abs(n_now - n_before):,} {'more' if n_now > n_before else 'fewer'} than {before}"


def _run_card(run: RunView) -> None:
    with cards.card("What was scored"):
        n_tasks = run.n_tasks_scored + run.n_tasks_left_out
        st.markdown(
            f"- {_instances_sentence(run)}\n"
            f"- {run.n_tasks_scored:,} of {texts.plural(n_tasks, 'task')} scored\n"
            f"- {texts.plural(run.n_alerts, 'alert')} listed, scaled score {texts.score(run.floor)} or more"
        )


def _instances_sentence(run: RunView) -> str:
    """Say what was compared with what: in folds, each instance is recent once and past for the other patients."""
    if run.split == Split.FOLDS:
        return f"{texts.plural(run.n_recent, 'instance')}, each compared with those of other patients"
    return f"{texts.plural(run.n_recent, 'recent instance')}, compared with {run.n_past:,} past ones"


def _units_card(filters: WorklistFilters, words: str) -> None:
    rows = application().alert_lists.units(filters)
    named = [(unit or "No unit", omissions, commissions) for unit, omissions, commissions in rows]
    total = sum(omissions + commissions for _, omissions, commissions in named)
    budget = filters.alerts_per_patient_day
    first, others = named[:MOST_UNITS], named[MOST_UNITS:]
    if others:
        _, omissions, commissions = zip(*others, strict=True)
        first.append((texts.plural(len(others), "other unit"), sum(omissions), sum(commissions)))
    with cards.card(f"Alerts {words}".rstrip(), f"{total:,}, by unit, at a budget of {budget:g} per patient-day"):
        if named:
            cards.figure(alerts_by_unit(first, colours()), "alerts-by-unit", colours())
        else:
            st.markdown(cards.muted("No alert lies within the budget."))


def _shown(run: RunView, now: datetime) -> tuple[WorklistFilters, str]:
    """Open alerts of today where the site's record reaches today, of the whole run where it only looks back."""
    filters = replace(PAGE_DEFAULTS, run_id=run.run_id, reader=acting_id())
    days = application().worklist.filter_choices(run.run_id).days
    if days is None or run.calendar_is_shifted or days[1] != now.date():
        return filters, ""
    return replace(filters, first_day=days[1]), "today"


def _highest_card(found: WorklistPage, address: dict[str, str], words: str) -> None:
    digits = texts.score_digits(line.first.scaled_score for line in found.lines)
    with cards.card("Highest ranked", texts.joined(words, "open, by rank among omissions and among commissions")):
        for line in found.lines:
            row = line.first
            with _line([2, 6, 6]) as cells:
                next(cells).markdown(f"**{texts.score(row.scaled_score, digits)}**", width="content")
                with next(cells):
                    st.page_link(
                        "views/alert.py",
                        label=f":primary[{texts.plain(texts.decision_line(line.words, 60))}]",
                        query_params={**address, "alert": str(row.alert_id)},
                    )
                who = texts.joined(texts.plain(texts.patient_cell(row), 40), texts.plain(row.unit, 30))
                next(cells).markdown(f":small[{cards.muted(who)}]")
        if not found.lines:
            st.markdown(cards.muted("No open alert lies within the budget."))
        if found.n_to_judge_first:
            st.markdown(f":small[{cards.muted(texts.judge_first(found.n_to_judge_first))}]")
        st.page_link(
            "views/worklist.py", label="Open the worklist", icon=":material/arrow_forward:", query_params=address
        )


page()
