# Holdfast. `make help` lists the targets.

SHELL       := /bin/bash
GO          ?= go
BIN         := $(CURDIR)/bin
TOOLS       := $(BIN)/tools
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
# The timestamp of the commit, so that the same source gives the same image.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
export CGO_ENABLED ?= 0

PROGRAMS := mvdan.cc/gofumpt@v0.9.2 github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.6.2
# hashicorp/local as a Go module; a file edited behind Terraform's back is real drift.
PROGRAMS += github.com/terraform-providers/terraform-provider-local@v1.4.1-0.20260513075820-3561e410f9fe
PROGRAMS += github.com/hashicorp/terraform-provider-time@v0.14.2
# A provider of our own whose cloud is a folder of files: what somebody edits
# there has changed outside. A separate module, so that nothing else depends on it.
PROGRAMS += internal/testenv/terraform-provider-cloud
# Stands in for the clouds' providers, with their schemas: the engine plans the
# library's modules against it. A separate module, too.
PROGRAMS += internal/testenv/terraform-provider-facts
# Object stores: S3, Google Cloud Storage, Azure Blob Storage.
PROGRAMS += github.com/versity/versitygw/cmd/versitygw@v1.8.0 github.com/fsouza/fake-gcs-server@v1.56.1 npm:azurite@3.35.0:azurite-blob
OPENTOFU := v1.12.6
TERRAGRUNT := v1.1.0

.PHONY: help build test test-kubernetes test-terragrunt test-console test-fast check lint unit e2e soak fuzz bench bench-table picture comments screenshots console-pictures console-lib house demo docs tools needs image clean

