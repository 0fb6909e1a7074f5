# Roost: build, test, install. "make" alone says what there is.
GO      ?= go
PREFIX  ?= /usr/local
DESTDIR ?=
# The names that are links to roost-q, and those that are links to roost: PBS commands, and those of HTCondor.
PBS_LOCAL := qsub qstat qdel qhold qrls qsig qmsg qrerun qselect
PBS       := qalter qmove qorder qrun pbsnodes qmgr qenable qdisable qstart qstop pbsdsh pbs_tmrsh pbs_release_nodes tracejob pbs_rsub pbs_rstat pbs_ralter pbs_rdel printjob pbs_attach pbs_hostn condor_submit condor_q condor_history condor_rm condor_hold condor_release condor_wait condor_status condor_version condor_submit_dag condor_dag_checker
# The commands of Slurm, likewise.
SLURM_LOCAL := sbatch scancel srun squeue scontrol sacct sinfo sacctmgr sshare sprio sstat
SLURM       := salloc sbcast sattach

# scripts/flags.sh says why. Other flags would compile all packages once more.
# A Go that is too old fetches the one that go.mod asks for. Debian's needs this to do so.
export GOTOOLCHAIN ?= auto
export CGO_CFLAGS := $(shell . scripts/flags.sh; echo "$$CGO_CFLAGS")
export GOFLAGS := $(shell . scripts/flags.sh; echo "$$GOFLAGS")
LEAN := $(shell . scripts/flags.sh; echo "$$LEAN")

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the programs, and the q* links, into bin/
	@scripts/setup.sh go
	CGO_ENABLED=0 $(GO) build -o bin/ ./cmd/roost ./cmd/roost-q ./cmd/roost-sim ./cmd/roost-accountant
	$(GO) build -o bin/ ./cmd/roost-daemon ./cmd/roost-negotiator ./cmd/roost-node ./cmd/roost-web
	@scripts/setup.sh pam
	@if [ -e /usr/include/security/pam_appl.h ] && command -v "$$($(GO) env CC)" >/dev/null; then CGO_ENABLED=1 $(GO) build -tags 'pam,$(LEAN)' -ldflags '-s -w' -o bin/ ./cmd/roost-pam; fi
	CGO_ENABLED=0 $(GO) build -ldflags '-s -w' -o bin/ ./cmd/roost-starter ./cmd/roost-ranks
	@if command -v python3 >/dev/null; then rm -f bin/roost-*.whl; python3 scripts/wheel.py bin/ >/dev/null; fi
	@scripts/drmaa.sh bin
	@for q in $(PBS) $(SLURM); do ln -sf roost bin/$$q; done; for q in $(PBS_LOCAL) $(SLURM_LOCAL); do ln -sf roost-q bin/$$q; done

.PHONY: demo
demo: build ## start a pool of two nodes, run a parameter sweep, print its result
	@scripts/demo.sh

.PHONY: test
test: ## install what the tests need, build, and run every test
	@scripts/setup.sh go tests
	@$(MAKE) --no-print-directory build
	@scripts/test.sh

.PHONY: test-vm
test-vm: ## boot Debian's stock kernel in QEMU and test cgroups and checkpoints there (Debian, amd64)
	@scripts/setup.sh go
	@VM_MACHINES="$${VM_MACHINES:-2}" scripts/vm.sh

.PHONY: test-vm-quick
test-vm-quick: ## the part of that which CI runs
	@scripts/setup.sh go
	@VM_TESTS=quick scripts/vm.sh

.PHONY: soak
soak: ## break everything in a pool of real processes for MINUTES (30), and hold what is left against the promises (root)
	@scripts/setup.sh go tests
	@scripts/soak.sh $(MINUTES)

.PHONY: test-upgrade
test-upgrade: ## upgrade a busy pool host by host, in ROUNDS (20) random orders, from the last release or OLD=REVISION (root)
	@scripts/setup.sh go tests
	@$(MAKE) --no-print-directory build
	@scripts/upgrade.sh $(or $(ROUNDS),20)

.PHONY: check
check: ## what CI runs: format, vet, staticcheck, layout, generated code, tests
	@scripts/setup.sh go tests
	@$(MAKE) --no-print-directory build
	@scripts/check.sh
	@GOFLAGS="$$GOFLAGS -vet=off" scripts/test.sh

