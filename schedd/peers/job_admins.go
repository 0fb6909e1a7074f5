package peers

import (
	"slices"
	"strings"
	"sync/atomic"
)

// Users with the capability for it act on everybody's jobs, at all schedds of the pool.
// Who they are the leader says; a schedd that hears of none knows those that it heard of
// last. For a job in another schedd's queue their own schedd says who they are, and the
// other one looks whether that user of that node may.

// JobAdmins are the users who may act on everybody's jobs: "ann@n1", or "ann" of any
// node.
type JobAdmins struct{ names atomic.Pointer[[]string] }

// Set replaces all names.
func (a *JobAdmins) Set(names []string) { a.names.Store(&names) }

// IsAdmin reports whether a user of a node is one of them. A user's name that has an @ in
// it could be taken for a user of another node, and is none of them.
func (a *JobAdmins) IsAdmin(user, node string) bool {
	names := a.names.Load()
	return names != nil && user != "" && !strings.Contains(user, "@") &&
		(slices.Contains(*names, user) || slices.Contains(*names, user+"@"+node))
}
