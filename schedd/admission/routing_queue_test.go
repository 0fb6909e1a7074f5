package admission

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

func parseSpec(t *testing.T, ad string) *queue.SubmitSpec {
	t.Helper()
	a, err := classad.Parse("[Cmd = \"/bin/true\"; " + ad + "]")
	if err != nil {
		t.Fatal(err)
	}
	return &queue.SubmitSpec{Ad: a, Count: 1}
}

// newRoutingPool returns a pool with a routing queue before a short and a long queue.
// Only the routing queue fills the long one.
func newRoutingPool() *wire.Policy {
	return &wire.Policy{
		All: &wire.JobQueue{Default: &wire.Extent{Memory: proto.Int64(1 << 30)},
			Most: &wire.Extent{MilliCpus: proto.Int64(8000)}, MaxArray: proto.Int64(100)},
		Queues: []*wire.JobQueue{
			{Name: "in", Enabled: true, Routing: true, Destinations: []string{"gone", "short", "inner"}},
			{Name: "inner", Enabled: true, Routing: true, Destinations: []string{"in", "long"}},
			{Name: "short", Enabled: true, Band: "production", Default: &wire.Extent{WalltimeS: proto.Int64(60)},
				Most: &wire.Extent{WalltimeS: proto.Int64(600)}, NoticeS: proto.Int64(30)},
			{Name: "long", Enabled: true, FromRoute: true, Most: &wire.Extent{MilliCpus: proto.Int64(16000),
				WalltimeS: proto.Int64(7200)}, Default: &wire.Extent{MilliCpus: proto.Int64(2000)}},
			{Name: "closed", Enabled: true, Routing: true, Stopped: true, Destinations: []string{"short"}},
			{Name: "patient", Enabled: true, Routing: true, Destinations: []string{"short"}, RouteHeld: true,
				RouteWaiting: true},
			{Name: "round", Enabled: true, Routing: true, Destinations: []string{"round"}},
			{Name: "list", Enabled: true, UserRoll: &wire.Roll{Entries: []string{"-ann@n2", "+ann", "-"}},
				GroupRoll: &wire.Roll{Entries: []string{"staff"}},
				HostRoll:  &wire.Roll{Entries: []string{"*.example.org", "n1"}}},
			{Name: "few", Enabled: true, MaxArray: proto.Int64(3)},
		},
	}
}

