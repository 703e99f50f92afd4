"""Figures of a site for Prometheus: how much there is and how old it is, never of whom."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from alertreview.application import Application
from alertreview.operations.backup import noted_backups
from core.errors import SettingsError
from core.vocabulary import RunStatus, StudyStatus

if TYPE_CHECKING:
    from prometheus_client.core import GaugeMetricFamily


class SiteCollector:
    """A collector of prometheus-client: reads the figures of a site again whenever it is asked.

    Labels are words of this program and the short names of studies. Reading takes no lock: an import or a run that is
    being written neither waits nor is counted before it is complete.
    """

    def __init__(self, site: Application) -> None:
        self._site = site

    def collect(self) -> Iterator["GaugeMetricFamily"]:
        """Yield the figures as they are now."""
        from prometheus_client.core import GaugeMetricFamily

        with self._site.database.read() as uow:
            runs, snapshot = uow.runs.all(), uow.snapshots.latest()
            n_audit_rows = uow.audit.count()
            backup = next((each for each in noted_backups(self._site.settings, uow) if not each.problem), None)
        published = max((run for run in runs if run.published_at is not None), key=lambda run: run.id, default=None)
        by_status = Counter(run.status for run in runs)

        family = GaugeMetricFamily("alertreview_runs", "Scoring runs by status.", labels=["status"])
        for status in RunStatus:
            family.add_metric([status.value], by_status[status])
        yield family
        family = GaugeMetricFamily(
            "alertreview_alerts", "Alerts of the last published run, by its first scorer.", labels=["decision"]
        )
        family.add_metric(["omission"], published.n_omissions if published else 0)
        family.add_metric(["commission"], published.n_commissions if published else 0)
        yield family
        yield from self._studies()
        yield GaugeMetricFamily("alertreview_audit_rows", "Rows of the audit trail.", value=n_audit_rows)
        moments = {
            "import": ("the last import", snapshot.created_at.timestamp() if snapshot else None),
            "run_published": (
                "the last published run",
                published.published_at.timestamp() if published and published.published_at else None,
            ),
            "backup": (
                "the last backup that was made and verified, and is in its place",
                backup.made_at.timestamp() if backup else None,
            ),
        }
        for name, (what, moment) in moments.items():
            if moment is not None:
                yield GaugeMetricFamily(f"alertreview_{name}_timestamp_seconds", f"Unix time of {what}.", value=moment)

    def _studies(self) -> Iterator["GaugeMetricFamily"]:
        from prometheus_client.core import GaugeMetricFamily

        studies = [study for study in self._site.studies.all() if study.status is not StudyStatus.DRAFT]
        cases = GaugeMetricFamily("alertreview_cases", "Cases of a study by state.", labels=["study", "state"])
        votes = GaugeMetricFamily(
            "alertreview_judged_slots", "Places of readers that hold a judgment.", labels=["study"]
        )
        slots = GaugeMetricFamily("alertreview_slots", "Places of readers in all cases of a study.", labels=["study"])
        for study in studies:
            for state, n in study.case_states.items():
                cases.add_metric([study.slug, state.value], n)
            votes.add_metric([study.slug], study.n_judged)
            slots.add_metric([study.slug], study.n_cases * study.n_slots)
        yield from (cases, votes, slots)


def metrics_text(site: Application) -> bytes:
    """Return the figures of a site in the text format of Prometheus, for a file that its node exporter reads.

    Raise SettingsError if the package prometheus-client is missing.
    """
    try:
        from prometheus_client import generate_latest
    except ImportError:
        raise SettingsError(
            "Metrics need the package prometheus-client. Run: pip install 'alertreview[metrics]'"
        ) from None
    return generate_latest(SiteCollector(site))
