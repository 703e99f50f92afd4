"""Statistics of reader studies: AUC with intervals, weighting, agreement, ceiling, planning, consensus.

Every figure is an `Estimate`: a value with its interval, or the reason why it cannot be computed. May import the ground
only. `core.studies` assembles reports from these functions.
"""

from core.statistics.design_auc import design_weighted_auc, design_weighted_difference

__all__ = ["design_weighted_auc", "design_weighted_difference"]
