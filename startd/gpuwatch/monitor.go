package gpuwatch

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/gpu/nvml"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/startd/slot"
)

// deviceLister is what knows the machine's GPUs: NVML, or a test.
type deviceLister interface {
	// Devices finds them, in the order of the PCI bus. One that was there once and is
	// gone comes as sick.
	Devices() ([]gpu.Device, error)
	// Usage measures those that Devices has found last.
	Usage() ([]gpu.DeviceUsage, error)
	// Wait waits at most that long for an error that the driver reports.
	Wait(limit time.Duration) []gpu.XIDEvent
	// Driver is the versions of the driver and of CUDA, "" unknown.
	Driver() (driver, cuda string)
	// Close lets it go.
	Close() error
}

// Monitor follows the GPUs that the startd hands out, and what the attempts on them use.
// Its methods may be called by several goroutines. A machine without GPUs has one too,
// with nothing in it.
type Monitor struct {
	log             *slog.Logger
	lister          deviceLister // nil: there are none
	config          config.GPUSettings
	changed         func()        // called when the health of a device is another
	deviceDir       string        // where device files are
	capabilityDir   string        // where the driver says which files the parts of a card have
	attemptAdded    chan struct{} // tells the watch that there is an attempt to be measured
	measureInterval time.Duration // between two measurements while attempts run

	mu              sync.Mutex
	devices         []gpu.Device
	deviceErrors    map[string]gpu.DeviceHealth  // by UUID: what the driver has reported since our start
	last            map[string]deviceError       // by UUID: what it has reported last
	usage           map[string]gpu.DeviceUsage   // by UUID
	attempts        map[slot.ClaimID]*gpuAttempt // attempts that run
	advertisedUsage map[string]gpu.DeviceUsage   // usage as last advertised
}

// deviceError is an error and when it came.
type deviceError struct {
	event gpu.XIDEvent
	at    roost.BootTime
}

// Open finds the machine's GPUs. No library and no driver is no error: then there are
// none. A library that was named in the node file and cannot be loaded is worth a
// warning.
func Open(own config.GPUSettings, log *slog.Logger, changed func()) *Monitor {
	if own.None {
		return newMonitor(nil, own, log, changed)
	}
	lib, err := nvml.Open(own.Library)
	if err != nil {
		if own.Library != "" {
			log.Warn("no GPUs: the library of the node file cannot be used", "library", own.Library, "err", err)
		} else {
			log.Info("no GPUs", "why", err)
		}
		return newMonitor(nil, own, log, changed)
	}
	c := newMonitor(lib, own, log, nil)
	c.refresh()
	c.changed = changed // from now on
	return c
}

func newMonitor(inv deviceLister, own config.GPUSettings, log *slog.Logger, changed func()) *Monitor {
	return &Monitor{
		log: log, lister: inv, config: own, changed: changed, deviceDir: "/dev",
		capabilityDir: "/proc/driver/nvidia/capabilities",
		attemptAdded:  make(chan struct{}, 1), measureInterval: time.Second,
		deviceErrors: map[string]gpu.DeviceHealth{}, last: map[string]deviceError{},
		usage: map[string]gpu.DeviceUsage{}, attempts: map[slot.ClaimID]*gpuAttempt{},
		advertisedUsage: map[string]gpu.DeviceUsage{},
	}
}

// Devices returns the devices that are handed out, with their health as it is now.
func (c *Monitor) Devices() []gpu.Device {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.devices)
}

// hasDevices reports whether the machine has GPUs: then tasks without one are kept from
// them.
func (c *Monitor) hasDevices() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.devices) > 0
}

// refresh looks for the devices anew, and tells whoever wants to know when the health of
// one is another.
func (c *Monitor) refresh() {
	found, err := c.lister.Devices()
	if err != nil {
		c.log.Error("GPUs cannot be listed", "err", err)
		return
	}
	c.mu.Lock()
	before := c.devices
	c.devices = c.configuredDevices(found)
	c.mu.Unlock()
	c.logChanges(before)
}

// configuredDevices are those of the devices that the node file names, with what the
// driver has reported of them. The caller holds the lock.
func (c *Monitor) configuredDevices(found []gpu.Device) []gpu.Device {
	var all []gpu.Device
	for _, d := range found {
		named := c.config.Use == nil || slices.ContainsFunc(c.config.Use, func(name string) bool {
			return name == d.UUID || name == d.ParentUUID || name == strconv.Itoa(d.Index)
		})
		if fault, sick := c.deviceErrors[d.UUID]; sick {
			d.Health = fault
		}
		if named {
			all = append(all, d)
		}
	}
	return all
}

// logChanges logs how the devices differ from those before, and passes it on.
func (c *Monitor) logChanges(before []gpu.Device) {
	differ := false
	for _, d := range c.Devices() {
		i := slices.IndexFunc(before, func(b gpu.Device) bool { return b.UUID == d.UUID })
		switch {
		case i < 0:
			c.log.Info("GPU", "index", d.Index, "uuid", d.UUID, "model", d.Model, "memory", d.Memory, "mig", d.MIG,
				"healthy", d.Health.OK, "why", d.Health.Reason)
		case before[i].Health != d.Health && !d.Health.OK:
			c.log.Error("GPU is sick: it gets no tasks", "index", d.Index, "uuid", d.UUID, "why", d.Health.Reason)
		case before[i].Health != d.Health:
			c.log.Info("GPU", "index", d.Index, "uuid", d.UUID, "healthy", d.Health.OK, "remark", d.Health.Reason)
		default:
			continue
		}
		differ = true
	}
	if differ && c.changed != nil {
		c.changed()
	}
}

