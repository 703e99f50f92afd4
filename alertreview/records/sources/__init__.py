"""Readers of health records: each turns one format into the event stream of ``core.events.stream``."""
