package pool

import (
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

// TestReading checks that an instant has both clocks of a process.
func TestReading(t *testing.T) {
	began := time.Date(2027, 1, 15, 8, 0, 0, 123, time.UTC)
	first := clockReading(began, time.Hour)
	second := clockReading(began.Add(-365*24*time.Hour), time.Hour+time.Second) // the wall clock was set back
	if d := second.Sub(first); d != time.Second || !second.After(first) || !first.Add(time.Second).Equal(second) {
		t.Errorf("%v passed", d)
	}
	if !first.Round(0).Equal(began) || first.UnixNano() != began.UnixNano() || second.Year() != 2026 ||
		first.Location() != time.UTC {
		t.Errorf("it shows %v", first)
	}
	if d := second.Round(0).Sub(first); d > -364*24*time.Hour {
		t.Errorf("written down, and read, it is %v later", d)
	}
	if far := time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC); clockReading(far, time.Hour) != far ||
		clockReading(time.Time{}, 1) != (time.Time{}) {
		t.Error("what cannot have a second clock has one")
	}
}

// TestStep checks that running daemons see a step of the wall clock at once. Durations
// that they measure are not affected.
func TestStep(t *testing.T) {
	p, err := New(SimulationConfig{Seed: 1, Managers: 1, Schedds: 1,
		Machines: []MachineConfig{{Name: "m", Resources: roost.Resources{CPU: 1000, Memory: roost.GiB}}}})
	if err != nil {
		t.Fatal(err)
	}
	p.RunUntil(time.Minute)
	n := p.nodeByName("schedd0")
	before := n.wallTime()
	p.Faults().StepClock("schedd0", -time.Hour)
	p.RunUntil(2 * time.Minute)
	if after := n.wallTime(); after.Sub(before) != time.Minute || after.Unix()-before.Unix() != 60-3600 {
		t.Errorf("before %v, a minute after %v", before, after)
	}
	if at := n.simTime(before.Add(5 * time.Minute)); at != 6*time.Minute {
		t.Errorf("five minutes after the first are %v", at)
	}
	if at := n.simTime(before.Add(5 * time.Minute).Round(0)); at != 66*time.Minute {
		t.Errorf("when the clock shows that it is %v", at)
	}
}
