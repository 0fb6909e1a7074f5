package negotiator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/blackhole"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// How the cell handles black holes, which package blackhole detects. It drains such a
// machine by an entry of the log, as an administrator would, and later gives it a few
// tasks on trial. Tasks and machines that keep failing together are separated, also by an
// entry.

// avoidPairs are the tasks of a request that are separated from machines. They outlive
// the request: while the only task of a service waits for its restart, nothing is wanted,
// and the schedd withdraws the request.
type avoidPairs map[string]map[string]time.Time // by machine, by task: until when

// minFailures is how many tasks of a request must fail on a machine before all of them
// avoid it.
const minFailures = 3

// recordAttemptEnd handles the report of an attempt's end.
func (c blackHoleDetector) recordAttemptEnd(now time.Time, s *scheddState, o *wire.Outcome) {
	if o.GetVerdict() == wire.Outcome_GONE {
		c.removeAvoidPairs(now, s, o.GetRequest(), o.GetTask())
		return
	}
	pair, found := c.blackHoles.AddOutcome(now, blackhole.AttemptOutcome{
		Machine: o.GetNode(), Task: o.GetTask(), Job: o.GetJob(), NodeSubmitter: blackhole.NodeSubmitter{Node: s.name,
			Owner: o.GetOwner()}, Verdict: blackhole.AttemptVerdict(o.GetVerdict()),
		RunTime: time.Duration(o.GetRan()), Reason: shortenText(o.GetReason()),
	})
	if found {
		c.addAvoidPair(now, s, o.GetRequest(), pair)
	}
	c.changed = c.changed || o.GetVerdict() != wire.Outcome_GOOD || c.blackHoles.HasPending()
}

// removeAvoidPairs removes the avoid pairs of a task that no longer runs. The request's
// other tasks may use the machines again.
func (c blackHoleDetector) removeAvoidPairs(now time.Time, s *scheddState, request uint64, task string) {
	pairs := s.avoidPairs[request]
	for _, machine := range slices.Sorted(maps.Keys(pairs)) {
		if _, stored := pairs[machine][task]; stored {
			if delete(pairs[machine], task); len(pairs[machine]) == 0 {
				delete(pairs, machine)
			}
			c.pendingEntry.avoidPairs = append(c.pendingEntry.avoidPairs,
				ledger.AvoidPair{Task: task, Machine: machine, Until: now})
			c.commitBy(now)
			c.changed = true
		}
	}
	if len(pairs) == 0 {
		delete(s.avoidPairs, request)
	}
}

// shortenText bounds the length of a schedd's text, for the log.
func shortenText(reason string) string {
	const most = 200
	if reason = strings.ToValidUTF8(reason, "?"); len(reason) > most {
		reason = strings.ToValidUTF8(reason[:most], "") + "…"
	}
	return reason
}

// addAvoidPair adds an avoid pair, here and to the pending entry.
func (c blackHoleDetector) addAvoidPair(now time.Time, s *scheddState, request uint64, pair blackhole.AvoidPair) {
	c.log.Info("a task and a node are kept apart", "task", pair.Task, "node", pair.Machine, "until", pair.Until,
		"reason", pair.Reason)
	c.pendingEntry.avoidPairs = append(c.pendingEntry.avoidPairs,
		ledger.AvoidPair{Task: pair.Task, Machine: pair.Machine, Until: pair.Until, Reason: pair.Reason})
	c.commitBy(now)
	if s.avoidPairs == nil {
		s.avoidPairs = map[uint64]avoidPairs{}
	}
	pairs := s.avoidPairs[request]
	if pairs == nil {
		if len(s.avoidPairs) >= maxRequests {
			s.dropUnusedPairs()
		}
		pairs = avoidPairs{}
		s.avoidPairs[request] = pairs
	}
	if pairs[pair.Machine] == nil {
		pairs[pair.Machine] = map[string]time.Time{}
	}
	pairs[pair.Machine][pair.Task] = pair.Until
	c.grants().setNextSweep(pair.Until)
}

// dropUnusedPairs drops the avoid pairs of requests that want nothing at present.
func (s *scheddState) dropUnusedPairs() {
	maps.DeleteFunc(s.avoidPairs, func(id uint64, _ avoidPairs) bool { return s.requests[id] == nil })
}

