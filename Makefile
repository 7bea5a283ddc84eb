# Everything that is done with this repository, one target each. Needs make and Python >= 3.11 with venv; pip fetches the rest, in locked versions.
# `make check` is what continuous integration runs.

VENV   := .venv
BIN    := $(VENV)/bin
# The first interpreter that is recent enough and can make virtual environments; override with `make PYTHON=...`. Where root makes one, others should be able
# to run the commands, too, so an interpreter in a home that only root can enter comes last.
SUITS  := import ensurepip, os, pathlib, sys, venv; \
	public = os.getuid() or all(each.stat().st_mode & 1 for each in pathlib.Path(sys.executable).resolve().parents); \
	sys.exit(sys.version_info < (3, 11) or not (public or "any" in sys.argv))
PYTHON ?= $(shell for of in public any; do for python in python3 python3.13 python3.12 python3.11 /usr/bin/python3; do \
	$$python -c '$(SUITS)' $$of 2>/dev/null && { echo $$python; break 2; }; done; done)

# What `make demo` replays; `answers` are the start times that the schedule must have.
TRACE   ?= examples/year.swf.gz
NODES   ?= $(if $(filter examples/year.swf.gz,$(TRACE)),1024)
ANSWERS ?= $(if $(filter examples/year.swf.gz,$(TRACE)),examples/year-easy.csv.gz)
OUT     ?= runs/demo

PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: all demo pictures test check conformance differential differential-schedules differential-histories fidelity sites clients format wire options states man bench experiments sweeps tuesday profile fuzz fuzz-guided fuzz-changes fuzz-schedules chaos lock clean compose-image compose-test
.DELETE_ON_ERROR:

all: $(VENV)/.prepared-dev

# Their bytecode is made at once: where PYTHONDONTWRITEBYTECODE is set, as in many containers, every command would else compile all that it imports.
ROOMS := accounting api auth clock commands controller documents experiments model noded protocol tool
# Two stamps: who only wants the demo does not wait for the developer's tools.
$(VENV)/.prepared: requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Understudy needs Python 3.11 or later, with its venv module; found none. Name one: make PYTHON=/path/to/python3"; exit 1; }
	@echo "Preparing $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) --require-hashes -r requirements.lock
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m understudy.tool.cluster.starters
	@$(BIN)/python -m compileall -q -j0 $(ROOMS) src/understudy/__init__.py
	@touch $@

$(VENV)/.prepared-dev: $(VENV)/.prepared requirements-dev.lock
	@echo "Adding the developer's tools to $(VENV) ..."
	@$(PIP_INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@

demo: $(VENV)/.prepared
	$(BIN)/understudy replay $(TRACE) $(if $(NODES),--nodes $(NODES)) --cpus 1 --scheduler easy --out $(OUT) $(if $(ANSWERS),--answers $(ANSWERS))

# Most of what starts processes waits: one tester more than there are processors, six at most. `make test TESTERS=0` has one process run all.
TESTERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN); [ $$n -le 5 ] || n=5; expr $$n + 1)
PYTEST := $(BIN)/python -m pytest -n $(TESTERS) --dist loadfile --no-loadscope-reorder

test: $(VENV)/.prepared-dev
	$(PYTEST)

check: $(VENV)/.prepared-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST)

format: $(VENV)/.prepared-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

wire: $(VENV)/.prepared
	$(BIN)/python -m understudy.protocol.make_wire_table

# docs/options.md, after a change in what a command takes.
options: $(VENV)/.prepared
	$(BIN)/python -m understudy.tool.manual.option_page

# docs/states.md, after a change of a table of states.
states: $(VENV)/.prepared
	$(BIN)/python -m understudy.tool.manual.state_page

# Manual pages for man(1), to be copied where it looks: `man -M build/man squeue`.
man: $(VENV)/.prepared
	$(BIN)/python -m understudy.tool.manual.man_pages build/man

# A million frames and messages, a hundred thousand files and command lines, mutated at random; an hour or so. `make fuzz FRAMES=3000 FILES=800` is quick.
FRAMES ?= 1000000
FILES ?= 100000
fuzz: $(VENV)/.prepared-dev
	$(BIN)/python tests/fuzz/strangers.py --first $(FIRST) --frames $(FRAMES) --files $(FILES)

