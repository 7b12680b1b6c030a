# Every target makes .venv and installs the pinned dependencies when needed.
#   make quickstart   watch a language model learn, on this machine
#   make quickstart-llm   the same with a public model of 135M parameters
#   make check        a minute: what a change most likely breaks
#   make test         what a developer, the README and .ci/run use
PYTHON ?= python3
VENV ?= .venv
EXTRAS ?= dev,tasks,data,docs,search
WORKERS ?= 2

BIN := $(VENV)/bin
# Reinstalled when a pin, an extra or the interpreter changes.
STAMP := $(VENV)/installed
RUN := $(BIN)/python -u
# XLA's plugin without what it needs to run programs.
AOT_GPU := jax-cuda13-plugin jax-cuda13-pjrt nvidia-cuda-nvcc nvidia-nvvm \
	nvidia-cuda-crt nvidia-cuda-runtime nvidia-nvjitlink nvidia-cuda-cupti \
	nvidia-cuda-nvrtc nvidia-cublas nvidia-cudnn-cu13
# Compiled programs, however small, are kept between test runs and shared by the
# workers of one. A torn entry only costs its compilation.
TEST_ENV := JAX_PLATFORMS=cpu JAX_COMPILATION_CACHE_DIR=$(CURDIR)/.jax_cache \
	JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 \
	JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1
# Most of a test's time is compilation: no optimisation, and the emitters that
# are quicker (all of them; rl_jax/runtime/compilation.py chooses them for updates),
# which jaxlib 0.11 no longer has. The smoke run and `make quickstart` run programs
# as users do.
FORMER_EMITTERS := import importlib.metadata as m; print( \
	"--xla_cpu_use_fusion_emitters=false" \
	if m.version("jaxlib").startswith("0.10.") else "")
QUICK_COMPILER := XLA_FLAGS="--xla_backend_optimization_level=0 \
	$$($(BIN)/python -c '$(FORMER_EMITTERS)')"
PYTEST := $(TEST_ENV) $(QUICK_COMPILER) $(BIN)/python -m pytest \
	-W 'ignore:Error reading persistent compilation cache' \
	-W 'ignore:Error writing persistent compilation cache'
space := $(subst ,, )
PARALLEL := -n $(WORKERS) --dist loadfile
# What `make check` looks at: ten methods and the pieces that they are made of.
CHECKED := reinforce rloo grpo dr_grpo dapo ppo gspo cispo kl_cov dpo
CHECK_TESTS := tests/methods/test_common.py \
	tests/test_imports.py tests/test_faces.py tests/test_fields.py \
	$(addprefix tests/pieces/,test_contract.py test_aggregation.py \
	ops/test_ratios.py ops/test_returns.py credit/test_group.py \
	credit/test_gae.py losses/test_reinforce.py losses/test_ppo_clip.py \
	losses/test_gspo.py losses/test_cispo.py losses/test_kl_cov.py \
	losses/test_value_clip.py regularizers/test_kl_penalty.py \
	preferences/test_links.py preferences/test_losses.py)
SMOKE := $(TEST_ENV) $(BIN)/python -m experiments.train \
	--config=configs/worlds/bandit.py --method=grpo

.PHONY: docs plan-environment test-compilers install newest-jax quickstart quickstart-llm check test test-fast test-devices smoke test-all \
	test-processes test-faults test-attacks test-soak test-mutations lint readme \
	format clean

install: $(STAMP)

