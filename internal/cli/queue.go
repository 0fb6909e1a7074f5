package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/suggest"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func queueCommand() *command {
	flags := []ucli.Flag{
		&ucli.StringFlag{Name: "band", Usage: "the `BAND` of its jobs"},
		&ucli.StringFlag{Name: "priority", Usage: "of its jobs among others of the same user, `N`"},
		&ucli.StringFlag{Name: "enabled", Usage: "whether it takes jobs: `on|off`"},
		&ucli.StringFlag{Name: "started", Usage: "whether its jobs may start: `on|off`"},
	}
	for _, which := range []struct {
		prefix, what string
	}{{"default-", "that a job gets that does not say"}, {"min-", "that a job has to ask for"},
		{"max-", "that a job may ask for"}} {
		flags = append(flags,
			&ucli.StringFlag{Name: which.prefix + "cpus", Usage: "cores " + which.what + ", `N`"},
			&ucli.StringFlag{Name: which.prefix + "memory", Usage: "memory " + which.what + ", a `SIZE`"},
			&ucli.StringFlag{Name: which.prefix + "disk", Usage: "disk " + which.what + ", a `SIZE`"},
			&ucli.StringFlag{Name: which.prefix + "gpus", Usage: "GPUs " + which.what + ", `N`"},
			&ucli.StringFlag{Name: which.prefix + "walltime", Usage: "walltime " + which.what + ", a `TIME`"},
		)
	}
	for _, which := range []struct {
		name, what string
	}{{"running", "of its tasks run at once"}, {"queued", "tasks are in it and not done"}} {
		flags = append(flags,
			&ucli.StringFlag{Name: which.name, Usage: "at most `N` " + which.what},
			&ucli.StringFlag{Name: which.name + "-per-user",
				Usage: "at most `N` of one user " + strings.TrimPrefix(which.what, "of its ")},
			&ucli.StringFlag{Name: which.name + "-per-group",
				Usage: "at most `N` of one group " + strings.TrimPrefix(which.what, "of its ")},
		)
	}
	flags = append(flags,
		&ucli.StringSliceFlag{Name: "users",
			Usage: "only these users may use it, `A,B`, with those of --groups; none for everybody"},
		&ucli.StringSliceFlag{Name: "groups", Usage: "only these groups may, `A,B`"},
		forceFlag(), jsonFlag())
	return &command{
		name: "queue", group: groupAdmin, summary: "show and set the queues that jobs are submitted to",
		synopsis: "[set QUEUE | enable|disable|start|stop QUEUE… | rm QUEUE]", maxOperands: -1,
		description: "Shows the queues, or makes, changes or removes one. A queue is a name that jobs are submitted " +
			"to: it gives them a band, defaults and bounds. One that is not enabled takes no jobs, and the jobs of " +
			"one that is not started wait. " +
			"A new queue is both. A bound that is not given stays as it is, and \"none\" is no bound.",
		examples: []commandExample{
			{"roost queue", "all queues"},
			{"roost queue set fast --band production --max-walltime 1h --running-per-user 8", "make one, or change it"},
			{"roost queue stop fast", "let no more of its jobs start"},
			{"roost cell set default_queue fast", "where jobs go that name none"},
		},
		flags: flags,
		run: administer(showQueues, map[string]func(*invocation) error{
			"set": setQueue, "rm": removeNamed(ledger.KindQueue, "the name of a queue"),
			"enable": switchQueues("enabled", true), "disable": switchQueues("enabled", false),
			"start": switchQueues("started", true), "stop": switchQueues("started", false),
		}),
	}
}

func switchQueues(field string, on bool) func(c *invocation) error {
	return func(c *invocation) error {
		if err := c.requireOperands("the name of a queue…"); err != nil {
			return err
		}
		known, err := c.objectNames(ledger.KindQueue)
		if err != nil {
			return err
		}
		for _, name := range c.args {
			if !known[name] {
				err := kindErrorf(roost.NotFound, "queue %s: there is none of that name", name)
				if n := suggest.Nearest(name, slices.Sorted(maps.Keys(known))); n != "" {
					return withHint(err, fmt.Sprintf("did you mean %q?", n))
				}
				return err
			}
			if err := c.patchObject(ledger.KindQueue, objectPatch{"name": name, field: on}); err != nil {
				return err
			}
		}
		return nil
	}
}

