package cli

import (
	"strconv"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func quotaCommand() *command {
	return &command{
		name: "quota", group: groupAdmin, brief: "show and set how much users and groups may ask for", args: "[set [USER] | rm [USER]]", most: -1,
		about: "Shows the quotas, or sets or removes one. A quota is how much the jobs of a user, of each user who has none of his own (each), or of a group may ask for at once in a band; " +
			"it is looked at when a job is submitted, and in production and monitoring again when tasks start, by what runs then: a submit node that does not ask gets no more. One with --from or --until stands in place of the other while it lasts. A dimension that is not given stays as it is, and \"none\" is no bound.",
		examples: []example{
			{"roost quota", "all quotas"},
			{"roost quota set ann --band production --cpus 64 --memory 256GiB", "what ann's production jobs may have at once"},
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
		do: administer(showQuotas, map[string]func(*call) error{"set": setQuota, "rm": removeQuota}, "group", "band", "from", "until"),
	}
}

func showQuotas(c *call) error {
	t := &table{columns: []column{
		{head: "WHO", least: 8}, {head: "BAND"}, {head: "CPUS", right: true}, {head: "MEMORY", right: true}, {head: "DISK", right: true}, {head: "GPUS", right: true},
		{head: "TASKS", right: true}, {head: "FROM", spare: 2}, {head: "UNTIL", spare: 1},
	}}
	return show(c, ledger.KindQuota, "quotas", "no quotas are set; roost cell settings says what applies then (default_quota)", t, func(o entered[ledger.Quota]) []cell {
		q := o.Object
		return []cell{
			{printable(q.Of()), ""}, {q.Band, ""}, {bound(q.Most.CPUs, plainCores), ""}, {bound(q.Most.Memory, roost.Bytes.String), ""},
			{bound(q.Most.Disk, roost.Bytes.String), ""}, {bound(q.Most.GPUs, plainCount), ""}, {bound(q.Most.Tasks, plainCount), ""},
			{c.until(q.From), dim}, {c.until(q.Until), dim},
		}
	})
}

// quotaOf says whose quota a command line is about.
func (c *call) quotaOf() (w wish, users []string, err error) {
	w = wish{"band": c.text("band")}
	if c.given("group") {
		w["group"] = c.text("group")
		return w, nil, c.operands()
	}
	if err := c.operands("a user, each, or --group"); err != nil {
		return nil, nil, err
	}
	if w["user"] = c.args[0]; c.args[0] != ledger.EachUser {
		users = c.args[:1]
	}
	return w, users, nil
}

func setQuota(c *call) error {
	w, users, err := c.quotaOf()
	if err != nil {
		return err
	}
	if err := c.amounts(func() wish { return w.within("most") }, "", "cpus", "memory", "disk", "gpus", "tasks"); err != nil {
		return err
	}
	if err := c.times(w); err != nil {
		return err
	}
	if w["most"] == nil && !c.given("from") && !c.given("until") {
		return usage("say how much, as --cpus 64 or --tasks none")
	}
	return c.set(ledger.KindQuota, w, users...)
}

func removeQuota(c *call) error {
	w, _, err := c.quotaOf()
	if err != nil {
		return err
	}
	if err := c.times(w); err != nil {
		return err
	}
	name, err := ledger.NameOf(ledger.KindQuota, w.text())
	if err != nil {
		return err
	}
	return c.undo(ledger.Remove, ledger.KindQuota, name)
}

func limitCommand() *command {
	return &command{
		name: "limit", group: groupAdmin, brief: "show and set how many licences may be in use at once", args: "[set NAME COUNT | rm NAME]", most: -1,
		about: "Shows the concurrency limits, or sets or removes one: how many of a licence, or of anything else that jobs name in limits, may be in use in the pool at once. " +
			"What has no limit is not counted; and where there are limits, a job that names another is refused when it is submitted.",
		examples: []example{
			{"roost limit", "all limits"},
			{"roost limit set matlab 20", "there are 20 licences of matlab"},
			{"roost limit rm matlab", "do not count them"},
		},
		flags: []ucli.Flag{jsonFlag()},
		do:    administer(showLimits, map[string]func(*call) error{"set": setLimit, "rm": removeNamed(ledger.KindLimit, "the name of a limit")}),
	}
}

func showLimits(c *call) error {
	t := &table{columns: []column{{head: "LIMIT"}, {head: "COUNT", right: true}}}
	return show(c, ledger.KindLimit, "limits", "no limits are set", t, func(o entered[ledger.Limit]) []cell {
		return []cell{{o.Object.Name, ""}, {strconv.FormatInt(o.Object.Count, 10), ""}}
	})
}

func setLimit(c *call) error {
	if err := c.operands("the name of a limit", "how many there are"); err != nil {
		return err
	}
	n, err := strconv.ParseInt(c.args[1], 10, 64)
	if err != nil {
		return usage("%q is not a whole number", c.args[1])
	}
	return c.set(ledger.KindLimit, wish{"name": c.args[0], "count": n})
}

// removeNamed removes the object that the one operand names.
func removeNamed(kind ledger.Kind, what string) func(c *call) error {
	return func(c *call) error {
		if err := c.operands(what); err != nil {
			return err
		}
		return c.undo(ledger.Remove, kind, c.args[0])
	}
}
