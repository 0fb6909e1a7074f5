package document

import (
	"cmp"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Node is what the ad of a machine says.
type Node struct {
	Name    string         `json:"name"`
	State   string         `json:"state"`
	Cpus    ResourceAmount `json:"cpus"`
	Memory  ResourceAmount `json:"memory_bytes"`
	Disk    ResourceAmount `json:"disk_bytes"`
	GPUs    ResourceAmount `json:"gpus"`
	Load    float64        `json:"load"`
	Running int64          `json:"running"`
	Claims  int64          `json:"claims"`
	Arch    string         `json:"arch"`
	OpSys   string         `json:"opsys"`
	Version string         `json:"version"`

	Devices []GPUDevice    `json:"gpu_devices,omitempty"`
	Units   []ResourceUnit `json:"units,omitempty"`
	Drain   string         `json:"drain,omitempty"`   // why it is drained
	Comment string         `json:"comment,omitempty"` // what administrators say of it
	Owner   string         `json:"owner,omitempty"`   // why its owner does not lend it now
	Desktop bool           `json:"desktop,omitempty"` // a person uses it, and pages of the pool hide its load
	Rack    string         `json:"rack,omitempty"`
	Class   string         `json:"class,omitempty"` // NodeClass, or the model of its first GPU, or Arch
	Pilot   *Pilot         `json:"pilot,omitempty"` // it is one

	DiskIO   *ResourceAmount `json:"disk_io_bytes_per_second,omitempty"` // nil: it states no rate
	Network  *ResourceAmount `json:"network_bytes_per_second,omitempty"` // likewise
	Hardware *CPUHardware    `json:"hardware,omitempty"`                 // nil: of a startd of the release before
}

// CPUHardware is what the ad of a machine says of its processors. Speeds are of one CPU;
// 0: they were not measured.
type CPUHardware struct {
	Cores          int64 `json:"cores"`            // physical ones
	ThreadsPerCore int64 `json:"threads_per_core"` // 0: cores differ
	NUMANodes      int64 `json:"numa_nodes"`
	NUMANodeCPUs   int64 `json:"numa_node_cpus"` // of the largest node
	KFlops         int64 `json:"kflops,omitempty"`
	Mips           int64 `json:"mips,omitempty"`
}

// cpuHardwareOf reads the processors of an ad.
func cpuHardwareOf(ad *classad.Ad) *CPUHardware {
	whole := func(name string) int64 { n, _ := ad.Int(name); return n }
	h := CPUHardware{Cores: whole(roost.AttrPhysicalCores), ThreadsPerCore: whole(roost.AttrThreadsPerCore),
		NUMANodes: whole(roost.AttrNumaNodes), NUMANodeCPUs: whole(roost.AttrNumaNodeCpus),
		KFlops: whole(roost.AttrKFlops), Mips: whole(roost.AttrMips)}
	if h == (CPUHardware{}) {
		return nil
	}
	return &h
}

// Pilot is what the ad of a pilot says beside that of another machine. Only the owner is
// proven; the rest a program of the owner's has made up.
type Pilot struct {
	Owner    string `json:"owner"` // as ada, or ada@login1
	Provider string `json:"provider,omitempty"`
	Key      string `json:"key,omitempty"`  // of its allocation
	Host     string `json:"host,omitempty"` // the machine's name in the other batch system
	Until    string `json:"until,omitempty"`
}

// pilotOf reads the ad of a pilot; nil: it is that of another machine.
func pilotOf(ad *classad.Ad) *Pilot {
	text := func(name string) string { s, _ := ad.Str(name); return s }
	owner := text(roost.AttrPilotOwner)
	if owner == "" {
		return nil
	}
	p := &Pilot{Owner: owner, Provider: text(roost.AttrPilotProvider), Key: text(roost.AttrPilotKey),
		Host: text(roost.AttrPilotHost)}
	if until, ok := ad.Int(roost.AttrPilotUntil); ok && until > 0 && until < maxPilotUntil {
		p.Until = time.Unix(until, 0).UTC().Format(time.RFC3339)
	}
	return p
}

// maxPilotUntil is the first second that RFC 3339 cannot say.
const maxPilotUntil = 253402300800

// ResourceAmount is how much of a resource is free, and how much there is.
type ResourceAmount struct {
	Free  float64 `json:"free"`
	Total float64 `json:"total"`
}

// Attributes that administrators may give machines, for views and metrics.
const (
	RackAttr      = "Rack"
	NodeClassAttr = "NodeClass"
)

// NodeOf reads the ad of a machine.
func NodeOf(ad *classad.Ad) Node {
	text := func(name string) string { s, _ := ad.Str(name); return s }
	number := func(name string) float64 { f, _ := ad.Real(name); return f }
	whole := func(name string) int64 { return int64(number(name)) }
	pair := func(free, total string, unit roost.Bytes) ResourceAmount {
		return ResourceAmount{number(free) * float64(unit), number(total) * float64(unit)}
	}
	rate := func(free, total string) *ResourceAmount {
		if p := pair(free, total, roost.KiB); p.Total > 0 {
			return &p
		}
		return nil
	}
	class := text(NodeClassAttr)
	if models, _ := ad.Strings(roost.AttrGpuModels); class == "" && len(models) > 0 {
		class = models[0]
	}
	return Node{
		Rack: text(RackAttr), Class: cmp.Or(class, text(roost.AttrArch)),
		Name: text(roost.AttrName), State: strings.ToLower(text(roost.AttrState)), Load: number(roost.AttrLoadAvg),
		Cpus: pair(roost.AttrCpus, roost.AttrTotalCpus, 1), GPUs: pair(roost.AttrGpus, roost.AttrTotalGpus, 1),
		Memory:  pair(roost.AttrMemory, roost.AttrTotalMemory, roost.MiB),
		Disk:    pair(roost.AttrDisk, roost.AttrTotalDisk, roost.KiB),
		Running: whole(roost.AttrNumRunning), Claims: whole(roost.AttrNumClaims), Arch: text(roost.AttrArch),
		OpSys: text(roost.AttrOpSys), Version: text(roost.AttrVersion),
		Devices: GPUDevicesOf(ad), Units: resourceUnitsOf(ad), Owner: text(roost.AttrOwnerBusyReason),
		Pilot: pilotOf(ad), Hardware: cpuHardwareOf(ad), DiskIO: rate(roost.AttrDiskIO, roost.AttrTotalDiskIO),
		Network: rate(roost.AttrNetwork, roost.AttrTotalNetwork),
	}
}
