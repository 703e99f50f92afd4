"""The course of simulated stays, morning by morning: what is seen, what is ordered, what comes of it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.simulation.labs import VITALS, Lab
from core.simulation.population import DAY, HOME_NUMBER, HOUR, NEVER, REASON_NUMBER, Population, Seen, Ward
from core.simulation.rules import RECOGNISABLE, Catalogue, OrderUnit

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

MEMBER_DRAWN = 0.97
"""A panel is drawn as one; each of its members with this probability."""
CLEAR_YES, CLEAR_NO = 0.8, 0.1
"""Unusual decisions are planted only where the rule is clear."""
ODD_FIRST = 4.0
"""How much more often than others decisions are planted that a physician recognises as odd."""
OTHER_UNITS = {"Glucose": ("mmol/L", 1 / 18.016), "Creatinine": ("umol/L", 88.42), "Hemoglobin": ("g/L", 10.0)}
"""The unit, and the factor to it, in which some results come when units are noisy."""
_CUT_LAB, _CUT_DRUG = 0.12, 0.7
"""On the day of discharge few labs are drawn and most drugs are still given."""


@dataclass(frozen=True)
class Options:
    """What makes one simulated hospital differ from another; see `core.simulation.hospital.simulate_cohort`."""

    planted_rate: float = 0.02
    missing_rate: float = 0.01
    unit_noise: float = 0.0
    drift: float = 0.0


class Log:
    """Events of the hospital, collected as arrays."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self._parts: list[tuple[IntArray, IntArray, IntArray, FloatArray, npt.NDArray[np.object_]]] = []

    def add(
        self,
        stay: IntArray,
        time: IntArray,
        code: str,
        value: FloatArray | None = None,
        text: npt.NDArray[np.object_] | None = None,
    ) -> None:
        """Log one code for several stays."""
        n = len(stay)
        number = self.codes.setdefault(code, len(self.codes))
        numbers = np.full(n, np.nan) if value is None else value
        texts = np.full(n, "", dtype=object) if text is None else text
        self._parts.append((stay, time, np.full(n, number), numbers, texts))

    def table(self) -> tuple[IntArray, IntArray, IntArray, FloatArray, npt.NDArray[np.object_]]:
        """Return stay, seconds, code number, value and text of all events."""
        stay, time, code, value, text = (np.concatenate(each) for each in zip(*self._parts, strict=True))
        return stay, time, code, value, text


@dataclass(frozen=True)
class Truth:
    """What really guided the decisions of one morning."""

    stay: IntArray  # shape (n,)
    morning: int  # 1 = the first snapshot of the stay
    probability: FloatArray  # shape (n, n_units): P(order | state)
    # `decided` and `planted`: shape (n, n_members): members in the order of `members`.
    decided: BoolArray
    planted: BoolArray


