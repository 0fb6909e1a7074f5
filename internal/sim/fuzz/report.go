package fuzz

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/sim/audit"
)

// RunOutcome is the outcome of a run.
type RunOutcome struct {
	Violations []audit.Violation // in the order in which they were found
	Events     uint64
	Digest     uint64 // digest of all events
	Ended      time.Duration
	Injected   [17]int // faults by kind
	Tasks      int     // number of tasks that ended
}

// Describe explains on numbered lines, in order of time, how a case came to its
// violation.
func Describe(c *PoolCase, o *RunOutcome) string {
	var text strings.Builder
	fmt.Fprintf(&text, "A pool of %s, %s and %s.\n", countText(c.Managers, "central manager"),
		countText(c.Schedds, "submit node"), countText(len(c.Machines), "machine"))
	if c.Members > 0 {
		fmt.Fprintf(&text, "The cell has a queue with %s.\n", countText(c.Members, "member"))
	}
	for i := range c.Machines {
		m := &c.Machines[i]
		fmt.Fprintf(&text, "%s has %s%s.\n", machineName(m.Number), countText(m.Cores, "core"), m.Owner)
		if m.UnrequestedOutputs > 0 {
			fmt.Fprintf(&text, "%s sends a file that nobody has asked for with the output of the first attempt that "+
				"ends there.\n", machineName(m.Number))
		}
	}
	text.WriteByte('\n')
	lines := c.reportLines()
	if len(o.Violations) > 0 {
		for _, s := range o.Violations[0].History {
			lines = append(lines, reportLine{s.At, s.String()})
		}
	}
	slices.SortStableFunc(lines, func(a, b reportLine) int { return int(a.at - b.at) })
	for i, l := range lines {
		fmt.Fprintf(&text, "%3d. %10s  %s\n", i+1, audit.ClockText(l.at), l.text)
	}
	for i := range o.Violations {
		if b := &o.Violations[i]; i == 0 {
			fmt.Fprintf(&text, "\nSo %v is broken at %s: %s.\n%v says: %s.\n", b.Guarantee, audit.ClockText(b.At),
				b.Description, b.Guarantee, b.Guarantee.Sentence())
		} else if i == 1 {
			fmt.Fprintf(&text, "Besides %v: %s.\n", b.Guarantee, b.Description)
		}
	}
	return text.String()
}

// String returns text to append to the description of a machine.
func (d DesktopPolicy) String() string {
	if d == (DesktopPolicy{}) {
		return ""
	}
	return fmt.Sprintf(", and an owner: it is lent %v after he has left, what stood still goes on after %v, and "+
		"leaves when it has stood still for %v",
		d.StartAfter, d.ResumeAfter, d.VacateAfter)
}

// reportLine is one line of a description.
type reportLine struct {
	at   time.Duration
	text string
}

// reportLines lists what users and faults do.
func (c *PoolCase) reportLines() (all []reportLine) {
	for i := range c.Jobs {
		j := &c.Jobs[i]
		text := fmt.Sprintf("user%d submits %s of %s and %v each at %s, with the key %s and a lease of %v",
			j.User+1, countText(j.Tasks, "task"), countText(j.Cores, "core"), j.Length,
			fmt.Sprint(scheddPrefix, j.Schedd), j.key(), j.Lease)
		if j.Code != 0 {
			text += fmt.Sprintf("; they end with code %d, and are tried %s more", j.Code, countText(j.Tries, "time"))
		}
		if j.InCell {
			text += "; it goes into the queue of the cell"
		}
		if j.ResubmitAfter > 0 {
			text += fmt.Sprintf("; %v after its id was shown it is submitted again", j.ResubmitAfter)
		}
		if j.Service != nil {
			text += j.Service.text()
		}
		if j.Schedule != nil {
			text += j.Schedule.text()
		}
		if j.Flow != nil {
			text += flowText(j.Flow)
		}
		if j.IsAlloc {
			text += "; as an alloc set"
		}
		if j.Inside > 0 {
			text += fmt.Sprintf("; inside the alloc set of the key key%d, in any alloc: %v", j.Inside, j.Anywhere)
		}
		all = append(all, reportLine{j.At, text})
		for _, a := range j.Actions {
			text := fmt.Sprintf("user%d asks: %v the job of the key %s", j.User+1, a.Verb, j.key())
			if a.Verb == Update {
				text += fmt.Sprintf(" to revision %d", a.Revision)
			}
			if a.Verb == Resize {
				text += fmt.Sprintf(" to %s and %d GiB of memory a task", countText(a.Cores, "core"), a.Memory)
			}
			all = append(all, reportLine{j.At + a.Delay, text})
		}
	}
	for _, d := range c.Drains {
		all = append(all, reportLine{d.At, d.text()})
	}
	for _, f := range c.Faults {
		text := "FAULT "
		if f.Failpoint != "" {
			text = "FAULT from now on: "
		}
		all = append(all, reportLine{f.At, text + f.String()})
	}
	return all
}

func countText(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
