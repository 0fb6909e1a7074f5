package negotiator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// Quotas are checked at submission (Borg §2.5); see cellstate/quotas.go for when tasks
// start. The jobs are at the schedds. So each schedd reports the demand of its jobs by
// account, and asks before increasing it: only the leader can add it up. Admitted demand
// counts until the schedd's own report includes it, so two schedds that ask at the same
// moment cannot both get the last of a quota.
//
// A new leader knows a schedd's jobs when the schedd has connected and reported them, and
// those of a schedd that is away from its last report. While no leader can be asked, jobs
// are accepted: too many are better than none. Their schedd asks about them later, does
// not count them before, and holds those that are refused.

// quotaAccount identifies what jobs count against: a quota by user, group and band, and
// the limits of a queue.
type quotaAccount struct {
	owner, group string
	band         roost.PriorityBand
	queue        string
	unixGroup    string
}

// resourceDemand is what jobs may use at once.
type resourceDemand struct {
	roost.Resources
	tasks, openTasks int64
	openResources    roost.Resources // sum over all unfinished tasks
}

func (d resourceDemand) add(e resourceDemand) resourceDemand {
	return resourceDemand{d.Resources.Add(e.Resources), d.tasks + e.tasks, d.openTasks + e.openTasks,
		d.openResources.Add(e.openResources)}
}

// amountOf returns a dimension of a quota, in its unit.
func (d resourceDemand) amountOf(dimension string) int64 {
	switch dimension {
	case "cpus":
		return int64(d.CPU)
	case "memory":
		return int64(d.Memory)
	case "disk":
		return int64(d.Disk)
	case "gpus":
		return int64(d.GPUs)
	}
	return d.tasks
}

// admittedDemand is demand that a schedd was admitted and has not reported yet.
type admittedDemand struct {
	id uint64
	quotaAccount
	resourceDemand
}

// maxPayers bounds the accounts of one schedd.
const maxPayers = 100_000

func readDemand(m *wire.Demand) (who quotaAccount, d resourceDemand, err error) {
	band, err := roost.ParsePriorityBand(m.GetBand())
	if err != nil {
		return quotaAccount{}, resourceDemand{}, err
	}
	d = resourceDemand{m.GetHeld().Vector(), int64(m.GetTasks()), int64(m.GetOpen()), m.GetOpenHeld().Vector()}
	if d.IsNegative() || d.openResources.IsNegative() {
		return quotaAccount{}, resourceDemand{},
			fmt.Errorf("demand of %s: %w: %v", m.GetOwner(), roost.Invalid, d.Resources)
	}
	return quotaAccount{m.GetOwner(), m.GetGroup(), band, m.GetQueue(), m.GetUnixGroup()}, d, nil
}

// updateDemand handles a report of the demand of an account at one schedd. less is true
// if the demand has fallen.
func (s *scheddState) updateDemand(m *wire.Demand) (less bool, err error) {
	who, d, err := readDemand(m)
	if err != nil {
		return false, err
	}
	if len(s.demand) >= maxPayers {
		return false, fmt.Errorf("schedd %s: %w: demands of %d payers", s.name, roost.Exhausted, maxPayers)
	}
	was := s.demand[who]
	rest := s.admitted[:0]
	for _, a := range s.admitted {
		if a.quotaAccount != who || a.id > m.GetSeen() {
			rest = append(rest, a)
		} else {
			was = was.add(a.resourceDemand)
		}
	}
	freed := was.openResources.Sub(d.openResources)
	less = was.openTasks > d.openTasks || freed.CPU > 0 || freed.Memory > 0 || freed.Disk > 0 || freed.GPUs > 0
	if s.admitted = rest; d == (resourceDemand{}) {
		delete(s.demand, who)
	} else {
		s.demand[who] = d
	}
	return less, nil
}

// notifyQueueRoom tells the schedds that a full queue refused that it has room.
func (c admissionChecker) notifyQueueRoom(queue string) {
	for _, name := range slices.Sorted(maps.Keys(c.schedds)) {
		if s := c.schedds[name]; s.fullQueues[queue] && s.sendQueue != nil {
			delete(s.fullQueues, queue)
			s.sendQueue.putMessage(&wire.ToSchedd{Of: &wire.ToSchedd_Room{Room: &wire.Room{Queue: queue}}})
		}
	}
}

// answerAdmission answers whether jobs may be submitted.
func (c admissionChecker) answerAdmission(now time.Time, s *scheddState, m *wire.Admit) {
	before := len(s.admitted)
	err := c.checkQuotas(now, s, m)
	answer := &wire.Admitted{Id: m.GetId()}
	if err != nil {
		s.admitted, answer.Error = s.admitted[:before], err.Error()
		var full queueFullError
		if errors.As(err, &full) && full.queue != "" {
			answer.Queue = full.queue
			if s.fullQueues == nil {
				s.fullQueues = map[string]bool{}
			}
			s.fullQueues[full.queue] = true
		}
	}
	s.sendQueue.putMessage(&wire.ToSchedd{Of: &wire.ToSchedd_Admitted{Admitted: answer}})
}

