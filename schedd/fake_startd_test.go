package schedd

import (
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// fakeStartd answers every wish for a claim, and does with attempts what the test says.
type fakeStartd struct {
	wire.UnimplementedStartdServer
	t                  testing.TB
	activated          chan *wire.Activate
	vacated            chan *wire.Vacate
	acknowledged       chan *wire.AttemptRef
	imageResults       chan *wire.CheckpointKept
	frozen             chan *wire.Freeze
	checkpointRequests chan *wire.TakeCheckpoint
	launched           chan *wire.Launch
	signals            chan *wire.Signal
	messages           chan *wire.Message
	limits             chan *wire.Limit
	secrets            chan *wire.PlaceSecrets
	renewed            chan *wire.RenewLeases
	restored           chan []byte   // what PutImage brought
	images             chan []byte   // what FetchImage gives, one after the other
	corruptsImages     bool          // it gives another digest
	imageHalfway       chan struct{} // if set, it waits for it in the middle of an image
	full               bool          // it has no room for an image

	claimRequests chan *wire.ClaimRequest
	shells        chan *fakeShell

	mu             sync.Mutex
	reportedClaims []*wire.ClaimState // what the next welcome lists
	claims         uint64
	refusals       int                                                      // so many claims, before one is granted
	stream         grpc.BidiStreamingServer[wire.ToStartd, wire.FromStartd] // the present session
}

// serveStartd serves a startd at an address until the test ends.
func serveStartd(t testing.TB, address string) *fakeStartd {
	t.Helper()
	f := &fakeStartd{
		t: t, activated: make(chan *wire.Activate, 100), vacated: make(chan *wire.Vacate, 100),
		acknowledged: make(chan *wire.AttemptRef, 100),
		imageResults: make(chan *wire.CheckpointKept, 100), frozen: make(chan *wire.Freeze, 100),
		checkpointRequests: make(chan *wire.TakeCheckpoint, 100),
		shells:             make(chan *fakeShell, 100), claimRequests: make(chan *wire.ClaimRequest, 100),
		launched: make(chan *wire.Launch, 100), signals: make(chan *wire.Signal, 100),
		messages: make(chan *wire.Message, 100), limits: make(chan *wire.Limit, 100),
		secrets: make(chan *wire.PlaceSecrets, 100),
		renewed: make(chan *wire.RenewLeases, 100), restored: make(chan []byte, 100), images: make(chan []byte, 100),
	}
	serve(t, address, func(s *rpc.Server) { wire.RegisterStartdServer(s, f) })
	return f
}

func (f *fakeStartd) Session(stream grpc.BidiStreamingServer[wire.ToStartd, wire.FromStartd]) error {
	m, err := stream.Recv()
	if stream.Context().Err() != nil { // of a schedd that has ended meanwhile
		return stream.Context().Err()
	}
	if err != nil || m.GetHello() == nil {
		f.t.Errorf("a session began with %v, %v", m, err)
		return err
	}
	f.mu.Lock()
	f.stream = stream
	welcome := &wire.SessionWelcome{Node: nodeName, Claims: f.reportedClaims, FileSystemDomain: domain}
	f.mu.Unlock()
	f.send(&wire.FromStartd{Of: &wire.FromStartd_Welcome{Welcome: welcome}})
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		f.onMessage(m)
	}
}

func (f *fakeStartd) onMessage(m *wire.ToStartd) {
	switch m := m.GetOf().(type) {
	case *wire.ToStartd_Claim:
		select {
		case f.claimRequests <- m.Claim:
		default: // nobody looks at so many
		}
		f.mu.Lock()
		id := uint64(0)
		if f.refusals--; f.refusals < 0 {
			f.claims++
			id = f.claims
		}
		f.mu.Unlock()
		f.send(&wire.FromStartd{Of: &wire.FromStartd_Claim{Claim: &wire.ClaimReply{
			Grant: m.Claim.GetGrant(), Epoch: m.Claim.GetEpoch(), Claim: id, AdSequence: 1, ScratchDomain: domain,
		}}})
	case *wire.ToStartd_Activate:
		f.activated <- m.Activate
	case *wire.ToStartd_Vacate:
		f.vacated <- m.Vacate
	case *wire.ToStartd_Kept:
		f.imageResults <- m.Kept
	case *wire.ToStartd_Freeze:
		f.frozen <- m.Freeze
	case *wire.ToStartd_Checkpoint:
		f.checkpointRequests <- m.Checkpoint
	case *wire.ToStartd_Signal:
		f.signals <- m.Signal
	case *wire.ToStartd_Message:
		f.messages <- m.Message
	case *wire.ToStartd_Renew:
		select {
		case f.renewed <- m.Renew:
		default: // nobody looks at so many
		}
	case *wire.ToStartd_Limit:
		f.limits <- m.Limit
	case *wire.ToStartd_Secrets:
		f.secrets <- m.Secrets
	case *wire.ToStartd_Launch:
		f.launched <- m.Launch
	case *wire.ToStartd_Acknowledge:
		for _, a := range m.Acknowledge.GetAttempts() {
			f.acknowledged <- a
		}
	}
}

func (f *fakeStartd) send(m *wire.FromStartd) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.stream.Send(m)
	// the schedd goes in the end
	if gone := status.Code(err) == codes.Unavailable || status.Code(err) == codes.Canceled; err != nil && !gone {
		f.t.Errorf("send %v: %v", m, err)
	}
}

// setReportedClaims says what the next welcome lists.
func (f *fakeStartd) setReportedClaims(claims ...*wire.ClaimState) {
	f.mu.Lock()
	f.reportedClaims = claims
	f.mu.Unlock()
}

func (f *fakeStartd) started(a *wire.AttemptRef) {
	f.send(&wire.FromStartd{Of: &wire.FromStartd_Started{Started: &wire.Started{Attempt: a, Pid: 1}}})
}

func (f *fakeStartd) exited(a *wire.AttemptRef, status *wire.ExitStatus, stdout string) {
	f.send(&wire.FromStartd{Of: &wire.FromStartd_Exited{Exited: exitReport(a, status, stdout)}})
}

func exitReport(a *wire.AttemptRef, status *wire.ExitStatus, stdout string) *wire.Exited {
	return &wire.Exited{Attempt: a, Status: status, Stdout: []byte(stdout), StdoutSize: int64(len(stdout))}
}

// receiveNext takes from a channel, and fails when nothing comes.
func receiveNext[T any](t testing.TB, from <-chan T, what string) (x T) {
	t.Helper()
	select {
	case x = <-from:
	case <-time.After(time.Minute):
		t.Fatalf("%s did not come", what)
	}
	return x
}
