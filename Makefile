# Everything the project does, by name. `make` alone lists the targets.
#
# Needs Go, gcc, make and Python 3 (with its venv module). What else it uses is installed at pinned
# versions under .tmp/bin (tools) and build/venv (Python environments).

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --warn-undefined-variables --no-builtin-rules --no-print-directory

PYTHON ?= python3
GO ?= go
CC ?= gcc
CI ?=
V ?=
VERSION ?=

BUILD := $(CURDIR)/build
BIN := $(CURDIR)/.tmp/bin
# Not under build/, where it would be packages of this module.
GENERATED := $(CURDIR)/.tmp/generated
VENV := $(BUILD)/venv
VENV_SH := test/venv.sh
export GOBIN := $(BIN)
# Of this clone: what the linter remembers of another one it finds again under the other's paths, where
# nothing of .golangci.yml holds.
export GOLANGCI_LINT_CACHE := $(CURDIR)/.tmp/golangci-lint

CUDA := $(BUILD)/cuda
CUDA_HOME ?= /usr/local/cuda
# Where the libcuda.so.1 of the tests is.
CUDA_DRIVER := $(BUILD)/cudasim
CGO_CFLAGS ?= -O2 -g
CGO_CFLAGS := $(filter-out -I$(CUDA)/include,$(CGO_CFLAGS)) -I$(CUDA)/include
CGO_LDFLAGS ?= -O2 -g
CGO_LDFLAGS := $(filter-out -L$(CUDA)/lib,$(CGO_LDFLAGS)) -L$(CUDA)/lib
export CGO_CFLAGS CGO_LDFLAGS

# What the tests are told. They never look for these things themselves.
TEST_ENV = NDBRIDGE_LIB=$(BUILD)/lib \
	NDBRIDGE_TEST_PYTHON=$(VENV)/base/bin/python \
	NDBRIDGE_TEST_PYTHON_ALL=$(VENV)/all/bin/python \
	NDBRIDGE_TEST_PYTHON_MORE=$(VENV)/more/bin/python \
	NDBRIDGE_TEST_PYTHON_WARP=$(VENV)/warp-1.6/bin/python \
	NDBRIDGE_TEST_PYTHON_DEMO=$(VENV)/demo/bin/python \
	NDBRIDGE_TEST_PYTHON_ADBC=$(VENV)/adbc/bin/python \
	NDBRIDGE_TEST_PYTHON_LAUNCHERS=$(VENV)/launchers/bin/python \
	NDBRIDGE_TEST_UV=$(VENV)/uv/bin/uv \
	NDBRIDGE_TEST_PYTHON_JAVA=$(VENV)/java/bin/python \
	NDBRIDGE_TEST_PYTHON_BRIDGES=$(VENV)/bridges/bin/python \
	NDBRIDGE_TEST_PYTHON_RAY=$(VENV)/ray/bin/python \
	NDBRIDGE_TEST_PYTHON_PYCUDA=$(VENV)/pycuda/bin/python \
	NDBRIDGE_TEST_PYTHON_CUDA=$(VENV)/cuda/bin/python \
	NDBRIDGE_TEST_PYTHON_NATIVE=$(VENV)/native/bin/python \
	NDBRIDGE_TEST_MALLOCS=$(MALLOCS) \
	NDBRIDGE_TEST_CUDA_INCLUDE=$(CUDA)/include \
	NDBRIDGE_TEST_CUDASIM=$(CUDA_DRIVER) \
	NDBRIDGE_TEST_NFPM=$(BIN)/nfpm \
	NDBRIDGE_TEST_ROOTS=$(ROOTS) \
	NDBRIDGE_TEST_PYTHONS=$$(cat $(VENV)/matrix/pythons)

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z0-9-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# ---------------------------------------------------------------------------------------- build

.PHONY: build
build: cli lib ## Build the command line, the plugin and the shared heap under build/

.PHONY: cli
cli:
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BUILD)/ndbridge ./cmd/ndbridge

