package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/roost-batch/roost/internal/failpoint"
)

// soakFault is one fault: its kind, its target and its duration.
type soakFault struct {
	number   int
	kind     string
	host     string
	other    string // the other end
	target   string // role of a daemon, or name of a failpoint
	duration time.Duration
	loss     float64
	delay    time.Duration
	chance   float64 // selects one of those that exist
	run      func(context.Context, *soakFault)
}

func (b *soakFault) String() string {
	text := fmt.Sprintf("#%d %s: %s", b.number, b.kind, b.host)
	for _, more := range []string{b.other, b.target} {
		if more != "" {
			text += " " + more
		}
	}
	if b.duration > 0 {
		text += fmt.Sprintf(" for %v", b.duration.Round(time.Millisecond))
	}
	if b.delay > 0 {
		text += fmt.Sprintf(", %.0f of 100 lost, up to %v late", 100*b.loss, b.delay)
	}
	return text
}

// drawFault draws the next fault. It depends only on what was drawn before.
func (s *soakPool) drawFault(rng *rand.Rand, number int) *soakFault {
	all := slices.Concat(soakCentrals, soakSubmits, soakServers, []string{s.desk.name})
	of := func(hosts []string) string { return hosts[rng.IntN(len(hosts))] }
	b := &soakFault{number: number, duration: randomMillis(rng, 200, 6000), chance: rng.Float64(),
		loss: 0.02 + 0.2*rng.Float64(), delay: randomMillis(rng, 5, 300)}
	long := randomMillis(rng, 12000, 16000) // more than a lease
	outlast := rng.IntN(5) == 0
	b.host, b.other = of(all), of(all)
	daemons := s.daemonRoles(b.host)
	b.target = of(daemons)
	kinds := []struct {
		weight int
		kind   string
		run    func(context.Context, *soakFault)
	}{
		{20, "daemon killed", s.daemonKilled}, {8, "starter killed", s.starterKilled},
		{14, "crash at a named instant", s.crashAt}, {4, "power lost", s.powerLost},
		{3, "master killed", s.masterKilled}, {14, "daemon stopped", s.daemonStopped},
		{4, "machine asleep", s.machineAsleep}, {7, "cable cut", s.cableCut},
		{8, "cable cut one way", s.cutOneWay}, {6, "cable cut between two", s.cutBetween},
		{4, "cable flaps", s.cableFlaps},
		{9, "frames lost, late, out of order and doubled", s.degradeLink}, {9, "disk full", s.diskFull},
		{5, "owner back", s.ownerBack},
	}
	sum := 0
	for _, k := range kinds {
		sum += k.weight
	}
	at := rng.IntN(sum)
	for _, k := range kinds {
		if at -= k.weight; at < 0 {
			b.kind, b.run = k.kind, k.run
			break
		}
	}
	switch b.kind {
	case "starter killed":
		b.host, b.target = of(append([]string{s.desk.name}, soakServers...)), ""
	case "crash at a named instant":
		b.target = of(failpoint.Names())
		switch role, _, _ := strings.Cut(b.target, "."); role {
		case "schedd":
			b.host = of(soakSubmits)
		case "negotiator":
			b.host = of(soakCentrals)
		default:
			b.host = of(soakServers)
		}
	case "disk full":
		b.host, b.target = of(all[:len(all)-1]), ""
	case "owner back":
		b.host, b.target = s.desk.name, ""
	case "daemon killed":
		b.duration = 0
	case "daemon stopped":
	default:
		b.target = ""
	}
	if b.kind != "cable cut between two" {
		b.other = ""
	}
	if outlast && slices.Contains([]string{"daemon stopped", "machine asleep", "cable cut", "cable cut one way",
		"cable cut between two"}, b.kind) {
		b.kind, b.duration = b.kind+" for more than a lease", long
	}
	if !strings.HasPrefix(b.kind, "frames lost") {
		b.loss, b.delay = 0, 0
	}
	return b
}

// daemonRoles returns the daemons of a host.
func (s *soakPool) daemonRoles(host string) []string {
	switch n := s.nodes[host]; {
	case n.node.Negotiator != nil:
		return []string{"collector", "negotiator"}
	case n.node.Schedd != nil:
		return []string{"schedd"}
	case n.onlyTerminals:
		return []string{"startd", "guard"}
	}
	return []string{"startd"}
}

