package gpu

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// testMachine returns a machine with cores cores on two NUMA nodes, and gpus cards of 40
// GiB. Half of the cards are on each node; cards of a node are linked closely.
func testMachine(cores, gpus int) MachineTopology {
	t := MachineTopology{Memory: roost.Bytes(cores) * 4 * roost.GiB}
	for i := range cores {
		t.Cores = append(t.Cores, CPUCore{i, i * 2 / cores})
	}
	for i := range gpus {
		d := Device{UUID: fmt.Sprintf("GPU-%d", i), Model: "A100", Index: i, Memory: 40 * roost.GiB,
			NUMANode: i * 2 / gpus, Health: HealthyDevice(), Links: map[string]int{}}
		for j := range gpus {
			if d.Links[fmt.Sprintf("GPU-%d", j)] = LinkSystem; j*2/gpus == d.NUMANode {
				d.Links[fmt.Sprintf("GPU-%d", j)] = LinkSwitch
			}
		}
		t.Devices = append(t.Devices, d)
	}
	return t
}

func cutMachine(t testing.TB, topology MachineTopology, l LayoutConfig) *FreeResources {
	t.Helper()
	units, err := CutUnits(topology, l)
	if err != nil {
		t.Fatal(err)
	}
	return NewFree(units, 100*roost.GiB)
}

func deviceRequest(cpus int, memory roost.Bytes, gpus int, share roost.Bytes) DeviceRequest {
	return DeviceRequest{Resources: roost.Resources{CPU: roost.MilliCPU(cpus) * 1000, Memory: memory, GPUs: gpus,
		GPUMemory: share}}
}

// placementText returns a placement as text.
func placementText(f *FreeResources, p Placement) string {
	var words []string
	for _, part := range p.Parts {
		words = append(words, fmt.Sprintf("%s %v %v", f.Unit(part.Unit).Name, part.CPU, part.Memory))
	}
	for _, s := range p.Shares {
		words = append(words, fmt.Sprintf("%s %v", f.devices[s.Device].UUID, s.Memory))
	}
	return strings.Join(words, ", ")
}