// TestRoute holds where jobs go, what they are there, and why they are refused.
func TestRoute(t *testing.T) {
	for _, c := range []struct {
		name, queue, ad, change string
		want                    string // the queue and some attributes, or the error
	}{
		{"the first that takes it", "in", "", "", "short walltime 60 memory 1024 band production notice 30"},
		{"the next, through another routing queue", "in", "Walltime = 3600", "",
			"long walltime 3600 memory 1024 cpus 2"},
		{"none will ever", "in", "Walltime = 9000", "",
			`queue in: limit reached: none of its destinations takes the job: queue gone: not found: there is no such queue; ` +
				`queue short: limit reached: a task asks for 2h30m0s of walltime, and 10m0s is the most here; ` +
				`queue inner: limit reached: none of its destinations takes the job: queue in: not possible in this state: the job comes from there; ` +
				`queue long: limit reached: a task asks for 2h30m0s of walltime, and 2h0m0s is the most here`},
		{"one is disabled", "in", "Walltime = 3600", "disable long", "in walltime 3600"},
		{"both are disabled", "in", "", "disable short long", "in"},
		{"the first is disabled", "in", "", "disable short", "long walltime 7200 memory 1024 cpus 2"},
		{"one is full", "in", "", "full short", "long walltime 7200 memory 1024 cpus 2"},
		{"all are full", "in", "", "full short long", "in"},
		{"its queue is disabled", "in", "", "disable in", "queue in: not possible in this state: it takes no jobs now"},
		{"its queue is stopped", "closed", "", "", "closed"},
		{"held", "in", "HoldOnSubmit = true", "", "in"},
		{"held, and none will ever", "closed", "HoldOnSubmit = true; Walltime = 9000", "start closed",
			`queue closed: limit reached: none of its destinations takes the job: queue short: limit reached: a task asks for 2h30m0s of walltime, and 10m0s is the most here`},
		{"waits for another", "in", `DependsOn = {"afterok:1.n1"}`, "", "in"},
		{"waits for a time", "in", "DeferralTime = 4000000000", "", "in"},
		{"waited for a time", "in", "DeferralTime = 1000", "",
			"short walltime 60 memory 1024 band production notice 30"},
		{"held, by a queue that does not mind", "patient", "HoldOnSubmit = true; DeferralTime = 4000000000", "",
			"short walltime 60 memory 1024 band production notice 30"},
		{"in a circle", "round", "", "", "queue round: limit reached: none of its destinations takes the job: queue " +
			"round: not possible in this state: the job comes from there"},
		{"from routing queues only", "long", "", "",
			"queue long: permission denied: only routing queues put jobs into it"},
		{"more than the pool has, where the queue says nothing", "list", "RequestCpus = 9", "",
			"queue list: limit reached: a task asks for 9 of cpus, and 8 is the most here"},
		{"no queue", "", "RequestCpus = 9", "", "limit reached: a task asks for 9 of cpus, and 8 is the most here"},
		{"no queue, with what the pool gives", "", "", "", " memory 1024"},
		{"on the list", "list", "", "", "list memory 1024"},
		{"on the list, from elsewhere", "list", "", "host n2",
			"queue list: permission denied: acl_users does not let ann in"},
		{"from a host that fits", "list", "", "host c.example.org", "list memory 1024"},
		{"from a host that does not", "list", "", "host n3",
			"queue list: permission denied: acl_hosts lets no jobs in that are submitted on n3"},
		{"of another group", "list", "", "group users",
			"queue list: permission denied: acl_groups does not let ann in, whose groups are users"},
		{"an array", "few", "", "count 4", "queue few: limit reached: an array of 4 tasks, and 3 is the most here"},
		{"an array as large as the pool allows", "short", "", "count 101",
			"queue short: limit reached: an array of 101 tasks, and 100 is the most here"},
		{"a gang is no array", "few", "GangSize = 4", "count 4", "few memory 1024"},
		{"a gang asks for all of it", "few", "GangSize = 9", "count 9",
			"queue few: limit reached: its 9 parts together ask for 9 of cpus, and 8 is the most here"},
	} {
		e := &QueueAdmission{Now: time.Now(), Policy: newRoutingPool(), Submitter: queue.CallerIdentity{User: "ann",
			Host: "n1"},
			Groups: func() []string {
				return []string{"users", "staff"}
			}, FullQueues: map[string]bool{}}
		spec := parseSpec(t, c.ad)
		for verb, args := range map[string][]string{strings.Split(c.change, " ")[0]: strings.Split(c.change, " ")[1:]} {
			for _, arg := range args {
				switch q, _ := FindQueue(e.Policy, arg); verb {
				case "disable":
					q.Enabled = false
				case "start":
					q.Stopped = false
				case "full":
					e.FullQueues[arg] = true
				case "host":
					e.Submitter.Host = arg
				case "group":
					e.Groups = func() []string { return []string{arg} }
				case "count":
					fmt.Sscan(arg, &spec.Count)
				}
			}
		}
		before := spec.Ad.String()
		err := e.enterQueue(spec, c.queue)
		got := visibleJobs(spec.Ad)
		if err != nil {
			if got = err.Error(); spec.Ad.String() != before {
				t.Errorf("%s: a refusal left %v of %s", c.name, spec.Ad, before)
			}
		}
		if got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestPoolAccess holds that lists of the pool keep people out of all its queues, and of
// none.
func TestPoolAccess(t *testing.T) {
	e := &QueueAdmission{Now: time.Now(), Policy: newRoutingPool(), Submitter: queue.CallerIdentity{User: "ann",
		Host: "n1"},
		Groups: func() []string {
			return []string{"users"}
		}, FullQueues: map[string]bool{}}
	e.Policy.All.UserRoll = &wire.Roll{Entries: []string{"-eve@*", "+"}}
	e.Policy.All.HostRoll = &wire.Roll{Entries: []string{"n1"}}
	for _, c := range []struct{ user, host, queue, want string }{
		{"ann", "n1", "short", "<nil>"}, {"ann", "n1", "", "<nil>"},
		{"eve", "n1", "short", "pool: permission denied: acl_users does not let eve in"},
		{"eve", "n1", "", "pool: permission denied: acl_users does not let eve in"},
		{"ann", "n2", "", "pool: permission denied: acl_hosts lets no jobs in that are submitted on n2"},
	} {
		e.Submitter.User, e.Submitter.Host = c.user, c.host
		spec := parseSpec(t, "")
		setQueueName(spec.Ad, c.queue)
		if err := e.AdmitJobs([]queue.SubmitSpec{*spec}); fmt.Sprint(err) != c.want {
			t.Errorf("%s of %s to %q: got %v, want %s", c.user, c.host, c.queue, err, c.want)
		}
	}
}

func visibleJobs(ad *classad.Ad) string {
	text, _ := ad.Str(roost.AttrQueue)
	for _, a := range []struct {
		name, as string
	}{{roost.AttrWalltime, "walltime"}, {roost.AttrRequestMemory, "memory"}, {roost.AttrRequestCpus, "cpus"},
		{roost.AttrNoticePeriod, "notice"}} {
		if n, ok := ad.Real(a.name); ok {
			text += fmt.Sprintf(" %s %v", a.as, n)
		}
		if a.name == roost.AttrRequestCpus {
			if band, ok := ad.Str(roost.AttrBand); ok {
				text += " band " + band
			}
		}
	}
	return text
}

// TestEnterAnother checks with random walks that earlier queues leave nothing behind in a
// job. In each queue the job equals one that entered this queue directly.
func TestEnterAnother(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		p := newRoutingPool()
		for _, q := range p.Queues {
			q.Enabled, q.FromRoute, q.Routing, q.Destinations = true, false, false, nil
		}
		text := ""
		for _, a := range []string{"Walltime = 120;", "RequestMemory = 512;", "RequestCpus = 3;",
			"Band = \"production\";", "JobPrio = 3;"} {
			if rng.IntN(3) == 0 {
				text += a
			}
		}
		e := &QueueAdmission{Now: time.Now(), Policy: p, Submitter: queue.CallerIdentity{User: "ann", Host: "n1"},
			Groups: func() []string {
				return []string{"staff"}
			}}
		walker := parseSpec(t, text)
		for range 5 {
			to := p.Queues[rng.IntN(len(p.Queues))].GetName()
			fresh := parseSpec(t, text)
			one, two := e.enterQueue(walker, to), e.enterQueue(fresh, to)
			if fmt.Sprint(one) != fmt.Sprint(two) {
				t.Fatalf("seed %d: %s: %v, and at once %v", seed, to, one, two)
			}
			if one == nil && !sameAd(walker.Ad, fresh.Ad) {
				t.Fatalf("seed %d: in %s it is %v, and at once %v", seed, to, walker.Ad, fresh.Ad)
			}
		}
	}
}

// sameAd compares two ads but for the order of their attributes.
func sameAd(a, b *classad.Ad) bool {
	lines := func(ad *classad.Ad) []string { return slices.Sorted(slices.Values(strings.Split(ad.String(), "\n"))) }
	return slices.Equal(lines(a), lines(b))
}

// TestIsAllowed compares the result of a PBS access list with the rule in the manual. The
// first entry that matches decides, then the sign without a name; otherwise the list
// refuses.
func TestIsAllowed(t *testing.T) {
	if !isAllowed(nil, func(string) bool { return false }) {
		t.Error("no list lets nobody in")
	}
	for _, c := range []struct {
		entries string
		want    bool
	}{
		{"", false}, {"+", true}, {"-", false}, {"ann", true}, {"+ann", true}, {"-ann", false}, {"eve", false},
		{"-eve +", true}, {"+ -ann", false}, {"-ann ann", false}, {"ann -ann", true}, {"- ann", true},
	} {
		if got := isAllowed(&wire.Roll{Entries: strings.Fields(c.entries)}, func(name string) bool {
			return name == "ann"
		}); got != c.want {
			t.Errorf("%q: got %v", c.entries, got)
		}
	}
}

func TestRoutingRefusalIsLasting(t *testing.T) {
	e := &QueueAdmission{Now: time.Now(), Policy: newRoutingPool(), Submitter: queue.CallerIdentity{User: "ann",
		Host: "n1"},
		FullQueues: map[string]bool{}}
	if err := e.enterQueue(parseSpec(t, "Walltime = 9000"), "in"); !errors.Is(err, roost.Exhausted) {
		t.Errorf("got %v", err)
	}
}

// enqueue makes new jobs what their queues want them to be.
func enqueue(p *wire.Policy, who queue.CallerIdentity, specs []queue.SubmitSpec) error {
	return (&QueueAdmission{Now: time.Now(), Policy: p, Submitter: who,
		Groups: func() []string { return nil }}).AdmitJobs(specs)
}
