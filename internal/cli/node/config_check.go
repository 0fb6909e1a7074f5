package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/master"
)

// ConfigCommand returns roost config: check node files.
func ConfigCommand() *frame.Command {
	return &frame.Command{
		Name: "config", Group: frame.GroupPool, Summary: "check node files before daemons read them",
		Synopsis: "check [FILE…]", MinOperands: 1, MaxOperands: -1, OperandName: "check",
		Description: "Reads node files as the daemons will, and the owner file that each names. Every mistake comes " +
			"with file, line and column. Then it says which daemons the file asks for, and which of them the master " +
			"that runs now would start or stop if it were restarted. Changes nothing.",
		Examples: []frame.Example{
			{Line: "roost config check", Description: "check the node file of this machine"},
			{Line: "roost config check new.hcl --json", Description: "check another file, for programs"},
		},
		Flags: []ucli.Flag{frame.JSONFlag()},
		Run: func(c *frame.Invocation) error {
			if c.Args[0] != "check" {
				return fmt.Errorf("config %s: %w: write it as roost config check [FILE…]", c.Args[0], roost.Usage)
			}
			return checkFiles(c, c.Args[1:])
		},
	}
}

// fileCheck is what a check has found in one node file.
type fileCheck struct {
	File     string   `json:"file"`
	OK       bool     `json:"ok"`
	Error    string   `json:"error,omitempty"` // with file, line and column of each mistake
	Warnings []string `json:"warnings,omitempty"`
	Daemons  []string `json:"daemons,omitempty"` // that the file asks for
	// what a restart of the master that runs now would start and stop
	Starts []string `json:"starts,omitempty"`
	Stops  []string `json:"stops,omitempty"`
}

func checkFiles(c *frame.Invocation, files []string) error {
	if len(files) == 0 {
		files = []string{config.DefaultFile}
	}
	var checks []fileCheck
	var problems []error
	for _, file := range files {
		check, err := checkNodeFile(file)
		checks = append(checks, check)
		if err != nil {
			problems = append(problems, err)
		}
	}
	if c.WantsJSON() {
		doc := frame.JSONDocument{"files": checks, "ok": len(problems) == 0}
		if err := frame.PrintJSON(c.Stdout, doc); err != nil {
			return err
		}
	} else {
		for _, check := range checks {
			check.print(c)
		}
	}
	return errors.Join(problems...)
}

// checkNodeFile reads a node file, and the owner file that it names.
func checkNodeFile(file string) (check fileCheck, err error) {
	check.File = file
	n, err := config.Load(file)
	if err == nil {
		check.Warnings = n.Warnings
		check.Daemons = master.DaemonNames(n)
		check.Starts, check.Stops = pendingChanges(n)
		err = checkOwnerFile(n, &check)
	}
	if err != nil {
		check.Error = err.Error()
		return check, err
	}
	check.OK = true
	return check, nil
}

// checkOwnerFile reads the owner file of a node with a guard. It need not exist.
func checkOwnerFile(n *config.Node, check *fileCheck) error {
	if !n.NeedsGuard() || n.Owner.File == "" {
		return nil
	}
	if _, err := os.Lstat(n.Owner.File); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	rules, err := config.LoadOwner(n.Owner.File)
	check.Warnings = append(check.Warnings, rules.Warnings...)
	return err
}

// pendingChanges compares the daemons of a node file with those of the master that runs
// in the node's directory. Without one there is nothing to say.
func pendingChanges(n *config.Node) (starts, stops []string) {
	state, running, err := master.ReadState(n.Dir)
	if err != nil || !running {
		return nil, nil
	}
	var now []string
	for _, d := range state.Daemons {
		now = append(now, strings.TrimSpace(d.Role+" "+d.Name))
	}
	wanted := master.DaemonNames(n)
	starts = slices.DeleteFunc(slices.Clone(wanted), func(d string) bool { return slices.Contains(now, d) })
	stops = slices.DeleteFunc(now, func(d string) bool { return slices.Contains(wanted, d) })
	return starts, stops
}

func (f *fileCheck) print(c *frame.Invocation) {
	for _, text := range f.Warnings {
		fmt.Fprintf(c.Stderr, "Warning: %s\n", text)
	}
	if !f.OK {
		return // the error says it
	}
	fmt.Fprintf(c.Stdout, "%s: no mistakes; daemons: %s\n", f.File, strings.Join(f.Daemons, ", "))
	if len(f.Starts) > 0 {
		fmt.Fprintf(c.Stdout, "a restart of the master would start: %s\n", strings.Join(f.Starts, ", "))
	}
	if len(f.Stops) > 0 {
		fmt.Fprintf(c.Stdout, "a restart of the master would stop: %s\n", strings.Join(f.Stops, ", "))
	}
}
