//go:build cgo

package nvml

import (
	"maps"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/roost-batch/roost/gpu"
)

// linkDevices finds out how close whole cards are to each other, and stores it in all
// devices. Instances have no links to other cards.
func (l *Library) linkDevices(whole, all []deviceHandle) {
	links := make(map[string]map[string]int, len(whole))
	wires := make([]nvlinkEnds, len(whole))
	for i, c := range whole {
		links[c.UUID], wires[i] = map[string]int{}, l.readNVLinks(c)
	}
	for i, a := range whole {
		for j, b := range whole[:i] {
			close := gpu.LinkUnknown
			if n := nvlinkCount(a, b, wires[i], wires[j]); n > 0 {
				close = gpu.LinkNVLink + n
			} else if l.hasFunction("nvmlDeviceGetTopologyCommonAncestor") {
				if level, ret := l.api.DeviceGetTopologyCommonAncestor(a.handle, b.handle); ret == lib.SUCCESS {
					close = linkLevel(level)
				}
			}
			if close != gpu.LinkUnknown {
				links[a.UUID][b.UUID], links[b.UUID][a.UUID] = close, close
			}
		}
	}
	for i := range all {
		if all[i].ParentUUID == "" && len(links[all[i].UUID]) > 0 {
			all[i].Links = maps.Clone(links[all[i].UUID])
		}
	}
}

func linkLevel(level lib.GpuTopologyLevel) int {
	switch level {
	case lib.TOPOLOGY_INTERNAL:
		return gpu.LinkBoard
	case lib.TOPOLOGY_SINGLE:
		return gpu.LinkSwitch
	case lib.TOPOLOGY_MULTIPLE:
		return gpu.LinkMulti
	case lib.TOPOLOGY_HOSTBRIDGE:
		return gpu.LinkBridge
	case lib.TOPOLOGY_NODE:
		return gpu.LinkNode
	case lib.TOPOLOGY_SYSTEM:
		return gpu.LinkSystem
	}
	return gpu.LinkUnknown
}

// nvlinkEnds lists the other ends of one card's NVLinks.
type nvlinkEnds struct {
	byPCIAddress map[string]int // number of links by PCI address of the other card
	toSwitches   int            // links into an NVSwitch, which joins all cards with such links
}

func (l *Library) readNVLinks(c deviceHandle) nvlinkEnds {
	w := nvlinkEnds{byPCIAddress: map[string]int{}}
	if !l.hasFunction("nvmlDeviceGetNvLinkState") || !l.hasFunction("nvmlDeviceGetNvLinkRemotePciInfo_v2") {
		return w
	}
	kinds := l.hasFunction("nvmlDeviceGetNvLinkRemoteDeviceType")
	for i := range lib.NVLINK_MAX_LINKS {
		state, ret := c.handle.GetNvLinkState(i)
		if ret != lib.SUCCESS {
			return w // there are no more links
		}
		if state != lib.FEATURE_ENABLED {
			continue
		}
		if kinds {
			if kind, ret := c.handle.GetNvLinkRemoteDeviceType(i); ret == lib.SUCCESS &&
				kind == lib.NVLINK_DEVICE_TYPE_SWITCH {
				w.toSwitches++
				continue
			}
		}
		if pci, ret := c.handle.GetNvLinkRemotePciInfo(i); ret == lib.SUCCESS {
			w.byPCIAddress[pciName(pci)]++
		}
	}
	return w
}

// nvlinkCount counts the NVLinks between two cards.
func nvlinkCount(a, b deviceHandle, of, with nvlinkEnds) int {
	direct := 0
	if b.PCI != "" {
		direct = of.byPCIAddress[b.PCI]
	}
	if a.PCI != "" {
		direct = max(direct, with.byPCIAddress[a.PCI])
	}
	return direct + min(of.toSwitches, with.toSwitches)
}
