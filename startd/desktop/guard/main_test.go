package guard

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

// fakeSource is a source that publishes the test's readings.
type fakeSource struct{ see chan idle.SourceReading }

func newFakeSource() *fakeSource { return &fakeSource{make(chan idle.SourceReading, 1)} }

func (f *fakeSource) Name() string { return "keys" }

func (f *fakeSource) Run(ctx context.Context, tell func(idle.SourceReading)) {
	for {
		select {
		case s := <-f.see:
			s.Name, s.Health, s.Coverage = f.Name(), idle.Healthy, idle.Hardware
			tell(s)
		case <-ctx.Done():
			return
		}
	}
}

// testGuard returns a guard of a node with a desktop startd a and a server startd b. It
// uses the given sources, and the test starts its loop.
func testGuard(t *testing.T, dir string, sources ...idle.Source) *daemonContext {
	t.Helper()
	node := &config.Node{Name: "n", Dir: dir, Owner: config.OwnerFile{File: filepath.Join(dir, "owner.hcl")},
		Startds: []config.StartdSettings{
			{Name: "a", Policy: config.OwnerPolicy{Preset: "desktop"}},
			{Name: "b", Policy: config.OwnerPolicy{Preset: "server"}},
		}}
	if err := os.MkdirAll(node.OwnerDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	g, err := openGuard(node, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	g.sources = sources
	g.state.sourceOrder = nil
	for _, s := range sources {
		g.state.sourceOrder = append(g.state.sourceOrder, s.Name())
	}
	return g
}

// run runs the loop until stop is called.
func (g *daemonContext) run(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); g.loop(ctx) }()
	return func() { cancel(); <-done }
}

// fakeFreezer records what it was told to freeze.
type fakeFreezer struct {
	mu     sync.Mutex
	frozen []string
}

func (f *fakeFreezer) freeze(dirs []cgroup.TaskDir) (frozen []string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range dirs {
		frozen = append(frozen, string(d))
	}
	f.frozen = append(f.frozen, frozen...)
	return frozen, nil
}

func (f *fakeFreezer) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.frozen)
}

// fakeStartd is the other end of Watch.
type fakeStartd struct {
	grpc.ServerStream
	ctx          context.Context
	cancel       context.CancelFunc
	reports      chan *wire.GuardReport
	observations chan *wire.GuardSigns
	done         chan struct{}
	name         string
	groups       []string
}

// connect connects a startd with those task directories to the guard.
func connect(t *testing.T, g *daemonContext, name string, groups ...string) *fakeStartd {
	ctx, cancel := context.WithCancel(t.Context())
	f := &fakeStartd{ctx: ctx, cancel: cancel, reports: make(chan *wire.GuardReport, 1),
		observations: make(chan *wire.GuardSigns, 64), done: make(chan struct{}), name: name, groups: groups}
	f.act(0)
	go func() { defer close(f.done); g.Watch(f) }()
	return f
}

func (f *fakeStartd) act(sequence uint64) {
	f.reports <- &wire.GuardReport{Startd: f.name, Acted: sequence, TaskGroups: f.groups,
		Tenants: []*wire.Tenant{{Task: "1.n", State: "running"}}}
}

func (f *fakeStartd) Context() context.Context { return f.ctx }

func (f *fakeStartd) Send(s *wire.GuardSigns) error {
	f.observations <- s
	return nil
}

func (f *fakeStartd) Recv() (*wire.GuardReport, error) {
	select {
	case r := <-f.reports:
		return r, nil
	case <-f.ctx.Done():
		return nil, f.ctx.Err()
	}
}

// disconnect breaks the connection.
func (f *fakeStartd) disconnect() { f.cancel(); <-f.done }

// urgent waits for urgent observations.
func (f *fakeStartd) urgent() *wire.GuardSigns {
	for s := range f.observations {
		if s.GetUrgent() {
			return s
		}
	}
	return nil
}

// taskDir makes a directory that looks like that of a task.
func taskDir(t *testing.T, dir, name string) string {
	d := filepath.Join(dir, "groups", name)
	if err := os.MkdirAll(d, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d, "cgroup.procs"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return d
}
