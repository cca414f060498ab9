# Everything a person or CI does with this tree. `make help` lists it.
#
# Environments, each holding one build of the same sources, brought up to date before use:
#   .venv       what `make run` starts: compiled where a C compiler is found, in half of the time that .venv-test takes
#   .venv-test  the suite's compiled build
#   .venv-dev   the suite's interpreted build (straight from the tree), ruff and mypy
#   .venv-asan  compiled with address and undefined-behaviour checks
#   .venv-fuzz  interpreted, with atheris
#   .venv-pipeline  as .venv, with the plugins for telemetry and Spark

SHELL := /bin/sh
# The suite starts hundreds of routers: without cached bytecode each would compile every module again.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := help
.PHONY: help run demo-network test test-all test-quick test-compiled test-interpreted test-pythons test-oldest lint format coverage \
        soak bench bench-telemetry bench-tls bench-attacks bench-pipeline costs simulate-large dispatch-suite fuzz fuzz-atheris hoard sanitize model docs figures clean coverage-floor env fe2o3 env-test env-dev env-pipeline demo-pipeline spark env-asan env-fuzz interop ldap prometheus brokers jms azure

# Passed on: `make run ARGS="--config my.toml"`, `make test PYTEST_ARGS="-k credit"`.
ARGS ?=
PYTEST_ARGS ?=
# More than the two processors that CI has: tests that start processes mostly wait.
JOBS ?= 4
SLOWEST = --durations=30 --durations-min=1
# Random examples: always the same on one build, and on the other one a quarter as many that are new with each commit. The
# head of a report says how to repeat them. SEED=N chooses others.
SEED ?= $(eval SEED := $$(shell printf %d 0x$$$$(git rev-parse --short=8 HEAD 2>/dev/null || echo 0)))$(SEED)
SAME_EXAMPLES = HYPOTHESIS_PROFILE=repeatable .venv-test/bin/pytest --hypothesis-seed=0
NEW_EXAMPLES = HYPOTHESIS_PROFILE=new .venv-dev/bin/pytest --hypothesis-seed=$(SEED)
PYTHONS ?= 3.11 3.12 3.13
FUZZ_TESTS ?= $(wildcard tests/amqp tests/engine tests/core tests/fuzz tests/properties)
SECONDS ?= 60
DISPATCH ?=
FILES ?=

# Looked up only when a recipe needs it, and only once.
PYTHON ?= $(eval PYTHON := $$(shell sh deploy/build/find-python.sh))$(PYTHON)
ENVIRONMENT = $(PYTHON) deploy/build/environment.py

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | sed 's/:.*## /\t/' | expand -t 20

run: env ## build the router and start it on its built-in default; ARGS are passed on
	@.venv/bin/trioute run $(ARGS)

demo-network: env ## three routers, clients on each, and a router that dies: half a minute to watch; ARGS are passed on
	@PYTHONPATH=deploy/demo .venv/bin/python -P deploy/demo/network.py $(ARGS)

demo-pipeline: env-pipeline ## three routers, traffic, a fault, and Spark's report of it; ARGS are passed on
	@PYTHONPATH=deploy/demo .venv-pipeline/bin/python -P deploy/demo/pipeline.py $(ARGS)

env-pipeline: spark
	@$(ENVIRONMENT) .venv-pipeline --build quick --plugin router_telemetry --plugin router_spark

env: ## only build the router, into .venv
	@$(ENVIRONMENT) .venv --build quick

env-test:
	@$(ENVIRONMENT) .venv-test --build compiled --extra test

env-dev:
	@$(ENVIRONMENT) .venv-dev --build editable --extra dev

env-asan:
	@$(ENVIRONMENT) .venv-asan --build sanitized --extra test

env-fuzz:
	@$(ENVIRONMENT) .venv-fuzz --build editable --extra fuzz

# The peers written in JavaScript, Java and Go that tests talk to, a browser, a directory, and Cyrus SASL.
interop: tests/interop/node_modules/.package-lock.json jms azure .peers/go-amqp ldap
	@sh deploy/build/require.sh chromium=chromium saslpasswd2=sasl2-bin

