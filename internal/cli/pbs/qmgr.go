package pbs

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/pbs/qmgr"
)

func qmgrCommand() *frame.Command {
	return &frame.Command{
		Name: "qmgr", Group: frame.GroupPBS, Summary: "see and set queues, the server and nodes",
		Synopsis: "[-a] [-c COMMAND] [-e] [-n] [-z] [SERVER…]", RawArgs: true, MaxOperands: -1, Run: runQmgr,
		Description: "Reads commands, of which each creates, deletes, sets, unsets, lists or prints queues, the " +
			"server or nodes. What print prints makes the same again. The queues are the pool's, whichever server " +
			"is named. " +
			"Everybody may list and print; who sets something needs the capability for it (roost admin).",
		Examples: []frame.Example{
			{Line: `qmgr -c "print server"`, Description: "the commands that make all that is set"},
			{Line: `qmgr -c "create queue short queue_type=execution,enabled=True,started=True"`,
				Description: "make a queue"},
			{Line: `qmgr -c 'set queue short max_run = "[u:PBS_GENERIC=3],[u:ada=10]"'`,
				Description: "three running jobs of each user, and ten of ada"},
			{Line: "qmgr < queues.txt", Description: "do what a file says"},
		},
		Flags: []ucli.Flag{
			pbsframe.ShortFlag("a", "", "stop at the first error"), pbsframe.ShortFlag("c", "COMMAND",
				"this one command, and not those on standard input"), pbsframe.ShortFlag("e", "", "print each command"),
			pbsframe.ShortFlag("n", "", "only look whether the commands can be read"),
			pbsframe.ShortFlag("z", "", "print no errors"),
		},
	}
}

// qmgrSession is one run of qmgr.
type qmgrSession struct {
	*frame.Invocation
	quiet, noExecute bool // -z, -n
	prompt           bool
	active           map[qmgr.ObjectKind][]string
	ended            bool
}

// qmgrError is a refusal with PBS's number.
type qmgrError struct {
	number int
	text   string
}

func (e *qmgrError) Error() string { return e.text }

// pbsErrors are PBS's numbers and words for what qmgr refuses.
const (
	pbseUnknownQueue = 15018
	pbseQueueExists  = 15025
	pbseBusy         = 15027
	pbseNotSupported = 15029
	pbseDuplicate    = 15055
	pbseUnknownNode  = 15062
	pbseHook         = 15136
	pbseResourceBusy = 15174
)

func runQmgr(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := pbsframe.ParseOptions(c.Args, "ac:enz")
	if err != nil {
		return pbsframe.PrintUsage(c, err.Error())
	}
	s := &qmgrSession{Invocation: c, quiet: o.IsSet('z'), noExecute: o.IsSet('n'),
		active: map[qmgr.ObjectKind][]string{}}
	var lines io.Reader = strings.NewReader(o.Last('c'))
	if !o.IsSet('c') {
		lines = c.Stdin
		f, isFile := c.Stdin.(*os.File)
		s.prompt = isFile && frame.ScreenOf(f).Terminal
	}
	return s.readCommands(lines, o.IsSet('a'), o.IsSet('e'))
}

// maxLine bounds a command, in bytes.
const maxLine = 1 << 20

