package chunktracker

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// check counts everything anew.
func (t *Tracker) check(tb testing.TB) {
	tb.Helper()
	uploads := map[*machine]int{}
	setBytes := int64(0)
	for _, b := range t.blobs {
		setBytes += b.size()
		copies, coming := make([]int32, b.chunks), make([]int32, b.chunks)
		for k, m := range b.members {
			setBytes += m.accountedSize
			if m.at != k || m.rack.members[m.atInRack] != m || m.gone || m.machine.members[b] != m {
				tb.Fatalf("member %v is not where it says", m.machine.id)
			}
			if len(m.leases) > t.options.MaxStreams {
				tb.Fatalf("%v has %d sources", m.machine.id, len(m.leases))
			}
			for i := range b.chunks {
				if m.serves && m.have.Has(i) {
					copies[i]++
				}
			}
			for _, l := range m.leases {
				uploads[l.from]++
				for _, i := range l.chunks {
					coming[i]++
				}
			}
		}
		if !slices.Equal(copies, b.all.copies) || !slices.Equal(coming, b.all.coming) {
			tb.Fatalf("counts of %s: %v, %v, want %v, %v", b.digest, b.all.copies, b.all.coming, copies, coming)
		}
	}
	for _, m := range t.machines {
		if m.uploads != uploads[m] || m.uploads > t.options.MaxUploads {
			tb.Fatalf("%v serves %d, want %d", m.id, m.uploads, uploads[m])
		}
	}
	if t.seed.uploads != uploads[&t.seed] || t.seed.uploads > t.options.MaxSeedUploads || setBytes != t.setBytes {
		tb.Fatalf("the server serves %d, want %d; %d bytes, want %d", t.seed.uploads, uploads[&t.seed], t.setBytes,
			setBytes)
	}
}

// testTracker is a tracker of a blob with 8 chunks, at one time.
type testTracker struct {
	*testing.T
	*Tracker
	now time.Duration
}

func newTestTracker(t *testing.T, change func(*Options)) *testTracker {
	o := DefaultOptions()
	if change != nil {
		change(&o)
	}
	return &testTracker{t, New(o), time.Second}
}

const testChunks = 8

// ask asks for a source of machine n of its own node, which has some chunks.
func (t *testTracker) ask(n int, have []int, results ...Result) (from []MachineID) {
	t.Helper()
	set := NewChunkSet(testChunks)
	for _, i := range have {
		set.Add(i)
	}
	plan, err := t.Plan(t.now, Request{Machine: testMachine(n), Address: "a", Digest: "d", Chunks: testChunks,
		Have: set, Streams: 1, Results: results})
	if err != nil {
		t.Fatal(err)
	}
	t.check(t)
	for _, s := range plan.Sources {
		from = append(from, s.Machine)
	}
	return from
}

func testMachine(n int) MachineID { return MachineID{fmt.Sprintf("n%d", n), "m"} }

var allChunks = []int{0, 1, 2, 3, 4, 5, 6, 7}

