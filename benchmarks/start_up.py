"""How long commands take to start, and how much memory an import takes; prints lines of JSON.

python benchmarks/start_up.py
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DRAGOMAN = Path(sys.executable).parent / "dragoman"
RUNS = 7
CONNECTS = {
    "dragoman_telegram": "import dragoman_telegram, httpx2; httpx2.AsyncClient()",
    "dragoman_discord": "import dragoman_discord, httpx2, wsproto; httpx2.AsyncClient()",
    "dragoman_slack": "import dragoman_slack.platform, httpx2, wsproto; httpx2.AsyncClient()",
}
"""What a platform has loaded once it talks to its service."""

MANIFEST = """
manifest = 1
[platforms.telegram]
token = { env = "TELEGRAM_TOKEN" }
[runtimes.assistant]
plugin = "openai"
instructions = "Help."
api_key = { env = "MODEL_KEY" }
[profiles.default]
runtime = "assistant"
[access]
owners = ["telegram:700000001"]
"""


def seconds(command: list[str], folder: str) -> float:
    """Return the median wall time of a command."""
    environment = {
        "PATH": os.defpath,
        "HOME": folder,
        "TELEGRAM_TOKEN": "123456789:" + "A" * 35,
        "MODEL_KEY": "sk-dummy-key",
    }
    times = []
    for _ in range(RUNS):
        started = time.perf_counter()
        subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def peak_mb(script: str) -> float:
    """Return the peak memory of a fresh interpreter that runs a script."""
    report = f"{script}\nimport resource as r; print(r.getrusage(r.RUSAGE_SELF).ru_maxrss)"
    done = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True
    )
    return int(done.stdout) / 1024


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "dragoman.toml").write_text(MANIFEST)
        for words in (["--help"], ["plugins"], ["check"], ["schema"]):
            taken = seconds([str(DRAGOMAN), *words], folder)
            print(json.dumps({"command": " ".join(words), "seconds": round(taken, 3)}))
        imported = seconds([sys.executable, "-c", "import dragoman"], folder)
        bare = seconds([sys.executable, "-c", "pass"], folder)
        for module, connected in CONNECTS.items():
            taken = seconds([sys.executable, "-c", f"import {module}"], folder)
            row = {
                "platform": module,
                "import_beyond_core_seconds": round(taken - imported, 3),
                "import_peak_mb": round(peak_mb(f"import {module}"), 1),
                "connected_peak_mb": round(peak_mb(connected), 1),
            }
            print(json.dumps(row))
    print(
        json.dumps(
            {
                "import_dragoman_seconds": round(imported, 3),
                "bare_interpreter_seconds": round(bare, 3),
                "import_dragoman_peak_mb": round(peak_mb("import dragoman"), 1),
                "own_peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }
        )
    )


if __name__ == "__main__":
    main()
