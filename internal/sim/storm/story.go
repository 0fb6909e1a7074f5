package storm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/sim/audit"
)

// Outcome is how a run went.
type Outcome struct {
	Breaches []audit.Breach // in the order in which they were seen
	Events   uint64
	Digest   uint64 // of all that happened
	Ended    time.Duration
	Injected [17]int // faults by kind
	Tasks    int     // that came to their end
}

// Story tells how a case came to break a promise, on numbered lines in the order of time.
func Story(c *Case, o *Outcome) string {
	var text strings.Builder
	fmt.Fprintf(&text, "A pool of %s, %s and %s.\n", count(c.Managers, "central manager"), count(c.Schedds, "submit node"), count(len(c.Machines), "machine"))
	for i := range c.Machines {
		m := &c.Machines[i]
		fmt.Fprintf(&text, "%s has %s%s.\n", machineName(m.Number), count(m.Cores, "core"), m.Desk)
		if m.Lies > 0 {
			fmt.Fprintf(&text, "%s sends a file that nobody has asked for with the output of the first attempt that ends there.\n", machineName(m.Number))
		}
	}
	text.WriteByte('\n')
	lines := c.lines()
	if len(o.Breaches) > 0 {
		for _, s := range o.Breaches[0].History {
			lines = append(lines, line{s.At, s.String()})
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return int(a.at - b.at) })
	for i, l := range lines {
		fmt.Fprintf(&text, "%3d. %10s  %s\n", i+1, audit.Clock(l.at), l.text)
	}
	for i := range o.Breaches {
		if b := &o.Breaches[i]; i == 0 {
			fmt.Fprintf(&text, "\nSo %v is broken at %s: %s.\n%v says: %s.\n", b.Promise, audit.Clock(b.At), b.Text, b.Promise, b.Promise.Sentence())
		} else if i == 1 {
			fmt.Fprintf(&text, "Besides %v: %s.\n", b.Promise, b.Text)
		}
	}
	return text.String()
}

// String follows what a machine has.
func (d Desk) String() string {
	if d == (Desk{}) {
		return ""
	}
	return fmt.Sprintf(", and an owner: it is lent %v after he has left, what stood still goes on after %v, and leaves when it has stood still for %v",
		d.Start, d.Resume, d.Leave)
}

// line is one of a story.
type line struct {
	at   time.Duration
	text string
}

// lines are what users and faults do.
func (c *Case) lines() (all []line) {
	for i := range c.Jobs {
		j := &c.Jobs[i]
		text := fmt.Sprintf("user%d submits %s of %s and %v each at %s, with the key %s and a lease of %v",
			j.User+1, count(j.Tasks, "task"), count(j.Cores, "core"), j.Length, fmt.Sprint(scheddPrefix, j.Schedd), j.key(), j.Lease)
		if j.Code != 0 {
			text += fmt.Sprintf("; they end with code %d, and are tried %s more", j.Code, count(j.Tries, "time"))
		}
		if j.Again > 0 {
			text += fmt.Sprintf("; %v after its id was shown it is submitted again", j.Again)
		}
		all = append(all, line{j.At, text})
		for _, a := range j.Acts {
			all = append(all, line{j.At + a.After, fmt.Sprintf("user%d asks: %v the job of the key %s", j.User+1, a.Verb, j.key())})
		}
	}
	for _, f := range c.Faults {
		text := "FAULT "
		if f.Point != "" {
			text = "FAULT from now on: "
		}
		all = append(all, line{f.At, text + f.String()})
	}
	return all
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
