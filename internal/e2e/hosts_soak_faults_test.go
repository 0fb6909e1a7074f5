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

	"github.com/roost-batch/roost/internal/fault"
)

// breakage is one fault: what happens to whom, for how long.
type breakage struct {
	number int
	kind   string
	host   string
	other  string // the other end
	what   string // the role of a daemon, or the name of an instant
	length time.Duration
	loss   float64
	delay  time.Duration
	chance float64 // which of those that are there
	run    func(context.Context, *breakage)
}

func (b *breakage) String() string {
	text := fmt.Sprintf("#%d %s: %s", b.number, b.kind, b.host)
	for _, more := range []string{b.other, b.what} {
		if more != "" {
			text += " " + more
		}
	}
	if b.length > 0 {
		text += fmt.Sprintf(" for %v", b.length.Round(time.Millisecond))
	}
	if b.delay > 0 {
		text += fmt.Sprintf(", %.0f of 100 lost, up to %v late", 100*b.loss, b.delay)
	}
	return text
}

// draw draws the next fault. All that it depends on is what was drawn before.
func (s *soak) draw(rng *rand.Rand, number int) *breakage {
	all := slices.Concat(soakCentrals, soakSubmits, soakServers, []string{s.desk.name})
	of := func(hosts []string) string { return hosts[rng.IntN(len(hosts))] }
	b := &breakage{number: number, length: between(rng, 200, 6000), chance: rng.Float64(), loss: 0.02 + 0.2*rng.Float64(), delay: between(rng, 5, 300)}
	long := between(rng, 12000, 16000) // more than a lease
	outlast := rng.IntN(5) == 0
	b.host, b.other = of(all), of(all)
	daemons := s.roles(b.host)
	b.what = of(daemons)
	kinds := []struct {
		weight int
		kind   string
		run    func(context.Context, *breakage)
	}{
		{20, "daemon killed", s.daemonKilled}, {8, "starter killed", s.starterKilled}, {14, "crash at a named instant", s.crashAt}, {4, "power lost", s.powerLost},
		{3, "master killed", s.masterKilled}, {14, "daemon stopped", s.daemonStopped}, {4, "machine asleep", s.machineAsleep}, {7, "cable cut", s.cableCut},
		{8, "cable cut one way", s.cutOneWay}, {6, "cable cut between two", s.cutBetween}, {4, "cable flaps", s.cableFlaps},
		{9, "frames lost, late, out of order and doubled", s.badWeather}, {9, "disk full", s.diskFull}, {5, "owner back", s.ownerBack},
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
		b.host, b.what = of(append([]string{s.desk.name}, soakServers...)), ""
	case "crash at a named instant":
		b.what = of(fault.Names())
		switch role, _, _ := strings.Cut(b.what, "."); role {
		case "schedd":
			b.host = of(soakSubmits)
		case "negotiator":
			b.host = of(soakCentrals)
		default:
			b.host = of(soakServers)
		}
	case "disk full":
		b.host, b.what = of(all[:len(all)-1]), ""
	case "owner back":
		b.host, b.what = s.desk.name, ""
	case "daemon killed":
		b.length = 0
	case "daemon stopped":
	default:
		b.what = ""
	}
	if b.kind != "cable cut between two" {
		b.other = ""
	}
	if outlast && slices.Contains([]string{"daemon stopped", "machine asleep", "cable cut", "cable cut one way", "cable cut between two"}, b.kind) {
		b.kind, b.length = b.kind+" for more than a lease", long
	}
	if !strings.HasPrefix(b.kind, "frames lost") {
		b.loss, b.delay = 0, 0
	}
	return b
}

// roles are the daemons of a host.
func (s *soak) roles(host string) []string {
	switch n := s.nodes[host]; {
	case n.node.Negotiator != nil:
		return []string{"collector", "negotiator"}
	case n.node.Schedd != nil:
		return []string{"schedd"}
	case n.private:
		return []string{"startd", "guard"}
	}
	return []string{"startd"}
}

// harm has faults until the round is over, and returns when the last of them is.
func (s *soak) harm(ctx context.Context, rng *rand.Rand) {
	var running sync.WaitGroup
	defer func() {
		running.Wait()
		points, _ := filepath.Glob(filepath.Join(s.points, "*", "*"))
		for _, path := range points { // nobody has passed there
			os.Remove(path)
		}
	}()
	for number := 1; ; number++ {
		rest(ctx, between(rng, 500, 3500))
		b := s.draw(rng, number)
		if ctx.Err() != nil || s.Failed() {
			return
		}
		running.Go(func() {
			if ofProcesses := !strings.HasPrefix(b.kind, "cable") && !strings.HasPrefix(b.kind, "frames"); ofProcesses {
				if !s.take(b.host) {
					return
				}
				defer s.give(b.host)
			}
			s.did(b)
			b.run(ctx, b)
			s.write("%s: over", b)
		})
	}
}

// absence is some time in which a host heard and said nothing: no lease of what it runs, or of what it has run elsewhere, was made longer.
type absence struct {
	from, to time.Time
	host     string
	asleep   bool // nothing of it ran at all
	full     bool // it is its disk alone that was not there: nothing could be written
}

func (s *soak) note(a absence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.absences = append(s.absences, a)
}

// take has the processes of a host dealt with by one fault at a time.
func (s *soak) take(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[host] {
		s.skipped++
		return false
	}
	s.busy[host] = true
	return true
}

func (s *soak) give(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy[host] = false
}

