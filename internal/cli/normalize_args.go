package cli

import (
	"strings"

	ucli "github.com/urfave/cli/v2"
)

// normalizeArgs writes arguments in the one form that leaves the parser no choice: long
// flags with "=value" first, "--", then the operands. People may put flags behind
// operands (unless the command is strict), join short ones ("-qj", "-n5") and give the
// value as the next word. It reports whether help was asked for; errors are of kind
// roost.Usage.
func normalizeArgs(cmd *command, args []string) (plain []string, help bool, err error) {
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
			if cmd.flagsFirst {
				operands = append(operands, args...)
				break
			}
			continue
		}
		var taken []string
		if strings.HasPrefix(arg, "--") {
			taken, args, err = expandLongFlag(cmd, arg, args)
		} else if taken, args, err = shortFlags(cmd, arg, args); cmd.signedOperands != nil &&
			cmd.signedOperands(operands, err) {
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

func expandLongFlag(cmd *command, arg string, rest []string) (taken, left []string, err error) {
	name, value, valued := strings.Cut(arg[2:], "=")
	f := flagNamed(cmd.flags, name)
	switch {
	case f == nil:
		return nil, nil, &unknownFlagError{name: "--" + name}
	case !takesValue(f) || valued:
		if !valued {
			return []string{"--" + f.Names()[0]}, rest, nil
		}
		return []string{"--" + f.Names()[0] + "=" + value}, rest, nil
	case len(rest) == 0:
		return nil, nil, usageErrorf("--%s needs a value", name)
	}
	return []string{"--" + f.Names()[0] + "=" + rest[0]}, rest[1:], nil
}

func shortFlags(cmd *command, arg string, rest []string) (taken, left []string, err error) {
	for i := 1; i < len(arg); i++ {
		f := flagNamed(cmd.flags, arg[i:i+1])
		if f == nil {
			return nil, nil, &unknownFlagError{name: "-" + arg[i:i+1], command: arg}
		}
		if !takesValue(f) {
			taken = append(taken, "--"+f.Names()[0])
			continue
		}
		value := strings.TrimPrefix(arg[i+1:], "=")
		if i+1 == len(arg) {
			if len(rest) == 0 {
				return nil, nil, usageErrorf("-%c needs a value", arg[i])
			}
			value, rest = rest[0], rest[1:]
		}
		return append(taken, "--"+f.Names()[0]+"="+value), rest, nil
	}
	return taken, rest, nil
}

func flagNamed(flags []ucli.Flag, name string) ucli.Flag {
	for _, f := range flags {
		for _, n := range f.Names() {
			if n == name {
				return f
			}
		}
	}
	return nil
}

func takesValue(f ucli.Flag) bool {
	d, ok := f.(ucli.DocGenerationFlag)
	return ok && d.TakesValue()
}
