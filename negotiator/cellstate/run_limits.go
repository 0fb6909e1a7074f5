package cellstate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// A queue can limit how many jobs run at once, in total, for each user and for each
// group, and how much of a resource they use; so can all queues together (PBS: max_run,
// max_run_res). Each task counts as a job, as each subjob does in PBS; but an MPI gang is
// one job, however many tasks it has. A task runs on a claim, and the schedds report how
// many claims each request has. A grant counts until the schedd has counted it.
//
// Naively that is all. But a schedd that is away reports nothing while its tasks run on,
// and none has reported to a new leader yet: other schedds would get the same limit
// again. So the last report of a schedd that left counts until it has reported everything
// again. For a schedd that has never reported to this leader, machine ads show whose
// tasks run, and in which queue, but not for which Unix group. These tasks count for all
// groups, because a limit may be too tight for a moment, but not exceeded. If a machine
// ad does not show the queue, they count for all queues.

// CountsRunning reports whether a queue limits its running tasks.
func CountsRunning(q ledger.QueuePolicy) bool {
	return q.Running.Any() || q.RunningAmounts.Any() || q.RunningSoft.Any() || q.RunningSoftAmounts.Any()
}

// requestRunLimit is one run limit that applies to a request.
type requestRunLimit struct {
	match.LimitRequest
	ledger.LimitBound
	queue  string // empty: all queues together
	amount string // the amount that is counted; empty: jobs
	max    int
	soft   bool
}

// queueScope is a queue with its run limits, or with an empty name all queues together.
type queueScope struct {
	queue   string
	counts  ledger.CountLimits
	amounts ledger.AmountLimits
}

// runLimits returns the run limits that apply to a request.
func (p *CellPolicy) runLimits(a *PendingRequest) (all []requestRunLimit) {
	party, each := a.LimitSubject(), roost.Resources{}
	if a.Class != nil {
		each = a.Class.Resources
	}
	add := func(s queueScope, soft bool) {
		for _, b := range s.counts.BoundsFor(party) {
			if a.Counting != CountedElsewhere {
				once := a.Counting == AllAsOneJob
				all = append(all, requestRunLimit{match.LimitRequest{Limit: limitKey(s.queue, "", b, soft), Count: 1,
					PerGang: once}, b, s.queue, "", int(b.Max), soft})
			}
		}
		for _, name := range ledger.AmountNames() {
			takes := ledger.CountedAmount(each, name)
			if takes == 0 {
				continue
			}
			for _, b := range s.amounts[name].BoundsFor(party) {
				all = append(all, requestRunLimit{match.LimitRequest{Limit: limitKey(s.queue, name, b, soft),
					Count: int(takes)}, b, s.queue, name, int(b.MaxInUnit(name)), soft})
			}
		}
	}
	if q, ok := p.Queues[a.Queue]; ok {
		add(queueScope{q.Name, q.Running, q.RunningAmounts}, false)
		add(queueScope{q.Name, q.RunningSoft, q.RunningSoftAmounts}, true)
	}
	add(queueScope{"", p.Pool.Running, p.Pool.RunningAmounts}, false)
	add(queueScope{"", p.Pool.RunningSoft, p.Pool.RunningSoftAmounts}, true)
	return all
}

// limitKey names a limit in a plan. Names of concurrency limits have no slash.
func limitKey(queue, amount string, b ledger.LimitBound, soft bool) string {
	key := fmt.Sprintf("%s/%s/%d/%s", queue, amount, b.SubjectKind, b.Name)
	if soft {
		key += "/soft"
	}
	return key
}

// amountOf returns how much of the limit running tasks take.
func (l *requestRunLimit) amountOf(w RunningTasks) int {
	if l.queue != "" && w.Queue != l.queue || !l.LimitBound.Includes(w.Subject) {
		return 0
	}
	if l.amount == "" {
		return w.Jobs
	}
	return w.Units * int(ledger.CountedAmount(w.Each, l.amount))
}

