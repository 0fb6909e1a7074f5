//go:build cgo

package nvml

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/kernfs"
)

// Devices finds the machine's cards in the order of the PCI bus. A card with MIG
// instances is replaced by them. A device that disappeared stays in the list as lost,
// because a task may still hold it.
func (l *Library) Devices() ([]gpu.Device, error) {
	count, ret := l.api.DeviceGetCount()
	if ret != lib.SUCCESS {
		return nil, fmt.Errorf("nvml: count the devices: %w: %w", roost.Unavailable, errorText(ret))
	}
	var whole, all []deviceHandle
	for i := range count {
		handle, ret := l.api.DeviceGetHandleByIndex(i)
		if ret != lib.SUCCESS {
			continue // lost; a known device is in the list below
		}
		c, ok := l.readDevice(handle)
		if !ok {
			continue
		}
		whole = append(whole, c)
		l.registerEvents(c)
		if parts, cut := l.listInstances(c); cut {
			all = append(all, parts...)
		} else {
			all = append(all, c)
		}
	}
	l.linkDevices(whole, all)
	return l.storeHandles(whole, all), nil
}

// readDevice reads the constant properties of one card, and its health.
func (l *Library) readDevice(handle lib.Device) (deviceHandle, bool) {
	uuid, ret := handle.GetUUID()
	if ret != lib.SUCCESS {
		return deviceHandle{}, false
	}
	d := gpu.Device{UUID: uuid, Minor: -1, NUMANode: -1, Memory: l.deviceMemory(handle)}
	d.Model, _ = handle.GetName()
	if minor, ret := handle.GetMinorNumber(); ret == lib.SUCCESS {
		d.Minor = minor
	}
	if pci, ret := handle.GetPciInfo(); ret == lib.SUCCESS {
		d.PCI = pciName(pci)
	}
	if major, minor, ret := handle.GetCudaComputeCapability(); ret == lib.SUCCESS {
		d.Capability = fmt.Sprintf("%d.%d", major, minor)
	}
	d.NUMANode = l.memoryNode(handle, d.PCI)
	d.Cores = l.closeCores(handle)
	d.Health = l.deviceHealth(handle)
	return deviceHandle{Device: d, handle: handle}, true
}

// deviceMemory returns the memory for programs. Newer drivers report how much they
// reserve.
func (l *Library) deviceMemory(handle lib.Device) roost.Bytes {
	if l.hasFunction("nvmlDeviceGetMemoryInfo_v2") {
		if m, ret := handle.GetMemoryInfo_v2(); ret == lib.SUCCESS {
			return roost.Bytes(m.Total - min(m.Reserved, m.Total))
		}
	}
	m, _ := handle.GetMemoryInfo()
	return roost.Bytes(m.Total)
}

// pciName returns the address of a device in the form of sysfs. NVML writes the domain
// with eight digits.
func pciName(p lib.PciInfo) string {
	var name []byte
	for _, c := range p.BusId {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}
	s := strings.ToLower(string(name))
	if domain, rest, ok := strings.Cut(s, ":"); ok && len(domain) == 8 && strings.HasPrefix(domain, "0000") {
		return domain[4:] + ":" + rest
	}
	return s
}

// memoryNode returns the NUMA node to which the card is attached. That is not the result
// of GetNumaNodeId: where the card's memory is part of the system's, that function
// returns the node of this memory, which has no CPUs.
func (l *Library) memoryNode(handle lib.Device, pci string) int {
	if pci != "" && filepath.IsLocal(pci) {
		if content, err := kernfs.ReadFile(filepath.Join(l.sysfs, pci, "numa_node")); err == nil {
			if n, err := strconv.Atoi(strings.TrimSpace(string(content))); err == nil && n >= 0 {
				return n
			}
		}
	}
	if l.hasFunction("nvmlDeviceGetMemoryAffinity") {
		if set, ret := handle.GetMemoryAffinity(maxNodes, lib.AFFINITY_SCOPE_NODE); ret == lib.SUCCESS {
			if nodes := bitMembers(set); len(nodes) == 1 { // with several nodes the right one is unknown
				return nodes[0]
			}
		}
	}
	return -1
}

// Bounds on the sets requested from NVML: the most that Linux can be built for.
const (
	maxNodes = 1024
	maxCores = 8192
)

func (l *Library) closeCores(handle lib.Device) []int {
	if !l.hasFunction("nvmlDeviceGetCpuAffinity") {
		return nil
	}
	if set, ret := handle.GetCpuAffinity(maxCores); ret == lib.SUCCESS {
		return bitMembers(set)
	}
	return nil
}

// bitMembers lists the members of a bit set, ascending.
func bitMembers(set []uint) []int {
	var members []int
	for i, word := range set {
		for b := range strconv.IntSize {
			if word&(1<<b) != 0 {
				members = append(members, i*strconv.IntSize+b)
			}
		}
	}
	return members
}

// storeHandles stores the handles, numbers the devices, and adds lost ones.
func (l *Library) storeHandles(whole, found []deviceHandle) []gpu.Device {
	l.mu.Lock()
	defer l.mu.Unlock()
	here, there := map[string]bool{}, map[string]bool{}
	for _, c := range found {
		here[c.UUID] = true
	}
	for _, c := range whole {
		there[c.UUID] = true
	}
	for _, uuid := range slices.Sorted(maps.Keys(l.handles)) {
		c := l.handles[uuid]
		switch {
		case here[uuid]:
		case there[uuid] || there[c.ParentUUID]:
			delete(l.handles, uuid) // the card exists, and an administrator has cut it differently
		default:
			c.lost, c.Health = true, gpu.Unhealthy("the card has fallen off the bus")
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b deviceHandle) int {
		return cmp.Or(cmp.Compare(a.PCI, b.PCI), cmp.Compare(a.Minor, b.Minor), cmp.Compare(a.Instance, b.Instance),
			cmp.Compare(a.Compute, b.Compute))
	})
	devices := make([]gpu.Device, len(found))
	for i, c := range found {
		c.Index = i
		l.handles[c.UUID] = c
		devices[i] = c.Device
	}
	return devices
}

// listDevices lists the devices with handles, in their order.
func (l *Library) listDevices() []deviceHandle {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []deviceHandle
	for _, c := range l.handles {
		if !c.lost {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b deviceHandle) int { return cmp.Compare(a.Index, b.Index) })
	return all
}