help: ## show this
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/holdfast
	$(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $(BIN)/holdfast ./cmd/holdfast

# Missing programs are asked for first, and not after ten minutes of lint.
test: needs lint unit ## what CI runs, test-tofu aside: lint and all tests, with the race detector where there is concurrency

check: test ## the same as test

# With the flags of the tests, linters reuse the packages that tests compile.
lint: export GOFLAGS := $(GOFLAGS) -trimpath
lint: tools ## gofumpt, golangci-lint with go vet and the layers as rules, tidy modules
	@test -z "$$($(TOOLS)/gofumpt -l .)" || { echo "not formatted (run gofumpt -w):"; $(TOOLS)/gofumpt -l .; exit 1; }
	$(GO) mod tidy -diff
	console/lib.sh verify
	$(TOOLS)/golangci-lint run

# Which packages are for the race detector is decided by what starts goroutines in them:
# `go run ./internal/testenv/packages why` prints it. Which start servers is decided by name.
# They are variables of the shell that reads this file.
PACKAGES := $(BIN)/packages.sh
.PHONY: packages
packages:
	@mkdir -p $(BIN) && GO=$(GO) $(GO) run -trimpath ./internal/testenv/packages shell >$(PACKAGES)
# Tests, and the programs that they start, live for a short time: a larger heap saves a
# fifth of their work, the collector's. Tests that measure memory run without GOGC.
unit unit-raced unit-plain e2e test-tofu: export GOGC := 400
# The race detector needs cgo; the binary itself is static. SQLite is C that was
# translated to Go: with the detector in it tests take ten times as long.
# Without Terraform and OpenTofu on PATH, the OpenTofu that `needs` has put into the cache.
ENGINE := GO=$(GO) internal/testenv/with-engine.sh
# Temporary files in memory, if root runs the tests.
TESTS := $(ENGINE) internal/testenv/in-memory.sh
RACE := CGO_ENABLED=1 $(TESTS) $(GO) test -race -gcflags='modernc.org/...=-race=false'
# Builds have no paths of this folder in them, so that every clone can use them. Lint has
# had go vet. Nobody debugs these programs, and a stack trace needs no DWARF.
TESTFLAGS := -trimpath -ldflags="-s -w" -vet=off -timeout 80m
unit: needs tools packages ## all tests, with real engines, Git, Redis: those for the race detector at the same time as the others
	@$(MAKE) --no-print-directory -j2 unit-raced unit-plain

# Tests wait for engines, servers and one another: two halves keep two processors busy.
# One is the packages with goroutines, the other the servers and all others.
.PHONY: unit-raced unit-plain
unit-raced unit-plain: export HOLDFAST_TEST_PROVIDERS = $(TOOLS)
unit-raced:
	. $(PACKAGES) && $(RACE) $(TESTFLAGS) $$raced
	. $(PACKAGES) && $(RACE) $(TESTFLAGS) -run "$$tests" $$mixed
	. $(PACKAGES) && $(TESTS) $(GO) test $(TESTFLAGS) -run "$$apart_tests" $$apart

unit-plain: SEED := $(or $(HOLDFAST_E2E_SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
unit-plain:
	@echo "HOLDFAST_E2E_SEED=$(SEED): with it, faults are chosen again as in this run"
	. $(PACKAGES) && HOLDFAST_E2E_SEED=$(SEED) $(TESTS) $(GO) test $(TESTFLAGS) -p 1 $$servers
	. $(PACKAGES) && $(TESTS) $(GO) test $(TESTFLAGS) -skip "$$tests" $$mixed
	. $(PACKAGES) && $(TESTS) $(GO) test $(TESTFLAGS) $$plain

# Tests that need an engine, and the few that take long, are skipped with -short.
test-fast: packages ## while you work: build, go vet, and all tests that need neither engine, server nor tool
	$(GO) build -trimpath ./...
	$(GO) vet -trimpath ./...
	. $(PACKAGES) && $(GO) test -short $(TESTFLAGS) $$raced $$mixed $$plain

e2e: needs tools ## the end-to-end tests only, without the race detector
	HOLDFAST_TEST_PROVIDERS=$(TOOLS) $(TESTS) $(GO) test -count=1 -timeout 80m ./internal/e2e/...

SOAKTIME ?= 1h
soak: needs tools ## let things fail at random for SOAKTIME (default 1h), with one server and with three, and see that nothing is lost, done twice or stuck
	HOLDFAST_CHAOS=$(SOAKTIME) HOLDFAST_TEST_PROVIDERS=$(TOOLS) $(ENGINE) $(GO) test -count=1 -timeout 24h -run '^(TestChaos|TestReplicasAtRandom)$$' -v ./internal/e2e

# What depends on the engine, with OpenTofu alone on PATH: it is built once from
# its Go module, into the user's cache. The stories are those in which an engine
# decides: plans, applies, failures in the middle, drift, destruction, secrets, its
# sandbox. The others are about the server, and any engine does.
TOFU := GO=$(GO) internal/testenv/only-tofu.sh $(OPENTOFU)
TOFU_STORIES := TestPullRequestIsPlannedAndItsMergeApplied|TestApplyFailsInTheMiddle|TestDriftIsReverted|TestInventory|$\
  TestDestroyOfWhatWasLastApplied|TestEngineThatLeavesItsStateBehind|TestTemplateVersions|TestSecretVariables|$\
  TestEngineIsKilledDuringApply|TestCodeInAPlanStaysInItsSandbox
test-tofu: export HOLDFAST_TEST_PROVIDERS = $(TOOLS)
test-tofu: tools ## what depends on the engine, with OpenTofu only
	$(TOFU) $(GO) test $(TESTFLAGS) ./runner ./runner/plan
	$(TOFU) $(GO) test $(TESTFLAGS) -run '^(TestStartTerraform|TestRealEngine)$$' ./runner/sandbox ./server
	$(TOFU) $(GO) test $(TESTFLAGS) -run '^($(TOFU_STORIES))$$' ./internal/e2e

# In all other tests a program of ours stands in for Terragrunt.
test-terragrunt: export HOLDFAST_TEST_PROVIDERS = $(TOOLS)
test-terragrunt: tools ## units, with Terragrunt itself, which is built from its Go module first
	terragrunt=$$(GO=$(GO) internal/testenv/terragrunt.sh $(TERRAGRUNT)) && \
	  HOLDFAST_TEST_TERRAGRUNT=$$terragrunt $(ENGINE) $(GO) test $(TESTFLAGS) -count=1 -run '^TestUnit' ./runner

# A real API server with its controllers, built once from their Go modules, into the user's
# cache, and etcd. A kubelet needs root: ours, in the tests, does not.
KUBERNETES := v1.33.13
# What installs Holdfast: Helm, and what Docker Compose reads its files with.
DEPLOYING := helm.sh/helm/v3/cmd/helm@v3.19.5 internal/testenv/composeconfig
test-kubernetes: export HOLDFAST_TEST_PROVIDERS = $(TOOLS)
test-kubernetes: export GOGC = 400
test-kubernetes: needs tools packages ## what depends on Kubernetes: runs as Jobs, against a real API server
	GO=$(GO) internal/testenv/kubernetes.sh $(TOOLS) $(KUBERNETES)
	@for tool in $(DEPLOYING); do GO=$(GO) internal/testenv/tool.sh $(TOOLS) $$tool || exit 1; done
	. $(PACKAGES) && CI=true $(ENGINE) $(GO) test $(TESTFLAGS) -count=1 $$kubernetes

# What people see, in Chromium: every page of the console, by keyboard and without script.
test-console: export HOLDFAST_TEST_PROVIDERS = $(TOOLS)
test-console: export GOGC = 400
test-console: tools packages ## what depends on a browser: the pages of the console
	@GO=$(GO) internal/testenv/setup.sh browser
	. $(PACKAGES) && HOLDFAST_TEST_AXE=$$(internal/consoletest/axe.sh $(TOOLS)) $(ENGINE) $(GO) test $(TESTFLAGS) -count=1 $$browsers

# To look at: every page, wide and narrow, light and dark.
SHOTS ?= $(BIN)/screenshots
screenshots: ## take pictures of all pages of the console, in both colours; needs Chromium
	@GO=$(GO) internal/testenv/setup.sh browser
	$(GO) run ./internal/consoletest/shots -out $(SHOTS)

console-pictures: ## take the pictures of docs/console.md; needs Chromium
	@GO=$(GO) internal/testenv/setup.sh browser
	$(GO) run ./internal/consoletest/shots -wide -only fleet,pullrequest,run-failed

console-lib: ## fetch what the console uses of others from npm again; make lint verifies it
	console/lib.sh fetch

# Go's fuzzer now and then reports the end of its own time as a failure, without an
# input that fails: https://go.dev/issue/75804. Only inputs that fail count.
FUZZTIME ?= 1m
fuzz: ## each fuzz target for FUZZTIME (default 1m)
	@set -e; grep -rl --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do \
	  grep -o '^func Fuzz[A-Za-z0-9_]*' $$file | cut -d' ' -f2 | while read -r target; do \
	    echo "fuzz $$(dirname $$file) $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$(dirname $$file) >/tmp/holdfast-fuzz.$$$$ 2>&1 \
	      || { grep -q '^ *context deadline exceeded$$' /tmp/holdfast-fuzz.$$$$ && ! grep -q 'Failing input' /tmp/holdfast-fuzz.$$$$; } \
	      || { cat /tmp/holdfast-fuzz.$$$$; rm -f /tmp/holdfast-fuzz.$$$$; exit 1; }; \
	    rm -f /tmp/holdfast-fuzz.$$$$; \
	  done; \
	done

# What the part "days" runs is compiled before anything is measured.
bench: needs build tools ## measure; writes bench/results.json and the tables of bench/README.md and README.md
	$(GO) test -c -o /dev/null ./reconciler
	HOLDFAST_TEST_PROVIDERS=$(TOOLS) $(ENGINE) $(GO) run ./bench -holdfast $(BIN)/holdfast -out bench/results.json; measured=$$?; \
	  $(MAKE) --no-print-directory bench-table && exit $$measured

# The tables, from the figures that were measured last.
bench-table:
	@set -e; for page in bench/README.md:-markdown README.md:-headlines; do \
	  file=$${page%%:*}; trap 'rm -f $$file.new' EXIT; \
	  { sed '/<!-- bench:begin -->/q' $$file; $(GO) run ./bench $${page#*:} -out bench/results.json; \
	    sed -n '/<!-- bench:end -->/,$$p' $$file; } >$$file.new; mv $$file.new $$file; \
	done

comments: ## draw the comments of docs/comments.md, in both colours; needs Chromium
	@GO=$(GO) internal/testenv/setup.sh browser
	$(GO) run ./internal/picture -comments docs/img/comments

picture: ## draw docs/img/plan-comment.png, the comment that README.md shows; needs Chromium
	$(GO) run ./internal/picture -out docs/img/plan-comment.png

house: ## show what has outgrown the bounds of rooms, structs, interfaces, files and functions
	$(GO) run ./internal/house

demo: ## the whole story on this machine; EXIT=1 ends after it. SCALE=1: three replicas with PostgreSQL, Redis and an object store
	@GO=$(GO) internal/testenv/setup.sh $(if $(SCALE),scale,demo)
	@echo "setup: building bin/holdfast (the first time takes a few minutes)"
	@$(MAKE) --no-print-directory -s build
	@$(if $(SCALE),$(MAKE) --no-print-directory -s scale-tools)
	@$(ENGINE) $(if $(SCALE),examples/scale/run.sh $(BIN)/holdfast $(TOOLS),examples/demo/run.sh $(BIN)/holdfast) $(if $(EXIT),--exit)

.PHONY: scale-tools
scale-tools:
	@for tool in $(foreach tool,$(PROGRAMS),$(if $(findstring /versitygw@,$(tool)),$(tool))) internal/testenv/balancer; do GO=$(GO) internal/testenv/tool.sh $(TOOLS) $$tool || exit 1; done

docs: ## write docs/config.md and docs/shipped-policies.md from the code
	$(GO) test ./cmd/holdfast/config -run TestReference -update
	$(GO) test ./policy/library -run TestPage -update

# Each version of a tool is built once, for all clones: internal/testenv/tool.sh.
tools:
	@set -e; for tool in $(PROGRAMS); do GO=$(GO) internal/testenv/tool.sh $(TOOLS) $$tool; done

# What is missing is installed where that is allowed, otherwise the one command is printed.
# SETUP=no only prints it.
needs:
	@GO=$(GO) internal/testenv/setup.sh test

image: ## build the container image
	docker build --build-arg VERSION=$(VERSION) -t holdfast:$(VERSION) .

clean: ## remove what was built
	rm -rf $(BIN)
