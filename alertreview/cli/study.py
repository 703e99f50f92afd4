"""Commands on a study: its report, a signature, exported labels, and the report again from exported files."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from alertreview.cli.options import (
    COUNT,
    SEED,
    FilePath,
    file_format,
    list_format,
    out_option,
    result_format,
    with_application,
)
from alertreview.cli.tables import STANDARD_OUTPUT, is_set, print_list, tell, tell_done, write_out
from alertreview.settings import now
from core.errors import InvalidInputError, SourceError
from core.number_texts import counted
from core.vocabulary import PersonId, Role

if TYPE_CHECKING:
    from alertreview.application import Application


@click.command()
@click.option("--study", "slug", required=True, help="Short name of the study.")
@out_option("File to write")
@file_format("json", "html", "pdf")
@with_application
def report(application: "Application", slug: str, output_format: str, out: Path | None) -> None:
    """Report how good the alerts of a study are: AUC with intervals, agreement, what was left out and why."""
    from alertreview.reports.documents import ReportFormat, render_report

    study_report = application.reports.report(slug)
    signatures = application.reports.signatures(slug, study_report)
    content = render_report(study_report, ReportFormat(output_format), signatures)
    if write_out(out, content):
        tell(f"Report of study {slug} written to {out}.")


@click.command(name="sign-report")
@click.option("--study", "slug", required=True, help="Short name of the study; it must be locked.")
@click.option("--person", metavar="NAME", required=True, help="Who signs: the name of somebody on this site.")
@click.option("--meaning", metavar="TEXT", required=True, help="What the signature says: 'I approve this report'.")
@with_application
def sign_report(application: "Application", slug: str, person: str, meaning: str) -> None:
    """Sign the report of a locked study as it stands; a changed vote or a reopened study supersedes the signature."""
    from alertreview.cli.accounts import ask_password

    signer = application.site.person_named(person).person_id
    application.sign_in.require_credentials(signer, ask_password)
    signature = application.reports.sign(slug, signer, meaning)
    tell(f"{signature.name} signed the report of study {slug}: {signature.meaning}.")
    tell(f"Content {signature.content_hash}")


@click.group()
def study() -> None:
    """Set up studies, and lock them when all is judged."""


@study.command(name="create")
@click.option("--study", "slug", required=True, help="Short name: lower-case letters, digits, hyphens.")
@click.option("--title", required=True, help="Name for people.")
@click.option("--reader", "readers", multiple=True, required=True, help="Name of a reader; repeat for each.")
@click.option("--cases", type=COUNT, default=222, show_default=True, help="Cases to choose.")
@click.option("--readers-per-case", type=COUNT, default=3, show_default=True, help="Readers that judge each case.")
@click.option("--balance", is_flag=True, help="As many omissions as commissions from each range of scores.")
@click.option(
    "--edges", default="0.333,0.667", show_default=True, help="Scaled scores that divide the strata, rising, by commas."
)
@click.option("--quantiles", default="", help="Instead of --edges: shares of the candidates below each division.")
@click.option(
    "--half-in-largest",
    is_flag=True,
    help="Half of the cases from the stratum with most candidates, which decides most about the AUC.",
)
@click.option(
    "--repeats", type=click.IntRange(0, COUNT.max), default=0, help="Cases shown twice to the same readers, hidden."
)
@click.option("--seed", type=SEED, default=1, show_default=True, help="Of the choice and the readers' orders.")
@click.option(
    "--open-panel", is_flag=True, help="Readers may see the scores before they judge; such figures are flattered."
)
@result_format
@with_application
def study_create(
    application: "Application",
    slug: str,
    title: str,
    readers: tuple[str, ...],
    cases: int,
    readers_per_case: int,
    balance: bool,
    edges: str,
    quantiles: str,
    half_in_largest: bool,
    repeats: int,
    seed: int,
    open_panel: bool,
    output_format: str,
) -> None:
    """Choose cases over low, middle and high scores of the last run, and open the study for its readers.

    The defaults are the method paper's: 222 cases, three readers each.
    """
    from alertreview.studies.models import Rubric, StudyPlan
    from core.vocabulary import OPEN_PANEL_LIMIT

    if len(set(readers)) != len(readers):
        raise InvalidInputError("A reader is named twice. Name each reader once.")
    if len(readers) < readers_per_case:
        raise InvalidInputError(
            f"{counted(len(readers), 'reader')} named; each case needs {readers_per_case}. "
            "Name more, or lower --readers-per-case."
        )
    divided = _numbers("--quantiles", quantiles)
    plan = StudyPlan(
        n_cases=cases,
        n_readers=readers_per_case,
        edges=_edges(edges),
        balance_decisions=balance,
        n_repeats=0 if open_panel else repeats,
        seed=seed,
        preset="quantiles of the score" if divided else "low, middle and high scores",
        quantiles=divided,
        half_in_largest=half_in_largest,
    )
    application.study_desk.set_up(slug, title, plan, Rubric(), [], is_open_panel=open_panel)
    application.studies.add_readers(slug, _people_named(application, readers))
    application.studies.open_study(slug)
    made = application.studies.view(slug)
    result = {"study": made.slug, "cases": made.n_cases, "readers_per_case": made.n_slots, "readers": len(readers)}
    each, all_readers = (counted(n, "reader") for n in (made.n_slots, len(readers)))
    said = f"Study {made.slug} is open: {counted(made.n_cases, 'case')}, {each} each, {all_readers}."
    tell_done(result, [said, OPEN_PANEL_LIMIT] if made.is_open_panel else [said], output_format)


def _people_named(application: "Application", names: Sequence[str]) -> list[PersonId]:
    """Return the numbers of people by name; whoever is not known becomes a reviewer."""
    with application.database.write() as uow:
        numbers = []
        for name in names:
            person = uow.people.by_name(name)
            if person is None:
                person = uow.people.add(name, Role.REVIEWER, created_at=now())
                uow.audit.append(now(), "command line", "person added", f"person {person.id}", {"role": "reviewer"})
            numbers.append(person.id)
        uow.commit()
    return numbers


def _edges(written: str) -> tuple[float, ...]:
    """Return the edges of the strata; the default of the option is thirds."""
    return (1.0 / 3.0, 2.0 / 3.0) if written == "0.333,0.667" else _numbers("--edges", written)


def _numbers(option: str, written: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in written.split(",") if part.strip())
    except ValueError:
        raise click.UsageError(f"{option} is '{written}'. Give numbers with commas between, like 0.5,0.8.") from None


@study.command(name="plan")
@click.option("--study", "slug", help="Short name of a judged study; a pilot will do.")
@click.option("--auc", type=float, help="Before a pilot, instead of --study: the AUC to expect of the labels.")
@click.option("--relevant", type=float, help="With --auc: the share of relevant decisions to expect, like 0.05.")
@click.option("--cases", type=COUNT, default=222, show_default=True, help="With --auc: cases as planned.")
@click.option("--edges", default="0.333,0.667", show_default=True, help="With --auc: scaled scores between the strata.")
@click.option("--quantiles", default="", help="Instead of --edges: shares of the candidates below each division.")
@click.option(
    "--half-width",
    type=click.FloatRange(0, 0.5, min_open=True, max_open=True),
    default=0.1,
    show_default=True,
    help="Wanted half width of the AUC's interval.",
)
@click.option(
    "--compare",
    type=(float, float),
    metavar="AUC AUC",
    help="Also the cases that tell two scorers with these AUCs apart, 8 times in 10.",
)
@list_format
@with_application
def study_plan(
    application: "Application",
    slug: str | None,
    auc: float | None,
    relevant: float | None,
    cases: int,
    edges: str,
    quantiles: str,
    half_width: float,
    compare: tuple[float, float] | None,
    output_format: str,
) -> None:
    """Simulate how many cases a study needs; the best allocation to the strata comes first.

    With --study, from what its report shows of each stratum. Before a pilot, with --auc and --relevant, from the scores
    of the last run and what you expect; the first line is then the study as planned.
    """
    from alertreview.studies.models import StudyPlan
    from core.statistics.planning import required_cases_to_compare
    from core.studies.next_study import plan_next

    expected = auc, relevant
    if (slug is None) == (None in expected) or (slug is not None and expected != (None, None)):
        raise click.UsageError("Name a judged study with --study, or give --auc and --relevant to plan before a pilot.")
    if auc is not None and relevant is not None:
        plan = StudyPlan(n_cases=cases, edges=_edges(edges), quantiles=_numbers("--quantiles", quantiles))
        own, designs = application.study_desk.plan_pilot(plan, auc, relevant, half_width)
        plans, share = (own, *designs), relevant
    else:
        report = application.reports.report(slug or "")
        plans, share = plan_next(report, half_width), report.primary.n_positive / max(report.primary.n_used, 1)
    n_to_compare = None if compare is None else required_cases_to_compare(*compare, positive_share=share)
    print_list(
        plans,
        {
            "allocation": lambda plan: plan.allocation,
            "cases": lambda plan: plan.n_cases,
            "by_stratum": lambda plan: " + ".join(str(n) for n in plan.by_stratum),
            "half_width": lambda plan: None if plan.half_width is None else round(plan.half_width, 3),
            "relevant": lambda plan: round(plan.n_relevant),
            **({} if compare is None or output_format == "table" else {"cases_to_compare": lambda _: n_to_compare}),
        },
        output_format,
    )
    if compare is not None and output_format == "table":
        click.echo(
            f"{n_to_compare} decided cases tell an AUC of {compare[0]:g} from one of {compare[1]:g}, 8 times in 10."
        )


@study.command(name="list")
@list_format
@with_application
def study_list(application: "Application", output_format: str) -> None:
    """List the studies of the site, newest first."""
    print_list(
        application.studies.all(),
        {
            "study": lambda view: view.slug,
            "title": lambda view: view.title,
            "status": lambda view: view.status.value,
            "cases": lambda view: view.n_cases,
            "complete": lambda view: view.n_complete,
            "readers_per_case": lambda view: view.n_slots,
            "calibration": lambda view: view.is_calibration,
            "open_panel": lambda view: view.is_open_panel,
            "simulated": lambda view: view.simulated,
        },
        output_format,
    )


@study.command(name="cases")
@click.option("--study", "slug", required=True, help="Short name of the study.")
@click.option("--tool", type=click.Choice(["label-studio", "redcap"]), required=True, help="For which labelling tool.")
@click.option("--out", type=FilePath(path_type=Path), required=True, help="New folder to write; it holds patient data.")
@with_application
def study_cases(application: "Application", slug: str, tool: str, out: Path) -> None:
    """Write the cases of a study, and the votes so far, for a panel that judges in Label Studio or REDCap."""
    from alertreview.files import becoming
    from alertreview.review.labelling_tools import Tool

    if out.exists():
        raise InvalidInputError(f"{out} is there already. Name a new folder.")
    files = application.exchange.cases(slug, Tool(tool))
    with becoming(out, ".cases-") as folder:
        for name, content in files.items():
            (folder / name).write_bytes(content.encode("utf-8"))
    tell(f"Written to {out}: {', '.join(files)}.")


@study.command(name="votes")
@click.argument("file", type=FilePath(path_type=Path))
@click.option("--study", "slug", required=True, help="Short name of the study; it must be open.")
@click.option(
    "--tool", type=click.Choice(["label-studio", "redcap"]), required=True, help="Which labelling tool wrote it."
)
@click.option(
    "--reader",
    "readers",
    multiple=True,
    metavar="IN THE TOOL=READER",
    help="Which reader somebody of the tool is; repeat for each (default: the reader of the same name).",
)
@result_format
@with_application
def study_votes(
    application: "Application", file: Path, slug: str, tool: str, readers: tuple[str, ...], output_format: str
) -> None:
    """Record the votes in FILE, all together or none; a vote that is here already is left as it is."""
    from alertreview.review.labelling_tools import Tool

    pairs = [reader.partition("=") for reader in readers]
    if not all(equals and name for name, equals, _ in pairs):
        raise click.UsageError(
            '--reader names somebody of the tool and a reader: --reader "ada@clinic.example=Reader A".'
        )
    try:
        text = file.read_bytes().decode("utf-8-sig")  # line breaks in comments stay as they are
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SourceError(f"{file}: cannot be read ({why}). Name another file.") from None
    n_votes, n_new = application.exchange.read(slug, Tool(tool), text, {name: whom for name, _, whom in pairs})
    said = f"{file} holds {counted(n_votes, 'vote')}; {n_new} of them new, and recorded."
    tell_done({"study": slug, "votes": n_votes, "new": n_new}, [said], output_format)


@study.command(name="lock")
@click.option("--study", "slug", required=True, help="Short name of the study.")
@result_format
@with_application
def study_lock(application: "Application", slug: str, output_format: str) -> None:
    """Lock a study: no more judgments, and its report can be signed."""
    application.studies.lock_study(slug)
    view = application.studies.view(slug)
    result = {"study": slug, "status": view.status.value, "cases": view.n_cases, "complete": view.n_complete}
    said = f"Study {slug} is locked; {view.n_complete} of {view.n_cases} cases have all their answers."
    tell_done(result, [said], output_format)


@click.group()
def export() -> None:
    """Write expert labels and scores to files that open anywhere."""


@export.command(name="labels")
@click.option("--study", "slug", required=True, help="Short name of the study.")
@click.option(
    "--layout",
    type=click.Choice(["long", "wide"]),
    default="long",
    show_default=True,
    help="One row for each version of each judgment, or one row for each case.",
)
@click.option(
    "--out",
    type=FilePath(path_type=Path, allow_dash=True),
    required=True,
    help="File to write; - is standard output.",
)
@file_format("csv", "csv-excel", "xlsx", "parquet", "jsonl", "meds")
@with_application
def export_labels(application: "Application", slug: str, output_format: str, layout: str, out: Path) -> None:
    """Write the judgments of a study, with the case, the alert, the run and the rubric they belong to."""
    from alertreview.exports.exports import MEDS
    from alertreview.exports.formats import scratch_in

    if str(out) == STANDARD_OUTPUT:
        if output_format == MEDS:
            raise click.UsageError("MEDS labels are a folder with one file for each task: name a folder with --out.")
        with scratch_in(application.settings.home) as folder:
            application.exports.labels(slug, output_format, layout, folder / f"{slug}-labels")
            write_out(out, (folder / f"{slug}-labels").read_bytes())
        return
    n_rows = application.exports.labels(slug, output_format, layout, out)
    tell(f"{counted(n_rows, 'row')} written to {out}.")


@export.command(name="study")
@click.option("--study", "slug", required=True, help="Short name of the study.")
@click.option(
    "--format",
    "output_formats",
    type=click.Choice(["csv", "csv-excel", "xlsx", "parquet", "jsonl"]),
    multiple=True,
    default=("csv",),
    show_default=True,
    help="Format of the tables; repeat for several.",
)
@click.option("--out", type=FilePath(path_type=Path), required=True, help="New folder to write.")
@with_application
def export_study(application: "Application", slug: str, output_formats: tuple[str, ...], out: Path) -> None:
    """Write every table of a study with a manifest; `alertreview recompute` makes its report again from them."""
    files = application.exports.study(slug, output_formats, out)
    tell(f"{len(files)} files and a manifest written to {out}.")


@click.command()
@click.argument("folder", type=FilePath(path_type=Path))
@out_option("File to write")
@click.option("--no-verify", is_flag=True, help="Do not compare hashes of files, manifest and report.")
def recompute(folder: Path, out: Path | None, no_verify: bool) -> None:
    """Recompute a study's report from the files in FOLDER alone, as JSON; needs no site and no database.

    Files, manifest and report must have the hashes of the manifest.
    """
    from alertreview.exports.recompute import recompute as recompute_report
    from alertreview.reports.documents import ReportFormat, render_report
    from alertreview.reports.signing import content_hash

    report = recompute_report(folder, verify=not no_verify)
    if write_out(out, render_report(report, ReportFormat.JSON)):
        tell(f"Report recomputed from {folder} written to {out}.")
    same = "not compared" if no_verify else "as exported"
    if not is_set("quiet"):
        click.echo(f"Content {content_hash(report)}, {same}.", err=True)


COMMANDS = (study, report, sign_report, export, recompute)
