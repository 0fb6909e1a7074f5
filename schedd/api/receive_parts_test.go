package api

import (
	"errors"
	"io"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

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
