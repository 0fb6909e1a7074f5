package cgroup

import (
	"strconv"
	"strings"

	"github.com/containerd/cgroups/v3/cgroup2"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/roost-batch/roost"
)

// GroupLimits are what a group may use. A field that is zero sets no limit; in SetLimits
// it leaves the one that is.
type GroupLimits struct {
	// of CPU time when it is short, from 1 to 10000 as in version 2, where 100 is what an
	// ordinary group has
	Weight  int
	Quota   roost.MilliCPU // the most CPU time, even when the machine is idle
	Cores   []int          // the CPUs it runs on
	Nodes   []int          // the NUMA nodes its memory comes from
	Memory  roost.Bytes    // of the task; swap included
	Pids    int            // processes and threads of the task
	Devices []DeviceNode   // which it may open beside the harmless ones; nil: all. Set leaves them as they are
}

// DeviceNode is a character device.
type DeviceNode struct {
	Path         string // for people
	Major, Minor uint32
}

// What a starter needs beside its task, in the same group: its own memory (2 to 4 MiB),
// and its threads with the helpers that it starts.
const (
	starterMemory = 8 * roost.MiB
	starterPids   = 64
)

// The period over which a quota is counted, in microseconds, and the least quota that the
// kernel takes.
const (
	cfsPeriod = 100_000
	minQuota  = 1_000
)

// Bounds of a weight, and what version 1 calls the same: there 1024 shares are what an
// ordinary group has.
const (
	maxWeight = 10_000
	minShares = 2
	maxShares = 262_144
)

func (l GroupLimits) weight() uint64 { return uint64(min(max(l.Weight, 1), maxWeight)) }
func (l GroupLimits) shares() uint64 { return min(max(l.weight()*1024/100, minShares), maxShares) }
func (l GroupLimits) quota() int64   { return max(int64(l.Quota)*cfsPeriod/1000, minQuota) }

// version1 is the limits for the hierarchies that are there. Swap counts with the memory
// where the kernel counts it at all.
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
		most := int64(l.Memory + starterMemory)
		r.Memory = &specs.LinuxMemory{Limit: &most}
		if swap {
			r.Memory.Swap = &most
		}
	}
	if l.Pids > 0 {
		r.Pids = &specs.LinuxPids{Limit: new(int64(l.Pids + starterPids))}
	}
	return r
}

// version2 is the limits for the controllers that are there.
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
			r.Memory.Max = new(int64(l.Memory + starterMemory))
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
	if c.Devices {
		r.Devices = l.devices() // not carried over by the library's own conversion from version 1
	}
	return r
}

// allDevices stands for all numbers of devices. Left out, it means the same in version 1,
// and is more than the library's version 2 can read.
const allDevices int64 = -1

// devices denies everything and then allows what is harmless, and what is given.
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

// harmlessDevices are the devices of which every process has a use and none gains power:
// null, zero, full, random, urandom, tty, ptmx, and the terminals below /dev/pts (Linux,
// Documentation/admin-guide/devices.txt).
func harmlessDevices() [][2]int64 {
	return [][2]int64{{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}, {5, 2}, {136, allDevices}}
}

// formatList is how the kernel writes a set of numbers.
func formatList(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}
