"""Finding CANN in folders made up for the purpose, opening libraries built by cc, and the sentences of what is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import _fake_cann as fake
import pytest
from _fresh import SOURCE

from mindtorch_v2._backends.npu import acl_loader
from mindtorch_v2._backends.npu.acl_loader import CannNotFound, Libraries, SymbolNotFound

needs_cc = pytest.mark.skipif(fake.CC is None, reason="needs a C compiler")


@pytest.fixture(autouse=True)
def nothing_there(monkeypatch, tmp_path):
    """A machine without CANN: no variables, and usual folders that are empty."""
    for name in (
        *acl_loader.HOME_VARIABLES,
        "ASCEND_OPP_PATH",
        "ASCEND_CUSTOM_OPP_PATH",
        "LD_LIBRARY_PATH",
        "MINDTORCH_NPU_EMULATOR",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(acl_loader, "USUAL_PARENTS", (str(tmp_path / "usual"),))
    monkeypatch.setattr(acl_loader, "DRIVER_FOLDERS", (str(tmp_path / "driver"),))


class TestFinding:
    def test_nothing(self, tmp_path):
        assert acl_loader.find_cann() is None and acl_loader.find_runtime() is None and acl_loader.find_driver() is None
        text = acl_loader.not_found()
        for part in ("libascendcl.so", str(tmp_path / "usual"), "ASCEND_HOME_PATH: not set", "set_env.sh", "Install"):
            assert part in text

    @pytest.mark.parametrize("variable", ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"])
    @pytest.mark.parametrize("libraries", ["lib64", "aarch64-linux/lib64", "x86_64-linux/lib64"])
    def test_by_environment(self, monkeypatch, tmp_path, variable, libraries):
        fake.touch(tmp_path / "here" / libraries, "libascendcl.so", "libnnopbase.so", "libopapi.so")
        monkeypatch.setenv(variable, str(tmp_path / "here"))
        found = acl_loader.find_cann()
        assert found is not None and found.home == tmp_path / "here"
        assert found.base == tmp_path / "here" / libraries / "libnnopbase.so"
        assert any(f"({variable}): found" in line for line in acl_loader.where())

    def test_home_comes_before_toolkit_and_usual_folders(self, monkeypatch, tmp_path):
        for name in ("first", "second", "usual/cann"):
            fake.touch(tmp_path / name / "lib64", "libascendcl.so")
        assert acl_loader.find_runtime() == tmp_path / "usual/cann/lib64/libascendcl.so"
        monkeypatch.setenv("ASCEND_TOOLKIT_HOME", str(tmp_path / "second"))
        assert acl_loader.find_runtime() == tmp_path / "second/lib64/libascendcl.so"
        monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path / "first"))
        assert acl_loader.find_runtime() == tmp_path / "first/lib64/libascendcl.so"

    def test_by_the_folder_of_operators(self, monkeypatch, tmp_path):
        fake.touch(tmp_path / "kit" / "lib64", "libascendcl.so")
        monkeypatch.setenv("ASCEND_OPP_PATH", str(tmp_path / "kit" / "opp"))
        assert acl_loader.find_runtime() == tmp_path / "kit/lib64/libascendcl.so"

    @pytest.mark.parametrize("name", ["cann", "cann-8.5.0", "ascend-toolkit/latest", "nnrt/latest", "latest"])
    def test_in_usual_folders(self, tmp_path, name):
        fake.touch(tmp_path / "usual" / name / "lib64", "libascendcl.so")
        assert acl_loader.find_runtime() == tmp_path / "usual" / name / "lib64/libascendcl.so"

    def test_by_search_path(self, monkeypatch, tmp_path):
        fake.touch(tmp_path / "odd", "libascendcl.so")
        monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path / 'none'}{os.pathsep}{tmp_path / 'odd'}")
        assert acl_loader.find_runtime() == tmp_path / "odd/libascendcl.so"

    def test_split_libraries_win_over_the_monolithic_one(self, monkeypatch, tmp_path):
        libraries = tmp_path / "here" / "lib64"
        fake.touch(libraries, "libascendcl.so", "libopapi.so")
        monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path / "here"))
        found = acl_loader.find_cann()
        assert found is not None and [path.name for path in found.operators] == ["libopapi.so"]
        fake.touch(libraries, "libopapi_nn.so", "libopapi_math.so")
        found = acl_loader.find_cann()
        assert found is not None and [path.name for path in found.operators] == ["libopapi_math.so", "libopapi_nn.so"]

    def test_custom_operators_come_in_their_order(self, monkeypatch, tmp_path):
        home = tmp_path / "here"
        fake.touch(home / "lib64", "libascendcl.so")
        for place in (tmp_path / "mine", home / "opp/vendors/a", home / "opp/vendors/b"):
            fake.touch(place / "op_api/lib", "libcust_opapi.so")
        (home / "opp/vendors/config.ini").write_text("load_priority=b,absent,a\n")
        monkeypatch.setenv("ASCEND_HOME_PATH", str(home))
        monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(tmp_path / "mine"))
        found = acl_loader.find_cann()
        assert found is not None
        parts = [path.relative_to(tmp_path).parts[:4] for path in found.custom]
        assert parts == [
            ("mine", "op_api", "lib", "libcust_opapi.so"),
            ("here", "opp", "vendors", "b"),
            ("here", "opp", "vendors", "a"),
        ]

    @pytest.mark.parametrize(
        ("file", "content", "version"),
        [
            ("aarch64-linux/ascend_toolkit_install.info", "package_name=toolkit\nversion=8.1.RC1\n", "8.1.RC1"),
            ("version.cfg", "# kit\nruntime_running_version=[7.7.0:8.1.RC1]\n", "8.1.RC1"),
            ("compiler/version.info", "Version=8.5.0\n", "8.5.0"),
        ],
    )
    def test_version_by_file(self, tmp_path, file, content, version):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(content)
        assert acl_loader.cann_version(tmp_path) == version

    def test_version_by_folder(self, tmp_path):
        (tmp_path / "8.1.RC1").mkdir()
        (tmp_path / "latest").symlink_to(tmp_path / "8.1.RC1")
        (tmp_path / "cann-8.5.0").mkdir()
        (tmp_path / "other").mkdir()
        assert acl_loader.cann_version(tmp_path / "latest") == "8.1.RC1"
        assert acl_loader.cann_version(tmp_path / "cann-8.5.0") == "8.5.0"
        assert acl_loader.cann_version(tmp_path / "other") == ""

    def test_driver(self, tmp_path):
        fake.touch(tmp_path / "driver", "libascend_hal.so")
        assert acl_loader.find_driver() == tmp_path / "driver/libascend_hal.so"

    def test_emulator_that_is_not_built(self, monkeypatch, tmp_path):
        monkeypatch.setenv("MINDTORCH_NPU_EMULATOR", "1")
        monkeypatch.setattr(acl_loader, "EMULATOR", tmp_path / "libascend_emulator.so")
        monkeypatch.setattr(acl_loader, "_libraries", None)
        with pytest.raises(CannNotFound, match="make emulator"):
            acl_loader.load()

    @pytest.mark.parametrize(("value", "wanted"), [("1", True), ("0", False), ("", False)])
    def test_emulator_is_asked_for(self, monkeypatch, value, wanted):
        monkeypatch.setenv("MINDTORCH_NPU_EMULATOR", value)
        assert acl_loader.emulated() is wanted


@needs_cc
class TestOpening:
    def libraries(self, monkeypatch, home: Path) -> Libraries:
        monkeypatch.setenv("ASCEND_HOME_PATH", str(home))
        return Libraries(acl_loader.find_cann())

    def test_symbols_are_found_in_order(self, monkeypatch, tmp_path):
        home = tmp_path / "here"
        fake.build(home / "lib64", "libascendcl.so", exports=("aclFinalize",))
        fake.build(home / "lib64", "libnnopbase.so", exports=("aclnnFinalize", "aclFinalize"))
        fake.build(home / "lib64", "libopapi.so", exports=("aclFinalize", "aclnnFinalize"))
        opened = self.libraries(monkeypatch, home)
        assert opened.symbol("aclFinalize")() == 1, "the runtime's, not that of an operator library"
        assert opened.symbol("aclnnFinalize")() == 2, "the operator library's, before the base library's"
        fake.build(tmp_path / "mine/op_api/lib", "libcust_opapi.so", exports=("a", "b", "aclnnFinalize"))
        monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(tmp_path / "mine"))
        assert self.libraries(monkeypatch, home).symbol("aclnnFinalize")() == 3, "custom operators come first"

    def test_the_monolithic_library_is_not_opened_beside_split_ones(self, monkeypatch, tmp_path):
        home = tmp_path / "here"
        fake.build(home / "lib64", "libascendcl.so")
        fake.build(home / "lib64", "libopapi.so", exports=("aclnnFinalize",))
        fake.build(home / "lib64", "libopapi_math.so", exports=("other",))
        opened = self.libraries(monkeypatch, home)
        assert [path.name for path in opened.paths] == ["libascendcl.so", "libopapi_math.so"]
        assert not opened.has("aclnnFinalize")

    def test_a_missing_symbol_is_named_with_the_version(self, monkeypatch, tmp_path):
        opened = self.libraries(monkeypatch, fake.install(tmp_path / "here"))
        assert opened.version == "8.1.RC1"
        with pytest.raises(SymbolNotFound, match=r"aclrtGetDeviceInfo is not in CANN 8\.1\.RC1 .*CANN 8\.5 brought it"):
            opened.symbol("aclrtGetDeviceInfo")
        assert not opened.has("aclrtGetDeviceInfo") and opened.has("aclInit")

    def test_without_operators_the_error_says_what_to_install(self, monkeypatch, tmp_path):
        home = fake.install(tmp_path / "here")
        (home / "lib64" / "libopapi.so").unlink()
        with pytest.raises(SymbolNotFound, match="aclnnFinalize.*operator package"):
            self.libraries(monkeypatch, home).symbol("aclnnFinalize")

    def test_a_library_that_cannot_be_opened(self, monkeypatch, tmp_path):
        fake.touch(tmp_path / "here/lib64", "libascendcl.so")
        with pytest.raises(CannNotFound, match=r"libascendcl\.so was found but cannot be opened.*set_env\.sh.*driver"):
            self.libraries(monkeypatch, tmp_path / "here")

    def test_operators_that_cannot_be_opened_are_a_warning(self, monkeypatch, tmp_path):
        home = fake.install(tmp_path / "here")
        fake.build(home / "lib64", "libopapi_math.so", exports=("aclnnFinalize",))
        fake.touch(home / "lib64", "libopapi_nn.so")
        fake.touch(tmp_path / "mine/op_api/lib", "libcust_opapi.so")
        monkeypatch.setenv("ASCEND_CUSTOM_OPP_PATH", str(tmp_path / "mine"))
        with pytest.warns(UserWarning) as said:
            opened = self.libraries(monkeypatch, home)
        assert [next(n for n in ("cust_opapi", "opapi_nn") if n in str(w.message)) for w in said] == [
            "cust_opapi",
            "opapi_nn",
        ]
        assert all("are missing" in str(w.message) and "cannot be opened" in str(w.message) for w in said)
        assert opened.symbol("aclnnFinalize")() == 1 and opened.has("aclInit")

    def test_libraries_are_bound_lazily(self, monkeypatch, tmp_path):
        home = fake.install(tmp_path / "here")
        text = "int nowhere(void); int other(void) { return nowhere(); } int aclnnFinalize(void) { return 7; }"
        command = [
            fake.CC or "cc",
            "-shared",
            "-fPIC",
            "-Wl,-z,lazy",
            "-x",
            "c",
            "-o",
            str(home / "lib64/libopapi.so"),
            "-",
        ]
        subprocess.run(command, input=text, text=True, check=True)
        assert self.libraries(monkeypatch, home).symbol("aclnnFinalize")() == 7

    def test_constants_and_names_of_errors(self, monkeypatch, tmp_path):
        opened = self.libraries(monkeypatch, fake.install(tmp_path / "here"))
        assert opened.constant("ACL_EVENT_TIME_LINE") == 8 and opened.constant("ACL_DT_UNDEFINED") == -1
        names = opened.error_names()
        assert names[207001] == "ACL_ERROR_RT_MEMORY_ALLOCATION" and names[161002] == "ACLNN_ERR_PARAM_INVALID"


def run(code: str, home: Path | None = None, **more: str) -> dict:
    """What a program prints as JSON, in a process of its own, with CANN in a folder."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ASCEND", "MINDTORCH_NPU"))} | more
    environment["PYTHONPATH"] = str(SOURCE)
    if home is not None:
        environment["ASCEND_HOME_PATH"] = str(home)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@needs_cc
