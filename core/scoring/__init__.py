"""Scores of all tasks of a run.

`scorers` registers every scorer. Evidence is computed task by task, then calibrated over all tasks so that scores are
comparable. New instances are scored against the stored past of an earlier run. The top room of `core`: it may import
every other one but `simulation` and `studies`. Others use `all_tasks.score_tasks`, `scorers`, `scores`, the parameters,
the stored past and `sensitivity`.
"""
