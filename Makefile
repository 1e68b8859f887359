# SPDX-License-Identifier: Apache-2.0
# The face of the build; Meson does the work, in BUILD.

BUILD ?= build
PREFIX ?= /usr/local
# What the machine lacks is installed by apt-get; SETUP=off leaves that to you.
SETUP ?= on

# Debian's own place for libraries, which meson finds only where dpkg-dev is installed.
multiarch = $(shell $(CC) -print-multiarch 2>/dev/null)
LIBDIR ?= $(if $(wildcard /usr/lib/$(multiarch)/.),lib/$(multiarch),lib)

setup = $(if $(filter on,$(SETUP)),sh scripts/setup.sh,: setup is off:)
# Tests are built where they are asked for.
configured = sh scripts/configure.sh $(BUILD)

prepare_tests = $(setup) build test && { $(configured); } && meson configure $(BUILD) -Dtests=enabled

.PHONY: all demo test test-slow bench bench-workers bench-convergence bench-deps install clean help

all:
	@$(setup) build
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
	@sh scripts/test.sh $(BUILD) --setup slow --suite long

# A few rows, few rounds: make bench ROWS=lenet5,linear ROUNDS=3
bench: all
	@python3 bench/bench.py $(BUILD) $(if $(ROWS),--rows $(ROWS)) $(if $(ROUNDS),--rounds $(ROUNDS)) \
	    $(if $(SECONDS),--seconds $(SECONDS)) $(if $(WORKERS),--workers $(WORKERS))

bench-workers: all
	@python3 bench/workers.py $(BUILD) $(if $(ROWS),--rows $(ROWS)) $(if $(ROUNDS),--rounds $(ROUNDS))

bench-convergence: all
	@python3 bench/convergence.py $(BUILD) $(if $(ROWS),--rows $(ROWS)) $(if $(SEEDS),--seeds $(SEEDS))

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
	@echo 'make demo                      trains a network on Fashion-MNIST, and says how good it is'
	@echo 'make test                      runs all tests; the last line is "N passed, N failed"'
	@echo 'make test-slow                 the long forms of fault tests: many kills, every file'
	@echo 'make bench                     measures the networks that come along, beside PyTorch, and sums'
	@echo '                               over processes, beside Open MPI; about an hour;'
	@echo '                               ROWS=lenet5,linear,allreduce ROUNDS=3 SECONDS=1 is quick'
	@echo 'make bench-convergence         whether networks learn what they should, beside PyTorch; hours'
	@echo 'make bench-deps                installs PyTorch and Open MPI for that'
	@echo 'make install PREFIX=/usr/local library, header, pkg-config file, man page, program, documents,'
	@echo '                               examples'
	@echo 'make clean                     removes $(BUILD)/'
	@echo
	@echo 'BUILD=DIR builds elsewhere; DESTDIR=DIR and LIBDIR=lib say where to install; SETUP=off'
	@echo 'installs no packages.'
