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
	"github.com/roost-batch/roost/internal/spell"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func queueCommand() *command {
	flags := []ucli.Flag{
		&ucli.StringFlag{Name: "band", Usage: "the `BAND` of its jobs"},
		&ucli.StringFlag{Name: "priority", Usage: "of its jobs among others of the same user, `N`"},
		&ucli.StringFlag{Name: "enabled", Usage: "whether it takes jobs: `on|off`"},
		&ucli.StringFlag{Name: "started", Usage: "whether its jobs may start: `on|off`"},
	}
	for _, which := range []struct{ prefix, what string }{{"default-", "that a job gets that does not say"}, {"min-", "that a job has to ask for"}, {"max-", "that a job may ask for"}} {
		flags = append(flags,
			&ucli.StringFlag{Name: which.prefix + "cpus", Usage: "cores " + which.what + ", `N`"},
			&ucli.StringFlag{Name: which.prefix + "memory", Usage: "memory " + which.what + ", a `SIZE`"},
			&ucli.StringFlag{Name: which.prefix + "disk", Usage: "disk " + which.what + ", a `SIZE`"},
			&ucli.StringFlag{Name: which.prefix + "gpus", Usage: "GPUs " + which.what + ", `N`"},
			&ucli.StringFlag{Name: which.prefix + "walltime", Usage: "walltime " + which.what + ", a `TIME`"},
		)
	}
	for _, which := range []struct{ name, what string }{{"running", "of its tasks run at once"}, {"queued", "tasks are in it and not done"}} {
		flags = append(flags,
			&ucli.StringFlag{Name: which.name, Usage: "at most `N` " + which.what},
			&ucli.StringFlag{Name: which.name + "-per-user", Usage: "at most `N` of one user " + strings.TrimPrefix(which.what, "of its ")},
			&ucli.StringFlag{Name: which.name + "-per-group", Usage: "at most `N` of one group " + strings.TrimPrefix(which.what, "of its ")},
		)
	}
	flags = append(flags,
		&ucli.StringSliceFlag{Name: "users", Usage: "only these users may use it, `A,B`, with those of --groups; none for everybody"},
		&ucli.StringSliceFlag{Name: "groups", Usage: "only these groups may, `A,B`"},
		forceFlag(), jsonFlag())
	return &command{
		name: "queue", group: groupAdmin, brief: "show and set the queues that jobs are submitted to", args: "[set QUEUE | enable|disable|start|stop QUEUE… | rm QUEUE]", most: -1,
		about: "Shows the queues, or makes, changes or removes one. A queue is a name that jobs are submitted to: it gives them a band, defaults and bounds. One that is not enabled takes no jobs, and the jobs of one that is not started wait. " +
			"A new queue is both. A bound that is not given stays as it is, and \"none\" is no bound.",
		examples: []example{
			{"roost queue", "all queues"},
			{"roost queue set fast --band production --max-walltime 1h --running-per-user 8", "make one, or change it"},
			{"roost queue stop fast", "let no more of its jobs start"},
			{"roost cell set default_queue fast", "where jobs go that name none"},
		},
		flags: flags,
		do: administer(showQueues, map[string]func(*call) error{
			"set": setQueue, "rm": removeNamed(ledger.KindQueue, "the name of a queue"),
			"enable": switchQueues("enabled", true), "disable": switchQueues("enabled", false), "start": switchQueues("started", true), "stop": switchQueues("started", false),
		}),
	}
}

func switchQueues(field string, on bool) func(c *call) error {
	return func(c *call) error {
		if err := c.operands("the name of a queue…"); err != nil {
			return err
		}
		known, err := c.objectNames(ledger.KindQueue)
		if err != nil {
			return err
		}
		for _, name := range c.args {
			if !known[name] {
				err := problem(roost.NotFound, "queue %s: there is none of that name", name)
				if n := spell.Nearest(name, slices.Sorted(maps.Keys(known))); n != "" {
					return advise(err, fmt.Sprintf("did you mean %q?", n))
				}
				return err
			}
			if err := c.set(ledger.KindQueue, wish{"name": name, field: on}); err != nil {
				return err
			}
		}
		return nil
	}
}

func showQueues(c *call) error {
	t := &table{columns: []column{
		{head: "QUEUE"}, {head: "BAND"}, {head: "STATE"}, {head: "MAX CPUS", right: true}, {head: "MAX MEMORY", right: true}, {head: "MAX GPUS", right: true}, {head: "MAX WALLTIME", right: true},
		{head: "MAX RUNNING", right: true, spare: 1}, {head: "PER USER", right: true, spare: 2}, {head: "MAX QUEUED", right: true, spare: 3}, {head: "WHO", least: 8, spare: 4},
	}}
	return show(c, ledger.KindQueue, "queues", "no queues are set: jobs name none", t, func(o entered[ledger.Queue]) []cell {
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
			state += ", routes to " + printable(strings.Join(q.Destinations, ","))
		}
		band := q.Band
		if band == "" {
			band = roost.Batch.String()
		}
		walltime := bound(q.Most.Walltime, func(s int64) string { return (time.Duration(s) * time.Second).String() })
		return []cell{
			{q.Name, ""}, {band, ""}, {state, colour}, {bound(q.Most.CPUs, plainCores), ""}, {bound(q.Most.Memory, roost.Bytes.String), ""},
			{bound(q.Most.GPUs, plainCount), ""}, {walltime, ""}, {bound(q.Running.Total, plainCount), ""}, {bound(q.Running.PerUser, plainCount), ""},
			{bound(q.Queued.Total, plainCount), ""}, {printable(strings.Join(append(append([]string(nil), q.Users...), q.Groups...), ",")), ""},
		}
	})
}

