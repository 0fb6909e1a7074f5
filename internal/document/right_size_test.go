package document

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// usedSamples is some tasks of which the last used most memory and took longest.
func usedSamples(n int, asked roost.Resources, walltime time.Duration, peak roost.Bytes, cores float64,
	wall time.Duration) []TaskSample {
	var list []TaskSample
	for i := range n {
		share := float64(i+n+1) / float64(2*n)
		took := float64(wall) * share
		list = append(list, TaskSample{asked, walltime, &wire.ExitStatus{
			Wall: int64(took), UserCpu: int64(cores * took),
			Usage: &wire.TaskUsage{PeakMemory: int64(float64(peak) * share)},
		}})
	}
	return list
}

// TestRightSize holds what is said about tasks that asked for more than they needed, or
// for just enough.
func TestRightSize(t *testing.T) {
	big := roost.Resources{CPU: 1000, Memory: 8 * roost.GiB}
	failed := usedSamples(3, big, 0, 100*roost.MiB, 1, time.Hour)
	for i := range failed {
		failed[i].end.Code = int32(i)
		failed[i].end.Cause = wire.Cause_CAUSE_LAUNCH
	}
	mixed := usedSamples(2, big, 0, 100*roost.MiB, 1, time.Hour)
	mixed[0].asked.Memory = 4 * roost.GiB
	old := usedSamples(1, big, 0, 0, 1, time.Hour)
	old[0].end.Usage, old[0].end.MaxRss = nil, int64(512*roost.MiB)
	gpus := roost.Resources{CPU: 1000, Memory: roost.GiB, GPUs: 2, GPUMemory: 40 * roost.GiB}
	idle := usedSamples(6, gpus, 0, 700*roost.MiB, 1, time.Hour)
	shared := usedSamples(6, gpus, 0, 700*roost.MiB, 1, time.Hour)
	for i := range shared {
		shared[i].end.Usage.PeakGpuMemory, shared[i].end.Usage.Gpu = int64(12*roost.GiB), 0.4
	}
	wide := roost.Resources{CPU: 8000, Memory: 256 * roost.MiB}
	for _, tt := range []struct {
		name    string
		samples []TaskSample
		want    []string
	}{
		{"nothing", nil, nil},
		{"memory", usedSamples(20, big, 0, 612*roost.MiB, 1, time.Hour),
			[]string{`asked for 8GiB, used at most 612MiB in 20 tasks: memory = "768MiB" would do`}},
		{"memory of one task", usedSamples(1, big, 0, 612*roost.MiB, 1, time.Hour),
			[]string{`asked for 8GiB, used at most 612MiB in 1 task: memory = "960MiB" would do`}},
		{"largest process", old, []string{`asked for 8GiB, used at most 512MiB in 1 task: memory = "768MiB" would do`}},
		{"a good part of it", usedSamples(20, big, 0, 5*roost.GiB, 1, time.Hour), nil},
		{"nearly all", usedSamples(20, big, 0, 7900*roost.MiB, 1, time.Hour),
			[]string{`asked for 8GiB and used 7.71GiB, nearly all, in 20 tasks: memory = "10GiB" would be safer`}},
		{"tiny", usedSamples(20, roost.Resources{CPU: 1000, Memory: 512 * roost.MiB}, 0, 3*roost.MiB, 1, time.Hour),
			nil},
		{"failed", failed, nil},
		{"different requests", mixed, nil},
		{"cores", usedSamples(20, wide, 0, 0, 1.3, time.Hour),
			[]string{`asked for 8 cores, kept at most 1.3 busy on average in 20 tasks: cpus = 2 would do`}},
		{"one core", usedSamples(20, wide, 0, 0, 1, time.Hour),
			[]string{`asked for 8 cores, kept at most 1.0 busy on average in 20 tasks: cpus = 1 would do`}},
		{"short tasks", usedSamples(20, wide, 0, 0, 1, 20*time.Second), nil},
		{"busy cores", usedSamples(20, wide, 0, 0, 6, time.Hour), nil},
		{"walltime", usedSamples(20, wide, 10*time.Hour, 0, 8, 12*time.Minute),
			[]string{`asked for a walltime of 10h, took at most 12m in 20 tasks: walltime = "20m" would do`}},
		{"nearly all of it", usedSamples(20, wide, 10*time.Hour, 0, 8, 597*time.Minute),
			[]string{`took 9h57m of a walltime of 10h, nearly all, in 20 tasks: walltime = "13h" would be safer`}},
		{"no walltime", usedSamples(20, wide, 0, 0, 8, 12*time.Minute), nil},
		{"GPUs for nothing", idle, []string{`asked for 2 GPUs, and was never seen to use any in 6 tasks`}},
		{"GPU memory", shared,
			[]string{`asked for 40GiB of GPU memory, used at most 6GiB in 6 tasks: gpu_memory = "7.5GiB" would do`}},
	} {
		if got := RightSize(tt.samples); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestRightSizeHolds holds for random numbers that advice is enough, below the request,
// and can be requested.
func TestRightSizeHolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		asked := roost.Resources{CPU: roost.MilliCPU(rng.IntN(64_000)),
			Memory: roost.Bytes(rng.Int64N(1 << (20 + rng.IntN(24))))}
		peak := roost.Bytes(rng.Int64N(1 << (10 + rng.IntN(34))))
		list := usedSamples(1+rng.IntN(9), asked, time.Duration(rng.Int64N(int64(100*time.Hour))), peak,
			rng.Float64()*64, time.Duration(rng.Int64N(int64(100*time.Hour))))
		for _, text := range RightSize(list) {
			_, value, ok := strings.Cut(text, `: memory = "`)
			if !ok {
				continue
			}
			value, _, _ = strings.Cut(value, `"`)
			enough, err := roost.ParseBytes(value)
			if err != nil || enough < peak || strings.HasSuffix(text, "would do") && enough > asked.Memory/2 ||
				strings.HasSuffix(text, "safer") && enough <= asked.Memory {
				t.Fatalf("of %v %v was used: %s (%v)", asked.Memory, peak, text, err)
			}
		}
	}
	extreme := usedSamples(3, roost.Resources{CPU: math.MaxInt64, Memory: math.MaxInt64, GPUs: math.MaxInt32,
		GPUMemory: math.MaxInt64}, math.MaxInt64, math.MaxInt64/2, 1, math.MaxInt64/4)
	RightSize(extreme) // it does not panic
}
