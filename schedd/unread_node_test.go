package schedd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
)

// deafNode welcomes sessions and reads nothing after the greeting.
type deafNode struct {
	wire.UnimplementedStartdServer
	sessions chan *wire.SessionHello
}

func (d *deafNode) Session(stream grpc.BidiStreamingServer[wire.ToStartd, wire.FromStartd]) error {
	m, err := stream.Recv()
	if err != nil {
		return err
	}
	d.sessions <- m.GetHello()
	if err := stream.Send(&wire.FromStartd{
		Of: &wire.FromStartd_Welcome{Welcome: &wire.SessionWelcome{Node: "n1"}},
	}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

// TestNodeThatDoesNotRead checks that the messages that wait for such a node are bounded
// in bytes. Past the bound its session ends, and the next one begins with a welcome.
func TestNodeThatDoesNotRead(t *testing.T) {
	l, err := net.Listen("unix", t.TempDir()+"/startd.sock")
	if err != nil {
		t.Fatal(err)
	}
	deaf, server := &deafNode{sessions: make(chan *wire.SessionHello, 100)}, grpc.NewServer()
	wire.RegisterStartdServer(server, deaf)
	go server.Serve(l)
	defer server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := newSchedd(&config.Node{Name: "s", Schedd: &config.ScheddSettings{Socket: "unix:/s"}},
		nil, slog.New(slog.DiscardHandler), time.Now())
	s.daemonContext = ctx
	p := s.startSession(ctx, "n1", "unix:"+l.Addr().String())
	defer func() { p.stop(); <-p.stopped }()
	next := func() any {
		t.Helper()
		select {
		case m := <-s.inbox:
			return m
		case <-ctx.Done():
			t.Fatal("nothing has happened")
			return nil
		}
	}
	up, ok := next().(sessionOpened)
	if !ok {
		t.Fatalf("first came %T", up)
	}
	message := &wire.ToStartd{Of: &wire.ToStartd_Activate{
		Activate: &wire.Activate{Program: &wire.Program{Script: make([]byte, 1<<20)}},
	}}
	put := 0
	for size := proto.Size(message); put*size < 2*maxUnsentBytes+maxUnsentBytes/2; put++ {
		up.session.out.Put(message)
	}
	down, ok := next().(sessionClosed)
	if !ok || !errors.Is(down.err, roost.Exhausted) ||
		!strings.Contains(down.err.Error(), "wait for the node to take them") {
		t.Fatalf("the session ends with %v", down.err)
	}
	if n := len(up.session.out.Take()); n != 0 {
		t.Errorf("%d messages wait for a session that has ended", n)
	}
	if again, ok := next().(sessionOpened); !ok || again.session == up.session || again.welcome == nil {
		t.Fatalf("no other session begins: %T", again)
	}
}