PLUGINS := $(patsubst adapters/%/plugin,plugin-%,$(wildcard adapters/*/plugin))

.PHONY: lib
lib: $(BUILD)/lib/libndbridge-heap.so $(BUILD)/lib/python/ndbridge.py plugin-all

# What processes import that no host has started.
$(BUILD)/lib/python/ndbridge.py: hostplugin/bootstrap/python/ndbridge.py
	mkdir -p $(@D)
	cp $< $@

# plugin-all has all adapters; a plugin with one adapter, such as plugin-numpy, is built on its own.
.PHONY: $(PLUGINS)
$(PLUGINS): plugin-%: $(CUDA)/lib/libcuda.a
	CGO_ENABLED=1 $(GO) build -trimpath -tags cuda,grpcnotrace -buildmode=c-shared -o $(BUILD)/lib/ndbridge-$*.so ./adapters/$*/plugin
	@rm -f $(BUILD)/lib/ndbridge-$*.h

# What "go get" brings: modules that embed the plugin and the shared heap. zig compiles them, for an old glibc and for the other
# processor, too. A release has them (docs/releasing.md); this clone's hosts embed them from then on.
$(VENV)/native/.done: native/requirements.txt $(VENV_SH)
	$(VENV_SH) $(PYTHON) $(VENV)/native $<

.PHONY: native native-amd64 native-arm64
native: native-amd64 native-arm64 ## Build the native modules, for amd64 and arm64
native-amd64 native-arm64: native-%: $(VENV)/native/.done $(CUDA)/include/cuda.h
	native/build.sh $(VENV)/native/bin/python $(GO) $* $(CUDA)/include $(BUILD)/native/linux_$*
	$(VENV)/native/bin/python native/pack.py $(BUILD)/native/linux_$* native/linux_$*/files

# The tests that measure.
FIGURES := ^Test(GoGet|UnpackingCosts|SessionCosts|SessionTakes)$$

.PHONY: figures
figures: native-amd64 $(VENV)/base/.done ## Measure what an installation takes; writes docs/results/install.md, and its table in docs/install.md
	$(TEST_ENV) $(GO) test -count=1 -timeout 30m -run '$(FIGURES)' ./test/install -install.report $(CURDIR)/docs

.PHONY: dist
dist: native $(BIN)/nfpm ## Make archives, wheels, .deb and .rpm for both processors, under build/dist
	for arch in amd64 arm64; do native/dist.sh $(PYTHON) $(GO) $(BIN)/nfpm $$arch $(BUILD)/native/linux_$$arch $(BUILD)/dist; done

.PHONY: test-arm64
test-arm64: cli native-arm64 $(BIN)/nfpm ## Look at arrays of an emulated arm64 Python, with pages of 4 and 64 KiB, and with an emulated host out of packages (needs qemu-user-static)
	native/dist.sh $(PYTHON) $(GO) $(BIN)/nfpm arm64 $(BUILD)/native/linux_arm64 $(BUILD)/dist
	test/arm64.sh $(BUILD)/arm64 $(BUILD)/ndbridge $(BUILD)/native/linux_arm64 $(BUILD)/dist

# The systems that packages are installed in: Debian 12 and 13, or Ubuntu 24.04 if this machine is of Ubuntu.
SUITES := $(if $(filter ubuntu,$(shell . /etc/os-release && echo $$ID)),noble,bookworm trixie)

.PHONY: test-systems
test-systems: lib native-amd64 $(BIN)/nfpm $(BUILD)/musl/.done ## Install on Debian 11 to 13 and on Ubuntu 18.04 to 24.04, from the mirrors of both; start a Python with musl
	$(MAKE) SUITES="bookworm bullseye trixie bionic focal jammy noble" test-packages
	$(TEST_ENV) NDBRIDGE_TEST_PYTHON_MUSL=$(BUILD)/musl/root/bin/python3.11 $(GO) test -count=1 -run TestMusl $(V) ./test/install

$(BUILD)/musl/.done: test/musl-python.sh test/debian-apt.sh
	test/musl-python.sh $(@D)

.PHONY: test-packages
test-packages: native-amd64 $(BIN)/nfpm $(VENV)/base/.done $(SUITES:%=$(BUILD)/roots/%/.done)
	$(TEST_ENV) $(GO) test -count=1 -timeout 30m -run 'TestDeb|TestRPM' $(V) ./test/install

.PHONY: release
release: native ## Make the commit and the tags of a release: make release VERSION=v0.1.0 (docs/releasing.md)
	native/release.sh $(VERSION)

HEAP := internal/sharedheap/preload

$(BUILD)/lib/libndbridge-heap.so: $(wildcard $(HEAP)/*) hostplugin/bootstrap/python/ndbridge.py
	@mkdir -p $(@D)
	CC=$(CC) $(HEAP)/build.sh $@

# What is built with the tag "cuda" needs NVIDIA's header, of CUDA 12, and a libcuda to be linked with,
# for which stubs stand in that find the real one when it is used.
STUB := internal/gpu/driver/stub

$(CUDA)/include/cuda.h: $(STUB)/header.sh $(STUB)/header.txt
	$(STUB)/header.sh $(PYTHON) $(CUDA_HOME) $@

$(CUDA)/lib/libcuda.a: $(CUDA)/include/cuda.h $(wildcard $(STUB)/*)
	@mkdir -p $(@D)
	CC=$(CC) $(STUB)/build.sh $(CUDA)/include $@

SIMULATED := test/cudasim

# What package stats has a GPU do.
KERNELS := stats/internal/kernels

$(CUDA_DRIVER)/libcuda.so.1: $(CUDA)/include/cuda.h $(wildcard $(SIMULATED)/*.[ch] $(SIMULATED)/*.sh) $(KERNELS)/kernels.cu
	CC=$(CC) $(SIMULATED)/build.sh $@ $(CUDA)/include

.PHONY: cuda
cuda: $(CUDA)/lib/libcuda.a ## Get what building with -tags cuda needs; print its environment
	@echo 'export CGO_CFLAGS="$(CGO_CFLAGS)" CGO_LDFLAGS="$(CGO_LDFLAGS)"'

# ---------------------------------------------------------------------------- Python environments

$(VENV)/%/.done: test/requirements/%.txt $(VENV_SH)
	$(VENV_SH) $(PYTHON) $(VENV)/$* $<

$(VENV)/matrix/pythons: $(wildcard test/requirements/matrix-*.txt) $(VENV_SH) test/matrix.sh test/debian-python.sh
	test/matrix.sh $(VENV)/matrix

# Small installations of them, in which the tests install packages.
ROOTS_DIR := $(BUILD)/roots
ROOTS := $(subst $(eval ) ,:,$(SUITES:%=$(ROOTS_DIR)/%/root))

$(ROOTS_DIR)/%/.done: test/debian-root.sh test/debian-apt.sh
	test/debian-root.sh $* $(@D)

# What they preload in place of the C library's malloc.
MALLOCS := $(BUILD)/mallocs

$(MALLOCS)/.done: test/debian-mallocs.sh test/debian-apt.sh
	test/debian-mallocs.sh $(@D)

$(VENV)/java/.done: PYTHON = $(VENV)/matrix/3.14-new/bin/python
$(VENV)/java/.done: | $(VENV)/matrix/pythons

# PyCUDA comes as source only. Its wheel for the Python of the GPU machines is made beside that for ours.
WHEELS := $(BUILD)/wheels
PYCUDA := $(WHEELS)/.pycuda $(WHEELS)/.pycuda-gpu

$(PYCUDA): $(wildcard test/pycuda/*) | $(CUDA_DRIVER)/libcuda.so.1
	test/pycuda/build.sh $(PYTHON) $(WHEELS) $(CUDA)/include/cuda.h $(CUDA_DRIVER)/libcuda.so.1
	@touch $@

$(WHEELS)/.pycuda-gpu: PYTHON = $(VENV)/matrix/3.12-new/bin/python
$(WHEELS)/.pycuda-gpu: | $(VENV)/matrix/pythons

$(VENV)/pycuda/.done: $(WHEELS)/.pycuda
$(VENV)/pycuda/.done: export PIP_FIND_LINKS = $(WHEELS)

.PHONY: venvs
venvs: $(VENV)/base/.done $(VENV)/demo/.done $(VENV)/adbc/.done $(VENV)/java/.done $(VENV)/launchers/.done $(VENV)/bridges/.done $(VENV)/ray/.done $(VENV)/all/.done $(VENV)/more/.done $(VENV)/warp-1.6/.done $(VENV)/pycuda/.done $(VENV)/cuda/.done $(VENV)/matrix/pythons ## Make the Python environments of the tests (about 2 GB of downloads: torch, jax, tensorflow)

# --------------------------------------------------------------------------------- demo and tests

.PHONY: demo
demo: cli plugin-all $(BUILD)/lib/libndbridge-heap.so $(VENV)/demo/.done ## Run a Python program and look at its arrays from Go
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BUILD)/demo ./examples/demo
	@$(BUILD)/demo -out build/demo-out

# A module of its own, as that of somebody who writes an adapter.
OUTSIDE := examples/adapter

# Modules of their own, so that only those get the libraries that use them. BRIDGES are named by their folders.
BRIDGES := $(patsubst %/go.mod,%,$(wildcard bridges/*/go.mod))
MODULES := $(OUTSIDE) $(BRIDGES) test/bench/extras
# Those that start goroutines. The others are compiled without the race detector for the linter, too.
RACED := bridges/arrow

# Node.js with npm: the machine's own, or else one that comes from PyPI.
NODE := $(if $(shell command -v npm),,$(VENV)/node)

# The page of ndbridge inspect, and its tests in a browser: a module of its own, too.
PAGE := cmd/ndbridge/internal/inspect
BROWSER_TESTS := test/browser
BROWSER := $(BUILD)/browser

$(BROWSER)/.done: $(BROWSER_TESTS)/fetch.sh $(BROWSER_TESTS)/package-lock.json $(NODE:%=%/.done)
	PATH="$(NODE:%=%/bin:)$$PATH" $(BROWSER_TESTS)/fetch.sh $(BROWSER)

BROWSER_ENV = NDBRIDGE_LIB=$(BUILD)/lib NDBRIDGE_TEST_PYTHON=$(VENV)/base/bin/python NDBRIDGE_TEST_BROWSER=$(BROWSER)

.PHONY: soak
soak: lib $(VENV)/base/.done ## Have a page of a thousand arrays open for 8 hours, as fast as looks can come, and hold that nothing grows
	NDBRIDGE_LIB=$(BUILD)/lib NDBRIDGE_TEST_PYTHON=$(VENV)/base/bin/python $(GO) test -count=1 -timeout 0 -v -run TestSoak ./$(PAGE) -soak 8h

.PHONY: test-browser
test-browser: cli lib $(VENV)/base/.done $(BROWSER)/.done ## Test the page of ndbridge inspect in a real browser
	$(BROWSER_ENV) $(GO) test -C $(BROWSER_TESTS) -count=1 $(V) ./...

.PHONY: screenshots
screenshots: cli lib $(VENV)/base/.done $(BROWSER)/.done ## Take the pictures of the page for the documentation anew
	$(BROWSER_ENV) $(GO) test -C $(BROWSER_TESTS) -count=1 -run TestScreenshots ./... -screenshots $(CURDIR)/docs/images

# The packages that differ with the tag "cuda". Plugins always have it, so that what only they use is not tested without.
PLUGIN_PACKAGES := ./adapters/kit/internal/... ./adapters/kit/program/...
CUDA_PACKAGES := ./cuda ./internal/gpu/... ./stats/... ./adapters/kit $(PLUGIN_PACKAGES) ./hostplugin ./hostplugin/internal/... ./examples/gpu

# The tests of whole sessions with GPUs, on two simulated ones.
SIMULATED_GPU = LD_LIBRARY_PATH=$(CUDA_DRIVER) CUDASIM_DEVICES=2 \
	NDBRIDGE_TEST_PYTHON=$(VENV)/pycuda/bin/python NDBRIDGE_TEST_GPU_FRAMEWORKS=driver,pycuda

# Tests of views, versions, groups and calls that do not depend on who has started the program.
SPACE := $(subst ,, )
ATTACHED_NAMES := NextFollows|GroupN|Publish(Fresh|Buffers|Written)|Published(IsReplaced|Objects|BeforeAFork|Never|Small|Over|IsRebound)|Replaced|VersionsGoOn|CloseEnds|\
	KnownAgain(AfterFork|Leaves|Published|Uses)|Live|Patterns$$|SlicesAre|EveryKind|MapsOverArrays$$|ArrayMay|ViewFollows|RefreshOfUn|Mapped|ReadOnly|\
	CallsCarry|CallsSee|CallsRefuse|CallsStream|CallsAtOnce|CallsEndWith|CallsWrite|CallsThat|CallsWithin|CallsBeside|ValueAnd|Handlers?Return|\
	Batches|Cancelled|Coroutines|Async|SessionsEnd|Lent|Lenders
ATTACHED := ^Test($(subst $(SPACE),,$(ATTACHED_NAMES)))

# What "go test" vets is the linter's business.
GOTEST := $(GO) test -vet=off

.PHONY: test
test: build native-amd64 plugin-numpy venvs $(MALLOCS)/.done $(BIN)/nfpm $(SUITES:%=$(ROOTS_DIR)/%/.done) $(CUDA_DRIVER)/libcuda.so.1 ## Run every test (unit tests with the race detector)
	$(TEST_ENV) $(GOTEST) -race $(V) $$($(GO) list ./... | grep -v -e /test/ $(PLUGIN_PACKAGES:./%/...=-e /%))
	$(TEST_ENV) LD_LIBRARY_PATH=$(CUDA_DRIVER) $(GOTEST) -race -tags cuda $(V) $(CUDA_PACKAGES)
	$(GOTEST) -tags ndbridge_nonative -run TestNothingIsEmbedded $(V) ./hostplugin
	$(TEST_ENV) $(GOTEST) -count=1 -timeout 30m $(V) ./test/...
	$(TEST_ENV) NDBRIDGE_TEST_ATTACHED=1 $(GOTEST) -count=1 -run '$(ATTACHED)' $(V) ./test/e2e
	$(TEST_ENV) $(SIMULATED_GPU) $(GOTEST) -count=1 -tags cuda $(V) ./test/gpu
	$(TEST_ENV) LD_LIBRARY_PATH=$(CUDA_DRIVER) $(GOTEST) -count=1 -tags cuda -run OnGPU $(V) ./test/e2e
	for module in $(RACED); do $(TEST_ENV) $(GO) test -C $$module -vet=off -race -count=1 $(V) ./...; done
	for module in $(filter-out $(RACED),$(MODULES)); do $(TEST_ENV) $(GO) test -C $$module -vet=off -gcflags=-d=checkptr -count=1 $(V) ./...; done
	$(MAKE) test-browser

.PHONY: matrix
matrix: build venvs ## Test all versions of the frameworks under all Pythons; writes docs/results/matrix.md (about 60 GB of environments)
	$(TEST_ENV) $(GO) run ./test/matrix -venvs $(VENV) -out docs/results/matrix.md

.PHONY: suites
suites: build venvs ## Run test suites of others under a host, on every Python; writes docs/results/suites.md (hours)
	$(TEST_ENV) $(GO) test -count=1 -timeout 0 -v ./test/suites -suites.report $(CURDIR)/docs/results/suites.md

.PHONY: test-short
test-short: build plugin-numpy $(VENV)/base/.done $(VENV)/demo/.done ## Run what needs only numpy and a minute
	NDBRIDGE_LIB=$(BUILD)/lib NDBRIDGE_TEST_PYTHON=$(VENV)/base/bin/python \
		NDBRIDGE_TEST_PYTHON_DEMO=$(VENV)/demo/bin/python $(GO) test -short $(V) $$($(GO) list ./... | grep -v /test/)
	NDBRIDGE_LIB=$(BUILD)/lib NDBRIDGE_TEST_PYTHON=$(VENV)/base/bin/python $(GO) test -C $(OUTSIDE) -count=1 $(V) ./...

.PHONY: quick
quick: test-short check-format check-rules $(BIN)/golangci-lint ## Run test-short, the rules and the linter: what is worth knowing in three minutes
	$(BIN)/golangci-lint run ./...

FUZZTIME ?= 20s

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (20s)
	@grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$dir"/*_test.go); do \
			echo "$$dir $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) "$$dir"; \
		done; \
	done

