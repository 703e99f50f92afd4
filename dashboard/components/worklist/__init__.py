"""Parts of the worklist: header, filters, budget, preview, bulk triage, state."""