// expect checks the only source of a plan.
func (t *testTracker) expect(got []MachineID, want MachineID) {
	t.Helper()
	if len(got) != 1 || got[0] != want {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestMachinesBeforeServer(t *testing.T) {
	p := newTestTracker(t, nil)
	p.expect(p.ask(2, nil), MachineID{})
	p.ask(1, allChunks)
	for n := 3; n < 7; n++ { // as many as it serves
		p.expect(p.ask(n, nil), testMachine(1))
	}
	p.expect(p.ask(7, nil), MachineID{})
	p.expect(p.ask(3, nil, Result{testMachine(1), Arrived}), testMachine(1))
	p.now += p.options.LeaseTime // the others have not been heard of
	p.expect(p.ask(8, nil), testMachine(1))
}

// TestLiarsBarNobody: who reports a source gets nothing from it any more. Others do,
// until enough nodes have reported what they tried.
func TestLiarsBarNobody(t *testing.T) {
	p := newTestTracker(t, func(o *Options) { o.MaxUploads = 10 })
	p.ask(1, allChunks)
	bad := Result{testMachine(1), Damaged}
	for n := 10; n < 20; n++ {
		p.ask(n, allChunks, bad) // they had no source
	}
	p.Whole(p.now, MachineID{"n9", "m"}, "a", "", nil, nil)
	for n := 10; n < 20; n++ {
		p.forget(p.machines[testMachine(n)])
	}
	p.expect(p.ask(2, nil), testMachine(1))
	p.expect(p.ask(2, nil, bad), MachineID{})
	for range 5 {
		p.ask(2, nil, bad)
	}
	p.expect(p.ask(3, nil), testMachine(1))
	p.expect(p.ask(3, nil, bad), MachineID{})
	p.expect(p.ask(4, nil), testMachine(1))
	p.expect(p.ask(5, nil), testMachine(1))
	p.ask(5, nil, bad) // the third node
	p.expect(p.ask(6, nil), MachineID{})
	p.now += p.options.DamageTime - time.Second
	p.ask(1, allChunks)
	p.expect(p.ask(7, nil), MachineID{})
	p.now += 2 * time.Second
	p.ask(1, allChunks)
	p.expect(p.ask(8, nil), testMachine(1))
}

// TestSeedSendsFewCopies: the server sends a chunk a few times while others have it. When
// all that have it are gone, it sends it more often.
func TestSeedSendsFewCopies(t *testing.T) {
	p := newTestTracker(t, func(o *Options) { o.MaxSeedUploads, o.MaxUploads = 100, 0 })
	for n := range 4 * testChunks {
		p.expect(p.ask(n, nil), MachineID{})
	}
	p.ask(98, allChunks)
	if got := p.ask(99, nil); len(got) != 0 {
		t.Errorf("one more gets %v", got)
	}
	p.now += p.options.ForgetTime + sweepInterval
	p.expect(p.ask(99, nil), MachineID{})
}

func TestBoundsOfTracker(t *testing.T) {
	p := newTestTracker(t, func(o *Options) { o.MaxMachines, o.MaxOfNode, o.MaxBlobs = 3, 2, 1 })
	plan := func(node, name, digest string) error {
		_, err := p.Plan(p.now, Request{Machine: MachineID{node, name}, Digest: digest, Chunks: testChunks})
		return err
	}
	for _, name := range []string{"a", "b"} {
		if err := plan("n1", name, "d"); err != nil {
			t.Fatal(err)
		}
	}
	if err := plan("n1", "c", "d"); !errors.Is(err, roost.Exhausted) {
		t.Errorf("a third machine of a node: %v", err)
	}
	if err := plan("n2", "a", "e"); !errors.Is(err, roost.Exhausted) {
		t.Errorf("a second blob: %v", err)
	}
	if err := plan("n3", "a", "d"); !errors.Is(err, roost.Exhausted) {
		t.Errorf("a fourth machine: %v", err)
	}
	p.now += p.options.ForgetTime + sweepInterval
	if err := plan("n3", "a", "e"); err != nil {
		t.Errorf("after all are forgotten: %v", err)
	}
	p.check(t)
	small := newTestTracker(t, func(o *Options) { o.MaxSetBytes = 5000 })
	if _, err := small.Plan(0, Request{Machine: testMachine(1), Digest: "d", Chunks: 1000}); !errors.Is(err,
		roost.Exhausted) {
		t.Errorf("a blob larger than the memory: %v", err)
	}
}

// TestWhole: a machine that lists what it has whole serves it, until it lists it no more.
func TestWhole(t *testing.T) {
	p := newTestTracker(t, nil)
	chunks := func(digest string) int { return map[string]int{"d": testChunks}[digest] }
	whole := func(digests ...string) {
		if err := p.Whole(p.now, testMachine(1), "a", "", digests, chunks); err != nil {
			t.Fatal(err)
		}
		p.check(t)
	}
	whole("d", "unknown")
	p.expect(p.ask(2, nil), testMachine(1))
	whole()
	p.expect(p.ask(3, nil), MachineID{})
}

func TestChunkSet(t *testing.T) {
	for _, n := range []int{1, 8, 63, 64, 65, 200} {
		s := NewChunkSet(n)
		s.Fill(n)
		if s.Len() != n || s.Has(n) {
			t.Errorf("%d chunks: %d are in the set", n, s.Len())
		}
		for i := 0; i < n; i += 3 {
			s.Remove(i)
		}
		if got := DecodeChunkSet(s.Encode(n), n); !slices.Equal(got, s) {
			t.Errorf("%d chunks: got %x, want %x", n, got, s)
		}
		if got := DecodeChunkSet(slices.Repeat([]byte{0xff}, 100), n); got.Len() != n {
			t.Errorf("%d chunks: %d of too many bytes", n, got.Len())
		}
	}
}

// BenchmarkPlan is one plan in a pool where all fetch.
func BenchmarkPlan(b *testing.B) {
	const machines, chunks = 2000, 256
	t := New(DefaultOptions())
	sets := make([]ChunkSet, machines)
	ask := func(n int, streams int, results []Result) Plan {
		plan, err := t.Plan(time.Second, Request{Machine: testMachine(n), Address: "a", Rack: fmt.Sprint(n / 40),
			Digest: "d", Chunks: chunks, Have: sets[n], Streams: streams, Results: results})
		if err != nil {
			b.Fatal(err)
		}
		return plan
	}
	for n := range sets {
		sets[n] = NewChunkSet(chunks)
		for i := range chunks {
			if (n*7+i)%3 == 0 {
				sets[n].Add(i)
			}
		}
		ask(n, 0, nil)
	}
	results := make([][]Result, machines)
	n := 0
	for b.Loop() {
		n = (n + 1) % machines
		plan := ask(n, 4, results[n])
		results[n] = results[n][:0]
		for _, s := range plan.Sources {
			results[n] = append(results[n], Result{s.Machine, Arrived})
		}
	}
}

// askIn asks for a source of a machine in a rack, and returns it with its chunks.
func (t *testTracker) askIn(rack string, n int, have []int) (from MachineID, chunks []int) {
	t.Helper()
	set := NewChunkSet(testChunks)
	for _, i := range have {
		set.Add(i)
	}
	plan, err := t.Plan(t.now, Request{Machine: testMachine(n), Address: "a", Rack: rack, Digest: "d",
		Chunks: testChunks, Have: set, Streams: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.check(t)
	if len(plan.Sources) != 1 {
		return MachineID{"none", ""}, nil
	}
	return plan.Sources[0].Machine, plan.Sources[0].Chunks
}

func TestOwnRackFirst(t *testing.T) {
	p := newTestTracker(t, nil)
	p.askIn("r1", 1, allChunks)
	p.askIn("r2", 2, allChunks)
	for n := 3; n < 7; n++ {
		if from, _ := p.askIn("r2", n, nil); from != testMachine(2) {
			t.Errorf("machine %d fetches from %v", n, from)
		}
	}
	if from, _ := p.askIn("r2", 7, nil); from != testMachine(1) {
		t.Errorf("when the own rack is full, the source is %v", from)
	}
}

// TestRarestChunkFirst: what few have is fetched first. Of what comes into a rack
// already, the next machine there fetches something else.
func TestRarestChunkFirst(t *testing.T) {
	p := newTestTracker(t, func(o *Options) { o.MaxBatch = 1 })
	for n := range 5 {
		p.askIn("r1", n, allChunks[:6])
	}
	p.askIn("r1", 5, allChunks[2:])
	p.askIn("r1", 6, allChunks)
	seen := map[int]bool{}
	for n := 10; n < 12; n++ {
		_, chunks := p.askIn("r2", n, nil)
		for _, i := range chunks {
			seen[i] = true
		}
	}
	if len(seen) != 2 || !seen[6] || !seen[7] {
		t.Errorf("the first chunks are %v, want 6 and 7", seen)
	}
}