// countRunning adds the running tasks to limits, and sets which limits apply to each
// request. It returns the soft limits that are exceeded.
func (p *CellState) countRunning(all map[string]match.ConcurrencyLimit) (excesses []softExcess) {
	if !p.Policy.HasRunLimits {
		return nil
	}
	limits := map[string]*requestRunLimit{}
	runs := slices.Clone(p.LastRunning)
	for _, a := range p.Requests {
		a.RunLimits, a.SoftLimits = nil, nil
		for _, l := range p.Policy.runLimits(a) {
			if l.soft {
				a.SoftLimits = append(a.SoftLimits, l.LimitRequest)
			} else {
				a.RunLimits = append(a.RunLimits, l.LimitRequest)
			}
			limits[l.Limit] = &l
		}
		runs = append(runs, a.RunningTasks(a.RunningCount))
	}
	runs = MergeRunning(runs)
	strange := p.unheardTasks()
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		l, used := limits[name], 0
		for _, w := range runs {
			used += l.amountOf(w)
		}
		for _, w := range strange {
			if l.soft && (l.SubjectKind == ledger.OfUnixGroup || w.Queue == "" && l.queue != "") {
				continue // what may be counted wrongly must not cause evictions
			}
			// their Unix group is unknown, and on some machines also their queue
			w.Queue, w.Subject.UnixGroup = cmp.Or(w.Queue, l.queue), l.Name
			if l.SubjectKind != ledger.OfUnixGroup {
				w.Subject.UnixGroup = ""
			}
			used += l.amountOf(w)
		}
		if l.soft && used > l.max {
			excesses = append(excesses, softExcess{l, used - l.max})
		}
		all[name] = match.ConcurrencyLimit{Total: l.max, Used: used, Label: l.reachedText(),
			Bytes: strings.HasSuffix(l.amount, "_bytes")}
	}
	return excesses
}

// unheardTasks returns what machines report of tasks of schedds that have not reported to
// the leader.
func (p *CellState) unheardTasks() (all []RunningTasks) {
	if !p.UnknownClaims {
		return nil
	}
	for _, m := range p.Machines {
		for i := range m.Claims {
			claim := &m.Claims[i]
			_, name, named := strings.Cut(claim.Job, ".")
			if named && !p.KnownSchedds(name) {
				party := ledger.LimitSubject{User: claim.Submitter.Owner, Group: claim.Submitter.Group}
				all = append(all, RunningTasks{Queue: claim.Queue, Subject: party, Units: 1, Jobs: 1,
					Each: claim.Resources})
			}
		}
	}
	return MergeRunning(all)
}

// reachedText returns the text of OpenPBS's scheduler for a reached limit, without its
// full stop: the numbers follow.
func (l *requestRunLimit) reachedText() string {
	at := "server"
	if l.queue != "" {
		at = "queue " + l.queue
	}
	who := [...]string{"", "User", "Project", "Group"}[l.SubjectKind]
	switch {
	case l.amount != "" && l.SubjectKind == ledger.AllSubjects:
		return fmt.Sprintf("would exceed overall limit on resource %s in %s", ledger.ResourceName(l.amount),
			queueOrComplex(l.queue))
	case l.amount != "":
		return fmt.Sprintf("would exceed %s %s's limit on resource %s in %s", strings.ToLower(who), l.Name,
			ledger.ResourceName(l.amount), queueOrComplex(l.queue))
	case l.SubjectKind == ledger.AllSubjects && l.queue == "":
		return "Server job limit has been reached"
	case l.SubjectKind == ledger.AllSubjects:
		return fmt.Sprintf("Queue %s job limit has been reached", l.queue)
	case l.SubjectKind == ledger.OfUser:
		return fmt.Sprintf("User has reached %s running job limit", at)
	}
	return fmt.Sprintf("%s has reached %s running limit", who, at)
}

func queueOrComplex(queue string) string {
	if queue == "" {
		return "complex"
	}
	return "queue " + queue
}
