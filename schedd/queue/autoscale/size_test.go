package autoscale

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// sizeRun is a service whose tasks use what the test says, once in ten seconds.
type sizeRun struct {
	policy  SizePolicy
	history UseHistory
	has     Size
	changed int64
	now     time.Time
	last    SizeDecision
}

func newSizeRun() *sizeRun {
	p := DefaultSizePolicy()
	p.MaxCPU, p.MaxMemory = 4000, 8*roost.GiB
	return &sizeRun{policy: p, has: Size{2000, roost.GiB}, now: time.Unix(1_800_000_000, 0)}
}

// use lets time pass with some use, and returns how often the size changed.
func (r *sizeRun) use(length time.Duration, cpu roost.MilliCPU, memory roost.Bytes) (changes int) {
	for end := r.now.Add(length); r.now.Before(end); r.now = r.now.Add(10 * time.Second) {
		now := r.now.UnixNano()
		r.history.Add(&r.policy, now, cpu, memory)
		r.last = DecideSize(&r.policy, r.has, &r.history, r.changed, now)
		if r.last.Size != r.has {
			r.has, r.changed, changes = r.last.Size, now, changes+1
		}
	}
	return changes
}

func (r *sizeRun) expect(t *testing.T, cpu roost.MilliCPU, memory roost.Bytes) {
	t.Helper()
	if want := (Size{cpu, memory}); r.has != want {
		t.Fatalf("the size is %+v, want %+v: %s", r.has, want, r.last.Reason)
	}
}

// TestSizeFollowsUse checks that a size grows at once, and shrinks when the use of a
// whole window is known.
func TestSizeFollowsUse(t *testing.T) {
	r := newSizeRun()
	if r.use(90*time.Second, 100, roost.GiB) != 0 || !strings.Contains(r.last.Reason, "measured 9 times") {
		t.Fatalf("after 9 samples: %+v, %s", r.has, r.last.Reason)
	}
	r.use(time.Minute, 100, 2*roost.GiB)
	r.expect(t, 2000, 2*roost.GiB+512*roost.MiB)
	if !strings.Contains(r.last.Reason, "at most 2GiB of memory were used, and 2.5GiB are wanted") {
		t.Errorf("got %s", r.last.Reason)
	}
	r.use(50*time.Minute, 100, 300*roost.MiB)
	r.expect(t, 2000, 2*roost.GiB+512*roost.MiB)
	r.use(20*time.Minute, 100, 300*roost.MiB)
	r.expect(t, 200, 384*roost.MiB)
	if n := r.use(time.Hour, 100, 310*roost.MiB); n != 0 {
		t.Errorf("%d changes for little", n)
	}
	r.use(30*time.Minute, 3900, 300*roost.MiB)
	r.expect(t, 4000, 384*roost.MiB) // max_cpus
}

// TestSizeEvery checks that a size does not change more often than its user allows.
func TestSizeEvery(t *testing.T) {
	r := newSizeRun()
	r.use(2*time.Minute, 2000, 2*roost.GiB)
	before := r.changed
	if r.use(8*time.Minute, 2000, 4*roost.GiB) != 0 || !strings.Contains(r.last.Reason, "within the last 10m") {
		t.Fatalf("it has changed: %s", r.last.Reason)
	}
	if r.use(2*time.Minute, 2000, 4*roost.GiB) != 1 || r.changed-before < int64(r.policy.Every) {
		t.Fatalf("it has not changed: %s", r.last.Reason)
	}
}

// TestSizeBounds checks that what is outside of the bounds comes into them without any
// measurement. What has no maximum stays.
func TestSizeBounds(t *testing.T) {
	r := newSizeRun()
	r.has.Memory = 16 * roost.GiB
	if d := DecideSize(&r.policy, r.has, &r.history, 0, r.now.UnixNano()); d.Size.Memory != 8*roost.GiB {
		t.Errorf("got %+v", d)
	}
	r.policy.MaxCPU, r.has.Memory = 0, roost.GiB
	r.use(time.Hour, 3000, 6*roost.GiB)
	r.expect(t, 2000, 7*roost.GiB+512*roost.MiB)
}

// TestSizeHugeUse checks that a use beyond all numbers makes a size as large as may be.
func TestSizeHugeUse(t *testing.T) {
	r := newSizeRun()
	r.use(2*time.Hour, math.MaxInt64, math.MaxInt64)
	r.expect(t, 4000, 8*roost.GiB)
}

// TestSizeRandom checks the bounds with any use. Sizes stay within them, and are never
// below the most memory of the window.
func TestSizeRandom(t *testing.T) {
	for seed := range uint64(10) {
		rng, r := rand.New(rand.NewPCG(seed, 1)), newSizeRun()
		r.policy.Window = time.Duration(1+rng.IntN(90)) * time.Minute
		r.policy.Every = time.Duration(1+rng.IntN(60)) * time.Second
		most := roost.Bytes(0)
		for range 60 {
			memory := roost.Bytes(rng.Int64N(int64(10 * roost.GiB)))
			r.use(time.Duration(rng.IntN(600))*time.Second, roost.MilliCPU(rng.IntN(6000)), memory)
			if rng.IntN(20) == 0 {
				r.now = r.now.Add(-time.Hour)
			}
			if _, most, _ = r.history.use(); r.last.Size.Memory < min(most, r.policy.MaxMemory) &&
				r.now.UnixNano()-r.changed > int64(r.policy.Every) && r.last.Samples >= minSamples && r.changed != 0 &&
				r.now.UnixNano() > r.changed+int64(r.policy.Every)+int64(10*time.Second) {
				t.Fatalf("seed %d: %v of memory, and %v are used: %s", seed, r.last.Size.Memory, most, r.last.Reason)
			}
			if r.has != r.policy.Clamp(r.has) {
				t.Fatalf("seed %d: %+v is outside of %+v", seed, r.has, r.policy)
			}
		}
		if len(r.history.slots) > windowSlots+2 {
			t.Fatalf("seed %d: %d slots", seed, len(r.history.slots))
		}
	}
}
