//go:build cgo

package nvml

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
)

// openMock opens a machine of NVIDIA's own mock. The mock describes cards, and panics at
// every question about their state; here such questions have the answer "not supported",
// which a test may change before it calls Devices. Functions that are not in have do not
// exist in the driver.
func openMock(t *testing.T, have []string, configs ...gpus.Config) (*Library, []*server.Device) {
	t.Helper()
	s, err := server.New(server.WithGPUs(configs...), server.WithDriverVersion("550.54.15"),
		server.WithCUDADriverVersion(12040))
	if err != nil {
		t.Fatal(err)
	}
	s.EventSetCreateFunc = func() (lib.EventSet, lib.Return) { return nil, lib.ERROR_NOT_SUPPORTED }
	s.LookupSymbolFunc = func(symbol string) error {
		for _, h := range have {
			if h == symbol {
				return nil
			}
		}
		return errors.New("no such symbol")
	}
	var devices []*server.Device
	for _, d := range s.Devices {
		c := d.(*server.Device)
		c.GetPciInfoFunc = func() (lib.PciInfo, lib.Return) { return address(c.PciBusID), lib.SUCCESS }
		c.GetTotalEccErrorsFunc = func(lib.MemoryErrorType, lib.EccCounterType) (uint64, lib.Return) {
			return 0, lib.ERROR_NOT_SUPPORTED
		}
		c.GetUtilizationRatesFunc = func() (lib.Utilization, lib.Return) {
			return lib.Utilization{}, lib.ERROR_NOT_SUPPORTED
		}
		c.GetTemperatureFunc = func(lib.TemperatureSensors) (uint32, lib.Return) { return 0, lib.ERROR_NOT_SUPPORTED }
		c.GetPowerUsageFunc = func() (uint32, lib.Return) { return 0, lib.ERROR_NOT_SUPPORTED }
		c.GetComputeRunningProcessesFunc = func() ([]lib.ProcessInfo, lib.Return) {
			return nil, lib.ERROR_NOT_SUPPORTED
		}
		devices = append(devices, c)
	}
	l, err := openLibrary(s)
	if err != nil {
		t.Fatal(err)
	}
	l.sysfs = t.TempDir()
	return l, devices
}

func address(name string) (p lib.PciInfo) {
	for i, c := range []byte("0000" + name) {
		p.BusId[i] = int8(c)
	}
	return p
}

// TestOldDriver uses a driver with only the oldest functions. The cards are found, their
// state is unknown, and nothing panics.
func TestOldDriver(t *testing.T) {
	l, _ := openMock(t, nil, gpus.Multiple(8, gpus.A100_SXM4_40GB)...)
	all := findDevices(t, l)
	if len(all) != 8 {
		t.Fatalf("%d devices, want 8", len(all))
	}
	for i, d := range all {
		if d.Index != i || d.Minor != i || d.NUMANode != -1 || d.Memory != 40*roost.GiB || d.Capability != "8.0" ||
			!d.Health.OK || d.Links != nil || d.MIG != "" {
			t.Errorf("device %d: %+v", i, d)
		}
	}
	usage, err := l.Usage()
	if err != nil || len(usage) != 8 || usage[3].BusyFraction != gpu.NotMeasured || usage[3].Processes != nil {
		t.Errorf("usage %+v, %v", usage, err)
	}
}

func TestMemoryNode(t *testing.T) {
	l, devices := openMock(t, []string{"nvmlDeviceGetMemoryAffinity"}, gpus.Multiple(3, gpus.H100_SXM5_80GB)...)
	set := func(i int, words ...uint) {
		devices[i].GetMemoryAffinityFunc = func(int, lib.AffinityScope) ([]uint, lib.Return) {
			return words, lib.SUCCESS
		}
	}
	set(0, 1)
	set(1, 2)
	set(2, 3) // two nodes: the right one is unknown
	dir := filepath.Join(l.sysfs, "0000:00:00.0")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "numa_node"), []byte("5\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{5, 1, -1} {
		if got := findDevices(t, l)[i].NUMANode; got != want {
			t.Errorf("device %d: node %d, want %d", i, got, want)
		}
	}
}

