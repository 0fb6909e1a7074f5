package condor

import (
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// JobID names a cluster, or one proc of it.
type JobID struct {
	Cluster uint64
	Proc    int // WholeCluster: all of its procs
}

// WholeCluster is the proc of an id that names a cluster.
const WholeCluster = -1

// ParseJobID reads "CLUSTER" or "CLUSTER.PROC".
func ParseJobID(text string) (JobID, bool) {
	head, tail, isProc := strings.Cut(text, ".")
	cluster, ok := parseNumber(head, 64)
	if !ok || cluster == 0 {
		return JobID{}, false
	}
	if !isProc {
		return JobID{cluster, WholeCluster}, true
	}
	proc, ok := parseNumber(tail, 31)
	return JobID{cluster, int(proc)}, ok
}

// parseNumber reads digits. ParseUint alone would take a sign or an underscore.
func parseNumber(text string, bits int) (uint64, bool) {
	if text == "" || document.LeadingDigits(text) != len(text) {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, bits)
	return n, err == nil
}

// String writes the id as HTCondor does.
func (id JobID) String() string {
	if id.Proc == WholeCluster {
		return strconv.FormatUint(id.Cluster, 10)
	}
	return strconv.FormatUint(id.Cluster, 10) + "." + strconv.Itoa(id.Proc)
}

// Matches reports whether the id names that proc.
func (id JobID) Matches(proc JobID) bool {
	return id.Cluster == proc.Cluster && (id.Proc == WholeCluster || id.Proc == proc.Proc)
}

// IDOf returns the id of a task.
func IDOf(s *scheddapi.JobStatus) JobID {
	return JobID{ClusterOf(s.GetId()), int(s.GetIndex())}
}

// ClusterOf returns the number in the id of a job or task of Roost; 0: there is none.
func ClusterOf(id string) uint64 {
	n, _ := strconv.ParseUint(id[:document.LeadingDigits(id)], 10, 64)
	return n
}
