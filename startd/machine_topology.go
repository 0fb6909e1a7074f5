package startd

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/kernfs"
	"github.com/roost-batch/roost/startd/slot"
)

// nodesDir is where the kernel says which cores belong to which memory node (sysfs,
// Documentation/ABI/stable/sysfs-devices-node).
const nodesDir = "/sys/devices/system/node"

// topology returns what the machine has for tasks. That is the cores that this process
// may run on, each with its memory node, and what measure has found.
func (m *startdHost) topology(total roost.Resources) (gpu.MachineTopology, error) {
	t := gpu.MachineTopology{CPU: total.CPU, Memory: total.Memory, Devices: m.gpus.Devices()}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return t, fmt.Errorf("list the processors: %w", err)
	}
	nodes := coreNodes(nodesDir)
	for id := range len(set) * 64 {
		if set.IsSet(id) {
			node, ok := nodes[id]
			if !ok {
				node = -1
			}
			t.Cores = append(t.Cores, gpu.CPUCore{ID: id, NUMANode: node})
		}
	}
	return t, nil
}

// coreNodes maps each core to its memory node. A kernel that says nothing of nodes has
// one.
func coreNodes(dir string) map[int]int {
	nodes := make(map[int]int)
	lists, _ := filepath.Glob(filepath.Join(dir, "node[0-9]*", "cpulist"))
	for _, file := range lists {
		node, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(file)), "node"))
		text, failed := kernfs.ReadFile(file)
		if err != nil || failed != nil {
			continue
		}
		for _, id := range cpuList(string(text)) {
			nodes[id] = node
		}
	}
	return nodes
}

// maxCores bounds the numbers in a list of cores.
const maxCores = 1 << 16

// cpuList reads the kernel's "0-3,8,10-11". What makes no sense is left out.
func cpuList(text string) []int {
	var all []int
	for _, part := range strings.Split(strings.TrimSpace(text), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, err := strconv.Atoi(first)
		b, failed := strconv.Atoi(last)
		if err != nil || failed != nil || a < 0 || b >= maxCores {
			continue
		}
		for id := a; id <= b; id++ {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// newClaimTable are the machine's, with nothing in them.
func (m *startdHost) newClaimTable(total roost.Resources, opt slot.TableOptions) (*slot.ClaimTable, error) {
	t, err := m.topology(total)
	if err != nil {
		return nil, err
	}
	if opt.Units, err = gpu.CutUnits(t, m.config.Layout); err != nil {
		return nil, fmt.Errorf("startd %s: %w", m.config.Name, err)
	}
	for _, u := range opt.Units {
		m.log.Info("resource unit", "unit", u.Name, "cores", u.Cores, "cpus", u.CPU, "memory", u.Memory, "gpus",
			len(u.Devices))
	}
	q := m.config.Queue
	opt.IO, opt.MemorySlack = total.IO, m.config.Limits.MemorySlack
	opt.Disk, opt.Queue = total.Disk, slot.QueueOptions{RunLimit: q.RunLimit, Length: q.Length, Auto: q.Auto,
		MaxWait: q.MaxWait}
	opt.Ports.First, opt.Ports.Last = m.config.Ports.First, m.config.Ports.Last
	opt.Reclaim, opt.SettlingTime = m.config.Limits.Reclaim, m.config.Limits.ReclaimAfter
	if opt.Reclaim != roost.ReclaimOff {
		opt.Ad.SetString(roost.AttrReclaim, opt.Reclaim.String())
	}
	return slot.New(opt), nil
}
