package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/cell"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/sim/whatif"
	"github.com/roost-batch/roost/internal/suggest"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func whatifSubcommand() (frame.Subcommand, []ucli.Flag) {
	return frame.Subcommand{
			Name: "whatif", Summary: "what a change would do", MinOperands: 0, MaxOperands: 1,
			OperandNames: "a checkpoint of a cell, or nothing for the pool as it is now", Run: whatIfRun,
		}, append([]ucli.Flag{
			&ucli.StringSliceFlag{Name: "drain", Usage: "whatif: drain this `NODE`"},
			&ucli.StringSliceFlag{Name: "undrain", Usage: "whatif: and let this `NODE` have tasks again"},
			&ucli.StringSliceFlag{Name: "remove", Usage: "whatif: take this `NODE` away, with what runs there"},
			&ucli.StringSliceFlag{Name: "add", Usage: "whatif: add nodes like one that is there, as `NODE*N`"},
			&ucli.StringSliceFlag{Name: "setting", Usage: "whatif: change a setting of the cell, as `NAME=VALUE`"},
			&ucli.StringSliceFlag{Name: "quota",
				Usage: "whatif: set a quota, as `USER/BAND=AMOUNTS`: ann/batch=cpus:8,memory:64GiB; each for every " +
					"user, group:NAME for a group"},
			&ucli.StringSliceFlag{Name: "limit", Usage: "whatif: have so many of a licence, as `NAME=N`"},
			&ucli.StringSliceFlag{Name: "group", Usage: "whatif: give a group so many cores, as `NAME=CORES`"},
			&ucli.StringSliceFlag{Name: "queue",
				Usage: "whatif: start or stop a queue, or let so many of its tasks run, as `NAME=start|stop|N`"},
			&ucli.StringSliceFlag{Name: "alter",
				Usage: "whatif: have a job ask for something else, as `JOB=AMOUNTS`: 12.n2=cpus:8,band:production"},
			&ucli.StringFlag{Name: "span", Usage: "whatif: look so far ahead, a `DURATION`", Value: "1d"},
			&ucli.BoolFlag{Name: "predicted", Usage: "whatif: take tasks to run for as long as those like them did, " +
				"not as their walltimes let them"},
		}, resultFlags()...)
}

func whatIfRun(c *frame.Invocation, args []string) error {
	change, err := simChange(c)
	if err != nil {
		return err
	}
	length, err := roost.ParseDuration(c.StringFlag("span"))
	if err != nil || length <= 0 || length > whatif.MaxLookAhead {
		return frame.UsageErrorf("--span %s: it is no length of time up to a year", c.StringFlag("span"))
	}
	lengths := whatif.ByWalltime
	if c.Flag("predicted") {
		lengths = whatif.ByPrediction
	}
	p, err := cell.ReadCellCheckpoint(c, append(args, "")[0])
	if err != nil {
		return err
	}
	if change.Alter, err = parseAlterFlags(c, p); err != nil {
		return err
	}
	if err := requireKnownNames(c, p, change); err != nil {
		return err
	}
	ask := func() (*whatif.PlanComparison, error) { return whatif.CompareChange(p, change, lengths, length) }
	answer, err := answerTwice(ask, func(a *whatif.PlanComparison) uint64 { return a.Digest })
	if err != nil {
		return err
	}
	head, rows := whatifTable(answer)
	if err := writeTable(c, head, rows); err != nil {
		return err
	}
	if err := writeCharts(c, whatifCharts(p, answer, length)...); err != nil {
		return err
	}
	if c.WantsJSON() {
		return whatifJSON(c, p, answer)
	}
	printWhatif(c, p, answer, length)
	return nil
}

// cutPair takes a flag's value apart at the first "=".
func cutPair(flag, text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || value == "" {
		return "", "", frame.UsageErrorf("--%s %s: write it as NAME=VALUE", flag, text)
	}
	return name, value, nil
}