# One kind of them, led by which code it reaches: `make fuzz-guided KIND=conf SECONDS=600`.
KIND ?= conf
SECONDS ?= 60
fuzz-guided: $(VENV)/.prepared-dev
	$(BIN)/python tests/fuzz/guided.py --kind $(KIND) --seconds $(SECONDS)

# Random configurations with 60 jobs each through whole clusters; `make fuzz-schedules SEED=17` shows one again, TWICE=1 runs each with other node daemons, too.
N ?= 500
FIRST ?= 1
fuzz-schedules: $(VENV)/.prepared-dev
	$(BIN)/python tests/simulation/fuzz.py $(if $(SEED),--seed $(SEED) --shrink,--first $(FIRST) --count $(N)) $(if $(TWICE),--twice)

# Whole clusters under faults, each seed with a configuration, jobs and faults of its own; `make chaos SEED=17` shows one again, and makes it smaller.
SEEDS ?= 500
chaos: $(VENV)/.prepared-dev
	$(BIN)/python tests/simulation/chaos.py $(if $(SEED),--seed $(SEED) --shrink,--first $(FIRST) --count $(SEEDS)) $(if $(TWICE),--twice)

# Whole clusters whose slurm.conf, nodes and partitions change under running jobs.
fuzz-changes: $(VENV)/.prepared-dev
	$(BIN)/python tests/simulation/changes.py --first $(FIRST) --count $(N)

# Cases by name (`make bench CASES="kth-easy-one up-16384"`; `make bench LIST=1` lists them), each TIMES times; with AGAINST=COMMIT in turns with that commit.
# PAGE=docs/performance.md writes the table there.
TIMES = 3
bench: $(VENV)/.prepared-dev
	$(BIN)/python -m benchmarks $(CASES) --times $(TIMES) $(if $(AGAINST),--against $(AGAINST)) $(if $(PAGE),--page $(PAGE)) $(if $(LIST),--list)

