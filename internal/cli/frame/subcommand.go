package frame

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/suggest"
)

// Subcommand is one of the things that a command does, which its first operand names.
type Subcommand struct {
	Name, Summary            string
	Flags                    []string // names of those flags of the command that it takes
	MinOperands, MaxOperands int      // how many operands follow its name; MaxOperands is -1 for any number
	OperandNames             string   // what the operands are, for messages
	Run                      func(c *Invocation, args []string) error
}

// SubcommandWords are the subcommands as words for the completion.
func SubcommandWords(branches []Subcommand) (list []CompletionItem) {
	for _, b := range branches {
		list = append(list, CompletionItem{b.Name, b.Summary})
	}
	return list
}

// RunSubcommand runs the subcommand that the first operand names; without operands it
// prints the help.
func (c *Invocation) RunSubcommand(branches []Subcommand) error {
	if len(c.Args) == 0 {
		c.PrintHelp(c.Stdout, c.Command)
		return nil
	}
	var names []string
	for _, b := range branches {
		if b.Name == c.Args[0] {
			if err := c.acceptsOperands(b, branches); err != nil {
				return err
			}
			return b.Run(c, c.Args[1:])
		}
		names = append(names, b.Name)
	}
	if len(names) == 1 {
		return WithHint(UsageErrorf("unknown command %q", c.Args[0]), "there is "+names[0])
	}
	cure := "it is one of " + strings.Join(names, ", ") + "; see: roost " + c.Command.Name + " --help"
	if n := suggest.Nearest(TruncateText(c.Args[0], 32), names); n != "" {
		cure = "did you mean: roost " + c.Command.Name + " " + n
	}
	return WithHint(UsageErrorf("unknown command %q", c.Args[0]), cure)
}

// acceptsOperands says whether the command line fits one of them.
func (c *Invocation) acceptsOperands(b Subcommand, branches []Subcommand) error {
	for _, other := range branches {
		for _, f := range other.Flags {
			if c.IsFlagSet(f) && !slices.Contains(b.Flags, f) {
				return WithHint(UsageErrorf("--%s has no meaning for roost %s %s", f, c.Command.Name, b.Name),
					SuggestUsage(c.Command, nil))
			}
		}
	}
	switch n := len(c.Args) - 1; {
	case n < b.MinOperands:
		return WithHint(UsageErrorf("%s needs %s", b.Name, b.OperandNames), SuggestUsage(c.Command, nil))
	case b.MaxOperands >= 0 && n > b.MaxOperands:
		return WithHint(UsageErrorf("there is one argument too many: %q", c.Args[b.MaxOperands+1]),
			SuggestUsage(c.Command, nil))
	}
	return nil
}

// AdminVerbs are the verbs of an administrator's command, which its synopsis lists.
func AdminVerbs(cmd *Command) (list []CompletionItem) {
	for _, part := range strings.Split(cmd.Synopsis, " | ") {
		for _, verb := range strings.Split(strings.Trim(strings.Fields(part)[0], "[]"), "|") {
			list = append(list, CompletionItem{verb, cmd.Name})
		}
	}
	return list
}

// CompletionItem is a word that may come next on a command line, and what it means.
type CompletionItem struct{ Word, Description string }