func TestPlacementTable(t *testing.T) {
	g := roost.GiB
	for _, c := range []struct {
		name   string
		layout LayoutConfig
		asks   []DeviceRequest
		want   []string
	}{
		{"a CPU task leaves pinned cores alone", LayoutConfig{Shape: PinnedLayout, CoresPerGPU: 1},
			[]DeviceRequest{deviceRequest(4, g, 0, 0), deviceRequest(1, g, 0, 0)},
			[]string{"cpu 4 1GiB", "only 0 of 1 cpus are free"}},
		{"a whole card with its own core", LayoutConfig{Shape: PinnedLayout, CoresPerGPU: 1},
			[]DeviceRequest{deviceRequest(1, g, 1, 0), deviceRequest(2, g, 1, 0)},
			[]string{"gpu0 1 1GiB, GPU-0 40GiB",
				"the units of the GPUs that are free have too little: the most is 4 cpus, 16GiB memory"}},
		{"two cards that are close", LayoutConfig{},
			[]DeviceRequest{deviceRequest(1, g, 1, 0), deviceRequest(1, g, 2, 0), deviceRequest(1, g, 2, 0)},
			[]string{"shared 1 1GiB, GPU-0 40GiB", "shared 1 1GiB, GPU-2 40GiB, GPU-3 40GiB",
				"only 1 of 2 gpus are free"}},
		{"single cards leave pairs whole", LayoutConfig{},
			[]DeviceRequest{deviceRequest(1, g, 1, 0), deviceRequest(1, g, 1, 0), deviceRequest(1, g, 2, 0)},
			[]string{"shared 1 1GiB, GPU-0 40GiB", "shared 1 1GiB, GPU-1 40GiB",
				"shared 1 1GiB, GPU-2 40GiB, GPU-3 40GiB"}},
		{"shares go to the fullest card", LayoutConfig{}, []DeviceRequest{deviceRequest(1, g, 1, 10*g),
			deviceRequest(1, g, 1, 20*g), deviceRequest(1, g, 1, 15*g), deviceRequest(1, g, 1, 10*g),
			deviceRequest(1, g, 1, 41*g)},
			[]string{"shared 1 1GiB, GPU-0 10GiB", "shared 1 1GiB, GPU-0 20GiB", "shared 1 1GiB, GPU-1 15GiB",
				"shared 1 1GiB, GPU-0 10GiB", "no GPU has 41GiB: the largest has 40GiB"}},
		{"several units for several cards", LayoutConfig{Shape: EvenLayout},
			[]DeviceRequest{deviceRequest(3, 6*g, 2, 0), deviceRequest(5, g, 2, 0), deviceRequest(4, g, 2, 0)},
			[]string{"gpu0 1.5 3GiB, gpu1 1.5 3GiB, GPU-0 40GiB, GPU-1 40GiB",
				"the units of the GPUs that are free have too little: the most is 2 cpus, 8GiB memory",
				"gpu2 2 512MiB, gpu3 2 512MiB, GPU-2 40GiB, GPU-3 40GiB"}},
		{"a card near the cores", LayoutConfig{CPUUnits: OnePerMemoryNode},
			[]DeviceRequest{deviceRequest(4, g, 0, 0), deviceRequest(1, g, 1, 0)},
			[]string{"numa0 4 1GiB", "numa1 1 1GiB, GPU-2 40GiB"}},
	} {
		f := cutMachine(t, testMachine(8, 4), c.layout)
		for i, r := range c.asks {
			p, err := f.PlaceOrExplain(r)
			got := placementText(f, p)
			if err == nil {
				f.TakePlacement(p)
			} else if got = strings.TrimPrefix(err.Error(), "limit reached: "); !errors.Is(err, roost.Exhausted) {
				t.Errorf("%s: %v is not of kind Exhausted", c.name, err)
			}
			if got != c.want[i] {
				t.Errorf("%s: request %d\n got %s\nwant %s", c.name, i, got, c.want[i])
			}
		}
	}
}

// TestStreamOverBatch checks what a stream task may overlap.
func TestStreamOverBatch(t *testing.T) {
	f := cutMachine(t, testMachine(4, 0), LayoutConfig{})
	take := func(r DeviceRequest, want bool) {
		t.Helper()
		p, err := f.PlaceOrExplain(r)
		if (err == nil) != want {
			t.Fatalf("%+v: %v", r, err)
		}
		if err == nil {
			f.TakePlacement(p)
		}
	}
	stream := deviceRequest(3, 6*roost.GiB, 0, 0)
	stream.Class = StreamClass
	take(deviceRequest(4, 4*roost.GiB, 0, 0), true)
	take(stream, true)  // over the CPU of the batch task
	take(stream, false) // not over the CPU of another stream task
	stream.CPU = 1000
	take(stream, true)
	if left := f.UnitFree(0, BatchClass); left.Memory != 0 {
		t.Errorf("%v memory is free, want none: it is never overlapped", left.Memory)
	}
}

// smallMachines returns machines small enough to try all placements.
func smallMachines(r *rand.Rand) (MachineTopology, LayoutConfig) {
	t := testMachine(2+r.IntN(8), r.IntN(5))
	for i := range t.Devices {
		d := &t.Devices[i]
		d.NUMANode = r.IntN(3) - 1
		d.Memory = roost.Bytes(1+r.IntN(4)) * 10 * roost.GiB
		for _, e := range t.Devices {
			d.Links[e.UUID] = r.IntN(4)
		}
	}
	return t, LayoutConfig{Shape: UnitLayout(r.IntN(3)), CPUUnits: r.IntN(4) - 1}
}

