"""Scoring a site: a run is scored, resumed, ranked, stored and published; new days are scored against it.

May import `records` and the ground. Others use `score_site`, the run's read model and the names of scorers.
"""
