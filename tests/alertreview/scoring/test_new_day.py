"""Morning mode gives new instances the scores of a whole run with the same past, and says that it learned nothing."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from alertreview.alerts.models import WorklistFilters
from alertreview.application import Application
from alertreview.cli.main import main
from alertreview.records.import_site import _instances, _tasks
from alertreview.records.snapshots import read_snapshot
from alertreview.scoring.new_day import _in_columns, find_base, score_new_instances
from alertreview.scoring.resume import ScoringRequest
from alertreview.scoring.score_site import ScoringOutcome, StoredPast, score_site
from alertreview.scoring.stored_past import discard_old, open_model
from alertreview.settings import Settings, load_settings
from core.errors import InvalidInputError, NotFoundError, RefusedError, SourceError
from core.scoring.parameters import ScoringParameters
from core.scoring.scorers import NEW_INSTANCE_SCORERS
from core.vocabulary import Decision
from db.database import Database
from db.models import UNSAVED
from tests.support.snapshots import write_snapshot

SCORERS = (*NEW_INSTANCE_SCORERS, "day-adjusted")


@pytest.fixture(scope="module")
def settings(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A site for all tests here; each adds runs of its own and looks at no other's."""
    return load_settings(Path(shutil.copytree(demo_home, tmp_path_factory.mktemp("morning") / "home")))


@pytest.fixture(scope="module")
def own_database(settings: Settings) -> Database:
    return Database(settings.database_url)


@pytest.fixture(scope="module")
def all_days(settings: Settings, own_database: Database) -> list[pd.Timestamp]:
    return days(settings, own_database)


@pytest.fixture(scope="module")
def whole(settings: Settings, own_database: Database, all_days: list[pd.Timestamp]) -> ScoringOutcome:
    """A run that learned from all but the last twelve days."""
    return whole_run(settings, own_database, all_days[-12], scorers=SCORERS)


def days(settings: Settings, database: Database) -> list[pd.Timestamp]:
    with database.read() as uow:
        stored = uow.snapshots.latest()
    assert stored is not None
    instances = read_snapshot(settings.snapshots / stored.folder).instances
    return sorted(instances["snapshot_at"].dt.normalize().unique())


def whole_run(settings: Settings, database: Database, since: pd.Timestamp, **changes: object) -> ScoringOutcome:
    options: dict[str, object] = {"scorers": ("softhad",), "split": "time", "n_nodes": 40, "n_graphs": 2, "n_jobs": 1}
    request = ScoringRequest(since=f"{since:%Y-%m-%d}", **(options | changes))  # type: ignore[arg-type]
    return score_site(settings, database, request)


def morning(settings: Settings, database: Database, whole: ScoringOutcome, since: pd.Timestamp) -> ScoringOutcome:
    base = find_base(settings, database, str(whole.run_id), since)
    assert base is not None
    return score_new_instances(settings, database, base, since, n_jobs=1)


def test_new_instances_score_as_in_the_whole_run_whose_past_it_is(
    settings: Settings, own_database: Database, all_days: list[pd.Timestamp], whole: ScoringOutcome
) -> None:
    found = morning(settings, own_database, whole, all_days[-4])
    with own_database.read() as uow:
        run = uow.runs.get(found.run_id)
        folds, whole_folds = uow.runs.fold_of_row(run.id), uow.runs.fold_of_row(whole.run_id)
        rows = np.flatnonzero(folds >= 0)
        place = np.searchsorted(np.flatnonzero(whole_folds >= 0), rows)
        assert 0 < len(rows) < (whole_folds >= 0).sum()
        assert run.base_run_id == whole.run_id
        assert run.scorer == "shared"
        assert set(run.all_scorers) == set(NEW_INSTANCE_SCORERS)
        np.testing.assert_array_equal(folds == -1, whole_folds == -1)
        for name in ("score", "scaled_score", "soft_label", "support"):
            for scorer in NEW_INSTANCE_SCORERS:
                expected = dict(uow.runs.vectors(whole.run_id, name, scorer))
                new = dict(uow.runs.vectors(run.id, name, scorer))
                assert new.keys() == expected.keys()
                for task, vector in new.items():
                    np.testing.assert_allclose(vector, expected[task][place], atol=1e-6, err_msg=f"{name} {scorer}")
        for row in uow.snapshots.tasks(run.snapshot_id):
            old, fresh = (uow.runs.task_result(one, row.id, "softhad") for one in (whole.run_id, run.id))
            assert fresh.reason == old.reason
            if old.reason == "":
                assert (fresh.feature_columns == old.feature_columns).all()  # type: ignore[union-attr]
                assert sum(fresh.score_histogram["counts"]) == sum(old.score_histogram["counts"]) + len(rows)  # type: ignore[index]
    text = "\n".join(found.lines())
    assert f"against the stored past of run {whole.run_id} (up to {all_days[-13]:%Y-%m-%d})" in text
    assert "nothing was learned again" in text
    assert "Not possible against a stored past: day-adjusted." in text