$(STAMP): requirements.txt constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; \
	  sys.exit(v < (3, 11) and "rl_jax needs Python 3.11 or newer, but \
	$(PYTHON) is %d.%d: make PYTHON=/path/to/python3.11 ..." % v[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt --editable '.[$(EXTRAS)]'
	@touch $@

# The newest JAX that pyproject.toml takes, in place of the pinned one, until the
# next `make install` that has something to do.
newest-jax: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --upgrade --editable . jax jaxlib
	$(BIN)/python -c 'import jax; print("jax", jax.__version__)'

# Huge pages for large buffers, which are allocated anew at every call; ignored
# where there are none.
quickstart: export GLIBC_TUNABLES ?= glibc.malloc.hugetlb=1
quickstart: $(STAMP)
	$(RUN) -m experiments.quickstart

# The same with SmolLM2-135M, about 20 minutes on two cores.
quickstart-llm: export GLIBC_TUNABLES ?= glibc.malloc.hugetlb=1
quickstart-llm: $(STAMP)
	$(RUN) -m experiments.quickstart_llm

# Within a minute: lint and types, ten methods, imports, a run of two iterations.
check: lint
	$(PYTEST) $(PARALLEL) -m 'not slow and not devices' $(CHECK_TESTS) \
	  -k 'not test_common.py or $(subst $(space), or ,$(CHECKED:%=[%]))'
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	  $(SMOKE) --set=iterations=2 --workdir="$$dir/run"

test: test-fast test-devices smoke

test-fast: $(STAMP)
	$(PYTEST) $(PARALLEL) -m 'not slow and not devices and not compilers'

test-devices: $(STAMP)
	RL_JAX_TEST_DEVICES=8 $(PYTEST) $(PARALLEL) \
	  -m 'devices and not slow'

# Two iterations, then two more: the second command continues the first.
smoke: $(STAMP)
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && set -e && \
	for n in 2 4; do \
	  echo "smoke run to iteration $$n" && \
	  $(SMOKE) --set=iterations=$$n --workdir="$$dir/run"; \
	done && \
	$(BIN)/python -m experiments.plot --workdir="$$dir/run" \
	  --out="$$dir/curves.png" && echo 'smoke run passed'

test-all: test-fast test-devices smoke test-processes
	$(PYTEST) -n $(WORKERS) -m 'slow and not devices and not compilers' \
	  --ignore=tests/runtime/test_processes.py
	RL_JAX_TEST_DEVICES=8 $(PYTEST) $(PARALLEL) \
	  -m 'devices and slow'

# Two real processes against one, killed, stuck and stopped processes.
test-processes: $(STAMP)
	$(PYTEST) tests/runtime/test_processes.py

# Kills a run at 45 listed points, also with other ways of sampling, a run of
# episodes at 74, one whose keys move to the host at 4, one that starts an update
# early at 34, then another every second for two minutes, and compares each with a
# whole one.
test-faults: $(STAMP)
	$(RUN) tests/tools/kill_points.py
	$(RUN) tests/tools/kill_points.py --rollout=parts,staleness,previous
	$(RUN) tests/tools/kill_points.py --rollout=draft_model
	$(RUN) tests/tools/kill_points.py --rollout=episodes
	$(RUN) tests/tools/kill_points.py --rollout=episodes,host --kinds=copies
	$(RUN) tests/tools/kill_points.py --rollout=episodes,ahead --kinds=turns
	$(RUN) tests/tools/kill_resume.py --seconds=120

# 2,000 iterations of a bandit: memory, time and compilations must stay flat.
test-soak: $(STAMP)
	$(RUN) tests/tools/soak.py --iterations=2000

# Tries to escape from the sandbox of generated code, to be right by attacks on
# scorers, to void a row by its turns, and to change a run by the order of answers;
# prints what is blocked.
test-attacks: $(STAMP)
	$(RUN) tests/tools/attacks.py
	$(RUN) tests/tools/attack_scorers.py
	$(RUN) tests/tools/attack_turns.py
	$(RUN) tests/tools/attack_orders.py
	$(RUN) tests/tools/attack_orders.py --game

# Changes every constant and operator of every method, one at a time: its goldens
# must fail. Continues what was interrupted.
test-mutations: $(STAMP)
	$(TEST_ENV) $(QUICK_COMPILER) $(RUN) tests/tools/mutate.py \
	  --out=runs/mutations
	$(RUN) tests/tools/mutate.py --out=runs/mutations --report

# The compilers of TPU and GPU, beside the plain environment: they look for their
# devices at every start of JAX. For `python -m experiments.plan --target=...`.
plan-environment: .venv-aot/installed

.venv-aot/installed: requirements.txt constraints.txt pyproject.toml
	$(PYTHON) -m venv .venv-aot
	.venv-aot/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt --editable '.[$(EXTRAS),aot-tpu]'
	.venv-aot/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints.txt --no-deps $(AOT_GPU)
	@touch $@

# Programs of every method, compiled for TPU and GPU on this machine.
test-compilers: .venv-aot/installed
	JAX_PLATFORMS=cpu .venv-aot/bin/python -m pytest -n $(WORKERS) -m compilers \
	  tests/compilers

# The documentation site, docs/_build/html/index.html; a warning is an error.
docs: $(STAMP)
	JAX_PLATFORMS=cpu $(BIN)/python -m sphinx -W --keep-going -q -b html docs \
	  docs/_build/html

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyrefly check --output-format=min-text --summary=none

# The tree of folders in docs/layout.md and the table of methods, from docstrings.
readme: $(STAMP)
	$(RUN) -m experiments.list_methods --markdown
	PYTHONPATH=. $(RUN) tests/test_readme.py

# The __init__.py of the folders of pieces, then the format of all files.
format: $(STAMP)
	PYTHONPATH=. $(RUN) tests/test_faces.py
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .jax_cache .pytest_cache .ruff_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
