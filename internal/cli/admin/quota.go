package admin

import (
	"strconv"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// QuotaCommand returns roost quota: show and set how much users and groups may ask for.
func QuotaCommand() *frame.Command {
	return &frame.Command{
		Name: "quota", Group: frame.GroupAdmin, Summary: "show and set how much users and groups may ask for",
		Synopsis: "[set [USER] | rm [USER]]", MaxOperands: -1,
		Description: "Shows the quotas, or sets or removes one. A quota is how much the jobs of a user, of each user " +
			"who has none of his own (each), or of a group may ask for at once in a band; " +
			"it is looked at when a job is submitted, and in production and monitoring again when tasks start, by " +
			"what runs then: a submit node that does not ask gets no more. One with --from or --until stands in " +
			"place of the other while it lasts. A dimension that is not given stays as it is, and \"none\" " +
			"is no bound.",
		Examples: []frame.Example{
			{Line: "roost quota", Description: "all quotas"},
			{Line: "roost quota set ann --band production --cpus 64 --memory 256GiB",
				Description: "what ann's production jobs may have at once"},
			{Line: "roost quota set each --tasks 1000", Description: "1,000 batch tasks for everybody"},
			{Line: "roost quota set --group sci.chem --gpus 8 --until 2026-06-01",
				Description: "for a group, for a time"},
			{Line: "roost quota rm ann --band production", Description: "take one away"},
		},
		Flags: append([]ucli.Flag{
			&ucli.StringFlag{Name: "group", Usage: "of this `GROUP`, in place of a user"},
			&ucli.StringFlag{Name: "band", Usage: "in this `BAND`: batch, production or monitoring", Value: "batch"},
			&ucli.StringFlag{Name: "cpus", Usage: "so many cores, `N`"},
			&ucli.StringFlag{Name: "memory", Usage: "so much memory, a `SIZE`"},
			&ucli.StringFlag{Name: "disk", Usage: "so much disk, a `SIZE`"},
			&ucli.StringFlag{Name: "gpus", Usage: "so many GPUs, `N`"},
			&ucli.StringFlag{Name: "tasks", Usage: "so many tasks, `N`"},
			forceFlag(), frame.JSONFlag(),
		}, timeFlags("it")...),
		Run: administer(showQuotas, map[string]func(*frame.Invocation) error{"set": setQuota, "rm": removeQuota},
			"group",
			"band", "from", "until"),
	}
}

func showQuotas(c *frame.Invocation) error {
	t := &frame.TextTable{Columns: []frame.TableColumn{
		{Head: "WHO", MinWidth: 8}, {Head: "BAND"}, {Head: "CPUS", RightAligned: true}, {Head: "MEMORY",
			RightAligned: true}, {Head: "DISK", RightAligned: true}, {Head: "GPUS", RightAligned: true},
		{Head: "TASKS", RightAligned: true}, {Head: "FROM", DropPriority: 2}, {Head: "UNTIL", DropPriority: 1},
	}}
	return showObjects(c, ledger.KindQuota, "quotas",
		"no quotas are set; roost cell settings says what applies then (default_quota)",
		t, func(o AttributedObject[ledger.BandQuota]) []frame.TableCell {
			q := o.Object
			return []frame.TableCell{
				{Text: document.PrintableText(q.SubjectText())}, {Text: q.Band},
				{Text: boundText(q.Max.CPUs, plainCores)},
				{Text: boundText(q.Max.Memory, roost.Bytes.String)},
				{Text: boundText(q.Max.Disk, roost.Bytes.String)}, {Text: boundText(q.Max.GPUs, plainCount)},
				{Text: boundText(q.Max.Tasks, plainCount)},
				{Text: UntilText(c, q.From), Colour: frame.Dim}, {Text: UntilText(c, q.Until), Colour: frame.Dim},
			}
		})
}

// quotaOwner says whose quota a command line is about.
func quotaOwner(c *frame.Invocation) (w ObjectPatch, users []string, err error) {
	w = ObjectPatch{"band": c.StringFlag("band")}
	if c.IsFlagSet("group") {
		w["group"] = c.StringFlag("group")
		return w, nil, requireOperands(c)
	}
	if err := requireOperands(c, "a user, each, or --group"); err != nil {
		return nil, nil, err
	}
	if w["user"] = c.Args[0]; c.Args[0] != ledger.EachUser {
		users = c.Args[:1]
	}
	return w, users, nil
}

func setQuota(c *frame.Invocation) error {
	w, users, err := quotaOwner(c)
	if err != nil {
		return err
	}
	if err := amountFlags(c, func() ObjectPatch {
		return w.SubPatch("most")
	}, "", "cpus", "memory", "disk", "gpus", "tasks"); err != nil {
		return err
	}
	if err := timeRangeFlags(c, w); err != nil {
		return err
	}
	if w["most"] == nil && !c.IsFlagSet("from") && !c.IsFlagSet("until") {
		return frame.UsageErrorf("say how much, as --cpus 64 or --tasks none")
	}
	return PatchObject(c, ledger.KindQuota, w, users...)
}

func removeQuota(c *frame.Invocation) error {
	w, _, err := quotaOwner(c)
	if err != nil {
		return err
	}
	if err := timeRangeFlags(c, w); err != nil {
		return err
	}
	name, err := ledger.NameOf(ledger.KindQuota, w.JSONText())
	if err != nil {
		return err
	}
	return RemoveObject(c, ledger.VerbRemove, ledger.KindQuota, name)
}

// LimitCommand returns roost limit: show and set how many licences may be in use at once.
func LimitCommand() *frame.Command {
	return &frame.Command{
		Name: "limit", Group: frame.GroupAdmin, Summary: "show and set how many licences may be in use at once",
		Synopsis: "[set NAME COUNT | rm NAME]", MaxOperands: -1,
		Description: "Shows the concurrency limits, or sets or removes one: how many of a licence, or of anything " +
			"else that jobs name in limits, may be in use in the pool at once. " +
			"What has no limit is not counted; and where there are limits, a job that names another is refused when " +
			"it is submitted.",
		Examples: []frame.Example{
			{Line: "roost limit", Description: "all limits"},
			{Line: "roost limit set matlab 20", Description: "there are 20 licences of matlab"},
			{Line: "roost limit rm matlab", Description: "do not count them"},
		},
		Flags: []ucli.Flag{frame.JSONFlag()},
		Run: administer(showLimits, map[string]func(*frame.Invocation) error{"set": setLimit,
			"rm": removeNamed(ledger.KindLimit, "the name of a limit")}),
	}
}

func showLimits(c *frame.Invocation) error {
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "LIMIT"}, {Head: "COUNT", RightAligned: true}}}
	return showObjects(c, ledger.KindLimit, "limits", "no limits are set", t,
		func(o AttributedObject[ledger.ConcurrencyLimit]) []frame.TableCell {
			return []frame.TableCell{{Text: o.Object.Name}, {Text: strconv.FormatInt(o.Object.Count, 10)}}
		})
}

func setLimit(c *frame.Invocation) error {
	if err := requireOperands(c, "the name of a limit", "how many there are"); err != nil {
		return err
	}
	n, err := strconv.ParseInt(c.Args[1], 10, 64)
	if err != nil {
		return frame.UsageErrorf("%q is not a whole number", c.Args[1])
	}
	return PatchObject(c, ledger.KindLimit, ObjectPatch{"name": c.Args[0], "count": n})
}

// removeNamed removes the object that the one operand names.
func removeNamed(kind ledger.ObjectKind, what string) func(c *frame.Invocation) error {
	return func(c *frame.Invocation) error {
		if err := requireOperands(c, what); err != nil {
			return err
		}
		return RemoveObject(c, ledger.VerbRemove, kind, c.Args[0])
	}
}