.PHONY: fuzz-model
fuzz-model: build venvs ## Run random programs for FUZZTIME (20s), and compare their arrays with what a host sees
	$(TEST_ENV) NDBRIDGE_FUZZTIME=$(FUZZTIME) $(GO) test -count=1 -timeout 0 -v ./test/model

# The tools of the benchmark that need modules of their own: the client of Arrow Flight, and the plot.
BENCH_EXTRAS := test/bench/extras
# Flags of the benchmark: "-hammer 1h" lets callers go at full rate for twice an hour, and not for twice two minutes; "-watch 1m" looks at
# local variables for a minute, and not for 10 s.
BENCH ?=

.PHONY: bench
bench: build $(VENV)/matrix/pythons $(VENV)/all/.done $(VENV)/more/.done $(VENV)/cuda/.done $(VENV)/ray/.done $(VENV)/trackers/.done ## Measure against the alternatives and the goals; writes build/bench/handoff.json and .png
	$(GO) build -trimpath -o $(BUILD)/bench/bench ./test/bench
	$(GO) build -C $(BENCH_EXTRAS) -trimpath -o $(BUILD)/bench/extras .
	NDBRIDGE_LIB=$(BUILD)/lib $(BUILD)/bench/bench -python $(VENV)/all/bin/python -python-arrow $(VENV)/more/bin/python \
		-python-cuda $(VENV)/cuda/bin/python -python-ray $(VENV)/ray/bin/python -python-3.14 $(VENV)/matrix/3.14-new/bin/python -flight $(BUILD)/bench/extras \
		-ndbridge $(BUILD)/ndbridge -python-trackers $(VENV)/trackers/bin/python -json $(BUILD)/bench/handoff.json $(BENCH)
	$(BUILD)/bench/extras plot $(BUILD)/bench/handoff.json $(BUILD)/bench/handoff.png
	ln -sf handoff.json $(BUILD)/bench/view.json # what it was called before the hand-off was measured, too

