"""What clinicians of the simulated hospital see at 08:00, and what their rules make of it."""

import numpy as np
import numpy.typing as npt

from core.simulate_catalogue import Catalogue
from core.simulate_labs import VITALS
from core.simulate_population import DAY, ICU, WARDS, Population
from core.simulate_rules import HOME_DRUGS, REASONS, SURGICAL, OrderUnit

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

NEVER = np.iinfo(np.int64).min
HOME_NUMBER = {name: i for i, name in enumerate(HOME_DRUGS)}
REASON_NUMBER = {name: i for i, name in enumerate(REASONS)}
_MAX_DEVIATION = 2.5


class Ward:
    """What is visible of every stay.

    Parameters
    ----------
    population : Population
    catalogue : Catalogue

    Attributes
    ----------
    home : array of bool, shape (n_stays, n_home_drugs)
    on : array of bool, shape (n_stays, n_drugs)
        Given on the day before.
    last : array of shape (n_stays, n_labs)
        Last known value, NaN before the first.
    known_at : array of int, shape (n_stays, n_labs)
        Seconds; `NEVER` before the first.
    vital : array of shape (n_stays, n_vitals)
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
    """What is seen of some stays at one time.

    Parameters
    ----------
    ward : Ward
    stay : array of int, shape (n,)
    morning : int
        0 = at admission.
    now : array of int, shape (n,)
        Seconds.
    drift : array of shape (n,)
        How far habits have moved, in logits: every second rule is followed more often, the others less.
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
        """P(order | state) of one rule for every stay."""
        logit = np.full(len(self._stay), unit.bias) + self._drift * (1 if number % 2 else -1)
        for name, weight in unit.terms.items():
            logit += weight * self.variable(name)
        return np.asarray(1 / (1 + np.exp(-logit)))

    def variable(self, name: str) -> FloatArray:
        """Value of a rule's variable; see core.simulate_rules."""
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
