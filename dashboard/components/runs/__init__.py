"""Parts of the Runs and Task pages: the run shown, comparison, drift, sensitivity."""
