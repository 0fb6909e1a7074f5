package pbs

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/pbs/nodes"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// poolNode is a machine as PBS shows it: its ad, its jobs, and what administrators set.
type poolNode struct {
	nodes.Node
	units        []document.ResourceUnit
	tasks        []*scheddapi.JobStatus // that have a part of it
	drained      bool                   // somebody has drained it, now or from a time on
	adminComment string                 // of it by administrators, drained or not
}

// poolNodes finds all machines: those that advertise themselves, and those that do not
// and are drained or have jobs. With jobs those are found, too.
func poolNodes(c *frame.Invocation, jobs bool) ([]*poolNode, error) {
	texts, err := c.QueryAds(&scheddapi.AdQuery{Type: "Machine"})
	if err != nil {
		return nil, err
	}
	all := map[string]*poolNode{}
	for _, text := range texts {
		ad, err := classad.Parse(text)
		if err != nil {
			return nil, frame.KindErrorf(roost.Internal, "the ad of a node cannot be read: %v", err)
		}
		n := poolNodeOf(ad)
		all[n.Name] = n
	}
	named := func(name string) *poolNode {
		if all[name] == nil {
			all[name] = &poolNode{Node: nodes.Node{Name: name, Host: name,
				Condition: nodes.NodeCondition{Unknown: true}}}
		}
		return all[name]
	}
	addDrainState(c, named)
	if jobs {
		if err := addTasks(c, named); err != nil {
			return nil, err
		}
	}
	list := make([]*poolNode, 0, len(all))
	for _, n := range all {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b *poolNode) int {
		return cmp.Or(document.CompareNames(a.Name, b.Name), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

// poolNodeOf reads the ad of a machine.
func poolNodeOf(ad *classad.Ad) *poolNode {
	n := document.NodeOf(ad)
	is := func(name string) bool { b, _ := ad.Bool(name); return b }
	at := func(name string) time.Time {
		if s, ok := ad.Int(name); ok && s > 0 {
			return time.Unix(s, 0)
		}
		return time.Time{}
	}
	p := &poolNode{units: n.Units, Node: nodes.Node{
		Name: n.Name, Host: n.Name, Arch: strings.ToLower(n.OpSys), CPUs: int(n.Cpus.Total), GPUs: int(n.GPUs.Total),
		Memory:   roost.Bytes(n.Memory.Total),
		UsedCPUs: roost.MilliCPU((n.Cpus.Total - n.Cpus.Free) * 1000), UsedGPUs: int(n.GPUs.Total - n.GPUs.Free),
		UsedMem: roost.Bytes(n.Memory.Total - n.Memory.Free),
		Disk:    roost.Bytes(n.Disk.Total), UsedDisk: roost.Bytes(n.Disk.Total - n.Disk.Free),
		Changed: at(roost.AttrEnteredState), Comment: n.Owner,
	}}
	if n.Version != "" {
		p.Version = "roost-" + n.Version
	}
	if p.Changed.IsZero() {
		p.Changed = at(roost.AttrDaemonStart)
	}
	p.Condition = nodes.NodeCondition{Offline: is(roost.AttrPaused), Asleep: is(roost.AttrAsleep),
		Exclusive: is(roost.AttrExclusive)}
	p.Condition.Busy = is(roost.AttrOwnerBusy) && !p.Condition.Offline
	return p
}

// addDrainState marks what administrators have drained, and what is reserved whole now.
// Where nobody can be asked nothing is.
func addDrainState(c *frame.Invocation, named func(string) *poolNode) {
	var drains []admin.AttributedObject[ledger.MachineDrain]
	if admin.CellObjects(c, string(ledger.KindDrain), &drains) != nil {
		return
	}
	for _, d := range drains {
		n := named(d.Object.Node)
		if n.drained = true; d.Object.Contains(c.Now()) {
			n.Condition.Offline = true
			n.Comment = strings.TrimSuffix(d.Object.Reason+"; "+n.Comment, "; ")
			n.Comment = strings.TrimPrefix(n.Comment, "; ")
		}
	}
	comments, _ := admin.NodeComments(c) // of a leader that knows none there are none
	for _, name := range slices.Sorted(maps.Keys(comments)) {
		n := named(name)
		n.adminComment = comments[name]
		n.Comment = strings.Trim(n.adminComment+"; "+n.Comment, "; ")
	}
	var reserved []admin.AttributedObject[ledger.AdvanceReservation]
	if admin.CellObjects(c, string(ledger.KindReservation), &reserved) != nil {
		return
	}
	for _, r := range reserved {
		if !r.Object.Contains(c.Now()) {
			continue
		}
		for _, name := range r.Object.Nodes {
			named(name).Condition.Reserved = true
		}
	}
}

// addTasks finds what runs where. A machine with jobs that does not advertise itself is
// down, or about to be found so.
func addTasks(c *frame.Invocation, named func(string) *poolNode) error {
	found, missing, err := c.QueryPool("",
		&scheddapi.QueryRequest{Selection: &scheddapi.Selection{States: []string{roost.Running.String(),
			roost.Suspended.String()}}, Tasks: true})
	if err != nil {
		return err
	}
	c.PrintUnreachable(missing)
	for _, s := range found {
		if s.GetNode() == "" {
			continue
		}
		n := named(s.GetNode())
		if n.Condition.Unknown {
			n.Condition.Unknown, n.Condition.Down = false, true
		}
		n.tasks = append(n.tasks, s)
		n.Jobs = append(n.Jobs, pbsJobOn(s))
		if at := document.TimeOfNanos(s.GetStarted()); s.GetStarted() > 0 && at.After(n.Used) {
			n.Used = at
		}
	}
	return nil
}

// pbsJobOn is a task as a machine lists it: by its index in an array, else by its job's
// id.
func pbsJobOn(s *scheddapi.JobStatus) nodes.RunningTask {
	id := s.GetId()
	if number, rest, ok := strings.Cut(id, "["); ok && !s.GetArray() {
		_, host, _ := strings.Cut(rest, "]")
		id = number + host
	}
	return nodes.RunningTask{ID: id, CPUs: int((s.GetRequest().GetMilliCpu() + 999) / 1000),
		Suspended: document.StateOf(s) == roost.Suspended.String()}
}

// vnodes are the parts of a machine that exec_vnode names: its resource units, or the
// machine itself.
func (n *poolNode) vnodes() []*nodes.Node {
	if len(n.units) < 2 {
		return []*nodes.Node{&n.Node}
	}
	list := make([]*nodes.Node, len(n.units))
	for i, u := range n.units {
		v := n.Node
		v.Name = n.Name + "[" + u.Name + "]"
		v.CPUs, v.UsedCPUs = int(u.Cpus.Total), roost.MilliCPU((u.Cpus.Total-u.Cpus.Free)*1000)
		v.Memory, v.UsedMem = roost.Bytes(u.Memory.Total), roost.Bytes(u.Memory.Total-u.Memory.Free)
		v.GPUs, v.UsedGPUs, v.Jobs = len(u.GPUs), 0, nil
		for _, g := range u.GPUs {
			if g.Memory.Free < g.Memory.Total {
				v.UsedGPUs++
			}
		}
		for _, s := range n.tasks {
			if slices.Contains(s.GetPlaced().GetUnits(), u.Name) {
				v.Jobs = append(v.Jobs, pbsJobOn(s))
			}
		}
		list[i] = &v
	}
	return list
}
