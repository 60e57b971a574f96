# Every target says what it does in `make help`. `make test` is what CI runs.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# Seconds per fuzz target: 5 in CI, 0 (skipped) elsewhere unless set.
FUZZ_SECONDS ?= $(if $(CI),5,0)
# Share of the seeds of random tests that run: a third of them in CI. With fewer some do not meet what they assert to have met.
SEEDS ?= $(if $(CI),34%,100%)
# Budget of campaigns: short (part of `make test`) or full (100 kills of SSDs, 1,000 of volumes). The papers' is short unless set.
PAPERS_BUDGET := $(or $(BUDGET),short)
BUDGET ?= full
# Where `make install` puts the binary: PREFIX/bin.
PREFIX ?= $(HOME)/.local

# Steps of `make test`. Fuzzing and counts of instructions need no binary of the tests, and give way. Those that serve one
# wait for disks most of the time.
FIRST_STEPS := fmt build
TEST_STEPS := clippy unit doc tidy oracle study-short
GIVING_WAY := fuzz-smoke instructions
SERVING := file-systems crash-short database-short
# The binary that they serve: that of the tests, so that nothing is built twice.
TESTED := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/debug/onefold

.PHONY: help
help: ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Build, run a recorded trace through two presets, mount an emulated SSD and cut it
	scripts/demo.sh

.PHONY: test
test: setup-if-possible ## Everything CI runs: format, lints, tests, docs, tidy, fuzz smoke, file systems, short crash campaigns
	@ONEFOLD=$(TESTED) scripts/test.sh --background $(GIVING_WAY) --foreground $(FIRST_STEPS) --background $(SERVING) --foreground $(TEST_STEPS)

.PHONY: bench
bench: ## Speed of the simulator, of the served device and of the buffer policies on this machine
	scripts/bench.sh
	scripts/bench-nbd.sh
	scripts/bench-buffer.sh

.PHONY: flaky
flaky: ## Serve devices on a backing that fails and heals, again and again (BUDGET=short|full|SECONDS)
	scripts/flaky.sh $(BUDGET)

.PHONY: factor
factor: ## What real programs write to flash, with a volume and without; FACTOR="--drive tlc --state half .." chooses (root)
	cargo build --release --locked --package onefold
	python3 scripts/factor --onefold target/release/onefold --folder target/factor --output target/factor.json $(FACTOR)

.PHONY: papers
papers: ## The five papers' figures and checks, ours beside theirs (BUDGET=short|full; short: from the tables in docs/papers/results)
	scripts/papers.sh $(PAPERS_BUDGET)

.PHONY: crash-campaign
crash-campaign: ## Kill served devices and volumes under load again and again (BUDGET=short|full)
	scripts/crash-campaign.sh $(BUDGET)

.PHONY: crash-states
crash-states: ## Replay what power cuts can leave of file systems on volumes, and check it (BUDGET=short|full; root)
	scripts/crash-states.sh $(BUDGET)

.PHONY: known-cuts
known-cuts: ## Programs of which it is known what a power cut does to them (BUDGET=short|full|STATES; root)
	scripts/known_cuts.py $(BUDGET)

.PHONY: database
database: ## Kill a served device under a database again and again (BUDGET=short|full)
	scripts/db-plain.sh
	scripts/db-crash.sh $(BUDGET)

.PHONY: write-once
write-once: ## Flash programs of SQLite, copies and stores with all that saves writes: simulated, then served (the latter as root)
	cargo build --release --locked --package onefold --package onefold-sqlite
	for study in write-once write-once-remaps; do \
	  target/release/onefold study run studies/$$study.toml --results target/$$study && \
	  target/release/onefold study check studies/$$study.toml --results target/$$study || exit 1; \
	done
	LIBRARY=target/release/libonefold_sqlite.so scripts/write_once_sqlite.py --served target/release/onefold --fs ext4,device
	scripts/write_once_copies.py --set ftl.remap=lh --set dedup.scope=reads --set dedup.hash=xxh3 --set ftl.zeroes=unmap
	scripts/write_once_damage.py

.PHONY: write-once-f2fs
write-once-f2fs: ## Flash programs of F2FS that cleans in a guest, on a served drive with and without copies seen (skipped without QEMU)
	cargo build --release --locked --package onefold
	scripts/write_once_f2fs.py

