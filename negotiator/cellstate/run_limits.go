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

// Of a queue only so many jobs run at once, in all, of one user and of one group, and of
// all queues together, and so much of a resource is theirs (PBS: max_run, max_run_res).
// Each task is a job to them, as each subjob is in PBS; but a program that has several
// machines is one, however many tasks hold those. A task runs on a claim, and the schedds
// say how many claims each request holds; a grant counts from its making until the schedd
// has counted it.
//
// Naively that is all. But a schedd that is away says nothing while its tasks run on, and
// to a new leader none has said anything yet: other schedds would get the same again. So
// of a schedd that left what it said last counts until it has told all anew. Of one that
// this leader has never heard, machines' ads tell whose tasks run, and in which queue,
// though not for which Unix group: these count for all groups, as a limit may be held too
// tight for a moment, but not exceeded. Where a machine does not tell the queue they
// count for all queues.

// CountsRunning reports whether only so many tasks of a queue run at once.
func CountsRunning(q ledger.QueuePolicy) bool {
	return q.Running.Any() || q.RunningAmounts.Any() || q.RunningSoft.Any() || q.RunningSoftAmounts.Any()
}

// requestRunLimit is one limit that a request is held to.
type requestRunLimit struct {
	match.LimitRequest
	ledger.LimitBound
	queue  string // empty: of all
	amount string // the amount that is counted; empty: jobs
	max    int
	soft   bool
}

// queueScope is a queue, or with an empty name all of them, with what may run of it.
type queueScope struct {
	queue   string
	counts  ledger.CountLimits
	amounts ledger.AmountLimits
}

// runLimits are the limits on what runs of a request.
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

// limitKey names a limit in a plan. Names of licences have no slash.
func limitKey(queue, amount string, b ledger.LimitBound, soft bool) string {
	key := fmt.Sprintf("%s/%s/%d/%s", queue, amount, b.SubjectKind, b.Name)
	if soft {
		key += "/soft"
	}
	return key
}

// amountOf is how much of the limit something that runs takes.
func (l *requestRunLimit) amountOf(w RunningTasks) int {
	if l.queue != "" && w.Queue != l.queue || !l.LimitBound.Includes(w.Subject) {
		return 0
	}
	if l.amount == "" {
		return w.Jobs
	}
	return w.Units * int(ledger.CountedAmount(w.Each, l.amount))
}

// countRunning adds to limits how much of them runs, says of each ask which it is held
// to, and returns the soft ones that are gone beyond.
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
				continue // nobody has to make room for what may be counted wrongly
			}
			// nobody says which group they are, nor some machines which queue
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

// unheardTasks is what machines tell of tasks of schedds that the leader has not heard.
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

// reachedText says that the limit is reached as OpenPBS's scheduler does, without its
// full stop: what follows are the numbers.
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
