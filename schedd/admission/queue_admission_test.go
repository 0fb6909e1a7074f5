package admission

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

func TestEnterQueues(t *testing.T) {
	policy := &wire.Policy{DefaultQueue: "work", Queues: []*wire.JobQueue{
		{Name: "work", Enabled: true, Priority: 7,
			Default: &wire.Extent{MilliCpus: proto.Int64(2500), Memory: proto.Int64(1 << 30)},
			Least:   &wire.Extent{MilliCpus: proto.Int64(500)},
			Most:    &wire.Extent{WalltimeS: proto.Int64(3600), Memory: proto.Int64(4 << 30)}},
		{Name: "urgent", Band: "production", Enabled: true, Users: []string{"eve"}, Groups: []string{"sci"}},
		{Name: "closed"},
	}, Reservations: &wire.Names{Name: []string{"R1", "work"}}}
	for _, c := range []struct {
		name, ad string
		want     string // an expression that holds of the ad afterwards, or the text of an error
		kind     error
	}{
		{"the default queue", ``,
			`Queue == "work" && RequestCpus == 2.5 && RequestMemory == 1024 && Walltime == 3600 && JobPrio == 7`, nil},
		{"what is said stays", `RequestCpus = 4; RequestMemory = 2048; Walltime = 60; JobPrio = 1`,
			`RequestCpus == 4 && RequestMemory == 2048 && Walltime == 60 && JobPrio == 1`, nil},
		{"the standard counts as not said", `RequestCpus = 1; RequestMemory = 256`,
			`RequestCpus == 2.5 && RequestMemory == 1024`, nil},
		{"too much", `RequestMemory = 8192`,
			"queue work: limit reached: a task asks for 8GiB of memory, and 4GiB is the most here", roost.Exhausted},
		{"too little", `RequestCpus = 0.25`,
			"queue work: limit reached: a task asks for 0.25 of cpus, and 0.5 is the least here", roost.Exhausted},
		{"too long", `Walltime = 7200`, "queue work: limit reached: a task asks for 2h0m0s of walltime, and 1h0m0s " +
			"is the most here", roost.Exhausted},
		{"none of that name", `Queue = "wrok"`,
			`queue wrok: not found: there is no such queue (did you mean "work"?); there are work, urgent, closed`,
			roost.NotFound},
		{"a reservation", `Queue = "R1"`, `Queue == "work" && Reservation == "R1" && JobPrio == 7`, nil},
		{"a reservation that does not suit the default queue", `Queue = "R1"; Walltime = 7200`,
			"queue work: limit reached: a task asks for 2h0m0s of walltime, and 1h0m0s is the most here",
			roost.Exhausted},
		{"a queue called like a reservation", `Queue = "work"`, `Queue == "work" && Reservation =?= undefined`, nil},
		{"not enabled", `Queue = "closed"`, "queue closed: not possible in this state: it takes no jobs now",
			roost.Conflict},
		{"not for everybody", `Queue = "urgent"`, "queue urgent: permission denied: ann may not use it",
			roost.PermissionDenied},
		{"for a group", `Queue = "urgent"; AccountingGroup = "sci.chem"`,
			`Band == "production" && RequestCpus =?= undefined`, nil},
		{"of another band", `Queue = "urgent"; AccountingGroup = "sci"; Band = "free"`,
			"queue urgent: not possible in this state: the job asks for band free, and the jobs of this queue are " +
				"of band production", roost.Conflict},
	} {
		ad, err := classad.Parse("[Cmd = \"/bin/true\"; " + c.ad + "]")
		if err != nil {
			t.Fatal(err)
		}
		specs := []queue.SubmitSpec{{Ad: ad, Count: 2}}
		err = enqueue(policy, queue.CallerIdentity{User: "ann"}, specs)
		if c.kind != nil {
			if !errors.Is(err, c.kind) || err.Error() != c.want {
				t.Errorf("%s: got %v, want %s", c.name, err, c.want)
			}
			continue
		}
		e, perr := classad.ParseExpr(c.want)
		if perr != nil {
			t.Fatal(perr)
		}
		if holds, ok := classad.Eval(e, specs[0].Ad, nil, &classad.EvalEnv{}).Bool(); err != nil || !ok || !holds {
			t.Errorf("%s: got %v, %v, want %s", c.name, specs[0].Ad, err, c.want)
		}
	}
	if err := enqueue(&wire.Policy{}, queue.CallerIdentity{},
		[]queue.SubmitSpec{{Ad: classad.New(), Count: 1}}); err != nil {
		t.Errorf("without queues: %v", err)
	}
}