// simChange reads what is to be changed.
func simChange(c *frame.Invocation) (whatif.CellChange, error) {
	var change whatif.CellChange
	set := func(kind ledger.ObjectKind, w admin.ObjectPatch) {
		change.AdminCommands = append(change.AdminCommands,
			ledger.AdminCommand{Verb: ledger.VerbSet, Kind: kind, Object: w.JSONText()})
	}
	for _, node := range c.StringsFlag("drain") {
		set(ledger.KindDrain, admin.ObjectPatch{"node": node})
	}
	for _, node := range c.StringsFlag("undrain") {
		change.AdminCommands = append(change.AdminCommands,
			ledger.AdminCommand{Verb: ledger.VerbRemove, Kind: ledger.KindDrain, Name: node})
	}
	change.Remove = c.StringsFlag("remove")
	for _, one := range []struct {
		flag string
		take func(name, value string) error
	}{
		{"setting", func(name, value string) error {
			set(ledger.KindSetting, admin.ObjectPatch{"name": name, "value": value})
			return nil
		}},
		{"limit", func(name, value string) error {
			set(ledger.KindLimit, admin.ObjectPatch{"name": name, "count": admin.JSONNumber(value)})
			return parseCount(value)
		}},
		{"group", func(name, value string) error {
			set(ledger.KindGroup, admin.ObjectPatch{"name": name, "cores": admin.JSONNumber(value)})
			return admin.CheckNumber(value)
		}},
		{"quota", func(name, value string) error {
			w, err := parseQuotaChange(name, value)
			set(ledger.KindQuota, w)
			return err
		}},
		{"queue", func(name, value string) error {
			w, err := parseQueueChange(name, value)
			set(ledger.KindQueue, w)
			return err
		}},
	} {
		for _, text := range c.StringsFlag(one.flag) {
			name, value, err := cutPair(one.flag, text)
			if err != nil {
				return change, err
			}
			if err := one.take(name, value); err != nil {
				return change, frame.UsageErrorf("--%s %s: %v", one.flag, text, err)
			}
		}
	}
	for _, text := range c.StringsFlag("add") {
		like, count, _ := strings.Cut(text, "*")
		n, err := strconv.Atoi(count)
		if err != nil {
			return change, frame.UsageErrorf("--add %s: write it as NODE*N, as n7*4", text)
		}
		change.Add = append(change.Add, whatif.MachineAddition{Like: like, Count: n})
	}
	if len(change.AdminCommands)+len(change.Remove)+len(change.Add)+len(c.StringsFlag("alter")) == 0 {
		return change, frame.WithHint(frame.UsageErrorf("whatif needs something to change"),
			"as in: roost sim whatif --drain n7")
	}
	return change, nil
}

// requireKnownNames refuses a change of nodes and queues that are not there.
func requireKnownNames(c *frame.Invocation, p *cellstate.CellCheckpoint, change whatif.CellChange) error {
	var nodes, queues []string
	for _, m := range p.Machines {
		nodes = append(nodes, m.Name)
	}
	for _, q := range p.Ledger.Queues() {
		queues = append(queues, q.Name)
	}
	known := func(what, name string, all []string) error {
		if slices.Contains(all, name) {
			return nil
		}
		err := frame.KindErrorf(roost.NotFound, "%s: there is no %s of that name", document.PrintableText(name), what)
		near := suggest.Nearest(name, all)
		for _, one := range all {
			if strings.HasPrefix(one, name+".") {
				near = one
			}
		}
		if near != "" {
			err = frame.WithHint(err, "did you mean "+near+"?")
		}
		return err
	}
	for _, node := range slices.Concat(c.StringsFlag("drain"), change.Remove) {
		if err := known("node", node, nodes); err != nil {
			return err
		}
	}
	for _, add := range change.Add {
		if err := known("node", add.Like, nodes); err != nil {
			return err
		}
	}
	for _, text := range c.StringsFlag("queue") {
		name, _, _ := strings.Cut(text, "=")
		if err := known("queue", name, queues); err != nil {
			return err
		}
	}
	for _, node := range change.Remove {
		if slices.Contains(c.StringsFlag("drain"), node) {
			return frame.UsageErrorf("%s: what is taken away cannot be drained as well", document.PrintableText(node))
		}
	}
	return nil
}

