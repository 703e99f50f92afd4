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
    "site.simulated": Rule(None),
    "site.people": Rule(Action.SEE_STUDIES),
    "site.person_named": Rule(Action.SEE_STUDIES),
    # Alerts.
    "worklist.runs": Rule(Action.SEE_RUNS),
    "worklist.run": Rule(Action.SEE_RUNS),
    "worklist.filter_choices": Rule(Action.SEE_ALERTS),
    "worklist.page": Rule(Action.SEE_ALERTS, filters="filters"),
    "worklist.alert": Rule(Action.SEE_ALERTS, alert="alert_id", filters="filters"),
    "worklist.preview": Rule(Action.SEE_ALERTS, alert="alert_id"),
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
    "studies.all": Rule(Action.SEE_STUDIES),
    "review.queue": Rule(Action.SEE_STUDIES),
    "review.is_blinded": Rule(Action.SEE_STUDIES),
    "review.next_case": Rule(Action.JUDGE),
    "review.case": Rule(Action.JUDGE, case="case_id"),
    "review.save_draft": Rule(Action.JUDGE, case="case_id"),
    "review.mark_later": Rule(Action.JUDGE, case="case_id"),
    "review.submit_judgment": Rule(Action.JUDGE, case="case_id"),
    "review.undo": Rule(Action.JUDGE, case="case_id"),
    "review.feedback": Rule(Action.JUDGE, case="case_id"),
    "review.my_judgments": Rule(Action.SEE_STUDIES),
    "panels.cases": Rule(Action.JUDGE, alert="alert_id"),
    "panels.next_alert": Rule(Action.JUDGE),
    # Studies.
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
    "studies.view": Rule(Action.SEE_STUDIES),
    "studies.create_study": Rule(Action.MANAGE_STUDIES, all_units=True),
    "studies.add_cases": Rule(Action.MANAGE_STUDIES, all_units=True),
    "studies.revise_rubric": Rule(Action.MANAGE_STUDIES, study="slug"),
    "studies.add_readers": Rule(Action.MANAGE_STUDIES, study="slug"),
    "studies.open_study": Rule(Action.MANAGE_STUDIES, study="slug"),
    "studies.lock_study": Rule(Action.MANAGE_STUDIES, study="slug"),
    "studies.reopen_study": Rule(Action.MANAGE_STUDIES, study="slug"),
    "studies.progress": Rule(Action.MANAGE_STUDIES, study="slug"),
    "studies.votes": Rule(Action.MANAGE_STUDIES, study="slug"),
    "studies.repeats": Rule(Action.MANAGE_STUDIES, study="slug"),
    "studies.case_rows": Rule(Action.MANAGE_STUDIES, study="slug"),
    # Results.
    "reports.report": Rule(Action.SEE_RESULTS, study="slug"),
    "reports.file": Rule(Action.SEE_RESULTS),
    "reports.signatures": Rule(Action.SEE_RESULTS),
    "reports.sign": Rule(Action.SIGN, study="slug", fresh=True),
    "exports.preview": Rule(Action.EXPORT, study="slug"),
    "exports.labels_download": Rule(Action.EXPORT, study="slug"),
    "exports.study_download": Rule(Action.EXPORT, study="slug"),
    "exports.past": Rule(Action.EXPORT),
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
        "exports.labels",
        "exports.study",
        "finish_writing",
        "sessions",
        "settings",
        "sign_in",
        "unit_lookup",
    }
)
"""What only the command line, the gate and the composition root use; a page that asks is refused."""
