package admin

import (
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// DrainCommand returns roost drain: keep new tasks away from a node.
func DrainCommand() *frame.Command {
	return &frame.Command{
		Name: "drain", Group: frame.GroupAdmin, Summary: "keep new tasks away from a node", Synopsis: "[NODE]",
		MaxOperands: 1, Run: drainNode,
		Description: "Keeps new tasks away from a node, now or from a time on, or lists the nodes that are drained " +
			"or will be. Tasks of services go to other nodes in turn, as far as max_down of their jobs allows. " +
			"All others may end, and nothing is started that would still run when the drain begins. " +
			"After the deadline whatever still runs is ended. roost undrain lets the node have tasks again.",
		Examples: []frame.Example{
			{Line: "roost drain n7 --reason 'new memory' --wait",
				Description: "take no more, and wait until the node is empty"},
			{Line: "roost drain n7 --from '2026-03-01 08:00' --until '2026-03-01 12:00'",
				Description: "for a maintenance window"},
			{Line: "roost drain n7 --deadline 2h --wait",
				Description: "show who is waited for, and end after two hours what still runs"},
			{Line: "roost drain", Description: "which nodes are drained, and why"},
		},
		Flags: append([]ucli.Flag{
			&ucli.StringFlag{Name: "reason", Usage: "why, a `TEXT` for those who ask"},
			&ucli.BoolFlag{Name: "wait", Usage: "wait until nothing runs there, and show what is waited for"},
			&ucli.StringFlag{Name: "deadline", Usage: "when what still runs there is ended, a `TIME` likewise"},
			forceFlag(), frame.JSONFlag(),
		}, timeFlags("the drain")...),
	}
}

// UndrainCommand returns roost undrain: let a node have tasks again.
func UndrainCommand() *frame.Command {
	return &frame.Command{
		Name: "undrain", Group: frame.GroupAdmin, Summary: "let a node have tasks again", Synopsis: "NODE…",
		MinOperands: 1,
		MaxOperands: -1, OperandName: "a node",
		Description: "Ends drains, also those that have not begun: the nodes get tasks again at once.",
		Examples: []frame.Example{
			{Line: "roost undrain n7", Description: "n7 is well again"},
			{Line: "roost undrain n1 n2 n3", Description: "so are these"},
		},
		Run: func(c *frame.Invocation) error {
			drained, err := drainedNodes(c)
			if err != nil {
				return err
			}
			for _, node := range c.Args {
				if node, err = fullNodeName(c, node, drained...); err != nil {
					return err
				}
				if err := RemoveObject(c, ledger.VerbRemove, ledger.KindDrain, node); err != nil {
					return suggestNode(c, node, err)
				}
			}
			return nil
		},
	}
}

func drainNode(c *frame.Invocation) error {
	if len(c.Args) == 0 {
		if err := refuseFlags(c, "a list; name a node to drain it"); err != nil {
			return err
		}
		t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "NODE"}, {Head: "FROM"}, {Head: "UNTIL"},
			{Head: "REASON", MinWidth: 10}}}
		return showObjects(c, ledger.KindDrain, "drains", "no node is drained", t,
			func(o AttributedObject[ledger.MachineDrain]) []frame.TableCell {
				d, from := o.Object, o.Object.From
				if from.IsZero() {
					from = o.At
				}
				return []frame.TableCell{{Text: document.PrintableText(d.Node)}, {Text: UntilText(c, from)},
					{Text: UntilText(c, d.Until)},
					{Text: document.PrintableText(d.Reason)}}
			})
	}
	node, err := fullNodeName(c, c.Args[0])
	if err != nil {
		return err
	}
	w := ObjectPatch{"node": node, "evict": true}
	if c.IsFlagSet("reason") {
		w["reason"] = c.StringFlag("reason")
	}
	if err := timeFlagsTo(c, w, "from", "until", "deadline"); err != nil {
		return err
	}
	if c.Flag("wait") && c.IsFlagSet("from") && w["from"] != nil {
		return frame.UsageErrorf("--wait waits for a drain that begins now: leave --from out, or wait later")
	}
	if err := putObject(c, ledger.KindDrain, w); err != nil {
		return suggestNode(c, node, err)
	}
	if !c.Flag("wait") {
		return nil
	}
	return awaitDrained(c, node)
}

