package negotiator

import (
	"fmt"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// Of a queue only so many tasks run at once, in all, of one user and of one group (PBS: max_run). A task runs on a claim, and the schedds say how many
// claims each request holds; a grant counts from its making until the schedd has counted it.

// counted reports whether only so many tasks of a queue run at once.
func counted(q ledger.Queue) bool {
	return q.Running.Total != nil || q.Running.PerUser != nil || q.Running.PerGroup != nil
}

// runLimits are the limits on how many of a request's tasks run at once, by the names that they have in a plan, and how many may.
func (c *cell) runLimits(r *request) (names []string, most []int64) {
	q, ok := c.policy.queues[r.queue]
	if !ok {
		return nil, nil
	}
	add := func(n *int64, format string, args ...any) {
		if n != nil {
			names, most = append(names, fmt.Sprintf(format, args...)), append(most, *n)
		}
	}
	add(q.Running.Total, "running tasks of queue %s", q.Name)
	add(q.Running.PerUser, "running tasks of %s in queue %s", r.Submitter.Owner, q.Name)
	if r.Submitter.Group != "" {
		add(q.Running.PerGroup, "running tasks of group %s in queue %s", r.Submitter.Group, q.Name)
	}
	return names, most
}

// countQueues adds to limits how many tasks of queues run.
func (c *cell) countQueues(all map[string]match.Limit) {
	for _, s := range c.schedds {
		for _, r := range s.requests {
			names, most := c.runLimits(r)
			r.RunLimits = names
			for i, name := range names {
				l := all[name]
				l.Total, l.Label = int(most[i]), name
				l.Used += r.claims + len(r.unseen)
				all[name] = l
			}
		}
	}
}

// stopped says that the queue of a request is not started, if that is so.
func (c *cell) stopped(r *request) bool {
	q, ok := c.policy.queues[r.queue]
	if !ok || q.Started {
		return false
	}
	c.send(r, &wire.Explanation{Summary: fmt.Sprintf("queue %s is stopped: its jobs start when an administrator starts it", q.Name)})
	return true
}

// queueMessage is a queue as schedds are told of it.
func queueMessage(q ledger.Queue) *wire.JobQueue {
	return &wire.JobQueue{
		Name: q.Name, Band: q.Band, Enabled: q.Enabled, Priority: q.Priority, Default: extentMessage(q.Default), Least: extentMessage(q.Least),
		Most: extentMessage(q.Most), Users: q.Users, Groups: q.Groups, Counted: counted(q), Stopped: !q.Started,
	}
}

func extentMessage(e ledger.Extent) *wire.Extent {
	m := &wire.Extent{Gpus: e.GPUs, WalltimeS: e.Walltime}
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

// full refuses what would make more tasks wait in a queue than may (PBS: max_queued).
func (c *cell) full(q ledger.Queue, who payer, more demand) error {
	for _, b := range [...]struct {
		most  *int64
		of    string
		match func(payer) bool
	}{
		{q.Queued.Total, "", func(payer) bool { return true }},
		{q.Queued.PerUser, " of " + who.owner, func(p payer) bool { return p.owner == who.owner }},
		{q.Queued.PerGroup, " of group " + who.group, func(p payer) bool { return who.group != "" && p.group == who.group }},
	} {
		if b.most == nil {
			continue
		}
		has := c.demandWhere(func(p payer) bool { return p.queue == q.Name && b.match(p) }).open
		if has+more.open > *b.most && b.match(who) {
			return fmt.Errorf("%w: queue %s: %d tasks%s are in it and not done, these would make %d, and %d is the most",
				roost.Exhausted, q.Name, has, b.of, has+more.open, *b.most)
		}
	}
	return nil
}
