package cli

import ucli "github.com/urfave/cli/v2"

func cellCommand() *command {
	return &command{
		name:  "cell",
		group: groupPool,
		brief: "see and change which central managers decide together",
		args:  "[status] | add ADDRESS | remove NODE | recover",
		about: "The negotiators of a pool are replicas of one another: as long as more than half of them reach each other they decide. status, which is what " +
			"is done without a word, lists them. add takes in the negotiator that listens on ADDRESS, remove strikes the one of NODE (or of an address); " +
			"both while all run. recover makes of this node alone a new cell, when more than half are lost for good. It is run on a central manager, by who can read its key.",
		examples: []example{
			{"roost cell", "how the central managers stand, and how many more may fail"},
			{"roost cell add 10.0.0.4:9702", "take in the negotiator on 10.0.0.4"},
			{"roost cell remove central2", "go on without the one on central2"},
			{"roost cell recover --force", "go on with this one alone, its negotiator being stopped"},
		},
		flags: []ucli.Flag{
			&ucli.StringFlag{Name: "config", Usage: "the `FILE` of this node, see roost-node(5), instead of the one of the pool in --dir or /etc/roost/node.hcl"},
			&ucli.BoolFlag{Name: "force", Usage: "with recover: yes, the others are lost, or will never be started with what they have on disk"},
			jsonFlag(),
		},
		least: 0,
		most:  2,
		do: func(c *call) error {
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
			}
			return usage("write it as roost cell [status], roost cell add ADDRESS, roost cell remove NODE, or roost cell recover")
		},
	}
}
