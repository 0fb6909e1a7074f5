package cli

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/negotiator/ledger"
)

func commentCommand() *command {
	return &command{
		name: "comment", group: groupAdmin, summary: "say something about a node", synopsis: "[NODE TEXT]",
		maxOperands: 2,
		description: "Shows what administrators say of nodes, sets what they say of one, or with an empty TEXT takes " +
			"that away. A comment changes nothing else: to keep tasks away use roost drain, which has a reason of " +
			"its own. roost nodes and pbsnodes show it.",
		examples: []commandExample{
			{"roost comment", "all comments"},
			{"roost comment n7 'fan is loud, new one ordered'", "for those who look at n7"},
			{"roost comment n7 ''", "n7 is well again"},
		},
		flags: []ucli.Flag{forceFlag(), jsonFlag()},
		run: func(c *invocation) error {
			if len(c.args) == 1 {
				return usageErrorf("write it as roost comment NODE TEXT, with '' for TEXT to take a comment away")
			}
			if len(c.args) == 0 {
				if err := c.refuseFlags("a list; give a text to set it"); err != nil {
					return err
				}
				t := &textTable{columns: []tableColumn{{head: "NODE"}, {head: "COMMENT", minWidth: 10}}}
				return showObjects(c, ledger.KindComment, "comments", "nobody says anything of a node", t,
					func(o attributedObject[ledger.MachineComment]) []tableCell {
						return []tableCell{{printableText(o.Object.Node), ""}, {printableText(o.Object.Text), ""}}
					})
			}
			comments, err := c.nodeComments()
			if err != nil {
				return err
			}
			var known []string
			for name := range comments {
				known = append(known, name)
			}
			node, err := c.fullNodeName(c.args[0], known...)
			if err != nil {
				return err
			}
			return c.suggestNode(node, c.setNodeComment(node, c.args[1], comments[node]))
		},
	}
}

// nodeComments are what administrators say of nodes.
func (c *invocation) nodeComments() (map[string]string, error) {
	var all []attributedObject[ledger.MachineComment]
	if err := c.cellObjects(string(ledger.KindComment), &all); err != nil {
		return nil, err
	}
	by := map[string]string{}
	for _, o := range all {
		by[o.Object.Node] = o.Object.Text
	}
	return by, nil
}

// setNodeComment sets what is said of a node, or with an empty text takes away what was.
func (c *invocation) setNodeComment(node, text, was string) error {
	switch {
	case text == was:
		return nil
	case text == "":
		return c.removeObject(ledger.VerbRemove, ledger.KindComment, node)
	}
	return c.patchObject(ledger.KindComment, objectPatch{"node": node, "text": text})
}
