package negotiator

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/picture"
)

// announce reads the policy if that has changed, and tells the schedds that are here what they have to know of it.
func (c *cell) announce() {
	c.record.look(func(l *ledger.Ledger) {
		if c.policy.Version != l.Policy()+1 {
			c.policy = picture.NewPolicy(l)
		}
		if c.announced.version != l.Policy()+1 {
			m := &wire.Policy{Admission: len(l.Quotas()) > 0 || l.Text(ledger.DefaultQuota) == "none", DefaultQueue: l.Text(ledger.DefaultQueue), Distributed: l.On(ledger.Distributed)}
			for _, q := range l.Queues() {
				m.Queues = append(m.Queues, queueMessage(q))
				m.Admission = m.Admission || q.Queued.Any() || q.QueuedAmounts.Any()
			}
			if pool := l.Pool(); len(l.Objects(ledger.KindPool)) > 0 {
				m.All = poolMessage(pool)
				m.Admission = m.Admission || pool.Queued.Any() || pool.QueuedAmounts.Any()
			}
			m.Groups = namesOf(l.Groups(), func(g ledger.Group) string { return g.Name })
			m.Reservations = namesOf(slices.DeleteFunc(l.Reservations(), isDeleting), func(r ledger.Reservation) string { return r.Name })
			for _, r := range slices.DeleteFunc(l.Reservations(), func(r ledger.Reservation) bool { return !isDeleting(r) }) {
				m.Deleting = append(m.Deleting, r.Name)
			}
			m.Limits = namesOf(l.Limits(), func(m ledger.Limit) string { return m.Name })
			m.JobAdmins = l.JobAdmins()
			c.announced = announcement{l.Policy() + 1, m}
		}
	})
	var here []*schedd
	for _, name := range slices.Sorted(maps.Keys(c.schedds)) {
		if s := c.schedds[name]; s.mail != nil {
			here = append(here, s)
		}
	}
	for i, s := range here {
		m := c.announced.message
		now := notice{version: c.announced.version}
		if m.GetDistributed() {
			now.part, now.parts = i, len(here)
		}
		if s.notice == now {
			continue
		}
		if s.notice = now; m.GetDistributed() {
			m = proto.CloneOf(m)
			m.Part, m.Parts = uint32(now.part), uint32(now.parts)
		}
		if !proto.Equal(s.announced, m) {
			s.announced = m
			s.mail.put(&wire.ToSchedd{Of: &wire.ToSchedd_Policy{Policy: m}})
		}
	}
}

func isDeleting(r ledger.Reservation) bool { return r.Deleting }

// notice is what a schedd was told last: of which version of the policy, and which part of the machines it prefers.
type notice struct {
	version     uint64
	part, parts int
}

// announcement is what schedds are told of the policy, and of which version of the ledger's objects it is, and one.
type announcement struct {
	version uint64
	message *wire.Policy
}

// mostNames is how many of a kind schedds are told the names of: with more they take jobs that name what is not there.
const mostNames = 10_000

func namesOf[T any](all []T, name func(T) string) *wire.Names {
	if len(all) > mostNames {
		return nil
	}
	names := &wire.Names{}
	for _, one := range all {
		names.Name = append(names.Name, name(one))
	}
	return names
}
