package gpu

import "github.com/roost-batch/roost"

// Device is a GPU that can be allocated to a task: a whole GPU, or one MIG instance of
// one.
type Device struct {
	// "GPU-…", or "MIG-…" for an instance: the name that CUDA uses, and the only one that
	// survives a reboot
	UUID     string
	Model    string      // the driver's name, such as "NVIDIA A100-SXM4-40GB"
	Index    int         // index among the devices of the machine, from 0
	Minor    int         // minor number of its device file /dev/nvidia<Minor>; for an instance, its card's; -1 unknown
	Memory   roost.Bytes // memory of the device without what the driver reserves
	NUMANode int         // the NUMA node that it is attached to; -1 unknown
	PCI      string      // address such as "0000:07:00.0"; for an instance, its card's; "" unknown

	MIG        string // profile of an instance, such as "3g.20gb"; "" for a whole card
	ParentUUID string // UUID of the card of an instance; "" for a whole card
	// number of the GPU instance on its card, part of the name of its capability file; 0
	// for a whole card
	Instance int
	Compute  int // number of the compute instance in its GPU instance; 0 for a whole card

	Capability string         // CUDA compute capability, such as "8.0"; "" unknown
	Cores      []int          // numbers of the CPU cores close to it, ascending; nil unknown
	Links      map[string]int // by UUID of another card: how close it is; higher is closer, 0 or absent is unknown
	Health     DeviceHealth
}

// DeviceHealth states whether a device may be allocated to a task, and if not, why.
type DeviceHealth struct {
	OK bool
	// a clause without a full stop, such as "uncorrectable memory errors: reset it"; for
	// a healthy device a remark or ""
	Reason string
}

// HealthyDevice returns the health of a device without known faults.
func HealthyDevice() DeviceHealth { return DeviceHealth{OK: true} }

// Unhealthy returns the health of a device that must not be allocated, with the reason.
func Unhealthy(why string) DeviceHealth { return DeviceHealth{Reason: why} }

// Closeness of two cards, the values of Device.Links. They follow the levels of the NVML
// topology. A pair with NVLink has LinkNVLink plus the number of its links.
const (
	LinkUnknown = 0  // unknown
	LinkSystem  = 1  // through the link between CPU sockets
	LinkNode    = 2  // through the host bridges of one NUMA node
	LinkBridge  = 3  // through one host bridge
	LinkMulti   = 4  // through several PCIe switches
	LinkSwitch  = 5  // through one PCIe switch
	LinkBoard   = 6  // on one board
	LinkNVLink  = 10 // the base for NVLink: plus one for each link between the two
)
