"""Builds the C extension and the emulator of NPUs with sanitizers: `build.py address|thread`. Prints the directory to put on PYTHONPATH, and what to preload.

The directory holds a package `mindtorch_v2` of links to the sources, and an extension and an emulator of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "mindtorch_v2"
EMULATOR = Path("_backends/npu/emulator")
SOURCES = ("runtime", "kernels")
UNCONTRACTED = "block_loops"  # see setup.py
FLAGS = "-O1 -g1 -fPIC -pthread -fno-omit-frame-pointer -Werror=implicit-function-declaration -fno-math-errno -fno-trapping-math -ffp-contract=fast -DNDEBUG"
EMULATOR_FLAGS = (
    "-std=c11 -D_GNU_SOURCE -O1 -g1 -fPIC -fvisibility=hidden -pthread"  # its Makefile's take long with sanitizers
)
SANITIZERS = {
    # Conversions of floats that do not fit are what the processor makes of them, as in numpy and in PyTorch.
    "address": "-fsanitize=address,undefined -fno-sanitize=float-cast-overflow,float-divide-by-zero",
    "thread": "-fsanitize=thread",
}
LIBRARIES = {"address": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}


def compiler() -> list[str]:
    """The C compiler, with a cache where there is one."""
    cache = shutil.which("ccache")
    return [*([cache] if cache else []), os.environ.get("CC", "gcc")]


def link_tree(source: Path, target: Path) -> None:
    """Links to what is in a folder, but folders on the way to the emulator, which has a build of its own."""
    target.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        link = target / entry.name
        if entry.is_dir() and (PACKAGE / EMULATOR).is_relative_to(entry):
            if link.is_symlink():
                link.unlink()
            link_tree(entry, link)
        elif not entry.name.startswith(("_native", "__pycache__", "build")) and not link.is_symlink():
            link.symlink_to(entry)


def build(kind: str, jobs: int) -> Path:
    """Compile what has changed; the directory for PYTHONPATH."""
    place = ROOT / "build" / "sanitize" / kind
    package, objects = place / "src" / "mindtorch_v2", place / "objects"
    package.mkdir(parents=True, exist_ok=True)
    objects.mkdir(exist_ok=True)
    generated = place / "generated"
    if not generated.is_symlink():
        generated.symlink_to(ROOT / "generated")
    link_tree(PACKAGE, package)
    compiled = f"{EMULATOR_FLAGS} -I{ROOT / 'generated' / 'npu'}"
    command = f"{compiler()[-1]} {SANITIZERS[kind]}"
    make = ["make", "-s", f"-j{jobs}", "-C", str(package / EMULATOR), f"CC={command}", f"CFLAGS_ALL={compiled}"]
    subprocess.run([*make, "all"], check=True)
    native = ROOT / "native"
    folders = [*(native / folder for folder in SOURCES), ROOT / "generated" / "native", Path(numpy.get_include())]
    include = [f"-I{folder}" for folder in (*folders, Path(sysconfig.get_path("include")))]
    headers = max(file.stat().st_mtime for folder in folders[:3] for file in folder.glob("*.h"))

    def compile_one(source: Path) -> tuple[Path, bool]:
        made = objects / f"{source.stem}.o"
        if made.exists() and made.stat().st_mtime > max(headers, source.stat().st_mtime):
            return made, False
        flags = FLAGS.split() + (["-ffp-contract=off"] if source.stem == UNCONTRACTED else [])
        command = [*compiler(), *flags, *SANITIZERS[kind].split(), *include, "-c", str(source), "-o", str(made)]
        subprocess.run(command, check=True)
        return made, True

    sources = sorted(file for folder in SOURCES for file in (native / folder).glob("*.c"))
    with ThreadPoolExecutor(jobs) as pool:
        done = list(pool.map(compile_one, sources))
    extension = package / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not extension.exists() or any(new for _, new in done):
        link = [compiler()[-1], "-shared", "-pthread", *SANITIZERS[kind].split(), "-o", str(extension)]
        subprocess.run([*link, *(str(made) for made, _ in done)], check=True)
    return place / "src"


def environment(kind: str, place: Path) -> dict[str, str]:
    """What a process that imports the built extension needs."""
    found = [
        subprocess.run([compiler()[-1], f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        for name in LIBRARIES[kind]
    ]
    suppressions = ROOT / "tests" / "hostile" / "thread.supp"
    return dict(
        os.environ,
        PYTHONPATH=str(place),
        LD_PRELOAD=":".join(run.stdout.strip() for run in found),
        # Python itself keeps what it made until the process ends.
        ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:abort_on_error=1:max_allocation_size_mb=512",
        UBSAN_OPTIONS="print_stacktrace=1",
        TSAN_OPTIONS=f"halt_on_error=1:suppressions={suppressions}:max_allocation_size_mb=64:allocator_may_return_null=1",
        PYTHONMALLOC="malloc",
        OMP_NUM_THREADS="1",
        MINDTORCH_V2_REQUIRE_NATIVE="1",
        MINDTORCH_V2_BUFFER_CACHE="0",  # so that freed memory is known to be freed
    )


if __name__ == "__main__":
    made = build(sys.argv[1], int(os.environ.get("JOBS", "2")))
    print(made, environment(sys.argv[1], made)["LD_PRELOAD"])
