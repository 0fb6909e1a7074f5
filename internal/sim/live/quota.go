package live

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/picture"
	"github.com/roost-batch/roost/negotiator/share"
)

// A quota is looked at when a job is submitted, and never afterwards (Borg §2.5): to set one evicts nobody. What it would do is that new jobs are refused of
// those who ask for more already.

// asked is what somebody's tasks ask for, in one band.
type asked struct {
	roost.Resources
	tasks int64
}

// of is one dimension, in its unit.
func (a asked) of(dimension string) (n int64, text string) {
	switch dimension {
	case "cpus":
		return int64(a.CPU), a.CPU.String()
	case "memory":
		return int64(a.Memory), a.Memory.String()
	case "disk":
		return int64(a.Disk), a.Disk.String()
	case "gpus":
		return int64(a.GPUs), fmt.Sprint(a.GPUs)
	}
	return a.tasks, fmt.Sprint(a.tasks)
}

// add adds what n tasks hold.
func (a asked) add(r roost.Resources, n int) asked {
	many := roost.Bytes(n)
	r = roost.Resources{CPU: r.CPU * roost.MilliCPU(n), Memory: r.Memory * many, Disk: r.Disk * many, GPUs: r.GPUs * n}
	return asked{a.Resources.Add(r), a.tasks + int64(n)}
}

// payer is whom quotas count something for, and at which band.
type payer struct {
	share.Submitter
	roost.Band
}

// demands are what payers ask for.
type demands map[payer]asked

// demand is what jobs that are not over ask for, as their schedds tell: what is held by its user counts, and what quotas refused does not. Of a schedd that has
// not told it is what waits and runs.
func demand(c *picture.Checkpoint) demands {
	all := demands{}
	add := func(who share.Submitter, band roost.Band, r roost.Resources, n int) {
		p := payer{who, band}
		all[p] = all[p].add(r, n)
	}
	some := false
	for i := range c.Jobs {
		if j := &c.Jobs[i]; j.Open > 0 {
			some = true
			if who, ok := payerOf(j); ok && !j.Refused {
				sum, tasks := j.Holds()
				all[who] = asked{all[who].Add(sum), all[who].tasks + int64(tasks)}
			}
		}
	}
	told := func(schedd string) bool { return some && !slices.Contains(c.Silent, schedd) }
	for _, a := range c.Asks {
		if !told(a.Key.Schedd) {
			add(a.Submitter, a.Band, a.Class.Resources, a.Own)
		}
	}
	for _, m := range c.Machines {
		for i := range m.Claims {
			one := &m.Claims[i]
			if _, schedd, _ := strings.Cut(one.JobName(), "."); !told(schedd) {
				add(one.Submitter, one.Band, one.Resources, 1)
			}
		}
	}
	return all
}

func payerOf(j *picture.Job) (payer, bool) {
	band, err := roost.ParseBand(j.Band)
	return payer{share.Submitter{Group: j.Group, Owner: j.Owner}, band}, err == nil
}

// on is what counts for a quota that binds somebody.
func (d demands) on(q ledger.Quota, who payer) (sum asked) {
	for p, a := range d { // a sum: the order does not matter
		switch {
		case p.Band != who.Band:
		case q.Group == "" && p.Owner != who.Owner: // of each user it is everybody's own
		case q.Group != "" && p.Group != q.Group && !strings.HasPrefix(p.Group, q.Group+"."):
		default:
			sum = asked{sum.Add(a.Resources), sum.tasks + a.tasks}
		}
	}
	return sum
}

// quotas says how the quotas that the change sets stand to what is asked for; l is with the change.
func (c *Change) quotas(of *picture.Checkpoint, l *ledger.Ledger) (all []Quota) {
	sums := demand(of)
	for _, command := range c.Commands {
		var like ledger.Quota
		if command.Kind != ledger.KindQuota || command.Verb != ledger.Set || json.Unmarshal(command.Object, &like) != nil {
			continue
		}
		for _, q := range l.Quotas() { // with what it says already of other dimensions
			if sameQuota(q, like) {
				all = append(all, sums.held(q, of.Now, l)...)
			}
		}
	}
	return all
}

func sameQuota(a, b ledger.Quota) bool {
	return a.User == b.User && a.Group == b.Group && a.Band == b.Band && a.From.Equal(b.From) && a.Until.Equal(b.Until)
}

// held is how a quota stands to what those ask for whom it binds.
func (d demands) held(q ledger.Quota, now time.Time, l *ledger.Ledger) (all []Quota) {
	whose := map[string]asked{}
	if q.User != ledger.EachUser {
		whose[q.Of()] = asked{}
	}
	for who := range d { // each name has one sum
		if who.Band.String() != q.Band || !slices.ContainsFunc(l.QuotasFor(now, who.Owner, who.Group, who.Band), func(o ledger.Quota) bool { return sameQuota(o, q) }) {
			continue
		}
		name := "user " + who.Owner
		if q.Group != "" {
			name = q.Of()
		}
		whose[name] = d.on(q, who)
	}
	if len(whose) == 0 {
		whose[q.Of()] = asked{}
	}
	for _, name := range slices.Sorted(maps.Keys(whose)) {
		one := Quota{Whose: name, Band: q.Band}
		var asks, most []string
		for _, d := range q.Most.Bounds() {
			n, text := whose[name].of(d.Name)
			asks, most = append(asks, d.Name+" "+text), append(most, d.Name+" "+d.Text)
			one.Over = one.Over || n > d.Value
		}
		one.Asks, one.Most = strings.Join(asks, ", "), strings.Join(most, ", ")
		all = append(all, one)
	}
	return all
}

// allowed are the jobs that are held because they were refused and that quotas would allow now, in the order in which they came, if each is released.
func allowed(of *picture.Checkpoint, l *ledger.Ledger) (ids []string) {
	sums := demand(of)
	for _, j := range slices.SortedStableFunc(slices.Values(of.Jobs), func(a, b picture.Job) int { return cmp.Compare(a.Submitted, b.Submitted) }) {
		who, ok := payerOf(&j)
		if !j.Refused || !ok {
			continue
		}
		r, tasks := j.Holds()
		if more := (asked{r, int64(tasks)}); sums.within(l, of.Now, who, more) {
			sums[who] = asked{sums[who].Add(r), sums[who].tasks + more.tasks}
			ids = append(ids, j.ID)
		}
	}
	return ids
}

// within reports whether quotas allow somebody more, as the leader decides it when a job is submitted.
func (d demands) within(l *ledger.Ledger, now time.Time, who payer, more asked) bool {
	if who.Band == roost.Free {
		return true
	}
	quotas := l.QuotasFor(now, who.Owner, who.Group, who.Band)
	if len(quotas) == 0 && l.Text(ledger.DefaultQuota) == "none" {
		return false
	}
	for _, q := range quotas {
		has := d.on(q, who)
		for _, bound := range q.Most.Bounds() {
			h, _ := has.of(bound.Name)
			if m, _ := more.of(bound.Name); m > 0 && h+m > bound.Value {
				return false
			}
		}
	}
	return true
}