# The commit that bench-core compares with.
BASE ?= HEAD~1

.PHONY: bench-core
bench-core: $(BIN)/benchstat ## Compare the benchmarks of core with those of another commit, by benchstat: make bench-core BASE=v0.1.0
	test/benchstat.sh $(GO) $(BIN)/benchstat $(BASE) ./core

# A machine with a GPU often has no Go and no network: what runs there is one folder. What it lacks of
# frameworks and is large goes beside it.
GPU_RUN = EXTRAS=$(BUILD)/gpu-extras $(BUILD)/gpu/run.sh $(BUILD)/gpu-out

.PHONY: test-gpu
test-gpu: lib $(WHEELS)/.pycuda-gpu ## Make build/gpu, which tests all on a machine with a GPU; run it if this is one
	test/gpu/bundle/make.sh $(BUILD) $(GO) $(PYTHON)
	@if nvidia-smi -L >/dev/null 2>&1; then \
		PYTHON=$(PYTHON) $(GPU_RUN); \
	else \
		echo "no GPU here; on a machine with one, with this folder there, run: build/gpu/run.sh OUT"; \
	fi

.PHONY: gpu-extras
gpu-extras: ## Pack Warp and DALI for machines with a GPU that lack them, under build/gpu-extras
	test/gpu/bundle/extras.sh $(BUILD) $(PYTHON)

