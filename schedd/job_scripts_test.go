package schedd

import (
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// TestScriptOfJob checks that a job may name a script that was sent before, and no other.
func TestScriptOfJob(t *testing.T) {
	p := newPool(t)
	stream, err := p.client.KeepScript(p.ctx())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&wire.ScriptChunk{Data: []byte("echo hello\n")}); err != nil {
		t.Fatal(err)
	}
	reply, err := stream.CloseAndRecv()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "x", "../" + reply.GetName(), reply.GetName()[:63] + "1", "/etc/passwd"} {
		_, err := p.client.Submit(p.ctx(), &wire.SubmitRequest{Key: "bad",
			Jobs: []*wire.JobSpec{{Count: 1, Ad: `[Cmd = "/bin/true"; ScriptFile = "` + name + `"]`}}})
		if kind := rpc.KindOf(rpc.FromStatus(err)); kind != roost.Invalid {
			t.Errorf("script %q: %v", name, err)
		}
	}
	p.submit("k", 1, `HoldOnSubmit = true; Shell = "/bin/sh"; ScriptFile = "`+reply.GetName()+`"`)
	p.act(wire.ActRequest_RELEASE, "1")
	if a := receiveNext(t, p.startd.activated, "an attempt"); !a.GetHoldForInput() ||
		!a.GetProgram().GetScriptFollows() || a.GetProgram().GetExecutable() != "/bin/sh" {
		t.Errorf("the node is told %v", a)
	}
}