func setQueue(c *call) error {
	if err := c.operands("the name of a queue"); err != nil {
		return err
	}
	name := c.args[0]
	w := wish{"name": name}
	if known, err := c.objectNames(ledger.KindQueue); err != nil {
		return err
	} else if !known[name] {
		w["enabled"], w["started"] = true, true
	}
	for _, field := range []string{"enabled", "started"} {
		if err := c.switched(w, field, field); err != nil {
			return err
		}
	}
	if c.given("band") {
		w["band"] = c.text("band")
	}
	if c.given("priority") {
		n, err := strconv.ParseInt(c.text("priority"), 10, 32)
		if err != nil {
			return usage("--priority: %q is not a whole number", c.text("priority"))
		}
		w["priority"] = n
	}
	for prefix, field := range map[string]string{"default-": "default", "min-": "least", "max-": "most"} {
		if err := c.amounts(func() wish { return w.within(field) }, prefix, "cpus", "memory", "disk", "gpus", "walltime"); err != nil {
			return err
		}
	}
	for _, flag := range []string{"running", "queued"} {
		for suffix, field := range map[string]string{"": "total", "-per-user": "per_user", "-per-group": "per_group"} {
			if !c.given(flag + suffix) {
				continue
			}
			_, value, err := amountOf("tasks", c.text(flag+suffix))
			if err != nil {
				return usage("--%s: %v", flag+suffix, err)
			}
			w.within(flag)[field] = value
		}
	}
	users := c.names(w, "users", "users")
	c.names(w, "groups", "groups")
	return c.set(ledger.KindQueue, w, users...)
}

func adminCommand() *command {
	return &command{
		name: "admin", group: groupAdmin, brief: "show and set who may administer what", args: "[give WHO CAPABILITY… | take WHO CAPABILITY… | rm WHO | capabilities]", most: -1,
		about: "Shows who may do what, or gives or takes capabilities. WHO is a user of a node, as ann@n1, or a name for users of that name on every node of the pool: whoever is root on any of them can be that user. " +
			"Root on a central manager may do everything, and everybody may look; all else is denied.",
		examples: []example{
			{"roost admin", "who may do what"},
			{"roost admin capabilities", "what can be given"},
			{"roost admin give ann@n1 quotas drains", "ann on n1 may set quotas and drain nodes"},
			{"roost admin take ann@n1 drains", "but no longer the latter"},
		},
		flags: []ucli.Flag{forceFlag(), jsonFlag()},
		do: administer(showAdmins, map[string]func(*call) error{
			"give": func(c *call) error { return c.entrust(true) }, "take": func(c *call) error { return c.entrust(false) },
			"rm": removeNamed(ledger.KindAdmin, "whom"), "capabilities": showCapabilities,
		}),
	}
}

func showAdmins(c *call) error {
	t := &table{columns: []column{{head: "WHO"}, {head: "MAY", least: 12}}}
	return show(c, ledger.KindAdmin, "admins", "nobody but root on a central manager may change anything", t, func(o entered[ledger.Admin]) []cell {
		return []cell{{printable(o.Object.Who), ""}, {strings.Join(o.Object.Capabilities, " "), ""}}
	})
}

func showCapabilities(c *call) error {
	var all []ledger.Capability
	if err := c.operands(); err != nil {
		return err
	}
	if err := c.shown("capabilities", &all); err != nil {
		return err
	}
	if c.json() {
		return printJSON(c.stdout, document{"capabilities": all})
	}
	t := &table{columns: []column{{head: "CAPABILITY"}, {head: "ALLOWS TO", least: 20}}}
	for _, a := range all {
		t.add(cell{a.Name, ""}, cell{a.What, ""})
	}
	t.print(c.stdout, c.out)
	return nil
}

// entrust gives or takes capabilities.
func (c *call) entrust(give bool) error {
	if err := c.operands("whom", "a capability…"); err != nil {
		return err
	}
	var all []entered[ledger.Admin]
	if err := c.shown(string(ledger.KindAdmin), &all); err != nil {
		return err
	}
	who, wanted := c.args[0], c.args[1:]
	var now []string
	for _, a := range all {
		if a.Object.Who == who {
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
				return problem(roost.NotFound, "admin %s: does not have the capability %q", who, name)
			}
		}
		if len(next) == 0 {
			return c.undo(ledger.Remove, ledger.KindAdmin, who)
		}
	}
	user, _, remote := strings.Cut(who, "@")
	if remote {
		return c.set(ledger.KindAdmin, wish{"who": who, "capabilities": next})
	}
	return c.set(ledger.KindAdmin, wish{"who": who, "capabilities": next}, user)
}