// runFaults injects faults until the round is over, and returns when the last of them is.
func (s *soakPool) runFaults(ctx context.Context, rng *rand.Rand) {
	var running sync.WaitGroup
	defer func() {
		running.Wait()
		points, _ := filepath.Glob(filepath.Join(s.failpointDir, "*", "*"))
		for _, path := range points { // no daemon has passed it
			os.Remove(path)
		}
	}()
	for number := 1; ; number++ {
		waitReal(ctx, randomMillis(rng, 500, 3500))
		b := s.drawFault(rng, number)
		if ctx.Err() != nil || s.Failed() {
			return
		}
		running.Go(func() {
			if ofProcesses := !strings.HasPrefix(b.kind, "cable") && !strings.HasPrefix(b.kind, "frames"); ofProcesses {
				if !s.lockHost(b.host) {
					return
				}
				defer s.unlockHost(b.host)
			}
			s.countFault(b)
			b.run(ctx, b)
			s.logLine("%s: over", b)
		})
	}
}

// hostSilence is a time in which a host was unreachable. No lease of what it runs, or of
// what it has run elsewhere, was renewed.
type hostSilence struct {
	from, to  time.Time
	host      string
	wasAsleep bool // the whole host was suspended
	diskOnly  bool // only its disk failed: nothing could be written
}

func (s *soakPool) noteFault(a hostSilence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.absences = append(s.absences, a)
}

// lockHost lets only one fault at a time handle the processes of a host.
func (s *soakPool) lockHost(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lockedHosts[host] {
		s.skipped++
		return false
	}
	s.lockedHosts[host] = true
	return true
}

func (s *soakPool) unlockHost(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lockedHosts[host] = false
}

func (s *soakPool) countFault(b *soakFault) {
	s.logLine("%s", b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[b.kind]++
}

// daemonPID returns the process id of a host's daemon, 0 if there is none. It checks the
// id, since the one in the master's file may have been reused.
func (s *soakPool) daemonPID(host, role string) int {
	pid := s.nodes[host].daemonPID(role)
	if args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); pid > 1 &&
		strings.Contains(string(args), s.nodes[host].dir+".hcl") {
		return pid
	}
	return 0
}

func (s *soakPool) daemonKilled(_ context.Context, b *soakFault) {
	killProcess(s.daemonPID(b.host, b.target))
}

func (s *soakPool) starterKilled(_ context.Context, b *soakFault) {
	all := (&checkpointPool{hostPool: s.hostPool}).starters(b.host)
	if len(all) > 0 {
		killProcess(all[int(b.chance*float64(len(all)))])
	}
}

// crashAt lets a daemon or starter kill itself when it passes a failpoint.
func (s *soakPool) crashAt(ctx context.Context, b *soakFault) {
	path := filepath.Join(s.failpointDir, b.host, b.target)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		s.Error(err)
	}
	waitReal(ctx, b.duration)
	os.Remove(path)
}

// powerLost kills everything on a host, and starts it a while later.
func (s *soakPool) powerLost(ctx context.Context, b *soakFault) {
	n := s.nodes[b.host]
	n.endProcesses()
	waitReal(ctx, b.duration)
	s.startHost(n)
}

// masterKilled ends a master with SIGKILL, and its daemons with it. What runs under
// starters lives on.
func (s *soakPool) masterKilled(ctx context.Context, b *soakFault) {
	n := s.nodes[b.host]
	n.killMaster()
	waitReal(ctx, b.duration)
	s.startHost(n)
}

// startHost starts a host again. Its earlier terminal output is dropped if it is long.
func (s *soakPool) startHost(n *testHost) {
	n.mu.Lock()
	if n.output.Len() > 1<<20 {
		n.output.Reset()
	}
	n.mu.Unlock()
	n.start()
}

// daemonStopped stops a daemon for a while.
func (s *soakPool) daemonStopped(ctx context.Context, b *soakFault) {
	pid := s.daemonPID(b.host, b.target)
	if pid == 0 {
		return
	}
	s.freezeProcesses(ctx, b, pid)
}

