package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// maxUsers is how many users have gauges of their own. The rest are summed.
const maxUsers = 200

// usersPart is the part of the names of gauges by user.
const usersPart = "schedd_user"

// Users is the gauges of a schedd by user. They have a page of their own, which is served
// where the node file asks for it: whoever reads it sees what each person does.
type Users struct{ Snapshots *Published[UserSnapshot] }

// UserSnapshot is what each user has on a schedd at one instant.
type UserSnapshot map[string]*UserAmounts

// UserAmounts is what one user has on a schedd.
type UserAmounts struct {
	WaitingTasks, RunningTasks int
	Cores, GPUs, MemoryBytes   float64 // in claims, with or without a task
}

// Of returns the amounts of a user, for the owner of the state to add to.
func (s UserSnapshot) Of(user string) *UserAmounts {
	a := s[user]
	if a == nil {
		a = &UserAmounts{}
		s[user] = a
	}
	return a
}

// NewUsers registers the gauges by user. With a nil registry nothing is counted.
func NewUsers(r *Registry) *Users {
	user := Label{Name: "user", Most: maxUsers}
	waiting := r.Gauge("waiting_tasks", "Tasks of the user that are ready and wait for machines.", user)
	running := r.Gauge("running_tasks", "Tasks of the user that have a machine.", user)
	cores := r.Gauge("cores", "Cores in the claims of the user, with or without a task.", user)
	gpus := r.Gauge("gpus", "GPUs in the claims of the user, with or without a task.", user)
	memory := r.Gauge("memory_bytes", "Memory in the claims of the user, with or without a task.", user)
	u := &Users{newPublished(r, func(to *Reading, s *UserSnapshot) {
		labels := s.labels()
		for _, g := range []struct {
			to *Gauge
			of func(*UserAmounts) float64
		}{
			{waiting, func(a *UserAmounts) float64 { return float64(a.WaitingTasks) }},
			{running, func(a *UserAmounts) float64 { return float64(a.RunningTasks) }},
			{cores, func(a *UserAmounts) float64 { return a.Cores }},
			{gpus, func(a *UserAmounts) float64 { return a.GPUs }},
			{memory, func(a *UserAmounts) float64 { return a.MemoryBytes }},
		} {
			byName := make(map[string]float64, len(*s))
			for name, amounts := range *s {
				byName[name] = g.of(amounts)
			}
			to.SetNamed(g.to, byName, labels)
		}
	})}
	r.seal()
	return u
}

// labels returns the labels of the users that have gauges of their own. They are the same
// in all families: those with most cores, then those with most tasks that wait.
func (s UserSnapshot) labels() map[string]string {
	names := slices.SortedFunc(maps.Keys(s), func(a, b string) int {
		return cmp.Or(cmp.Compare(s[b].Cores, s[a].Cores), cmp.Compare(s[b].WaitingTasks, s[a].WaitingTasks),
			strings.Compare(a, b))
	})
	return labelsOfFirst(names, maxUsers)
}