// onDriverEvent takes in what the driver has reported. An error after which a device is
// sick, or may be, has the devices looked at anew.
func (c *Monitor) onDriverEvent(events []gpu.XIDEvent, now roost.BootTime) {
	again := false
	c.mu.Lock()
	for _, e := range events {
		fault, _ := e.Class()
		again = again || fault != gpu.ApplicationXID
		if e.UUID == "" {
			continue
		}
		c.last[e.UUID] = deviceError{e, now}
		before, known := c.deviceErrors[e.UUID]
		if !known {
			before = gpu.HealthyDevice()
		}
		if after := e.Health(before); !after.OK {
			c.deviceErrors[e.UUID] = after
		}
	}
	c.mu.Unlock()
	for _, e := range events {
		c.log.Warn("GPU reported an error", "uuid", e.UUID, "error", e)
	}
	if again {
		c.refresh()
	}
}

// Close lets the library go.
func (c *Monitor) Close() {
	if c.lister == nil {
		return
	}
	if err := c.lister.Close(); err != nil {
		c.log.Warn("GPUs", "err", err)
	}
}

// devicesOf returns the devices of shares, in their order. One that is not there any more
// is left out.
func (c *Monitor) devicesOf(shares []gpu.SavedShare) []gpu.Device {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []gpu.Device
	for _, s := range shares {
		if i := slices.IndexFunc(c.devices, func(d gpu.Device) bool { return d.UUID == s.UUID }); i >= 0 {
			all = append(all, c.devices[i])
		}
	}
	return all
}

// Environment returns what a program, and the libraries below it, read to find the GPUs
// that are its own. On a machine that has some, a task without is told that there are
// none: where devices are not kept apart by the kernel, that keeps it from taking the
// first it sees.
//
// NVIDIA_VISIBLE_DEVICES is for NVIDIA's container tools, where "void" stands for none
// and leaves everything as it is. The memory limit is a hint that the MPS daemon follows,
// where one runs (CUDA Multi-Process Service, "Memory limits"); its devices are numbered
// as the program sees them.
func (c *Monitor) Environment(shares []gpu.SavedShare) []string {
	if !c.hasDevices() {
		return nil
	}
	const order = "CUDA_DEVICE_ORDER=PCI_BUS_ID"
	if len(shares) == 0 {
		return []string{"CUDA_VISIBLE_DEVICES=", "NVIDIA_VISIBLE_DEVICES=void", order, "ROOST_GPUS="}
	}
	var uuids, limits, sizes []string
	for i, s := range shares {
		uuids = append(uuids, s.UUID)
		sizes = append(sizes, strconv.FormatInt(int64(s.Memory/roost.MiB), 10))
		if !s.Whole {
			limits = append(limits, fmt.Sprintf("%d=%dM", i, s.Memory/roost.MiB))
		}
	}
	all := strings.Join(uuids, ",")
	env := []string{
		"CUDA_VISIBLE_DEVICES=" + all, "NVIDIA_VISIBLE_DEVICES=" + all, order,
		"ROOST_GPUS=" + all, "ROOST_GPU_MEMORY=" + strings.Join(sizes, ","),
	}
	if limits != nil {
		env = append(env, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="+strings.Join(limits, ","))
	}
	return env
}

// DeviceNodes returns the device files that a task with those shares may open. They are
// the cards, what all of them have in common, and what opens the parts of a card. Nil on
// a machine without GPUs, which has nothing to keep apart; empty, and not nil, for a
// task without GPUs on one that has some.
func (c *Monitor) DeviceNodes(shares []gpu.SavedShare) []cgroup.DeviceNode {
	if !c.hasDevices() {
		return nil
	}
	nodes := []cgroup.DeviceNode{}
	add := func(path string) {
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
			return
		}
		n := cgroup.DeviceNode{Path: path, Major: unix.Major(st.Rdev), Minor: unix.Minor(st.Rdev)}
		if !slices.Contains(nodes, n) {
			nodes = append(nodes, n)
		}
	}
	devices := c.devicesOf(shares)
	for _, d := range devices {
		if d.Minor >= 0 {
			add(filepath.Join(c.deviceDir, "nvidia"+strconv.Itoa(d.Minor)))
		}
		if d.MIG != "" {
			instance := filepath.Join(c.capabilityDir, fmt.Sprintf("gpu%d/mig/gi%d", d.Minor, d.Instance))
			for _, access := range []string{instance + "/access", fmt.Sprintf("%s/ci%d/access", instance, d.Compute)} {
				if minor, err := readCapabilityMinor(access); err == nil {
					add(filepath.Join(c.deviceDir, "nvidia-caps", "nvidia-cap"+strconv.Itoa(minor)))
				}
			}
		}
	}
	if len(devices) > 0 {
		for _, name := range []string{"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"} {
			add(filepath.Join(c.deviceDir, name))
		}
		// over which the cards of several machines speak
		fabric, _ := filepath.Glob(filepath.Join(c.deviceDir, "infiniband", "*"))
		for _, path := range fabric {
			add(path)
		}
	}
	return nodes
}

// readCapabilityMinor reads which device file opens a part of a card
// (MIG User Guide, "Device nodes and capabilities").
func readCapabilityMinor(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if number, ok := strings.CutPrefix(line, "DeviceFileMinor:"); ok {
			return strconv.Atoi(strings.TrimSpace(number))
		}
	}
	return 0, errors.New("it names no device file")
}
