"""A folder that looks like an installation of CANN: small libraries built by cc, whose runtime keeps books in host memory.

It is for finding and opening libraries, and for what the runtime does around its calls. The emulator is for what devices do.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

CC = shutil.which("cc")

RUNTIME_SOURCE = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
static __thread int device = -1;
static __thread const char *message;
static int initialised, finalised, sets;
int aclInit(const char *path) { (void)path; return initialised++ ? 100002 : 0; }
int aclFinalize(void) { finalised = 1; return 0; }
int aclrtGetDeviceCount(uint32_t *count) { *count = DEVICES; return 0; }
int aclrtSetDevice(int32_t d) { if (d < 0 || d >= DEVICES) return 107001; device = d; sets++; return 0; }
int aclrtGetDevice(int32_t *d) { if (device < 0) return 107002; *d = device; return 0; }
int aclrtResetDevice(int32_t d) { (void)d; return 0; }
int aclrtSynchronizeDevice(void) { return device < 0 ? 107002 : 0; }
const char *aclrtGetSocName(void) { return "Ascend910B1"; }
const char *aclGetRecentErrMsg(void) { const char *m = message; message = 0; return m; }
int aclrtMalloc(void **p, size_t n, int policy) {
    (void)policy;
    if (device < 0) return 107002;
    if (n > 1000000) { message = "EL0004: no memory left"; return 207001; }
    *p = malloc(n); return 0;
}
int aclrtFree(void *p) { if (!p) return 107000; free(p); return 0; }
int aclrtMallocHost(void **p, size_t n) { *p = malloc(n); return 0; }
int aclrtFreeHost(void *p) { free(p); return 0; }
int aclrtMemcpy(void *d, size_t m, const void *s, size_t n, int kind) { (void)kind; if (n > m) return 107000; memcpy(d, s, n); return 0; }
int aclrtGetMemInfo(int attr, size_t *f, size_t *t) { *f = attr == 0 ? 5 : 0; *t = attr == 0 ? 10 : 0; return 0; }
int aclGetDeviceCapability(uint32_t d, int what, int64_t *value) { (void)d; if (what > 1) return 200001; *value = what == 0 ? 24 : 48; return 0; }
int fake_sets(void) { return sets; }
int fake_finalised(void) { return finalised; }
"""


def build(
    folder: Path, name: str, source: str = "", *, exports: tuple[str, ...] = (), defines: tuple[str, ...] = ()
) -> Path:
    """A shared library; each of `exports` is a function without parameters that returns its place, from 1, in the list."""
    folder.mkdir(parents=True, exist_ok=True)
    text = source + "".join(
        f"int {function}(void) {{ return {number}; }}\n" for number, function in enumerate(exports, 1)
    )
    command = [CC or "cc", "-shared", "-fPIC", "-x", "c", "-o", str(folder / name), *(f"-D{d}" for d in defines), "-"]
    subprocess.run(command, input=text, text=True, check=True)
    return folder / name


def touch(folder: Path, *names: str) -> None:
    """Empty files, for what is only looked for."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()


def install(home: Path, devices: int = 2) -> Path:
    """An installation with a runtime of `devices` devices and one operator library; returns its folder."""
    libraries = home / "lib64"
    build(libraries, "libascendcl.so", RUNTIME_SOURCE, defines=(f"DEVICES={devices}",))
    build(libraries, "libnnopbase.so", exports=("aclnnInit", "aclDestroyAclOpExecutor"))
    build(libraries, "libopapi.so", exports=("aclnnFinalize",))
    (home / "version.cfg").write_text("version=8.1.RC1\n")
    return home
