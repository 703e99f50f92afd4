"""Arrays in files are read whole by many threads at once, whatever runs when garbage is collected."""

import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from alertreview.files import array_of, arrays_of
from alertreview.scoring import resume


@pytest.fixture
def restless_collector() -> Iterator[None]:
    """Collect garbage often, and run Python code each time, as Dask does to time it."""

    def called(*_given: object) -> None:
        sum(range(50))

    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.callbacks.append(called)
    gc.set_threshold(30)
    sys.setswitchinterval(1e-5)
    yield
    gc.callbacks.remove(called)
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval)


def test_many_threads_read_arrays_while_garbage_is_collected(tmp_path: Path, restless_collector: None) -> None:
    expected = np.arange(100)
    np.savez(tmp_path / "some.npz", first=expected, second=np.ones(3))
    np.save(tmp_path / "one.npy", expected)

    def reads(_number: int) -> None:
        for _ in range(150):
            with arrays_of(tmp_path / "some.npz") as arrays:
                np.testing.assert_array_equal(arrays["first"], expected)
                assert list(arrays) == ["first", "second"]
            np.testing.assert_array_equal(array_of(tmp_path / "one.npy", mmap_mode="c"), expected)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(reads, range(4)))


def test_a_pickled_object_is_never_read(tmp_path: Path) -> None:
    np.save(tmp_path / "object.npy", np.array([{}]), allow_pickle=True)
    np.savez(tmp_path / "object.npz", first=np.array([{}]))
    with pytest.raises(ValueError, match="allow_pickle"):
        array_of(tmp_path / "object.npy")
    with pytest.raises(ValueError, match="allow_pickle"), arrays_of(tmp_path / "object.npz") as arrays:
        print(arrays["first"])


def test_all_arrays_of_a_task_cost_one_opening_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    monkeypatch.setattr(resume, "arrays_of", lambda file: opened.append(file) or arrays_of(file))
    evidence = resume.StoredEvidence(tmp_path)
    evidence[3] = {f"array_{number}": np.full(2, number) for number in range(9)}
    found = dict(evidence[3].items())
    assert {name: array.tolist() for name, array in found.items()} == {f"array_{n}": [n, n] for n in range(9)}
    assert len(opened) == 1
