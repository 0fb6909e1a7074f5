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

// TestAbsolve holds that the negotiator, once it has heard that a task failed, hears that it runs no more: by itself, or because somebody removed it.
func TestAbsolve(t *testing.T) {
	for _, removed := range []bool{false, true} {
		h := &byHand{T: t, at: Moment{time.Unix(1_000_000, 0), time.Hour}}
		h.core = NewCore("s", "domain", 40*time.Minute, 0, queue.New("s"), 1, 0, h.at.Now, h)
		h.core.Resume(h.at)
		ad := classad.New()
		ad.SetString(roost.AttrCmd, "/bin/false")
		ad.SetString(roost.AttrFileSystemDomain, "domain")
		ad.SetInt(roost.AttrMaxRetries, 1)
		who := queue.Submitter{User: "ada", UID: 1000, GID: 1000, Host: "s"}
		if err := h.core.Submit(h.at, who, "key", []queue.Spec{{Ad: ad, Count: 1}}, func([]roost.JobID, bool) {}); err != nil {
			t.Fatal(err)
		}
		h.write()
		talk := h.core.Joined(h.at, 7, "head", "head:1")
		h.core.Turn(h.at)
		request := uint64(0)
		for _, m := range talk.Take() {
			request = max(request, m.GetRequest().GetId())
		}
		var v *Session
		settle := func() { // what there is to be written, which may be nothing
			h.core.Turn(h.at)
			h.at.Now, h.at.Boot = h.at.Now.Add(lazyFor), h.at.Boot+lazyFor
			if b, _, _ := h.core.Batch(h.at.Now); b != nil {
				h.core.Committed(b, 0)
			}
		}
		run := func(grant uint64) []wire.Outcome_Verdict {
			t.Helper()
			h.core.Advised(h.at, talk, &wire.ToSchedd{Of: &wire.ToSchedd_Grant{Grant: &wire.Grant{
				Id: grant, Epoch: 7, Request: request, Node: "n1", Address: "n1", Resources: &wire.Resources{MilliCpu: 1000, Memory: 1 << 20},
			}}})
			h.core.Turn(h.at)
			if v == nil {
				v = h.core.Opened(h.at, "n1", &wire.SessionWelcome{Node: "n1", FileSystemDomain: "domain"})
			}
			settle()
			h.core.Heard(h.at, v, &wire.FromStartd{Of: &wire.FromStartd_Claim{Claim: &wire.ClaimReply{Grant: grant, Epoch: 7, Claim: grant, AdSequence: 1}}})
			settle()
			a := &wire.AttemptRef{Job: 1, Attempt: uint32(grant)}
			h.core.Heard(h.at, v, &wire.FromStartd{Of: &wire.FromStartd_Started{Started: &wire.Started{Attempt: a}}})
			h.core.Heard(h.at, v, &wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: &wire.Exited{Attempt: a, Status: &wire.ExitStatus{Code: 1}}}})
			settle()
			return verdicts(talk.Take())
		}
		if told := run(1); len(told) != 1 || told[0] != wire.Outcome_FAILED {
			t.Fatalf("the first time it fails the negotiator hears %v", told)
		}
		if removed {
			if err := h.core.Act(h.at, wire.ActRequest_REMOVE, who, queue.Target{Job: roost.JobID{Seq: 1, Host: "s"}}, func() {}); err != nil {
				t.Fatal(err)
			}
			h.write()
			h.core.Heard(h.at, v, &wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: &wire.Exited{
				Attempt: &wire.AttemptRef{Job: 1, Attempt: 2}, Status: &wire.ExitStatus{Signal: 15, Cause: wire.Cause_CAUSE_REMOVED},
			}}})
			settle()
			if told := verdicts(talk.Take()); len(told) != 1 || told[0] != wire.Outcome_GONE {
				t.Errorf("when it is removed the negotiator hears %v", told)
			}
			continue
		}
		if told := run(2); len(told) != 2 || told[0] != wire.Outcome_FAILED || told[1] != wire.Outcome_GONE {
			t.Errorf("the last time it fails the negotiator hears %v", told)
		}
	}
}

// What was met on the job's own files is not the node's fault by the node's word alone.
func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		cause    queue.Cause
		code     int32
		ownFiles bool
		want     wire.Outcome_Verdict
		says     bool
	}{
		{queue.ByItself, 0, false, wire.Outcome_GOOD, true},
		{queue.ByItself, 1, false, wire.Outcome_FAILED, true},
		{queue.ByLaunch, 0, false, wire.Outcome_FAILED, true},
		{queue.ByMachine, 0, false, wire.Outcome_SPOILED, true},
		{queue.ByMachine, 0, true, wire.Outcome_FAILED, true},
		{queue.ByRemoval, 0, false, 0, false},
	} {
		got, says := verdict(&queue.Exit{Cause: tt.cause, Code: tt.code}, tt.ownFiles)
		if got != tt.want || says != tt.says {
			t.Errorf("%v, code %d, own files %v: got %v %v, want %v %v", tt.cause, tt.code, tt.ownFiles, got, says, tt.want, tt.says)
		}
	}
}

func verdicts(all []*wire.FromSchedd) (told []wire.Outcome_Verdict) {
	for _, m := range all {
		if o := m.GetOutcome(); o != nil {
			told = append(told, o.GetVerdict())
		}
	}
	return told
}

// TestForgedImageIsBlamed: of an image that no honest machine makes the node is suspected that has made it, by its session and not by what it says itself, and it is
// told of who refused it.
func TestForgedImageIsBlamed(t *testing.T) {
	p := newPool(t)
	_, a := p.run("")
	p.startd.send(&wire.FromStartd{Of: &wire.FromStartd_Taken{Taken: &wire.CheckpointTaken{
		Attempt: a.GetAttempt(), Image: &wire.Image{Sequence: 1, Attempt: 1, Size: 5, Server: "elsewhere:1", Node: "innocent"},
	}}})
	if k := next(t, p.startd.kept, "a word on the image"); k.GetError() != "" {
		t.Fatalf("got %v", k)
	}
	p.startd.exited(a.GetAttempt(), &wire.ExitStatus{Cause: wire.Cause_CAUSE_VACATED}, "")
	b := next(t, p.startd.activated, "the next attempt")
	if from := b.GetProgram().GetRestore(); from.GetNode() != nodeName {
		t.Errorf("it goes on from an image of %s", from.GetNode())
	}
	p.startd.exited(b.GetAttempt(), &wire.ExitStatus{Cause: wire.Cause_CAUSE_RESTORE, Reason: "a process has uid 0", ForgedImage: true}, "")
	o := next(t, p.asked.outcomes, "an outcome")
	if o.GetNode() != nodeName || o.GetVerdict() != wire.Outcome_SPOILED || !strings.Contains(o.GetReason(), "a process has uid 0") {
		t.Errorf("the leader is told %v", o)
	}
	next(t, p.startd.activated, "an attempt without it")
}
