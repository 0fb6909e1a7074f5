package roles

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
)

// TestRun checks what a daemon gets of its arguments, and which are refused.
func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.hcl")
	text := config.Write(&config.Node{Name: "n1", Dir: "/srv/roost", Collector: &config.CollectorSettings{
		Listen: []string{"unix:/run/c.sock"}}})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	end := errors.New("the end")
	run := func(_ context.Context, n *config.Node, name string) error {
		if n.Name != "n1" || name != "n1.0" {
			t.Errorf("got node %q and name %q", n.Name, name)
		}
		return end
	}
	if err := Run("startd", run, []string{"--config", file, "--name", "n1.0"}); err != end {
		t.Errorf("got %v", err)
	}
	for _, args := range [][]string{{"--config"}, {"--nam", "x"}, {"--config", file, "more"}} {
		if err := Run("startd", run, args); !errors.Is(err, roost.Usage) {
			t.Errorf("%q: got %v", args, err)
		}
	}
	if err := Run("startd", run, []string{"--config", file + "x"}); err == nil || errors.Is(err, end) {
		t.Errorf("without a file: got %v", err)
	}
}
