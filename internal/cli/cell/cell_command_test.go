package cell

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator"
)

// TestCell talks to a negotiator that is a cell alone, and then makes a new cell of what
// it leaves.
func TestCell(t *testing.T) {
	dir, err := os.MkdirTemp("", "cell")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, sub := range []string{"etc", "run"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	n := &config.Node{
		Name: "c1", Dir: dir, Collectors: []string{"unix:" + dir + "/run/collector.sock"},
		Negotiator: &config.NegotiatorSettings{Listen: []string{"unix:" + dir + "/run/negotiator.sock"}},
	}
	n.Negotiators = n.Negotiator.Listen
	file := filepath.Join(dir, "etc", "node.hcl")
	if err := os.WriteFile(file, config.Write(n), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- negotiator.Run(ctx, n, nil) }()

	run := func(line string) (string, int) {
		a, stdout, stderr := newPoolApp(t, dir)
		code := a.Run(t.Context(), strings.Fields(line))
		return stdout.String() + stderr.String(), code
	}
	says := func(line, want string, status int) {
		t.Helper()
		if got, code := run(line); code != status || !strings.Contains(got, want) {
			t.Errorf("%s: got status %d and\n%swant %d and %q", line, code, got, status, want)
		}
	}
	for tries := 0; ; tries++ { // it starts, and is elected
		got, code := run("roost cell")
		if code == 0 && strings.Contains(got, "leader") &&
			strings.Contains(got, "The loss of one more that votes would stop all decisions.") {
			break
		}
		if tries == 1000 {
			t.Fatalf("got status %d and\n%s", code, got)
		}
	}
	says("roost cell --json", `"spare": 0`, 0)
	says("roost cell add nowhere", "write it as", 65)
	says("roost cell remove c2", "no member of the cell has that name", 68)
	says("roost cell remove", "roost cell remove NODE", 64)
	says("roost limit set matlab 2", "", 0) // no schedd runs on this node
	says("roost limit", "matlab", 0)
	says("roost cell recover", "--force", 64)
	says("roost cell --queue", "has no cell_queue block", 78)
	says("roost cell recover --queue --force", "has no member of the cell's queue", 68)
	says("roost cell recover --force", "stop the negotiator", 75)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	says("roost cell recover --force --config "+file, "c1 is a cell of its own", 0)
}

func TestFaultToleranceText(t *testing.T) {
	three := []*wire.CellMember{{}, {}, {}}
	for _, tt := range []struct {
		status *wire.CellStatus
		want   string
	}{
		{&wire.CellStatus{Says: "c1"}, "belongs to no cell yet"},
		{&wire.CellStatus{Members: three, Spare: -1, Says: "c1"},
			"1 more of those that vote must be reached (as c1 sees it)"},
		{&wire.CellStatus{Members: three, Spare: 1}, "Nobody leads"},
		{&wire.CellStatus{Members: three, Spare: 1, Leader: "a:1"}, "survives the loss of one more."},
		{&wire.CellStatus{Members: three, Spare: 2, Leader: "a:1"}, "survives the loss of 2 more."},
	} {
		if got := FaultToleranceText(tt.status); !strings.Contains(got, tt.want) {
			t.Errorf("%v: got %q, want %q", tt.status, got, tt.want)
		}
	}
}
