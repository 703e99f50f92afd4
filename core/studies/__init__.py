"""What a study consists of: the choice of its cases, and the report made from its votes.

`selection` chooses cases with known inclusion probabilities; `make_report` turns cases, votes and scores into a
`StudyReport`. May import `core.statistics` and the ground.
"""

from core.studies.selection import Selection, SelectionDesign, choose_cases

__all__ = ["Selection", "SelectionDesign", "choose_cases"]