func (s *soak) did(b *breakage) {
	s.write("%s", b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[b.kind]++
}

// process is that of a daemon of a host, 0 while it has none. A number in the master's notes may be another's by now.
func (s *soak) process(host, role string) int {
	pid := s.nodes[host].daemon(role)
	if args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); pid > 1 && strings.Contains(string(args), s.nodes[host].dir+".hcl") {
		return pid
	}
	return 0
}

func (s *soak) daemonKilled(_ context.Context, b *breakage) { kill(s.process(b.host, b.what)) }

func (s *soak) starterKilled(_ context.Context, b *breakage) {
	all := (&saves{hosts: s.hosts}).starters(b.host)
	if len(all) > 0 {
		kill(all[int(b.chance*float64(len(all)))])
	}
}

// crashAt has a daemon or starter kill itself when it passes a named instant.
func (s *soak) crashAt(ctx context.Context, b *breakage) {
	path := filepath.Join(s.points, b.host, b.what)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		s.Error(err)
	}
	rest(ctx, b.length)
	os.Remove(path)
}

// powerLost ends all that runs on a host, and starts it a while later.
func (s *soak) powerLost(ctx context.Context, b *breakage) {
	n := s.nodes[b.host]
	n.end()
	rest(ctx, b.length)
	s.start(n)
}

// masterKilled ends a master with SIGKILL, and its daemons with it; what runs under starters lives on.
func (s *soak) masterKilled(ctx context.Context, b *breakage) {
	n := s.nodes[b.host]
	n.kill()
	rest(ctx, b.length)
	s.start(n)
}

// start starts a host again. What it printed to the terminal before is in nobody's interest any more.
func (s *soak) start(n *host) {
	n.mu.Lock()
	if n.output.Len() > 1<<20 {
		n.output.Reset()
	}
	n.mu.Unlock()
	n.start()
}

// daemonStopped has a daemon stand still for a while.
func (s *soak) daemonStopped(ctx context.Context, b *breakage) {
	pid := s.process(b.host, b.what)
	if pid == 0 {
		return
	}
	s.standStill(ctx, b, pid)
}

func (s *soak) standStill(ctx context.Context, b *breakage, pids ...int) {
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGSTOP)
	}
	from := time.Now()
	rest(ctx, b.length)
	if b.what == "schedd" {
		s.note(absence{from: from, to: time.Now(), host: b.host})
	}
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGCONT)
	}
}

// machineAsleep has everything on a host stand still, from one moment to the next for all that runs there: the clocks go on, and nothing else.
func (s *soak) machineAsleep(ctx context.Context, b *breakage) {
	from := time.Now()
	s.standStill(ctx, b, processes(s.net.space(b.host))...)
	s.note(absence{from: from, to: time.Now(), host: b.host, asleep: true})
}

// storm lets weather pass.
func (s *soak) storm(ctx context.Context, b *breakage, all ...*weather) {
	for _, w := range all {
		s.ether().begin(w)
	}
	rest(ctx, b.length)
	for _, w := range all {
		s.ether().end(w)
	}
}

func (s *soak) cableCut(ctx context.Context, b *breakage) {
	out, in := &weather{from: []string{b.host}, loss: 1}, &weather{to: []string{b.host}, loss: 1}
	s.ether().begin(out)
	s.ether().begin(in)
	from := time.Now()
	rest(ctx, b.length)
	s.note(absence{from: from, to: time.Now(), host: b.host})
	s.ether().end(out)
	s.ether().end(in)
}

func (s *soak) cutOneWay(ctx context.Context, b *breakage) {
	if b.chance < 0.5 {
		s.storm(ctx, b, &weather{from: []string{b.host}, loss: 1})
	} else {
		s.storm(ctx, b, &weather{to: []string{b.host}, loss: 1})
	}
}

func (s *soak) cutBetween(ctx context.Context, b *breakage) {
	s.storm(ctx, b, &weather{from: []string{b.host}, to: []string{b.other}, loss: 1}, &weather{from: []string{b.other}, to: []string{b.host}, loss: 1})
}

func (s *soak) cableFlaps(ctx context.Context, b *breakage) {
	out, in := &weather{from: []string{b.host}, loss: 1}, &weather{to: []string{b.host}, loss: 1}
	for until := time.Now().Add(b.length); time.Now().Before(until) && ctx.Err() == nil; {
		part := *b
		part.length = 300 * time.Millisecond
		s.storm(ctx, &part, out, in)
		rest(ctx, 300*time.Millisecond)
	}
}

func (s *soak) badWeather(ctx context.Context, b *breakage) {
	half := weather{loss: b.loss, doubled: b.loss / 2, delay: b.delay / 2, spread: b.delay/2 + 1}
	out, in := half, half
	out.from, in.to = []string{b.host}, []string{b.host}
	s.storm(ctx, b, &out, &in)
}

func (s *soak) diskFull(ctx context.Context, b *breakage) {
	free, err := fillUp(s.disk(b.host))
	if err != nil {
		s.Error(err)
		return
	}
	from := time.Now()
	rest(ctx, b.length)
	if err := free(); err != nil {
		s.Error(err)
	}
	s.note(absence{from: from, to: time.Now(), host: b.host, full: true})
}

// ownerBack has the desktop's owner type for a while.
func (s *soak) ownerBack(ctx context.Context, b *breakage) {
	t, err := OpenTerminal(s.desk.cmd.Process.Pid)
	if err != nil {
		s.write("%s: %v", b, err) // its master is just starting
		return
	}
	defer t.Close()
	for until := time.Now().Add(b.length); time.Now().Before(until) && ctx.Err() == nil; rest(ctx, 300*time.Millisecond) {
		t.Type()
	}
}
