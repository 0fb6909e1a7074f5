package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func drainCommand() *command {
	return &command{
		name: "drain", group: groupAdmin, summary: "keep new tasks away from a node", synopsis: "[NODE]",
		maxOperands: 1, run: drainNode,
		description: "Keeps new tasks away from a node, now or from a time on, or lists the nodes that are drained " +
			"or will be. What runs there may end, and nothing is started that would still run when the drain begins. " +
			"roost undrain lets the node have tasks again.",
		examples: []commandExample{
			{"roost drain n7 --reason 'new memory' --wait", "take no more, and wait until the node is empty"},
			{"roost drain n7 --from '2026-03-01 08:00' --until '2026-03-01 12:00'", "for a maintenance window"},
			{"roost drain", "which nodes are drained, and why"},
		},
		flags: append([]ucli.Flag{
			&ucli.StringFlag{Name: "reason", Usage: "why, a `TEXT` for those who ask"},
			&ucli.BoolFlag{Name: "wait", Usage: "wait until nothing runs there"},
			forceFlag(), jsonFlag(),
		}, timeFlags("the drain")...),
	}
}

func undrainCommand() *command {
	return &command{
		name: "undrain", group: groupAdmin, summary: "let a node have tasks again", synopsis: "NODE…", minOperands: 1,
		maxOperands: -1, operandName: "a node",
		description: "Ends drains, also those that have not begun: the nodes get tasks again at once.",
		examples: []commandExample{
			{"roost undrain n7", "n7 is well again"},
			{"roost undrain n1 n2 n3", "so are these"},
		},
		run: func(c *invocation) error {
			drained, err := c.drainedNodes()
			if err != nil {
				return err
			}
			for _, node := range c.args {
				if node, err = c.fullNodeName(node, drained...); err != nil {
					return err
				}
				if err := c.removeObject(ledger.VerbRemove, ledger.KindDrain, node); err != nil {
					return c.suggestNode(node, err)
				}
			}
			return nil
		},
	}
}

func drainNode(c *invocation) error {
	if len(c.args) == 0 {
		if err := c.refuseFlags("a list; name a node to drain it"); err != nil {
			return err
		}
		t := &textTable{columns: []tableColumn{{head: "NODE"}, {head: "FROM"}, {head: "UNTIL"},
			{head: "REASON", minWidth: 10}}}
		return showObjects(c, ledger.KindDrain, "drains", "no node is drained", t,
			func(o attributedObject[ledger.MachineDrain]) []tableCell {
				d, from := o.Object, o.Object.From
				if from.IsZero() {
					from = o.At
				}
				return []tableCell{{printableText(d.Node), ""}, {c.untilText(from), ""}, {c.untilText(d.Until), ""},
					{printableText(d.Reason), ""}}
			})
	}
	node, err := c.fullNodeName(c.args[0])
	if err != nil {
		return err
	}
	w := objectPatch{"node": node}
	if c.isFlagSet("reason") {
		w["reason"] = c.stringFlag("reason")
	}
	if err := c.timeRangeFlags(w); err != nil {
		return err
	}
	if c.flag("wait") && c.isFlagSet("from") && w["from"] != nil {
		return usageErrorf("--wait waits for a drain that begins now: leave --from out, or wait later")
	}
	if err := c.putObject(ledger.KindDrain, w); err != nil {
		return c.suggestNode(node, err)
	}
	if !c.flag("wait") {
		return nil
	}
	return c.awaitDrained(node)
}

// drainedNodes are the nodes that are drained or will be; they may be away.
func (c *invocation) drainedNodes() (names []string, err error) {
	var drains []attributedObject[ledger.MachineDrain]
	err = c.cellObjects(string(ledger.KindDrain), &drains)
	for _, d := range drains {
		names = append(names, d.Object.Node)
	}
	return names, err
}