def test_a_morning_run_is_shown_and_explained_like_any_other(
    settings: Settings, own_database: Database, all_days: list[pd.Timestamp], whole: ScoringOutcome
) -> None:
    found = morning(settings, own_database, whole, all_days[-2])
    with Application(settings, Database(settings.database_url)) as application:
        run = application.worklist.run()
        assert run is not None
        assert (run.run_id, run.base_run_id) == (found.run_id, whole.run_id)
        rows = application.worklist.page(WorklistFilters(alerts_per_patient_day=2.0), limit=5).rows
        assert rows
        assert all(row.snapshot_at.replace(tzinfo=None) >= all_days[-2] for row in rows)
        for row in rows:
            detail = application.worklist.alert(row.alert_id)
            taken = detail.task_positive_share
            other = taken if row.decision is Decision.OMISSION else 1 - taken
            surprise = row.score / (1 - row.score) / (other / (1 - other))
            assert detail.surprise == pytest.approx(surprise)
            # The lists leave out what the state makes likelier.
            assert surprise >= 1
        detail = application.worklist.alert(rows[0].alert_id)
        assert detail.neighbours
        assert all(neighbour.snapshot_at < rows[0].snapshot_at for neighbour in detail.neighbours)


def test_a_score_does_not_depend_on_who_else_is_new(
    settings: Settings, own_database: Database, all_days: list[pd.Timestamp], whole: ScoringOutcome
) -> None:
    many, few = (morning(settings, own_database, whole, all_days[-n]) for n in (5, 1))
    with own_database.read() as uow:
        kept = [np.flatnonzero(uow.runs.fold_of_row(one.run_id) >= 0) for one in (many, few)]
        vectors = [dict(uow.runs.vectors(one.run_id, "scaled_score")) for one in (many, few)]
    for task, vector in vectors[1].items():
        np.testing.assert_allclose(vector, vectors[0][task][np.searchsorted(kept[0], kept[1])], atol=1e-6)


def later_import(settings: Settings, database: Database) -> np.ndarray:
    """Register an import with features and tasks in another order, a feature and a task unknown before, less instances.

    Returns
    -------
    int array
        Rows in which its instances stood before.
    """
    with database.read() as uow:
        stored = uow.snapshots.latest()
    assert stored is not None
    folder = settings.snapshots / stored.folder
    before = read_snapshot(folder)
    random = np.random.default_rng(3)
    rows = np.sort(random.permutation(len(before.instances))[30:])
    features = random.permutation(before.features.shape[1])
    tasks = random.permutation(len(before.tasks))
    added = sparse.csr_matrix(random.random((len(rows), 1)), dtype=np.float32)
    dictionary = before.feature_dictionary.iloc[features]
    named = before.tasks.iloc[tasks].reset_index(drop=True)
    named.loc[0, "task_key"] = "LAB_ORDER/unknown before"
    cohort = replace(
        before.cohort,
        instances=before.instances.iloc[rows].reset_index(drop=True),
        features=sparse.csr_matrix(sparse.hstack((added, before.features[rows][:, features]))),
        feature_dictionary=pd.concat([dictionary.iloc[:1].assign(name="New"), dictionary], ignore_index=True),
        tasks=named,
        decisions=sparse.csc_matrix(before.decisions[rows][:, tasks]),
        content_hash="f" * 64,
    )
    report = SimpleNamespace(to_dict=lambda: before.report, source="later records", mapping="test", words={})
    written = read_snapshot(write_snapshot(cohort, report, settings.home))  # type: ignore[arg-type]
    new = replace(stored, id=UNSAVED, content_hash=cohort.content_hash, folder=cohort.content_hash[:16])
    with database.write() as uow:
        uow.snapshots.add(new, _instances(written), _tasks(written))
        uow.commit()
    return rows


