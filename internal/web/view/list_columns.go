package view

import (
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// jobColumns are the columns of the list of jobs.
func jobColumns() []listColumn[document.Job] {
	type job = document.Job
	return []listColumn[job]{
		{name: "id", head: "Job", key: func(j *job) OrderKey { return textKey(j.ID) }},
		{name: "name", head: "Name", key: func(j *job) OrderKey { return textKey(j.Name) }},
		{name: "owner", head: "Owner", key: func(j *job) OrderKey { return textKey(j.Owner) }},
		{name: "state", head: "State", key: func(j *job) OrderKey { return textKey(j.State) }},
		{name: "tasks", head: "Tasks", key: func(j *job) OrderKey { return numberKey(float64(j.Tasks)) }},
		{name: "cpus", head: "CPUs", number: true, key: func(j *job) OrderKey { return numberKey(j.Request.CPUs) }},
		{name: "memory", head: "Memory", number: true,
			key: func(j *job) OrderKey { return numberKey(float64(j.Request.Memory)) }},
		{name: "gpus", head: "GPUs", number: true, extra: true,
			key: func(j *job) OrderKey { return numberKey(float64(j.Request.GPUs)) }},
		{name: "band", head: "Band", extra: true, key: func(j *job) OrderKey { return textKey(j.Band) }},
		{name: "queue", head: "Queue", extra: true, key: func(j *job) OrderKey { return textKey(j.Queue) }},
		{name: "priority", head: "Priority", number: true, extra: true,
			key: func(j *job) OrderKey { return numberKey(float64(j.Priority)) }},
		{name: "submitted", head: "Submitted", key: func(j *job) OrderKey { return textKey(j.Submitted) }},
		{name: "started", head: "Started", extra: true, key: func(j *job) OrderKey { return textKey(j.Started) }},
		{name: "ended", head: "Ended", extra: true, key: func(j *job) OrderKey { return textKey(j.Ended) }},
		{name: "where", head: "Where, or why", key: func(j *job) OrderKey {
			if j.Node != "" && j.State == "running" {
				return textKey(j.Node)
			}
			return textKey(j.Reason)
		}},
	}
}

// nodeColumns are the columns of the list of machines.
func nodeColumns() []listColumn[document.Node] {
	type node = document.Node
	held := func(a document.ResourceAmount) OrderKey { return numberKey(a.Total - a.Free) }
	return []listColumn[node]{
		{name: "name", head: "Node", key: func(n *node) OrderKey { return textKey(n.Name) }},
		{name: "state", head: "State", key: func(n *node) OrderKey { return textKey(n.State) }},
		{name: "cores", head: "Cores held", key: func(n *node) OrderKey { return held(n.Cpus) }},
		{name: "memory", head: "Memory held", key: func(n *node) OrderKey { return held(n.Memory) }},
		{name: "disk", head: "Disk held", extra: true, key: func(n *node) OrderKey { return held(n.Disk) }},
		{name: "gpus", head: "GPUs free", number: true, key: func(n *node) OrderKey { return numberKey(n.GPUs.Free) }},
		{name: "load", head: "Load", number: true, key: func(n *node) OrderKey { return numberKey(n.Load) }},
		{name: "tasks", head: "Tasks", number: true,
			key: func(n *node) OrderKey { return numberKey(float64(n.Running)) }},
		{name: "rack", head: "Rack", extra: true, key: func(n *node) OrderKey { return textKey(n.Rack) }},
		{name: "class", head: "Class", extra: true, key: func(n *node) OrderKey { return textKey(n.Class) }},
		{name: "arch", head: "Architecture", extra: true, key: func(n *node) OrderKey { return textKey(n.Arch) }},
		{name: "opsys", head: "System", extra: true, key: func(n *node) OrderKey { return textKey(n.OpSys) }},
		{name: "version", head: "Version", extra: true, key: func(n *node) OrderKey { return textKey(n.Version) }},
		{name: "note", head: "Note", key: func(n *node) OrderKey { return textKey(n.Drain + n.Owner + n.Comment) }},
	}
}

// shareColumns are the columns of the list of submitters.
func shareColumns() []listColumn[ledger.SubmitterUsage] {
	type user = ledger.SubmitterUsage
	bound := func(cores *float64) OrderKey {
		if cores == nil {
			return OrderKey{}
		}
		return numberKey(*cores)
	}
	return []listColumn[user]{
		{name: "user", head: "Submitter", key: func(u *user) OrderKey { return textKey(u.User) }},
		{name: "group", head: "Group", key: func(u *user) OrderKey { return textKey(u.Group) }},
		{name: "cores", head: "Cores now", number: true, key: func(u *user) OrderKey { return numberKey(u.Cores) }},
		{name: "share", head: "Share of the pool", key: func(u *user) OrderKey { return numberKey(u.PoolShare) }},
		{name: "could_get", head: "Could get", number: true,
			key: func(u *user) OrderKey { return numberKey(u.CouldGetCores) }},
		{name: "core_hours", head: "Core hours", number: true,
			key: func(u *user) OrderKey { return numberKey(u.CoreHours) }},
		{name: "elsewhere", head: "In other pools", number: true, extra: true,
			key: func(u *user) OrderKey { return numberKey(u.CoreHoursElsewhere) }},
		{name: "priority", head: "Priority", number: true,
			key: func(u *user) OrderKey { return numberKey(u.EffectivePriority) }},
		{name: "factor", head: "Factor", number: true, key: func(u *user) OrderKey { return numberKey(u.Factor) }},
		{name: "floor", head: "Floor", number: true, extra: true,
			key: func(u *user) OrderKey { return bound(u.Floor) }},
		{name: "ceiling", head: "Ceiling", number: true, extra: true,
			key: func(u *user) OrderKey { return bound(u.Ceiling) }},
		{name: "waits", head: "Waits", key: func(u *user) OrderKey {
			if u.IsWaiting {
				return numberKey(1)
			}
			return OrderKey{}
		}},
	}
}
