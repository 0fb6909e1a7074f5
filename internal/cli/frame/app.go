package frame

import (
	"context"
	"errors"
	"flag"
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

// App is the program: its streams, its environment, its clock and its commands. Tests set
// the fields that a process has from the system.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Env            []string                   // "NAME=value"; of two with a name the later counts
	All            func() []*Command          // the table of all commands, made anew
	Find           func(name string) *Command // the command of a name or alias, made anew; nil: there is none

	ScheddNode           string // the node of --schedd before the command; empty: $ROOST_SCHEDD, or this node
	Dir                  string // working directory; empty: that of the process
	Now                  func() time.Time
	Interrupts           chan os.Signal // nil: SIGINT and SIGTERM of the process
	OutScreen, ErrScreen Screen         // what Stdout and Stderr lead to

	// Dialer opens connections. NewApp sets the one for this machine's schedd only.
	Dialer Dialer
	// FallbackProgram is the program beside this one that has all commands, and whose
	// connections carry calls with many messages on both sides; empty: this program.
	FallbackProgram string

	// Exec runs a program beside this one with a command line; nil: in the place of this
	// process.
	Exec func(program string, commandLine []string) error

	commandLine []string // as Run got it
}

// NewApp returns the program with those streams, that environment ("NAME=value") and
// those commands. It starts nothing.
func NewApp(stdin io.Reader, stdout, stderr io.Writer, env []string, all func() []*Command) *App {
	a := &App{Stdin: stdin, Stdout: stdout, Stderr: stderr, Env: env, All: all, Now: time.Now,
		Dialer: SocketDialer{}}
	a.Find = func(name string) *Command { return FindCommand(a.All(), name) }
	a.OutScreen, a.ErrScreen = ScreenOf(stdout), ScreenOf(stderr)
	return a
}

