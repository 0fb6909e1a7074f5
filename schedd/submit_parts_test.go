package schedd

import (
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// A submission that is too long for one message arrives whole, and one of which other
// bytes come than were announced does not.
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

func TestReceiveParts(t *testing.T) {
	whole, err := proto.Marshal(&wire.SubmitRequest{Key: "k", Jobs: []*wire.JobSpec{{Ad: "[]", Count: 3}}})
	if err != nil {
		t.Fatal(err)
	}
	size := uint64(len(whole))
	for _, c := range []struct {
		name  string
		parts []*wire.SubmitPart
		want  error
	}{
		{"in two parts", []*wire.SubmitPart{{Size: size, Data: whole[:2]}, {Data: whole[2:]}}, nil},
		{"one byte more", []*wire.SubmitPart{{Size: size, Data: whole}, {Data: []byte{0}}}, roost.Invalid},
		{"one byte less", []*wire.SubmitPart{{Size: size, Data: whole[:len(whole)-1]}}, roost.Invalid},
		{"longer parts than there may be", []*wire.SubmitPart{{Size: 2 << 20, Data: make([]byte, 2<<20)}},
			roost.Invalid},
		{"no submission", []*wire.SubmitPart{{Size: 1, Data: []byte{0xff}}}, roost.Invalid},
		{"more than there is room for", []*wire.SubmitPart{{Size: 1000}}, roost.Exhausted},
		{"nothing", nil, io.EOF},
	} {
		rest := c.parts
		req, err := receiveParts(func() (*wire.SubmitPart, error) {
			if len(rest) == 0 {
				return nil, io.EOF
			}
			part := rest[0]
			rest = rest[1:]
			return part, nil
		}, func(n uint64) error {
			if n == 1000 {
				return roost.Exhausted
			}
			return nil
		})
		if c.want == nil && (err != nil || req.GetKey() != "k") || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, %v, want %v", c.name, req, err, c.want)
		}
	}
}
