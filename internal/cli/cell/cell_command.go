package cell

import (
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/suggest"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// CellCommand returns roost cell: see and change which central managers decide together.
// Recovery needs the code of the negotiator, and so recoverCell does it.
func CellCommand(recoverCell func(*frame.Invocation) error) *frame.Command {
	return &frame.Command{
		Name:    "cell",
		Group:   frame.GroupPool,
		Summary: "see and change which central managers decide together",
		Synopsis: "[status] | add ADDRESS | remove NODE | recover | settings | set NAME VALUE | unset NAME " +
			"| checkpoint [FILE]",
		Description: "The negotiators of a pool are replicas of one another: as long as more than half of them reach " +
			"each other they decide. status, which is what " +
			"is done without a word, lists them. add takes in the negotiator that listens on ADDRESS, remove strikes " +
			"the one of NODE (or of an address); " +
			"both while all run. recover makes of this node alone a new cell, when more than half are lost for good. " +
			"These are run on a central manager, by who can read its key. " +
			"settings shows what is set for the whole pool, set changes a setting, and unset puts it back to " +
			"its default: on any node, by who has the capability. " +
			"checkpoint writes down what the leader makes its plans of, for roost sim: machines and who has them, " +
			"what waits, and all that is set. Everybody may.",
		Examples: []frame.Example{
			{Line: "roost cell", Description: "how the central managers stand, and how many more may fail"},
			{Line: "roost cell add 10.0.0.4:9702", Description: "take in the negotiator on 10.0.0.4"},
			{Line: "roost cell remove central2", Description: "go on without the one on central2"},
			{Line: "roost cell --queue", Description: "the same for the queue of the cell"},
			{Line: "roost cell recover --force",
				Description: "go on with this one alone, its negotiator being stopped"},
			{Line: "roost cell settings", Description: "all settings, with what they mean"},
			{Line: "roost cell set backfill conservative",
				Description: "no job that waits is delayed by a smaller one"},
			{Line: "roost cell unset backfill", Description: "as it was"},
			{Line: "roost cell checkpoint monday.cell", Description: "the cell as it is now, to try things on"},
			{Line: "roost cell checkpoint --into /var/lib/roost/checkpoints --keep 14d",
				Description: "one more for the pages of past instants, from a timer"},
		},
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "config", Usage: "the `FILE` of this node, see roost-node(5), instead of the one " +
				"of the pool in --dir or /etc/roost/node.hcl"},
			&ucli.BoolFlag{Name: "queue", Usage: "with status, add, remove and recover: those who keep the queue of " +
				"the cell, in place of the negotiators"},
			&ucli.StringFlag{Name: "into", Usage: "with checkpoint: add it to the checkpoints in this `DIR`, which " +
				"pages show; see roost-web(8)"},
			&ucli.StringFlag{Name: "keep", Usage: "with --into: remove those that are older than this `DURATION`"},
			&ucli.BoolFlag{Name: "force", Usage: "with recover: yes, the others are lost, or will never be started " +
				"with what they have on disk; with checkpoint: write over the file"},
			frame.JSONFlag(),
		},
		MinOperands: 0,
		MaxOperands: 3,
		Run: func(c *frame.Invocation) error {
			verb := append(c.Args, "status")[0]
			switch {
			case verb == "status" && len(c.Args) < 2:
				return cellStatus(c)
			case verb == "add" && len(c.Args) == 2:
				return cellAdd(c, c.Args[1])
			case verb == "remove" && len(c.Args) == 2:
				return cellRemove(c, c.Args[1])
			case verb == "recover" && len(c.Args) == 1:
				return recoverCell(c)
			case verb == "checkpoint" && len(c.Args) < 3:
				if dir := c.StringFlag("into"); dir != "" && len(c.Args) == 1 {
					return storeCheckpoint(c, dir, c.StringFlag("keep"))
				}
				return cellCheckpoint(c, strings.Join(c.Args[1:], ""))
			case verb == "settings" && len(c.Args) == 1:
				return cellSettings(c)
			case verb == "set" && len(c.Args) == 3:
				return cellSet(c, c.Args[1], c.Args[2])
			case verb == "unset" && len(c.Args) == 2:
				return admin.RemoveObject(c, ledger.VerbRemove, ledger.KindSetting, c.Args[1])
			}
			verbs := []string{"status", "add", "remove", "recover", "settings", "set", "unset", "checkpoint"}
			if n := suggest.Nearest(verb, verbs); n != "" && !slices.Contains(verbs, verb) {
				return frame.WithHint(frame.UsageErrorf("there is no %q", verb), "did you mean: roost cell "+n)
			}
			return frame.UsageErrorf("write it as roost cell [status], roost cell add ADDRESS, " +
				"roost cell remove NODE, " +
				"roost cell recover, roost cell settings, roost cell set NAME VALUE, roost cell unset NAME, or roost " +
				"cell checkpoint [FILE]")
		},
	}
}