// TestNVLinks joins cards 0 and 1 by two NVLinks of their own, and 2 and 3 by a switch.
func TestNVLinks(t *testing.T) {
	have := []string{"nvmlDeviceGetNvLinkState", "nvmlDeviceGetNvLinkRemotePciInfo_v2",
		"nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetTopologyCommonAncestor"}
	l, devices := openMock(t, have, gpus.Multiple(4, gpus.A100_SXM4_80GB)...)
	for i, c := range devices {
		links := []int{4, 4, 3, 3}[i]
		c.GetNvLinkStateFunc = func(link int) (lib.EnableState, lib.Return) {
			if link >= links {
				return 0, lib.ERROR_INVALID_ARGUMENT
			}
			return lib.EnableState(min(link, 1) ^ 1 | link>>1&1), lib.SUCCESS // link 1 is off
		}
		c.GetNvLinkRemoteDeviceTypeFunc = func(int) (lib.IntNvLinkDeviceType, lib.Return) {
			if i >= 2 {
				return lib.NVLINK_DEVICE_TYPE_SWITCH, lib.SUCCESS
			}
			return lib.NVLINK_DEVICE_TYPE_GPU, lib.SUCCESS
		}
		c.GetNvLinkRemotePciInfoFunc = func(int) (lib.PciInfo, lib.Return) {
			return address(devices[1-i].PciBusID), lib.SUCCESS
		}
	}
	s := l.api.(*server.Server)
	s.DeviceGetTopologyCommonAncestorFunc = func(lib.Device, lib.Device) (lib.GpuTopologyLevel, lib.Return) {
		return lib.TOPOLOGY_SYSTEM, lib.SUCCESS
	}
	all := findDevices(t, l)
	tests := []struct {
		from, to, want int
	}{{0, 1, gpu.LinkNVLink + 3}, {2, 3, gpu.LinkNVLink + 2}, {0, 2, gpu.LinkSystem}, {1, 3, gpu.LinkSystem}}
	for _, test := range tests {
		a, b := all[test.from], all[test.to]
		if a.Links[b.UUID] != test.want || b.Links[a.UUID] != test.want {
			t.Errorf("%d and %d: %d and %d, want %d", test.from, test.to, a.Links[b.UUID], b.Links[a.UUID], test.want)
		}
	}
}

// TestMIGMode has an A30 in MIG mode whose driver's names contain no profile. The profile
// comes from the attributes.
func TestMIGMode(t *testing.T) {
	l, devices := openMock(t, []string{"nvmlDeviceGetMigMode"}, gpus.Multiple(2, gpus.A30_PCIE_24GB)...)
	devices[0].SetMigMode(lib.DEVICE_MIG_ENABLE)
	devices[0].GetMaxMigDeviceCountFunc = func() (int, lib.Return) { return 4, lib.SUCCESS }
	devices[0].GetMigDeviceHandleByIndexFunc = func(i int) (lib.Device, lib.Return) {
		if i != 1 && i != 3 {
			return nil, lib.ERROR_NOT_FOUND
		}
		m := &mock.Device{
			GetUUIDFunc: func() (string, lib.Return) {
				return []string{1: "MIG-1", 3: "MIG-3"}[i], lib.SUCCESS
			},
			GetNameFunc: func() (string, lib.Return) { return "", lib.ERROR_NOT_SUPPORTED },
			GetMemoryInfoFunc: func() (lib.Memory, lib.Return) {
				return lib.Memory{Total: 6 << 30}, lib.SUCCESS
			},
			GetGpuInstanceIdFunc:     func() (int, lib.Return) { return i + 2, lib.SUCCESS },
			GetComputeInstanceIdFunc: func() (int, lib.Return) { return 0, lib.SUCCESS },
			GetAttributesFunc: func() (lib.DeviceAttributes, lib.Return) {
				return lib.DeviceAttributes{GpuInstanceSliceCount: 1, ComputeInstanceSliceCount: 1, MemorySizeMB: 5836},
					lib.SUCCESS
			},
		}
		return m, lib.SUCCESS
	}
	all := findDevices(t, l)
	if len(all) != 3 || all[0].MIG != "1g.6gb" || all[1].Instance != 5 || all[1].ParentUUID != devices[0].UUID ||
		all[2].MIG != "" {
		t.Fatalf("got %+v", all)
	}
	devices[0].SetMigMode(lib.DEVICE_MIG_DISABLE)
	if all := findDevices(t, l); len(all) != 2 || !all[0].Health.OK {
		t.Errorf("after the card was made whole again: %+v", all)
	}
}

func TestNoLibrary(t *testing.T) {
	for _, ret := range []lib.Return{lib.ERROR_LIBRARY_NOT_FOUND, lib.ERROR_DRIVER_NOT_LOADED, lib.ERROR_UNKNOWN} {
		if _, err := openLibrary(&mock.Interface{InitFunc: func() lib.Return {
			return ret
		}}); !errors.Is(err, roost.Unavailable) {
			t.Errorf("%v: got %v, want it to be unavailable", ret, err)
		}
	}
}