func showQueues(c *invocation) error {
	t := &textTable{columns: []tableColumn{
		{head: "QUEUE"}, {head: "BAND"}, {head: "STATE"}, {head: "MAX CPUS", rightAligned: true}, {head: "MAX MEMORY",
			rightAligned: true}, {head: "MAX GPUS", rightAligned: true}, {head: "MAX WALLTIME", rightAligned: true},
		{head: "MAX RUNNING", rightAligned: true, dropPriority: 1}, {head: "PER USER", rightAligned: true,
			dropPriority: 2}, {head: "MAX QUEUED", rightAligned: true, dropPriority: 3},
		{head: "WHO", minWidth: 8, dropPriority: 4},
	}}
	return showObjects(c, ledger.KindQueue, "queues", "no queues are set: jobs name none",
		t, func(o attributedObject[ledger.QueuePolicy]) []tableCell {
			q := o.Object
			state, colour := "open", green
			switch {
			case !q.Enabled && !q.Started:
				state, colour = "closed", red
			case !q.Enabled:
				state, colour = "disabled", yellow
			case !q.Started:
				state, colour = "stopped", yellow
			}
			if q.Routing {
				state += ", routes to " + printableText(strings.Join(q.Destinations, ","))
			}
			band := q.Band
			if band == "" {
				band = roost.BatchBand.String()
			}
			walltime := boundText(q.MaxResources.Walltime, func(s int64) string {
				return (time.Duration(s) * time.Second).String()
			})
			return []tableCell{
				{q.Name, ""}, {band, ""}, {state, colour}, {boundText(q.MaxResources.CPUs, plainCores), ""},
				{boundText(q.MaxResources.Memory, roost.Bytes.String), ""},
				{boundText(q.MaxResources.GPUs, plainCount), ""}, {walltime, ""},
				{boundText(q.Running.Total, plainCount), ""}, {boundText(q.Running.PerUser, plainCount), ""},
				{boundText(q.Queued.Total, plainCount), ""},
				{printableText(strings.Join(append(append([]string(nil), q.Users...), q.Groups...), ",")), ""},
			}
		})
}

func setQueue(c *invocation) error {
	if err := c.requireOperands("the name of a queue"); err != nil {
		return err
	}
	name := c.args[0]
	w := objectPatch{"name": name}
	if known, err := c.objectNames(ledger.KindQueue); err != nil {
		return err
	} else if !known[name] {
		w["enabled"], w["started"] = true, true
	}
	for _, field := range []string{"enabled", "started"} {
		if err := c.onOffFlag(w, field, field); err != nil {
			return err
		}
	}
	if c.isFlagSet("band") {
		w["band"] = c.stringFlag("band")
	}
	if c.isFlagSet("priority") {
		n, err := strconv.ParseInt(c.stringFlag("priority"), 10, 32)
		if err != nil {
			return usageErrorf("--priority: %q is not a whole number", c.stringFlag("priority"))
		}
		w["priority"] = n
	}
	for prefix, field := range map[string]string{"default-": "default", "min-": "least", "max-": "most"} {
		if err := c.amountFlags(func() objectPatch {
			return w.subPatch(field)
		}, prefix, "cpus", "memory", "disk", "gpus", "walltime"); err != nil {
			return err
		}
	}
	for _, flag := range []string{"running", "queued"} {
		for suffix, field := range map[string]string{"": "total", "-per-user": "per_user", "-per-group": "per_group"} {
			if !c.isFlagSet(flag + suffix) {
				continue
			}
			_, value, err := parseAmount("tasks", c.stringFlag(flag+suffix))
			if err != nil {
				return usageErrorf("--%s: %v", flag+suffix, err)
			}
			w.subPatch(flag)[field] = value
		}
	}
	users := c.nameListFlag(w, "users", "users")
	c.nameListFlag(w, "groups", "groups")
	return c.patchObject(ledger.KindQueue, w, users...)
}