// awaitDrained returns when nothing runs on a node.
func (c *invocation) awaitDrained(node string) error {
	for {
		texts, err := c.queryAds(&wire.AdQuery{Type: "Machine",
			Constraint: fmt.Sprintf("%s == %q", roost.AttrName, node)})
		if err != nil {
			return err
		}
		claims := int64(0)
		for _, text := range texts {
			if ad, err := classad.Parse(text); err == nil {
				n, _ := ad.Int(roost.AttrNumClaims)
				claims += n
			}
		}
		if claims == 0 {
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
}

func reservationCommand() *command {
	return &command{
		name: "reservation", group: groupAdmin, summary: "show and set what is kept for somebody at a time",
		synopsis: "[set NAME | rm NAME]", maxOperands: -1,
		description: "Shows the advance reservations, or makes, changes or removes one. A reservation keeps nodes, " +
			"or an amount of resources wherever it is, from a time until another for jobs of some users and groups. " +
			"Nothing else is started there that would still run when it begins.",
		examples: []commandExample{
			{"roost reservation", "all reservations"},
			{"roost reservation set class --users ann,bob --nodes n1,n2 --from '2026-03-01 08:00' --until " +
				"'2026-03-01 12:00'", "two nodes for a morning"},
			{"roost reservation set deadline --groups sci --cpus 128 --from 2d --until 4d",
				"128 cores the day after tomorrow, for two days"},
			{"roost reservation rm class", "take it away; what runs in it goes on, and what waits for it waits"},
			{"roost reservation rm --jobs class", "take it away and remove its jobs"},
		},
		flags: append([]ucli.Flag{
			&ucli.StringSliceFlag{Name: "users", Usage: "for these users, `A,B`"},
			&ucli.StringSliceFlag{Name: "groups", Usage: "for these groups, `A,B`"},
			&ucli.StringSliceFlag{Name: "nodes", Usage: "these nodes, whole, `A,B`"},
			&ucli.StringFlag{Name: "cpus", Usage: "so many cores, `N`"},
			&ucli.StringFlag{Name: "memory", Usage: "so much memory, a `SIZE`"},
			&ucli.StringFlag{Name: "disk", Usage: "so much disk, a `SIZE`"},
			&ucli.StringFlag{Name: "gpus", Usage: "so many GPUs, `N`"},
			&ucli.StringFlag{Name: "reason", Usage: "why, a `TEXT` for those who ask"},
			&ucli.BoolFlag{Name: "jobs", Usage: "with rm: its jobs are removed, too, also those that run"},
			forceFlag(), jsonFlag(),
		}, timeFlags("it")...),
		run: administer(showReservations, map[string]func(*invocation) error{"set": setReservation,
			"rm": removeReservation}, "jobs"),
	}
}

func showReservations(c *invocation) error {
	t := &textTable{columns: []tableColumn{{head: "NAME"}, {head: "FROM"}, {head: "UNTIL"}, {head: "FOR", minWidth: 8},
		{head: "WHAT", minWidth: 8}, {head: "REASON", minWidth: 6, dropPriority: 1}}}
	return showObjects(c, ledger.KindReservation, "reservations", "nothing is reserved",
		t, func(o attributedObject[ledger.AdvanceReservation]) []tableCell {
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
			return []tableCell{{r.Name, ""}, {c.untilText(r.From), ""}, {c.untilText(r.Until), ""},
				{printableText(strings.Join(who, ",")), ""}, {printableText(what), ""}, {printableText(r.Reason), dim}}
		})
}

func removeReservation(c *invocation) error {
	if !c.flag("jobs") {
		return removeNamed(ledger.KindReservation, "the name of a reservation")(c)
	}
	if err := c.requireOperands("the name of a reservation"); err != nil {
		return err
	}
	all, _, err := c.reservations()
	if err == nil && !slices.ContainsFunc(all, func(r attributedObject[ledger.AdvanceReservation]) bool {
		return r.Name == c.args[0]
	}) {
		err = kindErrorf(roost.NotFound, "reservation %s: there is none of that name", c.args[0])
	}
	if err != nil {
		return err
	}
	return c.deleteReservation(c.args[0])
}

func setReservation(c *invocation) error {
	if err := c.requireOperands("the name of a reservation"); err != nil {
		return err
	}
	w := objectPatch{"name": c.args[0]}
	users := c.nameListFlag(w, "users", "users")
	c.nameListFlag(w, "groups", "groups")
	nodes := c.nameListFlag(w, "nodes", "nodes")
	for i, node := range nodes {
		whole, err := c.fullNodeName(node)
		if err != nil {
			return err
		}
		nodes[i] = whole
	}
	if err := c.amountFlags(func() objectPatch {
		return w.subPatch("amount")
	}, "", "cpus", "memory", "disk", "gpus"); err != nil {
		return err
	}
	if c.isFlagSet("reason") {
		w["reason"] = c.stringFlag("reason")
	}
	if err := c.timeRangeFlags(w); err != nil {
		return err
	}
	return c.patchObject(ledger.KindReservation, w, users...)
}

// deleteReservation takes a reservation away and its jobs with it. The ledger notes that
// it is being deleted, whereupon it keeps nothing and lets nobody in, and each schedd
// removes its jobs; when none is left the reservation goes. If this program ends before,
// who runs it again goes on.
func (c *invocation) deleteReservation(name string) error {
	w := objectPatch{"name": name, "deleting": true}
	if _, err := c.askCell(&wire.CellRequest{Verb: string(ledger.VerbSet), Kind: string(ledger.KindReservation),
		Object: w.jsonText(), Strange: true}); err != nil {
		return err
	}
	late := time.After(deletionTimeout)
	for {
		jobs, missing, err := c.reservedJobs(name)
		if err != nil {
			return err
		}
		if jobs == 0 && len(missing) == 0 {
			return c.removeObject(ledger.VerbRemove, ledger.KindReservation, name)
		}
		select {
		case <-time.After(deletionPollInterval):
		case <-c.ctx.Done():
			return c.ctx.Err()
		case <-late:
			if jobs > 0 {
				return kindErrorf(roost.Unavailable,
					"reservation %s: %d of its jobs have not ended yet: it keeps nothing any more, and goes when "+
						"this is done again after they have", name, jobs)
			}
			return kindErrorf(roost.Unavailable,
				"reservation %s: node %s does not say whether it has jobs of it, and removes them when it can be "+
					"reached again: do this again then", name, missing[0].Node)
		}
	}
}

// reservations are all that there are, and what to say with a change that rests on them:
// it is not made if one of them is another by then.
func (c *invocation) reservations() (all []attributedObject[ledger.AdvanceReservation], basis []byte, err error) {
	basis, err = c.cellObjectsDigest(string(ledger.KindReservation), &all)
	return all, basis, err
}

// deletionTimeout is how long a deletion waits for the jobs of a reservation to end.
const deletionTimeout = time.Minute

// deletionPollInterval is how often it is looked whether jobs have ended.
const deletionPollInterval = 200 * time.Millisecond

// reservedJobs counts the jobs of a reservation that have not ended, and says which nodes
// are silent.
func (c *invocation) reservedJobs(name string) (n int, missing []unreachableSchedd, err error) {
	found, missing, err := c.queryPool("", &wire.QueryRequest{Selection: &wire.Selection{}, Table: true})
	for _, s := range found {
		if s.GetReservation() == name {
			n++
		}
	}
	return n, missing, err
}
