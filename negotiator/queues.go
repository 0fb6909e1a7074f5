package negotiator

import (
	"fmt"
	"maps"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/picture"
)

// stopped says that the queue of a request is not started, or starts nothing, if that is so.
func (c *cell) stopped(r *request) bool {
	why := c.policy.Stopped(r.Queue)
	if why != "" {
		c.send(r, &wire.Explanation{Summary: why})
	}
	return why != ""
}

// queueMessage is a queue as schedds are told of it.
func queueMessage(q ledger.Queue) *wire.JobQueue {
	m := &wire.JobQueue{
		Name: q.Name, Band: q.Band, Enabled: q.Enabled, Priority: q.Priority, Default: extentMessage(q.Default), Least: extentMessage(q.Least),
		Most: extentMessage(q.Most), Users: q.Users, Groups: q.Groups, Counted: picture.Counts(q), Stopped: !q.Started,
		Routing: q.Routing, Destinations: q.Destinations, FromRoute: q.FromRoute, RouteHeld: q.RouteHeld, RouteWaiting: q.RouteWaiting, MaxArray: q.MaxArray, NoticeS: q.KillDelay,
	}
	if q.Chunk.Any() {
		m.Chunk = extentMessage(q.Chunk)
	}
	if a := q.Access; a != nil {
		m.UserRoll, m.GroupRoll, m.HostRoll = rollMessage(a.Users), rollMessage(a.Groups), rollMessage(a.Hosts)
	}
	return m
}

// poolMessage is what holds for the jobs of all queues.
func poolMessage(p ledger.Pool) *wire.JobQueue {
	m := &wire.JobQueue{
		Default: extentMessage(p.Default), Least: extentMessage(p.Least), Most: extentMessage(p.Most), Chunk: extentMessage(p.Chunk), MaxArray: p.MaxArray,
		Counted: picture.CountsAll(p), Stopped: p.Stopped,
	}
	if a := p.Access; a != nil {
		m.UserRoll, m.GroupRoll, m.HostRoll = rollMessage(a.Users), rollMessage(a.Groups), rollMessage(a.Hosts)
	}
	return m
}

func rollMessage(r ledger.Roll) *wire.Roll {
	if !r.Enforced {
		return nil
	}
	return &wire.Roll{Entries: r.Entries}
}

func extentMessage(e ledger.Extent) *wire.Extent {
	m := &wire.Extent{Gpus: e.GPUs, WalltimeS: e.Walltime, Nodes: e.Nodes, Others: maps.Clone(e.Others), Words: maps.Clone(e.Words)}
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

// scope is a queue, or with an empty name all of them, with what may be in it.
type scope struct {
	queue   string
	counts  ledger.Counts
	amounts ledger.Amount
}

// where is the scope in messages, and what stands before them.
func (s scope) where() string {
	if s.queue == "" {
		return "pool"
	}
	return "queue " + s.queue
}

// tooFull refuses what would be too much in a queue; empty for all together.
type tooFull struct {
	queue string
	error
}

func (t tooFull) Unwrap() error { return t.error }

// full refuses what would make more tasks wait in a queue than may, or tasks that ask for more (PBS: max_queued, max_queued_res).
func (c *cell) full(s scope, who payer, more demand) error {
	has := func(b ledger.Bound) demand {
		return c.demandWhere(func(p payer) bool { return (s.queue == "" || p.queue == s.queue) && b.Counts(p.party()) })
	}
	of := func(b ledger.Bound) string {
		if b.Of == ledger.Everybody {
			return ""
		}
		return " of " + ledger.Bound{Of: b.Of, Name: b.Name, Named: true}.Whose()
	}
	for _, b := range s.counts.For(who.party()) {
		if n := has(b).open; n+more.open > b.Most {
			return tooFull{s.queue, fmt.Errorf("%w: %s: %d tasks%s are in it and not done, these would make %d, and %d is the most of %s",
				roost.Exhausted, s.where(), n, of(b), n+more.open, b.Most, b.Whose())}
		}
	}
	for _, name := range ledger.AmountNames() {
		asks := ledger.AmountIn(more.whole, name)
		if asks == 0 {
			continue
		}
		for _, b := range s.amounts[name].For(who.party()) {
			if n := ledger.AmountIn(has(b).whole, name); n+asks > b.MostOf(name) {
				return tooFull{s.queue, fmt.Errorf("%w: %s: tasks%s in it that are not done ask for %s of %s, these would make it %s, and %s is the most of %s",
					roost.Exhausted, s.where(), of(b), ledger.InUnit(n, name), ledger.ResourceName(name), ledger.InUnit(n+asks, name), ledger.InUnit(b.MostOf(name), name), b.Whose())}
			}
		}
	}
	return nil
}

func (p payer) party() ledger.Party {
	return ledger.Party{User: p.owner, Group: p.group, UnixGroup: p.unixGroup}
}
