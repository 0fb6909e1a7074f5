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

// machine has cores cores on two memory nodes, and gpus cards of 40 GiB, half on each node; cards of a node are linked closely.
func machine(cores, gpus int) Topology {
	t := Topology{Memory: roost.Bytes(cores) * 4 * roost.GiB}
	for i := range cores {
		t.Cores = append(t.Cores, Core{i, i * 2 / cores})
	}
	for i := range gpus {
		d := Device{UUID: fmt.Sprintf("GPU-%d", i), Model: "A100", Index: i, Memory: 40 * roost.GiB, NUMA: i * 2 / gpus, Health: Healthy(), Links: map[string]int{}}
		for j := range gpus {
			if d.Links[fmt.Sprintf("GPU-%d", j)] = LinkSystem; j*2/gpus == d.NUMA {
				d.Links[fmt.Sprintf("GPU-%d", j)] = LinkSwitch
			}
		}
		t.Devices = append(t.Devices, d)
	}
	return t
}

func cut(t testing.TB, topology Topology, l Layout) *Free {
	t.Helper()
	units, err := Cut(topology, l)
	if err != nil {
		t.Fatal(err)
	}
	return NewFree(units, 100*roost.GiB)
}

func ask(cpus int, memory roost.Bytes, gpus int, share roost.Bytes) Request {
	return Request{Resources: roost.Resources{CPU: roost.MilliCPU(cpus) * 1000, Memory: memory, GPUs: gpus, GPUMemory: share}}
}

// where is a placement in words.
func where(f *Free, p Placement) string {
	var words []string
	for _, part := range p.Parts {
		words = append(words, fmt.Sprintf("%s %v %v", f.Unit(part.Unit).Name, part.CPU, part.Memory))
	}
	for _, s := range p.Shares {
		words = append(words, fmt.Sprintf("%s %v", f.devices[s.Device].UUID, s.Memory))
	}
	return strings.Join(words, ", ")
}

func TestWhere(t *testing.T) {
	g := roost.GiB
	for _, c := range []struct {
		name   string
		layout Layout
		asks   []Request
		want   []string
	}{
		{"a CPU task leaves pinned cores alone", Layout{Shape: Pinned, CoresPerGPU: 1}, []Request{ask(4, g, 0, 0), ask(1, g, 0, 0)},
			[]string{"cpu 4 1GiB", "only 0 of 1 cpus are free"}},
		{"a whole card with its own core", Layout{Shape: Pinned, CoresPerGPU: 1}, []Request{ask(1, g, 1, 0), ask(2, g, 1, 0)},
			[]string{"gpu0 1 1GiB, GPU-0 40GiB", "the units of the GPUs that are free have too little: the most is 4 cpus, 16GiB memory"}},
		{"two cards that are close", Layout{}, []Request{ask(1, g, 1, 0), ask(1, g, 2, 0), ask(1, g, 2, 0)},
			[]string{"shared 1 1GiB, GPU-0 40GiB", "shared 1 1GiB, GPU-2 40GiB, GPU-3 40GiB", "only 1 of 2 gpus are free"}},
		{"single cards leave pairs whole", Layout{}, []Request{ask(1, g, 1, 0), ask(1, g, 1, 0), ask(1, g, 2, 0)},
			[]string{"shared 1 1GiB, GPU-0 40GiB", "shared 1 1GiB, GPU-1 40GiB", "shared 1 1GiB, GPU-2 40GiB, GPU-3 40GiB"}},
		{"shares go to the fullest card", Layout{}, []Request{ask(1, g, 1, 10*g), ask(1, g, 1, 20*g), ask(1, g, 1, 15*g), ask(1, g, 1, 10*g), ask(1, g, 1, 41*g)},
			[]string{"shared 1 1GiB, GPU-0 10GiB", "shared 1 1GiB, GPU-0 20GiB", "shared 1 1GiB, GPU-1 15GiB", "shared 1 1GiB, GPU-0 10GiB", "no GPU has 41GiB: the largest has 40GiB"}},
		{"several units for several cards", Layout{Shape: Even}, []Request{ask(3, 6*g, 2, 0), ask(5, g, 2, 0), ask(4, g, 2, 0)},
			[]string{"gpu0 1.5 3GiB, gpu1 1.5 3GiB, GPU-0 40GiB, GPU-1 40GiB", "the units of the GPUs that are free have too little: the most is 2 cpus, 8GiB memory",
				"gpu2 2 512MiB, gpu3 2 512MiB, GPU-2 40GiB, GPU-3 40GiB"}},
		{"a card near the cores", Layout{CPUUnits: PerNode}, []Request{ask(4, g, 0, 0), ask(1, g, 1, 0)},
			[]string{"numa0 4 1GiB", "numa1 1 1GiB, GPU-2 40GiB"}},
	} {
		f := cut(t, machine(8, 4), c.layout)
		for i, r := range c.asks {
			p, err := f.Place(r)
			got := where(f, p)
			if err == nil {
				f.Take(p)
			} else if got = strings.TrimPrefix(err.Error(), "limit reached: "); !errors.Is(err, roost.Exhausted) {
				t.Errorf("%s: %v is not of kind Exhausted", c.name, err)
			}
			if got != c.want[i] {
				t.Errorf("%s: request %d\n got %s\nwant %s", c.name, i, got, c.want[i])
			}
		}
	}
}

