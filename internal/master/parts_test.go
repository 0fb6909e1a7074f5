package master

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
)

func TestBackoff(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name   string
		served []time.Duration
		want   []time.Duration
	}{
		{"at once the first time", []time.Duration{0}, []time.Duration{0}},
		{"then longer and longer", make([]time.Duration, 10),
			[]time.Duration{0, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 2 * time.Second, 2 * time.Second,
				2 * time.Second, 2 * time.Second}},
		{"until it recovers", []time.Duration{0, 0, 0, recoveryTime, 0},
			[]time.Duration{0, 100 * ms, 200 * ms, 0, 100 * ms}},
		{"a short life is no recovery", []time.Duration{recoveryTime - 1, recoveryTime - 1},
			[]time.Duration{0, 100 * ms}},
	}
	for _, tt := range tests {
		var r restartBackoff
		var got []time.Duration
		for _, served := range tt.served {
			got = append(got, r.nextDelay(served))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	l, err := openLog(path, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		fmt.Fprintf(l, "line %d\n", i)
	}
	l.Close()
	for _, name := range []string{path, path + ".1"} {
		info, err := os.Stat(name)
		if err != nil || info.Size() > 1000 || info.Size() == 0 {
			t.Errorf("%s: got %v, %v", name, info, err)
		}
	}
	if text := read(t, path); !strings.HasSuffix(text, "line 999\n") {
		t.Errorf("got the end %q", text[max(len(text)-20, 0):])
	}
}

func TestLastLineRemembered(t *testing.T) {
	tests := []struct {
		name  string
		parts []string
		want  string
	}{
		{"the last line", []string{"one\ntwo\n"}, "two"},
		{"in pieces", []string{"on", "e\ntw", "o\n", "\n"}, "two"},
		{"without an end", []string{"one\n", "tw"}, "one"},
		{"nothing but a piece", []string{"tw"}, "tw"},
		{"a panic, not its stack", []string{"x\npanic: broken\n\ngoroutine 1 [running]:\nmain.main()\n"},
			"panic: broken"},
		{"a long line", []string{strings.Repeat("x", 5000) + "\n"}, strings.Repeat("x", maxLastLine)},
	}
	for _, tt := range tests {
		l, err := openLog(filepath.Join(t.TempDir(), "x.log"), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range tt.parts {
			fmt.Fprint(l, p)
		}
		if got := l.lastWords(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		if got := l.lastWords(); got != "" {
			t.Errorf("%s: then %q", tt.name, got)
		}
		l.Close()
	}
}

func TestShare(t *testing.T) {
	whole := roost.Resources{CPU: 8000, Memory: 16 * roost.GiB, Disk: 100 * roost.GiB}
	tests := []struct {
		name string
		opt  UpOptions
		want roost.Resources
	}{
		{"one node measures itself", UpOptions{Nodes: 1}, roost.Resources{}},
		{"one node, told", UpOptions{Nodes: 1, CPUs: 2500, Memory: roost.GiB},
			roost.Resources{CPU: 2500, Memory: roost.GiB}},
		{"two nodes", UpOptions{Nodes: 2}, roost.Resources{CPU: 4000, Memory: 8 * roost.GiB, Disk: 50 * roost.GiB}},
		{"more than there is", UpOptions{Nodes: 2, CPUs: 64000},
			roost.Resources{CPU: 32000, Memory: 8 * roost.GiB, Disk: 50 * roost.GiB}},
		{"more nodes than cores", UpOptions{Nodes: 16},
			roost.Resources{CPU: 1000, Memory: roost.GiB, Disk: 6400 * roost.MiB}},
	}
	for _, tt := range tests {
		if got := nodeResources(tt.opt, whole); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	got := daemonEnv([]string{"PATH=/bin", "SECRET=1", "ROOST_READY_FD=9", "ROOST_DEBUG=1", "GOMAXPROCS=2",
		"LD_PRELOAD=/x", "LC_ALL=C"})
	want := []string{"PATH=/bin", "ROOST_DEBUG=1", "GOMAXPROCS=2", "LC_ALL=C"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestReplacedScheddIsAwayLeast: the schedd stops after all others, and starts before
// them without waiting for any.
func TestReplacedScheddIsAwayLeast(t *testing.T) {
	node := &config.Node{Collector: &config.CollectorSettings{}, Negotiator: &config.NegotiatorSettings{},
		Schedd: &config.ScheddSettings{}, Startds: []config.StartdSettings{{Name: "n1"}}}
	m := &nodeMaster{stage: -1, log: slog.New(slog.DiscardHandler), children: childrenOf(node)}
	phases := func() (stopped []peer.Role) {
		for _, c := range m.children {
			if c.phase == exited {
				stopped = append(stopped, c.role)
			}
		}
		return stopped
	}
	var schedd, startd *childProcess
	for _, c := range m.children {
		switch c.role {
		case peer.Schedd:
			schedd = c
		case peer.Startd:
			startd = c
		}
	}
	m.replace("of a test") // no daemon has a process, so each is gone at once
	startd.phase = stopping
	m.stopReplacedSchedd()
	if slices.Contains(phases(), peer.Schedd) || m.isReplaceable() {
		t.Errorf("the schedd stops while a startd still does; stopped: %v", phases())
	}
	startd.phase = exited
	m.stopReplacedSchedd()
	if schedd.phase != exited || !m.isReplaceable() {
		t.Errorf("the schedd does not stop after the others; stopped: %v", phases())
	}

	next := &nodeMaster{children: childrenOf(node)}
	if c := next.children[0]; c.role == peer.Schedd {
		t.Fatal("the schedd comes first without a replacement")
	}
	next.startReplaced()
	if c := next.children[0]; c.role != peer.Schedd || !next.allServed(c.needs) {
		t.Errorf("%s comes first, and waits for %v", c.role, c.needs)
	}
}
