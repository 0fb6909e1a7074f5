package web

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// fakeShells are the shells of the fake schedd. Each sends back what it gets, but for a
// few words that are commands.
type fakeShells struct {
	opened  atomic.Int32
	over    atomic.Int32
	written atomic.Int64 // bytes that "flood" has sent
}

// floodSize is what the word flood writes, in bytes.
const floodSize = 8 << 20

func (f *fakeSchedd) Shell(stream grpc.BidiStreamingServer[wire.ShellInput, wire.ShellOutput]) error {
	user, err := f.caller(stream.Context())
	if err != nil {
		return err
	}
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if user != "ann" {
		return fmt.Errorf("task 1.n1: %w: it belongs to ann, and only its owner may enter it", roost.PermissionDenied)
	}
	f.shells.opened.Add(1)
	defer f.shells.over.Add(1)
	say := func(data []byte) error { return stream.Send(&wire.ShellOutput{Data: data}) }
	if err := say(fmt.Appendf(nil, "%s %t %dx%d\n", first.GetTask(), first.GetTerminal(), first.GetRows(),
		first.GetColumns())); err != nil {
		return err
	}
	for {
		in, err := stream.Recv()
		if err != nil {
			return err
		}
		switch data := in.GetData(); {
		case in.GetRows() > 0:
			err = say(fmt.Appendf(nil, "%dx%d\n", in.GetRows(), in.GetColumns()))
		case string(data) == "exit":
			return stream.Send(&wire.ShellOutput{Ended: true, Code: 7})
		case string(data) == "flood":
			for sent := 0; sent < floodSize && err == nil; sent += 32 << 10 {
				if err = say(bytes.Repeat([]byte{'x'}, 32<<10)); err == nil {
					f.shells.written.Add(32 << 10)
				}
			}
		default:
			err = say(data)
		}
		if err != nil {
			return err
		}
	}
}
