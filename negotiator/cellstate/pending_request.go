package cellstate

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// LimitCounting says how run limits count the claims of a request.
type LimitCounting uint8

// The ways of counting, by their numbers on the wire.
const (
	EachClaim        LimitCounting = iota // each claim as a job
	AllAsOneJob                           // all together as one job
	CountedElsewhere                      // as a part of a job that another request counts
)

// PendingRequest is a request as the leader knows it. Its Wanted is what it wants beyond
// its pending grants.
type PendingRequest struct {
	match.Request
	AdText    string // text of its ad
	Queue     string // queue of its tasks
	UnixGroup string // of the owner
	Counting  LimitCounting
	Claims    int // number of its claims if its queue has run limits; otherwise 0 or 1
	// claims that count as running: its claims, if its schedd has reported all, and
	// pending grants
	RunningCount int
	// in a checkpoint: what it wants itself; Wanted of a gang's leading request includes
	// its parts
	OwnWanted   int
	GangRequest uint64 // not 0: the leading request of the gang that its tasks belong to
}

// LimitSubject returns the subject whose run limits count it.
func (a *PendingRequest) LimitSubject() ledger.LimitSubject {
	return ledger.LimitSubject{User: a.Submitter.Owner, Group: a.Submitter.Group, UnixGroup: a.UnixGroup}
}

// RunningTasks returns what counts as running for a request with that many claims.
func (a *PendingRequest) RunningTasks(claims int) RunningTasks {
	w := RunningTasks{Queue: a.Queue, Subject: a.LimitSubject(), Units: claims, Jobs: a.jobsCounted(claims)}
	if a.Class != nil {
		w.Each = a.Class.Resources
	}
	return w
}

// jobsCounted returns as how many jobs limits count that many claims.
func (a *PendingRequest) jobsCounted(claims int) int {
	switch a.Counting {
	case AllAsOneJob:
		return min(claims, 1)
	case CountedElsewhere:
		return 0
	}
	return claims
}

// CollectWaiting returns the requests to place, in the same order. Those that follow
// another one are its gang parts, and wait until all are there. It changes the Wanted and
// the Parts of those that lead.
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

// RunningTasks is what runs of one request, or of several that limits count alike.
type RunningTasks struct {
	Queue   string
	Subject ledger.LimitSubject
	Units   int
	Jobs    int // as limits count them
	Each    roost.Resources
}

// MergeRunning adds up equal entries, so that a limit need not look at thousands of
// requests.
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
