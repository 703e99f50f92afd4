"""What each use case needs before it runs: one line for each, as data; a use case without a line is refused."""

from collections.abc import Mapping
from dataclasses import dataclass

from alertreview.access.roles import Action


@dataclass(frozen=True)
class Rule:
    """What a use case needs; the other fields name parameters of it.

    Parameters
    ----------
    action : Action or None
        What the role must allow; None: whoever is signed in.
    alert, alerts : str
        Number of an alert, or several things with an `alert_id`: of units that the person may see.
    case : str
        Number of a case: of a unit that the person may see.
    study : str
        Short name of a study that is seen whole: all its units must be the person's.
    filters : str
        Filters of a list of alerts: narrowed to the person's units.
    all_units : bool
        Chooses among all patients: for nobody who is limited to units.
    fresh : bool
        Credentials must have been given again, for this one act.
    """

    action: Action | None
    alert: str = ""
    alerts: str = ""
    case: str = ""
    study: str = ""
    filters: str = ""
    all_units: bool = False
    fresh: bool = False

    def parameters(self) -> tuple[str, ...]:
        """Return the parameters that the rule names."""
        return tuple(name for name in (self.alert, self.alerts, self.case, self.study, self.filters) if name)


RULES: Mapping[str, Rule] = {
    "simulated": Rule(None),
    "people": Rule(Action.SEE_STUDIES),
    "person_named": Rule(Action.SEE_STUDIES),
    # Alerts.
    "runs": Rule(Action.SEE_RUNS),
    "run": Rule(Action.SEE_RUNS),
    "filter_choices": Rule(Action.SEE_ALERTS),
    "worklist": Rule(Action.SEE_ALERTS, filters="filters"),
    "alert": Rule(Action.SEE_ALERTS, alert="alert_id", filters="filters"),
    "preview": Rule(Action.SEE_ALERTS, alert="alert_id"),
    "alert_lists.line": Rule(Action.SEE_ALERTS, alert="alert_id", filters="filters"),
    "alert_lists.targets": Rule(Action.TRIAGE, filters="filters"),
    "alert_lists.past_instance": Rule(Action.SEE_ALERTS, alert="alert_id"),
    "alert_lists.expected_rate": Rule(Action.SEE_RESULTS, filters="filters"),
    "alert_lists.units": Rule(Action.SEE_ALERTS, filters="filters"),
    "tasks.choices": Rule(Action.SEE_ALERTS),
    "tasks.view": Rule(Action.SEE_ALERTS, filters="filters"),
    "tasks.judged": Rule(Action.SEE_RESULTS, filters="filters"),
    "tasks.drift": Rule(Action.SEE_RUNS, filters="filters"),
    "triage.act": Rule(Action.TRIAGE, alerts="targets"),
    "triage.undo": Rule(Action.TRIAGE),
    "triage.add_note": Rule(Action.TRIAGE, alert="alert_id"),
    "triage.story": Rule(Action.SEE_ALERTS, alert="alert_id"),
    "saved_views.offered_to": Rule(Action.SEE_ALERTS),
    "saved_views.save": Rule(Action.SEE_ALERTS),
    "saved_views.delete": Rule(Action.SEE_ALERTS),
    # A reader's own cases.
    "studies": Rule(Action.SEE_STUDIES),
    "study": Rule(Action.SEE_STUDIES),
    "queue": Rule(Action.SEE_STUDIES),
    "is_blinded": Rule(Action.SEE_STUDIES),
    "next_case": Rule(Action.JUDGE),
    "case": Rule(Action.JUDGE, case="case_id"),
    "save_draft": Rule(Action.JUDGE, case="case_id"),
    "mark_later": Rule(Action.JUDGE, case="case_id"),
    "submit_judgment": Rule(Action.JUDGE, case="case_id"),
    "undo": Rule(Action.JUDGE, case="case_id"),
    "feedback": Rule(Action.JUDGE, case="case_id"),
    "my_judgments": Rule(Action.SEE_STUDIES),
    "panels.cases": Rule(Action.JUDGE, alert="alert_id"),
    "panels.next_alert": Rule(Action.JUDGE),
    # Studies.
    "plan_study": Rule(Action.SEE_STUDIES),
    "study_desk.preview": Rule(Action.MANAGE_STUDIES, all_units=True),
    "study_desk.set_up": Rule(Action.MANAGE_STUDIES, all_units=True),
    "study_desk.set_up_training": Rule(Action.MANAGE_STUDIES, study="from_slug"),
    "study_desk.paper": Rule(Action.MANAGE_STUDIES, study="slug"),
    "study_desk.self_agreement": Rule(Action.MANAGE_STUDIES, study="slug"),
    "adjudication.disagreements": Rule(Action.ADJUDICATE, study="slug"),
    "adjudication.case": Rule(Action.ADJUDICATE, case="case_id"),
    "adjudication.adjudicate": Rule(Action.ADJUDICATE, case="case_id"),
    "run_comparisons.compare": Rule(Action.SEE_RUNS),
    "sensitivity.of_run": Rule(Action.SEE_RUNS),
    "studies_service.view": Rule(Action.SEE_STUDIES),
    "studies_service.create_study": Rule(Action.MANAGE_STUDIES, all_units=True),
    "studies_service.add_cases": Rule(Action.MANAGE_STUDIES, all_units=True),
    "studies_service.revise_rubric": Rule(Action.MANAGE_STUDIES, study="slug"),
    "studies_service.add_readers": Rule(Action.MANAGE_STUDIES, study="slug"),
    "studies_service.open_study": Rule(Action.MANAGE_STUDIES, study="slug"),
    "studies_service.lock_study": Rule(Action.MANAGE_STUDIES, study="slug"),
    "studies_service.reopen_study": Rule(Action.MANAGE_STUDIES, study="slug"),
    "studies_service.progress": Rule(Action.MANAGE_STUDIES, study="slug"),
    "studies_service.votes": Rule(Action.MANAGE_STUDIES, study="slug"),
    "studies_service.repeats": Rule(Action.MANAGE_STUDIES, study="slug"),
    "studies_service.case_rows": Rule(Action.MANAGE_STUDIES, study="slug"),
    # Results.
    "report": Rule(Action.SEE_RESULTS, study="slug"),
    "content_hash": Rule(Action.SEE_RESULTS),
    "report_file": Rule(Action.SEE_RESULTS),
    "signatures": Rule(Action.SEE_RESULTS),
    "sign_report": Rule(Action.SIGN, study="slug", fresh=True),
    "export_preview": Rule(Action.EXPORT, study="slug"),
    "export_labels": Rule(Action.EXPORT, study="slug"),
    "export_study_zip": Rule(Action.EXPORT, study="slug"),
    "past_exports": Rule(Action.EXPORT),
    # People.
    "accounts.all": Rule(Action.MANAGE_PEOPLE),
    "accounts.units": Rule(Action.MANAGE_PEOPLE),
    "accounts.find": Rule(Action.MANAGE_PEOPLE),
    "accounts.create": Rule(Action.MANAGE_PEOPLE),
    "accounts.reset": Rule(Action.MANAGE_PEOPLE),
    "accounts.set_role": Rule(Action.MANAGE_PEOPLE),
    "accounts.set_active": Rule(Action.MANAGE_PEOPLE),
    "accounts.set_units": Rule(Action.MANAGE_PEOPLE),
    "accounts.sessions": Rule(Action.MANAGE_PEOPLE),
    "accounts.end_sessions": Rule(Action.MANAGE_PEOPLE),
    "accounts.failures": Rule(Action.MANAGE_PEOPLE),
    # What was done, and whether all is well.
    "audit_trail.page": Rule(Action.SEE_AUDIT),
    "audit_trail.actions": Rule(Action.SEE_AUDIT),
    "audit_trail.verify": Rule(Action.SEE_AUDIT),
    "health.ready": Rule(Action.OPERATE),
}
"""By the name under which a page calls it: a method of the application, or service and method."""

NOT_FOR_PAGES = frozenset(
    {
        "audit_trail.export",
        "close",
        "database",
        "exports",
        "finish_writing",
        "sessions",
        "settings",
        "sign_in",
        "unit_lookup",
    }
)
"""What only the command line, the gate and the composition root use; a page that asks is refused."""
