"""Tables out of a study: labels, cases and scores as files, with dictionary and manifest.

Holds formats, the schema, checks of values, and the recomputation of a report from its export. May import `reports`,
`studies`, `records` and the ground.
"""
