package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
)

// App is the program as one call of it sees it.
type App struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            []string
	all            func() []*command // the table of everything

	scheddNode string           // the node whose schedd is meant; empty: $ROOST_SCHEDD, or this one
	dir        string           // working directory; empty: the process's
	now        func() time.Time //
	interrupts chan os.Signal   // nil: SIGINT and SIGTERM of the process
	out, err   outputScreen     // what stdout and stderr are
}

// newApp returns the program with those streams, that environment ("NAME=value") and
// those commands. It starts nothing.
func newApp(stdin io.Reader, stdout, stderr io.Writer, env []string, all func() []*command) *App {
	a := &App{stdin: stdin, stdout: stdout, stderr: stderr, env: env, all: all, now: time.Now}
	a.out, a.err = screenOf(stdout), screenOf(stderr)
	return a
}

// Run does what args say, where args[0] is the name that the program was called by, and
// returns its exit status.
func (a *App) Run(ctx context.Context, args []string) int {
	name := "roost"
	if len(args) > 0 {
		name, args = filepath.Base(args[0]), args[1:]
	}
	if cmd := findCommand(a.all(), name); cmd != nil && cmd.group == groupPBS {
		return a.runCommand(ctx, cmd, args)
	}
	cmd, args, err := a.selectCommand(args)
	if err != nil {
		return a.printError("", err)
	}
	if cmd == nil {
		return 0
	}
	return a.runCommand(ctx, cmd, args)
}

// selectCommand finds the command. Flags of all commands may stand before its name. A nil
// command: the question was answered already.
func (a *App) selectCommand(args []string) (*command, []string, error) {
	var early []string
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		switch name, _, valued := strings.Cut(args[0], "="); name {
		case "--help", "-h":
			a.printOverview(a.stdout)
			return nil, nil, nil
		case "--version", "-V":
			return findCommand(a.all(), "version"), early, nil
		case "--dir", "--color", "--schedd":
			if !valued && len(args) < 2 {
				return nil, nil, usageErrorf("%s needs a value", name)
			}
			if name == "--schedd" {
				if a.scheddNode, args = strings.TrimPrefix(args[0], "--schedd="), args[1:]; !valued {
					a.scheddNode, args = args[0], args[1:]
				}
				continue
			}
			n := 1
			if !valued {
				n = 2
			}
			early, args = append(early, args[:n]...), args[n:]
		default:
			return nil, nil, withHint(usageErrorf("unknown flag %s", name),
				suggestFlag(name, []string{"--help", "--version", "--dir", "--color", "--schedd"}, "roost --help"))
		}
	}
	if len(args) == 0 {
		a.printOverview(a.stdout)
		return nil, nil, nil
	}
	if args[0] == "help" {
		return a.printCommandHelp(args[1:])
	}
	cmd := findCommand(a.all(), args[0])
	if cmd == nil {
		return nil, nil, withHint(usageErrorf("unknown command %q", args[0]), suggestCommand(a.all(), args[0]))
	}
	return cmd, append(early, args[1:]...), nil
}

// printCommandHelp answers "roost help COMMAND".
func (a *App) printCommandHelp(args []string) (*command, []string, error) {
	if len(args) == 0 {
		a.printOverview(a.stdout)
		return nil, nil, nil
	}
	cmd := findCommand(a.all(), args[0])
	if cmd == nil {
		return nil, nil, withHint(usageErrorf("unknown command %q", args[0]), suggestCommand(a.all(), args[0]))
	}
	a.printHelp(a.stdout, cmd)
	return nil, nil, nil
}

// runCommand parses the flags of a command and does it.
func (a *App) runCommand(ctx context.Context, cmd *command, args []string) int {
	if !cmd.rawArgs {
		var help bool
		var err error
		if args, help, err = normalizeArgs(cmd, args); err != nil {
			return a.printError(cmd.name, withHint(err, suggestUsage(cmd, err)))
		}
		if help {
			a.printHelp(a.stdout, cmd)
			return 0
		}
	}
	var failed error
	program := &ucli.App{
		Name: "roost", HideHelp: true, HideVersion: true, DisableSliceFlagSeparator: true,
		Writer: a.stdout, ErrWriter: a.stderr, ExitErrHandler: func(*ucli.Context, error) {},
		Commands: []*ucli.Command{{
			Name: cmd.name, Flags: cmd.flags, HideHelp: true, SkipFlagParsing: cmd.rawArgs,
			UseShortOptionHandling: true,
			OnUsageError: func(_ *ucli.Context, err error, _ bool) error {
				return withHint(usageErrorf("%v", err), suggestUsage(cmd, nil))
			},
			Action: func(c *ucli.Context) error {
				failed = a.runParsed(ctx, cmd, c)
				return nil
			},
		}},
	}
	if err := program.RunContext(ctx, append([]string{"roost", cmd.name}, args...)); err != nil {
		failed = err
	}
	return a.printError(cmd.name, failed)
}

func (a *App) runParsed(ctx context.Context, cmd *command, flags *ucli.Context) error {
	c := &invocation{App: a, ctx: ctx, cmd: cmd, flags: flags, args: flags.Args().Slice()}
	defer c.close()
	if !cmd.rawArgs {
		if err := c.colour(); err != nil {
			return err
		}
		if n := len(c.args); n < cmd.minOperands {
			return withHint(usageErrorf("%s is missing", cmd.operandName), suggestUsage(cmd, nil))
		} else if cmd.maxOperands >= 0 && n > cmd.maxOperands {
			return withHint(usageErrorf("there is one argument too many: %q", c.args[cmd.maxOperands]),
				suggestUsage(cmd, nil))
		}
	}
	if cmd.prepare != nil {
		if err := cmd.prepare(c); err != nil {
			return err
		}
	}
	return cmd.run(c)
}

// printError prints an error, if there is one, and returns the exit status.
func (a *App) printError(cmd string, err error) int {
	var code exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	where, text := "roost", strings.TrimRight(errorText(err), "\n")
	if cmd != "" && errors.Is(err, roost.Usage) {
		where, text = "roost "+cmd, strings.TrimPrefix(text, cmd+": ")
	}
	fmt.Fprintf(a.stderr, "%s %s\n", a.err.colourText(red, where+":"), text)
	var adv *hintedError
	if errors.As(err, &adv) && adv.hint != "" {
		fmt.Fprintln(a.stderr, adv.hint)
	}
	return exitCode(err)
}

// getenv looks a variable up in the environment that the program was called with.
func (a *App) getenv(name string) string {
	for i := len(a.env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(a.env[i], "="); ok && k == name {
			return v
		}
	}
	return ""
}

// workdir is the absolute working directory.
func (a *App) workdir() (string, error) {
	if a.dir != "" {
		return a.dir, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("working directory: %w: %w", roost.NoInput, err)
	}
	return dir, nil
}

// notifyInterrupts returns a channel with the signals that ask the program to end, and
// with more of them, and a function that gives them back to the kernel's default.
func (a *App) notifyInterrupts(more ...os.Signal) (<-chan os.Signal, func()) {
	if a.interrupts != nil {
		return a.interrupts, func() {}
	}
	c := make(chan os.Signal, 4)
	signal.Notify(c, append([]os.Signal{os.Interrupt, syscall.SIGTERM}, more...)...)
	return c, func() { signal.Stop(c) }
}
