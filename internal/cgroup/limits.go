package cgroup

import (
	"strconv"
	"strings"

	"github.com/containerd/cgroups/v3/cgroup2"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/roost-batch/roost"
)

// GroupLimits are the limits of a group. A zero field sets no limit; in SetLimits it
// leaves the present one.
type GroupLimits struct {
	// share of CPU under contention, 1 to 10000 as in version 2, where an ordinary group
	// has 100
	Weight int
	Quota  roost.MilliCPU // the most CPU, even if the machine is idle
	Cores  []int          // numbers of the CPUs that it may use
	Nodes  []int          // numbers of the NUMA nodes of its memory
	Memory roost.Bytes    // of the task, including swap
	// of the task, in version 1: what exceeds it is reclaimed first when the machine is
	// short of memory
	SoftMemory roost.Bytes
	Pids       int // processes and threads of the task
	// devices that it may open beside the harmless ones; nil: all; SetLimits does not
	// change them
	Devices []DeviceNode
	// groups inside this one, each of which has a starter of its own that its memory is
	// not counted for
	InnerGroups int
}

// DeviceNode is a character device.
type DeviceNode struct {
	Path         string // for messages
	Major, Minor uint32
}

// What a starter needs in the same group beside its task: its own memory (2 to 4 MiB),
// and its threads and helpers.
const (
	starterMemory = 8 * roost.MiB
	starterPids   = 64
)

// The period of a quota in microseconds, and the least quota that the kernel accepts.
const (
	cfsPeriod = 100_000
	minQuota  = 1_000
)

// Bounds of a weight, and of the shares of version 1, where an ordinary group has 1024.
const (
	maxWeight = 10_000
	minShares = 2
	maxShares = 262_144
)

func (l GroupLimits) weight() uint64 { return uint64(min(max(l.Weight, 1), maxWeight)) }
func (l GroupLimits) shares() uint64 { return min(max(l.weight()*1024/100, minShares), maxShares) }
func (l GroupLimits) quota() int64   { return max(int64(l.Quota)*cfsPeriod/1000, minQuota) }

// memoryMax is the limit of memory, which is for the starters too.
func (l GroupLimits) memoryMax() int64 {
	return int64(l.Memory + starterMemory*roost.Bytes(1+l.InnerGroups))
}

// version1 returns the limits for the available hierarchies. Swap counts as memory where
// the kernel limits it.
func (l GroupLimits) version1(swap bool) *specs.LinuxResources {
	cpu := &specs.LinuxCPU{Cpus: formatList(l.Cores), Mems: formatList(l.Nodes)}
	if l.Weight > 0 {
		cpu.Shares = new(l.shares())
	}
	if l.Quota > 0 {
		cpu.Period, cpu.Quota = new(uint64(cfsPeriod)), new(l.quota())
	}
	r := &specs.LinuxResources{CPU: cpu, Devices: l.devices()}
	if l.Memory > 0 {
		most := l.memoryMax()
		r.Memory = &specs.LinuxMemory{Limit: &most}
		if l.SoftMemory > 0 {
			r.Memory.Reservation = new(most - int64(l.Memory-l.SoftMemory))
		}
		if swap {
			r.Memory.Swap = &most
		}
	}
	if l.Pids > 0 {
		r.Pids = &specs.LinuxPids{Limit: new(int64(l.Pids + starterPids))}
	}
	return r
}

// version2 returns the limits for the available controllers.
func (l GroupLimits) version2(c Enforcement, swap bool) *cgroup2.Resources {
	r := &cgroup2.Resources{}
	if c.CPU {
		r.CPU = &cgroup2.CPU{}
		if l.Weight > 0 {
			r.CPU.Weight = new(l.weight())
		}
		if l.Quota > 0 {
			r.CPU.Max = cgroup2.NewCPUMax(new(l.quota()), new(uint64(cfsPeriod)))
		}
	}
	if c.Cpuset && (l.Cores != nil || l.Nodes != nil) {
		if r.CPU == nil {
			r.CPU = &cgroup2.CPU{}
		}
		r.CPU.Cpus, r.CPU.Mems = formatList(l.Cores), formatList(l.Nodes)
	}
	if c.Memory {
		r.Memory = &cgroup2.Memory{}
		if l.Memory > 0 {
			r.Memory.Max = new(l.memoryMax())
			if swap {
				r.Memory.Swap = new(int64(0))
			}
		}
	}
	if c.Pids {
		r.Pids = &cgroup2.Pids{}
		if l.Pids > 0 {
			r.Pids.Max = int64(l.Pids + starterPids)
		}
	}
	if c.IO {
		r.IO = &cgroup2.IO{} // LimitIO comes later, and usage needs the controller, too
	}
	if c.Devices {
		r.Devices = l.devices() // the library's own conversion from version 1 drops them
	}
	return r
}

// allDevices means all device numbers. Omitting the number means the same in version 1,
// but the library's version 2 cannot read that.
const allDevices int64 = -1

// devices denies all devices and then allows the harmless and the given ones.
func (l GroupLimits) devices() []specs.LinuxDeviceCgroup {
	if l.Devices == nil {
		return nil
	}
	rules := []specs.LinuxDeviceCgroup{{Type: "a", Major: new(allDevices), Minor: new(allDevices), Access: "rwm"}}
	allow := func(major, minor int64) {
		rules = append(rules, specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: &major, Minor: &minor,
			Access: "rwm"})
	}
	for _, d := range harmlessDevices() {
		allow(d[0], d[1])
	}
	for _, d := range l.Devices {
		allow(int64(d.Major), int64(d.Minor))
	}
	return rules
}

// harmlessDevices returns the devices that every process may use without gaining rights.
// These are null, zero, full, random, urandom, tty, ptmx, and the terminals below
// /dev/pts (Linux, Documentation/admin-guide/devices.txt).
func harmlessDevices() [][2]int64 {
	return [][2]int64{{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}, {5, 2}, {136, allDevices}}
}

// formatList returns a set of numbers in the kernel's format.
func formatList(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}