func adminCommand() *command {
	return &command{
		name: "admin", group: groupAdmin, summary: "show and set who may administer what",
		synopsis: "[give WHO CAPABILITY… | take WHO CAPABILITY… | rm WHO | capabilities]", maxOperands: -1,
		description: "Shows who may do what, or gives or takes capabilities. WHO is a user of a node, as ann@n1, or " +
			"a name for users of that name on every node of the pool: whoever is root on any of them can be " +
			"that user. " +
			"Root on a central manager may do everything, and everybody may look; all else is denied.",
		examples: []commandExample{
			{"roost admin", "who may do what"},
			{"roost admin capabilities", "what can be given"},
			{"roost admin give ann@n1 quotas drains", "ann on n1 may set quotas and drain nodes"},
			{"roost admin take ann@n1 drains", "but no longer the latter"},
		},
		flags: []ucli.Flag{forceFlag(), jsonFlag()},
		run: administer(showAdmins, map[string]func(*invocation) error{
			"give": func(c *invocation) error {
				return c.setCapabilities(true)
			}, "take": func(c *invocation) error { return c.setCapabilities(false) },
			"rm": removeNamed(ledger.KindAdmin, "whom"), "capabilities": showCapabilities,
		}),
	}
}

func showAdmins(c *invocation) error {
	t := &textTable{columns: []tableColumn{{head: "WHO"}, {head: "MAY", minWidth: 12}}}
	return showObjects(c, ledger.KindAdmin, "admins", "nobody but root on a central manager may change anything",
		t, func(o attributedObject[ledger.AdminRights]) []tableCell {
			return []tableCell{{printableText(o.Object.User), ""}, {strings.Join(o.Object.Capabilities, " "), ""}}
		})
}

func showCapabilities(c *invocation) error {
	var all []ledger.AdminCapability
	if err := c.requireOperands(); err != nil {
		return err
	}
	if err := c.cellObjects("capabilities", &all); err != nil {
		return err
	}
	if c.wantsJSON() {
		return printJSON(c.stdout, jsonDocument{"capabilities": all})
	}
	t := &textTable{columns: []tableColumn{{head: "CAPABILITY"}, {head: "ALLOWS TO", minWidth: 20}}}
	for _, a := range all {
		t.addRow(tableCell{a.Name, ""}, tableCell{a.Description, ""})
	}
	t.print(c.stdout, c.out)
	return nil
}

// setCapabilities gives or takes capabilities.
func (c *invocation) setCapabilities(give bool) error {
	if err := c.requireOperands("whom", "a capability…"); err != nil {
		return err
	}
	var all []attributedObject[ledger.AdminRights]
	if err := c.cellObjects(string(ledger.KindAdmin), &all); err != nil {
		return err
	}
	who, wanted := c.args[0], c.args[1:]
	var now []string
	for _, a := range all {
		if a.Object.User == who {
			now = a.Object.Capabilities
		}
	}
	next := []string{}
	for _, name := range append(now, wanted...) {
		taken := !give && slices.Contains(wanted, name)
		if !taken && !slices.Contains(next, name) {
			next = append(next, name)
		}
	}
	if !give {
		for _, name := range wanted {
			if !slices.Contains(now, name) {
				return kindErrorf(roost.NotFound, "admin %s: does not have the capability %q", who, name)
			}
		}
		if len(next) == 0 {
			return c.removeObject(ledger.VerbRemove, ledger.KindAdmin, who)
		}
	}
	user, _, remote := strings.Cut(who, "@")
	if remote {
		return c.patchObject(ledger.KindAdmin, objectPatch{"who": who, "capabilities": next})
	}
	return c.patchObject(ledger.KindAdmin, objectPatch{"who": who, "capabilities": next}, user)
}
