"""Why a decision was expected, or not: what tells those with it from those without, at this patient's values."""

import streamlit as st

from alertreview.alerts.models import AlertDetail
from core.vocabulary import Decision
from dashboard import texts
from dashboard.components import cards
from dashboard.context import is_phone


def reasons(detail: AlertDetail) -> None:
    """Draw the card: a line for each reason with its two shares, and the change that would turn the expectation."""
    row = detail.row
    done = row.words.done
    title = "Why it was expected" if row.decision is Decision.OMISSION else "Why it was not expected"
    with cards.card(title, f"share of past days {done}", key="reasons"):
        if not detail.reasons.lines:
            usual = texts.percent(detail.task_positive_share)
            st.markdown(
                cards.muted(f"No single finding tells past days apart. On all of them together: {done} on {usual}.")
            )
            return
        phone = is_phone()
        # Four columns are wider than a small phone: there the patient's value follows the finding.
        heads = ["Finding, here", "with", "without"] if phone else ["Finding", f"{done} with", "without", "here"]
        table = [_table_row(heads), _table_row([":--", *["--:"] * (len(heads) - 1)])]
        for line in detail.reasons.lines:
            finding, here = texts.plain(texts.unit(line.finding), 120), texts.plain(texts.unit(line.here), 24)
            here = f"**{here.replace(' ', texts.NO_BREAK)}**"  # a value and its unit
            shares = [f"**{texts.percent(line.share_with)}**", texts.percent(line.share_without)]
            table.append(_table_row([f"{finding}, {here}", *shares] if phone else [finding, *shares, here]))
        st.markdown("\n".join(table))
        change = texts.plain(texts.unit(detail.reasons.counterfactual), 300)
        st.markdown(f":small[{cards.muted(f'{change} These are differences seen in past days, not causes.'.lstrip())}]")


def _table_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
