"""Parts of the coordinator's pages: acts on a study, choice of a study, planner."""
