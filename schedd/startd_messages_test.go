package schedd

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestANodeSpeaksOfItsOwn checks that a node can report only what it was given. Its
// message about an attempt on another node changes nothing, and it gets no input of that
// attempt.
func TestANodeSpeaksOfItsOwn(t *testing.T) {
	h := &steppedSchedd{TB: t, at: ClockReading{time.Unix(1_000_000, 0), time.Hour}}
	h.core = NewCore("s", "domain", 40*time.Minute, 0, queue.New("s"), 1, 0, h.at.Now, h)
	h.core.ResumeLogged(h.at)
	ad := classad.New()
	ad.SetString(roost.AttrCmd, "/bin/true")
	ad.SetString(roost.AttrFileSystemDomain, "elsewhere")
	who := queue.CallerIdentity{User: "ada", UID: 1000, GID: 1000, Host: "s"}
	if err := h.core.Submit(h.at, who, "key", []queue.SubmitSpec{{Ad: ad, Count: 2}},
		func([]roost.JobID, bool) {}); err != nil {
		t.Fatal(err)
	}
	h.commitTurn()
	negotiatorSession := h.core.NegotiatorConnected(h.at, 7, "head", "head:1")
	h.core.RunTurn(h.at)
	var request uint64
	for _, m := range negotiatorSession.TakeMessages() {
		request = max(request, m.GetRequest().GetId())
	}
	sessions := map[string]*StartdSession{}
	attempts := map[string]*wire.AttemptRef{}
	for i, node := range []string{"honest", "rogue"} {
		h.core.NegotiatorReport(h.at, negotiatorSession, &wire.ToSchedd{Of: &wire.ToSchedd_Grant{Grant: &wire.Grant{
			Id: uint64(i + 1), Epoch: 7, Request: request, Node: node, Host: node, Address: node,
			Resources: &wire.Resources{MilliCpu: 1000, Memory: 1 << 20},
		}}})
		h.core.RunTurn(h.at)
		v := h.core.SessionOpened(h.at, node, &wire.SessionWelcome{Node: node})
		h.commitTurn()
		h.core.StartdReport(h.at, v, &wire.FromStartd{Of: &wire.FromStartd_Claim{
			Claim: &wire.ClaimReply{Grant: uint64(i + 1), Epoch: 7, Claim: 5, AdSequence: 1},
		}})
		h.commitTurn()
		for _, m := range v.TakeMessages() {
			if m.GetActivate() != nil {
				attempts[node] = m.GetActivate().GetAttempt()
			}
		}
		sessions[node] = v
	}
	theirs := attempts["honest"]
	if theirs == nil || attempts["rogue"] == nil {
		t.Fatalf("the attempts are %v", attempts)
	}
	of := codec.AttemptID(h.core.schedd.node.Name, theirs)
	unharmed := func(what string) {
		t.Helper()
		h.core.RunTurn(h.at)
		st, _ := h.core.Queue().Status(1)
		node := h.core.Queue().NodeOf(of)
		if st.Counts[roost.Running] != 0 || st.Failed != 0 || node != "honest" ||
			!h.core.Dispatch().HasAttempt("honest", of) || h.core.schedd.transfers.HasTransfer(of) ||
			h.core.schedd.service.HasLiveUsage(of.Task) {
			t.Errorf("%s: %v, on %q", what, st.Counts, node)
		}
	}
	exited := &wire.Exited{Attempt: theirs, Status: &wire.ExitStatus{}}
	for what, m := range map[string]*wire.FromStartd{
		"input":   {Of: &wire.FromStartd_Input{Input: &wire.InputReady{Attempt: theirs}}},
		"started": {Of: &wire.FromStartd_Started{Started: &wire.Started{Attempt: theirs}}},
		"exited":  {Of: &wire.FromStartd_Exited{Exited: exited}},
		"usage": {Of: &wire.FromStartd_Usage{Usage: &wire.UsageReport{
			Attempts: []*wire.AttemptUsage{{Attempt: theirs, Usage: &wire.TaskUsage{Memory: 1}}},
		}}},
		"suspended": {Of: &wire.FromStartd_Suspended{Suspended: &wire.Suspended{Attempt: theirs, Frozen: true}}},
		"health": {Of: &wire.FromStartd_Health{Health: &wire.TaskHealth{Attempt: theirs,
			State: wire.HealthState_HEALTH_STATE_FAILING}}},
		"metric": {Of: &wire.FromStartd_Metric{Metric: &wire.TaskMetric{Attempt: theirs, Value: 1}}},
		"taken": {Of: &wire.FromStartd_Taken{Taken: &wire.CheckpointTaken{Attempt: theirs,
			Image: &wire.Image{Attempt: theirs.Attempt, Sequence: 1}}}},
		"reach": {Of: &wire.FromStartd_Reach{Reach: &wire.ReachWanted{Attempt: theirs, Ticket: 1}}},
		"claim": {Of: &wire.FromStartd_Claim{Claim: &wire.ClaimReply{Grant: 1, Epoch: 7}}},
	} {
		h.core.StartdReport(h.at, sessions["rogue"], m)
		unharmed(what)
	}
	h.core.SessionClosed(h.at, sessions["rogue"])
	for what, c := range map[string]*wire.ClaimState{
		"a welcome with it running":  {Claim: 5, Grant: 1, Epoch: 7, Attempt: theirs, Running: true},
		"a welcome with its end":     {Claim: 6, Grant: 1, Epoch: 7, Attempt: theirs, Exited: exited},
		"a welcome with its waiting": {Claim: 7, Grant: 1, Epoch: 7, Attempt: theirs, Waiting: true},
	} {
		v := h.core.SessionOpened(h.at, "rogue", &wire.SessionWelcome{Node: "rogue", Claims: []*wire.ClaimState{c}})
		unharmed(what)
		h.core.SessionClosed(h.at, v)
	}
}

// TestExitOfUnreportedStart ends an attempt by its machine that was not reported to run.
// A job that may not run twice runs again only if its program never began.
func TestExitOfUnreportedStart(t *testing.T) {
	p := newPool(t)
	for _, c := range []struct {
		begun bool
		want  string
	}{{true, "held 1"}, {false, "starting 1"}} {
		id := p.submit(fmt.Sprint("begun ", c.begun), 1, "Rerunnable = false").GetIds()[0]
		a := receiveNext(t, p.startd.activated, "an attempt")
		p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Cause: wire.Cause_CAUSE_MACHINE, Begun: c.begun,
			Reason: "its starter died"}, "")
		receiveNext(t, p.startd.acknowledged, "the acknowledgement")
		if st := p.await(id, c.want); c.begun && !strings.Contains(st.GetReason(), "may not be run twice") {
			t.Errorf("it is held: %q", st.GetReason())
		}
	}
	if a := receiveNext(t, p.startd.activated, "another attempt"); a.GetAttempt().GetAttempt() != 2 {
		t.Errorf("got %v", a.GetAttempt())
	}
}
