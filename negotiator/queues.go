package negotiator

import (
	"fmt"
	"maps"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// stopped says that the queue of a request is not started, or starts nothing, if that is so.
func (c *cell) stopped(r *request) bool {
	switch q, ok := c.policy.queues[r.queue]; {
	case c.policy.pool.Stopped:
		c.send(r, &wire.Explanation{Summary: "scheduling is False: nothing starts in the pool until an administrator has set it True (qmgr)"})
	case ok && q.Routing:
		c.send(r, &wire.Explanation{Summary: fmt.Sprintf("it waits in routing queue %s until one of its destinations takes it", q.Name)})
	case ok && !q.Started:
		c.send(r, &wire.Explanation{Summary: fmt.Sprintf("queue %s is stopped: its jobs start when an administrator starts it", q.Name)})
	default:
		return false
	}
	return true
}

// queueMessage is a queue as schedds are told of it.
func queueMessage(q ledger.Queue) *wire.JobQueue {
	m := &wire.JobQueue{
		Name: q.Name, Band: q.Band, Enabled: q.Enabled, Priority: q.Priority, Default: extentMessage(q.Default), Least: extentMessage(q.Least),
		Most: extentMessage(q.Most), Users: q.Users, Groups: q.Groups, Counted: counted(q), Stopped: !q.Started,
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
		Counted: countedPool(p), Stopped: p.Stopped,
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
		asks := amountIn(more.whole, name)
		if asks == 0 {
			continue
		}
		for _, b := range s.amounts[name].For(who.party()) {
			if n := amountIn(has(b).whole, name); n+asks > most(b, name) {
				return tooFull{s.queue, fmt.Errorf("%w: %s: tasks%s in it that are not done ask for %s of %s, these would make it %s, and %s is the most of %s",
					roost.Exhausted, s.where(), of(b), inUnit(n, name), resourceName(name), inUnit(n+asks, name), inUnit(most(b, name), name), b.Whose())}
			}
		}
	}
	return nil
}

func (p payer) party() ledger.Party {
	return ledger.Party{User: p.owner, Group: p.group, UnixGroup: p.unixGroup}
}

// amountIn is how much of a counted resource there is: thousandths of cores, bytes, or a number.
func amountIn(r roost.Resources, name string) int64 {
	switch name {
	case "cpus":
		return int64(r.CPU)
	case "memory_bytes":
		return int64(r.Memory)
	case "disk_bytes":
		return int64(r.Disk)
	}
	return int64(r.GPUs)
}

// most is a bound in the same unit.
func most(b ledger.Bound, name string) int64 {
	if name == "cpus" {
		return b.Most * 1000
	}
	return b.Most
}

func inUnit(n int64, name string) string {
	switch name {
	case "cpus":
		return roost.MilliCPU(n).String()
	case "gpus":
		return fmt.Sprint(n)
	}
	return roost.Bytes(n).String()
}

// resourceName is PBS's name of what is counted.
func resourceName(name string) string {
	return map[string]string{"cpus": "ncpus", "memory_bytes": "mem", "disk_bytes": "disk", "gpus": "ngpus"}[name]
}