# It builds for minutes, so the suite does without. Start a router first.
FE2O3_URL ?= amqp://127.0.0.1:5672
fe2o3: ## what messages take that a client in Rust (fe2o3-amqp) sends through the router at FE2O3_URL
	@command -v cargo >/dev/null || { echo "not installed: cargo"; exit 2; }
	@cd tests/interop/fe2o3 && nice cargo build --release --locked
	@for load in "200 100" "200 100 1" "200 100000" "1 1000000" "1 5000000" "1 20000000" "1 50000000"; do \
	    echo "$$load:"; tests/interop/fe2o3/target/release/fe2o3-peer $(FE2O3_URL) $$load; done

# Qpid JMS and all that it needs.
jms:
	@sh deploy/build/jars.sh .jms tests/interop/jms/pom.xml "Qpid JMS"

# The Java SDKs of Azure and all that they need.
azure:
	@sh deploy/build/jars.sh .azure tests/interop/azure_java/pom.xml "Azure's SDKs for Java"

# The LDAP server that router_auth_ldap is tried with.
ldap:
	@sh deploy/build/require.sh slapd=slapd

.peers/go-amqp: tests/interop/go/main.go tests/interop/go/go.mod tests/interop/go/go.sum
	@sh deploy/build/require.sh go=golang-go
	@if command -v go >/dev/null; then cd tests/interop/go && go build -o ../../../$@ .; fi

tests/interop/node_modules/.package-lock.json: tests/interop/package.json tests/interop/package-lock.json
	@sh deploy/build/require.sh node=nodejs npm=npm openssl=openssl
	@if command -v npm >/dev/null; then \
	    cd tests/interop && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error; fi

# Spark runs on Java.
spark:
	@sh deploy/build/require.sh java=openjdk-17-jre-headless

# The Prometheus that the alerts and the dashboard are tried with.
prometheus:
	@sh deploy/build/prometheus.sh

# The brokers that the router is put before.
brokers:
	@sh deploy/build/brokers.sh

# Both builds at once: tests that start processes mostly wait. The interpreted one is tested while the other is compiled.
# Each build has its say, whatever became of the other.
test: env-dev interop prometheus brokers spark ## the suite on the compiled build, and what may differ on the interpreted one
	@log=$$(mktemp); status=0; \
	echo "the interpreted build is tested at the same time; its report comes last, and is in $$log until then"; \
	$(MAKE) --no-print-directory test-interpreted JOBS=2 >$$log 2>&1 & pid=$$!; \
	trap 'kill $$pid; rm -f $$log; exit 130' INT TERM; \
	$(MAKE) --no-print-directory test-compiled || status=1; \
	wait $$pid || status=1; cat $$log; rm -f $$log; exit $$status

test-all: ## every test on every build, one build after the other
	@status=0; \
	$(MAKE) --no-print-directory test-compiled || status=1; \
	$(MAKE) --no-print-directory test-interpreted INTERPRETED="not spark and not spark_process" || status=1; \
	exit $$status

# `make test-quick PACKAGE=core/links`, or PACKAGE="core/links config"; without a package all that starts no process.
PACKAGE ?=
test-quick: env-dev ## the tests of one PACKAGE or several, and the rules: less than a minute
	@TRIOUTE_EXPECT_BUILD=interpreted .venv-dev/bin/pytest -n 2 -q -m "not process and not spark and not spark_process and not slow" \
	    $(if $(PACKAGE),$(addprefix tests/,$(PACKAGE)) tests/rules) $(PYTEST_ARGS)

# Those with Spark share a session in each of two processes, unless they start one themselves. Where PYTEST_ARGS leave nothing to run, pytest ends with 5.
test-compiled: env-test interop prometheus brokers spark ## the suite on the compiled build only
	@status=0; export TRIOUTE_REQUIRE_INTEROP=1 TRIOUTE_EXPECT_BUILD=compiled; \
	$(SAME_EXAMPLES) -n 2 --dist loadfile $(SLOWEST) -m spark $(or $(PYTEST_ARGS),tests/plugins) || test $$? = 5 || status=1; \
	$(SAME_EXAMPLES) -n $(JOBS) $(SLOWEST) -m "not spark" $(PYTEST_ARGS) || test $$? = 5 || status=1; \
	exit $$status