func (s *soakPool) freezeProcesses(ctx context.Context, b *soakFault, pids ...int) {
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGSTOP)
	}
	from := time.Now()
	waitReal(ctx, b.duration)
	if b.target == "schedd" {
		s.noteFault(hostSilence{from: from, to: time.Now(), host: b.host})
	}
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGCONT)
	}
}

// machineAsleep stops everything on a host, which sees only that its clocks have gone on.
func (s *soakPool) machineAsleep(ctx context.Context, b *soakFault) {
	from := time.Now()
	s.freezeProcesses(ctx, b, namespaceProcesses(s.net.namespaceName(b.host))...)
	s.noteFault(hostSilence{from: from, to: time.Now(), host: b.host, wasAsleep: true})
}

// runLinkFault applies link faults for a while.
func (s *soakPool) runLinkFault(ctx context.Context, b *soakFault, all ...*linkFault) {
	for _, w := range all {
		s.newSwitch().setFault(w)
	}
	waitReal(ctx, b.duration)
	for _, w := range all {
		s.newSwitch().clearFault(w)
	}
}

func (s *soakPool) cableCut(ctx context.Context, b *soakFault) {
	out, in := &linkFault{from: []string{b.host}, loss: 1}, &linkFault{to: []string{b.host}, loss: 1}
	s.newSwitch().setFault(out)
	s.newSwitch().setFault(in)
	from := time.Now()
	waitReal(ctx, b.duration)
	s.noteFault(hostSilence{from: from, to: time.Now(), host: b.host})
	s.newSwitch().clearFault(out)
	s.newSwitch().clearFault(in)
}

func (s *soakPool) cutOneWay(ctx context.Context, b *soakFault) {
	if b.chance < 0.5 {
		s.runLinkFault(ctx, b, &linkFault{from: []string{b.host}, loss: 1})
	} else {
		s.runLinkFault(ctx, b, &linkFault{to: []string{b.host}, loss: 1})
	}
}

func (s *soakPool) cutBetween(ctx context.Context, b *soakFault) {
	s.runLinkFault(ctx, b, &linkFault{from: []string{b.host}, to: []string{b.other}, loss: 1},
		&linkFault{from: []string{b.other}, to: []string{b.host}, loss: 1})
}

func (s *soakPool) cableFlaps(ctx context.Context, b *soakFault) {
	out, in := &linkFault{from: []string{b.host}, loss: 1}, &linkFault{to: []string{b.host}, loss: 1}
	for until := time.Now().Add(b.duration); time.Now().Before(until) && ctx.Err() == nil; {
		part := *b
		part.duration = 300 * time.Millisecond
		s.runLinkFault(ctx, &part, out, in)
		waitReal(ctx, 300*time.Millisecond)
	}
}

func (s *soakPool) degradeLink(ctx context.Context, b *soakFault) {
	half := linkFault{loss: b.loss, doubled: b.loss / 2, delay: b.delay / 2, spread: b.delay/2 + 1}
	out, in := half, half
	out.from, in.to = []string{b.host}, []string{b.host}
	s.runLinkFault(ctx, b, &out, &in)
}

func (s *soakPool) diskFull(ctx context.Context, b *soakFault) {
	free, err := fillFileSystem(s.newDisk(b.host))
	if err != nil {
		s.Error(err)
		return
	}
	from := time.Now()
	waitReal(ctx, b.duration)
	if err := free(); err != nil {
		s.Error(err)
	}
	s.noteFault(hostSilence{from: from, to: time.Now(), host: b.host, diskOnly: true})
}

// ownerBack lets the desktop's owner type for a while.
func (s *soakPool) ownerBack(ctx context.Context, b *soakFault) {
	t, err := OpenTerminal(s.desk.cmd.Process.Pid)
	if err != nil {
		s.logLine("%s: %v", b, err) // its master is just starting
		return
	}
	defer t.Close()
	for until := time.Now().Add(b.duration); time.Now().Before(until) &&
		ctx.Err() == nil; waitReal(ctx, 300*time.Millisecond) {
		t.PressKey()
	}
}
