package peers

import (
	"context"
	"errors"
	"slices"
	"testing"

	"google.golang.org/grpc"
	grpcpeer "google.golang.org/grpc/peer"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// stoppedSchedd is a schedd that acts on nothing any more.
type stoppedSchedd struct{ LocalSchedd }

func (stoppedSchedd) ActOnJobs(context.Context, *wire.ActRequest, queue.CallerIdentity) (*wire.ActReply, error) {
	return nil, roost.Unavailable
}

// TestActForUsersOfOtherNodes checks that a schedd can act only for the users of its own
// node. What it says of other users has no effect.
func TestActForUsersOfOtherNodes(t *testing.T) {
	admins := new(JobAdmins)
	admins.Set([]string{"ann@n1"})
	act := func(p peer.Peer, user string) error {
		ctx := grpcpeer.NewContext(t.Context(), &grpcpeer.Peer{AuthInfo: p})
		_, err := NewService(stoppedSchedd{}, "n2", admins).Act(ctx, &wire.NeighbourAct{User: user,
			Act: &wire.ActRequest{Verb: wire.ActRequest_HOLD, Selection: &wire.Selection{Selectors: []string{"1"}}}})
		return err
	}
	node := func(name string) peer.Peer { return peer.Peer{Name: name, Certified: []peer.Role{peer.Schedd}} }
	for _, c := range []struct {
		peer peer.Peer
		user string
		want roost.ErrorKind
	}{
		{node("n1"), "ann", roost.Unavailable}, // she may: it is this schedd that has stopped
		{node("n3"), "ann", roost.PermissionDenied},
		{node("n3"), "ann@n1", roost.PermissionDenied},
		{node("n1"), "bob", roost.PermissionDenied},
		{node("n1"), "", roost.PermissionDenied},
		{peer.Peer{Local: true}, "ann", roost.PermissionDenied},
	} {
		if err := act(c.peer, c.user); !errors.Is(err, c.want) || rpc.KindOf(err) != c.want {
			t.Errorf("%v for %q: got %v, want %v", c.peer, c.user, err, c.want)
		}
	}
}

// TestOutputForUsersOfOtherNodes checks that the output of tasks goes to users of other
// nodes with the capability, and to no others.
func TestOutputForUsersOfOtherNodes(t *testing.T) {
	admins := new(JobAdmins)
	admins.Set([]string{"ann@n1"})
	s := NewService(stoppedSchedd{}, "n2", admins)
	var sent []string
	s.LogsFor = func(_ context.Context, req *wire.LogsRequest, who queue.CallerIdentity,
		_ func(*wire.LogChunk) error) error {
		sent = append(sent, req.GetId()+" "+who.User)
		return nil
	}
	for _, node := range []string{"n1", "n3"} {
		p := peer.Peer{Name: node, Certified: []peer.Role{peer.Schedd}}
		stream := &logStream{ctx: grpcpeer.NewContext(t.Context(), &grpcpeer.Peer{AuthInfo: p})}
		err := s.Logs(&wire.NeighbourLogs{User: "ann", Request: &wire.LogsRequest{Id: node}}, stream)
		if (err == nil) != (node == "n1") || err != nil && rpc.KindOf(err) != roost.PermissionDenied {
			t.Errorf("for ann of %s: %v", node, err)
		}
	}
	if want := []string{"n1 ann@n1"}; !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
}

type logStream struct {
	grpc.ServerStreamingServer[wire.LogChunk]
	ctx context.Context
}

func (s *logStream) Context() context.Context { return s.ctx }

// TestUsersOfCellQueue checks for which users submit nodes may submit to the queue of the
// cell, and act there. Nobody can submit to another schedd.
func TestUsersOfCellQueue(t *testing.T) {
	var seen queue.CallerIdentity
	s := NewService(recordingSchedd{who: &seen}, "physics", new(JobAdmins))
	submit := func(p peer.Peer, user string, uid uint32) (who queue.CallerIdentity, err error) {
		seen = queue.CallerIdentity{}
		ctx := grpcpeer.NewContext(t.Context(), &grpcpeer.Peer{AuthInfo: p})
		_, err = s.Submit(ctx, &wire.NeighbourSubmit{User: user, Uid: uid, Request: &wire.SubmitRequest{}})
		if err == nil {
			if _, err := s.Act(ctx, &wire.NeighbourAct{User: user, Uid: uid, Act: &wire.ActRequest{}}); err != nil {
				t.Errorf("%v may submit for %s, and not act: %v", p, user, err)
			}
		}
		return seen, err
	}
	n1, n2 := peer.Peer{Name: "n1", Certified: []peer.Role{peer.Schedd}}, peer.Peer{Name: "n2"}
	if _, err := submit(n1, "ann", 1000); rpc.KindOf(err) != roost.PermissionDenied {
		t.Errorf("to a schedd that is not the queue of the cell: %v", err)
	}
	s.SubmitFor = func(_ context.Context, _ *wire.SubmitRequest, who queue.CallerIdentity) (*wire.SubmitReply, error) {
		seen = who
		return &wire.SubmitReply{}, nil
	}
	who, err := submit(n2, "ann", 1000)
	if err != nil || who.Origin != "n2" || who.User != "ann" || who.UID != 1000 || who.Admin {
		t.Errorf("without limits: %+v, %v", who, err)
	}
	if !who.Owns("ann", 1000) || who.Owns("bob", 1000) || who.Owns("ann", 1001) {
		t.Error("another's job with the same uid or name is ann's")
	}
	s.admins.Set([]string{"ann@n2", "bob@n1"})
	who, err = submit(n2, "ann", 1000) // the last identity is that of the act
	if err != nil || !seen.Admin || seen.User != "ann" || seen.Origin != "n2" || !seen.Owns("ann", 1000) {
		t.Errorf("an administrator acts as %+v, %+v, %v", seen, who, err)
	}
	if _, err = submit(n1, "ann", 1000); err != nil || seen.Admin {
		t.Errorf("another node's user of the name of an administrator acts as %+v, %v", seen, err)
	}
	if _, err = submit(n1, "ann@n2", 1000); err != nil || seen.Admin {
		t.Errorf("a node that names another node's administrator acts as %+v, %v", seen, err)
	}
	s.admins.Set(nil)
	s.Trust = config.TrustList{{Node: "n1", Users: []string{"ann", "2000-2999"}}}
	for _, tt := range []struct {
		node peer.Peer
		user string
		uid  uint32
		ok   bool
	}{{n1, "ann", 1000, true}, {n1, "eve", 2500, true}, {n1, "bob", 1001, false}, {n2, "ann", 1000, false},
		{n1, "", 1000, false}, {peer.Peer{}, "ann", 1000, false}} {
		if _, err := submit(tt.node, tt.user, tt.uid); (err == nil) != tt.ok ||
			err != nil && rpc.KindOf(err) != roost.PermissionDenied {
			t.Errorf("%v for %s (%d): %v", tt.node, tt.user, tt.uid, err)
		}
	}
}

// recordingSchedd records for whom it acts.
type recordingSchedd struct {
	LocalSchedd
	who *queue.CallerIdentity
}

func (s recordingSchedd) ActOnJobs(_ context.Context, _ *wire.ActRequest,
	who queue.CallerIdentity) (*wire.ActReply, error) {
	*s.who = who
	return &wire.ActReply{}, nil
}

// shellStream is a shell that a user of another node opens.
type shellStream struct {
	grpc.BidiStreamingServer[wire.NeighbourShell, wire.ShellOutput]
	ctx   context.Context
	first *wire.NeighbourShell
}

func (s *shellStream) Context() context.Context            { return s.ctx }
func (s *shellStream) Recv() (*wire.NeighbourShell, error) { return s.first, nil }

// TestShellForUsersOfOtherNodes checks that only the queue of the cell opens shells for
// users of other nodes, and for whom.
func TestShellForUsersOfOtherNodes(t *testing.T) {
	admins := new(JobAdmins)
	admins.Set([]string{"ann@n1"})
	var opened queue.CallerIdentity
	open := func(p peer.Peer, user string, session, cell bool) error {
		opened = queue.CallerIdentity{}
		n := NewService(stoppedSchedd{}, "physics", admins)
		n.ShellFor = func(_ context.Context, _ *wire.ShellInput, who queue.CallerIdentity,
			_ func() (*wire.ShellInput, error), _ func(*wire.ShellOutput) error) error {
			opened = who
			return nil
		}
		if cell {
			n.SubmitFor = func(context.Context, *wire.SubmitRequest, queue.CallerIdentity) (*wire.SubmitReply, error) {
				return nil, roost.Unavailable
			}
			n.Trust = config.TrustList{{Node: "n*", Users: []string{"ann"}}}
		}
		return n.Shell(&shellStream{ctx: grpcpeer.NewContext(t.Context(), &grpcpeer.Peer{AuthInfo: p}),
			first: &wire.NeighbourShell{User: user, Uid: 1000, Gid: 100, Input: &wire.ShellInput{Session: session}}})
	}
	node := func(name string) peer.Peer { return peer.Peer{Name: name, Certified: []peer.Role{peer.Schedd}} }
	for _, c := range []struct {
		from          peer.Peer
		user          string
		session, cell bool
		want          error
	}{
		{node("n1"), "ann", false, true, nil},
		{node("n1"), "ann", false, false, roost.PermissionDenied}, // the capability gives no shells
		{node("n1"), "ann", true, true, roost.PermissionDenied},
		{node("n1"), "bob", false, true, roost.PermissionDenied},
		{node("x1"), "ann", false, true, roost.PermissionDenied},
		{node("n1"), "", false, true, roost.PermissionDenied},
	} {
		err := open(c.from, c.user, c.session, c.cell)
		if !errors.Is(err, c.want) {
			t.Errorf("%+v: got %v", c, err)
		}
		want := queue.CallerIdentity{User: "ann", UID: 1000, GID: 100, Host: "physics", Origin: "n1"}
		if (err == nil) != (opened == want) {
			t.Errorf("%+v: a shell is opened for %+v", c, opened)
		}
	}
}