func randomRequest(r *rand.Rand) DeviceRequest {
	q := DeviceRequest{Resources: roost.Resources{CPU: roost.MilliCPU(r.IntN(3000)),
		Memory: roost.Bytes(r.Int64N(int64(6 * roost.GiB)))}, Class: AppClass(r.IntN(2))}
	if q.GPUs = max(r.IntN(5)-1, 0); q.GPUs > 0 && r.IntN(2) == 0 {
		q.GPUMemory = 1 + roost.Bytes(r.Int64N(int64(20*roost.GiB)))
	}
	q.Disk = roost.Bytes(r.Int64N(int64(8 * roost.GiB)))
	if r.IntN(2) == 0 {
		q.IO = roost.IORates{Disk: roost.ByteRate(r.IntN(100 << 20)), Network: roost.ByteRate(r.IntN(30 << 20))}
	}
	return q
}

// TestRandom takes and returns placements at random. Nothing is allocated twice, what is
// returned is free again, and a request is refused only if no placement fits. The ad and
// the saved placement have the same contents.
func TestRandom(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		topology, layout := smallMachines(r)
		units, err := CutUnits(topology, layout)
		if err != nil {
			continue // too few cores for the cards
		}
		f := NewFree(units, 50*roost.GiB)
		f.SetIOTotal(roost.IORates{Disk: 300 << 20, Network: 100 << 20})
		whole := f.Clone()
		var held []Placement
		for range 60 {
			switch r.IntN(4) {
			case 0:
				if n := len(held); n > 0 {
					i := r.IntN(n)
					f.ReturnPlacement(held[i])
					held = slices.Delete(held, i, i+1)
				}
			case 1:
				if n := len(f.devices); n > 0 && r.IntN(4) == 0 {
					h := HealthyDevice()
					if r.IntN(2) == 0 {
						h = Unhealthy("hot")
					}
					f.SetHealth(f.devices[r.IntN(n)].UUID, h)
				}
			default:
				q := randomRequest(r)
				p, err := f.PlaceOrExplain(q)
				if want := fitsExhaustively(f, q); want != (err == nil) {
					t.Fatalf("seed %d: %+v: %v, and by trying everything: %v", seed, q, err, want)
				}
				if err != nil {
					break
				}
				checkPlacement(t, f, q, p)
				f.TakePlacement(p)
				held = append(held, p)
			}
			sumHeld(t, f, held)
			roundTrip(t, f, held)
		}
		for _, p := range held {
			f.ReturnPlacement(p)
		}
		for i := range f.devices {
			f.devices[i].Health = HealthyDevice()
		}
		if !reflect.DeepEqual(f, whole) {
			t.Fatalf("seed %d: all was given back, and this is there:\n%+v\nwant\n%+v", seed, f, whole)
		}
	}
}

// fitsExhaustively tries every set of devices, and every unit for a request that needs
// CPU of a unit.
func fitsExhaustively(f *FreeResources, q DeviceRequest) bool {
	if q.Disk > f.disk || q.IO.Disk > f.io.Disk || q.IO.Network > f.io.Network {
		return false
	}
	for set := range 1 << len(f.devices) {
		n, ok, borrows, cpu, memory := 0, true, q.GPUs == 0, roost.MilliCPU(0), roost.Bytes(0)
		seen := map[int]bool{}
		for i, d := range f.devices {
			if set>>i&1 == 0 {
				continue
			}
			n++
			ok = ok && d.Health.OK && (q.GPUMemory > 0 && d.Free >= q.GPUMemory || q.GPUMemory == 0 && d.Tasks == 0)
			u := f.units[d.Unit]
			borrows = borrows || u.usesCPUOfOthers()
			if !seen[d.Unit] {
				cpu, memory = cpu+u.cpu[q.Class], memory+u.memory
			}
			seen[d.Unit] = true
		}
		if n != q.GPUs || !ok {
			continue
		}
		if !borrows && q.CPU <= cpu && q.Memory <= memory {
			return true
		}
		for _, u := range f.units {
			if borrows && !u.usesCPUOfOthers() && (len(u.Devices) == 0 || !f.cpuOnly) && q.CPU <= u.cpu[q.Class] &&
				q.Memory <= u.memory {
				return true
			}
		}
	}
	return false
}