// drainedNodes are the nodes that are drained or will be; they may be away.
func drainedNodes(c *frame.Invocation) (names []string, err error) {
	var drains []AttributedObject[ledger.MachineDrain]
	err = CellObjects(c, string(ledger.KindDrain), &drains)
	for _, d := range drains {
		names = append(names, d.Object.Node)
	}
	return names, err
}

// ReservationCommand returns roost reservation: show and set what is kept for somebody at
// a time.
func ReservationCommand() *frame.Command {
	return &frame.Command{
		Name: "reservation", Group: frame.GroupAdmin, Summary: "show and set what is kept for somebody at a time",
		Synopsis: "[set NAME | rm NAME]", MaxOperands: -1,
		Description: "Shows the advance reservations, or makes, changes or removes one. A reservation keeps nodes, " +
			"or an amount of resources wherever it is, from a time until another for jobs of some users and groups. " +
			"Nothing else is started there that would still run when it begins.",
		Examples: []frame.Example{
			{Line: "roost reservation", Description: "all reservations"},
			{Line: "roost reservation set class --users ann,bob --nodes n1,n2 --from '2026-03-01 08:00' --until " +
				"'2026-03-01 12:00'", Description: "two nodes for a morning"},
			{Line: "roost reservation set deadline --groups sci --cpus 128 --from 2d --until 4d",
				Description: "128 cores the day after tomorrow, for two days"},
			{Line: "roost reservation rm class",
				Description: "take it away; what runs in it goes on, and what waits for it waits"},
			{Line: "roost reservation rm --jobs class", Description: "take it away and remove its jobs"},
		},
		Flags: append([]ucli.Flag{
			&ucli.StringSliceFlag{Name: "users", Usage: "for these users, `A,B`"},
			&ucli.StringSliceFlag{Name: "groups", Usage: "for these groups, `A,B`"},
			&ucli.StringSliceFlag{Name: "nodes", Usage: "these nodes, whole, `A,B`"},
			&ucli.StringFlag{Name: "cpus", Usage: "so many cores, `N`"},
			&ucli.StringFlag{Name: "memory", Usage: "so much memory, a `SIZE`"},
			&ucli.StringFlag{Name: "disk", Usage: "so much disk, a `SIZE`"},
			&ucli.StringFlag{Name: "gpus", Usage: "so many GPUs, `N`"},
			&ucli.StringFlag{Name: "reason", Usage: "why, a `TEXT` for those who ask"},
			&ucli.BoolFlag{Name: "jobs", Usage: "with rm: its jobs are removed, too, also those that run"},
			forceFlag(), frame.JSONFlag(),
		}, timeFlags("it")...),
		Run: administer(showReservations, map[string]func(*frame.Invocation) error{"set": setReservation,
			"rm": removeReservation}, "jobs"),
	}
}

func showReservations(c *frame.Invocation) error {
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "NAME"}, {Head: "FROM"}, {Head: "UNTIL"},
		{Head: "FOR", MinWidth: 8},
		{Head: "WHAT", MinWidth: 8}, {Head: "REASON", MinWidth: 6, DropPriority: 1}}}
	return showObjects(c, ledger.KindReservation, "reservations", "nothing is reserved",
		t, func(o AttributedObject[ledger.AdvanceReservation]) []frame.TableCell {
			r := o.Object
			what := strings.Join(r.Nodes, ",")
			if r.Amount != nil {
				what = r.Amount.String()
			}
			who := append([]string(nil), r.Users...)
			for _, g := range r.Groups {
				who = append(who, "group "+g)
			}
			if r.Deleting {
				r.Reason = "is being deleted"
			}
			return []frame.TableCell{{Text: r.Name}, {Text: UntilText(c, r.From)}, {Text: UntilText(c, r.Until)},
				{Text: document.PrintableText(strings.Join(who, ","))}, {Text: document.PrintableText(what)},
				{Text: document.PrintableText(r.Reason), Colour: frame.Dim}}
		})
}