# ------------------------------------------------------------------------------------- generation

# NVIDIA's compiler of kernels, which needs no GPU.
NVRTC := $(VENV)/nvrtc

PROTO_TOOLS := $(BIN)/buf $(BIN)/protoc-gen-go $(BIN)/protoc-gen-go-grpc

.PHONY: generate
generate: $(PROTO_TOOLS) $(NODE:%=%/.done) $(NVRTC)/.done ## Write the generated code, the kernels in PTX, the generated pages of docs/ and what the page embeds of others anew
	PATH="$(BIN):$$PATH" $(BIN)/buf generate
	$(GO) test -count=1 -run TestGeneratedFilesAreCurrent ./adapters/all -update
	$(GO) test -count=1 -run TestReferenceIsCurrent ./hostplugin -update
	$(GO) test -count=1 -run TestReferenceIsCurrent ./cmd/ndbridge -update
	$(GO) test -count=1 -run TestPackageListIsCurrent ./test/apidoc -update
	$(NVRTC)/bin/python $(KERNELS)/compile.py
	PATH="$(NODE:%=%/bin:)$$PATH" $(PAGE)/page.sh others $(BUILD)/web $(PAGE)/web/others

# The documentation site. Its pages about Go packages are made of their comments, first.
DOCS_API := $(BUILD)/api