// checkQuotas checks demands one after the other. Those that fit are recorded as
// admitted.
func (c admissionChecker) checkQuotas(now time.Time, s *scheddState, m *wire.Admit) (err error) {
	if len(m.GetAsks())+len(s.admitted) > maxPayers {
		return fmt.Errorf("%w: too many submissions at once", roost.Exhausted)
	}
	c.ledgerStore.view(func(l *ledger.Ledger) {
		for _, admission := range m.GetAsks() {
			who, d, rerr := readDemand(admission)
			if err = rerr; err == nil {
				err = c.checkQuotaAndQueue(now, l, who, d, m.GetMoved())
			}
			if err != nil {
				return
			}
			s.admitted = append(s.admitted, admittedDemand{m.GetId(), who, d})
		}
	})
	return err
}

// checkQuotaAndQueue refuses demand that would exceed a quota or a queue limit. Jobs that
// only move from another queue are not checked against quotas.
func (c admissionChecker) checkQuotaAndQueue(now time.Time, l *ledger.Ledger, who quotaAccount, more resourceDemand,
	moved bool) error {
	if q, ok := l.Queue(who.queue); ok {
		if err := c.checkQueueFull(queueScope{q.Name, q.Queued, q.QueuedAmounts}, who, more); err != nil {
			return err
		}
	}
	if moved {
		return nil
	}
	pool := l.Pool()
	if err := c.checkQueueFull(queueScope{"", pool.Queued, pool.QueuedAmounts}, who, more); err != nil {
		return err
	}
	if who.band == roost.FreeBand {
		return nil
	}
	quotas := l.QuotasFor(now, who.owner, who.group, who.band)
	if len(quotas) == 0 && l.SettingText(ledger.SettingDefaultQuota) == "none" {
		return fmt.Errorf("%w: %s has no quota of %v; ask an administrator for one (roost quota set), or submit "+
			"with band free",
			roost.Exhausted, who.owner, who.band)
	}
	if who.band == roost.BatchBand && l.SettingText(ledger.SettingOverQuota) == ledger.OverQuotaLowers {
		return nil // its priority is lower instead: see quotaExcess
	}
	for _, q := range quotas {
		if err := overQuotaText(q, who, c.quotaDemand(q, who), more); err != nil {
			return err
		}
	}
	return nil
}

// maxQuotaExcess bounds by how much a priority is lowered. A quota of nothing would lower
// it without a bound.
const maxQuotaExcess = 1000

// quotaExcess returns by how much a submitter's demand in batch exceeds its quotas. It is
// at least 1 and at most maxQuotaExcess.
func (c admissionChecker) quotaExcess(now time.Time, l *ledger.Ledger, who fairshare.Submitter) float64 {
	excess := 1.0
	account := quotaAccount{owner: who.Owner, group: who.Group, band: roost.BatchBand}
	for _, q := range l.QuotasFor(now, who.Owner, who.Group, roost.BatchBand) {
		has := c.quotaDemand(q, account)
		for _, bound := range q.Max.Bounds() {
			if n := has.amountOf(bound.Name); n > bound.Value {
				excess = max(excess, float64(n)/float64(max(bound.Value, 1)))
			}
		}
	}
	return min(excess, maxQuotaExcess)
}

// quotaDemand returns the demand that counts for a quota now, over all schedds.
func (c admissionChecker) quotaDemand(q ledger.BandQuota, who quotaAccount) resourceDemand {
	counts := func(p quotaAccount) bool {
		switch {
		case p.band != who.band:
			return false
		case q.Group != "":
			return p.group == q.Group || strings.HasPrefix(p.group, q.Group+".")
		}
		return p.owner == who.owner // a quota of users counts each user separately
	}
	return c.sumDemand(counts)
}

// sumDemand adds up the demand of the accounts that counts selects, over all schedds.
func (c admissionChecker) sumDemand(counts func(quotaAccount) bool) (sum resourceDemand) {
	for _, s := range c.schedds {
		for p, d := range s.demand {
			if counts(p) {
				sum = sum.add(d)
			}
		}
		for _, a := range s.admitted {
			if counts(a.quotaAccount) {
				sum = sum.add(a.resourceDemand)
			}
		}
	}
	return sum
}

// overQuotaText returns an error with the numbers, if a quota would be exceeded.
func overQuotaText(q ledger.BandQuota, who quotaAccount, has, more resourceDemand) error {
	for _, bound := range q.Max.Bounds() {
		h, m := has.amountOf(bound.Name), more.amountOf(bound.Name)
		if m == 0 || h+m <= bound.Value {
			continue
		}
		left := max(bound.Value-h, 0)
		return fmt.Errorf("%w: quota of %s in band %v: this asks for %s at once, and %s of %s are left, as jobs that "+
			"are not done ask for %s; "+
			"wait for some of them, let fewer tasks run at once (max_running), or submit with band free",
			roost.Exhausted, q.SubjectText(), who.band, withDimensionName(bound.Name, amountText(bound.Name, m)),
			amountText(bound.Name, left), bound.Text, amountText(bound.Name, h))
	}
	return nil
}

// amountText formats an amount of a dimension for people.
func amountText(dimension string, n int64) string {
	switch dimension {
	case "cpus":
		return roost.MilliCPU(n).String()
	case "memory", "disk":
		return roost.Bytes(n).String()
	}
	return fmt.Sprint(n)
}

// withDimensionName appends the name of a dimension to an amount.
func withDimensionName(dimension, amount string) string {
	if amount == "1" {
		dimension = strings.TrimSuffix(dimension, "s")
	}
	return amount + " " + dimension
}
