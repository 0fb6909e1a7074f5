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
		name: "drain", group: groupAdmin, brief: "keep new tasks away from a node", args: "[NODE]", most: 1, do: drainNode,
		about: "Keeps new tasks away from a node, now or from a time on, or lists the nodes that are drained or will be. What runs there may end, and nothing is started that would still run when the drain begins. " +
			"roost undrain lets the node have tasks again.",
		examples: []example{
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
		name: "undrain", group: groupAdmin, brief: "let a node have tasks again", args: "NODE…", least: 1, most: -1, wants: "a node",
		about: "Ends drains, also those that have not begun: the nodes get tasks again at once.",
		examples: []example{
			{"roost undrain n7", "n7 is well again"},
			{"roost undrain n1 n2 n3", "so are these"},
		},
		do: func(c *call) error {
			drained, err := c.drainedNodes()
			if err != nil {
				return err
			}
			for _, node := range c.args {
				if node, err = c.wholeNode(node, drained...); err != nil {
					return err
				}
				if err := c.undo(ledger.Remove, ledger.KindDrain, node); err != nil {
					return c.nodeMeant(node, err)
				}
			}
			return nil
		},
	}
}

func drainNode(c *call) error {
	if len(c.args) == 0 {
		if err := c.bare("a list; name a node to drain it"); err != nil {
			return err
		}
		t := &table{columns: []column{{head: "NODE"}, {head: "FROM"}, {head: "UNTIL"}, {head: "REASON", least: 10}}}
		return show(c, ledger.KindDrain, "drains", "no node is drained", t, func(o entered[ledger.Drain]) []cell {
			d, from := o.Object, o.Object.From
			if from.IsZero() {
				from = o.At
			}
			return []cell{{printable(d.Node), ""}, {c.until(from), ""}, {c.until(d.Until), ""}, {printable(d.Reason), ""}}
		})
	}
	node, err := c.wholeNode(c.args[0])
	if err != nil {
		return err
	}
	w := wish{"node": node}
	if c.given("reason") {
		w["reason"] = c.text("reason")
	}
	if err := c.times(w); err != nil {
		return err
	}
	if c.flag("wait") && c.given("from") && w["from"] != nil {
		return usage("--wait waits for a drain that begins now: leave --from out, or wait later")
	}
	if err := c.put(ledger.KindDrain, w); err != nil {
		return c.nodeMeant(node, err)
	}
	if !c.flag("wait") {
		return nil
	}
	return c.awaitEmpty(node)
}

// drainedNodes are the nodes that are drained or will be; they may be away.
func (c *call) drainedNodes() (names []string, err error) {
	var drains []entered[ledger.Drain]
	err = c.shown(string(ledger.KindDrain), &drains)
	for _, d := range drains {
		names = append(names, d.Object.Node)
	}
	return names, err
}