// Run does what args ask for and returns the exit status. args[0] is the name that the
// program was called by.
func (a *App) Run(ctx context.Context, args []string) int {
	name := "roost"
	a.commandLine = args
	if len(args) > 0 {
		name, args = filepath.Base(args[0]), args[1:]
	}
	cmd := a.Find(name)
	if cmd != nil && !cmd.IsLink() {
		cmd = a.Find(SlurmPrefix + name)
	}
	if cmd != nil && cmd.IsLink() {
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
func (a *App) selectCommand(args []string) (*Command, []string, error) {
	var early []string
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		switch name, _, valued := strings.Cut(args[0], "="); name {
		case "--help", "-h":
			a.printOverview(a.Stdout)
			return nil, nil, nil
		case "--version", "-V":
			return a.Find("version"), early, nil
		case "--dir", "--color", "--schedd":
			if !valued && len(args) < 2 {
				return nil, nil, UsageErrorf("%s needs a value", name)
			}
			if name == "--schedd" {
				if a.ScheddNode, args = strings.TrimPrefix(args[0], "--schedd="), args[1:]; !valued {
					a.ScheddNode, args = args[0], args[1:]
				}
				continue
			}
			n := 1
			if !valued {
				n = 2
			}
			early, args = append(early, args[:n]...), args[n:]
		default:
			return nil, nil, WithHint(UsageErrorf("unknown flag %s", name),
				suggestFlag(name, []string{"--help", "--version", "--dir", "--color", "--schedd"}, "roost --help"))
		}
	}
	if len(args) == 0 {
		a.printOverview(a.Stdout)
		return nil, nil, nil
	}
	if args[0] == "help" {
		return a.printCommandHelp(args[1:])
	}
	cmd := a.Find(args[0])
	if cmd == nil {
		return nil, nil, WithHint(UsageErrorf("unknown command %q", args[0]), suggestCommand(a.All(), args[0]))
	}
	return cmd, append(early, args[1:]...), nil
}

// printCommandHelp answers "roost help COMMAND".
func (a *App) printCommandHelp(args []string) (*Command, []string, error) {
	if len(args) == 0 {
		a.printOverview(a.Stdout)
		return nil, nil, nil
	}
	cmd := a.Find(args[0])
	if cmd == nil {
		return nil, nil, WithHint(UsageErrorf("unknown command %q", args[0]), suggestCommand(a.All(), args[0]))
	}
	if cmd.Program != "" {
		return nil, nil, a.execSibling(cmd.Program)
	}
	a.PrintHelp(a.Stdout, cmd)
	return nil, nil, nil
}

// runCommand parses the flags of a command and runs it.
func (a *App) runCommand(ctx context.Context, cmd *Command, args []string) int {
	if cmd.Program != "" {
		return a.printError(cmd.Name, a.execSibling(cmd.Program))
	}
	if !cmd.RawArgs {
		var help bool
		var err error
		if args, help, err = normalizeArgs(cmd, args); err != nil {
			return a.printError(cmd.Name, WithHint(err, SuggestUsage(cmd, err)))
		}
		if help {
			a.PrintHelp(a.Stdout, cmd)
			return 0
		}
	}
	if cmd.RawArgs {
		none := ucli.NewContext(nil, flag.NewFlagSet(cmd.Name, flag.ContinueOnError), nil)
		return a.printError(cmd.Name, a.runParsed(ctx, cmd, none, args))
	}
	var failed error
	program := &ucli.App{
		Name: "roost", HideHelp: true, HideVersion: true, DisableSliceFlagSeparator: true,
		Writer: a.Stdout, ErrWriter: a.Stderr, ExitErrHandler: func(*ucli.Context, error) {},
		Commands: []*ucli.Command{{
			Name: cmd.Name, Flags: cmd.Flags, HideHelp: true,
			UseShortOptionHandling: true,
			OnUsageError: func(_ *ucli.Context, err error, _ bool) error {
				return WithHint(UsageErrorf("%v", err), SuggestUsage(cmd, nil))
			},
			Action: func(c *ucli.Context) error {
				failed = a.runParsed(ctx, cmd, c, c.Args().Slice())
				return nil
			},
		}},
	}
	if err := program.RunContext(ctx, append([]string{"roost", cmd.Name}, args...)); err != nil {
		failed = err
	}
	return a.printError(cmd.Name, failed)
}

// runParsed runs a command with its operands. A command that parses its own arguments has
// all of them as operands.
func (a *App) runParsed(ctx context.Context, cmd *Command, flags *ucli.Context, operands []string) error {
	c := &Invocation{App: a, Context: ctx, Command: cmd, Flags: flags, Args: operands}
	defer c.close()
	if !cmd.RawArgs {
		if err := c.colour(); err != nil {
			return err
		}
		if n := len(c.Args); n < cmd.MinOperands {
			return WithHint(UsageErrorf("%s is missing", cmd.OperandName), SuggestUsage(cmd, nil))
		} else if cmd.MaxOperands >= 0 && n > cmd.MaxOperands {
			return WithHint(UsageErrorf("there is one argument too many: %q", c.Args[cmd.MaxOperands]),
				SuggestUsage(cmd, nil))
		}
	}
	if cmd.Prepare != nil {
		if err := cmd.Prepare(c); err != nil {
			return err
		}
	}
	return cmd.Run(c)
}

// printError prints an error, if there is one, and returns the exit status.
func (a *App) printError(cmd string, err error) int {
	var code ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	where, text := "roost", strings.TrimRight(ErrorText(err), "\n")
	if cmd != "" && errors.Is(err, roost.Usage) {
		where, text = "roost "+cmd, strings.TrimPrefix(text, cmd+": ")
	}
	fmt.Fprintf(a.Stderr, "%s %s\n", a.ErrScreen.ColourText(Red, where+":"), text)
	var adv *hintedError
	if errors.As(err, &adv) && adv.hint != "" {
		fmt.Fprintln(a.Stderr, adv.hint)
	}
	return exitCode(err)
}

// Getenv looks a variable up in the environment that the program was called with.
func (a *App) Getenv(name string) string {
	for i := len(a.Env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(a.Env[i], "="); ok && k == name {
			return v
		}
	}
	return ""
}

// workdir is the absolute working directory.
func (a *App) workdir() (string, error) {
	if a.Dir != "" {
		return a.Dir, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("working directory: %w: %w", roost.NoInput, err)
	}
	return dir, nil
}

// NotifyInterrupts returns a channel with SIGINT, SIGTERM and more, and a function that
// restores their default.
func (a *App) NotifyInterrupts(more ...os.Signal) (<-chan os.Signal, func()) {
	if a.Interrupts != nil {
		return a.Interrupts, func() {}
	}
	c := make(chan os.Signal, 4)
	signal.Notify(c, append([]os.Signal{os.Interrupt, syscall.SIGTERM}, more...)...)
	return c, func() { signal.Stop(c) }
}
