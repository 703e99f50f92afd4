"""From source rows to a clean, ordered event stream.

Holds the site mapping, the code book, cleaning of values and units, duplicates, stays, the append of new records and
the import report. May import `core.numerics` and the ground. Sources in `alertreview.records` use the mapping and the
readers; `core.cohort` uses the stream, its parts and the stays.
"""
