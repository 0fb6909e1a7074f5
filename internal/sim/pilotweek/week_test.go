package pilotweek

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/provision/provider"
)

const day = 24 * time.Hour

// threeSystems are a cheap cluster with a long queue, one with a short queue, and a
// cloud.
func threeSystems() []*OuterSystem {
	node := provider.NodeShape{Resources: roost.Resources{CPU: 16_000, Memory: 64 * roost.GiB}}
	system := func(name string, price float64, walltime, wait time.Duration) *OuterSystem {
		return &OuterSystem{Settings: provider.Settings{Name: name, Kind: provider.Slurm, Walltime: walltime,
			Node: node, Idle: 2 * time.Minute, MaxPilots: 20, MaxQueued: 5, MaxNodeHours: 480}, Price: price,
			MeanWait: wait, MaxWait: 12 * time.Hour, BlackHoles: 0.05, Refusals: 0.01, Outage: 2 * time.Hour,
			OutageEvery: 7 * time.Hour}
	}
	cloud := system("cloud", 4, 4*time.Hour, 30*time.Second)
	cloud.MaxWait, cloud.MaxPilots = 5*time.Minute, 10
	return []*OuterSystem{system("uni", 1, 12*time.Hour, 2*time.Hour), system("lab", 1.5, 6*time.Hour, 10*time.Minute),
		cloud}
}

// randomCampaigns are some campaigns a day.
func randomCampaigns(rng *rand.Rand) (list []Campaign) {
	at := time.Hour
	for at < 6*day {
		run := time.Duration(3+rng.IntN(6)) * time.Minute
		list = append(list, Campaign{At: at, Tasks: 4000 + rng.IntN(12000), Cores: 1, RunTime: run,
			Walltime: run * 3 / 2})
		at += time.Duration(6+rng.IntN(24)) * time.Hour
	}
	return list
}

// TestWeek checks that a week costs at most a tenth more than the run times of its tasks.
// Outer systems are left in peace, and nothing oscillates.
func TestWeek(t *testing.T) {
	for seed := range uint64(1) {
		rng := rand.New(rand.NewPCG(seed, 1))
		campaigns := randomCampaigns(rng)
		tasks := 0
		for _, c := range campaigns {
			tasks += c.Tasks
		}
		r := New(time.Unix(1_800_000_000, 0), threeSystems(), campaigns, rng).Run(7 * day)
		t.Logf("seed %d: %d campaigns, %d tasks: %+v; cost %.3f of the optimum", seed, len(campaigns), tasks, r,
			r.Cost/r.Optimum)
		if r.Waiting > 0 || r.Done != tasks {
			t.Errorf("seed %d: %d of %d tasks done, %d wait", seed, r.Done, tasks, r.Waiting)
		}
		if r.Cost > 1.1*r.Optimum {
			t.Errorf("seed %d: the cost is %.1f, and %.1f would do", seed, r.Cost, r.Optimum)
		}
		if r.MostSubmits > 1 || r.MostStatus > 1 {
			t.Errorf("seed %d: %d submits in 5 s, %d status queries in a minute", seed, r.MostSubmits, r.MostStatus)
		}
		if r.Reversals > r.Submits/10 {
			t.Errorf("seed %d: %d submits were taken back while tasks waited, of %d", seed, r.Reversals, r.Submits)
		}
		if r.BlackHoles == 0 || r.StatusFailures == 0 {
			t.Errorf("seed %d: nothing went wrong", seed)
		}
	}
}
