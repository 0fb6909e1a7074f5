package negotiation

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/sendqueue"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/flock"
	"github.com/roost-batch/roost/schedd/queue"
)

// hostLoop is a loop in which no machine has moved, except one.
type hostLoop struct {
	Loop
	moved string
}

func (l hostLoop) BootTime() roost.BootTime        { return 1 }
func (l hostLoop) HasMoved(machine, _ string) bool { return machine == l.moved }

// readyTasks is a job queue of which as many tasks are ready as the queue says.
type readyTasks struct {
	dispatch.JobQueue
	queue *queue.Queue
}

func (w readyTasks) ReadyTasks(id dispatch.RequestID) int {
	r, _ := w.queue.Request(queue.RequestID(id))
	return r.Ready
}

func (w readyTasks) NextGang(dispatch.RequestID) (int, bool) { return 0, false }
func (w readyTasks) Lease(dispatch.RequestID) time.Duration  { return time.Hour }
func (w readyTasks) SilenceRules(dispatch.RequestID) dispatch.SilenceRules {
	return dispatch.SilenceRules{}
}

// guestOfHost is a schedd with jobs that is connected to the leader of a host.
type guestOfHost struct {
	*LeaderConn
	t    *testing.T
	jobs uint64
	now  time.Time
	ids  uint64 // of grants
}

func newGuestOfHost(t *testing.T) *guestOfHost {
	q := queue.New("sub1")
	l := &LeaderConn{queue: q, dispatch: dispatch.New(readyTasks{queue: q}, dispatch.TimerOptions{}),
		loop: hostLoop{moved: "moved@physics"}, log: slog.New(slog.DiscardHandler),
		guest: newGuestState(Guest{Pool: "physics", Number: 3, Wait: time.Minute})}
	l.stream = newLeaderSession(LeaderConnected{Out: sendqueue.New[*wire.FromSchedd]()})
	return &guestOfHost{LeaderConn: l, t: t, now: time.Unix(1_800_000_000, 0)}
}

// submit adds a job of one task, and returns its request. What is offered is asked for.
func (g *guestOfHost) submit(settings string, offered bool) queue.RequestID {
	g.t.Helper()
	ad, err := classad.Parse(`[Cmd = "/bin/true"; RequestCpus = 2; ` + settings + `]`)
	if err != nil {
		g.t.Fatal(err)
	}
	g.jobs++
	g.queue.Apply(queue.JobEvent{Type: queue.Submitted, Time: g.now.UnixNano(), Job: g.jobs,
		Submission: &queue.SubmittedJob{Owner: "ann", UID: 1000, Ad: ad.String(), Count: 1}})
	st, _ := g.queue.Status(g.jobs)
	if r, ok := g.queue.Request(st.Request); !ok || r.Ready != 1 {
		g.t.Fatalf("job %d with %q is not ready", g.jobs, settings)
	}
	if offered {
		g.stream.lastUpdates[st.Request] = &lastUpdate{wanted: 1}
	}
	return st.Request
}

// grant has the leader of the host grant a machine, and returns why that is refused.
func (g *guestOfHost) grant(id queue.RequestID, change func(*wire.Grant)) (refused string) {
	g.t.Helper()
	g.ids++
	r, _ := g.queue.Request(id)
	m := &wire.Grant{Id: g.ids, Epoch: 7, Request: uint64(id), Node: "n1", Address: "10.1.0.1:9703",
		Capability: []byte("token"), Resources: wire.FromResources(roost.Resources{CPU: 2000})}
	if r != nil {
		m.Resources = wire.FromResources(r.Resources)
	}
	change(m)
	g.onHostMessage(&wire.ToSchedd{Of: &wire.ToSchedd_Grant{Grant: m}})
	messages := g.stream.out.Take()
	for _, s := range messages {
		if s.GetResult().GetGrant() != g.ids || s.GetResult().GetEpoch() != 7 || s.GetResult().GetReason() == "" {
			g.t.Errorf("it says %v", s)
		}
		refused = s.GetResult().GetReason()
	}
	return refused
}

