package admin

import (
	"fmt"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// GroupCommand returns roost group: show and set groups and their part of the pool.
func GroupCommand() *frame.Command {
	return &frame.Command{
		Name: "group", Group: frame.GroupAdmin, Summary: "show and set groups and their part of the pool",
		Synopsis: "[set GROUP | rm GROUP]", MaxOperands: -1,
		Description: "Shows the accounting groups, or makes, changes or removes one. A group has a quota of cores, " +
			"or a fraction of what the group above it has; what it does not use others may have who accept surplus. " +
			"sci.chem lies in sci. Jobs name their group; members take turns in it by fair share. Where there are " +
			"groups, a job that names another is refused when it is submitted.",
		Examples: []frame.Example{
			{Line: "roost group", Description: "all groups"},
			{Line: "roost group set sci --cores 512 --surplus on", Description: "make one, or change it"},
			{Line: "roost group set sci.chem --fraction 0.4", Description: "two fifths of it for a group in it"},
			{Line: "roost group rm sci.chem", Description: "take it away"},
		},
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "cores", Usage: "a quota of `N` cores; none for none"},
			&ucli.StringFlag{Name: "fraction",
				Usage: "`PART` of what the group above has, or the pool, 0 to 1; none for none"},
			&ucli.StringFlag{Name: "surplus", Usage: "whether it gets of what others leave: `on|off`"},
			frame.JSONFlag(),
		},
		Run: administer(showGroups, map[string]func(*frame.Invocation) error{"set": setGroup,
			"rm": removeNamed(ledger.KindGroup, "the name of a group")}),
	}
}

func showGroups(c *frame.Invocation) error {
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "GROUP", MinWidth: 8},
		{Head: "CORES", RightAligned: true},
		{Head: "FRACTION", RightAligned: true}, {Head: "SURPLUS"}}}
	return showObjects(c, ledger.KindGroup, "groups", "no groups are set: everybody takes turns with everybody",
		t, func(o AttributedObject[ledger.AccountingGroup]) []frame.TableCell {
			g := o.Object
			return []frame.TableCell{
				{Text: g.Name}, {Text: boundText(g.Cores, plainCores)},
				{Text: boundText(g.Fraction, func(f float64) string {
					return fmt.Sprintf("%g", f)
				})},
				{Text: onOff(g.AcceptSurplus)},
			}
		})
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

func setGroup(c *frame.Invocation) error {
	if err := requireOperands(c, "the name of a group"); err != nil {
		return err
	}
	w := ObjectPatch{"name": c.Args[0]}
	if err := amountFlags(c, func() ObjectPatch { return w }, "", "cores", "fraction"); err != nil {
		return err
	}
	switch { // the one takes the place of the other
	case c.IsFlagSet("cores") && !c.IsFlagSet("fraction"):
		w["fraction"] = nil
	case c.IsFlagSet("fraction") && !c.IsFlagSet("cores"):
		w["cores"] = nil
	}
	if err := onOffFlag(c, w, "surplus", "accept_surplus"); err != nil {
		return err
	}
	return PatchObject(c, ledger.KindGroup, w)
}

// SharesCommand returns roost shares: show what everybody has used, has, and may have.
func SharesCommand() *frame.Command {
	return &frame.Command{
		Name: "shares", Group: frame.GroupSee, Summary: "show what everybody has used, has, and may have",
		Synopsis: "[set USER | reset USER | rm USER]", MaxOperands: -1,
		Description: "Shows how submitters stand, the best priority first: the real priority, which follows what " +
			"they use with a half-life, times the factor is the effective one, and smaller is better. " +
			"SHARE is what is due to each of the pool if all who use or want something wanted all of it; COULD GET " +
			"how many cores more it would get now. " +
			"Administrators set factor, floor and ceiling, or reset what was used. A submitter of a group is written " +
			"as sci.chem.ann.",
		Examples: []frame.Example{
			{Line: "roost shares", Description: "how everybody stands"},
			{Line: "roost shares set ann --factor 100", Description: "ann gets ten times what others get"},
			{Line: "roost shares set sci.bob --ceiling 64", Description: "bob never has more than 64 cores"},
			{Line: "roost shares reset ann", Description: "forget what ann has used"},
		},
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "factor",
				Usage: "what the real priority is multiplied by, `N`, 1 or more; everybody has 1000"},
			&ucli.StringFlag{Name: "floor",
				Usage: "`CORES` that it may have before shares are looked at; none for none"},
			&ucli.StringFlag{Name: "ceiling", Usage: "`CORES` that it never has more of; none for none"},
			forceFlag(), frame.JSONFlag(),
		},
		Run: administer(showShares, map[string]func(*frame.Invocation) error{
			"set": setShare, "rm": removeNamed(ledger.KindSubmitter, "a user"),
			"reset": func(c *frame.Invocation) error {
				if err := requireOperands(c, "a user"); err != nil {
					return err
				}
				return RemoveObject(c, ledger.VerbReset, ledger.KindSubmitter, c.Args[0])
			},
		}),
	}
}

