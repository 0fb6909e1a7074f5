package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/live"
	"github.com/roost-batch/roost/internal/spell"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/picture"
)

func simWhatif() (branch, []ucli.Flag) {
	return branch{
			name: "whatif", brief: "what a change would do", least: 0, most: 1, wants: "a checkpoint of a cell, or nothing for the pool as it is now", do: whatif,
		}, append([]ucli.Flag{
			&ucli.StringSliceFlag{Name: "drain", Usage: "whatif: drain this `NODE`"},
			&ucli.StringSliceFlag{Name: "undrain", Usage: "whatif: and let this `NODE` have tasks again"},
			&ucli.StringSliceFlag{Name: "remove", Usage: "whatif: take this `NODE` away, with what runs there"},
			&ucli.StringSliceFlag{Name: "add", Usage: "whatif: add nodes like one that is there, as `NODE*N`"},
			&ucli.StringSliceFlag{Name: "setting", Usage: "whatif: change a setting of the cell, as `NAME=VALUE`"},
			&ucli.StringSliceFlag{Name: "quota", Usage: "whatif: set a quota, as `USER/BAND=AMOUNTS`: ann/batch=cpus:8,memory:64GiB; each for every user, group:NAME for a group"},
			&ucli.StringSliceFlag{Name: "limit", Usage: "whatif: have so many of a licence, as `NAME=N`"},
			&ucli.StringSliceFlag{Name: "group", Usage: "whatif: give a group so many cores, as `NAME=CORES`"},
			&ucli.StringSliceFlag{Name: "queue", Usage: "whatif: start or stop a queue, or let so many of its tasks run, as `NAME=start|stop|N`"},
			&ucli.StringFlag{Name: "span", Usage: "whatif: look so far ahead, a `DURATION`", Value: "1d"},
			&ucli.BoolFlag{Name: "predicted", Usage: "whatif: take tasks to run for as long as those like them did, not as their walltimes let them"},
		}, resultFlags()...)
}

func whatif(c *call, args []string) error {
	change, err := c.simChange()
	if err != nil {
		return err
	}
	length, err := roost.ParseDuration(c.text("span"))
	if err != nil || length <= 0 || length > live.Horizon {
		return usage("--span %s: it is no length of time up to a year", c.text("span"))
	}
	lengths := live.Asked
	if c.flag("predicted") {
		lengths = live.Predicted
	}
	p, err := c.picture(append(args, "")[0])
	if err != nil {
		return err
	}
	if err := c.namesKnown(p, change); err != nil {
		return err
	}
	ask := func() (*live.Comparison, error) { return live.WhatIf(p, change, lengths, length) }
	answer, err := answeredTwice(ask, func(a *live.Comparison) uint64 { return a.Digest })
	if err != nil {
		return err
	}
	if err := c.writeTable(whatifTable(answer)); err != nil {
		return err
	}
	if err := c.writePicture(whatifCharts(p, answer, length)...); err != nil {
		return err
	}
	if c.json() {
		return c.whatifJSON(p, answer)
	}
	c.printWhatif(p, answer, length)
	return nil
}

// pair takes a flag's value apart at the first "=".
func pair(flag, text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" || value == "" {
		return "", "", usage("--%s %s: write it as NAME=VALUE", flag, text)
	}
	return name, value, nil
}

// simChange reads what is to be changed.
func (c *call) simChange() (live.Change, error) {
	var change live.Change
	set := func(kind ledger.Kind, w wish) {
		change.Commands = append(change.Commands, ledger.Command{Verb: ledger.Set, Kind: kind, Object: w.text()})
	}
	for _, node := range c.texts("drain") {
		set(ledger.KindDrain, wish{"node": node})
	}
	for _, node := range c.texts("undrain") {
		change.Commands = append(change.Commands, ledger.Command{Verb: ledger.Remove, Kind: ledger.KindDrain, Name: node})
	}
	change.Remove = c.texts("remove")
	for _, one := range []struct {
		flag string
		take func(name, value string) error
	}{
		{"setting", func(name, value string) error {
			set(ledger.KindSetting, wish{"name": name, "value": value})
			return nil
		}},
		{"limit", func(name, value string) error {
			set(ledger.KindLimit, wish{"name": name, "count": number(value)})
			return wholeNumber(value)
		}},
		{"group", func(name, value string) error {
			set(ledger.KindGroup, wish{"name": name, "cores": number(value)})
			return numeric(value)
		}},
		{"quota", func(name, value string) error {
			w, err := quotaWish(name, value)
			set(ledger.KindQuota, w)
			return err
		}},
		{"queue", func(name, value string) error {
			w, err := queueWish(name, value)
			set(ledger.KindQueue, w)
			return err
		}},
	} {
		for _, text := range c.texts(one.flag) {
			name, value, err := pair(one.flag, text)
			if err != nil {
				return change, err
			}
			if err := one.take(name, value); err != nil {
				return change, usage("--%s %s: %v", one.flag, text, err)
			}
		}
	}
	for _, text := range c.texts("add") {
		like, count, _ := strings.Cut(text, "*")
		n, err := strconv.Atoi(count)
		if err != nil {
			return change, usage("--add %s: write it as NODE*N, as n7*4", text)
		}
		change.Add = append(change.Add, live.Addition{Like: like, Count: n})
	}
	if len(change.Commands)+len(change.Remove)+len(change.Add) == 0 {
		return change, advise(usage("whatif needs something to change"), "as in: roost sim whatif --drain n7")
	}
	return change, nil
}

