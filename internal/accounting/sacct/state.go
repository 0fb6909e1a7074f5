package sacct

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// State returns the state of an attempt in Slurm's words. All but PENDING, RUNNING and
// SUSPENDED are ends. A job without attempts is a record without an attempt number.
func State(r *accounting.AttemptRecord) string {
	switch r.Cause {
	case accounting.NotEnded:
		switch {
		case r.Started != 0 && len(r.Segments) > 0 && r.Segments[len(r.Segments)-1].Suspended:
			return "SUSPENDED"
		case r.Started != 0:
			return "RUNNING"
		case r.Job.Removed:
			return "CANCELLED"
		case r.Job.Ended != 0:
			return "FAILED"
		}
		return "PENDING"
	case accounting.EndedExit, accounting.EndedOwnSuccess, accounting.EndedOwnFailure:
		if r.HasSucceeded() {
			return "COMPLETED"
		}
		return "FAILED"
	case accounting.EndedWalltime, accounting.EndedCPUTime:
		return "TIMEOUT"
	case accounting.EndedRemoval:
		return "CANCELLED"
	case accounting.EndedVacate, accounting.EndedPreemption:
		return "PREEMPTED"
	case accounting.EndedLease, accounting.EndedMachine:
		return "NODE_FAIL"
	case accounting.EndedMemory, accounting.EndedGPUMemory, accounting.EndedVirtualMemory:
		return "OUT_OF_MEMORY"
	case accounting.EndedPrologue, accounting.EndedRestore:
		return "BOOT_FAIL"
	}
	return "FAILED"
}

// StateSet is states by their names. The empty set is all of them.
type StateSet map[string]bool

// stateNames are the states by Slurm's short names.
func stateNames() map[string]string {
	return map[string]string{"BF": "BOOT_FAIL", "CA": "CANCELLED", "CD": "COMPLETED", "F": "FAILED", "NF": "NODE_FAIL",
		"OOM": "OUT_OF_MEMORY", "PD": "PENDING", "PR": "PREEMPTED", "R": "RUNNING", "S": "SUSPENDED", "TO": "TIMEOUT"}
}

// ParseStates reads names of states with commas between, in any case. Short ones count,
// too. Nothing is the empty set.
func ParseStates(text string) (StateSet, error) {
	if text == "" {
		return nil, nil
	}
	set, names := StateSet{}, stateNames()
	long := slices.Sorted(maps.Values(names))
	for name := range strings.SplitSeq(text, ",") {
		name = strings.ToUpper(strings.TrimSpace(name))
		if full, short := names[name]; short {
			name = full
		}
		if !slices.Contains(long, name) {
			return nil, fmt.Errorf("state %.40q: %w: it is one of %s", name, roost.Invalid, strings.Join(long, ", "))
		}
		set[name] = true
	}
	return set, nil
}

// liveStates are the states that are no ends.
func liveStates() []string { return []string{"PENDING", "RUNNING", "SUSPENDED"} }

// HasLive reports whether a state of the set is no end.
func (s StateSet) HasLive() bool {
	return slices.ContainsFunc(liveStates(), func(name string) bool { return s[name] })
}

// HasEnd reports whether a state of the set is an end.
func (s StateSet) HasEnd() bool {
	for name := range s {
		if !slices.Contains(liveStates(), name) {
			return true
		}
	}
	return false
}

// ElapsedSeconds is the time that an attempt ran, in whole seconds. As in Slurm, time for
// which it was suspended does not count.
func ElapsedSeconds(a *accounting.AttemptEntry) int64 { return max(a.Wall-a.Suspended, 0) / 1000 }

// CPUs returns the CPUs in whole ones, rounded up. Consumers divide by them, so that
// there is at least one.
func CPUs[T ~int64](milli T) int64 { return max((int64(min(milli, math.MaxInt64-999))+999)/1000, 1) }

// product multiplies without overflow.
func product(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}
