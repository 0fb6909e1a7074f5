package ledger

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// Borg sells quota of production only as far as the cell has resources, and oversells
// below (§2.5). With oversell_production off, a quota of production or monitoring is
// refused with which those of all users and of the topmost groups would add up to more
// than the pool has. It bounds what is promised, and evicts nothing when machines leave.

// CheckOversell refuses a command that would promise production more than total, the
// resources of the pool.
func CheckOversell(l *Ledger, c *AdminCommand, total roost.Resources) error {
	if c.Kind != KindQuota || l.SettingOn(SettingOversellProduction) {
		return nil
	}
	_, o, err := l.commands().resolveCommand(c)
	if err != nil || o == nil {
		return err
	}
	q, ok := o.value.(BandQuota)
	if !ok || !sellsProduction(q) {
		return nil
	}
	at := l.clockTime()
	if q.From.After(at) {
		at = q.From
	}
	sales := quotaSales{l}
	if sales.isCovered(q, BandQuota{}, at) {
		return nil
	}
	for _, bound := range q.Max.Bounds() {
		has, sold := totalOf(total, bound.Name), bound.Value+sales.soldBeside(q, at, bound.Name)
		if bound.Name == "tasks" || sold <= has {
			continue
		}
		return refusalError(roost.Exhausted, "quota of "+q.SubjectText()+" in band "+q.Band, fmt.Errorf("with it the "+
			"quotas of production and monitoring would add up to %s, and the pool has %s: set less, lower another "+
			"(roost quota), or allow it for the whole pool (roost cell set %s on)", amountOf(bound.Name, sold),
			amountOf(bound.Name, has), SettingOversellProduction))
	}
	return nil
}

// sellsProduction reports whether a quota counts as sold. It is of one user or group, in
// a band that others cannot displace.
func sellsProduction(q BandQuota) bool {
	band, err := roost.ParsePriorityBand(q.Band)
	return err == nil && band.IsProd() && q.User != EachUser
}

// quotaSales is a ledger as far as quotas of production are added up.
type quotaSales struct{ *Ledger }

// soldBeside adds up a dimension of the other quotas that are in force at a time.
func (l quotaSales) soldBeside(q BandQuota, at time.Time, dimension string) (sum int64) {
	for other := range objectValues[BandQuota](l.Ledger, KindQuota) {
		same := other.User == q.User && other.Group == q.Group && other.Band == q.Band
		if same || !sellsProduction(other) || !other.Contains(at) || l.isCovered(other, q, at) {
			continue
		}
		if now, ok := l.quotaInForce(at, other); !ok || now.name() != other.name() {
			continue
		}
		for _, bound := range other.Max.Bounds() {
			if bound.Name == dimension {
				sum += bound.Value
			}
		}
	}
	return sum
}

// isCovered reports whether a group with a quota lies in another with one of the same
// band. Then the other bounds it. The new quota q counts.
func (l quotaSales) isCovered(other, q BandQuota, at time.Time) bool {
	if groupLiesIn(other.Group, q.Group) && other.Band == q.Band {
		return true
	}
	for group := (AccountingGroup{Name: other.Group}).Parent(); group != ""; group = (AccountingGroup{
		Name: group}).Parent() {
		if _, ok := l.quotaInForce(at, BandQuota{Group: group, Band: other.Band}); ok {
			return true
		}
	}
	return false
}

// totalOf returns a dimension of the pool, in the unit of a quota.
func totalOf(r roost.Resources, dimension string) int64 {
	switch dimension {
	case "cpus":
		return int64(r.CPU)
	case "memory":
		return int64(r.Memory)
	case "disk":
		return int64(r.Disk)
	case "gpus":
		return int64(r.GPUs)
	}
	return 0
}

// amountOf formats an amount of a dimension for people.
func amountOf(dimension string, n int64) string {
	switch dimension {
	case "cpus":
		return roost.MilliCPU(n).String() + " cpus"
	case "gpus":
		return fmt.Sprint(n, " gpus")
	}
	return roost.Bytes(n).String() + " of " + dimension
}