def test_the_next_import_may_have_other_columns(
    settings: Settings, all_days: list[pd.Timestamp], whole: ScoringOutcome, tmp_path: Path
) -> None:
    own = load_settings(Path(shutil.copytree(settings.home, tmp_path / "home")))
    with Database(own.database_url) as database:
        rows_before = later_import(own, database)
        found = morning(own, database, whole, all_days[-4])
        with database.read() as uow:
            run, base = uow.runs.get(found.run_id), uow.runs.get(whole.run_id)
            tasks = {task.task_key: task.id for task in uow.snapshots.tasks(base.snapshot_id)}
            recent = rows_before[uow.runs.fold_of_row(run.id) >= 0]
            place = np.searchsorted(np.flatnonzero(uow.runs.fold_of_row(base.id) >= 0), recent)
            expected = dict(uow.runs.vectors(base.id, "scaled_score"))
            new = {task.id: task.task_key for task in uow.snapshots.tasks(run.snapshot_id)}
            n_compared = 0
            for task_id, vector in uow.runs.vectors(run.id, "scaled_score"):
                np.testing.assert_allclose(vector, expected[tasks[new[task_id]]][place], atol=1e-6)
                n_compared += 1
    assert n_compared > 10
    assert len(recent) > 10
    unknown = [reason for reason in found.left_out.values() if "is new since run" in reason]
    assert len(unknown) == 1
    assert "Score again to learn it" in unknown[0]