// namesKnown refuses a change of nodes and queues that are not there.
func (c *call) namesKnown(p *picture.Checkpoint, change live.Change) error {
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
		err := problem(roost.NotFound, "%s: there is no %s of that name", printable(name), what)
		near := spell.Nearest(name, all)
		for _, one := range all {
			if strings.HasPrefix(one, name+".") {
				near = one
			}
		}
		if near != "" {
			err = advise(err, "did you mean "+near+"?")
		}
		return err
	}
	for _, node := range slices.Concat(c.texts("drain"), change.Remove) {
		if err := known("node", node, nodes); err != nil {
			return err
		}
	}
	for _, add := range change.Add {
		if err := known("node", add.Like, nodes); err != nil {
			return err
		}
	}
	for _, text := range c.texts("queue") {
		name, _, _ := strings.Cut(text, "=")
		if err := known("queue", name, queues); err != nil {
			return err
		}
	}
	for _, node := range change.Remove {
		if slices.Contains(c.texts("drain"), node) {
			return usage("%s: what is taken away cannot be drained as well", printable(node))
		}
	}
	return nil
}

func wholeNumber(text string) error {
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		return fmt.Errorf("%q is not a whole number", text)
	}
	return nil
}

// quotaWish is a quota as USER/BAND=AMOUNTS says it.
func quotaWish(name, value string) (wish, error) {
	who, band, ok := strings.Cut(name, "/")
	if !ok {
		return nil, fmt.Errorf("it names no band: write it as ann/batch=cpus:8")
	}
	w := wish{"band": band}
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
		field, n, err := amountOf(dimension, amount)
		if err != nil {
			return nil, err
		}
		w.within("most")[field] = n
	}
	return w, nil
}

// queueWish is a change of a queue.
func queueWish(name, value string) (wish, error) {
	switch value {
	case "start":
		return wish{"name": name, "started": true}, nil
	case "stop":
		return wish{"name": name, "started": false}, nil
	}
	w := wish{"name": name}
	w.within("running")["total"] = json.Number(value)
	return w, wholeNumber(value)
}

func (c *call) printWhatif(p *picture.Checkpoint, a *live.Comparison, length time.Duration) {
	fmt.Fprintf(c.stdout, "%s; looked %s ahead\n\n", c.asOf(p), spoken(int64(length/time.Second)))
	if len(a.Evictions) == 0 {
		fmt.Fprintln(c.stdout, "  It would evict nothing.")
	} else {
		fmt.Fprintf(c.stdout, "  It would evict %s at once:\n", plural(len(a.Evictions), "task"))
	}
	for i, e := range a.Evictions {
		if i == mostShown {
			fmt.Fprintf(c.stdout, "    … and %d more\n", len(a.Evictions)-i)
			break
		}
		job := e.Claim.Job
		if job == "" {
			job = "a task"
		}
		fmt.Fprintln(c.stdout, c.paragraph("    - ", "      ", fmt.Sprintf("%s of %s on %s: %s", job, e.Claim.Submitter, e.Machine, e.Why)))
	}
	fmt.Fprintln(c.stdout)
	t := &table{columns: []column{{head: ""}, {head: "BEFORE", right: true}, {head: "AFTER", right: true}}}
	for _, row := range [][3]string{
		{"  wait when all has started that can", fmt.Sprint(a.Before.Waits), fmt.Sprint(a.After.Waits)},
		{"  start within an hour", fmt.Sprint(a.Before.Within), fmt.Sprint(a.After.Within)},
		{"  start at all", fmt.Sprint(a.Before.Started), fmt.Sprint(a.After.Started)},
		{"  wait on the mean", spoken(int64(a.Before.MeanWait)), spoken(int64(a.After.MeanWait))},
		{"  the last starts", c.short(p, a.Before.Done), c.short(p, a.After.Done)},
		{"  have to make room, at once and later", fmt.Sprint(a.Before.Evicted), fmt.Sprint(a.After.Evicted)},
	} {
		t.add(cell{row[0], ""}, cell{row[1], ""}, cell{row[2], ""})
	}
	t.print(c.stdout, c.out)
	c.printMoves(p, a)
	for _, d := range a.Drained {
		fmt.Fprintf(c.stdout, "\n  %s is empty %s\n", d.Node, c.emptied(p, d))
	}
	c.printQuotas(a)
	c.list("It is assumed that", assumes(p, a.Before.Endless, [...]string{"tasks run for as long as their walltimes let them", "tasks run for as long as those like them did"}[btoi(c.flag("predicted"))]))
	fmt.Fprintf(c.stdout, "\nplayed twice, digest %016x both times\n", a.Digest)
}

