package frame

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/roost-batch/roost"
)

// The programs, which lie beside each other. Most have commands that few command lines
// need, with packages that would delay the start of all others.
const (
	MainProgram      = "roost"        // all commands that people call
	LocalProgram     = "roost-q"      // PBS commands that scripts call often
	DaemonProgram    = "roost-daemon" // daemons and agents; it has no help
	NodeProgram      = "roost-node"   // what sets a node up, runs and examines it
	SimulatorProgram = "roost-sim"
	// the accountant, and commands with the libraries of its databases
	AccountantProgram = "roost-accountant"
)

// modulePath is where Go finds the sources of all programs.
const modulePath = "github.com/roost-batch/roost"

// execSibling runs a program that lies beside this one, with the whole command line, in
// the place of this process. It returns only if it cannot.
func (a *App) execSibling(program string) error { return a.execLine(program, a.commandLine) }

// execLine is execSibling with another command line.
func (a *App) execLine(program string, line []string) error {
	if a.Exec != nil {
		return a.Exec(program, line)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("own program: %w: %w", roost.NoInput, err)
	}
	path := filepath.Join(filepath.Dir(self), program)
	if path == self {
		return fmt.Errorf("%s: %w: it has no such command; it and roost are of different versions", path, roost.NoInput)
	}
	err = syscall.Exec(path, line, a.Env)
	if errors.Is(err, fs.ErrNotExist) {
		return WithHint(fmt.Errorf("%s: %w: %w", path, roost.NoInput, err),
			program+" belongs beside roost: the packages, make build and make install put it there, and so does: "+
				"go install "+modulePath+"/cmd/...@v"+roost.Version)
	}
	return fmt.Errorf("%s: %w: %w", path, roost.NoInput, err)
}

// ExecSibling continues the command line in the program of that name, beside this one. It
// returns only if it cannot.
func (c *Invocation) ExecSibling(program string) error { return c.execSibling(program) }

// ExecDaemon runs roost-daemon with those arguments in the place of this process. It
// returns only if it cannot.
func (c *Invocation) ExecDaemon(args ...string) error {
	return c.execLine(DaemonProgram, append(c.commandLine[:1:1], args...))
}
