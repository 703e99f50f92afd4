"""From the event stream to instances, features and tasks.

Holds the cohort, how it is built part by part, the layout of its features, the tasks with their decisions and order
groups, reference bands, compiled loops and the content hash. May import `core.events`, `core.numerics` and the ground.
Others use `Cohort`, `build` and `Tasks`.
"""
