# Holdfast. `make help` tells what there is.

SHELL       := /bin/bash
GO          ?= go
BIN         := $(CURDIR)/bin
TOOLS       := $(BIN)/tools
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
# The timestamp of the commit, so that the same source gives the same image.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
export CGO_ENABLED ?= 0

GOLANGCI_LINT     := v2.6.2
GOFUMPT           := v0.9.2
# hashicorp/local as a Go module; a file edited behind Terraform's back is real drift.
PROVIDER_LOCAL    := github.com/terraform-providers/terraform-provider-local@v1.4.1-0.20260513075820-3561e410f9fe
PROVIDER_TIME     := github.com/hashicorp/terraform-provider-time@v0.14.2

.PHONY: help build test check lint unit e2e fuzz bench bench-table demo docs tools needs compiler image clean

help: ## show this
	@awk -F':.*## ' '/^[a-z0-9]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/holdfast
	$(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $(BIN)/holdfast ./cmd/holdfast

test: lint unit fuzz ## everything that CI runs: lint, all tests with the race detector, a little fuzzing

check: test ## the same as test

lint: tools ## gofumpt, go vet, golangci-lint with the layers as rules, tidy modules
	@test -z "$$($(TOOLS)/gofumpt -l .)" || { echo "not formatted (run gofumpt -w):"; $(TOOLS)/gofumpt -l .; exit 1; }
	$(GO) mod tidy -diff
	$(GO) vet ./...
	$(TOOLS)/golangci-lint run

# No goroutine and no lock is in these: the race detector would only make them slow.
PURE := . ./report ./reconciler/decision
# The programs in the sandboxes of these tests are the tests' own binary, within
# limits of memory that the race detector does not fit into.
LIMITED := ./runner/sandbox
# These start servers with agents and engines. Beside the tests of other packages
# they would compete for a small machine: they come last, one after the other.
SERVERS := ./docs ./internal/e2e

# The race detector needs cgo; the binary itself is static. SQLite is C that was
# translated to Go: with the detector in it tests take ten times as long.
RACE := -race -gcflags='modernc.org/...=-race=false'
unit: export HOLDFAST_TEST_PROVIDERS = $(TOOLS)
unit: tools needs compiler ## all tests, with real engines, Git, Redis: packages first, then the end-to-end tests alone
	$(GO) test -timeout 20m $(PURE) $(LIMITED)
	all=$$($(GO) list ./...) && apart=$$($(GO) list $(PURE) $(LIMITED) $(SERVERS)) && \
	  CGO_ENABLED=1 $(GO) test $(RACE) -timeout 40m $$(grep -vxF "$$apart" <<<"$$all")
	CGO_ENABLED=1 $(GO) test $(RACE) -p 1 -timeout 40m $(SERVERS)

e2e: tools needs ## the end-to-end tests only, without the race detector
	HOLDFAST_TEST_PROVIDERS=$(TOOLS) $(GO) test -count=1 -timeout 40m ./internal/e2e/...

FUZZTIME ?= 5s
fuzz: ## each fuzz target for FUZZTIME (default 5s)
	@set -e; grep -rl --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do \
	  grep -o '^func Fuzz[A-Za-z0-9_]*' $$file | cut -d' ' -f2 | while read -r target; do \
	    echo "fuzz $$(dirname $$file) $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$(dirname $$file) >/tmp/holdfast-fuzz.$$$$ 2>&1 \
	      || { cat /tmp/holdfast-fuzz.$$$$; rm -f /tmp/holdfast-fuzz.$$$$; exit 1; }; \
	    rm -f /tmp/holdfast-fuzz.$$$$; \
	  done; \
	done

bench: build tools needs ## measure; prints a table, writes bench/results.json and the table of README.md
	HOLDFAST_TEST_PROVIDERS=$(TOOLS) $(GO) run ./bench -holdfast $(BIN)/holdfast -out bench/results.json
	@$(MAKE) --no-print-directory bench-table

# The table of README.md, from the figures that were measured last.
bench-table:
	@{ sed '/<!-- bench:begin -->/q' README.md && $(GO) run ./bench -markdown -out bench/results.json && \
	  sed -n '/<!-- bench:end -->/,$$p' README.md; } >README.md.new && mv README.md.new README.md || { rm -f README.md.new; exit 1; }

demo: build ## the whole story on this machine; EXIT=1 ends after it
	@examples/demo/run.sh $(BIN)/holdfast $(if $(EXIT),--exit)

docs: ## write docs/config.md from the code
	$(GO) test ./cmd/holdfast/config -run TestReference -update

tools: $(TOOLS)/gofumpt $(TOOLS)/golangci-lint $(TOOLS)/terraform-provider-local $(TOOLS)/terraform-provider-time \
       $(TOOLS)/terraform-provider-cloud $(TOOLS)/terraform-provider-facts

# Each tool is built once; a new version in this file builds it anew.
$(TOOLS)/gofumpt: Makefile
	GOBIN=$(TOOLS) $(GO) install mvdan.cc/gofumpt@$(GOFUMPT) && touch $@

$(TOOLS)/golangci-lint: Makefile
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT) && touch $@

$(TOOLS)/terraform-provider-local: Makefile
	GOBIN=$(TOOLS) $(GO) install $(PROVIDER_LOCAL) && touch $@

$(TOOLS)/terraform-provider-time: Makefile
	GOBIN=$(TOOLS) $(GO) install $(PROVIDER_TIME) && touch $@

# A provider of our own whose cloud is a folder of files: what somebody edits
# there has changed outside. A module apart, so that nothing else depends on it.
CLOUD := internal/testenv/terraform-provider-cloud
$(TOOLS)/terraform-provider-cloud: Makefile $(wildcard $(CLOUD)/*)
	cd $(CLOUD) && GOBIN=$(TOOLS) $(GO) install . && touch $@

# Stands in for the clouds' providers, with their schemas: the engine plans the
# library's modules against it. A module apart, too.
FACTS := internal/testenv/terraform-provider-facts
$(TOOLS)/terraform-provider-facts: Makefile $(wildcard $(FACTS)/*)
	cd $(FACTS) && GOBIN=$(TOOLS) $(GO) install . && touch $@

needs:
	@ok=1; \
	need() { command -v "$$1" >/dev/null || { echo "missing: $$1. $$2"; ok=0; }; }; \
	need git "Install git (apt-get install git)."; \
	need redis-server "Install Redis 7 (apt-get install redis-server); it need not run."; \
	command -v terraform >/dev/null || command -v tofu >/dev/null || \
	  { echo "missing: terraform or tofu. Install one of them: https://opentofu.org/docs/intro/install"; ok=0; }; \
	test $$ok = 1

compiler:
	@command -v $${CC:-gcc} >/dev/null || \
	  { echo "missing: a C compiler, for the race detector. Install one (apt-get install gcc libc6-dev)."; exit 1; }

image: ## build the container image
	docker build --build-arg VERSION=$(VERSION) -t holdfast:$(VERSION) .

clean: ## remove what was built
	rm -rf $(BIN)
