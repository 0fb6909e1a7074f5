package admin

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/suggest"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// QueueCommand returns roost queue: show and set the queues that jobs are submitted to.
func QueueCommand() *frame.Command {
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
		forceFlag(), frame.JSONFlag())
	return &frame.Command{
		Name: "queue", Group: frame.GroupAdmin, Summary: "show and set the queues that jobs are submitted to",
		Synopsis: "[set QUEUE | enable|disable|start|stop QUEUE… | rm QUEUE]", MaxOperands: -1,
		Description: "Shows the queues, or makes, changes or removes one. A queue is a name that jobs are submitted " +
			"to: it gives them a band, defaults and bounds. One that is not enabled takes no jobs, and the jobs of " +
			"one that is not started wait. " +
			"A new queue is both. A bound that is not given stays as it is, and \"none\" is no bound.",
		Examples: []frame.Example{
			{Line: "roost queue", Description: "all queues"},
			{Line: "roost queue set fast --band production --max-walltime 1h --running-per-user 8",
				Description: "make one, or change it"},
			{Line: "roost queue stop fast", Description: "let no more of its jobs start"},
			{Line: "roost cell set default_queue fast", Description: "where jobs go that name none"},
		},
		Flags: flags,
		Run: administer(showQueues, map[string]func(*frame.Invocation) error{
			"set": setQueue, "rm": removeNamed(ledger.KindQueue, "the name of a queue"),
			"enable": switchQueues("enabled", true), "disable": switchQueues("enabled", false),
			"start": switchQueues("started", true), "stop": switchQueues("started", false),
		}),
	}
}

func switchQueues(field string, on bool) func(c *frame.Invocation) error {
	return func(c *frame.Invocation) error {
		if err := requireOperands(c, "the name of a queue…"); err != nil {
			return err
		}
		known, err := objectNames(c, ledger.KindQueue)
		if err != nil {
			return err
		}
		for _, name := range c.Args {
			if !known[name] {
				err := frame.KindErrorf(roost.NotFound, "queue %s: there is none of that name", name)
				if n := suggest.Nearest(name, slices.Sorted(maps.Keys(known))); n != "" {
					return frame.WithHint(err, fmt.Sprintf("did you mean %q?", n))
				}
				return err
			}
			if err := PatchObject(c, ledger.KindQueue, ObjectPatch{"name": name, field: on}); err != nil {
				return err
			}
		}
		return nil
	}
}

func showQueues(c *frame.Invocation) error {
	t := &frame.TextTable{Columns: []frame.TableColumn{
		{Head: "QUEUE"}, {Head: "BAND"}, {Head: "STATE"}, {Head: "MAX CPUS", RightAligned: true}, {Head: "MAX MEMORY",
			RightAligned: true}, {Head: "MAX GPUS", RightAligned: true}, {Head: "MAX WALLTIME", RightAligned: true},
		{Head: "MAX RUNNING", RightAligned: true, DropPriority: 1}, {Head: "PER USER", RightAligned: true,
			DropPriority: 2}, {Head: "MAX QUEUED", RightAligned: true, DropPriority: 3},
		{Head: "WHO", MinWidth: 8, DropPriority: 4},
	}}
	return showObjects(c, ledger.KindQueue, "queues", "no queues are set: jobs name none",
		t, func(o AttributedObject[ledger.QueuePolicy]) []frame.TableCell {
			q := o.Object
			state, colour := "open", frame.Green
			switch {
			case !q.Enabled && !q.Started:
				state, colour = "closed", frame.Red
			case !q.Enabled:
				state, colour = "disabled", frame.Yellow
			case !q.Started:
				state, colour = "stopped", frame.Yellow
			}
			if q.Routing {
				state += ", routes to " + document.PrintableText(strings.Join(q.Destinations, ","))
			}
			band := q.Band
			if band == "" {
				band = roost.BatchBand.String()
			}
			walltime := boundText(q.MaxResources.Walltime, func(s int64) string {
				return (time.Duration(s) * time.Second).String()
			})
			return []frame.TableCell{
				{Text: q.Name}, {Text: band}, {Text: state, Colour: colour},
				{Text: boundText(q.MaxResources.CPUs, plainCores)},
				{Text: boundText(q.MaxResources.Memory, roost.Bytes.String)},
				{Text: boundText(q.MaxResources.GPUs, plainCount)}, {Text: walltime},
				{Text: boundText(q.Running.Total, plainCount)}, {Text: boundText(q.Running.PerUser, plainCount)},
				{Text: boundText(q.Queued.Total, plainCount)},
				{Text: document.PrintableText(
					strings.Join(append(append([]string(nil), q.Users...), q.Groups...), ","))},
			}
		})
}

