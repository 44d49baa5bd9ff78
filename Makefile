# Every target sets up what it needs. Only python3, pip and make must be there.

VENV := .venv
BIN := $(VENV)/bin
EXAMPLES_VENV := .venv-examples
EXAMPLES_2_VENV := .venv-examples-openai-2
# Two more than there are cores: many tests wait for a moment.
JOBS := $(shell python3 -c "import os; print((os.cpu_count() or 1) + 2)")
# Who never writes compiled files compiles every test again, in each process of each suite.
export PYTHONDONTWRITEBYTECODE :=
# CACHE names where pytest keeps what failed, for suites that run beside each other.
KEPT := $(if $(CACHE),-o cache_dir=$(CACHE))

.PHONY: demo fleet-demo test test-slow test-fleet examples hosts check mutants package bench bench-peers real-skills soak fuzz storm powercut proof coverage test-versions docs screenshots clean system

demo: $(VENV)/.core-ready  ## the main job on the example skills
	@$(BIN)/skillkit demo

fleet-demo: $(VENV)/.dev-ready system  ## many machines on one: an approval on the page, a killed worker, the record; ASK=1 lets you answer
	@$(BIN)/python tools/fleet_demo.py $(if $(ASK),--ask)

test: $(VENV)/.dev-ready system  ## the tests, but for those that take long
	@$(BIN)/python -m compileall -q src  # as an installer leaves it: whatever tests start begins sooner
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(KEPT) -m "not slow and not hosts"

test-slow: $(VENV)/.dev-ready system  ## those that take long: in a real browser, along every page of the docs
	@$(BIN)/python -m compileall -q src
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(KEPT) -m "slow and not hosts" --ignore=tests/fleet --ignore=tests/e2e/test_fleet_demo.py

test-fleet: $(VENV)/.dev-ready system  ## runs on workers, with real PostgreSQL, Redis and RabbitMQ; most of it is waiting
	$(BIN)/python -m pytest -n 6 $(KEPT) --dist loadfile --no-loadscope-reorder -m slow tests/fleet tests/e2e/test_fleet_demo.py

examples: $(EXAMPLES_VENV)/.examples-ready $(EXAMPLES_2_VENV)/.examples-openai-2-ready  ## the programs for other frameworks, in environments of their own
	EXAMPLES=all $(EXAMPLES_VENV)/bin/python -m pytest -n auto tests/e2e/test_framework_programs.py tests/e2e/test_examples.py tests/integrations/langchain/test_deepagents.py
	EXAMPLES=openai-2 $(EXAMPLES_2_VENV)/bin/python -m pytest -n auto tests/e2e/test_framework_programs.py

hosts: $(VENV)/.dev-ready system  ## real agent hosts with a scripted model; HOSTS=all for those that fewer people use too, ONLY="codex" for some
	tools/hosts $(ONLY)
	@# Once more for what failed: these are other people's programs in a terminal, and a busy machine is slow to draw.
	$(BIN)/python -m pytest -n 2 --dist loadscope -m hosts tests/hosts || \
		$(BIN)/python -m pytest -n 1 --dist loadscope -m hosts tests/hosts --last-failed --last-failed-no-failures none
	@echo "What each host and its model saw: hosts-transcripts/"

check: $(VENV)/.dev-ready  ## style, types, architecture
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

mutants: $(VENV)/.dev-ready  ## whether the tests notice faults in what decides; MODULES names others
	$(BIN)/python tools/mutants $(MODULES)

package: $(VENV)/.dev-ready  ## the wheel, proven in an empty environment
	tools/package $(BIN)/python

bench: $(VENV)/.dev-ready system  ## measures; writes bench/results.md
	$(BIN)/python -m bench

bench-peers: $(VENV)/.dev-ready system  ## installs other runtimes of skills, measures all; writes bench/peers/results.md
	$(BIN)/python -m bench.peers

real-skills: $(VENV)/.dev-ready system  ## what real skills need and how many work; SKILLS names their folders, writes bench/real-skills.md
	$(BIN)/python -m bench.real_skills $(or $(SKILLS),examples/skills)

docs: $(VENV)/.docs-ready  ## the documentation, into site/; every link is checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --clean
	@echo "site/index.html"

soak: $(VENV)/.dev-ready system  ## mixed load for an hour, then a look at what is left; SOAK_SECONDS=N
	$(BIN)/python -m bench.soak

fuzz: $(VENV)/.dev-ready  ## inputs that nobody wrote, through every door; FUZZ_N=1000000, FUZZ_CORPUS=FOLDER adds real files
	$(BIN)/python -m bench.proof.fuzz

storm: $(VENV)/.dev-ready system  ## hostile runs, many at once, in each kind of walls; STORM_N=10000
	$(BIN)/python -m bench.proof.storm

powercut: $(VENV)/.dev-ready system  ## writers killed at random moments, SQLite and PostgreSQL; POWERCUT_N=1000
	$(BIN)/python -m bench.proof.powercut

proof: fuzz storm powercut soak  ## all four at full size; each writes its line into bench/proof.md

coverage: $(VENV)/.dev-ready system  ## branches of the core that its tests take; fails under 95 %
	$(BIN)/python -m pytest -n auto --cov --cov-report=term tests/core tests/properties tests/attacks \
		tests/integrations/inline/test_commands_programs.py tests/integrations/test_functions.py

test-versions: system  ## the core's tests on every Python that is here
	tools/test-versions

screenshots: $(VENV)/.dev-ready system  ## docs/images: every view of the approval page; build/question: the question in every situation
	$(BIN)/python tools/screenshots
	PYTHONPATH=tests $(BIN)/python tools/screenshots/question.py

system:
	@tools/system-packages

$(VENV)/.core-ready: pyproject.toml constraints.txt tools/setup
	@tools/setup $(VENV) core

$(VENV)/.dev-ready: pyproject.toml constraints.txt requirements-dev.txt tools/setup
	@tools/setup $(VENV) dev

$(VENV)/.docs-ready: pyproject.toml constraints.txt requirements-docs.txt tools/setup
	@tools/setup $(VENV) docs

$(EXAMPLES_VENV)/.examples-ready: pyproject.toml requirements-examples.txt tools/setup
	@tools/setup $(EXAMPLES_VENV) examples

$(EXAMPLES_2_VENV)/.examples-openai-2-ready: pyproject.toml requirements-examples-openai-2.txt tools/setup
	@tools/setup $(EXAMPLES_2_VENV) examples-openai-2

clean:
	rm -rf $(VENV) $(EXAMPLES_VENV) $(EXAMPLES_2_VENV) .versions .tools hosts-transcripts build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
