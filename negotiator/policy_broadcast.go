package negotiator

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// broadcastPolicy reads the policy if it has changed, and sends the schedds their part of
// it.
func (c *leaderState) broadcastPolicy() {
	c.ledgerStore.view(func(l *ledger.Ledger) {
		if c.policy.Version != l.PolicyVersion()+1 {
			c.policy = cellstate.NewPolicy(l)
		}
		if c.policyMessages.version != l.PolicyVersion()+1 {
			m := &wire.Policy{Admission: len(l.Quotas()) > 0 || l.SettingText(ledger.SettingDefaultQuota) == "none",
				DefaultQueue: l.SettingText(ledger.SettingDefaultQueue), Secrets: ledger.SecretsDigest(l),
				Distributed: l.SettingOn(ledger.SettingDistributed),
				MpiNetwork:  l.SettingText(ledger.SettingMPINetwork)}
			for _, q := range l.Queues() {
				m.Queues = append(m.Queues, queueMessage(q))
				m.Admission = m.Admission || q.Queued.Any() || q.QueuedAmounts.Any()
			}
			if pool := l.Pool(); len(l.Objects(ledger.KindPool)) > 0 {
				m.All = poolMessage(pool)
				m.Admission = m.Admission || pool.Queued.Any() || pool.QueuedAmounts.Any()
			}
			m.Groups = namesOf(l.Groups(), func(g ledger.AccountingGroup) string { return g.Name })
			m.Reservations = namesOf(slices.DeleteFunc(l.Reservations(), isDeleting),
				func(r ledger.AdvanceReservation) string {
					return r.Name
				})
			for _, r := range slices.DeleteFunc(l.Reservations(), func(r ledger.AdvanceReservation) bool {
				return !isDeleting(r)
			}) {
				m.Deleting = append(m.Deleting, r.Name)
			}
			m.Limits = namesOf(l.Limits(), func(m ledger.ConcurrencyLimit) string { return m.Name })
			m.JobAdmins = l.JobAdmins()
			m.StaticPortUsers = l.Holders(roost.CapabilityStaticPorts)
			m.PrivilegedPortUsers = l.Holders(roost.CapabilityPrivilegedPorts)
			m.Restricted = restrictedCapabilities(l)
			for _, d := range l.Drains() {
				if d.Evict {
					m.Drains = append(m.Drains, &wire.DrainedNode{Node: d.Node, Reason: d.Reason,
						From: unixSeconds(d.From), Until: unixSeconds(d.Until), Deadline: unixSeconds(d.Deadline)})
				}
			}
			c.policyMessages = policyMessage{l.PolicyVersion() + 1, m}
		}
	})
	var here []*scheddState
	for _, name := range slices.Sorted(maps.Keys(c.schedds)) {
		if s := c.schedds[name]; s.sendQueue != nil {
			here = append(here, s)
		}
	}
	for i, s := range here {
		m := s.policyFor(c.policyMessages.message)
		now := policyVersion{version: c.policyMessages.version}
		if m.GetDistributed() {
			now.part, now.parts = i, len(here)
		}
		if s.sentPolicyVersion == now {
			continue
		}
		if s.sentPolicyVersion = now; m.GetDistributed() {
			m = proto.CloneOf(m)
			m.Part, m.Parts = uint32(now.part), uint32(now.parts)
		}
		if !proto.Equal(s.sentPolicy, m) {
			s.sentPolicy = m
			m = proto.CloneOf(m)
			m.Version = now.version
			s.awaitedPolicy = now.version
			s.sendQueue.putMessage(&wire.ToSchedd{Of: &wire.ToSchedd_Policy{Policy: m}})
		}
	}
}

// policyFor returns what a schedd is sent of the policy. Who may do what here is none of
// a guest's business.
func (s *scheddState) policyFor(m *wire.Policy) *wire.Policy {
	if s.sendQueue.guestOf != "" {
		return &wire.Policy{}
	}
	return m
}

// restrictedCapabilities lists who may have jobs that the cell restricts.
func restrictedCapabilities(l *ledger.Ledger) (list []*wire.CapabilityHolders) {
	for _, capability := range l.Restricted() {
		list = append(list, &wire.CapabilityHolders{Capability: capability, Users: l.Holders(capability)})
	}
	return list
}

// unixSeconds is 0 for no time.
func unixSeconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func isDeleting(r ledger.AdvanceReservation) bool { return r.Deleting }

// policyVersion identifies what a schedd was last sent: the version of the policy, and
// its preferred part of the machines.
type policyVersion struct {
	version     uint64
	part, parts int
}

// policyMessage is a policy message to schedds, with one more than the ledger's policy
// version.
type policyMessage struct {
	version uint64
	message *wire.Policy
}

// maxNamesPerMessage is how many names of a kind schedds are sent. With more they accept
// jobs with unknown names.
const maxNamesPerMessage = 10_000

func namesOf[T any](all []T, name func(T) string) *wire.Names {
	if len(all) > maxNamesPerMessage {
		return nil
	}
	names := &wire.Names{}
	for _, one := range all {
		names.Name = append(names.Name, name(one))
	}
	return names
}