// checkPlacement checks a placement against the request, and its closeness against all
// other sets.
func checkPlacement(t *testing.T, f *FreeResources, q DeviceRequest, p Placement) {
	t.Helper()
	var cpu roost.MilliCPU
	var memory roost.Bytes
	for _, part := range p.Parts {
		cpu, memory = cpu+part.CPU, memory+part.Memory
	}
	if cpu != q.CPU || memory != q.Memory || p.Disk != q.Disk || p.IO != q.IO || len(p.Shares) != q.GPUs ||
		!f.CanTake(p) {
		t.Fatalf("%+v is placed as %+v", q, p)
	}
	if q.GPUMemory > 0 || q.GPUs < 2 || len(f.linkRows) == 0 {
		return
	}
	closeness := func(set int) (n, sum int) {
		for i := range f.devices {
			if set>>i&1 == 1 {
				n++
				for j := range i {
					if set>>j&1 == 1 {
						sum += f.linkRows[i*len(f.devices)+j]
					}
				}
			}
		}
		return n, sum
	}
	mine := 0
	for _, s := range p.Shares {
		mine |= 1 << s.Device
	}
	_, got := closeness(mine)
	for set := range 1 << len(f.devices) {
		only := f.Clone()
		for i := range only.devices {
			if set>>i&1 == 0 {
				only.devices[i].Health = Unhealthy("not asked")
			}
		}
		if n, sum := closeness(set); n == q.GPUs && sum > got && fitsExhaustively(only, q) {
			t.Fatalf("%+v: cards %b of closeness %d, and %b have %d", q, mine, got, set, sum)
		}
	}
}

// sumHeld sums what is allocated, by another algorithm than FreeResources.
func sumHeld(t *testing.T, f *FreeResources, held []Placement) {
	t.Helper()
	devices, tasks := make([]roost.Bytes, len(f.devices)), make([]int, len(f.devices))
	for _, p := range held {
		for _, s := range p.Shares {
			devices[s.Device] += s.Memory
			if tasks[s.Device]++; s.Whole && tasks[s.Device] > 1 {
				t.Fatalf("card %d is shared and taken whole", s.Device)
			}
		}
	}
	io := f.io
	for _, p := range held {
		io.Disk, io.Network = io.Disk+p.IO.Disk, io.Network+p.IO.Network
	}
	if io != f.ioTotal {
		t.Fatalf("%v is free and held, and there is %v", io, f.ioTotal)
	}
	for i, d := range f.devices {
		if d.Free != d.Memory-devices[i] || d.Free < 0 || d.Tasks != tasks[i] {
			t.Fatalf("card %d of %v has %v free, and %v is held", i, d.Memory, d.Free, devices[i])
		}
	}
}

func roundTrip(t *testing.T, f *FreeResources, held []Placement) {
	t.Helper()
	ad := classad.New()
	ad.SetInt(roost.AttrTotalDisk, int64(f.diskSize/roost.KiB))
	ad.SetInt(roost.AttrDisk, int64(f.disk/roost.KiB))
	f.Describe(ad)
	again, err := classad.Parse(ad.String())
	if err != nil {
		t.Fatal(err)
	}
	g, err := ReadAd(again)
	if err != nil {
		t.Fatal(err)
	}
	g.disk, g.diskSize = f.disk, f.diskSize // the ad has KiB
	DescribeIORates(ad, f.ioTotal, f.ioTotal, roost.AttrTotalDiskIO, roost.AttrTotalNetwork)
	DescribeIORates(ad, f.io, f.ioTotal, roost.AttrDiskIO, roost.AttrNetwork)
	readIORates(g, ad)
	if d := f.io.Sub(g.io); g.ioTotal != f.ioTotal || d.IsNegative() || d.Disk >= 1024 || d.Network >= 1024 {
		t.Fatalf("%v of %v are read as %v of %v", f.io, f.ioTotal, g.io, g.ioTotal)
	}
	other := classad.New()
	other.Update(again)
	g.Describe(other)
	if got, want := other.String(), again.String(); got != want {
		t.Fatalf("the ad is read as another:\n%s\nwant\n%s", got, want)
	}
	empty, anew := classad.New(), classad.New()
	g.EmptyClone().Describe(empty)
	NewFree(g.Units(), g.diskSize).Describe(anew)
	if got, want := anew.String(), empty.String(); got != want {
		t.Fatalf("of its units another machine is made:\n%s\nwant\n%s", got, want)
	}
	for _, p := range held {
		q, err := f.Restore(f.Save(p))
		if err != nil || placementText(f, p) != placementText(f, q) || p.Class != q.Class || p.IO != q.IO {
			t.Fatalf("%+v is restored as %+v: %v", p, q, err)
		}
	}
	for i := range g.units {
		if a, b := g.UnitFree(i, BatchClass), f.UnitFree(i, BatchClass); a != b {
			t.Fatalf("unit %d has %v free by its ad, and %v", i, a, b)
		}
	}
}

