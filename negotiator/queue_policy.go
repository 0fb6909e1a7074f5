package negotiator

import (
	"fmt"
	"maps"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// queueStopped explains to the schedd that the queue of a request is stopped, if that is
// so. It reports whether it is.
func (c admissionChecker) queueStopped(r *scheddRequest) bool {
	why := c.policy.StopReason(r.Queue)
	if why != "" {
		c.sendTo(r, &wire.Explanation{Summary: why})
	}
	return why != ""
}

// queueMessage returns a queue in the form that schedds get.
func queueMessage(q ledger.QueuePolicy) *wire.JobQueue {
	m := &wire.JobQueue{
		Name: q.Name, Band: q.Band, Enabled: q.Enabled, Priority: q.Priority, Default: rangeMessage(q.Defaults),
		Least: rangeMessage(q.MinResources),
		Most:  rangeMessage(q.MaxResources), Users: q.Users, Groups: q.Groups, Counted: cellstate.CountsRunning(q),
		Stopped: !q.Started,
		Routing: q.Routing, Destinations: q.Destinations, FromRoute: q.FromRouteOnly, RouteHeld: q.RouteHeld,
		RouteWaiting: q.RouteWaiting, MaxArray: q.MaxArray, NoticeS: q.KillDelay,
	}
	if q.DefaultChunk.Any() {
		m.Chunk = rangeMessage(q.DefaultChunk)
	}
	if a := q.Access; a != nil {
		m.UserRoll, m.GroupRoll, m.HostRoll = aclMessage(a.Users), aclMessage(a.Groups), aclMessage(a.Hosts)
	}
	return m
}

// poolMessage returns the limits and defaults for the jobs of all queues.
func poolMessage(p ledger.PoolLimits) *wire.JobQueue {
	m := &wire.JobQueue{
		Default: rangeMessage(p.Defaults), Least: rangeMessage(p.MinResources), Most: rangeMessage(p.MaxResources),
		Chunk: rangeMessage(p.DefaultChunk), MaxArray: p.MaxArray,
		Counted: cellstate.CountsEverything(p), Stopped: p.Stopped,
	}
	if a := p.Access; a != nil {
		m.UserRoll, m.GroupRoll, m.HostRoll = aclMessage(a.Users), aclMessage(a.Groups), aclMessage(a.Hosts)
	}
	return m
}

func aclMessage(r ledger.ACL) *wire.Roll {
	if !r.Enforced {
		return nil
	}
	return &wire.Roll{Entries: r.Entries}
}

func rangeMessage(e ledger.ResourceRange) *wire.Extent {
	m := &wire.Extent{Gpus: e.GPUs, WalltimeS: e.Walltime, Nodes: e.Nodes, Others: maps.Clone(e.OtherBounds),
		Words: maps.Clone(e.MachineAttrs)}
	if e.CPUs != nil {
		n := int64(*e.CPUs)
		m.MilliCpus = &n
	}
	if e.Memory != nil {
		n := int64(*e.Memory)
		m.Memory = &n
	}
	if e.Disk != nil {
		n := int64(*e.Disk)
		m.Disk = &n
	}
	return m
}

// queueScope is a queue with its limits, or with an empty name all queues together.
type queueScope struct {
	queue   string
	counts  ledger.CountLimits
	amounts ledger.AmountLimits
}

// messagePrefix returns the name of the scope for messages.
func (s queueScope) messagePrefix() string {
	if s.queue == "" {
		return "pool"
	}
	return "queue " + s.queue
}

// queueFullError refuses what would exceed a queue limit; an empty queue means all queues
// together.
type queueFullError struct {
	queue string
	error
}

func (t queueFullError) Unwrap() error { return t.error }

// checkQueueFull refuses tasks beyond the number that may be in a queue, or beyond their
// resources (PBS: max_queued, max_queued_res).
func (c admissionChecker) checkQueueFull(s queueScope, who quotaAccount, more resourceDemand) error {
	has := func(b ledger.LimitBound) resourceDemand {
		return c.sumDemand(func(p quotaAccount) bool {
			return (s.queue == "" || p.queue == s.queue) && b.Includes(p.limitSubject())
		})
	}
	of := func(b ledger.LimitBound) string {
		if b.SubjectKind == ledger.AllSubjects {
			return ""
		}
		return " of " + ledger.LimitBound{SubjectKind: b.SubjectKind, Name: b.Name, NamesSubject: true}.SubjectText()
	}
	for _, b := range s.counts.BoundsFor(who.limitSubject()) {
		if n := has(b).openTasks; n+more.openTasks > b.Max {
			return queueFullError{s.queue,
				fmt.Errorf("%w: %s: %d tasks%s are in it and not done, these would make %d, and %d is the most of %s",
					roost.Exhausted, s.messagePrefix(), n, of(b), n+more.openTasks, b.Max, b.SubjectText())}
		}
	}
	for _, name := range ledger.AmountNames() {
		demanded := ledger.CountedAmount(more.openResources, name)
		if demanded == 0 {
			continue
		}
		for _, b := range s.amounts[name].BoundsFor(who.limitSubject()) {
			if n := ledger.CountedAmount(has(b).openResources, name); n+demanded > b.MaxInUnit(name) {
				return queueFullError{s.queue,
					fmt.Errorf("%w: %s: tasks%s in it that are not done ask for %s of %s, these would make it "+
						"%s, and %s is the most of %s",
						roost.Exhausted, s.messagePrefix(), of(b), ledger.AmountText(n, name),
						ledger.ResourceName(name),
						ledger.AmountText(n+demanded, name), ledger.AmountText(b.MaxInUnit(name), name),
						b.SubjectText())}
			}
		}
	}
	return nil
}

func (p quotaAccount) limitSubject() ledger.LimitSubject {
	return ledger.LimitSubject{User: p.owner, Group: p.group, UnixGroup: p.unixGroup}
}
