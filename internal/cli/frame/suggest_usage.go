package frame

import (
	"errors"
	"strings"

	"github.com/roost-batch/roost/internal/suggest"
)

func suggestCommand(all []*Command, name string) string {
	var names []string
	for _, c := range all {
		if !c.Hidden {
			names = append(append(names, c.Name), c.Aliases...)
		}
	}
	if len(name) <= 32 {
		if n := suggest.Nearest(name, names); n != "" {
			return "did you mean: roost " + n
		}
	}
	return "see all commands with: roost --help"
}

func suggestFlag(name string, names []string, help string) string {
	if len(name) <= 32 {
		if n := suggest.Nearest(name, names); n != "" {
			return "did you mean " + n + "?"
		}
	}
	return "see all flags with: " + help
}

// SuggestUsage is the hint for a command line that is wrong.
func SuggestUsage(cmd *Command, err error) string {
	help := "roost " + cmd.Name + " --help"
	var unknown *UnknownFlagError
	if !errors.As(err, &unknown) || !strings.HasPrefix(unknown.name, "--") {
		return "see how it is used with: " + help
	}
	var names []string
	for _, f := range cmd.Flags {
		for _, n := range f.Names() {
			if len(n) > 1 {
				names = append(names, "--"+n)
			}
		}
	}
	return suggestFlag(unknown.name, names, help)
}
