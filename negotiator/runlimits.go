package negotiator

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
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

// running is what ran of one request.
type running struct {
	queue string
	party ledger.Party
	units int
	jobs  int // as which limits count the units
	each  roost.Resources
}

func (r *request) party() ledger.Party {
	return ledger.Party{User: r.Submitter.Owner, Group: r.Submitter.Group, UnixGroup: r.group}
}

// runs is what counts as running of a request.
func (r *request) runs() running {
	w := running{queue: r.queue, party: r.party(), units: r.claims + len(r.unseen)}
	w.jobs = r.jobsIn(w.units)
	if r.Class != nil {
		w.each = r.Class.Resources
	}
	return w
}

// jobsIn is as how many jobs limits count so many claims of a request.
func (r *request) jobsIn(claims int) int {
	switch r.counting {
	case wire.RequestUpdate_TOGETHER:
		return min(claims, 1)
	case wire.RequestUpdate_ELSEWHERE:
		return 0
	}
	return claims
}

// remember notes what runs of a schedd whose conversation ends. One that never came to tell all has nothing but new grants to add to what is known of it.
func (s *schedd) remember() {
	if s.mail == nil || !s.told && s.ran == nil {
		return
	}
	if s.told {
		s.ran = []running{}
	}
	s.ran = merged(append(s.ran, s.runs()...))
}

// runs is what counts as running of a schedd's requests, beside what it ran before: as long as it has not told of all, only what it was granted since.
func (s *schedd) runs() (all []running) {
	for _, r := range s.requests {
		w := r.runs()
		if !s.told {
			w.units = len(r.unseen)
			w.jobs = r.jobsIn(w.units)
		}
		all = append(all, w)
	}
	return all
}

// known reports whether what runs of a schedd is known otherwise than from machines.
func (s *schedd) known() bool { return s != nil && (s.told || s.ran != nil) }

// counted reports whether only so many tasks of a queue run at once.
func counted(q ledger.Queue) bool {
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

// runLimits are the limits on what runs of a request.
func (c *cell) runLimits(r *request) (all []runLimit) {
	party, each := r.party(), roost.Resources{}
	if r.Class != nil {
		each = r.Class.Resources
	}
	add := func(s scope, soft bool) {
		for _, b := range s.counts.For(party) {
			if r.counting != wire.RequestUpdate_ELSEWHERE {
				once := r.counting == wire.RequestUpdate_TOGETHER
				all = append(all, runLimit{match.Take{Limit: limitKey(s.queue, "", b, soft), Count: 1, Once: once}, b, s.queue, "", int(b.Most), soft})
			}
		}
		for _, name := range ledger.AmountNames() {
			takes := amountIn(each, name)
			if takes == 0 {
				continue
			}
			for _, b := range s.amounts[name].For(party) {
				all = append(all, runLimit{match.Take{Limit: limitKey(s.queue, name, b, soft), Count: int(takes)}, b, s.queue, name, int(most(b, name)), soft})
			}
		}
	}
	if q, ok := c.policy.queues[r.queue]; ok {
		add(scope{q.Name, q.Running, q.RunningAmounts}, false)
		add(scope{q.Name, q.RunningSoft, q.RunningSoftAmounts}, true)
	}
	add(scope{"", c.policy.pool.Running, c.policy.pool.RunningAmounts}, false)
	add(scope{"", c.policy.pool.RunningSoft, c.policy.pool.RunningSoftAmounts}, true)
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
func (l *runLimit) counts(w running) int {
	if l.queue != "" && w.queue != l.queue || !l.Bound.Counts(w.party) {
		return 0
	}
	if l.of == "" {
		return w.jobs
	}
	return w.units * int(amountIn(w.each, l.of))
}

// countRunning adds to limits how much of them runs.
func (c *cell) countRunning(all map[string]match.Limit) {
	c.excesses = nil
	if !c.policy.counts {
		return
	}
	limits := map[string]*runLimit{}
	var runs []running
	for _, s := range c.schedds {
		for _, r := range s.requests {
			r.RunLimits, r.Soft = nil, nil
			for _, l := range c.runLimits(r) {
				if l.soft {
					r.Soft = append(r.Soft, l.Take)
				} else {
					r.RunLimits = append(r.RunLimits, l.Take)
				}
				limits[l.Limit] = &l
			}
		}
		runs = append(append(runs, s.ran...), s.runs()...)
	}
	runs = merged(runs)
	strange := c.unheard()
	for name, l := range limits {
		used := 0
		for _, w := range runs {
			used += l.counts(w)
		}
		for _, w := range strange {
			if l.soft && (l.Of == ledger.OfUnixGroup || w.queue == "" && l.queue != "") {
				continue // nobody has to make room for what may be counted wrongly
			}
			w.queue, w.party.UnixGroup = cmp.Or(w.queue, l.queue), l.Name // nobody says which group they are, nor some machines which queue
			if l.Of != ledger.OfUnixGroup {
				w.party.UnixGroup = ""
			}
			used += l.counts(w)
		}
		if l.soft && used > l.most {
			c.excesses = append(c.excesses, excess{l, used - l.most})
		}
		all[name] = match.Limit{Total: l.most, Used: used, Label: l.label(), Bytes: strings.HasSuffix(l.of, "_bytes")}
	}
}

// merged adds up what is alike, so that a limit does not look at each of thousands of requests.
func merged(runs []running) []running {
	index, all := map[running]int{}, []running{}
	for _, w := range runs {
		if w.units == 0 {
			continue
		}
		key := w
		key.units, key.jobs = 0, 0
		at, found := index[key]
		if !found {
			at = len(all)
			index[key], all = at, append(all, key)
		}
		all[at].units += w.units
		all[at].jobs += w.jobs
	}
	return all
}

// unheard is what machines tell of tasks of schedds that this leader has not heard.
func (c *cell) unheard() (all []running) {
	strangers := false
	for name := range c.claims {
		strangers = strangers || !c.schedds[name].known()
	}
	if !strangers {
		return nil
	}
	for _, m := range c.sorted {
		for i := range m.Claims {
			claim := &m.Claims[i]
			_, name, named := strings.Cut(claim.Job, ".")
			if named && !c.schedds[name].known() {
				all = append(all, running{queue: claim.Queue, party: ledger.Party{User: claim.Submitter.Owner, Group: claim.Submitter.Group}, units: 1, jobs: 1, each: claim.Resources})
			}
		}
	}
	return merged(all)
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
		return fmt.Sprintf("would exceed overall limit on resource %s in %s", resourceName(l.of), complexOr(l.queue))
	case l.of != "":
		return fmt.Sprintf("would exceed %s %s's limit on resource %s in %s", strings.ToLower(who), l.Name, resourceName(l.of), complexOr(l.queue))
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