func setQueue(c *frame.Invocation) error {
	if err := requireOperands(c, "the name of a queue"); err != nil {
		return err
	}
	name := c.Args[0]
	w := ObjectPatch{"name": name}
	if known, err := objectNames(c, ledger.KindQueue); err != nil {
		return err
	} else if !known[name] {
		w["enabled"], w["started"] = true, true
	}
	for _, field := range []string{"enabled", "started"} {
		if err := onOffFlag(c, w, field, field); err != nil {
			return err
		}
	}
	if c.IsFlagSet("band") {
		w["band"] = c.StringFlag("band")
	}
	if c.IsFlagSet("priority") {
		n, err := strconv.ParseInt(c.StringFlag("priority"), 10, 32)
		if err != nil {
			return frame.UsageErrorf("--priority: %q is not a whole number", c.StringFlag("priority"))
		}
		w["priority"] = n
	}
	for prefix, field := range map[string]string{"default-": "default", "min-": "least", "max-": "most"} {
		if err := amountFlags(c, func() ObjectPatch {
			return w.SubPatch(field)
		}, prefix, "cpus", "memory", "disk", "gpus", "walltime"); err != nil {
			return err
		}
	}
	for _, flag := range []string{"running", "queued"} {
		for suffix, field := range map[string]string{"": "total", "-per-user": "per_user", "-per-group": "per_group"} {
			if !c.IsFlagSet(flag + suffix) {
				continue
			}
			_, value, err := ParseAmount("tasks", c.StringFlag(flag+suffix))
			if err != nil {
				return frame.UsageErrorf("--%s: %v", flag+suffix, err)
			}
			w.SubPatch(flag)[field] = value
		}
	}
	users := nameListFlag(c, w, "users", "users")
	nameListFlag(c, w, "groups", "groups")
	return PatchObject(c, ledger.KindQueue, w, users...)
}

// AdministratorsCommand returns roost admin: show and set who may administer what.
func AdministratorsCommand() *frame.Command {
	return &frame.Command{
		Name: "admin", Group: frame.GroupAdmin, Summary: "show and set who may administer what",
		Synopsis: "[give WHO CAPABILITY… | take WHO CAPABILITY… | rm WHO | capabilities]", MaxOperands: -1,
		Description: "Shows who may do what, or gives or takes capabilities. WHO is a user of a node, as ann@n1, or " +
			"a name for users of that name on every node of the pool: whoever is root on any of them can be " +
			"that user. " +
			"Root on a central manager may do everything, and everybody may look; all else is denied.",
		Examples: []frame.Example{
			{Line: "roost admin", Description: "who may do what"},
			{Line: "roost admin capabilities", Description: "what can be given"},
			{Line: "roost admin give ann@n1 quotas drains", Description: "ann on n1 may set quotas and drain nodes"},
			{Line: "roost admin take ann@n1 drains", Description: "but no longer the latter"},
		},
		Flags: []ucli.Flag{forceFlag(), frame.JSONFlag()},
		Run: administer(showAdmins, map[string]func(*frame.Invocation) error{
			"give": func(c *frame.Invocation) error {
				return setCapabilities(c, true)
			}, "take": func(c *frame.Invocation) error { return setCapabilities(c, false) },
			"rm": removeNamed(ledger.KindAdmin, "whom"), "capabilities": showCapabilities,
		}),
	}
}

func showAdmins(c *frame.Invocation) error {
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "WHO"}, {Head: "MAY", MinWidth: 12}}}
	return showObjects(c, ledger.KindAdmin, "admins", "nobody but root on a central manager may change anything",
		t, func(o AttributedObject[ledger.AdminRights]) []frame.TableCell {
			return []frame.TableCell{{Text: document.PrintableText(o.Object.User)},
				{Text: strings.Join(o.Object.Capabilities, " ")}}
		})
}

func showCapabilities(c *frame.Invocation) error {
	var all []ledger.AdminCapability
	if err := requireOperands(c); err != nil {
		return err
	}
	if err := CellObjects(c, "capabilities", &all); err != nil {
		return err
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"capabilities": all})
	}
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "CAPABILITY"}, {Head: "ALLOWS TO", MinWidth: 20}}}
	for _, a := range all {
		t.AddRow(frame.TableCell{Text: a.Name}, frame.TableCell{Text: a.Description})
	}
	t.Print(c.Stdout, c.OutScreen)
	return nil
}

// setCapabilities gives or takes capabilities.
func setCapabilities(c *frame.Invocation, give bool) error {
	if err := requireOperands(c, "whom", "a capability…"); err != nil {
		return err
	}
	var all []AttributedObject[ledger.AdminRights]
	if err := CellObjects(c, string(ledger.KindAdmin), &all); err != nil {
		return err
	}
	who, wanted := c.Args[0], c.Args[1:]
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
				return frame.KindErrorf(roost.NotFound, "admin %s: does not have the capability %q", who, name)
			}
		}
		if len(next) == 0 {
			return RemoveObject(c, ledger.VerbRemove, ledger.KindAdmin, who)
		}
	}
	user, _, remote := strings.Cut(who, "@")
	if remote {
		return PatchObject(c, ledger.KindAdmin, ObjectPatch{"who": who, "capabilities": next})
	}
	return PatchObject(c, ledger.KindAdmin, ObjectPatch{"who": who, "capabilities": next}, user)
}
