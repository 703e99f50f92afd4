"""Find unusual patient-management decisions, have clinicians judge them, report how good the alerts are."""

__version__ = "0.1.0"
