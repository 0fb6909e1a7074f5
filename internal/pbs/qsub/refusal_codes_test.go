package qsub

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

func TestRefusalFor(t *testing.T) {
	for _, c := range []struct {
		kind  roost.ErrorKind
		text  string // as the schedd writes it
		words string
		code  int
	}{
		{roost.NotFound, "queue wrok: not found: there is no such queue; there are work",
			"qsub: Unknown queue: queue wrok: ", 170},
		{roost.Conflict, "queue closed: not possible in this state: it takes no jobs now",
			"qsub: Queue is not enabled: ", 173},
		{roost.PermissionDenied, "pool: permission denied: acl_users does not let ann in",
			"qsub: Unauthorized Request: ", 159},
		{roost.PermissionDenied, "pool: permission denied: acl_hosts lets no jobs in that are submitted on n1",
			"qsub: Access from host not allowed, or unknown host: ", 160},
		{roost.PermissionDenied, "permission denied: jobs of root and of system users are not taken here; submit as " +
			"yourself", "qsub: Bad UID for job execution: ", 175},
		{roost.PermissionDenied, "queue urgent: permission denied: ann may not use it",
			"qsub: Access to queue is denied: ", 174},
		{roost.NotFound, "reservation R12: not found: there is no such reservation; there are none",
			"qsub: Unknown queue: reservation R12: ", 170},
		{roost.Exhausted, "queue work: limit reached: a task asks for 8GiB of memory, and 4GiB is the most here",
			"qsub: Job violates queue and/or server resource limits: ", 188},
		{roost.Exhausted, "limit reached: 5 tasks are queued, these would make 10, and this schedd takes 8",
			"qsub: Maximum number of jobs already in queue: ", 198},
		{roost.Exhausted, "limit reached: queue q: 3 tasks are in it and not done, these would make 4, and 3 is the " +
			"most of all", "qsub: Maximum number of jobs already in queue q: ", 198},
		{roost.Exhausted, "limit reached: pool: 3 tasks are in it and not done, these would make 4, and 3 is the " +
			"most of all", "qsub: Maximum number of jobs already in complex: ", 198},
		{roost.Exhausted, "limit reached: queue q: 3 tasks of user ann are in it and not done, these would make " +
			"4, and 3 is the most of a user", "qsub: would exceed queue generic's per-user limit: ", 38},
		{roost.Exhausted, "limit reached: queue q: 3 tasks of Unix group phys are in it and not done, these would " +
			"make 4, and 3 is the most of a Unix group", "qsub: would exceed queue q's per-group limit: ", 38},
		{roost.Exhausted, "limit reached: queue q: 3 tasks of group sci are in it and not done, these would make 4, " +
			"and 3 is the most of group sci", "qsub: Maximum number of jobs for project sci already in queue q: ", 38},
		{roost.Exhausted, "limit reached: pool: 3 tasks of user ann are in it and not done, these would make 4, and " +
			"3 is the most of user ann", "qsub: Maximum number of jobs for user ann already in complex: ", 38},
		{roost.Exhausted, "limit reached: pool: 3 tasks of group sci are in it and not done, these would make 4, and " +
			"3 is the most of a group", "qsub: would exceed complex's per-project limit: ", 38},
		{roost.Exhausted, "limit reached: queue q: tasks of user ann in it that are not done ask for 2 of ncpus, " +
			"these would make it 9, and 8 is the most of a user",
			"qsub: would exceed per-user limit on resource ncpus in queue q: ", 39},
		{roost.Exhausted, "limit reached: queue q: tasks of user ann in it that are not done ask for 2GiB of mem, " +
			"these would make it 9GiB, and 8GiB is the most of user ann",
			"qsub: would exceed user ann's limit on resource mem in queue q: ", 39},
		{roost.Exhausted, "limit reached: pool: tasks in it that are not done ask for 2 of ngpus, these would " +
			"make it 9, and 8 is the most of all", "qsub: would exceed limit on resource ngpus in complex: ", 39},
		{roost.Exhausted, "queue in: limit reached: none of its destinations takes the job: queue short: limit " +
			"reached: a task asks for 4 of cpus, and 2 is the most here",
			"qsub: Job rejected by all possible destinations: ", 191},
		{roost.Exhausted, "queue q: limit reached: an array of 4 tasks, and 3 is the most here",
			"qsub: Array job exceeds server or queue size limit: ", 3},
		{roost.Exhausted, "limit reached: its 9 parts together ask for 9 of cpus, and 8 is the most here",
			"qsub: Job violates queue and/or server resource limits: ", 188},
		{roost.NotFound, `dependency "afterok:9": not found: there is no job 9`, "qsub: Invalid Job Dependency: ", 206},
		{roost.Conflict, `dependency "afterok:9": not possible in this state: that job has ended otherwise already`,
			"qsub: Invalid Job Dependency: ", 206},
		{roost.NotFound, "limit bogus: not found: there is no such limit; there are none",
			"qsub: Unknown resource: bogus: ", 187},
		{roost.NotFound, "group sci.chme: not found: there is no such group",
			"qsub: Illegal attribute or resource value: ", 166},
		{roost.Conflict, "queue urgent: not possible in this state: the job asks for band free",
			"qsub: Illegal attribute or resource value: ", 166},
	} {
		got, ok := RefusalFor(c.kind, c.text)
		if !ok || got.ExitStatus != c.code || got.Text != c.words+strings.TrimPrefix(got.Text, c.words) ||
			!strings.HasSuffix(got.Text, strings.TrimPrefix(c.text, "limit ")) {
			t.Errorf("%s: got %+v, want %s with %d", c.text, got, c.words, c.code)
		}
	}
	if got, ok := RefusalFor(roost.Unavailable, "the schedd does not answer: connection refused"); ok {
		t.Errorf("silence became %+v", got)
	}
}
