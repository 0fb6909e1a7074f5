package match

import (
	"reflect"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// claimedMachine is a machine of one unit with a GPU of 8 GiB. The claims hold 3 cores, 3
// GiB of memory and 6 GiB of the GPU.
func claimedMachine(t *testing.T, claims string) *Machine {
	t.Helper()
	units, err := gpu.CutUnits(gpu.MachineTopology{
		CPU: 4000, Memory: 8 * roost.GiB, Cores: []gpu.CPUCore{{ID: 0}, {ID: 1}, {ID: 2}, {ID: 3}},
		Devices: []gpu.Device{{UUID: "GPU-0", Memory: 8 * roost.GiB, Health: gpu.HealthyDevice()}},
	}, gpu.LayoutConfig{Shape: gpu.SharedLayout})
	if err != nil {
		t.Fatal(err)
	}
	f := gpu.NewFree(units, 10*roost.GiB)
	for _, r := range []roost.Resources{{CPU: 1500, Memory: 2 * roost.GiB, Disk: roost.GiB},
		{CPU: 1500, Memory: roost.GiB, GPUs: 1, GPUMemory: 6 * roost.GiB}} {
		p, err := f.PlaceOrExplain(gpu.DeviceRequest{Resources: r})
		if err != nil {
			t.Fatal(err)
		}
		f.TakePlacement(p)
	}
	ad := machineAd(t, "m", f.Total(), f.LeftForBatch(), "Claims = "+claims)
	f.Describe(ad)
	return NewMachine("m", 1, 1, ad)
}

const twoClaims = `{
	[Id = 4294967297; Owner = "ann"; Group = "physics"; Band = "free"; Cpus = 1.5; Memory = 2048; Disk = 1048576; Gpus = 0; Parts = {{0, 1.5, 2048}};
	 ConcurrencyLimits = "matlab"; Job = "7[0].s1"; Since = 1000000; Ends = 1003600; Checkpoint = true; Saved = 1000008],
	[Id = 4294967298; Owner = "bob"; Band = "batch"; Cpus = 1.5; Memory = 1024; Disk = 0; Gpus = 1; Parts = {{0, 1.5, 1024}}; Shares = {{0, 6144, false}}; Leaving = true]
}`

func TestClaimsAreRead(t *testing.T) {
	m := claimedMachine(t, twoClaims)
	want := []MachineClaim{
		{
			ID: 4294967297, Submitter: fairshare.Submitter{Group: "physics", Owner: "ann"}, Band: roost.FreeBand,
			Resources: roost.Resources{CPU: 1500, Memory: 2 * roost.GiB, Disk: roost.GiB},
			Placement: gpu.Placement{Disk: roost.GiB,
				Parts: []gpu.UnitPart{{Unit: 0, CPU: 1500, Memory: 2 * roost.GiB}}},
			TaskStarted: 1000000, WalltimeEnd: 1003600, Checkpointable: true, LastCheckpoint: 1000008, Job: "7[0].s1",
			Limits: "matlab",
		},
		{
			ID: 4294967298, Submitter: fairshare.Submitter{Owner: "bob"}, Band: roost.BatchBand,
			Resources: roost.Resources{CPU: 1500, Memory: roost.GiB, GPUs: 1},
			Placement: gpu.Placement{
				Parts:  []gpu.UnitPart{{Unit: 0, CPU: 1500, Memory: roost.GiB}},
				Shares: []gpu.DeviceShare{{Device: 0, Memory: 6 * roost.GiB}},
			},
			Vacating: true,
		},
	}
	if m.ClaimsUnknown != nil || !reflect.DeepEqual(m.Claims, want) {
		t.Errorf("claims %+v (%v)\nwant %+v", m.Claims, m.ClaimsUnknown, want)
	}
}

// TestUnreadableClaims checks that an invalid list counts as unknown claims, with the
// reason.
func TestUnreadableClaims(t *testing.T) {
	for _, c := range []struct{ claims, want string }{
		{`5`, "no list"},
		{`{5}`, "no ad"},
		{`{[Owner = "ann"; Band = "free"]}`, "no number"},
		{`{[Id = -1; Owner = "ann"; Band = "free"]}`, "no number"},
		{`{[Id = 1; Band = "free"]}`, "no owner"},
		{`{[Id = 1; Owner = "ann"]}`, "not a band"},
		{`{[Id = 1; Owner = "ann"; Band = "free"], [Id = 1; Owner = "ann"; Band = "free"]}`, "twice"},
		{`{[Id = 1; Owner = "ann"; Band = "free"; AppClass = "x"]}`, "not a class"},
		{`{[Id = 1; Owner = "ann"; Band = "free"; Parts = {1}]}`, "no amount"},
		{`{[Id = 1; Owner = "ann"; Band = "free"; Parts = 1]}`, "no list"},
		{`{[Id = 1; Owner = "ann"; Band = "free"; Parts = {{-1, 1, 1}}]}`, "no amount"},
		{`{[Id = 1; Owner = "ann"; Band = "free"; Parts = {{0, -1, 1}}]}`, "no amount"},
		{`{[Id = 1; Owner = "ann"; Band = "free"; Parts = {{0, 1.0E300, 1}}]}`, "no amount"},
		{`{[Id = 1; Owner = "ann"; Band = "free"; Parts = {{9, 1, 1}}]}`, "more than"},
		{`{[Id = 1; Owner = "ann"; Band = "free"; Parts = {{0, 4, 1}}]}`, "more than"},
		{`{[Id = 1; Owner = "ann"; Band = "free"; Shares = {{0, 7000, false}}]}`, "more than"},
		{`{[Id = 1; Owner = "ann"; Band = "free"; Shares = {{0, 1, false}}], [Id = 2; Owner = "ann"; Band = "free"; Shares = {{0, 1, false}}]}`, "more than"},
		{`{[Id = 1; Owner = "ann"; Band = "free"; Disk = 9999999]}`, "more than"},
	} {
		m := claimedMachine(t, c.claims)
		if m.ClaimsUnknown == nil || !strings.Contains(m.ClaimsUnknown.Error(), c.want) || m.Claims != nil {
			t.Errorf("%s: %v, want %q; %d claims", c.claims, m.ClaimsUnknown, c.want, len(m.Claims))
		}
		if m.Free.CPU != 1000 {
			t.Errorf("%s: %v is free", c.claims, m.Free)
		}
	}
	plain := NewMachine("m", 1, 1, machineAd(t, "m", roost.Resources{CPU: 2000}, roost.Resources{CPU: 1000},
		`Claims = {[Id = 1; Owner = "ann"; Band = "free"; Cpus = 2]}`))
	if plain.ClaimsUnknown == nil {
		t.Error("a claim of two cores where one is taken")
	}
}

// FuzzClaims checks that no list of claims makes the matcher panic.
func FuzzClaims(f *testing.F) {
	f.Add(twoClaims)
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := classad.Parse("[Claims = " + text + "]"); err == nil {
			claimedMachine(t, text)
		}
	})
}
