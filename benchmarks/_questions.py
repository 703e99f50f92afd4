"""Ten questions that a case answers at a glance, each with the part of the page that answers it."""

from dataclasses import dataclass

from playwright.sync_api import Page

from alertreview.alerts.models import AlertDetail, WorklistFilters
from alertreview.application import Services
from core.vocabulary import AlertId, Decision

PADDING, WIDEST = 6, 960


@dataclass(frozen=True)
class Question:
    """A question and where the alert page answers it.

    Parameters
    ----------
    name : str
        Of the picture: ``case-NAME.png``.
    words : str
        As in the documents.
    where : str
        CSS selector of the element that answers it.
    part : tuple of two floats
        Upper and lower end of the part of the element that is shown, as shares of its height.
    """

    name: str
    words: str
    where: str
    part: tuple[float, float] = (0.0, 1.0)


QUESTIONS = (
    Question("background", "Why is she here, and what else does she have?", ".st-key-case-background"),
    Question("decision", "What was decided, and when?", "[class*=st-key-timeline-alert]", (0.0, 0.175)),
    Question("measured", "When was potassium last measured, and is it low?", "[class*=st-key-values-]"),
    Question("trend", "Which way do the labs go?", "[class*=st-key-timeline-alert]", (0.175, 0.71)),
    Question("drugs", "Is she on heparin now, and how much?", "[class*=st-key-drugs-]"),
    Question("doses", "What else ran, and were the doses given?", "[class*=st-key-timeline-alert]", (0.71, 1.0)),
    Question("range", "What happened before?", "[class*=st-key-case-head-],[class*=st-key-case-title-]"),
    Question("reasons", "Why did the program find it odd?", ".st-key-reasons"),
    Question("others", "What did similar patients get?", ".st-key-alert-title"),
    Question("afterwards", "What happened afterwards?", ".st-key-record-after"),
)


def pictured_alert(site: Services, most: int = 400) -> AlertId:
    """Return the first omission whose case has all that the questions ask about, or the one with most of it."""
    filters = WorklistFilters(decision=Decision.OMISSION, alerts_per_patient_day=50.0)
    best, most_found = None, -1
    for row in site.worklist.page(filters, limit=most).rows:
        found = _found(site.worklist.alert(row.alert_id))
        if found > most_found:
            best, most_found = row.alert_id, found
        if found == 5:
            break
    if best is None:
        raise LookupError("The site has no omission to take pictures of.")
    return best


def _found(detail: AlertDetail) -> int:
    patient = detail.patient
    return sum(
        [
            any(value.name == "Potassium" and value.flag == "low" for value in patient.last_values),
            any(drug.name == "Heparin" for drug in patient.drugs_now),
            "Allergies" in dict(patient.background),
            len(detail.reasons.lines) >= 3,
            detail.row.kind.record.features != () and bool(detail.record_after),
        ]
    )


def clip(page: Page, question: Question) -> dict[str, float]:
    """Return the part of the page that answers a question, in pixels of the window."""
    element = page.locator(question.where).first
    element.evaluate("element => element.scrollIntoView({block: 'center'})")  # not below the head of the page
    page.wait_for_timeout(200)
    box = element.bounding_box()
    if box is None:
        raise LookupError(f"The page shows nothing at {question.where}.")
    upper, lower = question.part
    return {
        "x": max(box["x"] - PADDING, 0),
        "y": max(box["y"] + upper * box["height"] - PADDING, 0),
        "width": min(box["width"] + 2 * PADDING, WIDEST),
        "height": (lower - upper) * box["height"] + 2 * PADDING,
    }
