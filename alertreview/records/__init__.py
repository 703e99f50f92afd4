"""Health records in: sources, import, mapping help and snapshots.

A source yields rows; the import makes a cohort of them and writes it as a snapshot, a folder that never changes. May
import the ground only. Others use `read_snapshot` and `import_records`.
"""
