//go:build cgo

package nvml

import (
	"reflect"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/gpu/nvml/fakelib"
)

func testMachine(t *testing.T, d fakelib.MachineDescription) (*fakelib.FakeMachine, *Library) {
	t.Helper()
	m := fakelib.New(t, d)
	m.UseForAll(t)
	l, err := Open(m.Library)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return m, l
}

func findDevices(t *testing.T, l *Library) []gpu.Device {
	t.Helper()
	all, err := l.Devices()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func twoDevices() fakelib.MachineDescription {
	return fakelib.MachineDescription{
		Devices: []fakelib.FakeDevice{
			{UUID: "GPU-a", Model: "NVIDIA Test 16GB", PCI: "00000000:07:00.0", Capability: "8.0",
				Memory: 16 * roost.GiB, UsedMemory: roost.GiB,
				MemoryNode: 0, FirstCore: 0, Cores: 2, BusyPercent: 40, Celsius: 50, Milliwatts: 71500},
			{UUID: "GPU-b", Model: "NVIDIA Test 16GB", PCI: "00000000:0F:00.0", Capability: "8.0",
				Memory: 16 * roost.GiB,
				Minor:  1, MemoryNode: 1, FirstCore: 2, Cores: 2, BusyPercent: -1, Celsius: -1, Milliwatts: -1, ECC: -1,
				Remap: -1, Retiring: -1, Instances: -1},
		},
		Links: []fakelib.LinkLevel{{From: "GPU-a", To: "GPU-b", Level: 30}},
		Processes: []fakelib.DeviceProcess{{DeviceUUID: "GPU-a", PID: 20, Memory: 700 * roost.MiB, Busy: 30},
			{DeviceUUID: "GPU-a", PID: 10, Memory: 300 * roost.MiB, Busy: 10}},
	}
}

// TestLoaded uses the path of a real library: loaded at run time, called through the
// binding.
func TestLoaded(t *testing.T) {
	m, l := testMachine(t, twoDevices())
	if driver, cuda := l.Driver(); driver != "550.54.15" || cuda != "12.4" {
		t.Errorf("driver %q, CUDA %q, want 550.54.15 and 12.4", driver, cuda)
	}
	want := []gpu.Device{
		{UUID: "GPU-a", Model: "NVIDIA Test 16GB", PCI: "0000:07:00.0", Capability: "8.0", Memory: 16 * roost.GiB,
			Cores: []int{0, 1},
			Links: map[string]int{"GPU-b": gpu.LinkBridge}, Health: gpu.HealthyDevice()},
		{UUID: "GPU-b", Model: "NVIDIA Test 16GB", PCI: "0000:0f:00.0", Capability: "8.0", Memory: 16 * roost.GiB,
			Index: 1, Minor: 1, NUMANode: 1,
			Cores: []int{2, 3}, Links: map[string]int{"GPU-a": gpu.LinkBridge}, Health: gpu.HealthyDevice()},
	}
	if got := findDevices(t, l); !reflect.DeepEqual(got, want) {
		t.Fatalf("got\n%+v\nwant\n%+v", got, want)
	}
	usage, err := l.Usage()
	if err != nil {
		t.Fatal(err)
	}
	none := float64(gpu.NotMeasured)
	wantUsage := []gpu.DeviceUsage{
		{UUID: "GPU-a", BusyFraction: 0.4, Memory: roost.GiB, Temperature: 50, Power: 71.5,
			Processes: []gpu.DeviceProcess{{PID: 10, Memory: 300 * roost.MiB, Busy: 0.1},
				{PID: 20, Memory: 700 * roost.MiB, Busy: 0.3}}},
		{UUID: "GPU-b", BusyFraction: none, Memory: 0, Temperature: gpu.NotMeasured, Power: none},
	}
	if !reflect.DeepEqual(usage, wantUsage) {
		t.Errorf("usage: got\n%+v\nwant\n%+v", usage, wantUsage)
	}
	m.Update(func(d *fakelib.MachineDescription) { d.Devices[1].Lost = true })
	lost := findDevices(t, l)
	if len(lost) != 2 || lost[1].Health.OK || !lost[0].Health.OK {
		t.Errorf("after a card was lost: %+v", lost)
	}
	if usage, _ := l.Usage(); len(usage) != 1 {
		t.Errorf("a lost card is measured: %+v", usage)
	}
}

func TestEvents(t *testing.T) {
	m, l := testMachine(t, twoDevices())
	findDevices(t, l)
	if got := l.Wait(10 * time.Millisecond); got != nil {
		t.Errorf("news of nothing: %v", got)
	}
	m.Update(func(d *fakelib.MachineDescription) {
		d.XIDs = append(d.XIDs, fakelib.XIDEvent{DeviceUUID: "GPU-b", Code: 79})
	})
	want := []gpu.XIDEvent{{UUID: "GPU-b", XID: 79}}
	if got := l.Wait(10 * time.Second); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestInstances(t *testing.T) {
	_, l := testMachine(t, fakelib.MachineDescription{
		Devices: []fakelib.FakeDevice{
			{UUID: "GPU-a", Model: "NVIDIA A100", PCI: "00000000:07:00.0", Memory: 40 * roost.GiB, Minor: 3,
				Instances: 7},
			{UUID: "GPU-b", Model: "NVIDIA A100", PCI: "00000000:08:00.0", Memory: 40 * roost.GiB, Minor: 4},
		},
		Instances: []fakelib.MIGInstance{
			{UUID: "MIG-2", ParentUUID: "GPU-a", Model: "NVIDIA A100 MIG 1g.5gb", GI: 9, Memory: 5 * roost.GiB},
			{UUID: "MIG-1", ParentUUID: "GPU-a", Model: "NVIDIA A100 MIG 3g.20gb", GI: 1, Memory: 20 * roost.GiB},
		},
		Processes: []fakelib.DeviceProcess{{DeviceUUID: "MIG-1", PID: 7, Memory: roost.GiB}},
		Links:     []fakelib.LinkLevel{{From: "GPU-a", To: "GPU-b", Level: 10}},
	})
	got := findDevices(t, l)
	if len(got) != 3 || got[0].UUID != "MIG-1" || got[1].UUID != "MIG-2" || got[2].UUID != "GPU-b" {
		t.Fatalf("got %+v, want the two instances and the card that is whole", got)
	}
	d := got[0]
	if d.MIG != "3g.20gb" || d.ParentUUID != "GPU-a" || d.Instance != 1 || d.Minor != 3 || d.Memory != 20*roost.GiB ||
		d.Links != nil {
		t.Errorf("instance %+v", d)
	}
	usage, _ := l.Usage()
	if len(usage) != 3 || len(usage[0].Processes) != 1 || usage[0].Processes[0].Memory != roost.GiB ||
		usage[0].BusyFraction != gpu.NotMeasured {
		t.Errorf("usage %+v", usage)
	}
}

func TestHealth(t *testing.T) {
	tests := []struct {
		name string
		card fakelib.FakeDevice
		ok   bool
		says bool
	}{
		{"well", fakelib.FakeDevice{}, true, false},
		{"a row to be remapped", fakelib.FakeDevice{Remap: 1, ECC: 2}, true, true},
		{"remapping failed", fakelib.FakeDevice{Remap: 2}, false, true},
		{"errors before there was remapping", fakelib.FakeDevice{Remap: -1, ECC: 1}, false, true},
		{"pages to be retired", fakelib.FakeDevice{Remap: -1, Retiring: 1}, false, true},
		{"nothing known", fakelib.FakeDevice{Remap: -1, ECC: -1, Retiring: -1}, true, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.card.UUID = "GPU-a"
			_, l := testMachine(t, fakelib.MachineDescription{Devices: []fakelib.FakeDevice{test.card}})
			if got := findDevices(t, l)[0].Health; got.OK != test.ok || (got.Reason != "") != test.says {
				t.Errorf("got %+v, want OK %v and a word %v", got, test.ok, test.says)
			}
		})
	}
}
