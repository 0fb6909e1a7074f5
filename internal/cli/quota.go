package cli

import (
	"strconv"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func quotaCommand() *command {
	return &command{
		name: "quota", group: groupAdmin, summary: "show and set how much users and groups may ask for",
		synopsis: "[set [USER] | rm [USER]]", maxOperands: -1,
		description: "Shows the quotas, or sets or removes one. A quota is how much the jobs of a user, of each user " +
			"who has none of his own (each), or of a group may ask for at once in a band; " +
			"it is looked at when a job is submitted, and in production and monitoring again when tasks start, by " +
			"what runs then: a submit node that does not ask gets no more. One with --from or --until stands in " +
			"place of the other while it lasts. A dimension that is not given stays as it is, and \"none\" " +
			"is no bound.",
		examples: []commandExample{
			{"roost quota", "all quotas"},
			{"roost quota set ann --band production --cpus 64 --memory 256GiB",
				"what ann's production jobs may have at once"},
			{"roost quota set each --tasks 1000", "1,000 batch tasks for everybody"},
			{"roost quota set --group sci.chem --gpus 8 --until 2026-06-01", "for a group, for a time"},
			{"roost quota rm ann --band production", "take one away"},
		},
		flags: append([]ucli.Flag{
			&ucli.StringFlag{Name: "group", Usage: "of this `GROUP`, in place of a user"},
			&ucli.StringFlag{Name: "band", Usage: "in this `BAND`: batch, production or monitoring", Value: "batch"},
			&ucli.StringFlag{Name: "cpus", Usage: "so many cores, `N`"},
			&ucli.StringFlag{Name: "memory", Usage: "so much memory, a `SIZE`"},
			&ucli.StringFlag{Name: "disk", Usage: "so much disk, a `SIZE`"},
			&ucli.StringFlag{Name: "gpus", Usage: "so many GPUs, `N`"},
			&ucli.StringFlag{Name: "tasks", Usage: "so many tasks, `N`"},
			forceFlag(), jsonFlag(),
		}, timeFlags("it")...),
		run: administer(showQuotas, map[string]func(*invocation) error{"set": setQuota, "rm": removeQuota}, "group",
			"band", "from", "until"),
	}
}

func showQuotas(c *invocation) error {
	t := &textTable{columns: []tableColumn{
		{head: "WHO", minWidth: 8}, {head: "BAND"}, {head: "CPUS", rightAligned: true}, {head: "MEMORY",
			rightAligned: true}, {head: "DISK", rightAligned: true}, {head: "GPUS", rightAligned: true},
		{head: "TASKS", rightAligned: true}, {head: "FROM", dropPriority: 2}, {head: "UNTIL", dropPriority: 1},
	}}
	return showObjects(c, ledger.KindQuota, "quotas",
		"no quotas are set; roost cell settings says what applies then (default_quota)",
		t, func(o attributedObject[ledger.BandQuota]) []tableCell {
			q := o.Object
			return []tableCell{
				{printableText(q.SubjectText()), ""}, {q.Band, ""}, {boundText(q.Max.CPUs, plainCores), ""},
				{boundText(q.Max.Memory, roost.Bytes.String), ""},
				{boundText(q.Max.Disk, roost.Bytes.String), ""}, {boundText(q.Max.GPUs, plainCount), ""},
				{boundText(q.Max.Tasks, plainCount), ""},
				{c.untilText(q.From), dim}, {c.untilText(q.Until), dim},
			}
		})
}

// quotaOwner says whose quota a command line is about.
func (c *invocation) quotaOwner() (w objectPatch, users []string, err error) {
	w = objectPatch{"band": c.stringFlag("band")}
	if c.isFlagSet("group") {
		w["group"] = c.stringFlag("group")
		return w, nil, c.requireOperands()
	}
	if err := c.requireOperands("a user, each, or --group"); err != nil {
		return nil, nil, err
	}
	if w["user"] = c.args[0]; c.args[0] != ledger.EachUser {
		users = c.args[:1]
	}
	return w, users, nil
}

func setQuota(c *invocation) error {
	w, users, err := c.quotaOwner()
	if err != nil {
		return err
	}
	if err := c.amountFlags(func() objectPatch {
		return w.subPatch("most")
	}, "", "cpus", "memory", "disk", "gpus", "tasks"); err != nil {
		return err
	}
	if err := c.timeRangeFlags(w); err != nil {
		return err
	}
	if w["most"] == nil && !c.isFlagSet("from") && !c.isFlagSet("until") {
		return usageErrorf("say how much, as --cpus 64 or --tasks none")
	}
	return c.patchObject(ledger.KindQuota, w, users...)
}

func removeQuota(c *invocation) error {
	w, _, err := c.quotaOwner()
	if err != nil {
		return err
	}
	if err := c.timeRangeFlags(w); err != nil {
		return err
	}
	name, err := ledger.NameOf(ledger.KindQuota, w.jsonText())
	if err != nil {
		return err
	}
	return c.removeObject(ledger.VerbRemove, ledger.KindQuota, name)
}

func limitCommand() *command {
	return &command{
		name: "limit", group: groupAdmin, summary: "show and set how many licences may be in use at once",
		synopsis: "[set NAME COUNT | rm NAME]", maxOperands: -1,
		description: "Shows the concurrency limits, or sets or removes one: how many of a licence, or of anything " +
			"else that jobs name in limits, may be in use in the pool at once. " +
			"What has no limit is not counted; and where there are limits, a job that names another is refused when " +
			"it is submitted.",
		examples: []commandExample{
			{"roost limit", "all limits"},
			{"roost limit set matlab 20", "there are 20 licences of matlab"},
			{"roost limit rm matlab", "do not count them"},
		},
		flags: []ucli.Flag{jsonFlag()},
		run: administer(showLimits, map[string]func(*invocation) error{"set": setLimit,
			"rm": removeNamed(ledger.KindLimit, "the name of a limit")}),
	}
}

func showLimits(c *invocation) error {
	t := &textTable{columns: []tableColumn{{head: "LIMIT"}, {head: "COUNT", rightAligned: true}}}
	return showObjects(c, ledger.KindLimit, "limits", "no limits are set", t,
		func(o attributedObject[ledger.ConcurrencyLimit]) []tableCell {
			return []tableCell{{o.Object.Name, ""}, {strconv.FormatInt(o.Object.Count, 10), ""}}
		})
}

func setLimit(c *invocation) error {
	if err := c.requireOperands("the name of a limit", "how many there are"); err != nil {
		return err
	}
	n, err := strconv.ParseInt(c.args[1], 10, 64)
	if err != nil {
		return usageErrorf("%q is not a whole number", c.args[1])
	}
	return c.patchObject(ledger.KindLimit, objectPatch{"name": c.args[0], "count": n})
}

// removeNamed removes the object that the one operand names.
func removeNamed(kind ledger.ObjectKind, what string) func(c *invocation) error {
	return func(c *invocation) error {
		if err := c.requireOperands(what); err != nil {
			return err
		}
		return c.removeObject(ledger.VerbRemove, kind, c.args[0])
	}
}
