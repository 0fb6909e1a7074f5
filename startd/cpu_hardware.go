package startd

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/kernfs"
)

// cpuDir is where the kernel says which CPUs are threads of one core (sysfs,
// Documentation/admin-guide/cputopology.rst).
const cpuDir = "/sys/devices/system/cpu"

// hardwareCore is a physical core: the CPUs of it that this process may run on.
type hardwareCore struct {
	cpus []int // sorted; the first one stands for the core
	node int   // of memory
}

// cpuHardware are the physical cores of a machine, in order of their first CPUs.
type cpuHardware []hardwareCore

// readCPUHardware reads the cores that this process may run on. A CPU of which the kernel
// says nothing is a core of its own.
func readCPUHardware(cpuDir, nodesDir string) (cpuHardware, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("list the processors: %w", err)
	}
	var usable []int
	for id := range len(set) * 64 {
		if set.IsSet(id) {
			usable = append(usable, id)
		}
	}
	return hardwareOf(usable, cpuDir, coreNodes(nodesDir)), nil
}

// hardwareOf groups CPUs into cores.
func hardwareOf(usable []int, cpuDir string, nodes map[int]int) cpuHardware {
	byFirst := map[int]*hardwareCore{}
	for _, id := range usable {
		first := id
		path := filepath.Join(cpuDir, fmt.Sprintf("cpu%d", id), "topology", "thread_siblings_list")
		if text, err := kernfs.ReadFile(path); err == nil {
			if threads := cpuList(string(text)); len(threads) > 0 {
				first = threads[0]
			}
		}
		core := byFirst[first]
		if core == nil {
			core = &hardwareCore{node: nodes[id]}
			byFirst[first] = core
		}
		core.cpus = append(core.cpus, id)
	}
	var all cpuHardware
	for _, first := range slices.Sorted(maps.Keys(byFirst)) {
		all = append(all, *byFirst[first])
	}
	return all
}

// threads returns how many CPUs each core has; 0 if they differ.
func (h cpuHardware) threads() int {
	for i := range h {
		if len(h[i].cpus) != len(h[0].cpus) {
			return 0
		}
	}
	if len(h) == 0 {
		return 0
	}
	return len(h[0].cpus)
}

// nodeCPUs returns the number of CPUs of each memory node.
func (h cpuHardware) nodeCPUs() map[int]int {
	count := map[int]int{}
	for _, core := range h {
		count[core.node] += len(core.cpus)
	}
	return count
}

// describe writes the hardware into the machine's ad. Cores that differ in their threads
// have no ThreadsPerCore, and so no tasks with whole cores.
func (h cpuHardware) describe(ad *classad.Ad) {
	if n := h.threads(); n > 0 {
		ad.SetInt(roost.AttrThreadsPerCore, int64(n))
	}
	most, nodes := 0, h.nodeCPUs()
	for _, n := range nodes {
		most = max(most, n)
	}
	ad.SetInt(roost.AttrPhysicalCores, int64(len(h)))
	ad.SetInt(roost.AttrNumaNodes, int64(len(nodes)))
	ad.SetInt(roost.AttrNumaNodeCpus, int64(most))
}

// chooseCores returns so many CPUs of cores that are not taken, as whole cores. If one
// memory node has them, they are of the one that they leave the least of. nil: there are
// not so many.
func (h cpuHardware) chooseCores(cpus int, taken map[int]bool) []int {
	free := map[int][]hardwareCore{}
	var all []hardwareCore
	for _, core := range h {
		if !slices.ContainsFunc(core.cpus, func(id int) bool { return taken[id] }) {
			free[core.node] = append(free[core.node], core)
			all = append(all, core)
		}
	}
	nodes := slices.SortedFunc(maps.Keys(free), func(a, b int) int {
		return cmp.Or(cmp.Compare(len(free[a]), len(free[b])), cmp.Compare(a, b))
	})
	for _, node := range nodes {
		if own := firstCores(free[node], cpus); own != nil {
			return own
		}
	}
	return firstCores(all, cpus)
}

// firstCores returns the CPUs of as many cores as have so many CPUs; nil if they have
// fewer.
func firstCores(cores []hardwareCore, cpus int) (own []int) {
	for _, core := range cores {
		if len(own) >= cpus {
			break
		}
		own = append(own, core.cpus...)
	}
	if len(own) != cpus {
		return nil
	}
	slices.Sort(own)
	return own
}

// usedThreads returns so many CPUs of each core that is among cpus; 0: all of them.
func (h cpuHardware) usedThreads(cpus []int, threads int) (used []int) {
	for _, core := range h {
		n := 0
		for _, id := range core.cpus {
			if slices.Contains(cpus, id) && (threads <= 0 || n < threads) {
				used = append(used, id)
				n++
			}
		}
	}
	slices.Sort(used)
	return used
}

// wholeCoresOf returns all CPUs of the cores of which some are used.
func (h cpuHardware) wholeCoresOf(used []int) (all []int) {
	for _, core := range h {
		if slices.ContainsFunc(core.cpus, func(id int) bool { return slices.Contains(used, id) }) {
			all = append(all, core.cpus...)
		}
	}
	slices.Sort(all)
	return all
}

// cpusOfNode returns the CPUs of a memory node.
func (h cpuHardware) cpusOfNode(node int) (all []int) {
	for _, core := range h {
		if core.node == node {
			all = append(all, core.cpus...)
		}
	}
	slices.Sort(all)
	return all
}

// allCPUs returns the CPUs of all cores.
func (h cpuHardware) allCPUs() (all []int) {
	for _, core := range h {
		all = append(all, core.cpus...)
	}
	slices.Sort(all)
	return all
}
