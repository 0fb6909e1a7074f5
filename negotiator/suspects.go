package negotiator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/suspect"
)

// What the cell does about machines that swallow tasks (package suspect says which): it drains them by an entry of the log, as an administrator would,
// and after that gives them a few tasks on trial. About tasks and machines that keep failing together: it keeps them apart, with an entry, too.

// apart is which tasks of a request are kept from a machine.
type apart map[string]map[string]time.Time // by machine, by task: until when

// someFail is how many tasks of a request have to fail on a machine for all of them to be kept from it.
const someFail = 3

// ended takes in how an attempt ended.
func (c *cell) ended(now time.Time, s *schedd, o *wire.Outcome) {
	if o.GetVerdict() == wire.Outcome_GONE {
		c.gone(now, s.requests[o.GetRequest()], o.GetTask())
		return
	}
	pair, found := c.suspects.Ended(now, suspect.Outcome{
		Machine: o.GetNode(), Task: o.GetTask(), Job: o.GetJob(), Submitter: suspect.Submitter{Node: s.name, Owner: o.GetOwner()}, Verdict: suspect.Verdict(o.GetVerdict()),
		Ran: time.Duration(o.GetRan()), Reason: shorten(o.GetReason()),
	})
	if found {
		c.keepApart(now, s.requests[o.GetRequest()], pair)
	}
	c.changed = c.changed || o.GetVerdict() != wire.Outcome_GOOD || c.suspects.Wonders()
}

// gone lets machines have the other tasks of a request that were kept from them because of one that runs no more.
func (c *cell) gone(now time.Time, r *request, task string) {
	if r == nil {
		return
	}
	for _, machine := range slices.Sorted(maps.Keys(r.apart)) {
		if _, kept := r.apart[machine][task]; kept {
			delete(r.apart[machine], task)
			c.draft.pairs = append(c.draft.pairs, ledger.Pair{Task: task, Machine: machine, Until: now})
			c.commitBy(now)
			c.changed = true
		}
	}
}

// shorten bounds what a schedd tells, for the log.
func shorten(reason string) string {
	const most = 200
	if reason = strings.ToValidUTF8(reason, "?"); len(reason) > most {
		reason = strings.ToValidUTF8(reason[:most], "") + "…"
	}
	return reason
}

// keepApart notes a pair, for the present and for the log.
func (c *cell) keepApart(now time.Time, r *request, pair suspect.Apart) {
	c.log.Info("a task and a node are kept apart", "task", pair.Task, "node", pair.Machine, "until", pair.Until, "reason", pair.Reason)
	c.draft.pairs = append(c.draft.pairs, ledger.Pair{Task: pair.Task, Machine: pair.Machine, Until: pair.Until, Reason: pair.Reason})
	c.commitBy(now)
	if r == nil {
		return
	}
	if r.apart == nil {
		r.apart = apart{}
	}
	if r.apart[pair.Machine] == nil {
		r.apart[pair.Machine] = map[string]time.Time{}
	}
	r.apart[pair.Machine][pair.Task] = pair.Until
	c.sweepBy(pair.Until)
}

// commitBy sees to it that the draft is committed soon, also without grants.
func (c *cell) commitBy(now time.Time) {
	if c.holdsBy.IsZero() {
		c.holdsBy = now
	}
}

// keptFrom adds to the machines that a request avoids those that its tasks are kept from: of as many as it wants now, or of several. Which task a
// claim gets its schedd decides: one that may go there is not held up by one that may not.
func (r *request) keptFrom(now time.Time, avoid map[string]string) map[string]string {
	for machine, tasks := range r.apart {
		for task, until := range tasks {
			if !now.Before(until) {
				delete(tasks, task)
			}
		}
		if len(tasks) == 0 {
			delete(r.apart, machine)
		} else if len(tasks) >= min(r.wanted, someFail) {
			if avoid == nil {
				avoid = map[string]string{}
			}
			avoid[machine] = fmt.Sprintf(match.KeptApart+"%d of its tasks keep failing there", len(tasks))
		}
	}
	return avoid
}

// judge drains the machines that swallow tasks, and takes notice of what administrators have decided about them.
func (c *cell) judge(now time.Time) {
	if !c.synced {
		return
	}
	pool := suspect.Pool{Machines: len(c.machines), Drained: c.noteDrains(now), SubmitNodes: c.submitNodes()}
	drains, avoidances := c.suspects.Judge(now, pool)
	for _, a := range avoidances {
		c.log.Warn("the jobs of one submitter are kept from a node where they alone fail", "node", a.Machine, "owner", a.Owner, "submitted on", a.Node, "until", a.Until, "reason", a.Reason)
		c.changed = true
		c.sweepBy(a.Until)
	}
	for _, d := range drains {
		if slices.ContainsFunc(c.drains, func(other match.Drain) bool { return other.Node == d.Machine }) {
			continue // by an administrator, who may have seen it first
		}
		c.log.Warn("the node swallows tasks and is drained", "node", d.Machine, "until", d.Until, "reason", d.Reason)
		object, err := json.Marshal(ledger.Drain{Node: d.Machine, Reason: "drained by itself: " + d.Reason, Period: ledger.Period{Until: d.Until}})
		if err != nil {
			panic(err)
		}
		c.draft.commands = append(c.draft.commands, ledger.Command{Trusted: true, Verb: ledger.Set, Kind: ledger.KindDrain, Object: object, Fresh: true})
		c.own[d.Machine] = now
		c.commitBy(now)
	}
	c.tidy(now)
	if at := c.suspects.Due(); !at.IsZero() {
		c.sweepBy(at)
	}
}

