"""The report of a study: its content, documents, figures, checklists and signatures.

Also the sensitivity of a run's lists to its parameters. May import `alerts`, `studies`, `scoring`, `records` and the
ground. `exports` and the application use it.
"""
