package cli

import (
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/suggest"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func cellCommand() *command {
	return &command{
		name:    "cell",
		group:   groupPool,
		summary: "see and change which central managers decide together",
		synopsis: "[status] | add ADDRESS | remove NODE | recover | settings | set NAME VALUE | unset NAME " +
			"| checkpoint [FILE]",
		description: "The negotiators of a pool are replicas of one another: as long as more than half of them reach " +
			"each other they decide. status, which is what " +
			"is done without a word, lists them. add takes in the negotiator that listens on ADDRESS, remove strikes " +
			"the one of NODE (or of an address); " +
			"both while all run. recover makes of this node alone a new cell, when more than half are lost for good. " +
			"These are run on a central manager, by who can read its key. " +
			"settings shows what is set for the whole pool, set changes a setting, and unset puts it back to " +
			"its default: on any node, by who has the capability. " +
			"checkpoint writes down what the leader makes its plans of, for roost sim: machines and who has them, " +
			"what waits, and all that is set. Everybody may.",
		examples: []commandExample{
			{"roost cell", "how the central managers stand, and how many more may fail"},
			{"roost cell add 10.0.0.4:9702", "take in the negotiator on 10.0.0.4"},
			{"roost cell remove central2", "go on without the one on central2"},
			{"roost cell recover --force", "go on with this one alone, its negotiator being stopped"},
			{"roost cell settings", "all settings, with what they mean"},
			{"roost cell set backfill conservative", "no job that waits is delayed by a smaller one"},
			{"roost cell unset backfill", "as it was"},
			{"roost cell checkpoint monday.cell", "the cell as it is now, to try things on"},
		},
		flags: []ucli.Flag{
			&ucli.StringFlag{Name: "config", Usage: "the `FILE` of this node, see roost-node(5), instead of the one " +
				"of the pool in --dir or /etc/roost/node.hcl"},
			&ucli.BoolFlag{Name: "force", Usage: "with recover: yes, the others are lost, or will never be started " +
				"with what they have on disk; with checkpoint: write over the file"},
			jsonFlag(),
		},
		minOperands: 0,
		maxOperands: 3,
		run: func(c *invocation) error {
			verb := append(c.args, "status")[0]
			switch {
			case verb == "status" && len(c.args) < 2:
				return c.cellStatus()
			case verb == "add" && len(c.args) == 2:
				return c.cellAdd(c.args[1])
			case verb == "remove" && len(c.args) == 2:
				return c.cellRemove(c.args[1])
			case verb == "recover" && len(c.args) == 1:
				return c.cellRecover()
			case verb == "checkpoint" && len(c.args) < 3:
				return c.cellCheckpoint(strings.Join(c.args[1:], ""))
			case verb == "settings" && len(c.args) == 1:
				return c.cellSettings()
			case verb == "set" && len(c.args) == 3:
				return c.cellSet(c.args[1], c.args[2])
			case verb == "unset" && len(c.args) == 2:
				return c.removeObject(ledger.VerbRemove, ledger.KindSetting, c.args[1])
			}
			verbs := []string{"status", "add", "remove", "recover", "settings", "set", "unset", "checkpoint"}
			if n := suggest.Nearest(verb, verbs); n != "" && !slices.Contains(verbs, verb) {
				return withHint(usageErrorf("there is no %q", verb), "did you mean: roost cell "+n)
			}
			return usageErrorf("write it as roost cell [status], roost cell add ADDRESS, roost cell remove NODE, " +
				"roost cell recover, roost cell settings, roost cell set NAME VALUE, roost cell unset NAME, or roost " +
				"cell checkpoint [FILE]")
		},
	}
}