// TestStreamOverBatch shows what a stream task may overlap, and what not.
func TestStreamOverBatch(t *testing.T) {
	f := cut(t, machine(4, 0), Layout{})
	take := func(r Request, want bool) {
		t.Helper()
		p, err := f.Place(r)
		if (err == nil) != want {
			t.Fatalf("%+v: %v", r, err)
		}
		if err == nil {
			f.Take(p)
		}
	}
	stream := ask(3, 6*roost.GiB, 0, 0)
	stream.Class = Stream
	take(ask(4, 4*roost.GiB, 0, 0), true)
	take(stream, true)  // over the processor time of the batch task
	take(stream, false) // not over that of another stream task
	stream.CPU = 1000
	take(stream, true)
	if left := f.UnitFree(0, Batch); left.Memory != 0 {
		t.Errorf("%v memory is free, want none: it is never overlapped", left.Memory)
	}
}

// shapes are machines small enough to try everything.
func shapes(r *rand.Rand) (Topology, Layout) {
	t := machine(2+r.IntN(8), r.IntN(5))
	for i := range t.Devices {
		d := &t.Devices[i]
		d.NUMA = r.IntN(3) - 1
		d.Memory = roost.Bytes(1+r.IntN(4)) * 10 * roost.GiB
		for _, e := range t.Devices {
			d.Links[e.UUID] = r.IntN(4)
		}
	}
	return t, Layout{Shape: Shape(r.IntN(3)), CPUUnits: r.IntN(4) - 1}
}

func randomRequest(r *rand.Rand) Request {
	q := Request{Resources: roost.Resources{CPU: roost.MilliCPU(r.IntN(3000)), Memory: roost.Bytes(r.Int64N(int64(6 * roost.GiB)))}, Class: Class(r.IntN(2))}
	if q.GPUs = max(r.IntN(5)-1, 0); q.GPUs > 0 && r.IntN(2) == 0 {
		q.GPUMemory = 1 + roost.Bytes(r.Int64N(int64(20*roost.GiB)))
	}
	q.Disk = roost.Bytes(r.Int64N(int64(8 * roost.GiB)))
	return q
}