func parseCount(text string) error {
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		return fmt.Errorf("%q is not a whole number", text)
	}
	return nil
}

// parseQuotaChange is a quota as USER/BAND=AMOUNTS says it.
func parseQuotaChange(name, value string) (admin.ObjectPatch, error) {
	who, band, ok := strings.Cut(name, "/")
	if !ok {
		return nil, fmt.Errorf("it names no band: write it as ann/batch=cpus:8")
	}
	w := admin.ObjectPatch{"band": band}
	if group, is := strings.CutPrefix(who, "group:"); is {
		w["group"] = group
	} else {
		w["user"] = who
	}
	for _, part := range strings.Split(value, ",") {
		dimension, amount, ok := strings.Cut(part, ":")
		if !ok || !slices.Contains([]string{"cpus", "memory", "disk", "gpus", "tasks"}, dimension) {
			return nil, fmt.Errorf("%q is no amount of cpus, memory, disk, gpus or tasks: write it as cpus:8", part)
		}
		field, n, err := admin.ParseAmount(dimension, amount)
		if err != nil {
			return nil, err
		}
		w.SubPatch("most")[field] = n
	}
	return w, nil
}

// parseQueueChange is a change of a queue.
func parseQueueChange(name, value string) (admin.ObjectPatch, error) {
	switch value {
	case "start":
		return admin.ObjectPatch{"name": name, "started": true}, nil
	case "stop":
		return admin.ObjectPatch{"name": name, "started": false}, nil
	}
	w := admin.ObjectPatch{"name": name}
	w.SubPatch("running")["total"] = json.Number(value)
	return w, parseCount(value)
}

func printWhatif(c *frame.Invocation, p *cellstate.CellCheckpoint, a *whatif.PlanComparison, length time.Duration) {
	fmt.Fprintf(c.Stdout, "%s; looked %s ahead\n\n", printAsOf(c, p), secondsText(int64(length/time.Second)))
	if len(a.Evictions) == 0 {
		fmt.Fprintln(c.Stdout, "  It would evict nothing.")
	} else {
		fmt.Fprintf(c.Stdout, "  It would evict %s at once:\n", document.Plural(len(a.Evictions), "task"))
	}
	for i, e := range a.Evictions {
		if i == maxShown {
			fmt.Fprintf(c.Stdout, "    … and %d more\n", len(a.Evictions)-i)
			break
		}
		job := e.Claim.Job
		if job == "" {
			job = "a task"
		}
		fmt.Fprintln(c.Stdout, c.PrintParagraph("    - ", "      ",
			fmt.Sprintf("%s of %s on %s: %s", job, e.Claim.Submitter, e.Machine, e.Reason)))
	}
	fmt.Fprintln(c.Stdout)
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: ""}, {Head: "BEFORE", RightAligned: true},
		{Head: "AFTER", RightAligned: true}}}
	for _, row := range [][3]string{
		{"  wait when all has started that can", fmt.Sprint(a.Before.Waiting), fmt.Sprint(a.After.Waiting)},
		{"  start within an hour", fmt.Sprint(a.Before.StartedInHour), fmt.Sprint(a.After.StartedInHour)},
		{"  start at all", fmt.Sprint(a.Before.Started), fmt.Sprint(a.After.Started)},
		{"  wait on the mean", secondsText(int64(a.Before.MeanWait)), secondsText(int64(a.After.MeanWait))},
		{"  the last starts", shortStartText(c, p, a.Before.LastStart), shortStartText(c, p, a.After.LastStart)},
		{"  have to make room, at once and later", fmt.Sprint(a.Before.Evicted), fmt.Sprint(a.After.Evicted)},
	} {
		t.AddRow(frame.TableCell{Text: row[0]}, frame.TableCell{Text: row[1]}, frame.TableCell{Text: row[2]})
	}
	t.Print(c.Stdout, c.OutScreen)
	printMoves(c, p, a)
	for _, d := range a.Drained {
		fmt.Fprintf(c.Stdout, "\n  %s is empty %s\n", d.Node, emptiedText(c, p, d))
	}
	printQuotas(c, a)
	c.PrintList("It is assumed that", assumptions(p, a.Before.EndUnknown,
		[...]string{"tasks run for as long as their walltimes let them",
			"tasks run for as long as those like them did"}[btoi(c.Flag("predicted"))]))
	fmt.Fprintf(c.Stdout, "\nplayed twice, digest %016x both times\n", a.Digest)
}

