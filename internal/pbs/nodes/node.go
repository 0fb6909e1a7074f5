// Package pbsnodes lays out what pbsnodes prints of machines, in the formats of OpenPBS
// (pbsnodes(8B) of its manual, whose columns, attributes and keys clients rely on), and
// reads its command line. It is pure: what there is to print comes in, text comes out.
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

// Node is a machine, or with a vnode's name a part of one, as its ad and the jobs on it
// have it.
type Node struct {
	Name      string
	Host      string // the machine that the node is of
	Arch      string
	Version   string // of the software there; so far as it is known
	CPUs      int    // altogether; so the next two
	GPUs      int
	Memory    roost.Bytes
	UsedCPUs  roost.MilliCPU // handed out; so the next two
	UsedGPUs  int
	UsedMem   roost.Bytes
	Disk      roost.Bytes // for files of jobs; 0: none is counted
	UsedDisk  roost.Bytes
	Jobs      []RunningTask
	Condition NodeCondition
	Comment   string
	Changed   time.Time // when it came into its state; so far as it is known
	Used      time.Time // when a job last started on it; likewise
}

// RunningTask is a task that has a part of a node.
type RunningTask struct {
	ID        string // as PBS writes it
	CPUs      int
	Suspended bool
}

// NodeCondition is what can be the matter with a node.
type NodeCondition struct {
	Unknown   bool // nothing was ever heard of it
	Down      bool // nothing is heard of it
	Offline   bool // somebody has taken it out of service
	Exclusive bool // a job has it alone
	Busy      bool // it is its owner's now
	Reserved  bool // it is kept for some users
	Asleep    bool
}

// State is the node's state in PBS's words, several with commas between them, in
// OpenPBS's order. All processors handed out is job-busy.
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

// usedCPUs is how many processors are handed out: a part of one counts as one.
func (n *Node) usedCPUs() int { return min(int((n.UsedCPUs+999)/1000), n.CPUs) }

// attributes are what is said of a node, in OpenPBS's order.
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

// jobProcessors are the processors that jobs have, one after the other: "12.srv/0,
// 12.srv/1, 15.srv/2".
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

// jobIDs are the jobs on the node, each once, in order.
func (n *Node) jobIDs() []string {
	list := make([]string, 0, len(n.Jobs))
	for _, j := range n.Jobs {
		if !slices.Contains(list, j.ID) {
			list = append(list, j.ID)
		}
	}
	return list
}
