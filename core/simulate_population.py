"""Patients and stays of the simulated hospital: who comes when, why, for how long, and how ill they are."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.simulate_rules import BEDBOUND, HOME_DRUGS, REASONS

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

DAY = 86400
HOUR = 3600
SNAPSHOT_HOUR = 8
MAX_MORNINGS = 40
WARDS = ("Intensive Care", "Cardiology", "Medicine", "Neurology", "Surgery")
ICU = WARDS.index("Intensive Care")

_READMITTED = 0.15
_YEAR = 365.25 * DAY


@dataclass(frozen=True)
class Population:
    """Arrays over patients and over stays.

    Parameters
    ----------
    is_female : array of bool, shape (n_patients,)
    birth : array of int, shape (n_patients,)
        Seconds since 1970.
    home : array of bool, shape (n_patients, n_home_drugs)
    patient : array of int, shape (n_stays,)
        Position of the patient; stays are sorted by patient and admission.
    reason : array of int, shape (n_stays,)
        Position in `REASONS`.
    admitted, discharged, first_morning : array of int, shape (n_stays,)
        Seconds; the discharge may lie after the end of the data.
    n_mornings : array of int, shape (n_stays,)
        Snapshots inside the stay, whether or not the data reach so far.
    severity : array of shape (n_stays, MAX_MORNINGS + 1)
        0 = well, 1 = ill; column 0 is the admission, column k the k-th morning.
    ward : array of int, shape (n_stays, MAX_MORNINGS + 1)
        Position in `WARDS`.
    died : array of bool, shape (n_stays,)
    end : int
        End of the data.
    """

    is_female: npt.NDArray[np.bool_]
    birth: IntArray
    home: npt.NDArray[np.bool_]
    patient: IntArray
    reason: IntArray
    admitted: IntArray
    discharged: IntArray
    first_morning: IntArray
    n_mornings: IntArray
    severity: FloatArray
    ward: IntArray
    died: npt.NDArray[np.bool_]
    end: int


def make_population(rng: np.random.Generator, n_patients: int, n_days: int, end: int, mean_days: float) -> Population:
    """Draw patients and their stays.

    Parameters
    ----------
    rng : Generator
    n_patients, n_days : int
        Patients arrive over `n_days` before the end.
    end : int
        End of the data, seconds.
    mean_days : float
        Mean length of a stay.

    Returns
    -------
    Population
    """
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
    """Most go home between 10:00 and 17:00, 2 to 40 days after they came."""
    days = np.clip(np.round(rng.gamma(2.2, mean_days / 2.2, len(admitted))), 2, MAX_MORNINGS - 1)
    leaving = rng.uniform(10 * HOUR, 17 * HOUR, len(admitted)).astype(np.int64) // 60 * 60
    return np.asarray(admitted // DAY * DAY + days.astype(np.int64) * DAY + leaving)


def _severity(rng: np.random.Generator, reason: IntArray, n_mornings: IntArray) -> FloatArray:
    """Most get better towards discharge, with good and bad days, and some relapse."""
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
