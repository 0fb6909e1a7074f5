package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/qstat"
)

// The exit statuses that clients of PBS test for: PBS's error number modulo 256.
const (
	pbsEndedSubjob        = 55
	pbsUnknownJob         = 153
	pbsInvalid            = 156
	pbsFinished           = 35
	pbsUnauthorized       = 159
	pbsSystem             = 162
	pbsBadSignal          = 165
	pbsBadValue           = 166
	pbsRuns               = 167
	pbsBadState           = 168
	pbsUnknownQueue       = 170
	pbsNoSupport          = 181
	pbsUnknownResource    = 187
	pbsNoRerun            = 190
	pbsTooMany            = 198
	pbsDependency         = 206
	pbsUnknownReservation = 236
	pbsUnconnected        = 255
)

// pbsCode is the exit status of PBS for an error.
func pbsCode(err error) int {
	var kind roost.Kind
	if !errors.As(fromWire(err), &kind) {
		return pbsSystem
	}
	switch kind {
	case roost.NotFound:
		return pbsUnknownJob
	case roost.Finished:
		return pbsFinished
	case roost.PermissionDenied, roost.Unauthenticated:
		return pbsUnauthorized
	case roost.Invalid, roost.BadConfig:
		return pbsBadValue
	case roost.Conflict, roost.Stale:
		return pbsBadState
	case roost.Exhausted:
		return pbsTooMany
	case roost.Usage:
		return 2
	}
	return pbsSystem
}

// pbsFail prints an error of a PBS command and returns what it ends with.
func (c *call) pbsFail(err error) error {
	fmt.Fprintf(c.stderr, "%s: %s\n", c.cmd.name, strings.Join(strings.Fields(message(err)), " "))
	return exit(pbsCode(err))
}

// pbsUsage prints how a command is used.
func (c *call) pbsUsage(why string) error {
	if why != "" {
		fmt.Fprintf(c.stderr, "%s: %s\n", c.cmd.name, why)
	}
	fmt.Fprintf(c.stderr, "usage: %s %s\n", c.cmd.name, c.cmd.args)
	return exit(2)
}

// pbsID reads the id of a job, a task, an array or a range of it: "123", "123.host", "123[]", "123[7]", "123[1-5]", each with or without
// "@server", which is left off. The host in it is compared without regard to what stands behind its first point.
func pbsID(text string) (string, bool) {
	id, _, _ := strings.Cut(text, "@")
	n := digits(id)
	if n == 0 || n > 12 || strings.ContainsFunc(text, unfitForID) {
		return "", false
	}
	rest := id[n:]
	if strings.HasPrefix(rest, "[") {
		inside, after, closed := strings.Cut(rest[1:], "]")
		if _, err := roost.ParseIndexes(inside); !closed || inside != "" && err != nil {
			return "", false
		}
		rest = after
	}
	if rest != "" && (rest[0] != '.' || len(rest) == 1) {
		return "", false
	}
	return strings.Replace(id, "[]", "", 1), true
}

// unfitForID reports whether an id holds a character that no id has: blanks, slashes and what moves the cursor of a terminal.
func unfitForID(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-:,[]@", r)
}

// pbsHost is the schedd that an operand such as 12@n2 names; an id says itself where its job is.
func pbsHost(text string) string {
	if id, host, _ := strings.Cut(text, "@"); !strings.Contains(id, ".") {
		return host
	}
	return ""
}

// options is what a PBS command line says, as getopt(3) would: the options that were given, with their values, and the operands. Options may
// stand behind operands, because clients put them there.
type options struct {
	given    map[byte][]string
	order    []qstat.Given // the same, in the order of the command line
	operands []string
}

func (o options) has(letter byte) bool { return len(o.given[letter]) > 0 }

func (o *options) give(letter byte, value string) {
	o.given[letter] = append(o.given[letter], value)
	o.order = append(o.order, qstat.Given{Letter: letter, Value: value})
}

// last is the value that counts: of an option given twice, the later.
func (o options) last(letter byte) string {
	if v := o.given[letter]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// getopt takes a command line apart. The specification is getopt's: letters, each with a ":" behind it if it takes a value.
func getopt(args []string, spec string) (options, error) {
	o := options{given: map[byte][]string{}}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			o.operands = append(o.operands, args...)
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			o.operands = append(o.operands, arg)
			continue
		}
		for i := 1; i < len(arg); i++ {
			at := strings.IndexByte(spec, arg[i])
			if at < 0 || arg[i] == ':' {
				return o, fmt.Errorf("invalid option -- '%c'", arg[i])
			}
			if at+1 == len(spec) || spec[at+1] != ':' {
				o.give(arg[i], "")
				continue
			}
			value := arg[i+1:]
			if value == "" {
				if len(args) == 0 {
					return o, fmt.Errorf("option requires an argument -- '%c'", arg[i])
				}
				value, args = args[0], args[1:]
			}
			o.give(arg[i], value)
			break
		}
	}
	return o, nil
}

// asksVersion reports whether a PBS command was asked for its version or help, and answers.
func (c *call) asksVersion() bool {
	if len(c.args) != 1 {
		return false
	}
	switch c.args[0] {
	case "--version":
		fmt.Fprintf(c.stdout, "pbs_version = %s\n", pbsVersion())
	case "--help":
		c.help(c.stdout, c.cmd)
	default:
		return false
	}
	return true
}