# The benchmark's own tests, those of Spark and the rules are the same on either build, and long: they run once, above.
# Of those that start processes, it runs the ones that are marked `both_builds`.
INTERPRETED ?= not spark and not spark_process and (not process or both_builds)
test-interpreted: env-dev interop prometheus brokers ## the suite on the interpreted build only
	@status=0; export TRIOUTE_REQUIRE_INTEROP=1; \
	$(if $(PYTEST_ARGS),,$(MAKE) --no-print-directory coverage-floor || status=1;) \
	TRIOUTE_EXPECT_BUILD=interpreted $(NEW_EXAMPLES) -n $(JOBS) $(SLOWEST) --ignore=tests/bench --ignore=tests/rules \
	    $(if $(PYTEST_ARGS),,$(addprefix --ignore=tests/,$(PURE))) -m "$(INTERPRETED)" $(PYTEST_ARGS) || test $$? = 5 || status=1; \
	exit $$status

# Packages without input and output, whose own tests run nearly all of them, and the part of them in percent.
PURE = amqp engine
FLOOR_amqp = 98
FLOOR_engine = 95
coverage-floor: env-dev ## the tests of the packages that do no input and output, with a floor of what they have to cover
	@.venv-dev/bin/coverage erase
	@TRIOUTE_EXPECT_BUILD=interpreted HYPOTHESIS_PROFILE=new .venv-dev/bin/coverage run --source=router.amqp,router.engine \
	    -m pytest --hypothesis-seed=$(SEED) -n $(JOBS) $(SLOWEST) $(addprefix tests/,$(PURE))
	@.venv-dev/bin/coverage combine --quiet
	@status=0; $(foreach each,$(PURE),.venv-dev/bin/coverage report --include='router/$(each)/*' --fail-under=$(FLOOR_$(each)) || status=1;) exit $$status

test-pythons: interop prometheus brokers ## the suite, compiled, on every Python in PYTHONS that this machine has
	@status=0; for version in $(PYTHONS); do \
	    python=$$(sh deploy/build/find-python.sh $$version) || continue; \
	    echo "== Python $$version =="; \
	    $$python deploy/build/environment.py .venv-test-$$version --build compiled --extra test && \
	    TRIOUTE_REQUIRE_INTEROP=1 TRIOUTE_EXPECT_BUILD=compiled .venv-test-$$version/bin/pytest -n $(JOBS) $(PYTEST_ARGS) \
	        || status=1; \
	done; exit $$status

test-oldest: interop prometheus brokers ## the suite, compiled, with the oldest dependencies allowed
	@$(ENVIRONMENT) .venv-test-oldest --build compiled --extra test --oldest
	@TRIOUTE_REQUIRE_INTEROP=1 TRIOUTE_EXPECT_BUILD=compiled .venv-test-oldest/bin/pytest -n $(JOBS) $(PYTEST_ARGS)

lint: env-dev ## ruff, its formatter's check, and mypy
	@status=0; \
	.venv-dev/bin/ruff check . || status=1; \
	.venv-dev/bin/ruff format --check . || status=1; \
	.venv-dev/bin/mypy || status=1; \
	exit $$status

format: env-dev ## let ruff lay out the code and mend what it safely can
	@.venv-dev/bin/ruff check --fix .
	@.venv-dev/bin/ruff format .

coverage: env-dev interop prometheus brokers ## which lines the suite runs (interpreted build)
	@.venv-dev/bin/coverage erase
	@TRIOUTE_EXPECT_BUILD=interpreted .venv-dev/bin/coverage run -m pytest $(PYTEST_ARGS)
	@.venv-dev/bin/coverage combine --quiet
	@.venv-dev/bin/coverage report

bench: env-test env-dev ## what forwarding costs, on both builds; ARGS are passed on
	@.venv-test/bin/python tests/bench/run.py \
	    --trioute compiled=.venv-test/bin --trioute interpreted=.venv-dev/bin $(ARGS)

bench-telemetry: env-test ## what exporting telemetry costs a router; ARGS are passed on
	@.venv-test/bin/python -P tests/bench/telemetry.py $(ARGS)

