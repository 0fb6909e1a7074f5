package startd

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/slot"
)

// A claim with whole cores has physical cores that no other claim of its class runs on.
// All other claims of the class are bound to the rest, again and again as such claims
// come and go. They have enough there: what whole cores take is taken of the machine.

// wholeCores finds cores for a claim that has them to itself, and returns the CPUs that
// its tasks run on. nil: the machine has not so many, and the tasks run anywhere.
func wholeCores(l *machineLoop, c *slot.Claim) []int {
	own, ok := l.pinned[c.ID]
	if !ok {
		taken := map[int]bool{}
		for id, cores := range l.pinned {
			if other, there := l.table.Claim(id); there && other.HasResources() && other.Class == c.Class {
				for _, core := range cores {
					taken[core] = true
				}
			}
		}
		if own = l.hardware.chooseCores(int(c.Resources.CPU/1000), taken); own == nil {
			l.host.log.Warn("a claim has no cores to itself: there are not so many", "claim", c.ID, "cpus",
				c.Resources.CPU)
		}
		l.pinned[c.ID] = own
	}
	return l.hardware.usedThreads(own, c.Info.CoreThreads)
}

// withoutWholeCores returns the cores of a claim without those that others of its class
// have to themselves. nil stays nil while there are none.
func withoutWholeCores(l *machineLoop, c *slot.Claim, cores []int) []int {
	taken := map[int]bool{}
	for id, own := range l.pinned {
		other, ok := l.table.Claim(id)
		if ok && other.Info.WholeCores && other.HasResources() && other.Class == c.Class && id != c.ID {
			for _, core := range own {
				taken[core] = true
			}
		}
	}
	if len(taken) == 0 {
		return cores
	}
	from := cores
	if from == nil {
		from = l.hardware.allCPUs()
	}
	rest := slices.DeleteFunc(slices.Clone(from), func(id int) bool { return taken[id] })
	if len(rest) == 0 {
		return cores
	}
	return rest
}

// nodeCores returns the cores of one memory node that a claim may run on. It is the node
// with the most CPUs that no other such claim counts on.
func nodeCores(l *machineLoop, c *slot.Claim, cores []int) []int {
	if node, ok := l.numaNodes[c.ID]; ok {
		return onNode(l.hardware.cpusOfNode(node), cores)
	}
	free := map[int]roost.MilliCPU{}
	for node, cpus := range l.hardware.nodeCPUs() {
		if len(onNode(l.hardware.cpusOfNode(node), cores)) > 0 {
			free[node] = roost.MilliCPU(cpus) * 1000
		}
	}
	for id, node := range l.numaNodes {
		other, ok := l.table.Claim(id)
		if !ok {
			delete(l.numaNodes, id)
			continue
		}
		if _, counts := free[node]; counts {
			free[node] -= other.Resources.CPU
		}
	}
	best, found := 0, false
	for node, left := range free {
		if !found || left > free[best] || left == free[best] && node < best {
			best, found = node, true
		}
	}
	if !found {
		return cores
	}
	l.numaNodes[c.ID] = best
	return onNode(l.hardware.cpusOfNode(best), cores)
}

// onNode returns those of a node's CPUs that are among cores; nil cores are all.
func onNode(node, cores []int) []int {
	if cores == nil {
		return node
	}
	return slices.DeleteFunc(slices.Clone(node), func(id int) bool { return !slices.Contains(cores, id) })
}

// releaseCores lets others have the cores of a claim that is gone.
func releaseCores(l *machineLoop, c *slot.Claim) {
	delete(l.numaNodes, c.ID)
	if c.Info.WholeCores {
		delete(l.pinned, c.ID)
		rebindOthers(l, c)
	}
}

// rebindOthers binds all claims to the cores that they may run on now. A claim with whole
// cores has come, or has gone.
func rebindOthers(l *machineLoop, changed *slot.Claim) {
	if !changed.Info.WholeCores {
		return
	}
	for id := range l.runners {
		c, ok := l.table.Claim(id)
		if !ok || id == changed.ID || c.Info.WholeCores || c.Inside != 0 || !c.HasResources() {
			continue
		}
		cores := l.boundCores(c)
		if cores == nil {
			cores = l.hardware.allCPUs()
		}
		l.sendCommand(c, claim.CoresCmd{Cores: cores})
	}
}