// TestPlainAd reads the ad of a machine without units.
func TestPlainAd(t *testing.T) {
	ad, err := classad.Parse(
		`[Cpus = 2.5; TotalCpus = 4; Memory = 1000; TotalMemory = 2000; Disk = 10; TotalDisk = 20; Gpus = 1; TotalGpus = 2]`,
	)
	if err != nil {
		t.Fatal(err)
	}
	f, err := ReadAd(ad)
	if err != nil {
		t.Fatal(err)
	}
	want := roost.Resources{CPU: 2500, Memory: 1000 * roost.MiB, Disk: 10 * roost.KiB, GPUs: 1}
	if got := f.LeftForBatch(); got != want {
		t.Errorf("free: %v, want %v", got, want)
	}
	if _, err := f.PlaceOrExplain(deviceRequest(1, 0, 2, 0)); err == nil ||
		!strings.Contains(err.Error(), "only 1 of 2 gpus are free") {
		t.Errorf("two GPUs: %v", err)
	}
}

// TestFullQueueTakesNoBatch checks that a unit with waiting tasks gets no batch request,
// and which node queue a request may join.
func TestFullQueueTakesNoBatch(t *testing.T) {
	f := cutMachine(t, testMachine(8, 4), LayoutConfig{Shape: EvenLayout})
	for i := range f.Len() {
		f.SetQueue(i, UnitQueue{Length: 1, FreePlaces: 1, WaitSeconds: float64(10 - i)})
	}
	if _, err := f.PlaceOrExplain(deviceRequest(1, 0, 1, 0)); err == nil ||
		!strings.Contains(err.Error(), "others wait") {
		t.Errorf("a batch request is placed before those who wait: %v", err)
	}
	stream := deviceRequest(1, 0, 1, 0)
	stream.Class = StreamClass
	if _, err := f.PlaceOrExplain(stream); err != nil {
		t.Errorf("a stream request has to wait: %v", err)
	}
	if u, ok := f.QueueableUnit(deviceRequest(1, 0, 1, 0)); !ok || u != 3 {
		t.Errorf("unit %d, %v; want the one with the shortest wait, 3", u, ok)
	}
	if u, ok := f.QueueableUnit(deviceRequest(1, 0, 2, 0)); ok {
		t.Errorf("a request for two units waits in unit %d", u)
	}
}

func BenchmarkFind(b *testing.B) {
	for _, c := range []struct {
		name string
		f    *FreeResources
		r    DeviceRequest
	}{
		{"cpu", cutMachine(b, testMachine(64, 0), LayoutConfig{}), deviceRequest(4, roost.GiB, 0, 0)},
		{"full", cutMachine(b, testMachine(64, 0), LayoutConfig{}), deviceRequest(65, roost.GiB, 0, 0)},
		{"nogpu", cutMachine(b, testMachine(64, 0), LayoutConfig{}), deviceRequest(1, roost.GiB, 1, 0)},
		{"share", cutMachine(b, testMachine(64, 8), LayoutConfig{}), deviceRequest(4, roost.GiB, 1, roost.GiB)},
		{"4of8", cutMachine(b, testMachine(64, 8), LayoutConfig{Shape: EvenLayout}), deviceRequest(4, roost.GiB, 4, 0)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var p Placement
			for b.Loop() {
				c.f.FindPlacement(c.r, AnyUnit, &p)
			}
		})
	}
}
