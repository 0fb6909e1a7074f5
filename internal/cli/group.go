package cli

import (
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/negotiator"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func groupCommand() *command {
	return &command{
		name: "group", group: groupAdmin, summary: "show and set groups and their part of the pool",
		synopsis: "[set GROUP | rm GROUP]", maxOperands: -1,
		description: "Shows the accounting groups, or makes, changes or removes one. A group has a quota of cores, " +
			"or a fraction of what the group above it has; what it does not use others may have who accept surplus. " +
			"sci.chem lies in sci. Jobs name their group; members take turns in it by fair share. Where there are " +
			"groups, a job that names another is refused when it is submitted.",
		examples: []commandExample{
			{"roost group", "all groups"},
			{"roost group set sci --cores 512 --surplus on", "make one, or change it"},
			{"roost group set sci.chem --fraction 0.4", "two fifths of it for a group in it"},
			{"roost group rm sci.chem", "take it away"},
		},
		flags: []ucli.Flag{
			&ucli.StringFlag{Name: "cores", Usage: "a quota of `N` cores; none for none"},
			&ucli.StringFlag{Name: "fraction",
				Usage: "`PART` of what the group above has, or the pool, 0 to 1; none for none"},
			&ucli.StringFlag{Name: "surplus", Usage: "whether it gets of what others leave: `on|off`"},
			jsonFlag(),
		},
		run: administer(showGroups, map[string]func(*invocation) error{"set": setGroup,
			"rm": removeNamed(ledger.KindGroup, "the name of a group")}),
	}
}

func showGroups(c *invocation) error {
	t := &textTable{columns: []tableColumn{{head: "GROUP", minWidth: 8}, {head: "CORES", rightAligned: true},
		{head: "FRACTION", rightAligned: true}, {head: "SURPLUS"}}}
	return showObjects(c, ledger.KindGroup, "groups", "no groups are set: everybody takes turns with everybody",
		t, func(o attributedObject[ledger.AccountingGroup]) []tableCell {
			g := o.Object
			return []tableCell{
				{g.Name, ""}, {boundText(g.Cores, plainCores), ""}, {boundText(g.Fraction, func(f float64) string {
					return fmt.Sprintf("%g", f)
				}), ""},
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

func setGroup(c *invocation) error {
	if err := c.requireOperands("the name of a group"); err != nil {
		return err
	}
	w := objectPatch{"name": c.args[0]}
	if err := c.amountFlags(func() objectPatch { return w }, "", "cores", "fraction"); err != nil {
		return err
	}
	switch { // the one takes the place of the other
	case c.isFlagSet("cores") && !c.isFlagSet("fraction"):
		w["fraction"] = nil
	case c.isFlagSet("fraction") && !c.isFlagSet("cores"):
		w["cores"] = nil
	}
	if err := c.onOffFlag(w, "surplus", "accept_surplus"); err != nil {
		return err
	}
	return c.patchObject(ledger.KindGroup, w)
}

func sharesCommand() *command {
	return &command{
		name: "shares", group: groupSee, summary: "show what everybody has used, has, and may have",
		synopsis: "[set USER | reset USER | rm USER]", maxOperands: -1,
		description: "Shows how submitters stand, the best priority first: the real priority, which follows what " +
			"they use with a half-life, times the factor is the effective one, and smaller is better. " +
			"SHARE is what is due to each of the pool if all who use or want something wanted all of it; COULD GET " +
			"how many cores more it would get now. " +
			"Administrators set factor, floor and ceiling, or reset what was used. A submitter of a group is written " +
			"as sci.chem.ann.",
		examples: []commandExample{
			{"roost shares", "how everybody stands"},
			{"roost shares set ann --factor 100", "ann gets ten times what others get"},
			{"roost shares set sci.bob --ceiling 64", "bob never has more than 64 cores"},
			{"roost shares reset ann", "forget what ann has used"},
		},
		flags: []ucli.Flag{
			&ucli.StringFlag{Name: "factor",
				Usage: "what the real priority is multiplied by, `N`, 1 or more; everybody has 1000"},
			&ucli.StringFlag{Name: "floor",
				Usage: "`CORES` that it may have before shares are looked at; none for none"},
			&ucli.StringFlag{Name: "ceiling", Usage: "`CORES` that it never has more of; none for none"},
			forceFlag(), jsonFlag(),
		},
		run: administer(showShares, map[string]func(*invocation) error{
			"set": setShare, "rm": removeNamed(ledger.KindSubmitter, "a user"),
			"reset": func(c *invocation) error {
				if err := c.requireOperands("a user"); err != nil {
					return err
				}
				return c.removeObject(ledger.VerbReset, ledger.KindSubmitter, c.args[0])
			},
		}),
	}
}

func showShares(c *invocation) error {
	var s negotiator.ShareReport
	if err := c.cellObjects("shares", &s); err != nil {
		return err
	}
	if c.wantsJSON() {
		return printJSON(c.stdout, jsonDocument{"cores": s.Cores, "free_cores": s.FreeCores,
			"half_life_seconds": s.HalfLife, "submitters": s.Submitters})
	}
	if len(s.Submitters) == 0 {
		fmt.Fprintln(c.stderr, "nobody has used the pool yet")
		return nil
	}
	t := &textTable{columns: []tableColumn{
		{head: "SUBMITTER", minWidth: 8}, {head: "PRIORITY", rightAligned: true}, {head: "REAL", rightAligned: true,
			dropPriority: 3}, {head: "FACTOR", rightAligned: true, dropPriority: 2},
		{head: "FLOOR", rightAligned: true}, {head: "CEILING", rightAligned: true},
		{head: "CORES NOW", rightAligned: true}, {head: "CORE-HOURS", rightAligned: true, dropPriority: 1},
		{head: "SHARE", rightAligned: true}, {head: "COULD GET", rightAligned: true},
	}}
	for _, u := range s.Submitters {
		t.addRow(tableCell{printableText(u.Name), ""}, tableCell{numberText(u.EffectivePriority), ""},
			tableCell{numberText(u.RealPriority), ""}, tableCell{numberText(u.Factor), ""},
			tableCell{boundText(u.Floor, numberText), ""},
			tableCell{boundText(u.Ceiling, numberText), ""}, tableCell{numberText(u.Cores), ""},
			tableCell{numberText(u.CoreHours), ""}, tableCell{fmt.Sprintf("%.1f%%", 100*u.PoolShare), ""},
			tableCell{numberText(u.CouldGetCores), ""})
	}
	t.dropEmptyColumns("FLOOR", "CEILING")
	t.print(c.stdout, c.out)
	return nil
}

// numberText is a number for people.
func numberText(f float64) string {
	switch {
	case f >= 1e9:
		return fmt.Sprintf("%.3g", f)
	case f >= 100 || f == float64(int64(f)):
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

func setShare(c *invocation) error {
	if err := c.requireOperands("a user"); err != nil {
		return err
	}
	w := objectPatch{}
	if err := c.amountFlags(func() objectPatch { return w }, "", "factor", "floor", "ceiling"); err != nil {
		return err
	}
	if len(w) == 0 {
		return usageErrorf("say what: --factor, --floor or --ceiling")
	}
	who, err := c.parseSubmitter(c.args[0])
	if err != nil {
		return err
	}
	if w["user"] = who.Owner; who.Group != "" {
		w["group"] = who.Group
	}
	return c.patchObject(ledger.KindSubmitter, w, who.Owner)
}
