package frame

import (
	"strings"

	ucli "github.com/urfave/cli/v2"
)

// normalizeArgs writes arguments in one form: long flags with "=value", then "--", then
// the operands. The parser has no choice left. People may put flags behind operands
// (unless the command is strict), join short ones ("-qj", "-n5") and give the value as
// the next word. It reports whether help was asked for; errors are of kind roost.Usage.
func normalizeArgs(cmd *Command, args []string) (plain []string, help bool, err error) {
	var operands []string
	for len(args) > 0 {
		arg, before := args[0], args[1:]
		args = before
		if arg == "--" {
			operands = append(operands, args...)
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			operands = append(operands, arg)
			if cmd.FlagsFirst {
				operands = append(operands, args...)
				break
			}
			continue
		}
		var taken []string
		if strings.HasPrefix(arg, "--") {
			taken, args, err = expandLongFlag(cmd, arg, args)
		} else if taken, args, err = shortFlags(cmd, arg, args); cmd.SignedOperands != nil &&
			cmd.SignedOperands(operands, err) {
			operands, args, err = append(operands, arg), before, nil
			continue
		}
		if err != nil {
			return nil, false, err
		}
		plain = append(plain, taken...)
	}
	for _, p := range plain {
		help = help || p == "--help"
	}
	return append(append(plain, "--"), operands...), help, nil
}

func expandLongFlag(cmd *Command, arg string, rest []string) (taken, left []string, err error) {
	name, value, valued := strings.Cut(arg[2:], "=")
	f := FlagNamed(cmd.Flags, name)
	switch {
	case f == nil:
		return nil, nil, &UnknownFlagError{name: "--" + name}
	case !TakesValue(f) || valued:
		if !valued {
			return []string{"--" + f.Names()[0]}, rest, nil
		}
		return []string{"--" + f.Names()[0] + "=" + value}, rest, nil
	case len(rest) == 0:
		return nil, nil, UsageErrorf("--%s needs a value", name)
	}
	return []string{"--" + f.Names()[0] + "=" + rest[0]}, rest[1:], nil
}

func shortFlags(cmd *Command, arg string, rest []string) (taken, left []string, err error) {
	for i := 1; i < len(arg); i++ {
		f := FlagNamed(cmd.Flags, arg[i:i+1])
		if f == nil {
			return nil, nil, &UnknownFlagError{name: "-" + arg[i:i+1], command: arg}
		}
		if !TakesValue(f) {
			taken = append(taken, "--"+f.Names()[0])
			continue
		}
		value := strings.TrimPrefix(arg[i+1:], "=")
		if i+1 == len(arg) {
			if len(rest) == 0 {
				return nil, nil, UsageErrorf("-%c needs a value", arg[i])
			}
			value, rest = rest[0], rest[1:]
		}
		return append(taken, "--"+f.Names()[0]+"="+value), rest, nil
	}
	return taken, rest, nil
}

// FlagNamed returns the flag of that name, without dashes; nil where there is none.
func FlagNamed(flags []ucli.Flag, name string) ucli.Flag {
	for _, f := range flags {
		for _, n := range f.Names() {
			if n == name {
				return f
			}
		}
	}
	return nil
}

// TakesValue reports whether a flag takes a value.
func TakesValue(f ucli.Flag) bool {
	d, ok := f.(ucli.DocGenerationFlag)
	return ok && d.TakesValue()
}
