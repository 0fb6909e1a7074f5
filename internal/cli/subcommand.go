package cli

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/suggest"
)

// subcommand is one of the things that a command does: its first operand names it.
type subcommand struct {
	name, summary            string
	flags                    []string // that it takes of the command's
	minOperands, maxOperands int      // operands behind it; most is -1 for any number
	operandNames             string   // what they are, for messages
	run                      func(c *invocation, args []string) error
}

// subcommandWords offers them to who types.
func subcommandWords(branches []subcommand) (list []completionItem) {
	for _, b := range branches {
		list = append(list, completionItem{b.name, b.summary})
	}
	return list
}

// runSubcommand does what the first operand says, or helps where there is none.
func (c *invocation) runSubcommand(branches []subcommand) error {
	if len(c.args) == 0 {
		c.printHelp(c.stdout, c.cmd)
		return nil
	}
	var names []string
	for _, b := range branches {
		if b.name == c.args[0] {
			if err := c.acceptsOperands(b, branches); err != nil {
				return err
			}
			return b.run(c, c.args[1:])
		}
		names = append(names, b.name)
	}
	if len(names) == 1 {
		return withHint(usageErrorf("unknown command %q", c.args[0]), "there is "+names[0])
	}
	cure := "it is one of " + strings.Join(names, ", ") + "; see: roost " + c.cmd.name + " --help"
	if n := suggest.Nearest(truncateText(c.args[0], 32), names); n != "" {
		cure = "did you mean: roost " + c.cmd.name + " " + n
	}
	return withHint(usageErrorf("unknown command %q", c.args[0]), cure)
}

// acceptsOperands says whether the command line fits one of them.
func (c *invocation) acceptsOperands(b subcommand, branches []subcommand) error {
	for _, other := range branches {
		for _, f := range other.flags {
			if c.isFlagSet(f) && !slices.Contains(b.flags, f) {
				return withHint(usageErrorf("--%s has no meaning for roost %s %s", f, c.cmd.name, b.name),
					suggestUsage(c.cmd, nil))
			}
		}
	}
	switch n := len(c.args) - 1; {
	case n < b.minOperands:
		return withHint(usageErrorf("%s needs %s", b.name, b.operandNames), suggestUsage(c.cmd, nil))
	case b.maxOperands >= 0 && n > b.maxOperands:
		return withHint(usageErrorf("there is one argument too many: %q", c.args[b.maxOperands+1]),
			suggestUsage(c.cmd, nil))
	}
	return nil
}

// adminVerbs are what may stand first behind a command of administrators, as its synopsis
// has it.
func adminVerbs(cmd *command) (list []completionItem) {
	for _, part := range strings.Split(cmd.synopsis, " | ") {
		for _, verb := range strings.Split(strings.Trim(strings.Fields(part)[0], "[]"), "|") {
			list = append(list, completionItem{verb, cmd.name})
		}
	}
	return list
}

// completionItem is a word that may stand next, and what it means.
type completionItem struct{ word, description string }