// commitBy ensures that the pending entry is committed soon, even without grants.
func (c blackHoleDetector) commitBy(now time.Time) {
	if c.usageCommitBy.IsZero() {
		c.usageCommitBy = now
	}
}

// addAvoided adds the machines of a request's avoid pairs to avoid. That needs as many
// separated tasks as the request wants now, or several. The schedd decides which task
// gets a claim, so a single separated task does not stop the others.
func (s *scheddState) addAvoided(now time.Time, r *scheddRequest, avoid map[string]string) map[string]string {
	pairs := s.avoidPairs[r.Key.ID]
	for machine, tasks := range pairs {
		for task, until := range tasks {
			if !now.Before(until) {
				delete(tasks, task)
			}
		}
		if len(tasks) == 0 {
			delete(pairs, machine)
		} else if len(tasks) >= min(r.wanted, minFailures) {
			if avoid == nil {
				avoid = map[string]string{}
			}
			avoid[machine] = fmt.Sprintf(match.AvoidPairPrefix+"%d of its tasks keep failing there", len(tasks))
		}
	}
	return avoid
}

// drainBlackHoles drains black holes, and follows administrators' decisions about them.
func (c blackHoleDetector) drainBlackHoles(now time.Time) {
	if !c.synced {
		return
	}
	pool := blackhole.PoolCounts{Machines: len(c.machines), Drained: c.readDrains(now),
		SubmitNodes: c.submitNodeCount(), IsPilotOf: c.isPilotOf}
	drains, avoidances := c.blackHoles.DetectBlackHoles(now, pool)
	for _, a := range avoidances {
		c.log.Warn("the jobs of one submitter are kept from a node where they alone fail", "node", a.Machine, "owner",
			a.Owner, "submitted on", a.Node, "until", a.Until, "reason", a.Reason)
		c.changed = true
		c.grants().setNextSweep(a.Until)
	}
	for _, d := range drains {
		if slices.ContainsFunc(c.drains, func(other match.MachineDrain) bool { return other.Node == d.Machine }) {
			continue // by an administrator, who may have seen it first
		}
		c.log.Warn("the node is a black hole and is drained", "node", d.Machine, "until", d.Until, "reason", d.Reason)
		object, err := json.Marshal(ledger.MachineDrain{Node: d.Machine, Reason: ledger.AutomaticDrainReason + d.Reason,
			Period: ledger.Period{Until: d.Until}})
		if err != nil {
			panic(err)
		}
		c.pendingEntry.ownCommands = append(c.pendingEntry.ownCommands, ledger.AdminCommand{Trusted: true,
			Verb: ledger.VerbSet, Kind: ledger.KindDrain, Object: object, Fresh: true})
		c.automaticDrains[d.Machine] = now
		c.commitBy(now)
	}
	c.removeEndedDrains(now)
	if at := c.blackHoles.NextDrainEnd(); !at.IsZero() {
		c.grants().setNextSweep(at)
	}
}

// isPilotOf reports whether a machine is a pilot of a submitter.
func (c blackHoleDetector) isPilotOf(machine string, who blackhole.NodeSubmitter) bool {
	m := c.machines[machine]
	if m == nil {
		return false
	}
	text, ok := m.Ad.Str(roost.AttrPilotOwner)
	if !ok {
		return false
	}
	owner, err := roost.ParsePilotOwner(text)
	return err == nil && owner.Admits(who.Owner, who.Node)
}

// submitNodeCount returns the number of connected submit nodes.
func (c blackHoleDetector) submitNodeCount() (n int) {
	for _, s := range c.schedds {
		if s.sendQueue != nil {
			n++
		}
	}
	return n
}

// avoidedMachines returns the machines that the jobs of each submitter avoid, with
// reasons.
func (c blackHoleDetector) avoidedMachines(now time.Time) map[blackhole.NodeSubmitter]map[string]string {
	all := map[blackhole.NodeSubmitter]map[string]string{}
	for _, a := range c.blackHoles.Avoidances(now) {
		if all[a.NodeSubmitter] == nil {
			all[a.NodeSubmitter] = map[string]string{}
		}
		whose := "jobs of " + a.Owner
		if a.Owner == "" {
			whose = "jobs submitted on " + a.Node
		}
		all[a.NodeSubmitter][a.Machine] = match.AvoidPairPrefix + whose + " keep failing there: " + a.Reason
	}
	return all
}