def test_columns_are_taken_with_their_stored_zeros() -> None:
    matrix = sparse.csr_array((np.array([0.0, 5.0, 7.0]), np.array([0, 2, 1]), np.array([0, 2, 3])), shape=(2, 3))
    taken = _in_columns(matrix, np.array([2, -1, 0]))
    assert taken.nnz == 2
    assert taken.toarray().tolist() == [[5.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert sorted(zip(taken.indices.tolist(), taken.data.tolist(), strict=True)) == [(0, 5.0), (2, 0.0)]


def test_only_a_past_that_ends_before_the_day_fits(
    settings: Settings, own_database: Database, all_days: list[pd.Timestamp], whole: ScoringOutcome
) -> None:
    with pytest.raises(InvalidInputError, match=rf"Run {whole.run_id} learned from instances up to .*later --since"):
        find_base(settings, own_database, str(whole.run_id), all_days[-13])
    assert find_base(settings, own_database, str(whole.run_id), all_days[-12]) is not None
    assert find_base(settings, own_database, "latest", all_days[0]) is None
    against = morning(settings, own_database, whole, all_days[-1])
    with pytest.raises(InvalidInputError, match=rf"Run {against.run_id} kept nothing to score against"):
        find_base(settings, own_database, str(against.run_id), all_days[-1])
    with pytest.raises(NotFoundError, match="no published scoring run 99"):
        find_base(settings, own_database, "99", all_days[-1])
    only_baseline = whole_run(settings, own_database, all_days[-12], scorers=("weighted-knn",), n_graphs=1)
    with pytest.raises(InvalidInputError, match="no scorer that can score new instances"):
        find_base(settings, own_database, str(only_baseline.run_id), all_days[-1])
    found = find_base(settings, own_database, "latest", all_days[-1])
    assert found is not None
    assert found.run.id == whole.run_id


def test_a_run_split_by_patient_says_why_its_shared_graph_scores_no_morning(
    settings: Settings, all_days: list[pd.Timestamp], tmp_path: Path
) -> None:
    own = load_settings(Path(shutil.copytree(settings.home, tmp_path / "home")))
    with Database(own.database_url) as database:
        run_id = score_site(own, database, ScoringRequest(scorers=("shared",), split="patient", n_jobs=1)).run_id
        with pytest.raises(InvalidInputError, match=r"split by patient.*cannot be left out of it.*--split time"):
            find_base(own, database, str(run_id), all_days[-1] + pd.Timedelta(days=1))
    said = "\n".join(StoredPast(run_id, "2026-01-31", ("shared",)).lines())
    assert "Not possible against a stored past: shared.\nThe shared graph is kept" in said
    looking_back = StoredPast(run_id, "2026-01-31", ("day-adjusted", "shared-looking-back"))
    assert "shared graph" not in "\n".join(looking_back.lines())


def test_a_day_without_instances_says_what_to_import(
    settings: Settings, own_database: Database, all_days: list[pd.Timestamp], whole: ScoringOutcome
) -> None:
    with pytest.raises(InvalidInputError, match=r"no instance from .* on.*--add"):
        morning(settings, own_database, whole, all_days[-1] + pd.Timedelta(days=30))


def test_what_older_runs_learned_makes_room_and_its_absence_is_said(tmp_path: Path) -> None:
    for name in ("new", "old", ".writing-x"):
        (tmp_path / name).mkdir()
    discard_old(tmp_path, ["new"])
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    with pytest.raises(SourceError, match=r"old: what the run learned is not kept any more.*--from-run none"):
        open_model(tmp_path / "old", ScoringParameters())
    (tmp_path / "new" / "shared.npz").write_bytes(b"damaged")
    with pytest.raises(SourceError, match="damaged"):
        open_model(tmp_path / "new", ScoringParameters())


def test_what_a_run_learned_is_kept_whole_and_without_pickle(
    settings: Settings, own_database: Database, whole: ScoringOutcome
) -> None:
    with own_database.read() as uow:
        run = uow.runs.get(whole.run_id)
        scored = [one for one in uow.runs.task_results(run.id, "softhad") if one.reason == ""]
    files = list((settings.models / run.model_folder).glob("*.npz"))
    assert len(files) == len(scored) + 1
    for file in files:
        with np.load(file, allow_pickle=False) as arrays:
            assert all(arrays[name].dtype != object for name in arrays.files)


def test_the_command_takes_the_stored_past_unless_told_how_to_learn(
    settings: Settings,
    own_database: Database,
    all_days: list[pd.Timestamp],
    whole: ScoringOutcome,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    anew: list[ScoringRequest] = []

    def learns(_settings: object, _database: object, request: ScoringRequest, *_: object, **__: object) -> None:
        anew.append(request)
        raise RefusedError("It would learn anew.")

    monkeypatch.setattr("alertreview.scoring.score_site.score_site", learns)

    def learned_anew(*options: str) -> bool:
        n_before = len(anew)
        since = f"{all_days[-2]:%Y-%m-%d}"
        code = main(["score", "--since", since, "--home", str(settings.home), "--jobs", "1", *options])
        assert code == (2 if len(anew) > n_before else 0)
        return len(anew) > n_before

    assert not learned_anew()
    assert f"stored past of run {whole.run_id}" in capsys.readouterr().out
    with own_database.read() as uow:
        run = uow.runs.latest_published()
    assert run is not None
    assert run.base_run_id == whole.run_id
    assert not learned_anew("--from-run", str(whole.run_id))
    for options in (["--from-run", "none"], ["--split", "time"], ["--nodes", "40"], ["--scorer", "softhad"]):
        assert learned_anew(*options), options
    assert main(["score", "--home", str(settings.home)]) == 2
    assert anew[-1].since is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--from-run", "latest"], "say with --since from which day on"),
        (["--from-run", "1", "--since", "2026-01-31", "--scorer", "pair"], "so --scorer cannot be chosen"),
        (["--from-run", "1", "--since", "2026-01-31", "--learn-weights"], "so --learn-weights cannot be chosen"),
        (["--from-run", "latest", "--since", "1990-01-31"], "No run keeps a past that ends before 1990-01-31"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    settings: Settings,
    own_database: Database,
    all_days: list[pd.Timestamp],
    whole: ScoringOutcome,
    options: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with own_database.read() as uow:
        before = uow.runs.latest_published()
    assert main(["score", "--home", str(settings.home), *options]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
    with own_database.read() as uow:
        assert uow.runs.latest_published() == before


def test_both_lists_of_a_morning_run_are_ranked(
    settings: Settings, own_database: Database, all_days: list[pd.Timestamp], whole: ScoringOutcome
) -> None:
    found = morning(settings, own_database, whole, all_days[-3])
    with own_database.read() as uow:
        run = uow.runs.get(found.run_id)
        for scorer in run.all_scorers:
            for decision in Decision:
                assert run.n_alerts(scorer)[decision] > 0
