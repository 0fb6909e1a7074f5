package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/internal/wire"
)

// newAllocSchedd is a schedd with an alloc set, of whose allocs one has no machine yet.
func newAllocSchedd() *clitest.FakeSchedd {
	two := &wire.Resources{MilliCpu: 2000, Memory: 4 << 30}
	half := &wire.Resources{MilliCpu: 500, Memory: 1 << 30}
	alloc := func(id, state, node string, inside *wire.AllocStatus) *wire.JobStatus {
		return &wire.JobStatus{Id: id, Name: "web", Owner: "ann", State: state, Tasks: 2, Node: node, Request: two,
			Counts: clitest.TaskCounts("running", 1, "idle", 1), Alloc: inside, Reason: "no machine has room"}
	}
	set := alloc("12.pool", "", "", &wire.AllocStatus{Open: 1, Tasks: 1, Inside: half, Jobs: []string{"13.pool"},
		Users: []string{"bob"}})
	set.Ad = `[ Alloc = true; AllocUsers = { "bob" }; Alterations = 4 ]`
	return &clitest.FakeSchedd{Jobs: []*wire.JobStatus{set,
		{Id: "13.pool", Name: "server", Owner: "ann", State: "running", Tasks: 1, Request: half,
			Counts: clitest.TaskCounts("running", 1), Inside: &wire.InsideAlloc{Set: "12.pool", Alloc: "12[0].pool"}}},
		Tasks: []*wire.JobStatus{
			alloc("12[0].pool", "running", "n1", &wire.AllocStatus{Open: 1, Tasks: 1, Inside: half,
				Jobs: []string{"13.pool"}}),
			alloc("12[1].pool", "idle", "", &wire.AllocStatus{Inside: &wire.Resources{}, Jobs: []string{"13.pool"},
				MoreJobs: 3})}}
}

// TestAllocCommand checks what is listed of allocs, and what the schedd is asked for.
func TestAllocCommand(t *testing.T) {
	f := newAllocSchedd()
	dir := f.Serve(t)
	for _, test := range []struct {
		line, want, changes string // of the alteration
		code                int
	}{
		{line: "roost alloc", want: "12[0].pool  web   open   n1    0.5/2  1GiB/4GiB      1  13"},
		{line: "roost alloc list --json", want: `"cpus": 0.5,`},
		{line: "roost alloc resize --cpus 4 --memory 6.5GiB 12", want: "gets 4 cores and 6.5GiB of memory where it is",
			changes: "[ RequestCpus = 4.000000000000000E+00; RequestMemory = 6656 ]"},
		{line: "roost alloc resize 12", want: "what is to change", code: 64},
		{line: "roost alloc resize --cpus many 12", want: "is not a number of cores", code: 64},
		{line: "roost alloc resize --count 3 --cpus 1 12", want: "one after the other", code: 64},
		{line: "roost alloc resize --count 0 12", want: "write 1 to", code: 64},
		{line: "roost alloc allow 12 carl bob", want: "jobs of carl, bob may be inside",
			changes: `[ AllocUsers = { "bob","carl" } ]`},
		{line: "roost alloc deny 12 bob", want: "no further jobs of bob come inside",
			changes: "[ AllocUsers = undefined ]"},
		{line: "roost alloc deny 12 carl", want: "these are: bob", code: 1},
		{line: "roost alloc allow 12 b;b", want: "the name of a user is wanted", code: 1},
		{line: "roost alloc allow 13 bob", want: "it is no alloc set", code: 1},
		{line: "roost alloc leave 13", want: "run on machines of their own", changes: "[ InAlloc = undefined ]"},
		{line: "roost alloc rm --cpus 3 12", want: "has no meaning for roost alloc rm", code: 64},
		{line: "roost alloc shrink 12", want: "it is one of list, resize", code: 64},
		{line: "roost show 12", want: "1 task, with 0.5 cores and 1GiB of memory"},
		{line: "roost show 13", want: "alloc 12[0].pool"},
		{line: "qstat -f 13", want: "in_alloc = 12[0].pool"},
		{line: "qstat -f 12", want: "alloc_inside.ncpus = 0.5"},
	} {
		f.Acted = nil
		a, stdout, stderr := newFullApp(t, dir)
		code := a.Run(t.Context(), strings.Fields(test.line))
		got := stdout.String() + stderr.String()
		if code != test.code && (test.code != 1 || code == 0) || !strings.Contains(got, test.want) {
			t.Errorf("%s: exit %d, got\n%s\nwant %s", test.line, code, got, test.want)
		}
		changes := ""
		if len(f.Acted) > 0 {
			changes = f.Acted[0].GetAlteration().GetChanges()
		}
		if strings.Join(strings.Fields(changes), " ") != test.changes {
			t.Errorf("%s: the schedd is asked for %q, want %q", test.line, changes, test.changes)
		}
	}
}

// TestRemoveAllocs checks that a set is removed with the jobs inside only if that is
// asked for.
func TestRemoveAllocs(t *testing.T) {
	for line, onlyEmpty := range map[string]bool{"roost alloc rm 12": true, "roost alloc rm --with-tasks 12": false} {
		f := newAllocSchedd()
		a, _, stderr := newFullApp(t, f.Serve(t))
		if code := a.Run(t.Context(), strings.Fields(line)); code != 0 {
			t.Errorf("%s: exit %d: %s", line, code, stderr)
		}
		if !slices.ContainsFunc(f.Acted, func(r *wire.ActRequest) bool {
			return r.GetVerb() == wire.ActRequest_REMOVE && r.GetOnlyEmpty() == onlyEmpty
		}) {
			t.Errorf("%s: the schedd is asked for %v", line, f.Acted)
		}
	}
}
