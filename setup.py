"""The optional C extension, and generated/ as part of the package; everything else stands in pyproject.toml.

Without a compiler the package is installed all the same and works by numpy alone, unless MINDTORCH_V2_REQUIRE_NATIVE=1 is in the environment. With
MINDTORCH_V2_NATIVE=0 nothing is compiled, and a wheel is for every machine.
"""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.modified import newer_group

RUNTIME = Path("native/runtime")
KERNELS = Path("native/kernels")
GENERATED = Path("generated")
TESTS = GENERATED / "test_table.py"  # serves the tests alone
LOOPS = GENERATED / "native"
CODEGEN = Path("codegen")
# Of the generator, what serves this repository alone: commands of contributors, and products that packages of operators do not have.
WORKSHOP = {
    CODEGEN / f"{name}.py"
    for name in (
        *("__init__", "__main__", "explain", "listing", "products", "report", "skeleton"),
        *("check_signatures", "import_aclnn", "import_aten", "native_kernels"),
        *("aclnn_dtypes", "emit_library", "json_schema", "manual", "proxy", "stubs"),
    )
}
PROTOTYPES = Path("schema/aclnn.yaml")
# Note [The same bits] in this file: products and sums that are written apart stay apart.
UNCONTRACTED = (KERNELS / "block_loops.c").as_posix()


class WithGenerated(build_py):
    """Puts the generated modules, and what packages need of the generator, into the package. An editable install finds them where they are."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for file in set(GENERATED.rglob("*.py")) - {TESTS}:
                self.put(file, Path("_generated", file.relative_to(GENERATED)))
            for file in {*CODEGEN.glob("*.py"), *(CODEGEN / "templates").glob("*.j2")} - WORKSHOP:
                self.put(file, file)
            self.put(PROTOTYPES, Path("codegen/aclnn.yaml"))

    def put(self, file: Path, place: Path) -> None:
        """Copy a file to a place in the package."""
        made = Path(self.build_lib, "mindtorch_v2", place)
        made.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, made)


class Packed(bdist_wheel):
    """Packs the files of a wheel as small as deflate makes them."""

    def run(self) -> None:
        super().run()
        wheel = Path(self.distribution.dist_files[-1][2])
        packed = wheel.with_suffix(".packed")
        with ZipFile(wheel) as source, ZipFile(packed, "w") as target:
            for entry in source.infolist():
                target.writestr(entry, source.read(entry), ZIP_DEFLATED, compresslevel=9)
        packed.replace(wheel)


class Build(build_ext):
    """Compiles sources side by side: one with a further flag, and those without loops over elements for size as well as for speed."""

    def build_extension(self, ext: Extension) -> None:
        made = self.get_ext_fullpath(ext.name)
        if not (self.force or newer_group([*ext.sources, *ext.depends], made, "newer")):
            return
        further = {UNCONTRACTED: ["-ffp-contract=off"]}
        further |= {path.as_posix(): ["-O2"] for path in RUNTIME.glob("*.c")}
        include = [*ext.include_dirs, *(self.include_dirs or [])]
        work = [
            ([source], [*ext.extra_compile_args, *further.get(source, [])]) for source in [UNCONTRACTED, *ext.sources]
        ]

        def compiled(sources: list[str], flags: list[str]) -> list[str]:
            return self.compiler.compile(
                sources, self.build_temp, include_dirs=include, debug=self.debug, extra_postargs=flags
            )

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            done = [pool.submit(compiled, *one) for one in work]
            ext.extra_objects = [made for each in done for made in each.result()]
        ext.sources = []
        if not self.editable_mode:  # names of functions, for who measures, in place alone
            ext.extra_link_args = [*ext.extra_link_args, "-s"]
        super().build_extension(ext)


setup(
    cmdclass={"bdist_wheel": Packed, "build_ext": Build, "build_py": WithGenerated},
    ext_modules=[]
    if os.environ.get("MINDTORCH_V2_NATIVE") == "0"
    else [
        Extension(
            "mindtorch_v2._native",
            sources=sorted(
                p
                for where in (RUNTIME, KERNELS)
                for path in where.glob("*.c")
                if (p := path.as_posix()) != UNCONTRACTED
            ),
            depends=[
                UNCONTRACTED,
                *sorted(path.as_posix() for where in (RUNTIME, KERNELS, LOOPS) for path in where.glob("*.h")),
            ],
            include_dirs=[numpy.get_include(), RUNTIME.as_posix(), KERNELS.as_posix(), LOOPS.as_posix()],
            extra_compile_args=[
                "-O3",
                # Short loops in one line of the cache of decoded instructions, whatever stands before them.
                *("-falign-functions=64", "-falign-loops=32"),
                "-Werror=implicit-function-declaration",
                "-fno-math-errno",
                "-fno-trapping-math",
                "-ffp-contract=fast",
                "-g0",  # Python's own flags ask for what debuggers read, of twice the size
                "-fno-asynchronous-unwind-tables",  # for exceptions, of which C has none: a twentieth of the extension
            ],
            optional=os.environ.get("MINDTORCH_V2_REQUIRE_NATIVE", "0") == "0",
        )
    ],
)
