package store

import (
	"github.com/roost-batch/roost/internal/accounting"
)

// The keys of the roll-ups, without the step.
type (
	usageSumKey struct {
		whole                        int64
		at                           accounting.Millis
		owner, group, project, queue int64
		band                         int64
	}
	endSumKey struct {
		at    accounting.Millis
		owner int64
		cause accounting.EndCause
	}
	waitSumKey struct {
		at          accounting.Millis
		band, queue int64
		bucket      int
	}
	sizeSumKey struct {
		at     accounting.Millis
		band   int64
		bucket int
	}
	capacitySumKey struct {
		at    accounting.Millis
		class string
	}
)

// capacitySum is a row of rollup_capacity.
type capacitySum struct {
	accounting.CapacityLine
	attempts int64
}

// hourSums are the roll-ups of the hours of a range.
type hourSums struct {
	hours    accounting.TimeRange
	now      accounting.Millis
	usage    map[usageSumKey]*accounting.Amounts
	ends     map[endSumKey]*accounting.EndLine
	waits    map[waitSumKey]*accounting.WaitLine
	sizes    map[sizeSumKey]*accounting.SizeLine
	capacity map[capacitySumKey]*capacitySum

	machines map[int64][]machineHour // in the order of hours
}

// machineHour is what a machine was from an hour on, by what it was at the hour's end. So
// it does not depend on how many hours are computed together.
type machineHour struct {
	hour    accounting.Millis
	class   string
	desktop bool
}

func newHourSums(hours accounting.TimeRange, now accounting.Millis) *hourSums {
	return &hourSums{
		hours: hours, now: now,
		usage: map[usageSumKey]*accounting.Amounts{}, ends: map[endSumKey]*accounting.EndLine{},
		waits: map[waitSumKey]*accounting.WaitLine{}, sizes: map[sizeSumKey]*accounting.SizeLine{},
		capacity: map[capacitySumKey]*capacitySum{}, machines: map[int64][]machineHour{},
	}
}

// entry returns the value of a key, and makes one if there is none.
func entry[K comparable, V any](m map[K]*V, k K) *V {
	v, ok := m[k]
	if !ok {
		v = new(V)
		m[k] = v
	}
	return v
}

// setMachine notes what a machine is from the hour of at on.
func (s *hourSums) setMachine(node int64, at accounting.Millis, state accounting.MachineState) {
	s.machines[node] = append(s.machines[node], machineHour{at.Hour(), state.Class, state.Desktop})
}

// machine returns what a machine was in an hour.
func (s *hourSums) machine(node int64, hour accounting.Millis) machineHour {
	var found machineHour
	for _, m := range s.machines[node] {
		if m.hour > hour {
			break
		}
		found = m
	}
	return found
}

func (s *hourSums) capacityLine(hour accounting.Millis, class string) *accounting.CapacityLine {
	return &entry(s.capacity, capacitySumKey{hour, class}).CapacityLine
}

// rolledAttempt is what a roll-up reads of an attempt.
type rolledAttempt struct {
	accounting.AttemptEntry
	node int64
	job  jobNames
}

// add adds an attempt to the hours in which it ran. One of a job that has ended does not
// run, even if news of its end was lost.
func (s *hourSums) add(a *rolledAttempt, jobEnded accounting.Millis) {
	now := s.now
	if a.Ended == 0 && jobEnded != 0 {
		now = min(now, max(jobEnded, a.Started))
	}
	key := usageSumKey{
		owner: a.job.owner, group: a.job.group, project: a.job.project, queue: a.job.queue, band: int64(a.job.band),
	}
	a.HourParts(a.job.eligible, now, s.hours, func(hour accounting.Millis, part *accounting.Amounts) {
		key.at = hour
		entry(s.usage, key).Add(part)
		s.addCapacity(hour, a, part)
		if part.Waits > 0 {
			s.addWait(hour, a, part)
		}
	})
	if a.Ended != 0 && s.hours.Contains(a.Ended.Hour()) {
		s.addEnd(key, a)
	}
}

func (s *hourSums) addCapacity(hour accounting.Millis, a *rolledAttempt, part *accounting.Amounts) {
	machine := s.machine(a.node, hour)
	c := entry(s.capacity, capacitySumKey{hour, machine.class})
	c.Held += part.HeldCPU
	c.Used += part.UsedCPU
	c.HeldGPU += part.HeldGPU
	c.attempts += part.Ended
	if machine.desktop {
		c.Desktop += part.HeldCPU
	}
}

func (s *hourSums) addWait(hour accounting.Millis, a *rolledAttempt, part *accounting.Amounts) {
	w := entry(s.waits, waitSumKey{hour, int64(a.job.band), a.job.queue, accounting.WaitBucket(part.WaitSum)})
	w.Count++
	w.WaitSum += part.WaitSum
}

// addEnd counts the end of an attempt.
func (s *hourSums) addEnd(key usageSumKey, a *rolledAttempt) {
	hour := a.Ended.Hour()
	total := a.Total(a.job.eligible, a.Ended)
	key.whole, key.at = 1, hour
	entry(s.usage, key).Add(&total)

	e := entry(s.ends, endSumKey{hour, a.job.owner, a.Cause})
	e.Count++
	e.HeldCPU += total.HeldCPU
	e.LostCPU += total.LostCPU
	if !a.Cause.IsCharged() {
		e.SavedCPU += total.HeldCPU - total.LostCPU
	}

	z := entry(s.sizes, sizeSumKey{hour, int64(a.job.band), accounting.SizeBucket(int64(a.Held.CPU))})
	z.Count++
	z.Wall += total.Wall
	z.HeldCPU += total.HeldCPU
	z.Waits += total.Waits
	z.WaitSum += total.WaitSum
}
