package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/master"
	"github.com/roost-batch/roost/internal/wire"
)

// upgradePool is a pool of nine hosts, each with programs of its own. They are replaced
// host by host while jobs run.
type upgradePool struct {
	*soakPool
	old, new string // directories of programs

	longestSubmit map[string]time.Duration // by submit node: of all submits until now
	longestReload time.Duration
	probes        int
	replacing     atomic.Value // string: the host whose programs are being replaced
}

// submitOutageLimit is how long a submit node may accept no job while it is upgraded.
const submitOutageLimit = 2 * time.Second

// maxUpgradeRound bounds a round, for the case that an upgrade hangs.
const maxUpgradeRound = 5 * time.Minute

// TestUpgrade upgrades a busy pool host by host in a random order. The next round goes
// back to the older programs in the same way, which one release permits. After each round
// all tasks must end, and what was promised is audited as TestSoak does. No attempt
// may be lost, and each submit node may accept no job for two seconds at most.
//
// ROOST_UPGRADE_ROUNDS says how many rounds there are, 2 unless set, and ROOST_OLD where
// the older programs are (scripts/old-release.sh). Without them the hosts change between
// two copies of the same programs.
func TestUpgrade(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("ROOST_UPGRADE_ROUNDS"), "2"))
	if err != nil || rounds < 1 {
		t.Fatalf("ROOST_UPGRADE_ROUNDS is %q, and no number of rounds", os.Getenv("ROOST_UPGRADE_ROUNDS"))
	}
	u := startUpgradePool(t)
	defer u.saveEvidence()
	for n := 1; n <= rounds && !t.Failed(); n++ {
		to := u.new
		if n%2 == 0 {
			to = u.old
		}
		probing, stopProbes := context.WithCancel(t.Context())
		var probes sync.WaitGroup
		for _, name := range soakSubmits {
			probes.Go(func() { u.probeSubmits(probing, name, n) })
		}
		u.runRound(t.Context(), n, maxUpgradeRound, func(ctx context.Context, rng *rand.Rand) {
			u.replaceAll(ctx, rng, to)
			stopProbes()
		})
		stopProbes()
		probes.Wait()
		u.checkAttempts()
		u.checkProbes(n)
	}
	u.checkOutage()
	u.finishSoak()
	u.printLine("seed %d: %d rounds, %d tasks in %d jobs, %d attempts; longest reload %v, longest submits %v",
		u.seed, u.totals.rounds, u.totals.tasks, u.totals.jobs, u.totals.attempts, u.longestReload, u.longestSubmit)
}

func startUpgradePool(t *testing.T) *upgradePool {
	u := &upgradePool{soakPool: makeSoak(t, hostPoolOptions{sharesCgroups: true}),
		longestSubmit: map[string]time.Duration{}}
	u.fewSteps = true
	u.replacing.Store("")
	u.old, u.new = filepath.Join(u.dir, "old"), filepath.Join(u.dir, "new")
	older := cmp.Or(os.Getenv("ROOST_OLD"), filepath.Dir(u.roost))
	if older == filepath.Dir(u.roost) {
		u.printLine("there are no older programs: the hosts change between two copies of the same")
	}
	copyPrograms(t, older, u.old)
	copyPrograms(t, filepath.Dir(u.roost), u.new)
	for name, n := range u.nodes {
		n.programs = filepath.Join(u.dir, "programs-"+name)
		u.installPrograms(n, u.old)
	}
	u.startAll()
	return u
}

// upgradePrograms are the programs of a host.
var upgradePrograms = []string{"roost", "roost-q", "roost-daemon", "roost-negotiator", "roost-node", "roost-starter",
	"roost-ranks"}

