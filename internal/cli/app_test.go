package cli

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/accountingstore"
	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeprogram"
	"github.com/roost-batch/roost/internal/cli/sim"
)

// newFullApp returns a program with all commands that talks to the pool in dir.
func newFullApp(t *testing.T, dir string) (a *frame.App, stdout, stderr *bytes.Buffer) {
	return clitest.NewApp(t, dir, allCommands())
}

// allCommands are the commands of all programs.
func allCommands() []*frame.Command {
	return commands(append(nodeprogram.Commands(), sim.Command(), accountingstore.Command()))
}

// TestProgramTables compares the commands of other programs in the table of roost with
// the tables of those programs.
func TestProgramTables(t *testing.T) {
	own := map[string][]*frame.Command{frame.NodeProgram: nodeprogram.Commands(),
		frame.SimulatorProgram: {sim.Command()}, frame.AccountantProgram: {accountingstore.Command()}}
	for _, c := range commands(nil) {
		if c.Program == "" {
			continue
		}
		real := frame.FindCommand(own[c.Program], c.Name)
		if real == nil {
			t.Errorf("%s: %s has no such command", c.Name, c.Program)
			continue
		}
		if real.Group != c.Group || real.Hidden != c.Hidden || real.Summary != c.Summary && !c.Hidden ||
			len(real.Aliases) > 0 || real.Run == nil {
			t.Errorf("%s: got %q %q %t, want %q %q %t", c.Name, c.Group, c.Summary, c.Hidden, real.Group,
				real.Summary, real.Hidden)
		}
	}
	for program, all := range own {
		for _, c := range all {
			stub := frame.FindCommand(commands(nil), c.Name)
			if stub == nil || stub.Program != program && c.Name != "resume" && c.Name != "cell" {
				t.Errorf("%s: roost does not hand it to %s: %+v", c.Name, program, stub)
			}
		}
	}
}

// TestEntries checks that the names in the table are those of the commands.
func TestEntries(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range entries() {
		c := e.Make()
		if got := append([]string{c.Name}, c.Aliases...); !slices.Equal(got, e.Names) {
			t.Errorf("the table says %q, and the command %q", e.Names, got)
		}
		for _, name := range e.Names {
			if seen[name] {
				t.Errorf("%s is twice in the table", name)
			}
			seen[name] = true
			if a := New(nil, io.Discard, io.Discard, nil, nil).Find(name); a == nil || a.Name != c.Name ||
				len(a.Flags) != len(frame.WithCommonFlags([]*frame.Command{e.Make()})[0].Flags) {
				t.Errorf("%s: got %+v", name, a)
			}
		}
	}
	own := func() []*frame.Command { return []*frame.Command{sim.Command()} }
	if a := New(nil, io.Discard, io.Discard, nil, own); a.Find("sim").Program != "" ||
		a.Find("up").Program != frame.NodeProgram || a.Find("sims") != nil {
		t.Error("a program's own commands do not replace those of the table")
	}
}

// TestDelegation checks which command lines roost passes to which program. It passes on
// all of the line.
func TestDelegation(t *testing.T) {
	for line, want := range map[string]string{
		"roost up --nodes 2":                frame.NodeProgram,
		"/usr/bin/roost --dir /x master":    frame.NodeProgram,
		"roost sim faults --help":           frame.SimulatorProgram,
		"roost help sim":                    frame.SimulatorProgram,
		"roost words -- doctor --":          frame.NodeProgram,
		"roost resume":                      frame.NodeProgram,
		"roost cell recover":                frame.NodeProgram,
		"roost schedd --config /x/node.hcl": frame.NodeProgram,
		"roost version":                     "",
		"roost help jobs":                   "",
		"roost words -- si":                 "",
		"roost words -- up":                 "",
		"roost cell recover much":           "",
		"roost --schedd n1 pause 2h":        frame.NodeProgram,
		"roost words -- classad --target x": "",
	} {
		a, stdout, stderr := clitest.NewApp(t, t.TempDir(), commands(nil))
		var got, passed string
		a.Exec = func(program string, commandLine []string) error {
			got, passed = program, strings.Join(commandLine, " ")
			return nil
		}
		a.Run(t.Context(), strings.Fields(line))
		if got != want || got != "" && (passed != line || stdout.Len()+stderr.Len() > 0) {
			t.Errorf("%s: got %q with %q, want %q; printed %s%s", line, got, passed, want, stdout, stderr)
		}
	}
}

// TestMissingProgram checks the error for a command whose program is not there.
func TestMissingProgram(t *testing.T) {
	a, _, stderr := clitest.NewApp(t, t.TempDir(), commands(nil))
	if code := a.Run(t.Context(), []string{"roost", "doctor"}); code != roost.NoInput.ExitCode() ||
		!strings.Contains(stderr.String(), "roost-node belongs beside roost") {
		t.Errorf("got exit status %d and %s", code, stderr)
	}
}
