"""Prints what the tests run on, as a JSON list of names and values."""

import importlib.metadata
import json
import os
import platform
import subprocess

fields = []


def add(name, value):
    fields.append({"name": name, "value": value})


def gpus():
    query = "name,memory.total,driver_version"
    try:
        text = subprocess.run(
            ["nvidia-smi", "--query-gpu=" + query, "--format=csv,noheader"],
            capture_output=True, text=True, timeout=60, check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return f"nvidia-smi: {error}"
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())


def cpu():
    with open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


add("GPU (name, memory, driver)", gpus())
add("CPU", f"{os.cpu_count()} x {cpu()}")
add("kernel", platform.release())
add("Python", platform.python_version())
versions = []
for name in (
    "numpy", "torch", "cupy-cuda13x", "jax", "jaxlib", "numba", "numba-cuda", "cuda-core", "cuda-bindings", "pycuda",
    "warp-lang", "nvidia-dali-cuda130", "nvidia-dali-cuda120",
):
    try:
        versions.append(f"{name} {importlib.metadata.version(name)}")
    except importlib.metadata.PackageNotFoundError:
        pass
add("packages", ", ".join(versions))
print(json.dumps(fields))