class TestRuntimeOnAFakeInstallation:
    def test_devices_errors_and_threads(self, tmp_path):
        found = run(
            """
import json, threading
import mindtorch_v2 as torch
from mindtorch_v2._backends.npu.runtime import NpuError, NpuOutOfMemory, get_runtime, is_initialized
found = {"count": torch.npu.device_count(), "early": is_initialized(), "available": torch.npu.is_available()}
runtime = get_runtime()
found["late"] = torch.npu.is_initialized()
def other():
    found["thread"] = [torch.npu.current_device()]
    torch.npu.set_device(0)
    found["thread"].append(torch.npu.current_device())
torch.npu.set_device("npu:1")
worker = threading.Thread(target=other); worker.start(); worker.join()
found["main"] = torch.npu.current_device()
with torch.npu.device(0):
    found["inside"] = torch.npu.current_device()
found["after"] = torch.npu.current_device()
address = runtime.malloc(0, 64); runtime.free(0, address)
found["kept"] = torch.npu.current_device()
for number in (2, 3):
    try: torch.npu.set_device(number)
    except RuntimeError as error: found["bad"] = str(error)
try: runtime.malloc(1, 2000000)
except NpuOutOfMemory as error: found["oom"] = [error.code, error.name, error.operation, error.recent, str(error), isinstance(error, RuntimeError)]
try: runtime.free(0, 0)
except NpuError as error: found["null"] = [error.code, error.recent]
found["ddr"] = runtime.mem_get_info(0)
p = torch.npu.get_device_properties(1)
found["properties"] = [p.name, p.total_memory, p.multi_processor_count, p.vector_core_num, p.cube_core_num, p.L2_cache_size]
found["range"] = torch.npu.stream_priority_range()
found["bf16"] = torch.npu.is_bf16_supported()
pinned = torch.arange(4.0).pin_memory()
found["pinned"] = [pinned.is_pinned(), pinned.tolist(), torch.npu.host_memory_stats()["num_host_alloc"]]
print(json.dumps(found))
""",
            fake.install(tmp_path / "here"),
        )
        assert found["count"] == 2 and found["available"] and not found["early"] and found["late"]
        assert found["thread"] == [0, 0] and found["main"] == 1 and found["inside"] == 0 and found["after"] == 1
        assert found["kept"] == 1 and "invalid device ordinal 3" in found["bad"]
        code, name, operation, recent, text, runtime_error = found["oom"]
        assert (code, name, operation) == (207001, "ACL_ERROR_RT_MEMORY_ALLOCATION", "aclrtMalloc") and runtime_error
        assert recent == "EL0004: no memory left" and recent in text and "2000000 bytes on npu:1" in text
        assert found["null"] == [107000, ""] and found["ddr"] == [5, 10]
        assert found["properties"] == ["Ascend910B1", 10, 24, 48, None, None]
        assert found["range"] == [0, 0] and found["bf16"] is True
        assert found["pinned"] == [True, [0.0, 1.0, 2.0, 3.0], 1]

    def test_a_forked_child_gets_an_error(self, tmp_path):
        found = run(
            """
import json, os
import mindtorch_v2 as torch
runtime = __import__("mindtorch_v2._backends.npu.runtime", fromlist=["x"]).get_runtime()
read, write = os.pipe()
if os.fork() == 0:
    said = []
    for call in (torch.npu.init, lambda: torch.npu.set_device(1), torch.npu.synchronize, lambda: runtime.malloc(0, 8)):
        try: call()
        except RuntimeError as error: said.append(str(error))
    runtime.free(0, 12345)  # the parent's memory: nothing to do here
    said.append(torch.npu._is_in_bad_fork())
    os.write(write, json.dumps(said).encode())
    os._exit(0)
os.wait()
print(json.dumps({"said": json.loads(os.read(read, 10000)), "parent": torch.npu.current_device(), "bad": torch.npu._is_in_bad_fork()}))
""",
            fake.install(tmp_path / "here"),
        )
        assert len(found["said"]) == 5 and found["said"][-1] is True and found["bad"] is False and found["parent"] == 0
        assert all("you must use the 'spawn' start method" in text for text in found["said"][:4])

    def test_a_child_forked_before_the_first_use_works(self, tmp_path):
        found = run(
            """
import json, os
import mindtorch_v2 as torch
torch.npu.device_count()
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, json.dumps(torch.npu.current_device()).encode())
    os._exit(0)
os.wait()
print(json.dumps({"child": json.loads(os.read(read, 100))}))
""",
            fake.install(tmp_path / "here"),
        )
        assert found == {"child": 0}

    def test_the_end(self, tmp_path):
        found = run(
            """
import atexit, json
import mindtorch_v2 as torch
from mindtorch_v2._backends.npu.runtime import get_runtime
found = {}
@atexit.register  # registered first, so it runs after the runtime's own end
def last():
    runtime.free(0, 1)
    try: torch.npu.current_device()
    except RuntimeError as error: found["error"] = str(error)
    print(json.dumps(found))
runtime = get_runtime()
runtime.current_device()
runtime.on_finalize(lambda: found.setdefault("order", []).append(1))
runtime.on_finalize(lambda: found.setdefault("order", []).append(2))
""",
            fake.install(tmp_path / "here"),
        )
        assert found["order"] == [2, 1] and "finalized" in found["error"]

    def test_no_device(self, tmp_path):
        found = run(
            """
import json
import mindtorch_v2 as torch
from mindtorch_v2._backends.npu import unavailable_reason
found = {"available": torch.npu.is_available(), "reason": unavailable_reason()}
try: torch.npu.init()
except RuntimeError as error: found["error"] = str(error)
print(json.dumps(found))
""",
            fake.install(tmp_path / "here", devices=0),
        )
        assert found["available"] is False and "reports no device" in found["reason"]
        assert found["error"] == found["reason"]

    def test_many_threads_start_together(self, tmp_path):
        found = run(
            """
import json, threading
import mindtorch_v2 as torch
barrier, seen, failed = threading.Barrier(8), [], []
def go():
    barrier.wait()
    try: seen.append(id(__import__("mindtorch_v2._backends.npu.runtime", fromlist=["x"]).get_runtime()))
    except BaseException as error: failed.append(repr(error))
threads = [threading.Thread(target=go) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(json.dumps({"kinds": len(set(seen)), "count": len(seen), "failed": failed}))
""",
            fake.install(tmp_path / "here"),
        )
        assert found == {"kinds": 1, "count": 8, "failed": []}

    def test_collect_env(self, tmp_path):
        home = fake.install(tmp_path / "here")
        environment = os.environ | {"ASCEND_HOME_PATH": str(home), "PYTHONPATH": str(SOURCE)}
        done = subprocess.run(
            [sys.executable, "-m", "mindtorch_v2", "collect-env", "--json"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        found = json.loads(done.stdout)
        assert found["CANN"]["CANN"] == f"8.1.RC1 in {home}" and found["NPU"]["devices"] == 2
        assert "Ascend910B1" in found["NPU"]["npu:0"] and "numpy" in found["versions"]


@pytest.mark.parametrize("module", ["mindtorch_v2", "mindtorch_v2.npu", "mindtorch_v2._backends.npu.aclnn"])
def test_importing_does_not_import_cffi(module):
    assert run(
        f"import json, sys, {module}\nprint(json.dumps({{'cffi': bool({{'cffi', '_cffi_backend'}} & set(sys.modules))}}))"
    ) == {"cffi": False}


def test_without_cann_the_error_says_what_was_looked_for():
    found = run(
        "import json, sys\nimport mindtorch_v2 as torch\n"
        "try: torch.npu.init()\nexcept RuntimeError as error: print(json.dumps({'error': str(error), 'cffi': '_cffi_backend' in sys.modules}))",
        HOME="/nonexistent",
    )
    assert "libascendcl.so" in found["error"] and found["cffi"] is False


@needs_cc
def test_without_cffi_the_error_says_what_to_install(tmp_path):
    found = run(
        "import json, sys\nsys.modules['_cffi_backend'] = None\nimport mindtorch_v2 as torch\n"
        "found = {'available': torch.npu.is_available()}\n"
        "try: torch.npu.init()\nexcept RuntimeError as error: print(json.dumps(found | {'error': str(error)}))",
        fake.install(tmp_path / "here"),
    )
    assert found["available"] is False and "pip install cffi" in found["error"]
