"""Ten questions about a case: each answer stands on the page, as counted from the simulated source and nothing else."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from alertreview.application import Application
from benchmarks._questions import QUESTIONS, pictured_alert
from core.vocabulary import AlertId
from dashboard import texts
from dashboard.components import case_view
from tests.dashboard.conftest import ROOT, OpenPage, nothing_failed, words
from tests.dashboard.doubles.application import FakeApplication

DAY = pd.Timedelta(hours=24)


def events_of(home: Path, patient_id: str) -> pd.DataFrame:
    """Read a patient's rows of the source as the simulation wrote them."""
    events = pd.read_parquet(home / "simulated-source" / "data" / "0.parquet")
    return events[events["subject_id"].astype(str) == patient_id.removeprefix("SIM-").lstrip("0")]


def table(page: AppTest, *columns: str) -> pd.DataFrame:
    return next(one.value for one in page.dataframe if set(columns) <= set(one.value.columns))


def shown_in_chart(page: AppTest) -> str:
    spec = json.loads(page.get("plotly_chart")[0].proto.spec)
    return re.sub("<[^>]*>", " ", json.dumps(spec["layout"]["annotations"], ensure_ascii=False))


def some_alerts(application: Application) -> list[AlertId]:
    return [pictured_alert(application, most=6), AlertId(1), AlertId(2)]


def potassium_as_measured(page: AppTest, stay: pd.DataFrame, at: pd.Timestamp) -> None:
    results = stay[stay["code"].str.startswith("LAB//RESULT//Potassium//")]
    values = table(page, "Lab", "Value", "Age").set_index("Lab")
    assert ("Potassium" in values.index) == (len(results) > 0)
    if len(results):
        last = results.iloc[-1]
        low = " ↓ low" if last["numeric_value"] < last["range_low"] else ""
        high = " ↑ high" if last["numeric_value"] > last["range_high"] else ""
        if pd.notna(last["numeric_value"]):
            assert values.loc["Potassium", "Value"] == f"{texts.number(last['numeric_value'])} mmol/L{low}{high}"
        age = (at - last["time"]) / pd.Timedelta(hours=1)
        assert values.loc["Potassium", "Age"] == texts.hours(age), "when potassium was last measured"
        before = [texts.number(value) for value in results["numeric_value"].iloc[:-1].dropna()][-2:]
        assert values.loc["Potassium", "Earlier"] == " → ".join(before), "which way it goes"
        assert values["Earlier"].str.len().max() <= case_view.LONGEST_EARLIER, "and no cell is cut"


@pytest.mark.parametrize("place", range(3))
def test_each_answer_stands_on_the_page_as_the_source_has_it(
    open_page: OpenPage, application: Application, demo_home: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    alert_id = some_alerts(application)[place]
    detail = application.worklist.alert(alert_id)
    row = detail.row
    events, at = events_of(demo_home, row.patient_id), pd.Timestamp(row.snapshot_at.replace(tzinfo=None))
    admission = events[events["code"].str.startswith("HOSPITAL_ADMISSION") & (events["time"] < at)].iloc[-1]
    stay = events[(events["time"] >= admission["time"] - DAY) & (events["time"] < at)]
    double = FakeApplication()
    monkeypatch.setattr(type(double.worklist), "alert", lambda *_: detail)
    page = open_page("alert", double, alert=str(alert_id))
    assert nothing_failed(page)
    text, chart = words(page), shown_in_chart(page)

    for kind in ("DIAGNOSIS", "PROBLEM", "ALLERGY"):
        known = events[events["code"].str.startswith(f"{kind}//") & (events["time"] < at)]
        for code in known["code"]:
            assert code.split("//")[-1] in text, "why she is here, and what else she has"

    parts = events["code"].str.split("//").map(set)
    own = events[[row.task_name in each and not {"RESULT", "STOP"} & each for each in parts]]
    within = own[(own["time"] >= at) & (own["time"] < at + DAY)]["time"]
    decided = texts.short_time(within.iloc[0]) if len(within) else f"not {row.kind.words.done}"
    assert decided in chart, "what was decided, and when"

    potassium_as_measured(page, stay, at)
    starts = stay[stay["code"].str.contains("MEDICATION//START|MEDICATION//ORDER", regex=True)]
    running = {}
    for event in stay.itertuples():
        name = event.code.split("//")[-1]
        if event.Index in starts.index:
            running[name] = event
        elif "MEDICATION//STOP" in event.code:
            running.pop(name, None)
    drugs = table(page, "Drug", "Since").set_index("Drug") if running else pd.DataFrame()
    assert set(drugs.index) == set(running), "whether she is on heparin now"
    for name, event in running.items():
        assert drugs.loc[name, "Dose"] == texts.shorten(texts.unit(event.dose), 24)

    ran = {code.split("//")[-1] for code in starts["code"]}
    drawn = [name for name in ran if f'"{name}"' in chart]
    more = re.search(r"(\d+) drugs?\b", chart)
    assert len(drawn) + (int(more[1]) if more else 0) == len(ran), "what else ran"

    later = own[(own["time"] >= at) & (own["time"] < at + 3 * DAY)]["time"]
    afterwards = (
        f"on {later.iloc[0].day} {later.iloc[0]:%b at %H:%M}" if len(later) else f"not {row.kind.words.done} in the"
    )
    assert afterwards in text, "what happened afterwards"
    assert "most similar days of other patients" in text, "what similar patients got"
    assert "Why it was" in text, "why the program found it odd"


def test_every_question_has_a_small_picture_in_the_guide() -> None:
    guide = (ROOT / "docs" / "clinicians.md").read_text()
    assert len(QUESTIONS) == 10
    for number, question in enumerate(QUESTIONS, 1):
        assert f"**{number}. {question.words}**" in guide
        assert f"![{question.words}](pictures/case-{question.name}.png)" in guide
        assert (ROOT / "docs" / "pictures" / f"case-{question.name}.png").stat().st_size < 25_000
