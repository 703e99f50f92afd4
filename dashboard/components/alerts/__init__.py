"""Parts of the alert page: neighbours, triage bar, story."""