// awaitEmpty returns when nothing runs on a node.
func (c *call) awaitEmpty(node string) error {
	for {
		texts, err := c.ads(&wire.AdQuery{Type: "Machine", Constraint: fmt.Sprintf("%s == %q", roost.AttrName, node)})
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
		name: "reservation", group: groupAdmin, brief: "show and set what is kept for somebody at a time", args: "[set NAME | rm NAME]", most: -1,
		about: "Shows the advance reservations, or makes, changes or removes one. A reservation keeps nodes, or an amount of resources wherever it is, from a time until another for jobs of some users and groups. " +
			"Nothing else is started there that would still run when it begins.",
		examples: []example{
			{"roost reservation", "all reservations"},
			{"roost reservation set class --users ann,bob --nodes n1,n2 --from '2026-03-01 08:00' --until '2026-03-01 12:00'", "two nodes for a morning"},
			{"roost reservation set deadline --groups sci --cpus 128 --from 2d --until 4d", "128 cores the day after tomorrow, for two days"},
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
		do: administer(showReservations, map[string]func(*call) error{"set": setReservation, "rm": removeReservation}, "jobs"),
	}
}

func showReservations(c *call) error {
	t := &table{columns: []column{{head: "NAME"}, {head: "FROM"}, {head: "UNTIL"}, {head: "FOR", least: 8}, {head: "WHAT", least: 8}, {head: "REASON", least: 6, spare: 1}}}
	return show(c, ledger.KindReservation, "reservations", "nothing is reserved", t, func(o entered[ledger.Reservation]) []cell {
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
		return []cell{{r.Name, ""}, {c.until(r.From), ""}, {c.until(r.Until), ""}, {printable(strings.Join(who, ",")), ""}, {printable(what), ""}, {printable(r.Reason), dim}}
	})
}

func removeReservation(c *call) error {
	if !c.flag("jobs") {
		return removeNamed(ledger.KindReservation, "the name of a reservation")(c)
	}
	if err := c.operands("the name of a reservation"); err != nil {
		return err
	}
	all, _, err := c.reservations()
	if err == nil && !slices.ContainsFunc(all, func(r entered[ledger.Reservation]) bool { return r.Name == c.args[0] }) {
		err = problem(roost.NotFound, "reservation %s: there is none of that name", c.args[0])
	}
	if err != nil {
		return err
	}
	return c.deleteReservation(c.args[0])
}

func setReservation(c *call) error {
	if err := c.operands("the name of a reservation"); err != nil {
		return err
	}
	w := wish{"name": c.args[0]}
	users := c.names(w, "users", "users")
	c.names(w, "groups", "groups")
	nodes := c.names(w, "nodes", "nodes")
	for i, node := range nodes {
		whole, err := c.wholeNode(node)
		if err != nil {
			return err
		}
		nodes[i] = whole
	}
	if err := c.amounts(func() wish { return w.within("amount") }, "", "cpus", "memory", "disk", "gpus"); err != nil {
		return err
	}
	if c.given("reason") {
		w["reason"] = c.text("reason")
	}
	if err := c.times(w); err != nil {
		return err
	}
	return c.set(ledger.KindReservation, w, users...)
}

// deleteReservation takes a reservation away and its jobs with it. The ledger notes that it is being deleted, whereupon it keeps nothing and lets nobody in, and
// each schedd removes its jobs; when none is left the reservation goes. If this program ends before, who runs it again goes on.
func (c *call) deleteReservation(name string) error {
	w := wish{"name": name, "deleting": true}
	if _, err := c.cell(&wire.CellRequest{Verb: string(ledger.Set), Kind: string(ledger.KindReservation), Object: w.text(), Strange: true}); err != nil {
		return err
	}
	late := time.After(deletionPatience)
	for {
		jobs, missing, err := c.reservedJobs(name)
		if err != nil {
			return err
		}
		if jobs == 0 && len(missing) == 0 {
			return c.undo(ledger.Remove, ledger.KindReservation, name)
		}
		select {
		case <-time.After(deletionPoll):
		case <-c.ctx.Done():
			return c.ctx.Err()
		case <-late:
			if jobs > 0 {
				return problem(roost.Unavailable, "reservation %s: %d of its jobs have not ended yet: it keeps nothing any more, and goes when this is done again after they have", name, jobs)
			}
			return problem(roost.Unavailable, "reservation %s: node %s does not say whether it has jobs of it, and removes them when it can be reached again: do this again then", name, missing[0].Node)
		}
	}
}

// reservations are all that there are, and what to say with a change that rests on them: it is not made if one of them is another by then.
func (c *call) reservations() (all []entered[ledger.Reservation], basis []byte, err error) {
	basis, err = c.shownAs(string(ledger.KindReservation), &all)
	return all, basis, err
}

// deletionPatience is how long a deletion waits for the jobs of a reservation to end.
const deletionPatience = time.Minute

// deletionPoll is how often it is looked whether jobs have ended.
const deletionPoll = 200 * time.Millisecond

// reservedJobs counts the jobs of a reservation that have not ended, and says which nodes are silent.
func (c *call) reservedJobs(name string) (n int, missing []silent, err error) {
	found, missing, err := c.queryPool("", &wire.QueryRequest{Selection: &wire.Selection{}, Table: true})
	for _, s := range found {
		if s.GetReservation() == name {
			n++
		}
	}
	return n, missing, err
}
