package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/slurm/hostlist"
	"github.com/roost-batch/roost/internal/slurm/records"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// partition is a queue in Slurm's words.
type partition struct {
	name      string
	isDefault bool
	state     string // UP, DOWN, DRAIN or INACTIVE
	limit     string // longest time limit of a job, or UNLIMITED
}

// partitions are the queues of the pool, the default one first. Where the negotiator does
// not answer, only that one is known.
func partitions(c *frame.Invocation) []partition {
	name := roost.DefaultQueueName
	var settings []admin.AttributedObject[ledger.SettingValue]
	if admin.CellObjects(c, string(ledger.KindSetting), &settings) == nil {
		for _, s := range settings {
			if s.Name == ledger.SettingDefaultQueue && s.Object.Value != "" {
				name = s.Object.Value
			}
		}
	}
	var queues []admin.AttributedObject[ledger.QueuePolicy]
	if admin.CellObjects(c, string(ledger.KindQueue), &queues) != nil {
		queues = nil
	}
	all := []partition{{name, true, "UP", unlimited}}
	for _, q := range queues {
		p := partition{name: q.Object.Name, isDefault: q.Object.Name == name, state: "UP", limit: unlimited}
		switch {
		case !q.Object.Enabled && !q.Object.Started:
			p.state = "INACTIVE"
		case !q.Object.Enabled:
			p.state = "DRAIN"
		case !q.Object.Started:
			p.state = "DOWN"
		}
		if most := q.Object.MaxResources.Walltime; most != nil {
			p.limit = records.Duration(time.Duration(*most) * time.Second)
		}
		if p.isDefault {
			all[0] = p
		} else {
			all = append(all, p)
		}
	}
	slices.SortFunc(all[1:], func(a, b partition) int { return strings.Compare(a.name, b.name) })
	return all
}

// shown is the name as sinfo prints it.
func (p *partition) shown() string {
	if p.isDefault {
		return p.name + "*"
	}
	return p.name
}

// unlimited is what Slurm calls a limit that there is not.
const unlimited = "UNLIMITED"

// shownLimit is the limit as sinfo prints it.
func (p *partition) shownLimit() string {
	if p.limit == unlimited {
		return "infinite"
	}
	return p.limit
}

// availability is the state as sinfo prints it.
func (p *partition) availability() string {
	return map[string]string{"UP": "up", "DOWN": "down", "DRAIN": "drain", "INACTIVE": "inact"}[p.state]
}

// showLicenses prints the concurrency limits of the pool.
func (r *scontrolRun) showLicenses(name string) error {
	var limits []admin.AttributedObject[ledger.ConcurrencyLimit]
	if err := admin.CellObjects(r.Invocation, string(ledger.KindLimit), &limits); err != nil {
		return failWith(r.Invocation, err)
	}
	printed := 0
	for _, l := range limits {
		if name != "" && l.Object.Name != name {
			continue
		}
		printed++
		end := "\n    "
		if r.oneLine {
			end = " "
		}
		fmt.Fprintf(r.Stdout, "LicenseName=%s%sTotal=%d Remote=no\n", l.Object.Name, end, l.Object.Count)
	}
	if printed == 0 && name != "" {
		return r.exit("License " + name + " not found")
	}
	if printed == 0 {
		fmt.Fprintln(r.Stdout, "No licenses configured in Slurm.")
	}
	return nil
}

// showReservations prints the reservations that are not over.
func (r *scontrolRun) showReservations(name string) error {
	all, _, err := admin.Reservations(r.Invocation)
	if err != nil {
		return failWith(r.Invocation, err)
	}
	now, printed := clock(r.Invocation), 0
	for i := range all {
		o := &all[i].Object
		if name != "" && o.Name != name || !o.Until.After(r.Now()) {
			continue
		}
		printed++
		state, nodes := "INACTIVE", "(null)"
		if !o.Deleting && !r.Now().Before(o.From) {
			state = "ACTIVE"
		}
		if len(o.Nodes) > 0 {
			nodes = hostlist.Compress(o.Nodes)
		}
		orNull := func(list []string) string {
			if len(list) == 0 {
				return "(null)"
			}
			return document.PrintableText(strings.Join(list, ","))
		}
		r.printBlock([]string{
			fmt.Sprintf("ReservationName=%s StartTime=%s EndTime=%s Duration=%s", o.Name, now.Time(o.From, ""),
				now.Time(o.Until, ""), records.Duration(o.Until.Sub(o.From))),
			fmt.Sprintf("Nodes=%s NodeCnt=%d", nodes, len(o.Nodes)),
			fmt.Sprintf("Users=%s Accounts=%s State=%s", orNull(o.Users), orNull(o.Groups), state),
		})
	}
	switch {
	case printed == 0 && name != "":
		fmt.Fprintf(r.Stdout, "Reservation %s not found\n", name)
		return frame.ExitError(failure)
	case printed == 0:
		fmt.Fprintln(r.Stdout, "No reservations in the system")
	}
	return nil
}
