package cli

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/negotiator/ledger"
)

func commentCommand() *command {
	return &command{
		name: "comment", group: groupAdmin, brief: "say something about a node", args: "[NODE TEXT]", most: 2,
		about: "Shows what administrators say of nodes, sets what they say of one, or with an empty TEXT takes that away. A comment changes nothing else: to keep tasks away use roost drain, which has a reason of its own. roost nodes and pbsnodes show it.",
		examples: []example{
			{"roost comment", "all comments"},
			{"roost comment n7 'fan is loud, new one ordered'", "for those who look at n7"},
			{"roost comment n7 ''", "n7 is well again"},
		},
		flags: []ucli.Flag{forceFlag(), jsonFlag()},
		do: func(c *call) error {
			if len(c.args) == 1 {
				return usage("write it as roost comment NODE TEXT, with '' for TEXT to take a comment away")
			}
			if len(c.args) == 0 {
				if err := c.bare("a list; give a text to set it"); err != nil {
					return err
				}
				t := &table{columns: []column{{head: "NODE"}, {head: "COMMENT", least: 10}}}
				return show(c, ledger.KindComment, "comments", "nobody says anything of a node", t, func(o entered[ledger.Comment]) []cell {
					return []cell{{printable(o.Object.Node), ""}, {printable(o.Object.Text), ""}}
				})
			}
			comments, err := c.comments()
			if err != nil {
				return err
			}
			var known []string
			for name := range comments {
				known = append(known, name)
			}
			node, err := c.wholeNode(c.args[0], known...)
			if err != nil {
				return err
			}
			return c.nodeMeant(node, c.sayOf(node, c.args[1], comments[node]))
		},
	}
}

// comments are what administrators say of nodes.
func (c *call) comments() (map[string]string, error) {
	var all []entered[ledger.Comment]
	if err := c.shown(string(ledger.KindComment), &all); err != nil {
		return nil, err
	}
	by := map[string]string{}
	for _, o := range all {
		by[o.Object.Node] = o.Object.Text
	}
	return by, nil
}

// sayOf sets what is said of a node, or with an empty text takes away what was.
func (c *call) sayOf(node, text, was string) error {
	switch {
	case text == was:
		return nil
	case text == "":
		return c.undo(ledger.Remove, ledger.KindComment, node)
	}
	return c.set(ledger.KindComment, wish{"node": node, "text": text})
}