func showShares(c *frame.Invocation) error {
	var s ledger.ShareReport
	if err := CellObjects(c, "shares", &s); err != nil {
		return err
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"cores": s.Cores, "free_cores": s.FreeCores,
			"half_life_seconds": s.HalfLife, "submitters": s.Submitters})
	}
	if len(s.Submitters) == 0 {
		fmt.Fprintln(c.Stderr, "nobody has used the pool yet")
		return nil
	}
	t := &frame.TextTable{Columns: []frame.TableColumn{
		{Head: "SUBMITTER", MinWidth: 8}, {Head: "PRIORITY", RightAligned: true}, {Head: "REAL", RightAligned: true,
			DropPriority: 3}, {Head: "FACTOR", RightAligned: true, DropPriority: 2},
		{Head: "FLOOR", RightAligned: true}, {Head: "CEILING", RightAligned: true},
		{Head: "CORES NOW", RightAligned: true}, {Head: "CORE-HOURS", RightAligned: true, DropPriority: 1},
		{Head: "ELSEWHERE", RightAligned: true, DropPriority: 4},
		{Head: "SHARE", RightAligned: true}, {Head: "COULD GET", RightAligned: true},
	}}
	for _, u := range s.Submitters {
		t.AddRow(frame.TableCell{Text: document.PrintableText(u.Name)},
			frame.TableCell{Text: numberText(u.EffectivePriority)},
			frame.TableCell{Text: numberText(u.RealPriority)}, frame.TableCell{Text: numberText(u.Factor)},
			frame.TableCell{Text: boundText(u.Floor, numberText)},
			frame.TableCell{Text: boundText(u.Ceiling, numberText)}, frame.TableCell{Text: numberText(u.Cores)},
			frame.TableCell{Text: numberText(u.CoreHours)}, frame.TableCell{Text: elsewhereText(&u)},
			frame.TableCell{Text: fmt.Sprintf("%.1f%%", 100*u.PoolShare)},
			frame.TableCell{Text: numberText(u.CouldGetCores)})
	}
	t.DropEmptyColumns("FLOOR", "CEILING", "ELSEWHERE")
	t.Print(c.Stdout, c.OutScreen)
	return nil
}

// elsewhereText is the core-hours that a submitter has used in other pools.
func elsewhereText(u *ledger.SubmitterUsage) string {
	if u.CoreHoursElsewhere == 0 && u.CoresElsewhere == 0 {
		return ""
	}
	return numberText(u.CoreHoursElsewhere)
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

func setShare(c *frame.Invocation) error {
	if err := requireOperands(c, "a user"); err != nil {
		return err
	}
	w := ObjectPatch{}
	if err := amountFlags(c, func() ObjectPatch { return w }, "", "factor", "floor", "ceiling"); err != nil {
		return err
	}
	if len(w) == 0 {
		return frame.UsageErrorf("say what: --factor, --floor or --ceiling")
	}
	who, err := parseSubmitter(c, c.Args[0])
	if err != nil {
		return err
	}
	if w["user"] = who.Owner; who.Group != "" {
		w["group"] = who.Group
	}
	return PatchObject(c, ledger.KindSubmitter, w, who.Owner)
}