.PHONY: bench
bench: build ## measure latency, throughput, memory, an execute node, checkpoints, the matching of ads, the job log, the replicated log, submissions to the queue of the cell, the accounting store, the simulator, the building of container images, the reading of DAG files and running of flows, functions of Python, and calls through a relay; FLAGS="-csv FILE" keeps it as a table
	$(GO) run ./bench $(FLAGS)
	$(GO) test -run '^$$' -bench . ./classad ./collector ./negotiator ./negotiator/match ./gpu ./startd/slot ./checkpoint/criu
	$(GO) test -run '^$$' -bench 'QueuedJob|Restore' -benchtime 3x ./schedd/queue
	$(GO) test -run '^$$' -bench 'UpdateService|FlowNoop' -benchtime 3x ./schedd/queue
	$(GO) test -run '^$$' -bench Decode -benchtime 10x ./schedd/flow/plan
	$(GO) test -run '^$$' -bench . ./collector/names ./collector/dns
	$(GO) test -run '^$$' -bench Open -benchtime 3x ./schedd/journal
	$(GO) test -run '^$$' -bench Tree -benchtime 3x ./internal/pmi
	$(GO) test -run '^$$' -bench Relay ./internal/relay
	$(GO) test -run '^$$' -bench Freeze -benchtime 100x ./startd
	$(GO) test -run '^$$' -bench HTTPChecks -benchtime 1x ./startd/probe
	$(GO) test -run '^$$' -bench 'Append|Checkpoint|Events' ./schedd/journal
	$(GO) test -run '^$$' -bench Grants ./internal/replica
	TMPDIR=/var/tmp $(GO) test -run '^$$' -bench Submit ./schedd/cellqueue
	$(GO) test -run '^$$' -bench Failover -benchtime 11x ./internal/replica
	$(GO) test -run '^$$' -bench . -benchtime 3s ./internal/accounting/store
	$(GO) test -run '^$$' -bench Replay ./internal/sim
	$(GO) test -run '^$$' -bench Events ./internal/sim/pool
	$(GO) test -run '^$$' -bench Build -benchtime 5x ./internal/image
	$(GO) test -run '^$$' -bench . -benchtime 1x ./internal/submit/dag
	$(GO) test -run '^$$' -bench . -benchtime 3x ./internal/submit/flowplan
	python3 python/bench.py bin/roost

.PHONY: bench-peers
bench-peers: build ## measure HTCondor, Slurm and Grid Engine beside Roost: installs them into a chroot (Debian, as root); FLAGS=-quick to try
	@bench/peers/install.sh
	$(GO) run ./bench/peers $(FLAGS)

.PHONY: clients
clients: build ## run Snakemake on a pool, in each of the ways in which it drives PBS, and Open MPI (Debian: installs them)
	@scripts/clients.sh

.PHONY: fuzz
fuzz: ## run each fuzz test for FUZZTIME (20s)
	@scripts/fuzz.sh $(or $(FUZZTIME),20s)

.PHONY: generate
generate: ## write the Go code of the protobuf messages anew
	@scripts/setup.sh go generate
	@scripts/generate.sh internal/wire

.PHONY: install
install: build ## copy programs, manual, completions, units and samples below $(DESTDIR)$(PREFIX)
	@DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' PBS='$(PBS)' PBS_LOCAL='$(PBS_LOCAL)' SLURM='$(SLURM)' SLURM_LOCAL='$(SLURM_LOCAL)' scripts/install.sh

# scripts/package.sh says what it needs and what can be set.
PACKAGE = PBS='$(PBS)' PBS_LOCAL='$(PBS_LOCAL)' SLURM='$(SLURM)' SLURM_LOCAL='$(SLURM_LOCAL)' scripts/package.sh

.PHONY: deb rpm tar image packages
deb: ## build Debian packages into build/dist/, for GOARCH
	@scripts/setup.sh go pam
	@$(PACKAGE) deb
rpm: ## build RPM packages into build/dist/, for GOARCH
	@scripts/setup.sh go pam
	@$(PACKAGE) rpm
tar: ## build an archive of programs, manual and samples into build/dist/, for GOARCH
	@scripts/setup.sh go pam
	@$(PACKAGE) tar
image: ## build a container image of a central manager into build/dist/, an OCI layout, for GOARCH
	@scripts/setup.sh go
	@$(PACKAGE) image
packages: ## build all of these, with checksums and a list of the modules in them
	@scripts/setup.sh go pam
	@$(PACKAGE) deb rpm tar

.PHONY: test-packages
test-packages: ## install, upgrade, remove and purge the Debian packages in bare Debian 12 and 13 (Debian, root)
	@scripts/setup.sh go pam
	@PACKAGE="$(PACKAGE)" scripts/test-packages.sh

.PHONY: faults
faults: build ## break SEEDS (10000) simulated pools, and hold them against what Roost promises
	bin/roost sim faults --seeds $(or $(SEEDS),10000)

.PHONY: fault-plants
fault-plants: ## prove that the simulator finds each bug that is planted, one for each promise at least
	$(GO) test -tags 'plants,$(LEAN)' -count 1 -timeout 2h -v -run Mutants ./internal/sim/fuzz ./internal/cli/sim ./schedd/queue ./schedd/feed \
		./internal/accounting/store ./internal/provision/plan ./negotiator/match ./schedd

.PHONY: clean
clean: ## remove bin/ and build/
	rm -rf bin build
