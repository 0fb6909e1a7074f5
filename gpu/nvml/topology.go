//go:build cgo

package nvml

import (
	"maps"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/roost-batch/roost/gpu"
)

// link finds out how close whole cards are to each other, and writes it into those of all. Instances reach no other card.
func (l *Library) link(whole, all []card) {
	links := make(map[string]map[string]int, len(whole))
	wires := make([]wiring, len(whole))
	for i, c := range whole {
		links[c.UUID], wires[i] = map[string]int{}, l.wires(c)
	}
	for i, a := range whole {
		for j, b := range whole[:i] {
			close := gpu.LinkUnknown
			if n := joined(a, b, wires[i], wires[j]); n > 0 {
				close = gpu.LinkNVLink + n
			} else if l.has("nvmlDeviceGetTopologyCommonAncestor") {
				if level, ret := l.api.DeviceGetTopologyCommonAncestor(a.handle, b.handle); ret == lib.SUCCESS {
					close = closeness(level)
				}
			}
			if close != gpu.LinkUnknown {
				links[a.UUID][b.UUID], links[b.UUID][a.UUID] = close, close
			}
		}
	}
	for i := range all {
		if all[i].Parent == "" && len(links[all[i].UUID]) > 0 {
			all[i].Links = maps.Clone(links[all[i].UUID])
		}
	}
}

func closeness(level lib.GpuTopologyLevel) int {
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

// wiring is where the NVLinks of one card end.
type wiring struct {
	to       map[string]int // PCI address of a card -> links
	switches int            // links into an NVSwitch, which joins all cards that have some
}

func (l *Library) wires(c card) wiring {
	w := wiring{to: map[string]int{}}
	if !l.has("nvmlDeviceGetNvLinkState") || !l.has("nvmlDeviceGetNvLinkRemotePciInfo_v2") {
		return w
	}
	kinds := l.has("nvmlDeviceGetNvLinkRemoteDeviceType")
	for i := range lib.NVLINK_MAX_LINKS {
		state, ret := c.handle.GetNvLinkState(i)
		if ret != lib.SUCCESS {
			return w // there are no more
		}
		if state != lib.FEATURE_ENABLED {
			continue
		}
		if kinds {
			if kind, ret := c.handle.GetNvLinkRemoteDeviceType(i); ret == lib.SUCCESS && kind == lib.NVLINK_DEVICE_TYPE_SWITCH {
				w.switches++
				continue
			}
		}
		if pci, ret := c.handle.GetNvLinkRemotePciInfo(i); ret == lib.SUCCESS {
			w.to[pciName(pci)]++
		}
	}
	return w
}

// joined counts the NVLinks between two cards.
func joined(a, b card, of, with wiring) int {
	direct := 0
	if b.PCI != "" {
		direct = of.to[b.PCI]
	}
	if a.PCI != "" {
		direct = max(direct, with.to[a.PCI])
	}
	return direct + min(of.switches, with.switches)
}