// addAvoidedMachines adds the machines that the submitter's jobs avoid to those that a
// request avoids.
func (r *scheddRequest) addAvoidedMachines(all map[blackhole.NodeSubmitter]map[string]string,
	avoid map[string]string) map[string]string {
	for _, who := range [...]blackhole.NodeSubmitter{{Node: r.Key.Schedd},
		{Node: r.Key.Schedd, Owner: r.Submitter.Owner}} {
		for machine, why := range all[who] {
			if avoid == nil {
				avoid = map[string]string{}
			}
			avoid[machine] = why
		}
	}
	return avoid
}

// removeEndedDrains removes expired automatic drains from the log.
func (c blackHoleDetector) removeEndedDrains(now time.Time) {
	for _, name := range slices.Sorted(maps.Keys(c.automaticDrains)) {
		if !slices.ContainsFunc(c.blackHoles.DrainedMachines(now), func(d blackhole.AutomaticDrain) bool {
			return d.Machine == name
		}) {
			delete(c.automaticDrains, name)
			c.pendingEntry.ownCommands = append(c.pendingEntry.ownCommands,
				ledger.AdminCommand{Trusted: true, Verb: ledger.VerbRemove, Kind: ledger.KindDrain, Name: name})
			c.commitBy(now)
		}
	}
}

// readDrains reads the drains in the log, and returns how many machines administrators
// have drained. If an automatic drain is no longer in the log, an administrator has
// removed it and trusts the machine.
func (c blackHoleDetector) readDrains(now time.Time) (others int) {
	c.drains = c.drains[:0]
	c.ledgerStore.view(func(l *ledger.Ledger) {
		for _, d := range l.Drains() {
			if c.machines[d.Node] != nil && (d.Until.IsZero() || now.Before(d.Until)) {
				c.drains = append(c.drains, match.MachineDrain{Node: d.Node, Reason: d.Reason, From: d.From,
					Until: d.Until})
			}
		}
	})
	drained := func(name string) bool {
		return slices.ContainsFunc(c.drains, func(d match.MachineDrain) bool { return d.Node == name })
	}
	for _, d := range c.blackHoles.DrainedMachines(now) {
		if at, mine := c.automaticDrains[d.Machine]; mine && !drained(d.Machine) {
			if now.Sub(at) < drainCommitDelay {
				c.drains = append(c.drains, match.MachineDrain{Node: d.Machine, Reason: d.Reason, Until: d.Until})
				continue
			}
			c.log.Info("a node that was drained by itself is trusted again", "node", d.Machine)
			c.blackHoles.ClearMachine(d.Machine)
			delete(c.automaticDrains, d.Machine)
		}
	}
	for _, d := range c.drains {
		if _, mine := c.automaticDrains[d.Node]; !mine {
			others++
		}
	}
	c.drains = append(c.drains, c.limitTrials(now)...)
	slices.SortFunc(c.drains, func(a, b match.MachineDrain) int { return cmp.Compare(a.Node, b.Node) })
	return others
}

// drainCommitDelay is how long the entry that drains a machine may take.
const drainCommitDelay = 10 * time.Second

// limitTrials limits the tasks of machines on trial. It returns those that may get no
// more.
func (c blackHoleDetector) limitTrials(now time.Time) (full []match.MachineDrain) {
	c.tasksOnTrial = map[string]int{}
	for _, name := range c.blackHoles.MachinesOnTrial(now) {
		m := c.machines[name]
		if m == nil {
			continue
		}
		c.tasksOnTrial[name] = blackhole.TrialTasks - len(m.Claims) - len(c.pendingByMachine[name])
		if c.tasksOnTrial[name] <= 0 {
			full = append(full, match.MachineDrain{Node: name,
				Reason: fmt.Sprintf("on trial: it gets %d tasks at a time until some succeed", blackhole.TrialTasks)})
		}
	}
	return full
}

// limitOnTrial returns how many of some tasks a machine may get: all, unless it is on
// trial.
func (c blackHoleDetector) limitOnTrial(name string, units int) int {
	room, probed := c.tasksOnTrial[name]
	if !probed || units <= room {
		return units
	}
	c.changed = true // the next plan places the others elsewhere
	return max(room, 0)
}