// TestRandom takes and gives back at random. Nothing is ever handed out twice, what is given back is there again, the ad and the saved placement
// say the same, and a request is refused only when no placement whatever would do.
func TestRandom(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		topology, layout := shapes(r)
		units, err := Cut(topology, layout)
		if err != nil {
			continue // too few cores for the cards
		}
		f := NewFree(units, 50*roost.GiB)
		whole := f.Clone()
		var held []Placement
		for range 60 {
			switch r.IntN(4) {
			case 0:
				if n := len(held); n > 0 {
					i := r.IntN(n)
					f.Give(held[i])
					held = slices.Delete(held, i, i+1)
				}
			case 1:
				if n := len(f.devices); n > 0 && r.IntN(4) == 0 {
					h := Healthy()
					if r.IntN(2) == 0 {
						h = Sick("hot")
					}
					f.SetHealth(f.devices[r.IntN(n)].UUID, h)
				}
			default:
				q := randomRequest(r)
				p, err := f.Place(q)
				if want := possible(f, q); want != (err == nil) {
					t.Fatalf("seed %d: %+v: %v, and by trying everything: %v", seed, q, err, want)
				}
				if err != nil {
					break
				}
				adequate(t, f, q, p)
				f.Take(p)
				held = append(held, p)
			}
			sums(t, f, held)
			roundTrip(t, f, held)
		}
		for _, p := range held {
			f.Give(p)
		}
		for i := range f.devices {
			f.devices[i].Health = Healthy()
		}
		if !reflect.DeepEqual(f, whole) {
			t.Fatalf("seed %d: all was given back, and this is there:\n%+v\nwant\n%+v", seed, f, whole)
		}
	}
}

// possible tries every set of devices, and every unit for a request without devices or with devices that borrow.
func possible(f *Free, q Request) bool {
	if q.Disk > f.disk {
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
			borrows = borrows || u.borrows()
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
			if borrows && !u.borrows() && (len(u.Devices) == 0 || !f.cpuOnly) && q.CPU <= u.cpu[q.Class] && q.Memory <= u.memory {
				return true
			}
		}
	}
	return false
}

