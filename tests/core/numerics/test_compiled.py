"""Shared sums against NumPy in double precision, and how loops are compiled and cached."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from core.graph import kernels
from core.numerics import compiled
from tests.conftest import ROOT

LENGTHS = [0, 1, 7, 8, 9, 16, 17, 75, 113, 208, 300]
TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}


def numbers(kind, *shape):
    return np.random.default_rng(5).normal(size=shape).astype(kind)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("n", LENGTHS)
def test_dot_sums_in_the_precision_of_its_arrays(n, kind):
    left, right = numbers(kind, 2, n)
    left.flags.writeable = False
    total = compiled.dot(left, right)
    # Numba returns a scalar of either precision as a Python float: one of float32 survives the round trip.
    assert total == kind(total)
    assert total == pytest.approx(float(left.astype(float) @ right), abs=TOLERANCE[kind] * np.sqrt(n))


@pytest.mark.parametrize(("kind", "rows_kind"), [(np.float32, np.uint32), (np.float64, np.int64)])
@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("n_rows", [0, 1, 4, 7])
def test_combine_rows_reads_as_many_columns_as_the_total_has(n, kind, rows_kind, n_rows):
    matrix, factors = numbers(kind, 12, n + 3), numbers(kind, n_rows)
    rows = np.array([3, 0, 11, 3, 7, 1, 10][:n_rows], dtype=rows_kind)
    total = np.full(n + 2, 9, dtype=kind)
    compiled.combine_rows(matrix, rows, factors, total[1 : n + 1])
    expected = factors.astype(float) @ matrix[rows, :n]
    np.testing.assert_allclose(total[1 : n + 1], expected, atol=TOLERANCE[kind])
    assert total[0] == total[-1] == 9


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("n", LENGTHS)
def test_count_up_to_includes_the_limit(n, kind):
    given = np.random.default_rng(n).integers(-5, 6, n).astype(kind)
    for limit in (-6, -2, 0, 5):
        assert compiled.count_up_to(given, kind(limit)) == (given <= limit).sum()


def test_machine_code_is_cached_under_the_state_of_every_module_with_loops(tmp_path):
    # A cached loop contains the code of those it calls: a change there alone must not find stale code.
    core = Path(compiled.__file__).parents[1]
    loops = {
        file.relative_to(core).with_suffix("").as_posix()
        for file in core.rglob("*.py")
        if "core.numerics.compiled import" in file.read_text(encoding="utf-8")
    }
    assert loops | {"numerics/compiled"} == set(compiled.SOURCES)
    state = compiled.digest_of(core / f"{module}.py" for module in compiled.SOURCES)
    assert kernels.extend_row.__qualname__ == kernels.extend_row.__wrapped__.__qualname__ == f"extend_row_{state}"
    files = [tmp_path / name for name in ("a.py", "b.py")]
    files[0].write_text("12")
    files[1].write_text("3")
    before = compiled.digest_of(files)
    files[0].write_text("1")
    files[1].write_text("23")
    assert compiled.digest_of(files) != before


def extended_elsewhere(cache):
    """Extend a graph, with loops of four modules in each other, in a process that caches machine code in a folder."""
    code = (
        "import sys, numpy as np; from tests.core.graph.test_kernels import extended, system;"
        "options = dict(zip(('inverse', 'soft_labels'), (given := system())[3:]), is_local=True, usual_scale=1);"
        "np.save(sys.argv[1], extended(*given[:3], n_neighbors=9, **options))"
    )
    file, environment = cache / "extended.npy", os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, "-c", code, str(file)], cwd=ROOT, env=environment, capture_output=True, check=True)
    return np.load(file)


def test_no_loop_assigns_an_array_to_a_slice():
    # Numba then compiles the words of an error of shapes, with all that texts need: seconds for each loop.
    core, found = Path(compiled.__file__).parents[1], []
    for name in compiled.SOURCES:
        for loop in ast.parse((core / f"{name}.py").read_text(encoding="utf-8")).body:
            if not isinstance(loop, ast.FunctionDef) or not any(
                "compiled" in ast.unparse(d) for d in loop.decorator_list
            ):
                continue
            for line in ast.walk(loop):
                if isinstance(line, ast.Assign) and not isinstance(line.value, ast.Constant):
                    found += [
                        f"{name}.{loop.name}: {ast.unparse(line)}"
                        for target in line.targets
                        if isinstance(target, ast.Subscript)
                        and any(isinstance(part, ast.Slice) for part in ast.walk(target.slice))
                    ]
    assert found == []


def test_cached_machine_code_gives_what_fresh_machine_code_gives(tmp_path):
    fresh = extended_elsewhere(tmp_path)
    cached = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nb*")}
    assert cached, "the first process has cached what it compiled"
    np.testing.assert_allclose(extended_elsewhere(tmp_path), fresh, rtol=1e-5)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nb*")} == cached, "the second compiled nothing"


def test_loops_compile_in_memory_where_there_is_no_place_for_a_cache(monkeypatch):
    real = numba.njit

    def refuse_cache(*args, **options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return real(*args, **options)

    monkeypatch.setattr(numba, "njit", refuse_cache)
    double = compiled.compiled(lambda x: 2 * x)
    assert double(21) == 42