// printQuotas says how the quotas that are set stand to what is asked for.
func printQuotas(c *frame.Invocation, a *whatif.PlanComparison) {
	say := func(format string, args ...any) {
		fmt.Fprintln(c.Stdout, c.PrintParagraph("\n  ", "  ", fmt.Sprintf(format, args...)))
	}
	for _, q := range a.Quotas {
		switch {
		case q.Limit == "":
			say("%s may ask for any amount in %s", q.Subject, q.Band)
		case q.Exceeded:
			say("%s asks for %s in %s, and the quota is %s: so new jobs are refused until it asks for less; a quota "+
				"evicts nothing", q.Subject, q.Demand, q.Band, q.Limit)
		default:
			say("%s asks for %s in %s, and the quota is %s: which is within it", q.Subject, q.Demand, q.Band, q.Limit)
		}
	}
	if n := len(a.AdmittedJobs); n > 0 {
		ids := strings.Join(a.AdmittedJobs[:min(n, maxShown)], ", ")
		if n > maxShown {
			ids += fmt.Sprintf(" and %d more", n-maxShown)
		}
		say("quotas refused %s, which %s held for that; they would allow %s then, once somebody has released %[3]s",
			ids, [...]string{"are", "is"}[btoi(n == 1)], [...]string{"them", "it"}[btoi(n == 1)])
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// shortStartText writes when something starts in a table.
func shortStartText(c *frame.Invocation, p *cellstate.CellCheckpoint, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	if t.Sub(p.Now) < time.Second {
		return "at once"
	}
	return "in " + secondsText(int64(t.Sub(p.Now)/time.Second))
}

func emptiedText(c *frame.Invocation, p *cellstate.CellCheckpoint, d whatif.DrainResult) string {
	switch {
	case d.Running == 0:
		return "already"
	case d.EndUnknown == d.Running:
		return fmt.Sprintf("nobody knows when: %s there, of which nobody knows when they end",
			document.Plural(d.Running, "task"))
	case d.EndUnknown > 0:
		return fmt.Sprintf("nobody knows when: of %s there nobody knows it of %d, and the others are over %s",
			document.Plural(d.Running, "task"), d.EndUnknown, shortStartText(c, p, d.LastEnd))
	}
	return fmt.Sprintf("%s, when %s there %s over", shortStartText(c, p, d.LastEnd), document.Plural(d.Running, "task"),
		[...]string{"are", "is"}[btoi(d.Running == 1)])
}

// printMoves lists who starts earlier or later.
func printMoves(c *frame.Invocation, p *cellstate.CellCheckpoint, a *whatif.PlanComparison) {
	if len(a.StartChanges) == 0 {
		fmt.Fprintln(c.Stdout, "\n  Nobody would start earlier or later.")
		return
	}
	fmt.Fprintf(c.Stdout, "\n  When the last tasks of these start:\n")
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "  JOB"}, {Head: "USER"},
		{Head: "TASKS", RightAligned: true},
		{Head: "BEFORE", RightAligned: true}, {Head: "AFTER", RightAligned: true}}}
	for i, m := range a.StartChanges {
		if i == maxShown {
			break
		}
		t.AddRow(frame.TableCell{Text: "  " + movedJobs(m)}, frame.TableCell{Text: m.Submitter.String()},
			frame.TableCell{Text: fmt.Sprint(m.Tasks),
				Colour: ""}, frame.TableCell{Text: shortStartText(c, p, m.Before)},
			frame.TableCell{Text: shortStartText(c, p, m.After)})
	}
	t.Print(c.Stdout, c.OutScreen)
	if n := len(a.StartChanges) - maxShown; n > 0 {
		fmt.Fprintf(c.Stdout, "  … and %d more\n", n)
	}
}
