package gpu

import "github.com/roost-batch/roost"

// Device is a GPU that a task can be given: a whole card, or one MIG instance of a card.
type Device struct {
	// "GPU-…" or, of an instance, "MIG-…": the name that CUDA knows it by, and the only
	// one that survives a reboot
	UUID     string
	Model    string      // as the driver says: "NVIDIA A100-SXM4-40GB"
	Index    int         // its place among the devices of the machine, from 0
	Minor    int         // of its device file /dev/nvidia<Minor>, the card's for an instance; -1 unknown
	Memory   roost.Bytes // what the device has, less what the driver keeps to itself
	NUMANode int         // the memory node that it is attached to; -1 unknown
	PCI      string      // "0000:07:00.0", the card's for an instance; "" unknown

	MIG        string // the profile of an instance, such as "3g.20gb"; "" for a whole card
	ParentUUID string // the UUID of the card that an instance is cut from; "" for a whole card
	// the GPU instance's number on its card, which its capability file is named after; 0
	// for a whole card
	Instance int
	Compute  int // the compute instance's number in that GPU instance; 0 for a whole card

	Capability string         // the CUDA compute capability, "8.0"; "" unknown
	Cores      []int          // the processor cores close to it, ascending; nil unknown
	Links      map[string]int // UUID of another card -> how close it is: higher is closer, 0 or absent is unknown
	Health     DeviceHealth
}

// DeviceHealth says whether a device may be given to a task, and if not, why.
type DeviceHealth struct {
	OK bool
	// a sentence without a full stop, as in "uncorrectable memory errors: reset it"; of a
	// device that is OK, a remark or ""
	Reason string
}

// HealthyDevice is the health of a device of which nothing bad is known.
func HealthyDevice() DeviceHealth { return DeviceHealth{OK: true} }

// Unhealthy is the health of a device that no task may be given, with the reason.
func Unhealthy(why string) DeviceHealth { return DeviceHealth{Reason: why} }

// Closeness of two cards, the values of Device.Links, after the levels of the NVML
// topology. A pair with NVLink counts as LinkNVLink plus the number of its links.
const (
	LinkUnknown = 0  // nothing known
	LinkSystem  = 1  // through the link between processors
	LinkNode    = 2  // through the host bridges of one memory node
	LinkBridge  = 3  // through one host bridge
	LinkMulti   = 4  // through several PCIe switches
	LinkSwitch  = 5  // through one PCIe switch
	LinkBoard   = 6  // on one board
	LinkNVLink  = 10 // at least: plus one for each NVLink between the two
)
