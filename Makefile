# SPDX-License-Identifier: Apache-2.0
# A front end to Meson, which builds in BUILD.

BUILD ?= build
PREFIX ?= /usr/local
# Missing packages are installed with apt-get; SETUP=off turns that off.
SETUP ?= on
# Benchmarks compare with the PyTorch that it imports.
PYTHON ?= python3
rows = $(if $(ROWS),--rows $(ROWS))
rounds = $(if $(ROUNDS),--rounds $(ROUNDS))

# Debian's directory for libraries, which Meson finds only if dpkg-dev is installed.
multiarch = $(shell $(CC) -print-multiarch 2>/dev/null)
LIBDIR ?= $(if $(wildcard /usr/lib/$(multiarch)/.),lib/$(multiarch),lib)

setup = $(if $(filter on,$(SETUP)),sh scripts/setup.sh,: setup is off:)
# Tests are built only for the targets that run them.
configured = sh scripts/configure.sh $(BUILD)

prepare_tests = $(setup) build test && { $(configured); } && \
    meson configure $(BUILD) -Dtests=enabled

.PHONY: all demo test test-slow test-hosts bench bench-kernels bench-workers bench-hosts \
    bench-wire bench-plan bench-pairs bench-profile bench-page story bench-convergence \
    bench-deps install clean help

all:
	@$(setup) build
	@$(setup) page || echo 'make: trireme dashboard is not built, as libmicrohttpd is missing'
	@$(configured)
	@ninja -C $(BUILD)

demo: all
	@$(setup) demo
	@sh scripts/demo.sh $(BUILD)

test:
	@$(prepare_tests)
	@sh scripts/test.sh $(BUILD)

test-slow:
	@$(prepare_tests)
	@$(setup) slow || echo 'make: tests of the page in browsers that are missing are skipped'
	@sh scripts/test.sh $(BUILD) --setup slow --suite long

test-hosts:
	@$(prepare_tests)
	@sh scripts/test.sh $(BUILD) --setup slow --suite hosts

# A quick run: make bench ROWS=lenet5,linear ROUNDS=3
bench: all
	@ninja -C $(BUILD) bench/copy
	@$(PYTHON) bench/bench.py $(BUILD) $(rows) $(rounds) \
	    $(if $(SECONDS),--seconds $(SECONDS)) $(if $(WORKERS),--workers $(WORKERS))

# A quick run: make bench-kernels ROWS=lenet5,bert-up ROUNDS=3 THREADS=1
bench-kernels: all
	@ninja -C $(BUILD) bench/kernels
	@$(PYTHON) bench/kernels.py $(BUILD) $(rows) $(rounds) \
	    $(if $(SECONDS),--seconds $(SECONDS)) $(if $(THREADS),--threads $(THREADS)) \
	    $(if $(CONV),--conv $(CONV)) $(if $(TYPE),--type $(TYPE))

bench-workers: all
	@$(PYTHON) bench/workers.py $(BUILD) $(rows) $(rounds)

bench-hosts: all
	@$(PYTHON) bench/hosts.py $(BUILD) $(rows) $(rounds)

# A quick run: make bench-wire ROWS=paths SHORT=1
bench-wire: all
	@$(PYTHON) bench/wire.py $(BUILD) $(rows) $(rounds) $(if $(SHORT),--short)

# What was measured is kept in RESULTS. A quick run: make bench-plan CELLS=mlp/one,lenet5/workers
bench-plan: all
	$(PYTHON) bench/plan.py $(BUILD) $(if $(CELLS),--cells $(CELLS)) \
	  $(if $(RESULTS),--results $(RESULTS)) $(if $(PAIRS),--pairs $(PAIRS)) \
	  $(if $(CHOICE),--choice $(CHOICE))

# make bench-pairs OLD=../before/build/src/trireme ROWS=lenet5 ROUNDS=3
bench-pairs: all
	@$(PYTHON) bench/pairs.py $(BUILD) $(or $(OLD),$(error OLD=PROGRAM is missing)) $(rows) \
	    $(rounds)

bench-profile: all
	@ninja -C $(BUILD) bench/spans
	@$(BUILD)/bench/spans

bench-page: all
	@$(PYTHON) bench/page.py $(BUILD) $(rounds)

# Two runs in which something is wrong, and what trireme report says of them: docs/profiling.md.
story: all
	@$(PYTHON) scripts/story.py $(BUILD)

bench-convergence: all
	@$(PYTHON) bench/convergence.py $(BUILD) $(rows) $(if $(SEEDS),--seeds $(SEEDS))

bench-deps:
	@sh scripts/setup.sh bench

install: all
	@meson configure $(BUILD) --prefix=$(abspath $(PREFIX)) --libdir=$(LIBDIR)
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD)
	@test -n "$(DESTDIR)" || test "$$(id -u)" -ne 0 || ldconfig

clean:
	rm -rf $(BUILD)

help:
	@echo 'make                           builds into $(BUILD)/; the program is $(BUILD)/src/trireme'
	@echo 'make demo                      trains a network on Fashion-MNIST and reports its accuracy'
	@echo 'make test                      runs the tests; the last line is "N passed, N failed"'
	@echo 'make test-slow                 runs the long forms of the fault tests'
	@echo 'make test-hosts                runs the long forms of the tests of several hosts'
	@echo 'make bench                     measures the included networks and compares them with the'
	@echo '                               PyTorch that python3 imports (PYTHON=FILE: another one);'
	@echo '                               takes hours; ROWS=lenet5,linear ROUNDS=3 SECONDS=1 is quick'
	@echo 'make bench-kernels             measures products and convolutions beside OpenBLAS, BLIS,'
	@echo '                               oneDNN and PyTorch; ROWS=lenet5,bert-up ROUNDS=3 THREADS=1'
	@echo '                               is quick, TYPE=bf16 measures bf16, CONV=direct leaves out'
	@echo '                               Winograd'
	@echo 'make bench-workers             measures runs with several workers; takes ROWS and ROUNDS'
	@echo 'make bench-hosts               measures runs over several hosts; takes ROWS and ROUNDS'
	@echo 'make bench-wire                measures what moves between hosts: sums by each path, bytes'
	@echo '                               and loss by format; takes ROWS and ROUNDS, SHORT=1 is quick'
	@echo 'make bench-plan                measures what steps take beside what plan price predicts;'
	@echo '                               takes CELLS, PAIRS and RESULTS; CHOICE=mlp,lenet5'
	@echo '                               measures plans that are found beside the next ones'
	@echo 'make bench-pairs OLD=PROGRAM   measures training beside another build of trireme, in turns;'
	@echo '                               takes ROWS and ROUNDS'
	@echo 'make bench-profile             measures what recording one span of a profile costs'
	@echo 'make bench-page                measures what trireme dashboard and an open page cost a run'
	@echo 'make story                     makes the two runs of docs/profiling.md, and their reports'
	@echo 'make bench-convergence         trains networks to the end and compares their quality with'
	@echo '                               PyTorch; takes hours'
	@echo 'make bench-deps                installs PyTorch, OpenBLAS, BLIS, Open MPI to compare with'
	@echo 'make install PREFIX=/usr/local installs library, header, pkg-config file, man page,'
	@echo '                               program, documents and examples'
	@echo 'make clean                     removes $(BUILD)/'
	@echo
	@echo 'BUILD=DIR builds in another directory; DESTDIR=DIR and LIBDIR=lib change where to install;'
	@echo 'SETUP=off installs no packages.'
