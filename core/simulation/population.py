"""Patients and stays of the simulated hospital: who comes when, why, for how long, and how ill they are."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.simulation.labs import VITALS
from core.simulation.rules import BEDBOUND, HOME_DRUGS, REASONS, SURGICAL, Catalogue, OrderUnit
from core.vocabulary import SNAPSHOT_HOUR

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
DAY = 86400
HOUR = 3600
MAX_MORNINGS = 40
WARDS = ("Intensive Care", "Cardiology", "Medicine", "Neurology", "Surgery")
ICU = WARDS.index("Intensive Care")
_READMITTED = 0.15
_YEAR = 365.25 * DAY


@dataclass(frozen=True)
class Population:
    """Arrays over patients and over stays."""

    is_female: npt.NDArray[np.bool_]  # shape (n_patients,)
    birth: IntArray  # shape (n_patients,): seconds since 1970
    home: npt.NDArray[np.bool_]  # shape (n_patients, n_home_drugs)
    patient: IntArray  # shape (n_stays,): position of the patient; stays are sorted by patient and admission
    reason: IntArray  # shape (n_stays,): position in `REASONS`
    # `admitted`, `discharged` and `first_morning`: shape (n_stays,): seconds; the discharge may lie after the end of
    # the data.
    admitted: IntArray
    discharged: IntArray
    first_morning: IntArray
    n_mornings: IntArray  # shape (n_stays,): snapshots inside the stay, whether or not the data reach so far
    # Shape (n_stays, MAX_MORNINGS + 1): 0 = well, 1 = ill; column 0 is the admission, column k the k-th morning.
    severity: FloatArray
    ward: IntArray  # shape (n_stays, MAX_MORNINGS + 1): position in `WARDS`
    died: npt.NDArray[np.bool_]  # shape (n_stays,)
    end: int  # end of the data


def make_population(rng: np.random.Generator, n_patients: int, n_days: int, end: int, mean_days: float) -> Population:
    """Draw patients and their stays; patients arrive over `n_days` before the end (seconds), stays last `mean_days`."""
    start = end - n_days * DAY
    is_female = rng.random(n_patients) < 0.5
    age = np.clip(rng.normal(67, 15, n_patients), 19, 97)
    home = rng.random((n_patients, len(HOME_DRUGS))) < np.array(list(HOME_DRUGS.values()))
    patient, admitted, discharged = _stays(rng, n_patients, n_days, end, mean_days)
    shares = np.array([share for _, share, _ in REASONS.values()])
    reason = rng.choice(len(REASONS), size=len(patient), p=shares / shares.sum())
    first = -(-(admitted - SNAPSHOT_HOUR * HOUR) // DAY) * DAY + SNAPSHOT_HOUR * HOUR
    n_mornings = np.minimum(np.maximum(-((first - discharged) // DAY), 0), MAX_MORNINGS)
    severity = _severity(rng, reason, n_mornings)
    died = (severity[np.arange(len(patient)), n_mornings] > 0.55) & (rng.random(len(patient)) < 0.35)
    # Nobody dies twice: a death is the patient's last stay.
    died &= (discharged < end) & np.append(patient[1:] != patient[:-1], True)
    return Population(
        is_female=is_female,
        birth=(start - age * _YEAR).astype(np.int64) // DAY * DAY,
        home=home,
        patient=patient,
        reason=reason,
        admitted=admitted,
        discharged=discharged,
        first_morning=first,
        n_mornings=n_mornings,
        severity=severity,
        ward=_wards(reason, severity),
        died=died,
        end=end,
    )


def _stays(
    rng: np.random.Generator, n_patients: int, n_days: int, end: int, mean_days: float
) -> tuple[IntArray, IntArray, IntArray]:
    """Draw patient, admission and discharge of every stay; some patients come back within days."""
    # Arrivals peak in the afternoon; nobody comes on the last day, who would have no full window.
    day = rng.integers(0, max(n_days - 2, 1), n_patients)
    hour = np.clip(rng.normal(15, 5, n_patients), 0.1, 23.9)
    admitted = end - n_days * DAY + day * DAY + (hour * HOUR).astype(np.int64) // 60 * 60
    patient = np.arange(n_patients)
    discharged = _discharge(rng, admitted, mean_days)
    again = (rng.random(n_patients) < _READMITTED) & (discharged < end - 4 * DAY)
    gap = (rng.uniform(1.0, 6.0, n_patients) * DAY).astype(np.int64) // 60 * 60
    second = discharged[again] + gap[again]
    patient = np.concatenate([patient, patient[again]])
    admitted = np.concatenate([admitted, second])
    discharged = np.concatenate([discharged, _discharge(rng, second, mean_days)])
    kept = admitted < end - DAY
    order = np.lexsort([admitted[kept], patient[kept]])
    return patient[kept][order], admitted[kept][order], discharged[kept][order]


def _discharge(rng: np.random.Generator, admitted: IntArray, mean_days: float) -> IntArray:
    """Return times of discharge, most between 10:00 and 17:00, 2 to 40 days after admission."""
    days = np.clip(np.round(rng.gamma(2.2, mean_days / 2.2, len(admitted))), 2, MAX_MORNINGS - 1)
    leaving = rng.uniform(10 * HOUR, 17 * HOUR, len(admitted)).astype(np.int64) // 60 * 60
    return np.asarray(admitted // DAY * DAY + days.astype(np.int64) * DAY + leaving)


def _severity(rng: np.random.Generator, reason: IntArray, n_mornings: IntArray) -> FloatArray:
    """Return severity over time: most improve towards discharge, with good and bad days; some relapse."""
    n = len(reason)
    start = rng.uniform(0.6, 1.4, n)
    out = np.empty((n, MAX_MORNINGS + 1))
    wave, relapse = np.zeros(n), np.zeros(n)
    for k in range(MAX_MORNINGS + 1):
        wave = 0.7 * wave + 0.12 * rng.standard_normal(n)
        relapse = 0.75 * relapse + 0.6 * (rng.random(n) < 0.04)
        trend = start * (1 - 0.85 * np.minimum(k / np.maximum(n_mornings, 1), 1.0))
        out[:, k] = np.clip(trend + wave + relapse, 0.0, 1.7)
    # Broken hips and strokes stay immobile.
    slow = np.isin(reason, [list(REASONS).index(name) for name in BEDBOUND])
    out[slow] = np.maximum(out[slow], 0.45)
    return out


def _wards(reason: IntArray, severity: FloatArray) -> IntArray:
    home_ward = np.array([WARDS.index(ward) for _, _, ward in REASONS.values()])[reason]
    step_down = np.where(home_ward == ICU, WARDS.index("Medicine"), home_ward)
    threshold = np.where(home_ward == ICU, 0.6, 1.25)
    return np.where(severity > threshold[:, None], ICU, step_down[:, None])


NEVER = np.iinfo(np.int64).min
HOME_NUMBER = {name: i for i, name in enumerate(HOME_DRUGS)}
REASON_NUMBER = {name: i for i, name in enumerate(REASONS)}
_MAX_DEVIATION = 2.5


class Ward:
    """What is visible of every stay.

    Home drugs and those given on the day before (``on``) by stay and drug; the last known value of labs, NaN before the
    first, and when it was known, `NEVER` before the first, by stay and lab; vital signs.
    """

    def __init__(self, population: Population, catalogue: Catalogue) -> None:
        n = len(population.patient)
        self.population = population
        self.catalogue = catalogue
        self.home = population.home[population.patient]
        self.on = np.zeros((n, len(catalogue.drug_units)), dtype=bool)
        self.last = np.full((n, len(catalogue.labs)), np.nan)
        self.known_at = np.full((n, len(catalogue.labs)), NEVER)
        self.vital = np.zeros((n, len(VITALS)))


class Seen:
    """What is seen of some stays at one time (seconds) of a morning, 0 = at admission.

    The drift is how far habits have moved, in logits: every second rule is followed more often, the others less.
    """

    def __init__(self, ward: Ward, stay: IntArray, morning: int, now: IntArray, drift: FloatArray) -> None:
        self._ward = ward
        self._stay = stay
        self._morning = morning
        self._now = now
        self._drift = drift
        self._plain = self._plain_variables()
        self._cache: dict[str, FloatArray] = {}

    def probability(self, unit: OrderUnit, number: int) -> FloatArray:
        """Return P(order | state) of one rule for every stay."""
        logit = np.full(len(self._stay), unit.bias) + self._drift * (1 if number % 2 else -1)
        for name, weight in unit.terms.items():
            logit += weight * self.variable(name)
        return np.asarray(1 / (1 + np.exp(-logit)))

    def variable(self, name: str) -> FloatArray:
        """Return the value of a rule's variable; see `core.simulation.rules`."""
        if name not in self._cache:
            self._cache[name] = self._compute(name)
        return self._cache[name]

    def _compute(self, name: str) -> FloatArray:
        kind, _, what = name.partition(":")
        ward, stay = self._ward, self._stay
        if kind in ("low", "high"):
            return self._beyond(kind, ward.catalogue.lab_number[what])
        if kind in ("known", "fresh"):
            since = NEVER + 1 if kind == "known" else self._now - DAY
            return np.asarray(ward.known_at[stay, ward.catalogue.lab_number[what]] >= since, dtype=np.float64)
        if kind == "on":
            return np.asarray(ward.on[stay, ward.catalogue.drug_number[what]], dtype=np.float64)
        if kind == "home":
            return np.asarray(ward.home[stay, HOME_NUMBER[what]], dtype=np.float64)
        return self._plain[name]

    def _beyond(self, side: str, number: int) -> FloatArray:
        lab, last = self._ward.catalogue.labs[number], self._ward.last[self._stay, number]
        limit = lab.low if side == "low" else lab.high
        distance = np.log(np.maximum(last, 1e-9) / max(limit, 1e-9)) if lab.log else last - limit
        signed = -distance if side == "low" else distance
        return np.asarray(np.nan_to_num(np.clip(signed / lab.spread, 0, _MAX_DEVIATION)))

    def _plain_variables(self) -> dict[str, FloatArray]:
        population, stay = self._ward.population, self._stay
        reason, ward = population.reason[stay], population.ward[stay, self._morning]
        heart, pressure, temperature, oxygen, mobility = self._ward.vital[stay].T
        surgical = np.isin(reason, [REASON_NUMBER[each] for each in SURGICAL])
        return {
            **{name: np.asarray(reason == number, dtype=np.float64) for name, number in REASON_NUMBER.items()},
            "icu": np.asarray(ward == ICU, dtype=np.float64),
            "surgery": np.asarray((ward == WARDS.index("Surgery")) | surgical, dtype=np.float64),
            "first_day": np.full(len(stay), float(self._morning <= 1)),
            "late": np.full(len(stay), float(self._morning >= 5)),
            "unstable": np.clip((heart - 100) / 20, 0, 1.5) + np.clip((100 - pressure) / 15, 0, 1.5),
            "fever": np.clip((temperature - 38.0) / 0.5, 0, 1.5),
            "hypoxic": np.clip((92 - oxygen) / 2, 0, 1.5),
            "immobile": np.clip(2.5 - mobility, 0, 1),
        }
