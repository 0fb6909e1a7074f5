package document

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Alloc is what is inside an alloc set, or inside one alloc of it.
type Alloc struct {
	Open     uint32    `json:"open"`   // allocs that have a machine
	Tasks    uint32    `json:"tasks"`  // inside, that run or are about to
	Inside   Resources `json:"inside"` // what these ask for, together
	Jobs     []string  `json:"jobs"`   // that are to be inside and have not ended
	MoreJobs uint32    `json:"more_jobs,omitempty"`
	Users    []string  `json:"users,omitempty"` // whose jobs may be inside besides its owner's
}

// InAlloc says inside which alloc set the tasks of a job run.
type InAlloc struct {
	Set   string `json:"set"`
	Place string `json:"place"`           // index or any
	Alloc string `json:"alloc,omitempty"` // of one task that runs
}

// AllocOf returns what is inside an alloc set; nil for a job that is none.
func AllocOf(a *scheddapi.AllocStatus) *Alloc {
	if a == nil {
		return nil
	}
	d := &Alloc{Open: a.GetOpen(), Tasks: a.GetTasks(), Inside: ResourcesOf(a.GetInside()), Jobs: a.GetJobs(),
		MoreJobs: a.GetMoreJobs(), Users: a.GetUsers()}
	if d.Jobs == nil {
		d.Jobs = []string{}
	}
	return d
}

func inAllocOf(in *scheddapi.InsideAlloc) *InAlloc {
	if in == nil {
		return nil
	}
	d := &InAlloc{Set: in.GetSet(), Place: roost.PlaceByIndex, Alloc: in.GetAlloc()}
	if in.GetAnywhere() {
		d.Place = roost.PlaceAnywhere
	}
	return d
}
