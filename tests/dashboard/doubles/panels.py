"""Double of the open panels: alerts of the double are cases of its third study, kept with the same votes and drafts."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from alertreview.review.models import DraftView
from alertreview.review.panels import PanelCase, PanelService
from alertreview.rights import Service
from core.vocabulary import Answer
from tests.dashboard.doubles.sign_in import guarded_as

if TYPE_CHECKING:
    from tests.dashboard.doubles.application import FakeApplication

SLUG = "panel"
LONG = {answer: answer.text for answer in Answer}
"""As long as a real study's answers: on a phone they must not be cut to the same words."""


@guarded_as(PanelService)
@dataclass
class FakePanels(Service):
    """The alert page's questions about open panels; the double's case numbers stand for its rows."""

    app: "FakeApplication"

    def cases(self, alert_id: int, person_id: int) -> tuple[PanelCase, ...]:
        app, case_id = self.app, self.case_of(alert_id)
        if not app.with_panel or case_id is None or not app.review.queue(SLUG, person_id).is_reader:
            return ()
        study, shown, key = (
            app.studies.view(SLUG),
            app.review.case(SLUG, person_id, case_id),
            (SLUG, person_id, case_id),
        )
        last = app.votes[key][-1] if shown.is_judged else None
        return (
            PanelCase(
                study_slug=SLUG,
                study_title=study.title,
                case_id=case_id,
                question=study.question,
                answer_texts=LONG,
                answer=last.answer if last else None,
                certainty=last.certainty if last else None,
                comment=last.comment if last else "",
                saved_at=last.saved_at if last else None,
                draft=app.drafts.get(key, DraftView(None, None, "")),
                version_seen=shown.version_seen,
                form_key=shown.form_key,
            ),
        )

    def next_alert(self, slug: str, person_id: int, after_case_id: int | None = None) -> int | None:
        found = self.app.review.next_case(slug, person_id, after_case_id)
        return None if found is None else self.alert_of(found.case_id)

    def case_of(self, alert_id: int) -> int | None:
        found = [c for c in range(1, self.app.n_cases + 1) if self.alert_of(c) == alert_id]
        return found[0] if found else None

    def alert_of(self, case_id: int) -> int:
        return 1000 + (case_id * 5) % self.app.n_alerts
