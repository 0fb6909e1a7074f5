package gpu

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
)

// UnitLayout is one of the three RU layouts of HRM figure 2, by which a machine is cut
// into units.
type UnitLayout uint8

// The layouts. On a machine without devices all are SharedLayout.
const (
	// each device is a unit without cores; all cores are in CPU units, which give CPU to
	// tasks with devices
	SharedLayout UnitLayout = iota
	// each device has cores of its own; the other cores are in CPU units, for tasks
	// without devices
	PinnedLayout
	EvenLayout // all cores are split over the devices
)

var unitLayoutNames = [...]string{"shared", "pinned", "even"}

func (s UnitLayout) String() string { return unitLayoutNames[s] }

// ParseUnitLayout reads the name of a layout; empty is SharedLayout.
func ParseUnitLayout(s string) (UnitLayout, error) {
	for i, name := range unitLayoutNames {
		if s == name || s == "" {
			return UnitLayout(i), nil
		}
	}
	return SharedLayout, fmt.Errorf("%q is not a layout: use shared, pinned or even", s)
}

// OnePerMemoryNode, as a number of CPU units, means one for each NUMA node.
const OnePerMemoryNode = -1

// LayoutConfig configures how a machine is cut into units.
type LayoutConfig struct {
	Shape       UnitLayout
	CoresPerGPU int // pinned: cores of each device; 0: an equal part of half the cores
	CPUUnits    int // how many units the cores without a device make; 0 is 1; or OnePerMemoryNode
}

// CutUnits cuts a machine into units: CPU units first, then one for each device, by
// index. Memory is divided in proportion to the cores. A card with MIG instances is left
// out in favour of these. The error is of kind roost.BadConfig: the layout does not suit
// the machine.
func CutUnits(t MachineTopology, l LayoutConfig) ([]ResourceUnit, error) {
	c, err := newCutter(t, l)
	if err != nil {
		return nil, err
	}
	var own [][]CPUCore
	single := "cpu" // name of the CPU unit if there is only one
	switch {
	case len(c.devices) == 0 || l.Shape == SharedLayout:
		single = "shared"
		own = make([][]CPUCore, len(c.devices))
	case l.Shape == PinnedLayout:
		per := l.CoresPerGPU
		if per == 0 {
			per = max(len(c.cores)/(2*len(c.devices)), 1)
		}
		own, err = c.assignCores(func(int) int { return per })
	default:
		all, n := len(c.cores), len(c.devices)
		own, err = c.assignCores(func(i int) int { return (i+1)*all/n - i*all/n })
	}
	if err != nil {
		return nil, fmt.Errorf("layout %v: %w", l.Shape, err)
	}
	c.makeCPUUnits(l.CPUUnits, single)
	for i, d := range c.devices {
		c.addUnit(fmt.Sprintf("gpu%d", i), own[i], d)
	}
	c.shareCPUAndMemory(t)
	return c.units, nil
}

// unitCutter holds the state while a machine is cut into units.
type unitCutter struct {
	cores   []CPUCore // cores that belong to no unit yet, by number
	devices []Device
	units   []ResourceUnit
}

func newCutter(t MachineTopology, l LayoutConfig) (*unitCutter, error) {
	c := &unitCutter{cores: slices.Clone(t.Cores)}
	slices.SortFunc(c.cores, func(a, b CPUCore) int { return a.ID - b.ID })
	for _, d := range t.Devices {
		if !slices.ContainsFunc(t.Devices, func(e Device) bool { return e.ParentUUID == d.UUID }) {
			c.devices = append(c.devices, d)
		}
	}
	slices.SortStableFunc(c.devices, func(a, b Device) int { return a.Index - b.Index })
	if t.CPU < 0 || t.Memory < 0 || len(c.cores) == 0 && t.CPU == 0 {
		return nil, fmt.Errorf("%w: a machine of %v cores and %v memory cannot be cut", roost.BadConfig,
			t.CPU, t.Memory)
	}
	have := roost.MilliCPU(len(c.cores)) * 1000
	switch whole := len(c.devices) == 0 || l.Shape == SharedLayout; {
	case t.CPU == 0 || t.CPU == have || whole:
	case t.CPU > have:
		return nil, fmt.Errorf("layout %v: %w: cpus = %v, and there are %d cores to cut: leave cpus out", l.Shape,
			roost.BadConfig, t.CPU, len(c.cores))
	default:
		c.cores = c.takeSpreadCores(int((t.CPU + 999) / 1000))
	}
	return c, nil
}

