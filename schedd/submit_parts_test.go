package schedd

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// TestSubmitParts checks that a submission that is too long for one message arrives
// whole. A submission whose bytes are not those that were announced is refused.
func TestSubmitParts(t *testing.T) {
	p := newPool(t)
	long := strings.Repeat("x", 100<<10)
	req := &wire.SubmitRequest{Key: "long"}
	for range 50 {
		req.Jobs = append(req.Jobs, &wire.JobSpec{Count: 1,
			Ad: `[Cmd = "/bin/true"; Hold = true; Long = "` + long + `"]`})
	}
	reply, err := wire.SendSubmission(p.ctx(), p.client, req)
	if err != nil || len(reply.GetIds()) != 50 {
		t.Fatalf("got %v, %v", reply, err)
	}
	if again, err := wire.SendSubmission(p.ctx(), p.client, req); err != nil || !again.GetRepeatedKey() {
		t.Errorf("again: got %v, %v", again, err)
	}
	if _, err := p.client.Submit(p.ctx(), req); !errors.Is(rpc.FromStatus(err), roost.Exhausted) {
		t.Errorf("in one message: got %v", err)
	}
	stream, err := p.client.SubmitParts(p.ctx())
	if err == nil {
		err = stream.Send(&wire.SubmitPart{Size: 1 << 40})
	}
	if err == nil {
		_, err = stream.CloseAndRecv()
	}
	if !errors.Is(rpc.FromStatus(err), roost.Exhausted) || !strings.Contains(err.Error(), "67108864 is the most") {
		t.Errorf("announced with a terabyte: got %v", err)
	}
}
