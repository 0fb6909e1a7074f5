package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/guard"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

// fakeGuard is the guard of a machine on which two tasks run. Eve may decide nothing.
type fakeGuard struct {
	wire.UnimplementedGuardServer
	refusal        bool
	pause          *wire.Pause
	unavailable    string
	presenceReport chan *wire.PresentRequest // nil: nobody looks at what agents say
}

func (g *fakeGuard) serve(t *testing.T) string {
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

func (g *fakeGuard) Pause(_ context.Context, req *wire.PauseRequest) (*wire.OwnerReply, error) {
	if g.refusal {
		return nil, fmt.Errorf("eve: %w: only who sits at this machine may", roost.PermissionDenied)
	}
	g.pause = &wire.Pause{Until: req.GetUntil(), By: "ann", Since: testNoon.UnixNano(), Reason: req.GetReason()}
	return &wire.OwnerReply{Pause: g.pause, Frozen: 2, Took: int64(12300 * time.Microsecond)}, nil
}

func (g *fakeGuard) Resume(context.Context, *wire.ResumeRequest) (*wire.OwnerReply, error) {
	g.pause = nil
	return &wire.OwnerReply{Frozen: 1}, nil
}

func (g *fakeGuard) Mine(context.Context, *wire.MineRequest) (*wire.MineReply, error) {
	return &wire.MineReply{
		Policy: "desktop",
		Signs: &wire.GuardSigns{Pause: g.pause, Input: int64(idle.Now() - 30*time.Minute - 30*time.Second),
			Sources: []*wire.IdleSource{
				{Name: "input devices", Health: wire.IdleSource_BROKEN,
					Text: "/dev/input/event3: permission denied; run roost guard as root", Hardware: true},
				{Name: "terminals", Health: wire.IdleSource_WELL, Text: "3, of which the kernel tells at once",
					Last: int64(idle.Now() - 30*time.Minute - 30*time.Second)},
				{Name: "battery", Text: "none"},
			}},
		Startds: []*wire.GuardReport{{Startd: "n1", NotLent: g.unavailable, Given: 5400, Interruptions: 2,
			WorstFreeze: int64(48 * time.Millisecond), Tenants: []*wire.Tenant{
				{Task: "7.pool", Owner: "bob", Name: "sweep", State: "running", MilliCpu: 1950, Memory: 512 << 20,
					Since: timeBefore(time.Hour)},
				{Task: "9[3].pool", Owner: "e\x1bve", Name: "x", State: "suspended", Memory: 1 << 30,
					Since: timeBefore(2 * time.Minute)},
			}}},
	}, nil
}

// TestOwnerCommands holds what the owner of a machine sees; testdata/owner.golden shows
// it.
func TestOwnerCommands(t *testing.T) {
	dir, refused := (&fakeGuard{}).serve(t), (&fakeGuard{refusal: true}).serve(t)
	var b strings.Builder
	left := (&fakeGuard{unavailable: "its owner left less than 1h0m0s ago"}).serve(t)
	unrequested := (&fakeGuard{unavailable: "its owner has paused it",
		pause: &wire.Pause{Reason: guard.NotAccepted}}).serve(t)
	for _, step := range []struct{ dir, line string }{
		{dir, "roost pause 1h"}, {dir, "roost pause until 18:00 --reason talk"},
		{dir, "roost pause until 08:00 --json"}, {dir, "roost mine"}, {dir, "roost pause for good"},
		{dir, "roost pause"},
		{dir, "roost resume"}, {dir, "roost resume --state idle"}, {dir, "roost mine"}, {refused, "roost pause 1h"},
		{dir, "roost pause 18:00"}, {dir, "roost pause until teatime"}, {dir, "roost pause until 2020-01-01"},
		{dir, "roost pause 0s"},
		{dir, "roost pause tomorrow"}, {left, "roost mine"}, {unrequested, "roost mine"},
	} {
		a, stdout, stderr := newTestApp(t, step.dir)
		code := a.Run(t.Context(), strings.Fields(step.line))
		fmt.Fprintf(&b, "$ %s\n%s", step.line, stdout)
		for _, l := range strings.SplitAfter(stderr.String(), "\n") {
			if l != "" {
				b.WriteString("! " + l)
			}
		}
		if code != 0 {
			fmt.Fprintf(&b, "[exit status %d]\n", code)
		}
		b.WriteString("\n")
	}
	compareGolden(t, "owner", b.String())
}

// TestPauseWithoutGuard: whose the node is pauses it all the same.
func TestPauseWithoutGuard(t *testing.T) {
	dir := t.TempDir()
	a, stdout, stderr := newTestApp(t, dir)
	if code := a.Run(t.Context(), []string{"roost", "pause", "for", "good"}); code != 0 ||
		!strings.Contains(stdout.String(), "without the guard") {
		t.Errorf("status %d, %s%s", code, stdout, stderr)
	}
	a, stdout, stderr = newTestApp(t, dir)
	if code := a.Run(t.Context(), []string{"roost", "mine"}); code != roost.Unavailable.ExitCode() ||
		!strings.Contains(stdout.String(), "paused for good") {
		t.Errorf("mine: status %d, %s%s", code, stdout, stderr)
	}
	a, stdout, stderr = newTestApp(t, dir)
	if code := a.Run(t.Context(), []string{"roost", "resume"}); code != 0 {
		t.Errorf("resume: status %d, %s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "owner", "pause.json")); err == nil {
		t.Error("the pause is still there")
	}
}

// TestUntilWhen holds what the words after "roost pause" mean, at noon of a Sunday.
func TestUntilWhen(t *testing.T) {
	for words, want := range map[string]string{
		"1h": "2026-03-01 13:00", "90m": "2026-03-01 13:30", "for 2d": "2026-03-03 12:00",
		"until 18:00": "2026-03-01 18:00", "until 12:00": "2026-03-02 12:00",
		"until 07:30": "2026-03-02 07:30", "until tomorrow": "2026-03-02 00:00", "until 2026-12-01": "2026-12-01 00:00",
		"until 2026-12-01 08:00": "2026-12-01 08:00", "forever": "", "for ever": "",
	} {
		a, _, _ := newTestApp(t, t.TempDir())
		c := &invocation{App: a, args: strings.Fields(words)}
		got, err := c.parsePauseEnd()
		if text := time.Unix(0, got).UTC().Format("2006-01-02 15:04"); err != nil || got != 0 && text != want ||
			got == 0 && want != "" {
			t.Errorf("%s: %s, %v, want %s", words, text, err, want)
		}
	}
}