class Course:
    """Walks all stays through their mornings at once."""

    def __init__(
        self, population: Population, catalogue: Catalogue, rng: np.random.Generator, options: Options
    ) -> None:
        self.population = population
        self.log = Log()
        self.truths: list[Truth] = []
        self.catalogue = catalogue
        self._rng = rng
        self._options = options
        n, n_labs = len(population.patient), len(catalogue.labs)
        self._ward = Ward(population, catalogue)
        self._baseline = 0.5 * rng.standard_normal((n, n_labs))
        self._wave = np.zeros((n, n_labs))
        self._exposure = np.zeros((n, len(catalogue.drug_units)))
        self._inbox: list[tuple[IntArray, int, FloatArray, IntArray]] = []

    def run(self) -> None:
        """Simulate the admission and every morning of every stay."""
        everybody = np.arange(len(self.population.patient))
        self._step(everybody, 0)
        for morning in range(1, int(self.population.n_mornings.max(initial=0)) + 1):
            snapshot = self.population.first_morning + (morning - 1) * DAY
            here = np.flatnonzero((self.population.n_mornings >= morning) & (snapshot < self.population.end))
            if len(here):
                self._step(here, morning)
        self._stop_at_discharge()

    def _step(self, stay: IntArray, morning: int) -> None:
        population = self.population
        next_morning = population.first_morning[stay] + morning * DAY
        start = population.admitted[stay] if morning == 0 else next_morning - DAY
        length = np.minimum(np.minimum(next_morning, population.discharged[stay]), population.end) - start
        self._receive(start, stay)
        self._measure_vitals(stay, morning, start)
        self._wave[stay] = 0.8 * self._wave[stay] + 0.5 * self._rng.standard_normal((len(stay), self._wave.shape[1]))
        seen = Seen(self._ward, stay, morning, start, self._drift(start))
        units, n_labs = self.catalogue.units, len(self.catalogue.lab_units)
        probability = np.column_stack([seen.probability(unit, i) for i, unit in enumerate(units)])
        leaving = (length < 20 * HOUR) & (morning > 0)
        probability[leaving, :n_labs] *= _CUT_LAB
        probability[leaving, n_labs:] *= _CUT_DRUG
        probability[length < HOUR] = 0.0
        decided = self._rng.random(probability.shape) < probability
        odd = np.column_stack([self._odd(unit, seen, decided[:, i]) for i, unit in enumerate(units)])
        flipped = self._plant(probability, decided, (length >= DAY) & (morning > 0), odd)
        decided ^= flipped
        taken, planted = [], []
        for i, unit in enumerate(units):
            mine = self._carry_out(i, unit, decided[:, i], stay, start, length, morning)
            taken.append(mine)
            planted.append(flipped[:, [i]] & (mine == decided[:, [i]]))
        if morning:
            self.truths.append(Truth(stay, morning, probability, np.hstack(taken), np.hstack(planted)))

    def _odd(self, unit: OrderUnit, seen: Seen, decided: BoolArray) -> BoolArray:
        """Mark decisions whose opposite a physician would recognise as odd."""
        odd = np.zeros(len(decided), dtype=bool)
        for name, added, limits in RECOGNISABLE:
            if name == unit.name:
                holds = [seen.variable(term) >= limit for term, limit in limits.items()]
                odd |= np.all(holds, axis=0) & (decided != added)
        return odd

    def _plant(self, probability: FloatArray, decided: BoolArray, full: BoolArray, odd: BoolArray) -> BoolArray:
        """Drop some clear decisions and add about as many where the rule is clearly against them, odd ones first."""
        clear_yes = decided & (probability >= CLEAR_YES) & full[:, None]
        clear_no = ~decided & (probability <= CLEAR_NO) & full[:, None]
        n_yes, n_no = clear_yes.sum(axis=0), clear_no.sum(axis=0)
        n_taken = (decided & full[:, None]).sum(axis=0)
        drop = np.divide(self._options.planted_rate * n_taken, n_yes, out=np.zeros(len(n_yes)), where=n_yes > 0)
        add = np.divide(self._options.planted_rate * n_taken, n_no, out=np.zeros(len(n_no)), where=n_no > 0)
        draw = self._rng.random(probability.shape)
        limit = 2 * self._options.planted_rate
        drop, add = np.minimum(drop, limit), np.minimum(add, limit)
        more = np.where(odd, ODD_FIRST, 1.0)
        return np.asarray((clear_yes & (draw < drop * more)) | (clear_no & (draw < add * more)))

    def _receive(self, now: IntArray, stay: IntArray) -> None:
        """Read the results that came in before now; the others wait."""
        ward = self._ward
        clock = np.full(len(self.population.patient), NEVER)
        clock[stay] = now
        waiting = []
        for who, lab, value, known_at in self._inbox:
            there = known_at < clock[who]
            newer = there & (known_at >= ward.known_at[who, lab])
            ward.last[who[newer], lab] = value[newer]
            ward.known_at[who[newer], lab] = known_at[newer]
            if not there.all():
                waiting.append((who[~there], lab, value[~there], known_at[~there]))
        self._inbox = waiting

    def _measure_vitals(self, stay: IntArray, morning: int, start: IntArray) -> None:
        """Measure at admission, and at about 06:00 before the snapshot; seen by those who decide."""
        shift = (
            self._rng.integers(60, 15 * 60, len(stay))
            if morning == 0
            else -self._rng.integers(HOUR, 3 * HOUR, len(stay))
        )
        time = np.maximum(start + shift, self.population.admitted[stay] + 60)
        for j, vital in enumerate(VITALS):
            value = self._value(vital, stay, morning, self._rng.standard_normal(len(stay)) * 0.8)
            if vital.name == "Mobility Score":
                value = np.clip(value, 0, 4)
            if vital.name == "Oxygen Saturation":
                value = np.minimum(value, 100)
            self._ward.vital[stay, j] = value
            self.log.add(stay, time, f"VITAL//{vital.name}//{vital.unit}", value)

    def _value(self, lab: Lab, stay: IntArray, morning: int, deviation: FloatArray) -> FloatArray:
        """Return the value of a lab or vital sign: reason and severity, drugs, the patient's own level, and chance."""
        population = self.population
        severity = population.severity[stay, morning]
        shift = deviation.copy()
        for name, weight in lab.shifts.items():
            kind, _, what = name.partition(":")
            if kind == "drug":
                shift += weight * self._exposure[stay, self.catalogue.drug_number[what]]
            elif kind == "home":
                shift += weight * self._ward.home[stay, HOME_NUMBER[what]]
            else:
                shift += weight * severity * (population.reason[stay] == REASON_NUMBER[kind])
        raw = lab.center * np.exp(lab.spread * shift) if lab.log else lab.center + lab.spread * shift
        return np.asarray(np.round(np.maximum(raw, 0.0), lab.decimals))

    def _carry_out(
        self,
        number: int,
        unit: OrderUnit,
        decided: BoolArray,
        stay: IntArray,
        start: IntArray,
        length: IntArray,
        morning: int,
    ) -> BoolArray:
        """Convert the decisions on one unit to events; return which members were done."""
        if number >= len(self.catalogue.lab_units):
            self._give(number - len(self.catalogue.lab_units), unit, decided, stay, start, length)
            return decided[:, None].copy()
        drawn = decided[:, None] & (
            (self._rng.random((len(stay), len(unit.members))) < MEMBER_DRAWN) | (len(unit.members) == 1)
        )
        for j, member in enumerate(unit.members):
            rows = np.flatnonzero(drawn[:, j])
            self._draw(self.catalogue.lab_number[member], unit, stay[rows], start[rows], length[rows], morning)
        return drawn

    def _draw(
        self, number: int, unit: OrderUnit, stay: IntArray, start: IntArray, length: IntArray, morning: int
    ) -> None:
        lab = self.catalogue.labs[number]
        # Members of a panel share the draw: its time follows from stay and morning alone.
        jitter = (stay * 7919 + morning * 104729 + len(unit.name) * 1299709) % 5400
        routine = (length >= 23 * HOUR) & (not unit.urgent) & (morning > 0)
        time = np.where(routine, start + 21 * HOUR + jitter, start + 600 + jitter % np.maximum(length - 1800, 1))
        n_draws = 1 + (stay * 31 + morning * 17) % unit.times
        for i in range(unit.times):
            at = time + i * 6 * HOUR
            rows = (i < n_draws) & (at < start + length - 900)
            rows |= i == 0
            who, when = stay[rows], at[rows]
            self.log.add(who, when, f"LAB//ORDERED//{lab.name}")
            deviation = (
                self._baseline[who, number] + self._wave[who, number] + 0.3 * self._rng.standard_normal(len(who))
            )
            self._report(number, who, when, self._value(lab, who, morning, 0.7 * deviation))

    def _report(self, number: int, stay: IntArray, drawn: IntArray, value: FloatArray) -> None:
        lab = self.catalogue.labs[number]
        hours = 26.0 if lab.text else 1.2
        known_at = drawn + (HOUR * hours * np.exp(0.35 * self._rng.standard_normal(len(stay)))).astype(np.int64)
        code = f"LAB//RESULT//{lab.name}//{lab.unit}"
        if lab.text:
            positive = self._rng.random(len(stay)) < 0.12
            text = np.where(positive, "growth", lab.text).astype(object)
            self.log.add(stay, known_at, code, None, text)
            return
        unusable = self._rng.random(len(stay)) < self._options.missing_rate
        tiny = value < 10.0**-lab.decimals
        bound = f"<{10.0**-lab.decimals:.{lab.decimals}f}"
        text = np.where(unusable, "hemolyzed", np.where(tiny, bound, "")).astype(object)
        number_shown = np.where(unusable | tiny, np.nan, value)
        self._log_result(lab, stay, known_at, number_shown, text)
        self._inbox.append((stay[~unusable], number, value[~unusable], known_at[~unusable]))

    def _log_result(
        self, lab: Lab, stay: IntArray, known_at: IntArray, value: FloatArray, text: npt.NDArray[np.object_]
    ) -> None:
        """Log results, some of them in another unit where the switch for it is on."""
        other_unit, factor = OTHER_UNITS.get(lab.name, ("", 1.0))
        other = self._rng.random(len(stay)) < (self._options.unit_noise if other_unit else 0.0)
        for rows, unit, times in ((~other, lab.unit, 1.0), (other, other_unit, factor)):
            if rows.any():
                shown = value[rows] if times == 1.0 else np.round(value[rows] * times, 2)
                self.log.add(stay[rows], known_at[rows], f"LAB//RESULT//{lab.name}//{unit}", shown, text[rows])

    def _drift(self, start: IntArray) -> FloatArray:
        """Return the share of the calendar that has passed, times the size of the drift in logits."""
        first = int(self.population.admitted.min(initial=self.population.end))
        return np.asarray(self._options.drift * (start - first) / max(self.population.end - first, 1))

    def _give(
        self, number: int, unit: OrderUnit, decided: BoolArray, stay: IntArray, start: IntArray, length: IntArray
    ) -> None:
        rng = self._rng
        was_on = self._ward.on[stay, number]
        starting = decided & ~was_on
        first = start + (600 + rng.random(len(stay)) * np.minimum(np.maximum(length - 1200, 0), 3 * HOUR)).astype(
            np.int64
        )
        self.log.add(stay[starting], first[starting] - 300, f"MEDICATION//START//{unit.name}")
        stopping = was_on & ~decided
        self.log.add(stay[stopping], start[stopping] + 1800, f"MEDICATION//STOP//{unit.name}")
        for i in range(unit.times):
            at = first + i * (22 * HOUR // max(unit.times, 1))
            rows = decided & (at < start + length) if i else decided
            # A dose that the patient refuses is charted as not given; the first one of the day never is.
            refused = rows & (rng.random(len(stay)) < 0.03) & (i > 0)
            done = rows & ~refused
            self.log.add(stay[done], at[done], f"MEDICATION//{unit.name}//Administered")
            self.log.add(stay[refused], at[refused], f"MEDICATION//{unit.name}//Not Given")
        self._ward.on[stay, number] = decided
        self._exposure[stay, number] = 0.55 * self._exposure[stay, number] + 0.45 * decided

    def _stop_at_discharge(self) -> None:
        for number, unit in enumerate(self.catalogue.drug_units):
            stay = np.flatnonzero(self._ward.on[:, number])
            self.log.add(stay, self.population.discharged[stay] - 60, f"MEDICATION//STOP//{unit.name}")
