package condor

import (
	"fmt"
	"strings"
)

// OptionWord is an option of a command of HTCondor. It may be shortened, has one dash or
// two, and case does not matter.
type OptionWord struct {
	Word   string
	Least  int // letters that are enough
	Values int // words behind it that belong to it; Rest: all up to the next option
}

// The values of OptionWord.Values beside numbers.
const (
	UpToOption = -1 // all words up to the next one with a dash
	Rest       = -2 // all words
)

// GivenOption is an option of a command line.
type GivenOption struct {
	Word    string // as in the table
	Letters string // behind a colon
	Values  []string
}

// CommandLine is a command line taken apart.
type CommandLine struct {
	Options  []GivenOption
	Operands []string
}

// ParseCommandLine takes a command line apart. A single dash is an operand.
func ParseCommandLine(args []string, words []OptionWord) (l CommandLine, err error) {
	for i := 0; i < len(args); {
		arg := args[i]
		i++
		if len(arg) < 2 || arg[0] != '-' {
			l.Operands = append(l.Operands, arg)
			continue
		}
		word, letters, _ := strings.Cut(strings.TrimPrefix(arg[1:], "-"), ":")
		o, ok := findOption(words, strings.ToLower(word))
		if !ok {
			return l, fmt.Errorf("unrecognized argument %s", arg)
		}
		end := i + o.Values
		switch o.Values {
		case UpToOption:
			for end = i; end < len(args) && !strings.HasPrefix(args[end], "-"); {
				end++
			}
		case Rest:
			end = len(args)
		}
		if end > len(args) {
			return l, fmt.Errorf("%s requires %d more argument(s)", arg, end-len(args))
		}
		l.Options = append(l.Options, GivenOption{o.Word, letters, args[i:end]})
		if i = end; o.Values == UpToOption && i < len(args) && args[i] == "-" {
			i++ // it only ends the list
		}
	}
	return l, nil
}

// findOption finds the option that a word stands for. A whole word comes before those
// that it begins.
func findOption(words []OptionWord, text string) (OptionWord, bool) {
	for _, o := range words {
		if o.Word == text {
			return o, true
		}
	}
	for _, o := range words {
		if len(text) >= o.Least && strings.HasPrefix(o.Word, text) {
			return o, true
		}
	}
	return OptionWord{}, false
}

// Has reports whether an option is on the command line.
func (l CommandLine) Has(word string) bool {
	for _, o := range l.Options {
		if o.Word == word {
			return true
		}
	}
	return false
}

// Values returns all values of an option.
func (l CommandLine) Values(word string) (all []string) {
	for _, o := range l.Options {
		if o.Word == word {
			all = append(all, o.Values...)
		}
	}
	return all
}

// Last returns the last value of an option; empty if it is not there.
func (l CommandLine) Last(word string) string {
	if all := l.Values(word); len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}
