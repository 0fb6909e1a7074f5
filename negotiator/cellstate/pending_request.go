package cellstate

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// LimitCounting is as what limits on what runs count the claims of a request.
type LimitCounting uint8

// The ways of counting, by their numbers on the wire.
const (
	EachClaim        LimitCounting = iota // each claim as a job
	AllAsOneJob                           // all together as one job
	CountedElsewhere                      // as a part of a job that another request counts
)

// PendingRequest is a request as the leader knows it. Its Wanted is what it wants beyond
// what is on its way to it.
type PendingRequest struct {
	match.Request
	AdText    string // of its ad
	Queue     string // that its tasks were submitted to
	UnixGroup string // of their owner
	Counting  LimitCounting
	Claims    int // that it holds, where its queue is counted; elsewhere 0 or 1
	// claims that count as running: those it holds, as far as its schedd has told of all,
	// and those on their way to it
	RunningCount int
	OwnWanted    int    // in a checkpoint: what it wants itself; Wanted of one that leads a gang is of all of it
	GangRequest  uint64 // not 0: the request that leads the gang which its tasks are a part of
}

// LimitSubject is whom limits on what runs count it for.
func (a *PendingRequest) LimitSubject() ledger.LimitSubject {
	return ledger.LimitSubject{User: a.Submitter.Owner, Group: a.Submitter.Group, UnixGroup: a.UnixGroup}
}

// RunningTasks is what counts as running of a request of which there are so many claims.
func (a *PendingRequest) RunningTasks(claims int) RunningTasks {
	w := RunningTasks{Queue: a.Queue, Subject: a.LimitSubject(), Units: claims, Jobs: a.jobsCounted(claims)}
	if a.Class != nil {
		w.Each = a.Class.Resources
	}
	return w
}

// jobsCounted is as how many jobs limits count so many claims.
func (a *PendingRequest) jobsCounted(claims int) int {
	switch a.Counting {
	case AllAsOneJob:
		return min(claims, 1)
	case CountedElsewhere:
		return 0
	}
	return claims
}

// CollectWaiting returns the asks that wait or are asked for by themselves, in the same
// order: those that follow another are parts of it, and wait until all are there. The
// Wanted and the Parts of those that lead are changed.
func CollectWaiting(list []*PendingRequest) (whole []*PendingRequest) {
	units, parts := map[match.RequestKey]int{}, map[match.RequestKey][]*match.Request{}
	for _, a := range list {
		lead := match.RequestKey{Schedd: a.Key.Schedd, ID: a.GangRequest}
		if units[lead] += a.Wanted; a.GangRequest != 0 && a.GangRequest != a.Key.ID {
			parts[lead] = append(parts[lead], &a.Request)
		}
	}
	for _, a := range list {
		switch a.Parts = nil; a.GangRequest {
		case 0:
		case a.Key.ID:
			if units[a.Key] != a.Gang {
				continue
			}
			a.Wanted, a.Parts = a.Gang, parts[a.Key]
		default:
			continue
		}
		whole = append(whole, a)
	}
	return whole
}

// RunningTasks is what runs of one request, or of several that are alike.
type RunningTasks struct {
	Queue   string
	Subject ledger.LimitSubject
	Units   int
	Jobs    int // as which limits count the units
	Each    roost.Resources
}

// MergeRunning adds up what is alike, so that a limit does not look at each of thousands
// of requests.
func MergeRunning(runs []RunningTasks) []RunningTasks {
	index, all := map[RunningTasks]int{}, []RunningTasks{}
	for _, w := range runs {
		if w.Units == 0 {
			continue
		}
		key := w
		key.Units, key.Jobs = 0, 0
		at, found := index[key]
		if !found {
			at = len(all)
			index[key], all = at, append(all, key)
		}
		all[at].Units += w.Units
		all[at].Jobs += w.Jobs
	}
	return all
}
