// Package getopt reads command lines as getopt_long(3) of glibc does, for the commands of
// Slurm.
//
// Options and operands may be in any order. A long option may be written as
// "--name=value", "--name value" or by an unambiguous prefix of its name, a short one as
// "-n5" or "-n 5", and several short ones in one word. A word "--" ends the options. The
// errors have the words of glibc, because programs compare them.
package getopt

import (
	"fmt"
	"slices"
	"strings"
)

// Argument says whether an option has an argument.
type Argument uint8

// The kinds of arguments.
const (
	None     Argument = iota
	Required          // it follows, or stands in the same word
	Optional          // if there is one, it stands in the same word: "--name=value", "-nvalue"
)

// Option is an option that a command takes.
type Option struct {
	Name     string // long name; empty: it has only a letter
	Letter   byte   // 0: it has only a name
	Argument Argument
	As       string // the name under which it is reported; empty: Name
}

// reported returns the name under which the option is reported.
func (o Option) reported() string {
	switch {
	case o.As != "":
		return o.As
	case o.Name != "":
		return o.Name
	}
	return string(o.Letter)
}

// Given is an option of a command line.
type Given struct {
	Name     string // As, else Name, else the letter of the Option
	Value    string
	HasValue bool // false: an optional argument is absent, or the option has none
}

// Table is the options of a command.
type Table struct {
	Options []Option
	// options end at the first operand, as those of a command that runs another
	StopAtOperand bool
}

// Error is what is wrong with a command line. Its text has no name of a command.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

func refuse(format string, a ...any) error { return &Error{fmt.Sprintf(format, a...)} }

// Parse takes a command line apart, without the name of the command. Its errors are of
// type *Error. With one it returns the options before it.
func (t *Table) Parse(args []string) (given []Given, operands []string, err error) {
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch {
		case word == "--":
			return given, append(operands, args...), nil
		case len(word) < 2 || word[0] != '-':
			operands = append(operands, word)
			if t.StopAtOperand {
				return given, append(operands, args...), nil
			}
			continue
		}
		var more []Given
		if word[1] == '-' {
			more, args, err = t.parseLong(word[2:], args)
		} else {
			more, args, err = t.parseLetters(word[1:], args)
		}
		if given = append(given, more...); err != nil {
			return given, operands, err
		}
	}
	return given, operands, nil
}

// parseLong reads a word without its "--", and returns what follows the option.
func (t *Table) parseLong(word string, args []string) (given []Given, rest []string, err error) {
	name, value, has := strings.Cut(word, "=")
	o, err := t.findLong(name)
	switch {
	case err != nil:
		return nil, args, err
	case o.Argument == None && has:
		return nil, args, refuse("option '--%s' doesn't allow an argument", o.Name)
	case o.Argument == Required && !has && len(args) == 0:
		return nil, args, refuse("option '--%s' requires an argument", o.Name)
	case o.Argument == Required && !has:
		value, has, args = args[0], true, args[1:]
	}
	return []Given{{o.reported(), value, has}}, args, nil
}

// findLong finds the option of a name or of an unambiguous prefix of one. Names that mean
// the same option are no ambiguity.
func (t *Table) findLong(name string) (Option, error) {
	var found []Option
	for _, o := range t.Options {
		switch {
		case o.Name == "":
		case o.Name == name:
			return o, nil
		case strings.HasPrefix(o.Name, name):
			found = append(found, o)
		}
	}
	if len(found) == 0 {
		return Option{}, refuse("unrecognized option '--%s'", name)
	}
	if slices.ContainsFunc(found, func(o Option) bool { return o.reported() != found[0].reported() }) {
		var names strings.Builder
		for _, o := range found {
			fmt.Fprintf(&names, " '--%s'", o.Name)
		}
		return Option{}, refuse("option '--%s' is ambiguous; possibilities:%s", name, names.String())
	}
	return found[0], nil
}

// parseLetters reads a word of short options without its "-".
func (t *Table) parseLetters(word string, args []string) (given []Given, rest []string, err error) {
	for i := range len(word) {
		n := slices.IndexFunc(t.Options, func(o Option) bool { return o.Letter == word[i] })
		if n < 0 || word[i] == 0 {
			return given, args, refuse("invalid option -- '%c'", word[i])
		}
		o, value := t.Options[n], word[i+1:]
		if o.Argument == None {
			given = append(given, Given{Name: o.reported()})
			continue
		}
		has := value != ""
		if o.Argument == Required && !has {
			if len(args) == 0 {
				return given, args, refuse("option requires an argument -- '%c'", word[i])
			}
			value, has, args = args[0], true, args[1:]
		}
		return append(given, Given{o.reported(), value, has}), args, nil
	}
	return given, args, nil
}

// Message returns the lines that a command of Slurm prints on standard error about an
// error of Parse. The command then ends with 1, and sbatch, srun and salloc with 255.
func Message(command string, err error) string {
	return fmt.Sprintf("%s: %s\nTry \"%s --help\" for more information\n", command, err.Error(), command)
}

// Last returns the value of the last option of a name, and whether there is one.
func Last(given []Given, name string) (value string, ok bool) {
	for i := len(given) - 1; i >= 0; i-- {
		if given[i].Name == name {
			return given[i].Value, true
		}
	}
	return "", false
}