// printQuotas says how the quotas that are set stand to what is asked for.
func (c *call) printQuotas(a *live.Comparison) {
	say := func(format string, args ...any) {
		fmt.Fprintln(c.stdout, c.paragraph("\n  ", "  ", fmt.Sprintf(format, args...)))
	}
	for _, q := range a.Quotas {
		switch {
		case q.Most == "":
			say("%s may ask for any amount in %s", q.Whose, q.Band)
		case q.Over:
			say("%s asks for %s in %s, and the quota is %s: so new jobs are refused until it asks for less; a quota evicts nothing", q.Whose, q.Asks, q.Band, q.Most)
		default:
			say("%s asks for %s in %s, and the quota is %s: which is within it", q.Whose, q.Asks, q.Band, q.Most)
		}
	}
	if n := len(a.Allowed); n > 0 {
		ids := strings.Join(a.Allowed[:min(n, mostShown)], ", ")
		if n > mostShown {
			ids += fmt.Sprintf(" and %d more", n-mostShown)
		}
		say("quotas refused %s, which %s held for that; they would allow %s then, once somebody has released %[3]s", ids, [...]string{"are", "is"}[btoi(n == 1)], [...]string{"them", "it"}[btoi(n == 1)])
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// short writes when something starts in a table.
func (c *call) short(p *picture.Checkpoint, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	if t.Sub(p.Now) < time.Second {
		return "at once"
	}
	return "in " + spoken(int64(t.Sub(p.Now)/time.Second))
}

func (c *call) emptied(p *picture.Checkpoint, d live.Emptying) string {
	switch {
	case d.Runs == 0:
		return "already"
	case d.Unknown == d.Runs:
		return fmt.Sprintf("nobody knows when: %s there, of which nobody knows when they end", plural(d.Runs, "task"))
	case d.Unknown > 0:
		return fmt.Sprintf("nobody knows when: of %s there nobody knows it of %d, and the others are over %s", plural(d.Runs, "task"), d.Unknown, c.short(p, d.Over))
	}
	return fmt.Sprintf("%s, when %s there %s over", c.short(p, d.Over), plural(d.Runs, "task"), [...]string{"are", "is"}[btoi(d.Runs == 1)])
}

// printMoves lists who starts earlier or later.
func (c *call) printMoves(p *picture.Checkpoint, a *live.Comparison) {
	if len(a.Moved) == 0 {
		fmt.Fprintln(c.stdout, "\n  Nobody would start earlier or later.")
		return
	}
	fmt.Fprintf(c.stdout, "\n  When the last tasks of these start:\n")
	t := &table{columns: []column{{head: "  JOB"}, {head: "USER"}, {head: "TASKS", right: true}, {head: "BEFORE", right: true}, {head: "AFTER", right: true}}}
	for i, m := range a.Moved {
		if i == mostShown {
			break
		}
		t.add(cell{"  " + moved(m), ""}, cell{m.Submitter.String(), ""}, cell{fmt.Sprint(m.Tasks), ""}, cell{c.short(p, m.Before), ""}, cell{c.short(p, m.After), ""})
	}
	t.print(c.stdout, c.out)
	if n := len(a.Moved) - mostShown; n > 0 {
		fmt.Fprintf(c.stdout, "  … and %d more\n", n)
	}
}