// adequate holds a placement against the request, and against all others by closeness.
func adequate(t *testing.T, f *Free, q Request, p Placement) {
	t.Helper()
	var cpu roost.MilliCPU
	var memory roost.Bytes
	for _, part := range p.Parts {
		cpu, memory = cpu+part.CPU, memory+part.Memory
	}
	if cpu != q.CPU || memory != q.Memory || p.Disk != q.Disk || len(p.Shares) != q.GPUs || !f.Fits(p) {
		t.Fatalf("%+v is placed as %+v", q, p)
	}
	if q.GPUMemory > 0 || q.GPUs < 2 || len(f.near) == 0 {
		return
	}
	closeness := func(set int) (n, sum int) {
		for i := range f.devices {
			if set>>i&1 == 1 {
				n++
				for j := range i {
					if set>>j&1 == 1 {
						sum += f.near[i*len(f.devices)+j]
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
				only.devices[i].Health = Sick("not asked")
			}
		}
		if n, sum := closeness(set); n == q.GPUs && sum > got && possible(only, q) {
			t.Fatalf("%+v: cards %b of closeness %d, and %b have %d", q, mine, got, set, sum)
		}
	}
}

// sums counts what is held, by another way than Free does.
func sums(t *testing.T, f *Free, held []Placement) {
	t.Helper()
	cards, tasks := make([]roost.Bytes, len(f.devices)), make([]int, len(f.devices))
	for _, p := range held {
		for _, s := range p.Shares {
			cards[s.Device] += s.Memory
			if tasks[s.Device]++; s.Whole && tasks[s.Device] > 1 {
				t.Fatalf("card %d is shared and taken whole", s.Device)
			}
		}
	}
	for i, d := range f.devices {
		if d.Free != d.Memory-cards[i] || d.Free < 0 || d.Tasks != tasks[i] {
			t.Fatalf("card %d of %v has %v free, and %v is held", i, d.Memory, d.Free, cards[i])
		}
	}
}

func roundTrip(t *testing.T, f *Free, held []Placement) {
	t.Helper()
	ad := classad.New()
	ad.SetInt(roost.AttrTotalDisk, int64(f.size/roost.KiB))
	ad.SetInt(roost.AttrDisk, int64(f.disk/roost.KiB))
	f.Describe(ad)
	again, err := classad.Parse(ad.String())
	if err != nil {
		t.Fatal(err)
	}
	g, err := Read(again)
	if err != nil {
		t.Fatal(err)
	}
	g.disk, g.size = f.disk, f.size // in KiB in the ad
	other := classad.New()
	other.Update(again)
	g.Describe(other)
	if got, want := other.String(), again.String(); got != want {
		t.Fatalf("the ad is read as another:\n%s\nwant\n%s", got, want)
	}
	empty, anew := classad.New(), classad.New()
	g.Empty().Describe(empty)
	NewFree(g.Units(), g.size).Describe(anew)
	if got, want := anew.String(), empty.String(); got != want {
		t.Fatalf("of its units another machine is made:\n%s\nwant\n%s", got, want)
	}
	for _, p := range held {
		q, err := f.Restore(f.Save(p))
		if err != nil || where(f, p) != where(f, q) || p.Class != q.Class {
			t.Fatalf("%+v is restored as %+v: %v", p, q, err)
		}
	}
	for i := range g.units {
		if a, b := g.UnitFree(i, Batch), f.UnitFree(i, Batch); a != b {
			t.Fatalf("unit %d has %v free by its ad, and %v", i, a, b)
		}
	}
}

// TestPlainAd reads the ad of a machine that knows nothing of units.
func TestPlainAd(t *testing.T) {
	ad, err := classad.Parse(`[Cpus = 2.5; TotalCpus = 4; Memory = 1000; TotalMemory = 2000; Disk = 10; TotalDisk = 20; Gpus = 1; TotalGpus = 2]`)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Read(ad)
	if err != nil {
		t.Fatal(err)
	}
	want := roost.Resources{CPU: 2500, Memory: 1000 * roost.MiB, Disk: 10 * roost.KiB, GPUs: 1}
	if got := f.Left(); got != want {
		t.Errorf("free: %v, want %v", got, want)
	}
	if _, err := f.Place(ask(1, 0, 2, 0)); err == nil || !strings.Contains(err.Error(), "only 1 of 2 gpus are free") {
		t.Errorf("two GPUs: %v", err)
	}
}

// TestShut shows that a unit for which others wait takes no batch request, and which queue one may join.
func TestShut(t *testing.T) {
	f := cut(t, machine(8, 4), Layout{Shape: Even})
	for i := range f.Len() {
		f.SetQueue(i, Queue{Length: 1, Room: 1, Wait: float64(10 - i)})
	}
	if _, err := f.Place(ask(1, 0, 1, 0)); err == nil || !strings.Contains(err.Error(), "others wait") {
		t.Errorf("a batch request is placed before those who wait: %v", err)
	}
	stream := ask(1, 0, 1, 0)
	stream.Class = Stream
	if _, err := f.Place(stream); err != nil {
		t.Errorf("a stream request has to wait: %v", err)
	}
	if u, ok := f.CanWait(ask(1, 0, 1, 0)); !ok || u != 3 {
		t.Errorf("unit %d, %v; want the one with the shortest wait, 3", u, ok)
	}
	if u, ok := f.CanWait(ask(1, 0, 2, 0)); ok {
		t.Errorf("a request for two units waits in unit %d", u)
	}
}

func BenchmarkFind(b *testing.B) {
	for _, c := range []struct {
		name string
		f    *Free
		r    Request
	}{
		{"cpu", cut(b, machine(64, 0), Layout{}), ask(4, roost.GiB, 0, 0)},
		{"full", cut(b, machine(64, 0), Layout{}), ask(65, roost.GiB, 0, 0)},
		{"nogpu", cut(b, machine(64, 0), Layout{}), ask(1, roost.GiB, 1, 0)},
		{"share", cut(b, machine(64, 8), Layout{}), ask(4, roost.GiB, 1, roost.GiB)},
		{"4of8", cut(b, machine(64, 8), Layout{Shape: Even}), ask(4, roost.GiB, 4, 0)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var p Placement
			for b.Loop() {
				c.f.Find(c.r, Anywhere, &p)
			}
		})
	}
}