# All that examples/experiments has, in short forms (minutes). With FULL=1 the comparisons whole, and their pages of docs/experiments (an hour and more);
# the sweeps and the Tuesday whole, as long again, are `make sweeps FULL=1` and `make tuesday FULL=1`.
# Policies side by side on the same workloads, and beside published numbers:
# `make experiments COMPARISONS=kth-parts` runs some; TRACES is where the traces are, WORKERS how many replays run at a time.
TRACES ?= ../shared/traces
COMPARISONS ?= $(basename $(notdir $(wildcard examples/experiments/*.toml)))
experiments: $(VENV)/.prepared-dev
	$(BIN)/understudy compare $(COMPARISONS:%=examples/experiments/%.toml) --traces $(TRACES) \
		$(if $(WORKERS),--workers $(WORKERS)) $(if $(FULL),--full --pages docs/experiments)
	$(BIN)/python examples/experiments/fronts.py --traces $(TRACES) $(if $(FULL),--full --page docs/experiments/fronts.md)
	$(if $(FULL)$(filter command,$(origin COMPARISONS)),,$(MAKE) --no-print-directory sweeps tuesday)

# The pictures of docs/reports.md: of its own commands, in a browser.
pictures: $(VENV)/.prepared-dev
	$(BIN)/understudy replay examples/year.swf.gz --nodes 1024 --cpus 1 --limit 3000 --scheduler backfill --one-process --out runs/backfill
	$(BIN)/understudy replay examples/year.swf.gz --nodes 1024 --cpus 1 --limit 3000 --scheduler fcfs --one-process --out runs/fcfs
	$(BIN)/understudy report runs/backfill runs/fcfs --out runs/both.html
	$(BIN)/python tests/harness/report_pictures.py runs/backfill/report.html runs/both.html docs/reports

# What is varied, each sweep in its short form, or with FULL=1 whole (an hour and more): below runs/sweeps. `make sweeps SWEEPS=simulator-speed` runs some.
SWEEPS ?= $(basename $(notdir $(wildcard examples/experiments/sweeps/*.toml)))
sweeps: $(VENV)/.prepared-dev
	for name in $(SWEEPS); do $(BIN)/understudy sweep examples/experiments/sweeps/$$name.toml --out runs/sweeps/$$name \
		$(if $(FULL),,--short) $(if $(WORKERS),--workers $(WORKERS)) || exit 1; done

# A year on 16,384 nodes, and three futures of a Tuesday in it: its eight days on a sixteenth of the machine, or with FULL=1 all of it: below runs/tuesday.
tuesday: $(VENV)/.prepared
	$(BIN)/python examples/experiments/tuesday/tuesday.py $(if $(FULL),--form year)

# A flame graph of all processes of a case: `make profile WHAT=kth-easy-many`.
profile: $(VENV)/.prepared-dev
	@test -n "$(WHAT)" || { echo "Which case? make profile WHAT=kth-easy-one; make bench LIST=1 lists them."; exit 1; }
	$(BIN)/python -m benchmarks.flames $(WHAT)

# Command lines recorded from real Slurm, typed at clusters of ours; needs root. `make conformance SCENARIOS="squeue-sort sinfo-env"` runs some.
conformance: $(VENV)/.prepared-dev
	$(BIN)/python tests/conformance/conform run --hook $(CURDIR)/tests/conformance/hook --bin $(CURDIR)/$(BIN) $(SCENARIOS)

# Sequences of commands by seed on real Slurm and on ours, side by side, for SECONDS; goes on where the last run ended. Needs root, and Slurm 22.05 installed.
# `make differential WHAT=--recheck` runs the open causes again, `WHAT="--list open"` prints them.
differential: $(VENV)/.prepared-dev
	PYTHONPATH=tests:tests/harness $(BIN)/python -m differential --seconds $(SECONDS) $(WHAT)

# The same for schedules: workloads by seed, recorded twice on real Slurm in real time, and compared job by job.
# WHAT="--seed 11 --count 6 --jobs 60 --seconds 300 --at-once 3"
differential-schedules: $(VENV)/.prepared-dev
	PYTHONPATH=tests:tests/harness $(BIN)/python -m differential.schedules $(WHAT)

# Histories by seed: run on real Slurm, imported from what sacct tells, replayed; each job that ran must start.
# WHAT="--seed 1 --count 8 --at-once 8"
differential-histories: $(VENV)/.prepared-dev
	PYTHONPATH=tests:tests/harness $(BIN)/python -m differential.histories $(WHAT)

# Scores every workload of ../shared/fidelity beside real Slurm's own spread.
fidelity: $(VENV)/.prepared-dev
	$(BIN)/python tests/fidelity/run.py $(WORKLOADS)

# Replays harmless jobs under generated sites' configurations, and under each real one of ../shared/slurm-confs, in one process and in many.
SITES = 200
sites: $(VENV)/.prepared-dev
	UNDERSTUDY_SITES=$(SITES) $(BIN)/python -m pytest -q tests/simulation/test_site_confs.py

# Third-party software that drives Slurm, at a cluster whose jobs really run. `make clients CLIENTS=submitit,parsl` runs some.
clients: $(VENV)/.prepared-dev
	$(BIN)/python tests/clients/run.py $(if $(CLIENTS),--only $(CLIENTS))

# The image of compose.yaml where nothing can be fetched while it is built. BASE: an image with Python; where there is none, it is made from Debian's packages.
BASE ?= understudy-base
compose-image: $(VENV)/.prepared
	docker image inspect $(BASE) >/dev/null 2>&1 || tests/compose/make_base_image $(BASE)
	tests/compose/make_image $(BIN)/python $(BASE)

compose-test: $(VENV)/.prepared
	tests/compose/run $(BIN)/python $(BASE)

# Writes the newest versions that pyproject.toml allows into the locks. The locks name no registry: pip's own configuration says where to look.
LOCK := build/lock/bin/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --all-build-deps --upgrade \
	--no-header --no-annotate --no-emit-index-url --no-emit-trusted-host --no-emit-find-links

lock:
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet pip-tools
	$(LOCK) --output-file requirements.lock pyproject.toml
	$(LOCK) --extra postgresql --constraint requirements.lock --output-file requirements-postgresql.lock pyproject.toml
	$(LOCK) --extra dev --constraint requirements-postgresql.lock --output-file requirements-dev.lock pyproject.toml

clean:
	rm -rf $(VENV) build dist runs .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache src/*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
