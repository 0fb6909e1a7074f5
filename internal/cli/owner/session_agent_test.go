package owner

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

// TestSessionAgentEndsWithItsSession: it reports while the session's bus is there, and
// then ends well.
func TestSessionAgentEndsWithItsSession(t *testing.T) {
	if _, err := exec.LookPath("dbus-daemon"); err != nil {
		t.Skip("SKIPPED: dbus-daemon is not installed, so that there is no session to be an agent of")
	}
	address := "unix:path=" + filepath.Join(t.TempDir(), "bus")
	session := exec.Command("dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1",
		"--address="+address)
	out, err := session.StdoutPipe()
	if err == nil {
		err = session.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer session.Wait()
	defer session.Process.Kill()
	if _, err := out.Read(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
	g := &clitest.FakeGuard{PresenceReport: make(chan *wire.PresentRequest, 100)}
	dir := g.Serve(t)
	ended := make(chan int, 1)
	go func() {
		ended <- frame.NewApp(strings.NewReader(""), io.Discard, os.Stderr, nil, ownerCommands).Run(t.Context(),
			[]string{"roost", "session-agent", "--dir", dir})
	}()
	if r := <-g.PresenceReport; r.GetInput() != 0 || r.GetBusy() != "" || r.GetBy() != "" {
		t.Errorf("of a session in which nothing runs it said %v", r)
	}
	session.Process.Kill()
	if code := <-ended; code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

// TestReportsAreFew: what has not changed is said again each ten seconds, and a clock
// that trembles is no touch.
func TestReportsAreFew(t *testing.T) {
	g := &clitest.FakeGuard{PresenceReport: make(chan *wire.PresentRequest, 100)}
	conn, err := rpc.Dial("unix:"+filepath.Join(g.Serve(t), "run", "guard.sock"), nil, peer.Startd)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	now := clitest.Noon
	r := &guardReporter{c: &frame.Invocation{App: &frame.App{Now: func() time.Time {
		return now
	}}}, guardAddr: wire.NewGuardClient(conn)}
	reports := func(p idle.SessionPresence) int {
		t.Helper()
		if err := r.reportChange(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		n := len(g.PresenceReport)
		for range n {
			<-g.PresenceReport
		}
		return n
	}
	p := idle.SessionPresence{Input: time.Hour, Origin: "GNOME"}
	for i, step := range []struct {
		change func()
		want   int
	}{
		{func() {}, 1},
		{func() { p.Input += 3 * time.Millisecond }, 0},
		{func() { p.Input -= 5 * time.Millisecond }, 0},
		{func() { p.Input += time.Second }, 1},
		{func() { p.Game = true }, 1},
		{func() { now = now.Add(9 * time.Second) }, 0},
		{func() { now = now.Add(time.Second) }, 1},
		{func() { p.Game = false }, 1},
	} {
		step.change()
		if got := reports(p); got != step.want {
			t.Errorf("step %d: said %d times, want %d", i, got, step.want)
		}
	}
}

// TestSessionAgentOutsideASession says where to run it.
func TestSessionAgentOutsideASession(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+t.TempDir()+"/none")
	var b strings.Builder
	dir := (&clitest.FakeGuard{}).Serve(t)
	if code := frame.NewApp(strings.NewReader(""), io.Discard, &b, nil, ownerCommands).Run(t.Context(),
		[]string{"roost", "session-agent",
			"--dir", dir}); code != 69 || !strings.Contains(b.String(), "inside a graphical session") {
		t.Errorf("it ended with %d and said %q", code, b.String())
	}
}
