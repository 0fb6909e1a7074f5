package admin

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// CommentCommand returns roost comment: say something about a node.
func CommentCommand() *frame.Command {
	return &frame.Command{
		Name: "comment", Group: frame.GroupAdmin, Summary: "say something about a node", Synopsis: "[NODE TEXT]",
		MaxOperands: 2,
		Description: "Shows what administrators say of nodes, sets what they say of one, or with an empty TEXT takes " +
			"that away. A comment changes nothing else: to keep tasks away use roost drain, which has a reason of " +
			"its own. roost nodes and pbsnodes show it.",
		Examples: []frame.Example{
			{Line: "roost comment", Description: "all comments"},
			{Line: "roost comment n7 'fan is loud, new one ordered'", Description: "for those who look at n7"},
			{Line: "roost comment n7 ''", Description: "n7 is well again"},
		},
		Flags: []ucli.Flag{forceFlag(), frame.JSONFlag()},
		Run: func(c *frame.Invocation) error {
			if len(c.Args) == 1 {
				return frame.UsageErrorf("write it as roost comment NODE TEXT, with '' for TEXT to take a comment away")
			}
			if len(c.Args) == 0 {
				if err := refuseFlags(c, "a list; give a text to set it"); err != nil {
					return err
				}
				t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "NODE"}, {Head: "COMMENT", MinWidth: 10}}}
				return showObjects(c, ledger.KindComment, "comments", "nobody says anything of a node", t,
					func(o AttributedObject[ledger.MachineComment]) []frame.TableCell {
						return []frame.TableCell{{Text: document.PrintableText(o.Object.Node)},
							{Text: document.PrintableText(o.Object.Text)}}
					})
			}
			comments, err := NodeComments(c)
			if err != nil {
				return err
			}
			var known []string
			for name := range comments {
				known = append(known, name)
			}
			node, err := fullNodeName(c, c.Args[0], known...)
			if err != nil {
				return err
			}
			return suggestNode(c, node, SetNodeComment(c, node, c.Args[1], comments[node]))
		},
	}
}

// NodeComments are the comments of administrators, by node.
func NodeComments(c *frame.Invocation) (map[string]string, error) {
	var all []AttributedObject[ledger.MachineComment]
	if err := CellObjects(c, string(ledger.KindComment), &all); err != nil {
		return nil, err
	}
	by := map[string]string{}
	for _, o := range all {
		by[o.Object.Node] = o.Object.Text
	}
	return by, nil
}

// SetNodeComment sets the comment of a node; an empty text removes it.
func SetNodeComment(c *frame.Invocation, node, text, was string) error {
	switch {
	case text == was:
		return nil
	case text == "":
		return RemoveObject(c, ledger.VerbRemove, ledger.KindComment, node)
	}
	return PatchObject(c, ledger.KindComment, ObjectPatch{"node": node, "text": text})
}
