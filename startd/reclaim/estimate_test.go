package reclaim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/script"
)

// TestStories shows how reservations follow use.
func TestStories(t *testing.T) {
	script.Run(t, "testdata/estimate_*.txt", func(t *testing.T) func(script.ScriptCommand) string {
		var now time.Duration
		var e UsageEstimate
		var p EstimateParams
		return func(s script.ScriptCommand) string {
			switch s.Command {
			case "task": // LEVEL CPU MEMORY
				level, err := roost.ParseReclaimLevel(s.Args[0])
				if err != nil {
					return err.Error()
				}
				p, e = ParamsOf(level), NewEstimate(now, amount(t, s.Args[1:]))
			case "resumed": // CPU MEMORY
				e = ResumedEstimate(now, e.Limit(), amount(t, s.Args), p)
			case "uses": // CPU MEMORY DURATION, sampled each second
				use := amount(t, s.Args[:2])
				d, err := time.ParseDuration(s.Args[2])
				if err != nil {
					t.Fatal(err)
				}
				for end := now + d; now < end; {
					now += time.Second
					e.Sample(now, use, p)
				}
			}
			r := e.Reserved()
			return fmt.Sprintf("%v: reserved %v cores, %v", now, r.CPU, r.Memory)
		}
	})
}

func amount(t *testing.T, args []string) ResourceAmount {
	t.Helper()
	var cores float64
	if _, err := fmt.Sscan(args[0], &cores); err != nil {
		t.Fatal(err)
	}
	memory, err := roost.ParseBytes(args[1])
	if err != nil {
		t.Fatal(err)
	}
	return ResourceAmount{roost.MilliCPU(cores * 1000), memory}
}

// TestEstimateHolds plays random tasks and checks each sample. The reservation must be
// between use and limit and decrease no faster than the half-life permits. More use must
// never give a smaller reservation, nor a bolder level a larger one.
func TestEstimateHolds(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		limit := ResourceAmount{roost.MilliCPU(rnd.IntN(64_000)), roost.Bytes(rnd.Int64N(1 << 40))}
		all, more := map[roost.ReclaimLevel]*UsageEstimate{}, map[roost.ReclaimLevel]*UsageEstimate{}
		for l := roost.ReclaimOff; l <= roost.ReclaimAggressive; l++ {
			a, b := NewEstimate(0, limit), NewEstimate(0, limit)
			all[l], more[l] = &a, &b
		}
		for now := time.Duration(0); now < time.Hour; {
			step := time.Duration(rnd.Int64N(int64(time.Minute)))
			now += step
			use := ResourceAmount{roost.MilliCPU(rnd.Int64N(int64(limit.CPU)*5/4 + 1)),
				roost.Bytes(rnd.Int64N(int64(limit.Memory) + 1))}
			high := ResourceAmount{use.CPU + roost.MilliCPU(rnd.IntN(1000)), use.Memory + roost.Bytes(rnd.IntN(1<<30))}
			for l := roost.ReclaimOff; l <= roost.ReclaimAggressive; l++ {
				e, p := all[l], ParamsOf(l)
				before := e.Reserved()
				e.Sample(now, use, p)
				more[l].Sample(now, high, p)
				r := e.Reserved()
				switch {
				case r.CPU < min(use.CPU, limit.CPU) || r.Memory < min(use.Memory, limit.Memory):
					t.Fatalf("seed %d, %v, %v: reserved %v, used %v", seed, l, now, r, use)
				case r.CPU > limit.CPU || r.Memory > limit.Memory:
					t.Fatalf("seed %d, %v, %v: reserved %v of %v", seed, l, now, r, limit)
				case (now < DefaultSettlingTime || l == roost.ReclaimOff) && r != limit:
					t.Fatalf("seed %d, %v, %v: reserved %v before it can be known, of %v", seed, l, now, r, limit)
				case step < p.HalfLife && r.Memory < before.Memory/2:
					t.Fatalf("seed %d, %v, %v: it fell from %v to %v in %v", seed, l, now, before, r, step)
				case more[l].Reserved().Memory < r.Memory || more[l].Reserved().CPU < r.CPU:
					t.Fatalf("seed %d, %v, %v: more use is reserved less, %v than %v", seed, l, now,
						more[l].Reserved(), r)
				case l > roost.ReclaimOff && r.Memory > all[l-1].Reserved().Memory:
					t.Fatalf("seed %d, %v, %v: it reserves more than %v does, %v than %v", seed, l, now, l-1, r,
						all[l-1].Reserved())
				}
			}
		}
	}
}

// TestOldSample checks that an old sample does not move the time backwards.
func TestOldSample(t *testing.T) {
	p := ParamsOf(roost.ReclaimAggressive)
	e := NewEstimate(0, ResourceAmount{1000, roost.GiB})
	e.Sample(time.Hour, ResourceAmount{}, p)
	before := e.Reserved()
	e.Sample(time.Minute, ResourceAmount{}, p)
	if got := e.Reserved(); got != before {
		t.Fatalf("an old sample made %v of %v", got, before)
	}
}