.PHONY: docs
docs: $(VENV)/docs/.done ## Make the documentation site, and check its links; writes build/docs
	rm -rf $(DOCS_API)
	$(GO) run ./test/apidoc $(CURDIR) $(DOCS_API)
	NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/mkdocs --quiet build --strict

# ------------------------------------------------------------------------------------------ check

.PHONY: check
check: check-format check-lint check-pure check-generated check-tidy check-rules docs check-clean ## Check format, lint, rules, generated code, the documentation, and that the tree is clean

.PHONY: format
format: $(BIN)/gofumpt $(BIN)/buf ## Format Go and protobuf sources
	$(BIN)/gofumpt -extra -w $$(git ls-files -co --exclude-standard '*.go' | grep -v '^internal/gen/')
	$(BIN)/buf format -w

.PHONY: check-format
check-format: $(BIN)/gofumpt $(BIN)/buf
	@out=$$($(BIN)/gofumpt -extra -l $$(git ls-files '*.go' | grep -v '^internal/gen/')); \
		if [ -n "$$out" ]; then echo "not formatted (run: make format):"; echo "$$out"; exit 1; fi
	$(BIN)/buf format -d --exit-code >/dev/null

# With the tags for GPUs, only packages that have other files then are looked at again.
.PHONY: check-lint
check-lint: $(BIN)/golangci-lint $(BIN)/buf $(CUDA)/lib/libcuda.a
	$(BIN)/buf lint
	$(BIN)/golangci-lint run ./...
	$(GO) fix -diff ./...
	files() { $(GO) list -tags "$$1" -f '{{.Dir}} {{.GoFiles}} {{.CgoFiles}} {{.TestGoFiles}} {{.XTestGoFiles}}' ./... | sort; }; \
		without=$$(files "") with=$$(files cuda,gpu); \
		differ=$$(comm -13 <(echo "$$without") <(echo "$$with") | cut -d ' ' -f 1); \
		$(BIN)/golangci-lint run --build-tags cuda,gpu $$differ; \
		$(GO) fix -diff -tags cuda,gpu $$differ
	for module in $(MODULES) $(BROWSER_TESTS); do \
		(cd $$module && $(BIN)/golangci-lint run ./... && $(GO) fix -diff ./...); \
	done
	CC=$(CC) $(HEAP)/build.sh $(BUILD)/checked.so -Werror -fanalyzer -Wshadow -Wconversion -Wno-sign-conversion
	CC=$(CC) $(SIMULATED)/build.sh $(BUILD)/checked.so $(CUDA)/include -Werror

