"""Simulated records of the double: its hospital and people, its worklist and the time line of a patient."""

import random
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from alertreview.access.site import PersonView
from alertreview.alerts.models import AlertRow, CaseView, LastValue, Timeline, TimelineDrug, TimelineLab
from alertreview.scoring.models import Histogram
from core.kinds import Kind
from core.vocabulary import Decision, Role

ZONE = ZoneInfo("Europe/Vienna")
SNAPSHOT = datetime(2026, 11, 27, 8, 0, tzinfo=ZONE)
UNITS = ("Medical ICU", "Surgical ICU", "Cardiothoracic ICU", "Neuro ICU", "Step-down 7A")
TASKS: tuple[tuple[str, str, Kind], ...] = (
    ("lab:troponin-i", "Troponin I", Kind.LAB_ORDER),
    ("lab:vancomycin", "Vancomycin trough", Kind.LAB_ORDER),
    ("med:insulin-iv", "Insulin, IV", Kind.MEDICATION),
    ("lab:amylase", "Amylase", Kind.LAB_ORDER),
    ("lab:tacrolimus", "Tacrolimus level", Kind.LAB_ORDER),
    ("lab:magnesium", "Magnesium", Kind.LAB_ORDER),
    ("med:potassium-iv", "Potassium chloride, IV", Kind.MEDICATION),
    ("lab:platelets", "Platelet count", Kind.LAB_ORDER),
    ("med:heparin-iv", "Heparin, IV infusion", Kind.MEDICATION),
    ("lab:blood-culture", "Blood culture", Kind.LAB_ORDER),
    ("lab:digoxin", "Digoxin level", Kind.LAB_ORDER),
    ("med:furosemide-iv", "Furosemide, IV", Kind.MEDICATION),
)
LABS: tuple[tuple[str, str, float, float, float], ...] = (
    ("Troponin I", "ng/mL", 0.0, 0.04, 0.62),
    ("Creatinine", "mg/dL", 0.6, 1.2, 1.9),
    ("Potassium", "mmol/L", 3.5, 5.1, 5.2),
    ("Haemoglobin", "g/dL", 12.0, 16.0, 9.2),
    ("Lactate", "mmol/L", 0.5, 2.0, 1.7),
    ("Platelets", "10⁹/L", 150.0, 400.0, 188.0),
    ("INR", "", 0.9, 1.2, 1.1),
    ("Glucose", "mg/dL", 70.0, 140.0, 138.0),
)
PEOPLE = (
    PersonView(1, "Demonstration reviewer", Role.REVIEWER, simulated=False),
    PersonView(2, "Reader 1 (simulated)", Role.REVIEWER, simulated=True),
    PersonView(3, "Reader 2 (simulated)", Role.REVIEWER, simulated=True),
    PersonView(4, "Reader 3 (simulated)", Role.REVIEWER, simulated=True),
    PersonView(5, "Coordinator", Role.COORDINATOR, simulated=False),
    PersonView(6, "Adjudicator", Role.ADJUDICATOR, simulated=False),
)
HOSTILE = '<img src=x onerror="window.pwned=1"> **bold** [link](http://example.org) $x^2$ :red[red] ' + "ä" * 500
RIGHT_TO_LEFT = "تروبونين I בדיקה"


