# One command per task, the same here and in CI.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
PEERS := .venv-peers
PEERS_STAMP := $(PEERS)/.ready
YEPCORD := .venv-yepcord
YEPCORD_STAMP := $(YEPCORD)/.ready
PACKAGES := core plugins/telegram plugins/openai_runtime plugins/http plugins/memory plugins/trace plugins/discord plugins/slack plugins/files plugins/claude_runtime
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: setup peers run test check proof crash soak bench docs lock format clean

setup: $(STAMP)

$(STAMP): requirements/dev.txt $(PACKAGES:%=%/pyproject.toml)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation $(PACKAGES:%=-e %)
	touch $@

peers: $(PEERS_STAMP) $(YEPCORD_STAMP)

# The test peers: programs that we did not write, in an environment that the product never sees.
$(PEERS_STAMP): requirements/peers.txt tests/peers/package-lock.json
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --require-hashes -r requirements/peers.txt
	$(PEERS)/bin/python tests/peers/install_node_peers.py
	touch $@

# It makes the stamp itself: where the server cannot be built there is none, and it is tried again.
$(YEPCORD_STAMP): requirements/yepcord.txt tests/peers/install_yepcord.py
	$(PYTHON) tests/peers/install_yepcord.py

run: setup
	$(BIN)/dragoman chat

# Two tests at a time, then one by one those that bear no neighbour.
TWO_AT_A_TIME := -n 2 --dist worksteal
test: setup peers
	$(BIN)/python -m pytest -m "not proof and not alone" $(TWO_AT_A_TIME) --durations 15
	$(BIN)/python -m pytest -m "not proof and alone" --durations 15

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

proof: setup peers
	$(BIN)/python -m pytest -m "proof and not alone" $(TWO_AT_A_TIME) --timeout 1200 --durations 15
	$(BIN)/python -m pytest -m "proof and alone" --timeout 1200 --durations 15

crash: setup peers
	PYTHONPATH=tests $(BIN)/python -m crash

soak: setup
	PYTHONPATH=tests $(BIN)/python -m soak

docs: setup
	$(BIN)/python docs/generate.py
	PYTHONPATH=tests $(BIN)/python docs/transcripts.py
	PYTHONPATH=tests $(BIN)/python docs/access.py

bench: setup
	$(BIN)/python benchmarks/closed_loop.py --clients 32 --messages 40 --store sqlite
	$(BIN)/python benchmarks/closed_loop.py --clients 32 --messages 40 --store memory
	$(BIN)/python benchmarks/split.py
	$(BIN)/python benchmarks/start_up.py
	$(BIN)/python benchmarks/openai_sessions.py
	PYTHONPATH=tests $(BIN)/python benchmarks/claude_programs.py

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Needs uv on the PATH. The files name no index: the installer's own configuration does.
UV_LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
lock:
	$(UV_LOCK) $(PACKAGES:%=%/pyproject.toml) --group pyproject.toml:dev --no-emit-package dragoman \
	  --no-emit-package dragoman-telegram --no-emit-package dragoman-openai --no-emit-package dragoman-http \
	  --no-emit-package dragoman-memory --no-emit-package dragoman-trace --no-emit-package dragoman-discord --no-emit-package dragoman-slack \
	  --no-emit-package dragoman-files --no-emit-package dragoman-claude \
	  -o requirements/dev.txt
	$(UV_LOCK) --group pyproject.toml:peers -o requirements/peers.txt
	$(UV_LOCK) --group pyproject.toml:yepcord -o requirements/yepcord.txt
	$(UV_LOCK) --group pyproject.toml:build -o requirements/build.txt
	$(UV_LOCK) --resolution lowest-direct core/pyproject.toml -o requirements/oldest.txt

clean:
	rm -rf $(VENV) $(PEERS) $(YEPCORD)
