"""Figures of a study on all candidates of its run, with reasons that only a study knows."""

import numpy as np

from core.statistics import candidate_figures
from core.statistics.auc import PairedTest
from core.statistics.candidate_figures import Mask
from core.statistics.consensus import FloatArray
from core.statistics.estimate import Estimate, not_computable
from core.studies.report_input import StudyArrays


class CandidateFigures:
    """Weighted figures of one labelling of a study's cases: 1 positive, 0 negative, NaN undetermined."""

    def __init__(self, study: StudyArrays, y: FloatArray) -> None:
        self._study, self._level = study, study.source.level
        self._figures = candidate_figures.CandidateFigures(
            y, study.weight, study.patient, study.stratum, study.stratum_size, self._level
        )

    def auc(self, key: str, inside: Mask | None = None) -> Estimate:
        """Return the AUC of a scorer on the candidates, or on those of a subgroup."""
        if why := self._why_not(inside, key):
            return not_computable(why, level=self._level)
        return self._figures.auc(self._study.scores[key], inside)

    def difference(self, first: str, other: str) -> PairedTest:
        """Return the AUC of the first scorer less that of the other on the cases that both scored."""
        if why := self._why_not(None, first, other):
            return PairedTest(not_computable(why, level=self._level), None, None)
        return self._figures.difference(self._study.scores[first], self._study.scores[other])

    def share(self, inside: Mask | None = None) -> Estimate:
        """Return the share of positive candidates, of all or of a subgroup."""
        if why := self._why_not(inside):
            return not_computable(why, level=self._level)
        return self._figures.share(inside)

    def operating_point(self, key: str, threshold: float) -> dict[str, Estimate]:
        """Return sensitivity, specificity and negative predictive value of showing candidates from a score on."""
        return self._figures.operating_point(self._study.scores[key], threshold)

    def net_benefit(self, key: str, threshold: float, chance: float) -> Estimate:
        """Return the net benefit per candidate of showing candidates from a scaled score on."""
        return self._figures.net_benefit(self._study.scores[key], threshold, chance)

    def group_difference(self, key: str, group: Mask) -> PairedTest:
        """Return a scorer's AUC in a group less that among the others."""
        if why := self._why_not(None, key):
            return PairedTest(not_computable(why, level=self._level), None, None)
        return self._figures.group_difference(self._study.scores[key], group)

    def _why_not(self, inside: Mask | None, *keys: str) -> str:
        if any(key in self._study.gone for key in keys):
            return "no case has a score by this scorer; its run is gone"
        weight = self._study.weight if inside is None else self._study.weight[inside]
        if weight.size and np.isnan(weight).all():
            return "no case has an inclusion probability"
        return ""