bench-tls: env-test ## what TLS costs, beside a relay with TLS; ARGS are passed on
	@.venv-test/bin/python -P tests/bench/encrypted.py --trioute compiled=.venv-test/bin $(ARGS)

bench-attacks: env-test ## how attackers delay a client's messages; ARGS are passed on
	@.venv-test/bin/python -P tests/bench/attacks.py --trioute compiled=.venv-test/bin $(ARGS)

bench-pipeline: env-test spark ## what the data pipeline manages, and whether its answers are right; ARGS are passed on
	@.venv-test/bin/python -P tests/bench/pipeline/__main__.py $(ARGS)

costs: env-test ## what rare operations cost, and their longest turn, up to 100,000 of everything; ARGS are passed on
	@.venv-test/bin/python -P tests/bench/costs/__main__.py $(ARGS)

# It takes long: routers tell each other some millions of things.
simulate-large: env-test ## simulate a network of a thousand routers, on the compiled build; ARGS are passed on
	@.venv-test/bin/trioute simulate deploy/simulations/thousand.toml $(ARGS)

figures: ## sizes, docstrings, comments, Any and import cycles of the code
	@python3 docs/figures.py

# Of a working copy that is somewhere else; never a part of CI.
dispatch-suite: ## Dispatch's own system tests, from the checkout DISPATCH (FILES=...), with this router
	@test -n "$(DISPATCH)" || { echo "say where Dispatch 1.19 is: make dispatch-suite DISPATCH=path/to/checkout"; exit 2; }
	@$(MAKE) --no-print-directory env-test
	@.venv-test/bin/python tests/dispatch_suite/run.py "$(DISPATCH)" $(FILES) $(ARGS)

# Python itself is not built with the sanitizers, so their run-time libraries go in first. The leak check
# would only report Python's own arenas; PYTHONMALLOC=malloc lets every allocation be watched. All of it takes
# ten times as long and more, so a test may, too.
ASAN = ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
       PYTHONMALLOC=malloc TRIOUTE_EXPECT_BUILD=compiled \
       LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)"

hoard: env-asan ## random hostile peers on the sanitizer build, for SECONDS
	@$(ASAN) .venv-asan/bin/python -P tests/fuzz/hoard.py --seconds $(SECONDS) $(ARGS)

sanitize: env-asan ## the data plane's tests under the address and undefined-behaviour sanitizers
	@$(ASAN) .venv-asan/bin/pytest -p no:cacheprovider --timeout 900 $(FUZZ_TESTS) $(PYTEST_ARGS)

fuzz: env-asan ## fuzz under the sanitizers, each target for SECONDS; ARGS are passed on
	@$(ASAN) .venv-asan/bin/python tests/fuzz/run.py --seconds $(SECONDS) $(ARGS)

fuzz-atheris: env-fuzz ## fuzz the interpreted build where coverage leads, each target for SECONDS
	@TRIOUTE_EXPECT_BUILD=interpreted .venv-fuzz/bin/python tests/fuzz/run.py --atheris --seconds $(SECONDS) $(ARGS)

soak: env-test ## the random tests, twenty times as many examples; what fails is kept in tests/seeds, and every run begins with it
	@TRIOUTE_EXPECT_BUILD=compiled HYPOTHESIS_PROFILE=soak .venv-test/bin/pytest -n $(JOBS) --timeout 3600 \
	    -m "hypothesis and not process and not spark" $(PYTEST_ARGS)

model: env-test ## let the model of the router play for long, on the compiled build
	@HYPOTHESIS_PROFILE=long TRIOUTE_EXPECT_BUILD=compiled .venv-test/bin/pytest --timeout 0 tests/core/test_model.py $(PYTEST_ARGS)

sbom: ## a software bill of materials of a router and its plugins (CycloneDX), in dist/
	@$(PYTHON) deploy/build/supply_chain.py sbom

audit: ## whether a package that a router needs is known to be vulnerable; ARGS are passed on
	@$(PYTHON) deploy/build/supply_chain.py audit $(ARGS)

docs: env-dev ## write the generated reference pages again
	@.venv-dev/bin/python docs/generate.py

clean: ## remove every environment and cache
	@rm -rf .venv* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage.* \
	    htmlcov tests/interop/node_modules .prometheus .brokers .jms .azure .peers
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
