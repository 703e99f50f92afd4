"""Bad sign-ins by the hundred each second, and how long a good one waits meanwhile.

It starts a dashboard of its own. The good sign-in comes from an address that has signed in before, the bad ones from
250 others of this machine. It ends with 0 when the median of the good ones is below a second and the server's memory
grew by no more than the bound, with 1 when not.
"""

import argparse
import http.client
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from benchmarks._machine import Watch
from tests.support.served import Visitor, dashboard, form_key, new_site
from tests.support.sign_in_desk import PASSWORD

MEDIAN_SECONDS = 1.0
MOST_GROWTH_MB = 300.0
GOOD_ADDRESS = "127.0.9.9"
PAUSE_SECONDS = 3.5
"""Between good sign-ins: an address gets one each three seconds."""
N_THREADS = 16


def sign_in(port: int, source: str, login: str, password: str, key: str, cookie: str) -> tuple[int, float]:
    """Send the form of the sign-in page from an address of this machine; give status and seconds."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60, source_address=(source, 0))
    host = f"127.0.0.1:{port}"
    headers = {"Host": host, "Cookie": cookie, "Origin": f"http://{host}"}
    headers["Content-Type"] = "application/x-www-form-urlencoded"
    began = time.perf_counter()
    try:
        body = urlencode({"login": login, "password": password, "form_key": key, "next": "/"})
        link.request("POST", "/login", body, headers)
        answer = link.getresponse()
        answer.read()
        return answer.status, time.perf_counter() - began
    finally:
        link.close()


def memory_mb(process: int) -> float:
    """Return the resident memory of a process."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def flood(port: int, rate: float, stop: threading.Event, key: str, cookie: str, counts: dict[str, int]) -> None:
    """Send bad sign-ins at a rate, each from the next address, until told to stop."""
    due, number = time.perf_counter(), 0
    while not stop.wait(max(0.0, due - time.perf_counter())):
        due, number = due + 1 / rate, number + 1
        try:
            status, _ = sign_in(port, f"127.0.1.{1 + number % 250}", "ada", "a bad password", key, cookie)
            counts[str(status)] = counts.get(str(status), 0) + 1
        except OSError as error:
            counts[type(error).__name__] = counts.get(type(error).__name__, 0) + 1


def measure(rate: float, seconds: float) -> int:
    """Flood a dashboard, print what the good sign-ins met, and give the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        code = new_site(Path(folder) / "home")
        with dashboard(Path(folder) / "home", Path(folder) / "server.log") as (port, server):
            visitor = Visitor(port)
            visitor.choose_password("", code, "/")
            visitor.cookies.clear()
            key = form_key(visitor.ask("/login").text)
            cookie = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
            status, quiet = sign_in(port, GOOD_ADDRESS, "ada", PASSWORD, key, cookie)
            if status != 303:
                print(f"the good sign-in does not work at all: {status}")
                return 1
            before, stop, watch = memory_mb(server.pid), threading.Event(), Watch(f"sqlite:///{folder}/probe.db")
            counts: list[dict[str, int]] = [{} for _ in range(N_THREADS)]
            threads = [
                threading.Thread(target=flood, args=(port, rate / N_THREADS, stop, key, cookie, one)) for one in counts
            ]
            for thread in threads:
                thread.start()
            began, waited, refused, most = time.perf_counter(), [], 0, before
            while time.perf_counter() - began < seconds:
                time.sleep(PAUSE_SECONDS)
                status, one = sign_in(port, GOOD_ADDRESS, "ada", PASSWORD, key, cookie)
                waited.append(one)
                refused += status != 303
                most = max(most, memory_mb(server.pid))
            stop.set()
            for thread in threads:
                thread.join()
            took, around = time.perf_counter() - began, watch.stop()
    total = {status: sum(one.get(status, 0) for one in counts) for status in {name for one in counts for name in one}}
    print(f"{sum(total.values())} bad sign-ins in {took:.0f} s ({sum(total.values()) / took:.0f}/s): {total}")
    print(f"{len(waited)} good ones, {refused} refused: median {np.median(waited):.2f} s, longest {max(waited):.2f} s")
    print(f"without the flood {quiet:.2f} s; memory {before:.0f} MB, at most {most:.0f} MB; {around}")
    return 0 if not refused and np.median(waited) < MEDIAN_SECONDS and most - before < MOST_GROWTH_MB else 1


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="./dev bench flood", description=__doc__)
    parser.add_argument("--rate", type=float, default=200.0, help="bad sign-ins a second")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    return measure(options.rate, options.seconds)


if __name__ == "__main__":
    sys.exit(main())
