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

// A quota is checked only when a job is submitted (Borg §2.5), so setting one evicts
// nothing. Its effect is that new jobs are refused of those whose demand exceeds it.

// quotaUse is the demand of a submitter's tasks in one band.
type quotaUse struct {
	roost.Resources
	tasks int64
}

// dimension returns one dimension, as a number in its unit and as text.
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

// addTasks adds the demand of n tasks.
func (a quotaUse) addTasks(r roost.Resources, n int) quotaUse {
	many := roost.Bytes(n)
	r = roost.Resources{CPU: r.CPU * roost.MilliCPU(n), Memory: r.Memory * many, Disk: r.Disk * many, GPUs: r.GPUs * n}
	return quotaUse{a.Resources.Add(r), a.tasks + int64(n)}
}

// quotaKey is the submitter and band that a demand counts for.
type quotaKey struct {
	fairshare.Submitter
	roost.PriorityBand
}

// quotaDemands are the demands by submitter and band.
type quotaDemands map[quotaKey]quotaUse

// quotaDemand returns the demand of the jobs that are not over, as their schedds report
// it. Jobs held by their users count, those refused by quotas do not. For schedds without
// such reports it counts the waiting and running tasks.
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

// forQuota returns the demand that counts for a quota of a submitter.
func (d quotaDemands) forQuota(q ledger.BandQuota, who quotaKey) (sum quotaUse) {
	for p, a := range d { // a sum, so the order does not matter
		switch {
		case p.PriorityBand != who.PriorityBand:
		case q.Group == "" && p.Owner != who.Owner: // a quota of users counts each user separately
		case q.Group != "" && p.Group != q.Group && !strings.HasPrefix(p.Group, q.Group+"."):
		default:
			sum = quotaUse{sum.Add(a.Resources), sum.tasks + a.tasks}
		}
	}
	return sum
}

// quotaChecks checks the quotas that the change sets; l is the ledger with the change.
func (c *CellChange) quotaChecks(of *cellstate.CellCheckpoint, l *ledger.Ledger) (all []QuotaCheck) {
	sums := quotaDemand(of)
	for _, command := range c.AdminCommands {
		var like ledger.BandQuota
		if command.Kind != ledger.KindQuota || command.Verb != ledger.VerbSet ||
			json.Unmarshal(command.Object, &like) != nil {
			continue
		}
		for _, q := range l.Quotas() { // including dimensions that were set before
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

// checkQuota compares a quota with the demand of each subject that it binds.
func (d quotaDemands) checkQuota(q ledger.BandQuota, now time.Time, l *ledger.Ledger) (all []QuotaCheck) {
	whose := map[string]quotaUse{}
	if q.User != ledger.EachUser {
		whose[q.SubjectText()] = quotaUse{}
	}
	for who := range d { // each subject has one sum, so the order does not matter
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

// admittableJobs returns the jobs that quotas had refused and would admit now. The order
// is that of submission, and each admitted job counts for the next.
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

// isAllowed reports whether quotas admit more demand, as the leader decides it at
// submission.
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
