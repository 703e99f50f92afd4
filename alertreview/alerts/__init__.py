"""The worklist and everything shown about an alert.

Holds the lists, filters, triage, saved views, the task page, explanations and the patient behind an alert. May import
`studies`, `scoring`, `records` and the ground. Others use the read models in `models` and the services.
"""
