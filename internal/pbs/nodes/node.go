// Package pbsnodes formats the output of pbsnodes as OpenPBS does, and reads its command
// line. Clients rely on the columns, attributes and keys of OpenPBS's manual
// (pbsnodes(8B)). It is pure: data in, text out.
package nodes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pbs/qstat"
)

// Node is a machine, or a vnode of one, from its ad and the jobs on it.
type Node struct {
	Name      string
	Host      string // machine that the node is part of
	Arch      string
	Version   string // version of Roost there, if known
	CPUs      int    // total, as are the next two
	GPUs      int
	Memory    roost.Bytes
	UsedCPUs  roost.MilliCPU // allocated, as are the next two
	UsedGPUs  int
	UsedMem   roost.Bytes
	Disk      roost.Bytes // for files of jobs; 0: not counted
	UsedDisk  roost.Bytes
	Jobs      []RunningTask
	Condition NodeCondition
	Comment   string
	Changed   time.Time // when its state last changed, if known
	Used      time.Time // when a job last started there, if known
}

// RunningTask is a task on a node.
type RunningTask struct {
	ID        string // in PBS's form
	CPUs      int
	Suspended bool
}

// NodeCondition is the set of conditions that a node's state is computed from.
type NodeCondition struct {
	Unknown   bool // the node has never reported
	Down      bool // the node no longer reports
	Offline   bool // an administrator has taken it out of service
	Exclusive bool // a job has it exclusively
	Busy      bool // its owner uses it
	Reserved  bool // it is reserved for certain users
	Asleep    bool
}

// State returns the node's state in PBS's words, separated by commas in OpenPBS's order.
// A node without a free processor is job-busy.
func (n *Node) State() string {
	var list []string
	for _, s := range []struct {
		is   bool
		name string
	}{
		{n.Condition.Unknown, "state-unknown"}, {n.Condition.Down || n.Condition.Unknown, "down"},
		{n.Condition.Offline, "offline"},
		{n.isFull() && !n.Condition.Exclusive, "job-busy"}, {n.Condition.Exclusive, "job-exclusive"},
		{n.Condition.Busy, "busy"}, {n.Condition.Reserved, "resv-exclusive"}, {n.Condition.Asleep, "sleep"},
	} {
		if s.is {
			list = append(list, s.name)
		}
	}
	if len(list) == 0 {
		return "free"
	}
	return strings.Join(list, ",")
}

func (n *Node) isFull() bool {
	return n.CPUs > 0 && n.UsedCPUs > roost.MilliCPU(1000*(n.CPUs-1)) || n.CPUs == 0 && n.GPUs > 0 &&
		n.UsedGPUs >= n.GPUs
}

// IsUnavailable reports whether pbsnodes -l lists the node.
func (n *Node) IsUnavailable() bool {
	return n.Condition.Down || n.Condition.Unknown || n.Condition.Offline
}

// usedCPUs returns the number of allocated processors, rounded up.
func (n *Node) usedCPUs() int { return min(int((n.UsedCPUs+999)/1000), n.CPUs) }

// attributes returns the attributes of a node, in OpenPBS's order.
func (n *Node) attributes() (list []qstat.ObjectAttribute) {
	add := func(name, value string) {
		if value != "" {
			list = append(list, qstat.ObjectAttribute{Name: name, Value: value})
		}
	}
	resource := func(name, of, value string) {
		if value != "" {
			list = append(list, qstat.ObjectAttribute{Name: name, Resource: of, Value: value})
		}
	}
	add("Mom", n.Host)
	add("pbs_version", n.Version)
	add("ntype", "PBS")
	add("state", n.State())
	if n.CPUs > 0 {
		add("pcpus", strconv.Itoa(n.CPUs))
	}
	add("jobs", n.jobProcessors())
	resource("resources_available", "arch", n.Arch)
	resource("resources_available", "host", qstat.ShortHost(n.Host))
	if !n.Condition.Unknown {
		resource("resources_available", "mem", kilobytes(n.Memory))
		resource("resources_available", "ncpus", strconv.Itoa(n.CPUs))
		resource("resources_available", "ngpus", nonNegative(n.GPUs))
		if n.Disk > 0 {
			resource("resources_available", "scratch_local", kilobytes(n.Disk))
		}
	}
	resource("resources_available", "vnode", n.Name)
	resource("resources_assigned", "mem", kilobytes(n.UsedMem))
	resource("resources_assigned", "ncpus", strconv.Itoa(n.usedCPUs()))
	resource("resources_assigned", "ngpus", nonNegative(n.UsedGPUs))
	if n.Disk > 0 {
		resource("resources_assigned", "scratch_local", kilobytes(n.UsedDisk))
	}
	add("comment", n.Comment)
	add("resv_enable", "True")
	add("sharing", "default_shared")
	add("license", "l")
	add("last_state_change_time", unixTime(n.Changed))
	add("last_used_time", unixTime(n.Used))
	return list
}

func kilobytes(b roost.Bytes) string { return fmt.Sprintf("%dkb", (b+roost.KiB-1)/roost.KiB) }

func nonNegative(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func unixTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.Unix(), 10)
}

// jobProcessors lists the processors of the jobs: "12.srv/0, 12.srv/1, 15.srv/2".
func (n *Node) jobProcessors() string {
	var b strings.Builder
	next := 0
	for _, j := range n.Jobs {
		for range max(j.CPUs, 1) {
			if next > 0 {
				b.WriteString(", ")
			}
			b.WriteString(j.ID)
			b.WriteByte('/')
			b.WriteString(strconv.Itoa(next))
			next++
		}
	}
	return b.String()
}

// jobIDs lists the jobs on the node, each once, in order.
func (n *Node) jobIDs() []string {
	list := make([]string, 0, len(n.Jobs))
	for _, j := range n.Jobs {
		if !slices.Contains(list, j.ID) {
			list = append(list, j.ID)
		}
	}
	return list
}