# A host is pure Go: these must build without cgo. So must the contract and the plugin that is not
# Python, and all bridges but that to a library in C. Elsewhere than on Linux, and for 32 bits, a host compiles, and says what programs need.
.PHONY: check-pure
check-pure:
	CGO_ENABLED=0 $(GO) build ./core/... ./bridges/... ./cuda ./internal/gpu/... ./hostplugin/... ./cmd/... ./examples/... ./internal/wire/... ./internal/shm/... ./internal/fdpass/...
	for target in linux/arm64 linux/386 darwin/arm64 windows/amd64; do \
		GOOS=$${target%/*} GOARCH=$${target#*/} CGO_ENABLED=0 $(GO) build ./core/... ./bridges/... ./cuda ./hostplugin/...; \
	done
	for module in $(filter-out bridges/onnxruntime,$(BRIDGES)); do CGO_ENABLED=0 $(GO) build -C $$module ./...; done

.PHONY: check-generated
check-generated: $(PROTO_TOOLS) $(NODE:%=%/.done) $(NVRTC)/.done
	PATH="$(BIN):$$PATH" $(BIN)/buf generate --output $(GENERATED)
	diff -r internal/gen $(GENERATED)/internal/gen
	$(GO) test -count=1 -run TestGeneratedFilesAreCurrent ./adapters/all
	$(GO) test -count=1 -run TestReferenceIsCurrent ./hostplugin ./cmd/ndbridge
	$(GO) test -count=1 -run TestPackageListIsCurrent ./test/apidoc
	$(NVRTC)/bin/python $(KERNELS)/compile.py --check
	PATH="$(NODE:%=%/bin:)$$PATH" $(PAGE)/page.sh check $(BUILD)/web

