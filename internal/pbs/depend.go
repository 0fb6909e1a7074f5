package pbs

import (
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// waits are the types of dependency on an earlier job, and what each is called in an ad. Those of Torque on arrays are the same here: an array has
// started when all its subjobs have, and is over when all are.
var waits = map[string]string{
	"after": "after", "afterok": "afterok", "afternotok": "afternotok", "afterany": "afterany",
	"afterstartarray": "after", "afterokarray": "afterok", "afternotokarray": "afternotok", "afteranyarray": "afterany",
}

// unsupported are the types by which an earlier job waits for a later one, and those that start or end jobs together.
var unsupported = map[string]string{
	"before": "let the later job depend on this one with after", "beforeok": "let the later job depend on this one with afterok",
	"beforenotok": "let the later job depend on this one with afternotok", "beforeany": "let the later job depend on this one with afterany",
	"on": "let this job depend on the others with afterany", "runone": "submit one job", "syncwith": "submit one job", "synccount": "submit one job",
	"beforestartarray": "let the later job depend on this one with after", "beforeokarray": "let the later job depend on this one with afterok",
	"beforenotokarray": "let the later job depend on this one with afternotok", "beforeanyarray": "let the later job depend on this one with afterany",
}

// setDepend reads "type:id[:id…][,type:id…]". A job waits for whole jobs: a subjob or a number of them is none.
func (s *submission) setDepend(value string) error {
	for _, group := range strings.Split(value, ",") {
		kind, ids, _ := strings.Cut(strings.TrimSpace(group), ":")
		when := waits[kind]
		if cure := unsupported[kind]; cure != "" {
			return refuse("-W depend="+kind+" is not supported yet: "+cure, exitDependency)
		}
		if when == "" || ids == "" {
			return illegal('W')
		}
		for _, id := range strings.Split(ids, ":") {
			id, _, _ = strings.Cut(id, "@")
			job, err := roost.ParseJobID(id, "host")
			if err != nil {
				return illegal('W')
			}
			name := job.String()
			if !strings.Contains(id, ".") {
				name = strconv.FormatUint(job.Seq, 10)
			}
			s.depends = append(s.depends, when+":"+name)
		}
	}
	return nil
}
