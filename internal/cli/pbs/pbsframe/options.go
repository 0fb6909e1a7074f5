package pbsframe

import (
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/pbs/qstat"
)

// PrintUsage prints how a command is used.
func PrintUsage(c *frame.Invocation, why string) error {
	if why != "" {
		fmt.Fprintf(c.Stderr, "%s: %s\n", c.Command.Name, why)
	}
	fmt.Fprintf(c.Stderr, "usage: %s %s\n", c.Command.Name, c.Command.Synopsis)
	return frame.ExitError(2)
}

// Options is a PBS command line as getopt(3) reads it: options with their values, and
// operands. Options may stand behind operands, because clients put them there.
type Options struct {
	Given    map[byte][]string
	Order    []qstat.GivenOption // the same, in the order of the command line
	Operands []string
}

// IsSet reports whether an option is on the command line.
func (o Options) IsSet(letter byte) bool { return len(o.Given[letter]) > 0 }

func (o *Options) add(letter byte, value string) {
	o.Given[letter] = append(o.Given[letter], value)
	o.Order = append(o.Order, qstat.GivenOption{Letter: letter, Value: value})
}

// Last is the value that counts: of an option given twice, the later.
func (o Options) Last(letter byte) string {
	if v := o.Given[letter]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// ParseOptions takes a command line apart. The specification is that of getopt(3):
// letters, each with a ":" behind it if it takes a value.
func ParseOptions(args []string, spec string) (Options, error) {
	o := Options{Given: map[byte][]string{}}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			o.Operands = append(o.Operands, args...)
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			o.Operands = append(o.Operands, arg)
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

// AnswersVersion reports whether a PBS command was asked for its version or help, and
// answers.
func AnswersVersion(c *frame.Invocation) bool {
	if len(c.Args) != 1 {
		return false
	}
	switch c.Args[0] {
	case "--version":
		fmt.Fprintf(c.Stdout, "pbs_version = %s\n", Version())
	case "--help":
		c.PrintHelp(c.Stdout, c.Command)
	default:
		return false
	}
	return true
}

// ShortFlag is an option of a PBS command, as the help and the manual have it.
func ShortFlag(letter, value, words string) ucli.Flag {
	if value == "" {
		return &ucli.BoolFlag{Name: letter, Usage: words}
	}
	return &ucli.StringFlag{Name: letter, Usage: "`" + value + "`: " + words}
}

// CutLeadingOptions parts a command's own options from the command that it runs. The
// latter begins behind "--" or with the first word without a dash.
func CutLeadingOptions(args []string, valued string) (own, rest []string) {
	for i := 0; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "--":
			return args[:i], args[i+1:]
		case len(arg) < 2 || arg[0] != '-':
			return args[:i], args[i:]
		case len(arg) == 2 && strings.IndexByte(valued, arg[1]) >= 0:
			i++ // its value
		}
	}
	return args, nil
}
