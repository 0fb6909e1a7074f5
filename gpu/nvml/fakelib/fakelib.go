// Package fakelib makes a fake of NVIDIA's management library, which serves a machine
// that a test describes. It is for tests only: with it a whole pool with GPUs runs on a
// machine without any, through the same loading and calling as with real ones.
//
//	devices := []fakelib.FakeDevice{{UUID: "GPU-1", Memory: 16 * roost.GiB}}
//	m := fakelib.New(t, fakelib.MachineDescription{Devices: devices})
//	… gpus { library = m.Library } …
//	m.Update(func(d *fakelib.MachineDescription) { d.Processes = … })
//
// A process is bound to the first such library that it loads. Tests that load several
// within one process call UseForAll, which lets all of them serve the same description.
package fakelib

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/roost-batch/roost"
)

//go:embed testdata/nvml.c
var source string

// FakeDevice is a whole card. A negative number is one that the card does not report.
type FakeDevice struct {
	UUID, Model, PCI, Capability     string
	Memory, UsedMemory               roost.Bytes
	Minor, MemoryNode                int
	FirstCore, Cores                 int // first core close to it, and number of cores
	BusyPercent, Celsius, Milliwatts int // BusyPercent in percent
	ECC                              int // number of uncorrectable errors
	Remap                            int // 0: no rows to remap, 1: some at the next reset, 2: remapping failed
	Retiring                         int // 1: pages wait to be retired
	Instances                        int // the most MIG instances; 0: MIG mode is off; negative: MIG is not supported
	Lost                             bool
}

// MIGInstance is a MIG instance. The model ends in " MIG " and the profile.
type MIGInstance struct {
	UUID, ParentUUID, Model string
	GI, CI                  int
	Memory, Used            roost.Bytes
}

// LinkLevel is the closeness of two cards, by NVML's topology levels. 10 is one switch,
// 50 the link between CPU sockets.
type LinkLevel struct {
	From, To string
	Level    int
}

// DeviceProcess is a process with memory on a card or an instance.
type DeviceProcess struct {
	DeviceUUID string
	PID        int
	Memory     roost.Bytes
	Busy       int // percent
}

// XIDEvent is an error that the driver reports; each is reported once.
type XIDEvent struct {
	DeviceUUID string
	Code       int
}

// MachineDescription is a machine as the fake library reports it.
type MachineDescription struct {
	Driver    string // default "550.54.15"
	CUDA      int    // 12040 is version 12.4, the default
	Devices   []FakeDevice
	Instances []MIGInstance
	Links     []LinkLevel
	Processes []DeviceProcess
	XIDs      []XIDEvent
}

// FakeMachine is a fake library and the machine that it serves.
type FakeMachine struct {
	Library string // path of the library to load
	file    string

	mu          sync.Mutex
	tb          testing.TB
	description MachineDescription
}

// New builds the library and writes the description. Without a C compiler, or in a build
// without cgo, the test is skipped.
func New(tb testing.TB, d MachineDescription) *FakeMachine {
	tb.Helper()
	if !cgo {
		tb.Skip("SKIP: built without cgo, nothing can load an NVML, not even a fake one")
	}
	compiler, err := exec.LookPath("cc")
	if err != nil {
		compiler, err = exec.LookPath("gcc")
	}
	if err != nil {
		tb.Skip("SKIP: neither cc nor gcc is installed, so there is no fake NVML to test with")
	}
	dir := tb.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	m := &FakeMachine{Library: filepath.Join(dir, "libnvidia-ml.so.1"), file: filepath.Join(dir, "machine"), tb: tb,
		description: d}
	build := exec.Command(compiler, "-shared", "-fPIC", "-O1", "-pthread", "-x", "c", "-", "-o", m.Library, "-ldl")
	build.Stdin = strings.NewReader(source)
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("fake NVML: %v\n%s", err, out)
	}
	m.Update(func(*MachineDescription) {})
	return m
}

// UseForAll makes every fake library in this process serve the machine, until the test
// ends.
func (m *FakeMachine) UseForAll(tb testing.TB) { tb.Setenv("ROOST_FAKE_NVML", m.file) }

// Update changes the machine. The next calls of the library see the change.
func (m *FakeMachine) Update(change func(d *MachineDescription)) {
	m.tb.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.description)
	next := m.file + ".next"
	if err := os.WriteFile(next, []byte(m.description.text()), 0o644); err != nil {
		m.tb.Fatal(err)
	}
	if err := os.Rename(next, m.file); err != nil {
		m.tb.Fatal(err)
	}
}

// text returns the description in the lines that the library reads.
func (d *MachineDescription) text() string {
	driver, cuda := d.Driver, d.CUDA
	if driver == "" {
		driver = "550.54.15"
	}
	if cuda == 0 {
		cuda = 12040
	}
	var b strings.Builder
	fmt.Fprintf(&b, "system driver=%s cuda=%d\n", driver, cuda)
	for _, c := range d.Devices {
		lost := 0
		if c.Lost {
			lost = 1
		}
		fmt.Fprintf(&b, "card uuid=%s memory=%d used=%d minor=%d node=%d core=%d cores=%d busy=%d celsius=%d "+
			"milliwatts=%d ecc=%d remap=%d retiring=%d most=%d lost=%d",
			c.UUID, c.Memory, c.UsedMemory, c.Minor, c.MemoryNode, c.FirstCore, c.Cores, c.BusyPercent, c.Celsius,
			c.Milliwatts, c.ECC, c.Remap, c.Retiring, c.Instances, lost)
		optionalText(&b, "pci", c.PCI)
		optionalText(&b, "capability", c.Capability)
		optionalText(&b, "model", c.Model)
		b.WriteByte('\n')
	}
	for _, i := range d.Instances {
		fmt.Fprintf(&b, "instance uuid=%s card=%s gi=%d ci=%d memory=%d used=%d", i.UUID, i.ParentUUID, i.GI, i.CI,
			i.Memory, i.Used)
		optionalText(&b, "model", i.Model)
		b.WriteByte('\n')
	}
	for _, l := range d.Links {
		fmt.Fprintf(&b, "link from=%s to=%s level=%d\n", l.From, l.To, l.Level)
	}
	for _, p := range d.Processes {
		fmt.Fprintf(&b, "process card=%s pid=%d memory=%d busy=%d\n", p.DeviceUUID, p.PID, p.Memory, p.Busy)
	}
	for _, x := range d.XIDs {
		fmt.Fprintf(&b, "xid card=%s code=%d\n", x.DeviceUUID, x.Code)
	}
	return b.String()
}

func optionalText(b *strings.Builder, name, value string) {
	if value != "" {
		fmt.Fprintf(b, " %s=%s", name, value)
	}
}
