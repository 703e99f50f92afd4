"""A reader of a whole study at her window: every act is a key, and every frame is searched for what is not for her."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from playwright.sync_api import Page

from tests.browser.blinded_frames import BANNED_WORDS, MANY, Secrets, leaks
from tests.browser.visits import Visit, wait_for_case
from tests.browser.whole_study_checks import StoredStudy

PASSWORD = "four boats in winter"
COORDINATOR, ADJUDICATOR = "Cora Nowakowska", "Adam Lindqvist"
READERS = ("Ann Okaforova", "Ben Castellanos", "Cleo Marchetti")
CANNOT_JUDGE = 0
Answers = Mapping[tuple[int, str], int]
"""The answer that a reader means to give, by case number in the study and name."""

LISTEN = "() => addEventListener('keydown', () => { window.pressedAt = performance.now(); }, true)"
FOCUSED = """() => {
  const on = document.activeElement;
  return on.matches('button, a, input, textarea') ? `${on.innerText} ${on.getAttribute('aria-label') ?? ''}` : '';
}"""
SHOWN = """() => document.querySelector('.st-key-review-bar')?.innerText.match(/Case \\d+ of \\d+|Review/)?.[0] ?? ''"""
LABEL = (
    """() => document.querySelector('.st-key-review-head')?.innerText.match(/of stay\\.\\s*(Case \\S+)/)?.[1] ?? ''"""
)
# Milliseconds from the last key to the choice on the screen.
CHOSEN = """([answer, shown]) => new Promise(done => {
  const began = performance.now();
  const look = () => {
    if (document.querySelector(`.st-key-rv_answer_${answer}_${shown} [data-testid=stBaseButton-primary]`))
      return done(performance.now() - window.pressedAt);
    if (performance.now() - began > 180000) return done(null);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""
# Milliseconds from the last key to the words of another case, to the saved mark beside it, and to its figure, whole.
SAVED = """before => new Promise(done => {
  const began = performance.now(); let marked = null, text = null;
  const head = () => document.querySelector('.st-key-review-head');
  const label = () => head()?.innerText.match(/of stay\\.\\s*(Case \\S+)/)?.[1] ?? '';
  const look = () => {
    if (text === null && label() && label() !== before[1] && !head().querySelector('h1')?.closest('[data-stale=true]'))
      text = performance.now() - window.pressedAt;
    const bar = document.querySelector('.st-key-review-bar');
    const where = bar?.innerText.match(/Case \\d+ of \\d+|Review/)?.[0] ?? '';
    const marks = [...bar?.querySelectorAll('p') ?? []].filter(p => /Saved \\d\\d:\\d\\d/.test(p.innerText));
    const isMarked = where && where !== before[0] && marks.some(p => !p.closest('[data-stale=true]'));
    if (marked === null && isMarked) marked = performance.now() - window.pressedAt;
    const charts = [...document.querySelectorAll('[data-testid=stPlotlyChart]')];
    const isDrawn = (where === 'Review' || charts.length) && charts.every(c => c.querySelector('.main-svg .xtick'));
    if (marked !== null && isDrawn && !document.querySelector('[data-testid=stSkeleton], [data-stale=true]'))
      return done([marked, performance.now() - window.pressedAt, text ?? marked]);
    if (performance.now() - began > 180000) return done(null);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""


@dataclass
class Times:
    """Milliseconds from a key to what it brings about: the choice, the next case's words and figure, the saved mark."""

    to_choice: list[float] = field(default_factory=list)
    to_next_text: list[float] = field(default_factory=list)
    to_mark: list[float] = field(default_factory=list)
    to_next_case: list[float] = field(default_factory=list)

    def add(self, other: "Times") -> None:
        """Take another reader's times in."""
        self.to_choice += other.to_choice
        self.to_next_text += other.to_next_text
        self.to_mark += other.to_mark
        self.to_next_case += other.to_next_case


@dataclass
class Scanned:
    """What was searched for secrets, and what was found."""

    n_frames: int = 0
    n_bytes: int = 0
    found: list[str] = field(default_factory=list)


def login_of(name: str) -> str:
    """What somebody types to sign in."""
    return name.split()[0].lower()


def sign_in(opened: Visit, name: str) -> None:
    """Come to the site and say who one is, by keys alone."""
    page = opened.page
    page.goto(opened.url)
    page.wait_for_selector("#login:focus")
    page.keyboard.type(login_of(name))
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_selector(".ar-who", timeout=180_000)
    opened.settle()


def go_to_by_keys(page: Page, words: str, key: str = "Tab", most: int = 80) -> int:
    """Move the focus with a key until it is on an element with such words or such a label; gives how many it took."""
    for number in range(1, most + 1):
        page.keyboard.press(key)
        if re.search(words, page.evaluate(FOCUSED)):
            return number
    raise AssertionError(f"{most} presses of {key} do not lead to {words}")


class Reader:
    """A reader at her window: every act is a key, and every frame is searched for what she must not get."""

    def __init__(self, opened: Visit, name: str, stored: StoredStudy, answers: Answers) -> None:
        self.name, self.opened, self.page = name, opened, opened.page
        self.times, self.scanned = Times(), Scanned()
        self.typed: dict[int, list[tuple[int | None, str]]] = {}
        """What was saved or taken back (None), with its comment, by case number and in this order."""
        self._stored, self._answers = stored, answers
        self._numbers = stored.case_numbers()
        self._secret = stored.numbers()
        self._n_shown = 0

    def arrive(self) -> None:
        """Sign in, and go from the first page to the first case."""
        sign_in(self.opened, self.name)
        self.scan(words=())
        go_to_by_keys(self.page, "Start reviewing")
        self.opened.key("Enter")
        self.page.wait_for_selector(".st-key-review-bar", timeout=180_000)
        self.opened.settle()
        wait_for_case(self.page)
        self.page.evaluate(LISTEN)

    def is_done(self) -> bool:
        """Whether the list is at its end."""
        return bool(self.page.evaluate(SHOWN) == "Review")

    def judge(self) -> None:
        """Judge the case that is shown; the first, second and third one not straight away."""
        self._n_shown += 1
        case = self._case()
        answer = self._answers[case, self.name]
        if self._n_shown == 1:
            self._choose(3 if answer != 3 else 1)
        if self._n_shown == 2:
            self._save_another_and_take_it_back(case, 3 if answer != 3 else 1)
        if self._n_shown == 3:
            self._press_and_go_on("l")
            self.scan(case)
            return
        self._choose(answer)
        comment = self._comment(case, answer)
        self._save(case, answer, comment)

    def _case(self) -> int:
        """Number of the case that is shown."""
        wait_for_case(self.page)
        found = re.search(r"[?&]case=(\d+)", self.page.url)
        assert found, self.page.url
        return self._numbers[int(found[1])]

    def _choose(self, answer: int) -> None:
        case_id = re.search(r"[?&]case=(\d+)", self.page.url)
        assert case_id, self.page.url
        self.opened.key(str(answer))
        taken = self.page.evaluate(CHOSEN, [answer, case_id[1]])
        assert taken is not None, f"key {answer} chose nothing at {self.page.url}"
        self.times.to_choice.append(taken)
        wait_for_case(self.page)

    def _comment(self, case: int, answer: int) -> str:
        """Type why a case cannot be judged, and at every fourth case something else."""
        if answer != CANNOT_JUDGE and case % 4:
            return ""
        comment = f"{login_of(self.name)}{case:03d}: seen by nobody else"
        go_to_by_keys(self.page, "^ Comment$", "Shift+Tab")
        self.page.keyboard.type(comment)
        return comment

    def _save(self, case: int, answer: int, comment: str) -> None:
        """Save, see the mark, and find the answer in the database at that moment."""
        before = [self.page.evaluate(SHOWN), self.page.evaluate(LABEL)]
        self.opened.key("Control+Enter" if comment else "s")
        taken = self.page.evaluate(SAVED, before)
        alerts = self.page.locator("[data-testid=stAlert]").all_inner_texts()
        assert taken is not None, f"case {case}, {self.name}: no saved mark; {alerts}"
        self.times.to_next_text.append(taken[2])
        self.times.to_mark.append(taken[0])
        self.times.to_next_case.append(taken[1])
        self.typed.setdefault(case, []).append((answer, comment))
        assert self._stored.current(case, self.name) == (answer, comment), f"case {case}, {self.name}: marked, not kept"
        self.scan(case)

    def _save_another_and_take_it_back(self, case: int, other: int) -> None:
        self._choose(other)
        self._save(case, other, "")
        self._press_and_go_on("z")
        assert self._case() == case
        self.typed[case].append((None, ""))
        assert self._stored.current(case, self.name) is None

    def _press_and_go_on(self, key: str) -> None:
        before = self.page.evaluate(SHOWN)
        self.opened.key(key)
        self.page.wait_for_function(f"before => ({SHOWN})() !== before", arg=before)
        wait_for_case(self.page)

    def look_around(self, slug: str) -> None:
        """Go to the other pages with cases left to judge, and come back; what they send is searched as well."""
        self.opened.go(f"reports?study={slug}")
        text = self.page.locator("[data-testid=stMain]").inner_text()
        assert "results are hidden from this reader" in " ".join(text.split()), text
        assert not re.search(r"AUC[^.]*\d\.\d\d", text), text
        for path in (f"studies?study={slug}", "my-judgments", "worklist", ""):
            self.opened.go(path)
        self.scan(words=())
        go_to_by_keys(self.page, "Continue reviewing")
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector(".st-key-review-bar", timeout=180_000)
        self.opened.settle()
        wait_for_case(self.page)

    def scan(self, *cases: int, words: tuple[str, ...] = BANNED_WORDS) -> None:
        """Search what came since the last search: closely for what belongs to these cases and to the one shown now.

        Of the others every number is looked for that is long enough not to turn up by chance. Away from the review
        that is so for the cases which wait for her, since the alert of a judged one may be opened; and how cases were
        chosen stands in every report, so that neither the strata's names nor their shares are secrets there.
        """
        frames = self.opened.frames[:]
        del self.opened.frames[: len(frames)]
        near = {*cases, self._case()} if cases and not self.is_done() else set(cases)
        far = [case for case in self._secret if words or case not in self.typed]
        design = set() if words else self._stored.shares()
        texts = [*self._texts(), *(self._stored.strata() if words else ())]
        close = Secrets(texts, [one for case in near for one in self._secret[case]], words)
        wide = Secrets((), {one for case in far for one in self._secret[case]} - design, (), MANY)
        self.scanned.found += [f"{self.name}, {cases}: {one}" for one in leaks(frames, close, wide)]
        self.scanned.n_frames += len(frames)
        self.scanned.n_bytes += sum(map(len, frames))

    def _texts(self) -> list[str]:
        """Return the names of the others and the beginnings of what they type."""
        others = [name for name in (*READERS, ADJUDICATOR) if name != self.name]
        return others + [f"{login_of(name)}{case:03d}:" for name in others for case in self._numbers.values()]
