package picture

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

// Of a queue only so many jobs run at once, in all, of one user and of one group, and of all queues together, and so much of a resource is theirs (PBS:
// max_run, max_run_res). Each task is a job to them, as each subjob is in PBS; but a program that has several machines is one, however many tasks hold those.
// A task runs on a claim, and the schedds say how many claims each request holds; a grant counts from its making until the schedd
// has counted it.
//
// Naively that is all. But a schedd that is away says nothing while its tasks run on, and to a new leader none has said anything yet: other schedds would get
// the same again. So of a schedd that left what it said last counts until it has told all anew. Of one that this leader has never heard, machines' ads tell
// whose tasks run, and in which queue, though not for which Unix group: these count for all groups, as a limit may be held too tight for a moment, but not
// exceeded. Where a machine does not tell the queue they count for all queues.

// Counts reports whether only so many tasks of a queue run at once.
func Counts(q ledger.Queue) bool {
	return q.Running.Any() || q.RunningAmounts.Any() || q.RunningSoft.Any() || q.RunningSoftAmounts.Any()
}

// runLimit is one limit that a request is held to.
type runLimit struct {
	match.Take
	ledger.Bound
	queue string // empty: of all
	of    string // the amount that is counted; empty: jobs
	most  int
	soft  bool
}

// scope is a queue, or with an empty name all of them, with what may run of it.
type scope struct {
	queue   string
	counts  ledger.Counts
	amounts ledger.Amount
}

// runLimits are the limits on what runs of a request.
func (p *Policy) runLimits(a *Ask) (all []runLimit) {
	party, each := a.Party(), roost.Resources{}
	if a.Class != nil {
		each = a.Class.Resources
	}
	add := func(s scope, soft bool) {
		for _, b := range s.counts.For(party) {
			if a.Counting != Elsewhere {
				once := a.Counting == Together
				all = append(all, runLimit{match.Take{Limit: limitKey(s.queue, "", b, soft), Count: 1, Once: once}, b, s.queue, "", int(b.Most), soft})
			}
		}
		for _, name := range ledger.AmountNames() {
			takes := ledger.AmountIn(each, name)
			if takes == 0 {
				continue
			}
			for _, b := range s.amounts[name].For(party) {
				all = append(all, runLimit{match.Take{Limit: limitKey(s.queue, name, b, soft), Count: int(takes)}, b, s.queue, name, int(b.MostOf(name)), soft})
			}
		}
	}
	if q, ok := p.Queues[a.Queue]; ok {
		add(scope{q.Name, q.Running, q.RunningAmounts}, false)
		add(scope{q.Name, q.RunningSoft, q.RunningSoftAmounts}, true)
	}
	add(scope{"", p.Pool.Running, p.Pool.RunningAmounts}, false)
	add(scope{"", p.Pool.RunningSoft, p.Pool.RunningSoftAmounts}, true)
	return all
}

// limitKey names a limit in a plan. Names of licences have no slash.
func limitKey(queue, amount string, b ledger.Bound, soft bool) string {
	key := fmt.Sprintf("%s/%s/%d/%s", queue, amount, b.Of, b.Name)
	if soft {
		key += "/soft"
	}
	return key
}

// counts is how much of the limit something that runs takes.
func (l *runLimit) counts(w Running) int {
	if l.queue != "" && w.Queue != l.queue || !l.Bound.Counts(w.Party) {
		return 0
	}
	if l.of == "" {
		return w.Jobs
	}
	return w.Units * int(ledger.AmountIn(w.Each, l.of))
}

// countRunning adds to limits how much of them runs, says of each ask which it is held to, and returns the soft ones that are gone beyond.
func (p *Picture) countRunning(all map[string]match.Limit) (excesses []excess) {
	if !p.Policy.Counts {
		return nil
	}
	limits := map[string]*runLimit{}
	runs := slices.Clone(p.Ran)
	for _, a := range p.Asks {
		a.RunLimits, a.Soft = nil, nil
		for _, l := range p.Policy.runLimits(a) {
			if l.soft {
				a.Soft = append(a.Soft, l.Take)
			} else {
				a.RunLimits = append(a.RunLimits, l.Take)
			}
			limits[l.Limit] = &l
		}
		runs = append(runs, a.Running(a.Counts))
	}
	runs = Merge(runs)
	strange := p.unheard()
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		l, used := limits[name], 0
		for _, w := range runs {
			used += l.counts(w)
		}
		for _, w := range strange {
			if l.soft && (l.Of == ledger.OfUnixGroup || w.Queue == "" && l.queue != "") {
				continue // nobody has to make room for what may be counted wrongly
			}
			w.Queue, w.Party.UnixGroup = cmp.Or(w.Queue, l.queue), l.Name // nobody says which group they are, nor some machines which queue
			if l.Of != ledger.OfUnixGroup {
				w.Party.UnixGroup = ""
			}
			used += l.counts(w)
		}
		if l.soft && used > l.most {
			excesses = append(excesses, excess{l, used - l.most})
		}
		all[name] = match.Limit{Total: l.most, Used: used, Label: l.label(), Bytes: strings.HasSuffix(l.of, "_bytes")}
	}
	return excesses
}

// unheard is what machines tell of tasks of schedds that the leader has not heard.
func (p *Picture) unheard() (all []Running) {
	if !p.Strangers {
		return nil
	}
	for _, m := range p.Machines {
		for i := range m.Claims {
			claim := &m.Claims[i]
			_, name, named := strings.Cut(claim.Job, ".")
			if named && !p.Known(name) {
				party := ledger.Party{User: claim.Submitter.Owner, Group: claim.Submitter.Group}
				all = append(all, Running{Queue: claim.Queue, Party: party, Units: 1, Jobs: 1, Each: claim.Resources})
			}
		}
	}
	return Merge(all)
}

// label says that the limit is reached as OpenPBS's scheduler does, without its full stop: what follows are the numbers.
func (l *runLimit) label() string {
	at := "server"
	if l.queue != "" {
		at = "queue " + l.queue
	}
	who := [...]string{"", "User", "Project", "Group"}[l.Of]
	switch {
	case l.of != "" && l.Of == ledger.Everybody:
		return fmt.Sprintf("would exceed overall limit on resource %s in %s", ledger.ResourceName(l.of), complexOr(l.queue))
	case l.of != "":
		return fmt.Sprintf("would exceed %s %s's limit on resource %s in %s", strings.ToLower(who), l.Name, ledger.ResourceName(l.of), complexOr(l.queue))
	case l.Of == ledger.Everybody && l.queue == "":
		return "Server job limit has been reached"
	case l.Of == ledger.Everybody:
		return fmt.Sprintf("Queue %s job limit has been reached", l.queue)
	case l.Of == ledger.OfUser:
		return fmt.Sprintf("User has reached %s running job limit", at)
	}
	return fmt.Sprintf("%s has reached %s running limit", who, at)
}

func complexOr(queue string) string {
	if queue == "" {
		return "complex"
	}
	return "queue " + queue
}
