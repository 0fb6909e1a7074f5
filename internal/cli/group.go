package cli

import (
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/negotiator"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func groupCommand() *command {
	return &command{
		name: "group", group: groupAdmin, brief: "show and set groups and their part of the pool", args: "[set GROUP | rm GROUP]", most: -1,
		about: "Shows the accounting groups, or makes, changes or removes one. A group has a quota of cores, or a fraction of what the group above it has; what it does not use others may have who accept surplus. " +
			"sci.chem lies in sci. Jobs name their group; members take turns in it by fair share. Where there are groups, a job that names another is refused when it is submitted.",
		examples: []example{
			{"roost group", "all groups"},
			{"roost group set sci --cores 512 --surplus on", "make one, or change it"},
			{"roost group set sci.chem --fraction 0.4", "two fifths of it for a group in it"},
			{"roost group rm sci.chem", "take it away"},
		},
		flags: []ucli.Flag{
			&ucli.StringFlag{Name: "cores", Usage: "a quota of `N` cores; none for none"},
			&ucli.StringFlag{Name: "fraction", Usage: "`PART` of what the group above has, or the pool, 0 to 1; none for none"},
			&ucli.StringFlag{Name: "surplus", Usage: "whether it gets of what others leave: `on|off`"},
			jsonFlag(),
		},
		do: administer(showGroups, map[string]func(*call) error{"set": setGroup, "rm": removeNamed(ledger.KindGroup, "the name of a group")}),
	}
}

func showGroups(c *call) error {
	t := &table{columns: []column{{head: "GROUP", least: 8}, {head: "CORES", right: true}, {head: "FRACTION", right: true}, {head: "SURPLUS"}}}
	return show(c, ledger.KindGroup, "groups", "no groups are set: everybody takes turns with everybody", t, func(o entered[ledger.Group]) []cell {
		g := o.Object
		return []cell{
			{g.Name, ""}, {bound(g.Cores, plainCores), ""}, {bound(g.Fraction, func(f float64) string { return fmt.Sprintf("%g", f) }), ""},
			{onOff(g.AcceptSurplus), ""},
		}
	})
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func setGroup(c *call) error {
	if err := c.operands("the name of a group"); err != nil {
		return err
	}
	w := wish{"name": c.args[0]}
	if err := c.amounts(func() wish { return w }, "", "cores", "fraction"); err != nil {
		return err
	}
	switch { // the one takes the place of the other
	case c.given("cores") && !c.given("fraction"):
		w["fraction"] = nil
	case c.given("fraction") && !c.given("cores"):
		w["cores"] = nil
	}
	if err := c.switched(w, "surplus", "accept_surplus"); err != nil {
		return err
	}
	return c.set(ledger.KindGroup, w)
}

func sharesCommand() *command {
	return &command{
		name: "shares", group: groupSee, brief: "show what everybody has used, has, and may have", args: "[set USER | reset USER | rm USER]", most: -1,
		about: "Shows how submitters stand, the best priority first: the real priority, which follows what they use with a half-life, times the factor is the effective one, and smaller is better. " +
			"SHARE is what is due to each of the pool if all who use or want something wanted all of it; COULD GET how many cores more it would get now. " +
			"Administrators set factor, floor and ceiling, or reset what was used. A submitter of a group is written as sci.chem.ann.",
		examples: []example{
			{"roost shares", "how everybody stands"},
			{"roost shares set ann --factor 100", "ann gets ten times what others get"},
			{"roost shares set sci.bob --ceiling 64", "bob never has more than 64 cores"},
			{"roost shares reset ann", "forget what ann has used"},
		},
		flags: []ucli.Flag{
			&ucli.StringFlag{Name: "factor", Usage: "what the real priority is multiplied by, `N`, 1 or more; everybody has 1000"},
			&ucli.StringFlag{Name: "floor", Usage: "`CORES` that it may have before shares are looked at; none for none"},
			&ucli.StringFlag{Name: "ceiling", Usage: "`CORES` that it never has more of; none for none"},
			forceFlag(), jsonFlag(),
		},
		do: administer(showShares, map[string]func(*call) error{
			"set": setShare, "rm": removeNamed(ledger.KindSubmitter, "a user"),
			"reset": func(c *call) error {
				if err := c.operands("a user"); err != nil {
					return err
				}
				return c.undo(ledger.Reset, ledger.KindSubmitter, c.args[0])
			},
		}),
	}
}

func showShares(c *call) error {
	var s negotiator.Shares
	if err := c.shown("shares", &s); err != nil {
		return err
	}
	if c.json() {
		return printJSON(c.stdout, document{"cores": s.Cores, "free_cores": s.Free, "half_life_seconds": s.HalfLife, "submitters": s.Submitters})
	}
	if len(s.Submitters) == 0 {
		fmt.Fprintln(c.stderr, "nobody has used the pool yet")
		return nil
	}
	t := &table{columns: []column{
		{head: "SUBMITTER", least: 8}, {head: "PRIORITY", right: true}, {head: "REAL", right: true, spare: 3}, {head: "FACTOR", right: true, spare: 2}, {head: "FLOOR", right: true}, {head: "CEILING", right: true},
		{head: "CORES NOW", right: true}, {head: "CORE-HOURS", right: true, spare: 1}, {head: "SHARE", right: true}, {head: "COULD GET", right: true},
	}}
	for _, u := range s.Submitters {
		t.add(cell{printable(u.Name), ""}, cell{figure(u.Effective), ""}, cell{figure(u.Real), ""}, cell{figure(u.Factor), ""}, cell{bound(u.Floor, figure), ""},
			cell{bound(u.Ceiling, figure), ""}, cell{figure(u.Cores), ""}, cell{figure(u.Hours), ""}, cell{fmt.Sprintf("%.1f%%", 100*u.Part), ""}, cell{figure(u.Could), ""})
	}
	t.drop("FLOOR", "CEILING")
	t.print(c.stdout, c.out)
	return nil
}

// figure is a number for people.
func figure(f float64) string {
	switch {
	case f >= 1e9:
		return fmt.Sprintf("%.3g", f)
	case f >= 100 || f == float64(int64(f)):
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

func setShare(c *call) error {
	if err := c.operands("a user"); err != nil {
		return err
	}
	w := wish{}
	if err := c.amounts(func() wish { return w }, "", "factor", "floor", "ceiling"); err != nil {
		return err
	}
	if len(w) == 0 {
		return usage("say what: --factor, --floor or --ceiling")
	}
	who, err := c.submitter(c.args[0])
	if err != nil {
		return err
	}
	if w["user"] = who.Owner; who.Group != "" {
		w["group"] = who.Group
	}
	return c.set(ledger.KindSubmitter, w, who.Owner)
}