.PHONY: check-tidy
check-tidy:
	$(GO) mod tidy -diff
	for module in $(MODULES) $(BROWSER_TESTS); do $(GO) -C $$module mod tidy -diff; done
	$(GO) mod verify

.PHONY: check-rules
check-rules:
	$(GO) test -count=1 ./test/rules

.PHONY: check-clean
check-clean:
	@out=$$(git status --porcelain); if [ -n "$$out" ]; then echo "the tree is not clean:"; echo "$$out"; exit 1; fi

.PHONY: count
count: ## Print figures of the source: folders, lines, exported names, examples, tests
	@$(GO) test -count=1 -v -run TestFigures ./test/rules

# ------------------------------------------------------------------------------------------ tools

# $(call tool,name,package,version) installs one tool; a new version replaces the old one.
define tool
$(BIN)/$(1): $(BIN)/.$(1)-$(3)
$(BIN)/.$(1)-$(3):
	@mkdir -p $(BIN)
	@rm -f $(BIN)/.$(1)-v*
	$(GO) install $(2)@$(3)
	@touch $$@
endef

$(eval $(call tool,gofumpt,mvdan.cc/gofumpt,v0.12.0))
$(eval $(call tool,golangci-lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint,v2.12.2))
$(eval $(call tool,buf,github.com/bufbuild/buf/cmd/buf,v1.72.0))
$(eval $(call tool,nfpm,github.com/goreleaser/nfpm/v2/cmd/nfpm,v2.45.2))
$(eval $(call tool,benchstat,golang.org/x/perf/cmd/benchstat,v0.0.0-20260908200009-22c9c6c9d4da))
$(eval $(call tool,protoc-gen-go,google.golang.org/protobuf/cmd/protoc-gen-go,v1.36.12))
$(eval $(call tool,protoc-gen-go-grpc,google.golang.org/grpc/cmd/protoc-gen-go-grpc,v1.6.2))

.PHONY: tools
tools: $(BIN)/gofumpt $(BIN)/golangci-lint $(BIN)/nfpm $(PROTO_TOOLS) ## Install the pinned tools under .tmp/bin (four minutes on two cores)

.PHONY: clean
clean: ## Remove build/ (tools stay in .tmp/)
	rm -rf $(BUILD)