func removeReservation(c *frame.Invocation) error {
	if !c.Flag("jobs") {
		return removeNamed(ledger.KindReservation, "the name of a reservation")(c)
	}
	if err := requireOperands(c, "the name of a reservation"); err != nil {
		return err
	}
	all, _, err := Reservations(c)
	if err == nil && !slices.ContainsFunc(all, func(r AttributedObject[ledger.AdvanceReservation]) bool {
		return r.Name == c.Args[0]
	}) {
		err = frame.KindErrorf(roost.NotFound, "reservation %s: there is none of that name", c.Args[0])
	}
	if err != nil {
		return err
	}
	return DeleteReservation(c, c.Args[0])
}

func setReservation(c *frame.Invocation) error {
	if err := requireOperands(c, "the name of a reservation"); err != nil {
		return err
	}
	w := ObjectPatch{"name": c.Args[0]}
	users := nameListFlag(c, w, "users", "users")
	nameListFlag(c, w, "groups", "groups")
	nodes := nameListFlag(c, w, "nodes", "nodes")
	for i, node := range nodes {
		whole, err := fullNodeName(c, node)
		if err != nil {
			return err
		}
		nodes[i] = whole
	}
	if err := amountFlags(c, func() ObjectPatch {
		return w.SubPatch("amount")
	}, "", "cpus", "memory", "disk", "gpus"); err != nil {
		return err
	}
	if c.IsFlagSet("reason") {
		w["reason"] = c.StringFlag("reason")
	}
	if err := timeRangeFlags(c, w); err != nil {
		return err
	}
	return PatchObject(c, ledger.KindReservation, w, users...)
}

// DeleteReservation deletes a reservation and its jobs. The ledger marks it as being
// deleted, so that it reserves nothing and accepts no jobs, and each schedd removes its
// jobs; when none is left the reservation goes. If this program ends before, running it
// again continues. The ledger notes that it is being deleted, whereupon it keeps nothing
// and lets nobody in, and each schedd removes its jobs; when none is left the reservation
// goes. If this program ends before, who runs it again goes on.
func DeleteReservation(c *frame.Invocation, name string) error {
	w := ObjectPatch{"name": name, "deleting": true}
	if _, err := c.AskCell(&scheddapi.CellRequest{Verb: string(ledger.VerbSet), Kind: string(ledger.KindReservation),
		Object: w.JSONText(), Strange: true}); err != nil {
		return err
	}
	late := time.After(deletionTimeout)
	for {
		jobs, missing, err := reservedJobs(c, name)
		if err != nil {
			return err
		}
		if jobs == 0 && len(missing) == 0 {
			return RemoveObject(c, ledger.VerbRemove, ledger.KindReservation, name)
		}
		select {
		case <-time.After(deletionPollInterval):
		case <-c.Context.Done():
			return c.Context.Err()
		case <-late:
			if jobs > 0 {
				return frame.KindErrorf(roost.Unavailable,
					"reservation %s: %d of its jobs have not ended yet: it keeps nothing any more, and goes when "+
						"this is done again after they have", name, jobs)
			}
			return frame.KindErrorf(roost.Unavailable,
				"reservation %s: node %s does not say whether it has jobs of it, and removes them when it can be "+
					"reached again: do this again then", name, missing[0].Node)
		}
	}
}

// Reservations reads all reservations, and the digest that a change based on them has to
// carry. The ledger refuses the change where one of them is another by then.
func Reservations(c *frame.Invocation) (all []AttributedObject[ledger.AdvanceReservation], basis []byte, err error) {
	basis, err = cellObjectsDigest(c, string(ledger.KindReservation), &all)
	return all, basis, err
}

// deletionTimeout is how long a deletion waits for the jobs of a reservation to end.
const deletionTimeout = time.Minute

// deletionPollInterval is how often it is looked whether jobs have ended.
const deletionPollInterval = 200 * time.Millisecond

// reservedJobs counts the jobs of a reservation that have not ended, and says which nodes
// are silent.
func reservedJobs(c *frame.Invocation, name string) (n int, missing []frame.UnreachableSchedd, err error) {
	found, missing, err := c.QueryPool("", &scheddapi.QueryRequest{Selection: &scheddapi.Selection{}, Table: true})
	for _, s := range found {
		if s.GetReservation() == name {
			n++
		}
	}
	return n, missing, err
}