// TestLyingHost checks what a host cannot make a schedd do by its grants.
func TestLyingHost(t *testing.T) {
	g := newGuestOfHost(t)
	none := func(*wire.Grant) {}
	resources := func(r roost.Resources) func(*wire.Grant) {
		return func(m *wire.Grant) { m.Resources = wire.FromResources(r) }
	}
	asked, exclusive := g.submit("", true), g.submit("Exclusive = true", true)
	own, _ := g.queue.Request(asked)
	more, less := own.Resources, own.Resources
	more.CPU, less.Memory = 1_000_000, 1
	for name, tt := range map[string]struct {
		request queue.RequestID
		change  func(*wire.Grant)
		want    string
	}{
		"nobody has asked":            {g.submit("RequestCpus = 3", false), none, "nobody has asked"},
		"a job that stays at home":    {g.submit("Flock = false; RequestCpus = 4", true), none, "flock = false"},
		"a job with a licence":        {g.submit(`ConcurrencyLimits = "matlab"`, true), none, "licences"},
		"a request that is not there": {queue.RequestID(4711), none, "nobody has asked"},
		"too much":                    {asked, resources(more), "more than was asked"},
		"too little":                  {asked, resources(less), "less than was asked"},
		"negative":                    {asked, resources(roost.Resources{CPU: -1000, Memory: -1}), "less than"},
		"less of a whole machine":     {exclusive, resources(less), "less than was asked"},
		"a machine of this pool":      {asked, func(m *wire.Grant) { m.Node = "n1@" }, "that name"},
		"a machine of another host":   {asked, func(m *wire.Grant) { m.Node = "n1@biology" }, "that name"},
		"no machine":                  {asked, func(m *wire.Grant) { m.Node = "" }, "that name"},
		"a path":                      {asked, func(m *wire.Grant) { m.Node = "../n1" }, "that name"},
		"a line":                      {asked, func(m *wire.Grant) { m.Host = "n1\nn2" }, "that name"},
		"a socket of this host":       {asked, func(m *wire.Grant) { m.Address = "unix:/run/s" }, "address"},
		"no address":                  {asked, func(m *wire.Grant) { m.Address = "" }, "address"},
		"a machine that has moved":    {asked, func(m *wire.Grant) { m.Node = "moved" }, "its own"},
	} {
		if got := g.grant(tt.request, tt.change); !strings.Contains(got, tt.want) {
			t.Errorf("%s: refused because %q, want %q", name, got, tt.want)
		}
	}
	if effects := g.dispatch.Effects(); len(effects) > 0 {
		t.Errorf("the dispatcher was to do %v", effects)
	}

	// Of two grants for one task, one is taken. Grants of two pools never have one id.
	if got := g.grant(asked, none); got != "" {
		t.Errorf("what was asked for is refused because %q", got)
	}
	if got := g.grant(exclusive, resources(more)); got != "" {
		t.Errorf("a whole machine is refused because %q", got)
	}
	g.grant(asked, none)
	refused := 0
	for _, e := range g.dispatch.Effects() {
		if r, ok := e.(dispatch.GrantResult); ok && r.Reason == dispatch.UnwantedClaim {
			refused++
			if epoch, pool := flock.SplitEpoch(r.Grant.Epoch); epoch != 7 || pool != 3 {
				t.Errorf("its epoch is %d of pool %d", epoch, pool)
			}
		}
	}
	if refused != 1 {
		t.Errorf("%d grants are unwanted, want 1", refused)
	}
	if epoch := flock.TagEpoch(1<<60|7, 3); epoch != flock.TagEpoch(7, 3) {
		t.Errorf("an epoch that names another pool: %x", epoch)
	}
}

// TestOtherMessagesOfHost checks that a host is not heard on anything but grants, and why
// requests wait.
func TestOtherMessagesOfHost(t *testing.T) {
	g := newGuestOfHost(t)
	asked, other := g.submit("", true), g.submit("RequestCpus = 3", false)
	why := &wire.Explanation{Summary: "busy"}
	for _, m := range []*wire.ToSchedd{{Of: &wire.ToSchedd_Admitted{Admitted: &wire.Admitted{}}},
		{Of: &wire.ToSchedd_Room{Room: &wire.Room{Queue: "q"}}}, {Of: &wire.ToSchedd_Kept{Kept: &wire.Kept{}}},
		{Of: &wire.ToSchedd_Unplaced{Unplaced: &wire.Unplaced{Request: uint64(other), Explanation: why}}},
		{Of: &wire.ToSchedd_Unplaced{Unplaced: &wire.Unplaced{Request: uint64(asked), Explanation: why,
			Refused: "no"}}},
		{Of: &wire.ToSchedd_Policy{Policy: &wire.Policy{Version: 5, All: &wire.JobQueue{Stopped: true}}}}} {
		g.onHostMessage(m)
	}
	if len(g.stream.explanations) != 1 || g.stream.explanations[asked] == nil {
		t.Errorf("explanations of %v", g.stream.explanations)
	}
	messages := g.stream.out.Take()
	if len(messages) != 1 || messages[0].GetPolicySeen().GetVersion() != 5 {
		t.Errorf("it answers %v", messages)
	}
	if r, _ := g.queue.Request(asked); g.IsRequestStopped(r) || r.Ready != 1 || g.lastPolicy != nil {
		t.Error("a host has set the policy of this pool")
	}
}

// TestGuestTellsNoUsage checks that a host hears nothing of what users hold.
func TestGuestTellsNoUsage(t *testing.T) {
	g := newGuestOfHost(t)
	g.SendUsage()
	if messages := g.stream.out.Take(); len(messages) > 0 {
		t.Errorf("it says %v", messages)
	}
}