// readCommands does one command after the other. The exit status is that of the last that
// failed.
func (s *qmgrSession) readCommands(from io.Reader, abort, echo bool) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	code, number, begun := 0, 0, ""
	s.callCell("Qmgr: ")
	for lines.Scan() && !s.ended {
		number++
		line := begun + strings.TrimRight(lines.Text(), "\r")
		if head, continues := strings.CutSuffix(line, `\`); continues &&
			!strings.HasPrefix(strings.TrimSpace(line), "#") {
			begun = head
			s.callCell("Qmgr< ")
			continue
		}
		begun = ""
		if echo && strings.TrimSpace(line) != "" {
			fmt.Fprintln(s.Stdout, line)
		}
		if failed := s.runLine(line, abort); failed != 0 {
			if code = failed; abort {
				break
			}
		}
		s.callCell("Qmgr: ")
	}
	if err := lines.Err(); err != nil {
		return pbsframe.Fail(s.Invocation, err)
	}
	if s.prompt {
		fmt.Fprintln(s.Stdout)
	}
	if code != 0 {
		return frame.ExitError(code)
	}
	return nil
}

// runLine does those of one line, and returns the exit status of the last that failed.
func (s *qmgrSession) runLine(line string, abort bool) (code int) {
	for _, one := range qmgr.SplitCommands(line) {
		if err := s.runQmgrCommand(one); err != nil {
			if code = s.printQmgrError(err); abort {
				return code
			}
		}
		if s.ended {
			break
		}
	}
	return code
}

func (s *qmgrSession) callCell(prompt string) {
	if s.prompt && !s.ended {
		fmt.Fprint(s.Stdout, prompt)
	}
}

// printQmgrError prints an error and returns its exit status.
func (s *qmgrSession) printQmgrError(err error) int {
	show := func(format string, args ...any) {
		if !s.quiet {
			fmt.Fprintf(s.Stderr, format, args...)
		}
	}
	var syntax *qmgr.SyntaxError
	var of *objectError
	switch {
	case errors.As(err, &syntax):
		show("%v\n", syntax)
		return 2
	case errors.As(err, &of):
		number := qmgrErrorNumber(of.err)
		show("qmgr obj=%s svr=default: %s\n", of.name, qmgrErrorText(of.err))
		if number == pbseHook {
			show("qmgr: hook error returned from server\n")
		} else {
			show("qmgr: Error (%d) returned from server\n", number)
		}
		return number & 0xff
	}
	show("qmgr: %s\n", strings.Join(strings.Fields(frame.ErrorText(err)), " "))
	return pbsframe.ExitStatus(err)
}

// objectError is what was wrong with one object.
type objectError struct {
	name string
	err  error
}

func (e *objectError) Error() string { return e.err.Error() }
func (e *objectError) Unwrap() error { return e.err }

// qmgrErrorNumber is PBS's error number.
func qmgrErrorNumber(err error) int {
	var known *qmgrError
	if errors.As(err, &known) {
		return known.number
	}
	if n := qmgr.ErrorNumber(err); n != 0 {
		return n
	}
	var kind roost.ErrorKind
	errors.As(frame.DecodeError(err), &kind)
	switch kind {
	case roost.PermissionDenied, roost.Unauthenticated:
		return 15007
	case roost.Invalid, roost.Conflict, roost.Exhausted:
		return 15014
	}
	return 15010
}

func qmgrErrorText(err error) string {
	var known *qmgrError
	if errors.As(err, &known) || qmgr.ErrorNumber(err) != 0 {
		return err.Error()
	}
	words := map[int]string{15007: "Unauthorized Request",
		15014: "Illegal attribute or resource value"}[qmgrErrorNumber(err)]
	text := strings.Join(strings.Fields(frame.ErrorText(err)), " ")
	return strings.TrimPrefix(cmp.Or(words, "System error")+": "+text, ": ")
}

// runQmgrCommand does one command.
func (s *qmgrSession) runQmgrCommand(text string) error {
	cmd, ok, err := qmgr.ParseCommand(text)
	if err != nil || !ok {
		return err
	}
	switch cmd.Verb {
	case qmgr.Quit:
		s.ended = true
		return nil
	case qmgr.Help:
		fmt.Fprint(s.Stdout, qmgr.HelpText(cmd.Topic))
		return nil
	case qmgr.Active:
		return s.setActive(cmd)
	case qmgr.Import:
		return &objectError{strings.Join(cmd.Names, ","), &qmgrError{pbseNotSupported, noHooks}}
	case qmgr.Export:
		return &objectError{strings.Join(cmd.Names, ","), &qmgrError{pbseHook, "hook not found"}}
	}
	if s.noExecute {
		return nil
	}
	switch cmd.Kind {
	case qmgr.Queue:
		return s.onQueues(cmd)
	case qmgr.Server:
		return s.onServer(cmd)
	case qmgr.Node:
		return s.onNodes(cmd)
	case qmgr.Resource:
		return s.onResources(cmd)
	case qmgr.Sched:
		return s.onSched(cmd)
	}
	if len(cmd.Names) == 0 && (cmd.Verb == qmgr.List || cmd.Verb == qmgr.Print) {
		return nil // there is no hook
	}
	if cmd.Verb == qmgr.Create {
		return &objectError{strings.Join(cmd.Names, ","), &qmgrError{pbseNotSupported, noHooks}}
	}
	return &objectError{strings.Join(cmd.Names, ","), &qmgrError{pbseHook, "hook not found"}}
}

// noHooks says what there is in place of PBS's hooks.
const noHooks = "No support for requested service: there are no hooks in Python: scripts before and after a job are " +
	"the node files' (roost-node(5)), and what else is to be told notify does"

// onSched does a command to the scheduler, of which there is one: the negotiator that
// leads.
func (s *qmgrSession) onSched(cmd qmgr.Command) error {
	o, err := s.pool()
	if err != nil {
		return err
	}
	values := []qmgr.AttributeValue{{Name: "scheduling",
		Text: map[bool]string{true: "False", false: "True"}[o.Pool.Stopped]}}
	switch cmd.Verb {
	case qmgr.Set, qmgr.Unset:
		for _, c := range cmd.Changes {
			if c.Name != "scheduling" {
				return &objectError{"default", &qmgrError{pbseNotSupported, "No support for requested service: " +
					c.Name + ": roost cell settings lists what the negotiator goes by"}}
			}
		}
		cmd.Kind, cmd.Names = qmgr.Server, nil
		return s.onServer(cmd)
	case qmgr.List:
		fmt.Fprint(s.Stdout, qmgr.ListObject("Sched default", values, cmd.Changes))
		return nil
	case qmgr.Print:
		fmt.Fprint(s.Stdout, qmgr.SectionHeading("Create and define scheduler default")+
			qmgr.PrintCommands(qmgr.Sched, "default", values, cmd.Changes))
		return nil
	}
	return &objectError{strings.Join(cmd.Names, ","), &qmgrError{pbseNotSupported,
		"No support for requested service: there is one scheduler, and it cannot be made or deleted"}}
}

// selectedObjects are the objects that a command names, or that are active.
func (s *qmgrSession) selectedObjects(cmd qmgr.Command) []string {
	if len(cmd.Names) > 0 || cmd.All {
		return cmd.Names
	}
	return s.active[cmd.Kind]
}

// selectsAll reports whether all objects are meant where none was named, and tells if
// none is. To look at, all are; but nobody changes or deletes all that there are without
// having said so.
func (s *qmgrSession) selectsAll(cmd qmgr.Command, names []string) bool {
	switch {
	case len(names) > 0 || cmd.Verb == qmgr.Create:
		return false
	case cmd.All || cmd.Verb == qmgr.List || cmd.Verb == qmgr.Print:
		return true
	case !s.quiet:
		fmt.Fprintf(s.Stderr, "No Active %ss, nothing done.\n",
			strings.ToUpper(string(cmd.Kind[:1]))+string(cmd.Kind[1:]))
	}
	return false
}

// setActive says on what commands act that name nothing.
func (s *qmgrSession) setActive(cmd qmgr.Command) error {
	if cmd.Kind != "" && len(cmd.Names) > 0 {
		s.active[cmd.Kind] = cmd.Names
		return nil
	}
	for _, k := range []qmgr.ObjectKind{qmgr.Server, qmgr.Queue, qmgr.Node} {
		if names := s.active[k]; (cmd.Kind == "" || cmd.Kind == k) && len(names) > 0 {
			fmt.Fprintf(s.Stdout, "active %s:\n    %s\n", k, strings.Join(names, "\n    "))
		}
	}
	return nil
}
