package cli

import (
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/spell"
)

// branch is one of the things that a command does: its first operand names it.
type branch struct {
	name, brief string
	flags       []string // that it takes of the command's
	least, most int      // operands behind it; most is -1 for any number
	wants       string   // what they are, for messages
	do          func(c *call, args []string) error
}

// branchWords offers them to who types.
func branchWords(branches []branch) (list []suggestion) {
	for _, b := range branches {
		list = append(list, suggestion{b.name, b.brief})
	}
	return list
}

// doBranch does what the first operand says, or helps where there is none.
func (c *call) doBranch(branches []branch) error {
	if len(c.args) == 0 {
		c.help(c.stdout, c.cmd)
		return nil
	}
	var names []string
	for _, b := range branches {
		if b.name == c.args[0] {
			if err := c.suits(b, branches); err != nil {
				return err
			}
			return b.do(c, c.args[1:])
		}
		names = append(names, b.name)
	}
	if len(names) == 1 {
		return advise(usage("unknown command %q", c.args[0]), "there is "+names[0])
	}
	cure := "it is one of " + strings.Join(names, ", ") + "; see: roost " + c.cmd.name + " --help"
	if n := spell.Nearest(shorten(c.args[0], 32), names); n != "" {
		cure = "did you mean: roost " + c.cmd.name + " " + n
	}
	return advise(usage("unknown command %q", c.args[0]), cure)
}

// suits says whether the command line fits one of them.
func (c *call) suits(b branch, branches []branch) error {
	for _, other := range branches {
		for _, f := range other.flags {
			if c.given(f) && !slices.Contains(b.flags, f) {
				return advise(usage("--%s has no meaning for roost %s %s", f, c.cmd.name, b.name), cureUsage(c.cmd, nil))
			}
		}
	}
	switch n := len(c.args) - 1; {
	case n < b.least:
		return advise(usage("%s needs %s", b.name, b.wants), cureUsage(c.cmd, nil))
	case b.most >= 0 && n > b.most:
		return advise(usage("there is one argument too many: %q", c.args[b.most+1]), cureUsage(c.cmd, nil))
	}
	return nil
}

// verbWords are what may stand first behind a command of administrators, as its synopsis has it.
func verbWords(cmd *command) (list []suggestion) {
	for _, part := range strings.Split(cmd.args, " | ") {
		for _, verb := range strings.Split(strings.Trim(strings.Fields(part)[0], "[]"), "|") {
			list = append(list, suggestion{verb, cmd.name})
		}
	}
	return list
}
