package admission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/wire"
)

// Who may use a queue Roost says by lists of users and groups of its own, and PBS by
// lists with + and -, one of users, one of Unix groups, and one of the hosts where jobs
// are submitted. Each list that is there has to let a job in.

func submitterText(user, group string) string {
	if group == "" {
		return user
	}
	return user + " of group " + group
}

// queueAdmits reports whether a user, on behalf of that group or none, may use the queue.
func queueAdmits(q *wire.JobQueue, user, group string) bool {
	if len(q.GetUsers())+len(q.GetGroups()) == 0 {
		return true
	}
	return slices.Contains(q.GetUsers(), user) || slices.ContainsFunc(q.GetGroups(), func(g string) bool {
		return group == g || strings.HasPrefix(group, g+".")
	})
}

// accessListExcludes says which list of PBS's kind keeps the submitter out; empty: none
// does.
func (e *QueueAdmission) accessListExcludes(q *wire.JobQueue) string {
	user := func(name string) bool {
		name, host, at := strings.Cut(name, "@")
		return name == e.Submitter.User && (!at || isHost(host, e.Submitter.Host))
	}
	group := func(name string) bool { return slices.Contains(e.Groups(), name) }
	host := func(name string) bool { return isHost(name, e.Submitter.Host) }
	switch {
	case !isAllowed(q.GetUserRoll(), user):
		return fmt.Sprintf("acl_users does not let %s in", e.Submitter.User)
	case !isAllowed(q.GetGroupRoll(), group):
		return fmt.Sprintf("acl_groups does not let %s in, whose groups are %s", e.Submitter.User,
			strings.Join(e.Groups(), ", "))
	case !isAllowed(q.GetHostRoll(), host):
		return fmt.Sprintf("acl_hosts lets no jobs in that are submitted on %s", e.Submitter.Host)
	}
	return ""
}

// isAllowed reports whether an access list admits somebody; fits reports whether an entry
// is about them. The first entry that fits decides. Otherwise + or - alone decides, and
// without one the answer is no. A nil list admits everybody.
func isAllowed(r *wire.Roll, fits func(name string) bool) bool {
	if r == nil {
		return true
	}
	otherwise := false
	for _, e := range r.GetEntries() {
		name, not := strings.CutPrefix(e, "-")
		name = strings.TrimPrefix(name, "+")
		switch {
		case name == "":
			otherwise = !not
		case fits(name):
			return !not
		}
	}
	return otherwise
}

// isHost reports whether a name, which may be * or begin with *., is that of a host. A
// host's short name fits what it is called in full.
func isHost(name, host string) bool {
	if name == "*" || strings.EqualFold(name, host) {
		return true
	}
	if end, wild := strings.CutPrefix(name, "*"); wild {
		return strings.HasSuffix(strings.ToLower(host), strings.ToLower(end))
	}
	short, _, dotted := strings.Cut(name, ".")
	return dotted && strings.EqualFold(short, host)
}
