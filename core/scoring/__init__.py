"""Scores of all tasks of a run.

Evidence is computed task by task, then calibrated over all tasks so that scores are comparable. New instances are
scored against the stored past of an earlier run. The top room of `core`: it may import every other one but
`simulation` and `studies`. `alertreview.scoring` uses `score_tasks`, the parameters and the stored past.
"""
