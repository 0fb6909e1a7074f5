package clitest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// FakeGuard is the guard of a machine on which two tasks run. Eve may decide nothing.
type FakeGuard struct {
	wire.UnimplementedGuardServer
	Refusal        bool // the caller may decide nothing
	PauseState     *wire.Pause
	Unavailable    string
	PresenceReport chan *wire.PresentRequest // gets the reports of agents; nil: they are dropped
}

// Serve starts the fake in a directory of its own, which it returns.
func (g *FakeGuard) Serve(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := rpc.Listen("unix:"+filepath.Join(dir, "run", "guard.sock"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	server := rpc.NewServer(nil, peer.MethodAccess())
	wire.RegisterGuardServer(server, g)
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-done })
	return dir
}

// Pause sets the pause, unless the fake refuses.
func (g *FakeGuard) Pause(_ context.Context, req *wire.PauseRequest) (*wire.OwnerReply, error) {
	if g.Refusal {
		return nil, fmt.Errorf("eve: %w: only who sits at this machine may", roost.PermissionDenied)
	}
	g.PauseState = &wire.Pause{Until: req.GetUntil(), By: "ann", Since: Noon.UnixNano(), Reason: req.GetReason()}
	return &wire.OwnerReply{Pause: g.PauseState, Frozen: 2, Took: int64(12300 * time.Microsecond)}, nil
}

// Resume ends the pause.
func (g *FakeGuard) Resume(context.Context, *wire.ResumeRequest) (*wire.OwnerReply, error) {
	g.PauseState = nil
	return &wire.OwnerReply{Frozen: 1}, nil
}

// Mine shows the two tasks and the sources of idleness.
func (g *FakeGuard) Mine(context.Context, *wire.MineRequest) (*wire.MineReply, error) {
	return &wire.MineReply{
		Policy: "desktop",
		Signs: &wire.GuardSigns{Pause: g.PauseState, Input: int64(boottime.Now() - 30*time.Minute - 30*time.Second),
			Sources: []*wire.IdleSource{
				{Name: "input devices", Health: wire.IdleSource_BROKEN,
					Text: "/dev/input/event3: permission denied; run roost guard as root", Hardware: true},
				{Name: "terminals", Health: wire.IdleSource_WELL, Text: "3, of which the kernel tells at once",
					Last: int64(boottime.Now() - 30*time.Minute - 30*time.Second)},
				{Name: "battery", Text: "none"},
			}},
		Startds: []*wire.GuardReport{{Startd: "n1", NotLent: g.Unavailable, Given: 5400, Interruptions: 2,
			WorstFreeze: int64(48 * time.Millisecond), Tenants: []*wire.Tenant{
				{Task: "7.pool", Owner: "bob", Name: "sweep", State: "running", MilliCpu: 1950, Memory: 512 << 20,
					Since: TimeBefore(time.Hour)},
				{Task: "9[3].pool", Owner: "e\x1bve", Name: "x", State: "suspended", Memory: 1 << 30,
					Since: TimeBefore(2 * time.Minute)},
			}}},
	}, nil
}

// Present passes a report on to whoever reads the channel.
func (g *FakeGuard) Present(_ context.Context, req *wire.PresentRequest) (*wire.PresentReply, error) {
	if g.PresenceReport != nil {
		g.PresenceReport <- req
	}
	return &wire.PresentReply{}, nil
}
