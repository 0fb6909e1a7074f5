package schedd

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestRetractOutcome checks that the negotiator, told of a task's failure, hears when the
// task runs no more. The task ends by itself, or somebody removes it.
func TestRetractOutcome(t *testing.T) { checkOutcomes(t) }

func checkOutcomes(t testing.TB) {
	for _, removed := range []bool{false, true} {
		h := &steppedSchedd{TB: t, at: ClockReading{time.Unix(1_000_000, 0), time.Hour}}
		h.core = NewCore("s", "domain", 40*time.Minute, 0, queue.New("s"), 1, 0, h.at.Now, h)
		h.core.ResumeLogged(h.at)
		ad := classad.New()
		ad.SetString(roost.AttrCmd, "/bin/false")
		ad.SetString(roost.AttrFileSystemDomain, "domain")
		ad.SetInt(roost.AttrMaxRetries, 1)
		who := queue.CallerIdentity{User: "ada", UID: 1000, GID: 1000, Host: "s"}
		if err := h.core.Submit(h.at, who, "key", []queue.SubmitSpec{{Ad: ad, Count: 1}},
			func([]roost.JobID, bool) {}); err != nil {
			t.Fatal(err)
		}
		h.commitTurn()
		negotiatorSession := h.core.NegotiatorConnected(h.at, 7, "head", "head:1")
		h.core.RunTurn(h.at)
		request := uint64(0)
		for _, m := range negotiatorSession.TakeMessages() {
			request = max(request, m.GetRequest().GetId())
		}
		var v *StartdSession
		finish := func() { // what there is to be written, which may be nothing
			h.core.RunTurn(h.at)
			h.at.Now, h.at.Boot = h.at.Now.Add(lazyCommitDelay), h.at.Boot+lazyCommitDelay
			if b, _, _ := h.core.Batch(h.at.Now); b != nil {
				h.core.Committed(b, 0)
			}
		}
		run := func(grant uint64) []wire.Outcome_Verdict {
			t.Helper()
			h.core.NegotiatorReport(h.at, negotiatorSession, &wire.ToSchedd{Of: &wire.ToSchedd_Grant{Grant: &wire.Grant{
				Id: grant, Epoch: 7, Request: request, Node: "n1", Address: "n1",
				Resources: &wire.Resources{MilliCpu: 1000, Memory: 1 << 20},
			}}})
			h.core.RunTurn(h.at)
			if v == nil {
				v = h.core.SessionOpened(h.at, "n1", &wire.SessionWelcome{Node: "n1", FileSystemDomain: "domain"})
			}
			finish()
			h.core.StartdReport(h.at, v, &wire.FromStartd{Of: &wire.FromStartd_Claim{
				Claim: &wire.ClaimReply{Grant: grant, Epoch: 7, Claim: grant, AdSequence: 1},
			}})
			finish()
			a := &wire.AttemptRef{Job: 1, Attempt: uint32(grant)}
			h.core.StartdReport(h.at, v,
				&wire.FromStartd{Of: &wire.FromStartd_Started{Started: &wire.Started{Attempt: a}}})
			h.core.StartdReport(h.at, v, &wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: &wire.Exited{Attempt: a,
				Status: &wire.ExitStatus{Code: 1}}}})
			h.core.RunTurn(h.at)
			if early := verdicts(negotiatorSession.TakeMessages()); len(early) > 0 {
				t.Errorf("it hears %v before that is on disk", early)
			}
			finish()
			return verdicts(negotiatorSession.TakeMessages())
		}
		if reported := run(1); len(reported) != 1 || reported[0] != wire.Outcome_FAILED {
			t.Fatalf("the first time it fails the negotiator hears %v", reported)
		}
		if removed {
			if err := h.core.Act(h.at, &wire.ActRequest{Verb: wire.ActRequest_REMOVE}, who,
				queue.TaskSelector{Job: roost.JobID{Seq: 1, Host: "s"}}, func() {}); err != nil {
				t.Fatal(err)
			}
			h.commitTurn()
			h.core.StartdReport(h.at, v, &wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: &wire.Exited{
				Attempt: &wire.AttemptRef{Job: 1, Attempt: 2},
				Status:  &wire.ExitStatus{Signal: 15, Cause: wire.Cause_CAUSE_REMOVED},
			}}})
			finish()
			if reported := verdicts(negotiatorSession.TakeMessages()); len(reported) != 1 ||
				reported[0] != wire.Outcome_GONE {
				t.Errorf("when it is removed the negotiator hears %v", reported)
			}
			continue
		}
		if reported := run(2); len(reported) != 2 || reported[0] != wire.Outcome_FAILED ||
			reported[1] != wire.Outcome_GONE {
			t.Errorf("the last time it fails the negotiator hears %v", reported)
		}
	}
}

func verdicts(all []*wire.FromSchedd) (reported []wire.Outcome_Verdict) {
	for _, m := range all {
		if o := m.GetOutcome(); o != nil {
			reported = append(reported, o.GetVerdict())
		}
	}
	return reported
}

// TestForgedImageIsBlamed checks that the node that made a forged image becomes suspect.
// The schedd knows that node by its session, not by the node's own statement. The leader
// is told the reason of the node that refused the image.
func TestForgedImageIsBlamed(t *testing.T) {
	p := newPool(t)
	_, a := p.run("")
	p.startd.send(&wire.FromStartd{Of: &wire.FromStartd_Taken{Taken: &wire.CheckpointTaken{
		Attempt: a.GetAttempt(), Image: &wire.Image{Sequence: 1, Attempt: 1, Size: 5, Server: "elsewhere:1",
			Node: "innocent"},
	}}})
	if k := receiveNext(t, p.startd.imageResults, "a word on the image"); k.GetError() != "" {
		t.Fatalf("got %v", k)
	}
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Cause: wire.Cause_CAUSE_VACATED}, "")
	b := receiveNext(t, p.startd.activated, "the next attempt")
	if from := b.GetProgram().GetRestore(); from.GetNode() != nodeName {
		t.Errorf("it goes on from an image of %s", from.GetNode())
	}
	p.startd.exited(b.GetAttempt(), &wire.ExitStatus{Cause: wire.Cause_CAUSE_RESTORE, Reason: "a process has uid 0",
		ForgedImage: true}, "")
	o := receiveNext(t, p.asked.outcomes, "an outcome")
	if o.GetNode() != nodeName || o.GetVerdict() != wire.Outcome_SPOILED ||
		!strings.Contains(o.GetReason(), "a process has uid 0") {
		t.Errorf("the leader is told %v", o)
	}
	receiveNext(t, p.startd.activated, "an attempt without it")
}

// TestSavedIsNoFailure checks that a program that has saved its state does not count
// against its machine. Its exit code says so.
func TestSavedIsNoFailure(t *testing.T) {
	p := newPool(t)
	_, a := p.run("CheckpointSelf = true; CheckpointExitCode = 85")
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Code: 85}, "")
	if o := receiveNext(t, p.asked.outcomes, "an outcome"); o.GetVerdict() != wire.Outcome_GOOD {
		t.Errorf("the leader is told %v", o)
	}
	b := receiveNext(t, p.startd.activated, "the next attempt")
	p.startd.exited(b.GetAttempt(), &wire.ExitStatus{Code: 86}, "")
	if o := receiveNext(t, p.asked.outcomes, "another outcome"); o.GetVerdict() != wire.Outcome_FAILED {
		t.Errorf("of another exit code the leader is told %v", o)
	}
}
