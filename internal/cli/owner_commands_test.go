package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/guard"
)

// TestOwnerCommands holds what the owner of a machine sees; testdata/owner.golden shows
// it.
func TestOwnerCommands(t *testing.T) {
	dir, refused := (&clitest.FakeGuard{}).Serve(t), (&clitest.FakeGuard{Refusal: true}).Serve(t)
	var b strings.Builder
	left := (&clitest.FakeGuard{Unavailable: "its owner left less than 1h0m0s ago"}).Serve(t)
	unrequested := (&clitest.FakeGuard{Unavailable: "its owner has paused it",
		PauseState: &wire.Pause{Reason: guard.NotAccepted}}).Serve(t)
	for _, step := range []struct{ dir, line string }{
		{dir, "roost pause 1h"}, {dir, "roost pause until 18:00 --reason talk"},
		{dir, "roost pause until 08:00 --json"}, {dir, "roost mine"}, {dir, "roost pause for good"},
		{dir, "roost pause"},
		{dir, "roost resume"}, {dir, "roost resume --state idle"}, {dir, "roost mine"}, {refused, "roost pause 1h"},
		{dir, "roost pause 18:00"}, {dir, "roost pause until teatime"}, {dir, "roost pause until 2020-01-01"},
		{dir, "roost pause 0s"},
		{dir, "roost pause tomorrow"}, {left, "roost mine"}, {unrequested, "roost mine"},
	} {
		a, stdout, stderr := newFullApp(t, step.dir)
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
	clitest.CompareGolden(t, "owner", b.String())
}

// TestPauseWithoutGuard: whose the node is pauses it all the same.
func TestPauseWithoutGuard(t *testing.T) {
	dir := t.TempDir()
	a, stdout, stderr := newFullApp(t, dir)
	if code := a.Run(t.Context(), []string{"roost", "pause", "for", "good"}); code != 0 ||
		!strings.Contains(stdout.String(), "without the guard") {
		t.Errorf("status %d, %s%s", code, stdout, stderr)
	}
	a, stdout, stderr = newFullApp(t, dir)
	if code := a.Run(t.Context(), []string{"roost", "mine"}); code != roost.Unavailable.ExitCode() ||
		!strings.Contains(stdout.String(), "paused for good") {
		t.Errorf("mine: status %d, %s%s", code, stdout, stderr)
	}
	a, stdout, stderr = newFullApp(t, dir)
	if code := a.Run(t.Context(), []string{"roost", "resume"}); code != 0 {
		t.Errorf("resume: status %d, %s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "owner", "pause.json")); err == nil {
		t.Error("the pause is still there")
	}
}
