"""The declarations of CANN's runtime: what cffi makes of them, and what is said of mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.acl import cdef, read_acl

SCHEMA = Path(__file__).resolve().parents[2] / "schema"


def test_the_schema_has_no_problems():
    acl, problems = read_acl(SCHEMA)
    assert problems == []
    assert acl.since["aclrtGetDeviceInfo"] == "8.5" and "aclInit" not in acl.since
    assert {function.library for function in acl.functions} == {"libascendcl.so", "libnnopbase.so", "libhccl.so"}


def test_cffi_reads_the_text():
    cffi = pytest.importorskip("cffi")
    ffi = cffi.FFI()
    ffi.cdef(cdef(SCHEMA))
    assert ffi.typeof("aclrtStream").kind == "pointer" and ffi.sizeof("aclDataType") == 4
    library = ffi.dlopen(None)
    assert library.ACL_BF16 == 27 and library.ACL_ERROR_RT_MEMORY_ALLOCATION == 207001
    assert library.ACL_FORMAT_NCL == 47 and library.ACL_DT_UNDEFINED == -1


GOOD = """
types: {aclError: int, aclTensor: struct}
constants: {aclDataType: {ACL_FLOAT: 0}}
functions:
  libascendcl.so:
    - aclError aclInit(const char *configPath)
    - declaration: aclError aclrtNew(void **devPtr, const aclTensor *tensor)
      since: 8.5
"""


def read(folder: Path, text: str) -> list[str]:
    (folder / "acl.yaml").write_text(text)
    return [str(problem) for problem in read_acl(folder)[1]]


def test_a_good_file(tmp_path):
    assert read(tmp_path, GOOD) == []
    assert cdef(tmp_path).splitlines() == [
        "typedef int aclError;",
        "typedef struct aclTensor aclTensor;",
        "enum {",
        "    ACL_FLOAT = 0,",
        "};",
        "aclError aclInit(const char *configPath);",
        "aclError aclrtNew(void **devPtr, const aclTensor *tensor);",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("types:", "typos:", "schema/acl.yaml:2:1: unknown section 'typos'; did you mean 'types'?"),
        ("aclError: int", "aclError: imt", "schema/acl.yaml:2:19: aclError: 'imt' is no plain C type"),
        ("ACL_FLOAT: 0", "ACL_FLOAT: none", "schema/acl.yaml:3:38: ACL_FLOAT: a constant is an integer"),
        ("libascendcl.so", "libascendl.so", "unknown library 'libascendl.so'; did you mean 'libascendcl.so'?"),
        ("aclInit(const char *configPath)", "aclInit", "must be a C declaration"),
        ("const char *configPath", "const chr *configPath", "schema/acl.yaml:6:24: aclInit: unknown type 'chr'"),
        ("const char *configPath", "void **, int x", "schema/acl.yaml:6:24: aclInit: parameter 'void **' must be"),
        ("const aclTensor *", "const aclTensr *", "aclrtNew: unknown type 'aclTensr'; did you mean 'aclTensor'?"),
        ("aclrtNew", "aclInit", "aclInit: declared twice"),
        ("since: 8.5", "since: 9.9", "unknown CANN version '9.9'; known: "),
        ("since: 8.5", "sinc: 8.5", "unknown key 'sinc'; did you mean 'since'?"),
    ],
)
def test_mistakes(tmp_path, old, new, message):
    assert old in GOOD
    problems = read(tmp_path, GOOD.replace(old, new, 1))
    assert any(message in problem for problem in problems), problems
    with pytest.raises(ValueError, match="acl.yaml"):
        cdef(tmp_path)
