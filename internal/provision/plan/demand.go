package plan

import (
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

// Demand is tasks of one job that are alike and wait for nothing but a machine. Tasks
// that are held, wait for others, or are above a quota or a bound of their job, are no
// demand (rule R6).
type Demand struct {
	Job       string // its id, for people
	Submitter fairshare.Submitter
	Band      roost.PriorityBand
	Priority  int32
	Units     int // tasks that wait; of gangs, a multiple of Gang
	Gang      int // above 1: this many tasks start together
	Since     time.Time
	Walltime  time.Duration // 0: none
	Class     *match.RequestClass
}

// Pilot is a pilot of the user that is in the pool.
type Pilot struct {
	Name  string
	Key   string    // of its allocation
	Host  string    // in the outer system
	Until time.Time // when it is gone, the margin before its allocation ends
	Ad    *classad.Ad
	// Failing is why the pool has drained it: tasks fail there that go well elsewhere;
	// "": it has not.
	Failing string
}

// request returns the demand as a request to the matcher, for some of its units.
func (d *Demand) request(i, units int) *match.Request {
	r := &match.Request{Key: match.RequestKey{Schedd: "provision", ID: uint64(i + 1)}, Submitter: d.Submitter,
		Band: d.Band, Priority: d.Priority, Oldest: d.Since.UnixNano(), Wanted: units, NoQueue: units, Class: d.Class,
		Walltime: d.Walltime}
	if d.Gang > 1 {
		r.Gang, r.Now = d.Gang, true // before single tasks, which could block it on nodes that are for the gang
	}
	return r
}

// step is how many units start together.
func (d *Demand) step() int { return max(d.Gang, 1) }