def alert_rows(n_alerts: int, *, hostile: bool) -> list[AlertRow]:
    random_ = random.Random(7)
    rows: list[AlertRow] = []
    ranks = {Decision.OMISSION: 0, Decision.COMMISSION: 0}
    for position in range(n_alerts):
        key, name, kind = TASKS[position % len(TASKS)]
        decision = Decision.COMMISSION if position % 4 == 3 else Decision.OMISSION
        ranks[decision] += 1
        scaled = 0.97 - 0.55 * position / max(n_alerts, 40)
        if hostile:
            name = HOSTILE if position % 2 else RIGHT_TO_LEFT
        verb = {
            (Decision.OMISSION, Kind.LAB_ORDER): "not ordered",
            (Decision.OMISSION, Kind.MEDICATION): "not given",
            (Decision.COMMISSION, Kind.LAB_ORDER): "ordered",
            (Decision.COMMISSION, Kind.MEDICATION): "given",
        }[decision, kind]
        rows.append(
            AlertRow(
                alert_id=1000 + position,
                rank=ranks[decision],
                task_key=key,
                task_name=name,
                kind=kind,
                decision=decision,
                decision_words=f"{name} {verb}",
                patient_id=f"SIM-{random_.randrange(1000):04d}",
                sex=random_.choice("FM"),
                age_years=float(random_.randrange(38, 86)),
                unit=HOSTILE if hostile and position == 2 else UNITS[random_.randrange(len(UNITS))],
                snapshot_at=SNAPSHOT - timedelta(days=position % 5),
                score=round(scaled - 0.05, 4),
                scaled_score=round(scaled, 4),
                support=0.9,
            )
        )
    return rows


def timeline(name: str, decision: Decision, seed: int, *, hostile: bool) -> Timeline:
    random_ = random.Random(seed)
    labs = []
    for position, (lab, unit, low, high, last) in enumerate(LABS):
        n_values = 6 - position % 3
        start = (low + high) / 2
        values = [
            round(
                start + (last - start) * (i / (n_values - 1)) ** 1.5 + random_.uniform(-0.04, 0.04) * (high - low),
                2,
            )
            for i in range(n_values)
        ]
        times = [SNAPSHOT - timedelta(hours=62 - 60 * i / (n_values - 1) - 0.2 * position) for i in range(n_values)]
        labs.append(
            TimelineLab(HOSTILE if hostile and position == 1 else lab, unit, tuple(times), tuple(values), low, high)
        )
    ordered = (SNAPSHOT + timedelta(hours=6, minutes=30),) if decision is Decision.COMMISSION else ()
    hours_ago = (50, 38, 27, 19)
    return Timeline(
        snapshot_at=SNAPSHOT,
        window_hours=24.0,
        decision_name=name,
        past_orders=tuple(SNAPSHOT - timedelta(hours=h) for h in hours_ago),
        orders_in_window=ordered,
        labs=tuple(labs),
        drugs=(
            TimelineDrug("Heparin, IV infusion", (_ago(44, 20),)),
            TimelineDrug("Metoprolol, oral", (_ago(62, 50), _ago(38, 26), _ago(24, 0))),
            TimelineDrug("Aspirin, oral", (_ago(60, 0),)),
            TimelineDrug("Furosemide, IV", (_ago(30, 30), _ago(18, 18), _ago(6, 6))),
            TimelineDrug("Pantoprazole, oral", (_ago(62, 0),), dose="40 mg daily", route="PO", is_running=True),
        ),
    )


def case_view(name: str, decision: Decision, seed: int, *, hostile: bool) -> CaseView:
    shown = timeline(name, decision, seed, hostile=hostile)
    values = tuple(
        LastValue(
            lab.name,
            lab.values[-1],
            lab.unit,
            lab.flag(lab.values[-1]),
            (SNAPSHOT - lab.times[-1]).total_seconds() / 3600,
            low=lab.low,
            high=lab.high,
            trend=lab.values,
        )
        for lab in shown.labs
    )
    background = (("Admitted for", "Chest pain"), ("Problems and diagnoses", HOSTILE if hostile else "Heart failure"))
    return CaseView(shown, values, background, ("Allergies",))


def _ago(start: float, end: float) -> tuple[datetime, datetime]:
    return SNAPSHOT - timedelta(hours=start), SNAPSHOT - timedelta(hours=end)


def histogram(high: float, seed: int) -> Histogram:
    random_ = random.Random(seed)
    edges = tuple(round(high * i / 40, 5) for i in range(41))
    counts = [
        int(300 * 2.718 ** (-(((i - 6) / 3.2) ** 2)) + random_.randrange(4, 30) * 2.718 ** (-i / 22)) for i in range(40)
    ]
    return Histogram(edges, tuple(counts))
