package pbs

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/pbs/qstat"
)

// pbsUsage prints how a command is used.
func pbsUsage(c *frame.Invocation, why string) error {
	if why != "" {
		fmt.Fprintf(c.Stderr, "%s: %s\n", c.Command.Name, why)
	}
	fmt.Fprintf(c.Stderr, "usage: %s %s\n", c.Command.Name, c.Command.Synopsis)
	return frame.ExitError(2)
}

// pbsOptions is what a PBS command line says, as getopt(3) would: the options that were
// given, with their values, and the operands. Options may stand behind operands, because
// clients put them there.
type pbsOptions struct {
	given    map[byte][]string
	order    []qstat.GivenOption // the same, in the order of the command line
	operands []string
}

func (o pbsOptions) isSet(letter byte) bool { return len(o.given[letter]) > 0 }

func (o *pbsOptions) add(letter byte, value string) {
	o.given[letter] = append(o.given[letter], value)
	o.order = append(o.order, qstat.GivenOption{Letter: letter, Value: value})
}

// last is the value that counts: of an option given twice, the later.
func (o pbsOptions) last(letter byte) string {
	if v := o.given[letter]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// getopt takes a command line apart. The specification is getopt's: letters, each with a
// ":" behind it if it takes a value.
func getopt(args []string, spec string) (pbsOptions, error) {
	o := pbsOptions{given: map[byte][]string{}}
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
				o.add(arg[i], "")
				continue
			}
			value := arg[i+1:]
			if value == "" {
				if len(args) == 0 {
					return o, fmt.Errorf("option requires an argument -- '%c'", arg[i])
				}
				value, args = args[0], args[1:]
			}
			o.add(arg[i], value)
			break
		}
	}
	return o, nil
}

// answersVersion reports whether a PBS command was asked for its version or help, and
// answers.
func answersVersion(c *frame.Invocation) bool {
	if len(c.Args) != 1 {
		return false
	}
	switch c.Args[0] {
	case "--version":
		fmt.Fprintf(c.Stdout, "pbs_version = %s\n", pbsVersion())
	case "--help":
		c.PrintHelp(c.Stdout, c.Command)
	default:
		return false
	}
	return true
}