// submitNodes is how many submit nodes are there.
func (c *cell) submitNodes() (n int) {
	for _, s := range c.schedds {
		if s.mail != nil {
			n++
		}
	}
	return n
}

// avoided is which machines the jobs of a submitter are to avoid, and why.
func (c *cell) avoided(now time.Time) map[suspect.Submitter]map[string]string {
	all := map[suspect.Submitter]map[string]string{}
	for _, a := range c.suspects.Avoided(now) {
		if all[a.Submitter] == nil {
			all[a.Submitter] = map[string]string{}
		}
		whose := "jobs of " + a.Owner
		if a.Owner == "" {
			whose = "jobs submitted on " + a.Node
		}
		all[a.Submitter][a.Machine] = match.KeptApart + whose + " keep failing there: " + a.Reason
	}
	return all
}

// avoids adds to the machines that a request avoids those that its submitter's jobs avoid.
func (r *request) avoids(all map[suspect.Submitter]map[string]string, avoid map[string]string) map[string]string {
	for _, who := range [...]suspect.Submitter{{Node: r.Key.Schedd}, {Node: r.Key.Schedd, Owner: r.Submitter.Owner}} {
		for machine, why := range all[who] {
			if avoid == nil {
				avoid = map[string]string{}
			}
			avoid[machine] = why
		}
	}
	return avoid
}

// tidy takes the drains out of the log that the cell has put there and that are over.
func (c *cell) tidy(now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(c.own)) {
		if !slices.ContainsFunc(c.suspects.Drained(now), func(d suspect.Drain) bool { return d.Machine == name }) {
			delete(c.own, name)
			c.draft.commands = append(c.draft.commands, ledger.Command{Trusted: true, Verb: ledger.Remove, Kind: ledger.KindDrain, Name: name})
			c.commitBy(now)
		}
	}
}

// noteDrains reads the drains in the log, and returns how many machines administrators have drained. A machine that was drained by itself and is not in the
// log any more an administrator trusts.
func (c *cell) noteDrains(now time.Time) (others int) {
	c.drains = c.drains[:0]
	c.record.look(func(l *ledger.Ledger) {
		for _, d := range l.Drains() {
			if c.machines[d.Node] != nil && (d.Until.IsZero() || now.Before(d.Until)) {
				c.drains = append(c.drains, match.Drain{Node: d.Node, Reason: d.Reason, From: d.From, Until: d.Until})
			}
		}
	})
	drained := func(name string) bool {
		return slices.ContainsFunc(c.drains, func(d match.Drain) bool { return d.Node == name })
	}
	for _, d := range c.suspects.Drained(now) {
		if at, mine := c.own[d.Machine]; mine && !drained(d.Machine) {
			if now.Sub(at) < settleDrain {
				c.drains = append(c.drains, match.Drain{Node: d.Machine, Reason: d.Reason, Until: d.Until})
				continue
			}
			c.log.Info("a node that was drained by itself is trusted again", "node", d.Machine)
			c.suspects.Trust(d.Machine)
			delete(c.own, d.Machine)
		}
	}
	for _, d := range c.drains {
		if _, mine := c.own[d.Node]; !mine {
			others++
		}
	}
	c.drains = append(c.drains, c.trials(now)...)
	slices.SortFunc(c.drains, func(a, b match.Drain) int { return cmp.Compare(a.Node, b.Node) })
	return others
}

// settleDrain is how long the entry that drains a machine may take.
const settleDrain = 10 * time.Second

// trials keeps machines on trial from getting more than a few tasks.
func (c *cell) trials(now time.Time) (full []match.Drain) {
	c.probing = map[string]int{}
	for _, name := range c.suspects.Trials(now) {
		m := c.machines[name]
		if m == nil {
			continue
		}
		c.probing[name] = suspect.TrialTasks - len(m.Claims) - len(c.promised[name])
		if c.probing[name] <= 0 {
			full = append(full, match.Drain{Node: name, Reason: fmt.Sprintf("on trial: it gets %d tasks at a time until some go well", suspect.TrialTasks)})
		}
	}
	return full
}

// probe is how many of some units a machine may be given: all, unless it is on trial.
func (c *cell) probe(name string, units int) int {
	room, probed := c.probing[name]
	if !probed || units <= room {
		return units
	}
	c.changed = true // the next plan puts the others elsewhere
	return max(room, 0)
}
