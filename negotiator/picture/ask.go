package picture

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// Counting is as what limits on what runs count the claims of a request.
type Counting uint8

// The ways of counting, by their numbers on the wire.
const (
	Each      Counting = iota // each claim as a job
	Together                  // all together as one job
	Elsewhere                 // as a part of a job that another request counts
)

// Ask is a request as the leader knows it. Its Wanted is what it wants beyond what is on its way to it.
type Ask struct {
	match.Request
	Text      string // of its ad
	Queue     string // that its tasks were submitted to
	UnixGroup string // of their owner
	Counting  Counting
	Claims    int    // that it holds, where its queue is counted; elsewhere 0 or 1
	Counts    int    // claims that count as running: those it holds, as far as its schedd has told of all, and those on their way to it
	Own       int    // in a checkpoint: what it wants itself; Wanted of one that leads a gang is of all of it
	Lead      uint64 // not 0: the request that leads the gang which its tasks are a part of
}

// Party is whom limits on what runs count it for.
func (a *Ask) Party() ledger.Party {
	return ledger.Party{User: a.Submitter.Owner, Group: a.Submitter.Group, UnixGroup: a.UnixGroup}
}

// Running is what counts as running of a request of which there are so many claims.
func (a *Ask) Running(claims int) Running {
	w := Running{Queue: a.Queue, Party: a.Party(), Units: claims, Jobs: a.jobsIn(claims)}
	if a.Class != nil {
		w.Each = a.Class.Resources
	}
	return w
}

// jobsIn is as how many jobs limits count so many claims.
func (a *Ask) jobsIn(claims int) int {
	switch a.Counting {
	case Together:
		return min(claims, 1)
	case Elsewhere:
		return 0
	}
	return claims
}

// Gather returns the asks that wait or are asked for by themselves, in the same order: those that follow another are parts of it, and wait until all are
// there. The Wanted and the Parts of those that lead are changed.
func Gather(list []*Ask) (whole []*Ask) {
	units, parts := map[match.Key]int{}, map[match.Key][]*match.Request{}
	for _, a := range list {
		lead := match.Key{Schedd: a.Key.Schedd, ID: a.Lead}
		if units[lead] += a.Wanted; a.Lead != 0 && a.Lead != a.Key.ID {
			parts[lead] = append(parts[lead], &a.Request)
		}
	}
	for _, a := range list {
		switch a.Parts = nil; a.Lead {
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

// Running is what runs of one request, or of several that are alike.
type Running struct {
	Queue string
	Party ledger.Party
	Units int
	Jobs  int // as which limits count the units
	Each  roost.Resources
}

// Merge adds up what is alike, so that a limit does not look at each of thousands of requests.
func Merge(runs []Running) []Running {
	index, all := map[Running]int{}, []Running{}
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