func copyPrograms(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range upgradePrograms {
		if err := copyProgram(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// installPrograms puts programs in the place of those of a host, as a package does.
func (u *upgradePool) installPrograms(n *testHost, from string) {
	if err := os.MkdirAll(n.programs, 0o755); err != nil {
		u.Error(err)
	}
	for _, name := range upgradePrograms {
		to := filepath.Join(n.programs, name)
		if err := os.Link(filepath.Join(from, name), to+".new"); err != nil {
			u.Error(err)
		}
		if err := os.Rename(to+".new", to); err != nil {
			u.Error(err)
		}
	}
}

// replaceAll replaces the programs of all hosts, one host after another.
func (u *upgradePool) replaceAll(ctx context.Context, rng *rand.Rand, programs string) {
	names := slices.Sorted(maps.Keys(u.nodes))
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	waitReal(ctx, time.Second) // the users have jobs
	for _, name := range names {
		if ctx.Err() != nil || u.Failed() {
			return
		}
		u.replaceOne(ctx, u.nodes[name], programs)
		waitReal(ctx, randomMillis(rng, 0, 1500))
	}
	waitReal(ctx, time.Second)
}

// replaceOne replaces the programs of a host, and waits until its daemons serve. After a
// central manager it waits until all of them vote, too.
func (u *upgradePool) replaceOne(ctx context.Context, n *testHost, programs string) {
	u.replacing.Store(n.name)
	defer u.replacing.Store("")
	u.installPrograms(n, programs)
	began := time.Now()
	out, err := exec.CommandContext(ctx, filepath.Join(n.programs, "roost"), "reload", "--config", n.dir+".hcl").
		CombinedOutput()
	took := time.Since(began).Round(time.Millisecond)
	if err != nil {
		u.Errorf("%s: roost reload: %v\n%s\n%s", n.name, err, out, n.logText())
		return
	}
	u.logLine("%s has the programs in %s after %v", n.name, filepath.Base(programs), took)
	u.longestReload = max(u.longestReload, took)
	u.checkPrograms(n, programs)
	if n.node.Negotiator == nil {
		return
	}
	if !pollUntil(ctx, scaledTimeout(), func() bool {
		s := u.status("central1")
		return s.Spare == 1 && len(s.Members) == 3 && s.leader() != ""
	}) {
		u.Errorf("%s: after its upgrade the central managers do not all vote", n.name)
	}
}

// checkPrograms checks that the master and all daemons of a host run the programs of a
// directory.
func (u *upgradePool) checkPrograms(n *testHost, programs string) {
	state, running, err := master.ReadState(n.dir)
	if err != nil || !running {
		u.Errorf("%s: no master runs after the upgrade (%v)", n.name, err)
		return
	}
	pids := map[string]int{"master": state.PID}
	for _, d := range state.Daemons {
		pids[d.Role] = d.PID
	}
	for role, pid := range pids {
		exe := fmt.Sprintf("/proc/%d/exe", pid)
		running, err := os.Stat(exe)
		if err != nil {
			u.Errorf("%s: %s: %v", n.name, role, err)
			continue
		}
		if !slices.ContainsFunc(upgradePrograms, func(name string) bool {
			file, err := os.Stat(filepath.Join(programs, name))
			return err == nil && os.SameFile(file, running)
		}) {
			path, _ := os.Readlink(exe)
			u.Errorf("%s: %s still runs %s after the upgrade", n.name, role, path)
		}
	}
}

// probeSubmits submits held jobs at a submit node as a user does. While the node is
// upgraded there is no pause between them. It records how long the longest takes.
func (u *upgradePool) probeSubmits(ctx context.Context, at string, round int) {
	who := u.users[0]
	path := filepath.Join(who.home, "probe.hcl")
	if err := os.WriteFile(path, []byte("job \"probe\" {\n  command = [\"true\"]\n}\n"), 0o644); err != nil {
		u.Error(err)
	}
	for i := 0; ctx.Err() == nil && !u.Failed(); i++ {
		key := fmt.Sprintf("probe-%s-%d-%d", at, round, i)
		began := time.Now()
		// a probe that has begun ends, so that its id is known
		out, errs, code := u.runCommand(u.Context(), who, at, "submit", "--hold", "--json", "--key", key, path)
		took := time.Since(began).Round(time.Millisecond)
		var reply struct{ Jobs []struct{ ID string } }
		if code != 0 || json.Unmarshal([]byte(out), &reply) != nil || len(reply.Jobs) != 1 {
			u.Errorf("%s: a submit fails during the upgrade after %v: exit %d: %s", at, took, code, errs)
			return
		}
		u.mu.Lock()
		u.probes++
		if took > u.longestSubmit[at] {
			u.longestSubmit[at] = took
			u.mu.Unlock()
			u.logLine("a submit at %s takes %v", at, took)
		} else {
			u.mu.Unlock()
		}
		if u.replacing.Load() != at { // each probe takes 20 ms of a core
			waitReal(ctx, 250*time.Millisecond)
		}
	}
}

// checkProbes checks that each probe of a round is one held job (P1, P2), and removes
// them.
func (u *upgradePool) checkProbes(round int) {
	if u.Failed() {
		return
	}
	found := 0
	for _, name := range soakSubmits {
		rows, err := u.queryRows(u.clients[name], &wire.QueryRequest{})
		if err != nil {
			u.Errorf("%s: %v", name, err)
		}
		var ids []string
		for _, row := range rows {
			if row.Name == "probe" {
				ids = append(ids, row.Id)
			}
		}
		found += len(ids)
		if _, err := u.clients[name].Act(u.Context(), &wire.ActRequest{Verb: wire.ActRequest_REMOVE,
			Selection: &wire.Selection{Selectors: ids}}); err != nil {
			u.Errorf("%s: %v", name, err)
		}
	}
	if found != u.probes {
		u.Errorf("P1, P2: round %d: %d submits were acknowledged, and there are %d jobs of them", round, u.probes,
			found)
	}
	u.totals.jobs += found
	u.probes = 0
}

// checkAttempts checks that no attempt of the round whose processes ran was lost. One
// that was sent to a startd in the moment of its end may be, and the next follows at
// once. A reload that took longer than the lease of a task, on a very busy machine, may
// lose all.
func (u *upgradePool) checkAttempts() {
	if u.Failed() || u.longestReload > shortLease {
		return
	}
	for _, w := range u.jobs {
		events, ran := u.jobEvents(u.clients[w.submitNode], w.id), map[attemptRecord]bool{}
		for _, e := range events {
			a := attemptOfEvent(e)
			_, seen := u.lastSeen[heartbeatSpan{w.key, a}]
			switch e.GetWhat() {
			case "started":
				ran[a] = true
			case "lost":
				if ran[a] || seen {
					u.Errorf("%s (%s) lost an attempt in the upgrade\n%s", w.id, w.key, jobLogText(events))
				}
			}
		}
	}
}

// checkOutage checks how long the longest submit has taken.
func (u *upgradePool) checkOutage() {
	limit := time.Duration(float64(submitOutageLimit) * scaledTimeout().Minutes())
	for name, took := range u.longestSubmit {
		if took > limit {
			u.Errorf("%s: a submit took %v during the upgrade, at most %v", name, took, limit)
		}
	}
}
