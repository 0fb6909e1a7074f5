package whatif

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// A quota is looked at when a job is submitted, and never afterwards (Borg §2.5): to set
// one evicts nobody. What it would do is that new jobs are refused of those who ask for
// more already.

// quotaUse is what somebody's tasks ask for, in one band.
type quotaUse struct {
	roost.Resources
	tasks int64
}

// dimension is one dimension, in its unit.
func (a quotaUse) dimension(dimension string) (n int64, text string) {
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

// addTasks adds what n tasks hold.
func (a quotaUse) addTasks(r roost.Resources, n int) quotaUse {
	many := roost.Bytes(n)
	r = roost.Resources{CPU: r.CPU * roost.MilliCPU(n), Memory: r.Memory * many, Disk: r.Disk * many, GPUs: r.GPUs * n}
	return quotaUse{a.Resources.Add(r), a.tasks + int64(n)}
}

// quotaKey is whom quotas count something for, and at which band.
type quotaKey struct {
	fairshare.Submitter
	roost.PriorityBand
}

// quotaDemands are what payers ask for.
type quotaDemands map[quotaKey]quotaUse

// quotaDemand is what jobs that are not over ask for, as their schedds tell: what is held
// by its user counts, and what quotas refused does not. Of a schedd that has not told it
// is what waits and runs.
func quotaDemand(c *cellstate.CellCheckpoint) quotaDemands {
	all := quotaDemands{}
	add := func(who fairshare.Submitter, band roost.PriorityBand, r roost.Resources, n int) {
		p := quotaKey{who, band}
		all[p] = all[p].addTasks(r, n)
	}
	some := false
	for i := range c.Jobs {
		if j := &c.Jobs[i]; j.OpenTasks > 0 {
			some = true
			if who, ok := payerOf(j); ok && !j.Refused {
				sum, tasks := j.MaxResources()
				all[who] = quotaUse{all[who].Add(sum), all[who].tasks + int64(tasks)}
			}
		}
	}
	hasReported := func(schedd string) bool { return some && !slices.Contains(c.SilentSchedds, schedd) }
	for _, a := range c.Requests {
		if !hasReported(a.Key.Schedd) {
			add(a.Submitter, a.Band, a.Class.Resources, a.OwnWanted)
		}
	}
	for _, m := range c.Machines {
		for i := range m.Claims {
			one := &m.Claims[i]
			if _, schedd, _ := strings.Cut(one.JobName(), "."); !hasReported(schedd) {
				add(one.Submitter, one.Band, one.Resources, 1)
			}
		}
	}
	return all
}

func payerOf(j *cellstate.JobRow) (quotaKey, bool) {
	band, err := roost.ParsePriorityBand(j.Band)
	return quotaKey{fairshare.Submitter{Group: j.Group, Owner: j.Owner}, band}, err == nil
}

// forQuota is what counts for a quota that binds somebody.
func (d quotaDemands) forQuota(q ledger.BandQuota, who quotaKey) (sum quotaUse) {
	for p, a := range d { // a sum: the order does not matter
		switch {
		case p.PriorityBand != who.PriorityBand:
		case q.Group == "" && p.Owner != who.Owner: // of each user it is everybody's own
		case q.Group != "" && p.Group != q.Group && !strings.HasPrefix(p.Group, q.Group+"."):
		default:
			sum = quotaUse{sum.Add(a.Resources), sum.tasks + a.tasks}
		}
	}
	return sum
}

// quotaChecks says how the quotas that the change sets stand to what is asked for; l is
// with the change.
func (c *CellChange) quotaChecks(of *cellstate.CellCheckpoint, l *ledger.Ledger) (all []QuotaCheck) {
	sums := quotaDemand(of)
	for _, command := range c.AdminCommands {
		var like ledger.BandQuota
		if command.Kind != ledger.KindQuota || command.Verb != ledger.VerbSet ||
			json.Unmarshal(command.Object, &like) != nil {
			continue
		}
		for _, q := range l.Quotas() { // with what it says already of other dimensions
			if sameQuota(q, like) {
				all = append(all, sums.checkQuota(q, of.Now, l)...)
			}
		}
	}
	return all
}

func sameQuota(a, b ledger.BandQuota) bool {
	return a.User == b.User && a.Group == b.Group && a.Band == b.Band && a.From.Equal(b.From) && a.Until.Equal(b.Until)
}

// checkQuota is how a quota stands to what those ask for whom it binds.
func (d quotaDemands) checkQuota(q ledger.BandQuota, now time.Time, l *ledger.Ledger) (all []QuotaCheck) {
	whose := map[string]quotaUse{}
	if q.User != ledger.EachUser {
		whose[q.SubjectText()] = quotaUse{}
	}
	for who := range d { // each name has one sum
		if who.PriorityBand.String() != q.Band || !slices.ContainsFunc(l.QuotasFor(now, who.Owner, who.Group,
			who.PriorityBand), func(o ledger.BandQuota) bool {
			return sameQuota(o, q)
		}) {
			continue
		}
		name := "user " + who.Owner
		if q.Group != "" {
			name = q.SubjectText()
		}
		whose[name] = d.forQuota(q, who)
	}
	if len(whose) == 0 {
		whose[q.SubjectText()] = quotaUse{}
	}
	for _, name := range slices.Sorted(maps.Keys(whose)) {
		one := QuotaCheck{Subject: name, Band: q.Band}
		var asks, most []string
		for _, d := range q.Max.Bounds() {
			n, text := whose[name].dimension(d.Name)
			asks, most = append(asks, d.Name+" "+text), append(most, d.Name+" "+d.Text)
			one.Exceeded = one.Exceeded || n > d.Value
		}
		one.Demand, one.Limit = strings.Join(asks, ", "), strings.Join(most, ", ")
		all = append(all, one)
	}
	return all
}

// admittableJobs are the jobs that are held because they were refused and that quotas
// would allow now, in the order in which they came, if each is released.
func admittableJobs(of *cellstate.CellCheckpoint, l *ledger.Ledger) (ids []string) {
	sums := quotaDemand(of)
	for _, j := range slices.SortedStableFunc(slices.Values(of.Jobs), func(a, b cellstate.JobRow) int {
		return cmp.Compare(a.Submitted, b.Submitted)
	}) {
		who, ok := payerOf(&j)
		if !j.Refused || !ok {
			continue
		}
		r, tasks := j.MaxResources()
		if more := (quotaUse{r, int64(tasks)}); sums.isAllowed(l, of.Now, who, more) {
			sums[who] = quotaUse{sums[who].Add(r), sums[who].tasks + more.tasks}
			ids = append(ids, j.ID)
		}
	}
	return ids
}

// isAllowed reports whether quotas allow somebody more, as the leader decides it when a
// job is submitted.
func (d quotaDemands) isAllowed(l *ledger.Ledger, now time.Time, who quotaKey, more quotaUse) bool {
	if who.PriorityBand == roost.FreeBand {
		return true
	}
	quotas := l.QuotasFor(now, who.Owner, who.Group, who.PriorityBand)
	if len(quotas) == 0 && l.SettingText(ledger.SettingDefaultQuota) == "none" {
		return false
	}
	for _, q := range quotas {
		has := d.forQuota(q, who)
		for _, bound := range q.Max.Bounds() {
			h, _ := has.dimension(bound.Name)
			if m, _ := more.dimension(bound.Name); m > 0 && h+m > bound.Value {
				return false
			}
		}
	}
	return true
}