.PHONY: write-once-crash
write-once-crash: ## SQLite with the extension under kills of drive and program, beside stock SQLite (BUDGET=short|full|KILLS; root)
	cargo build --release --locked --package onefold --package onefold-sqlite
	scripts/write_once_crash.py $(BUDGET)

.PHONY: guest
guest: ## The kernel's dm-zoned beside ours, in a guest (skipped without QEMU)
	scripts/guest.sh

.PHONY: rocksdb-live
rocksdb-live: ## Hit ratios of the buffer policies under a live RocksDB on a served device (root)
	scripts/rocksdb-live.sh

.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZ_SECONDS (300 unless set)
	scripts/fuzz.sh $(if $(filter-out 0,$(FUZZ_SECONDS)),$(FUZZ_SECONDS),300)

.PHONY: book
book: ## Build the user guide as a book (needs mdbook: cargo install mdbook --locked)
	@command -v mdbook >/dev/null || { echo "book: mdbook is missing: cargo install mdbook --locked" >&2; exit 1; }
	mdbook build

.PHONY: setup
setup: ## Install the Debian packages that the tests use
	scripts/setup.sh

.PHONY: install
install: ## Build the release binary and install it, manual pages and completions to PREFIX (~/.local unless set)
	cargo install --locked --path crates/cli --root $(PREFIX)
	$(PREFIX)/bin/onefold man --quiet $(PREFIX)/share/man/man1
	mkdir -p $(PREFIX)/share/bash-completion/completions $(PREFIX)/share/zsh/site-functions $(PREFIX)/share/fish/vendor_completions.d
	$(PREFIX)/bin/onefold completions bash > $(PREFIX)/share/bash-completion/completions/onefold
	$(PREFIX)/bin/onefold completions zsh > $(PREFIX)/share/zsh/site-functions/_onefold
	$(PREFIX)/bin/onefold completions fish > $(PREFIX)/share/fish/vendor_completions.d/onefold.fish

# Steps of `make test`; each also works by itself.
.PHONY: setup-if-possible fmt build clippy unit doc tidy oracle instructions fuzz-smoke file-systems study-short crash-short database-short
setup-if-possible:
	@scripts/setup.sh --check || scripts/setup.sh \
	  || echo "skipped: the tests that need the missing packages (each prints and counts its skip)"
fmt:
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
build:
	cargo test --workspace --locked --lib --bins --tests --no-run
clippy:
	cargo clippy --profile test --workspace --all-targets --locked -- -D warnings
# Examples are compiled by clippy, and none has tests.
unit:
	ONEFOLD_SEEDS=$${ONEFOLD_SEEDS:-$(SEEDS)} cargo test --workspace --locked --lib --bins --tests
	cargo test --workspace --locked --doc
doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --profile test --workspace --no-deps --locked
tidy:
	cargo xtask tidy
	scripts/mutants.sh --check
oracle: ## Compare the buffer policies with libCacheSim on one trace (skipped if it cannot be installed)
	scripts/oracle-libcachesim.sh
instructions: ## Fail if a buffer policy takes 15 % or the simulator 10 % more instructions than in scripts/instructions.json
	nice -n 10 scripts/instructions.py
fuzz-smoke:
	@if [ "$(FUZZ_SECONDS)" = 0 ]; then echo "skipped: fuzzing (set FUZZ_SECONDS, or CI=true for 5 s a target)"; \
	 else scripts/fuzz.sh $(FUZZ_SECONDS); fi
file-systems:
	scripts/fs-test.sh ssd
	scripts/fs-test.sh volume
	scripts/fs-test.sh dmz ext4
	scripts/fs-test.sh dmz-sums ext4
	scripts/journals.py
	scripts/write_once_damage.py
study-short: ## Run the short studies of buffer policies and of deduplication and check their orderings
	scripts/study-short.sh
crash-short:
	$(MAKE) --no-print-directory crash-campaign BUDGET=short
	$(MAKE) --no-print-directory crash-states BUDGET=short
	$(MAKE) --no-print-directory flaky BUDGET=short
	scripts/known_cuts.py short sqlite-full sqlite-extra rename onefold
database-short:
	$(MAKE) --no-print-directory database BUDGET=short
	scripts/write_once_crash.py short