// takeSpreadCores removes n cores, of all NUMA nodes in turn.
func (c *unitCutter) takeSpreadCores(n int) []CPUCore {
	left, picked := slices.Clone(c.cores), []CPUCore(nil)
	for len(picked) < n {
		for _, node := range memoryNodes(c.cores) {
			if i := slices.IndexFunc(left, func(k CPUCore) bool {
				return k.NUMANode == node
			}); i >= 0 && len(picked) < n {
				picked, left = append(picked, left[i]), slices.Delete(left, i, i+1)
			}
		}
	}
	slices.SortFunc(picked, func(a, b CPUCore) int { return a.ID - b.ID })
	return picked
}

// memoryNodes lists the NUMA nodes of cores, rising.
func memoryNodes(cores []CPUCore) []int {
	var all []int
	for _, k := range cores {
		all = append(all, k.NUMANode)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// assignCores gives each device its quota of cores. Devices first take cores close to
// them, one each in turn, then any others.
func (c *unitCutter) assignCores(quota func(i int) int) ([][]CPUCore, error) {
	need := 0
	for i := range c.devices {
		q := quota(i)
		if need += q; q == 0 {
			need = len(c.cores) + 1
		}
	}
	if need > len(c.cores) {
		return nil, fmt.Errorf("%w: %d cores are too few for %d GPUs: use layout shared, or fewer cores_per_gpu",
			roost.BadConfig, len(c.cores), len(c.devices))
	}
	own := make([][]CPUCore, len(c.devices))
	for _, close := range []func(d Device, k CPUCore) bool{
		func(d Device, k CPUCore) bool { return slices.Contains(d.Cores, k.ID) },
		func(d Device, k CPUCore) bool {
			return len(d.Cores) == 0 && d.NUMANode >= 0 && d.NUMANode == k.NUMANode
		},
		func(Device, CPUCore) bool { return true },
	} {
		for more := true; more; {
			more = false
			for i, d := range c.devices {
				if len(own[i]) == quota(i) {
					continue
				}
				if at := slices.IndexFunc(c.cores, func(k CPUCore) bool { return close(d, k) }); at >= 0 {
					own[i], c.cores, more = append(own[i], c.cores[at]), slices.Delete(c.cores, at, at+1), true
				}
			}
		}
	}
	return own, nil
}

// makeCPUUnits makes n units of the cores without a device.
func (c *unitCutter) makeCPUUnits(n int, single string) {
	left := c.cores
	switch {
	case len(left) == 0:
		if len(c.devices) == 0 {
			c.addUnit(single, nil)
		}
	case n == OnePerMemoryNode && len(memoryNodes(left)) > 1:
		for _, node := range memoryNodes(left) {
			own := slices.DeleteFunc(slices.Clone(left), func(k CPUCore) bool { return k.NUMANode != node })
			c.addUnit(fmt.Sprintf("numa%d", max(node, 0)), own)
		}
	case n <= 1:
		c.addUnit(single, left)
	default:
		n = min(n, len(left))
		slices.SortStableFunc(left, func(a, b CPUCore) int { return a.NUMANode - b.NUMANode })
		for i := range n {
			c.addUnit(fmt.Sprintf("cpu%d", i), left[i*len(left)/n:(i+1)*len(left)/n])
		}
	}
}

func (c *unitCutter) addUnit(name string, cores []CPUCore, devices ...Device) {
	u := ResourceUnit{Name: name, NUMA: -1, Devices: devices}
	for _, k := range cores {
		u.Cores = append(u.Cores, k.ID)
	}
	slices.Sort(u.Cores)
	if n := memoryNodes(cores); len(n) == 1 {
		u.NUMA = n[0]
	}
	c.units = append(c.units, u)
}

// shareCPUAndMemory divides CPU and memory over the units by their cores. The sums are
// exact.
func (c *unitCutter) shareCPUAndMemory(t MachineTopology) {
	all := 0
	for _, u := range c.units {
		all += len(u.Cores)
	}
	if all == 0 { // no core is known: the first unit gets everything
		c.units[0].CPU, c.units[0].Memory = t.CPU, t.Memory
		return
	}
	total := t.CPU
	if total == 0 {
		total = roost.MilliCPU(all) * 1000
	}
	before, last := 0, -1
	var cpu roost.MilliCPU
	var memory roost.Bytes
	for i := range c.units {
		u := &c.units[i]
		if len(u.Cores) == 0 {
			continue
		}
		before, last = before+len(u.Cores), i
		upTo := total * roost.MilliCPU(before) / roost.MilliCPU(all)
		most := t.Memory / roost.MiB * roost.Bytes(before) / roost.Bytes(all) * roost.MiB
		u.CPU, u.Memory = upTo-cpu, most-memory
		cpu, memory = upTo, most
	}
	c.units[last].Memory += t.Memory - memory
}
