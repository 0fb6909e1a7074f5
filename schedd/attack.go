package schedd

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/sendqueue"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
)

// What a hostile schedd says beside what an honest one does. An ordinary build has none
// of it: see package attack.

// attackedSchedd is the submit node whose name, claims and jobs it takes.
const attackedSchedd = "submit"

// attackSession says what a hostile schedd says at the beginning of a session with a
// startd.
func attackSession(ctx context.Context, p *nodeConn, out *sendqueue.Queue[*wire.ToStartd]) {
	if attack.Is(attack.NoGrant) {
		for epoch := range uint64(4) {
			for _, capability := range [][]byte{nil, make([]byte, 32)} {
				out.Put(&wire.ToStartd{Of: &wire.ToStartd_Claim{Claim: &wire.ClaimRequest{
					Grant: 1<<40 + epoch, Epoch: epoch, Capability: capability, Owner: "root", Band: "monitoring",
					Ad: "[]", LeaseS: 1 << 30,
					Resources: &wire.Resources{MilliCpu: 1000, Memory: 1 << 20}, Uid: 12345, Gid: 12345,
					Victims: []uint64{1, 2, 3},
				}}})
			}
		}
	}
	if attack.Is(attack.LongOrders) {
		out.Put(&wire.ToStartd{Of: &wire.ToStartd_Message{Message: &wire.Message{Line: make([]byte, 33<<20)}}})
	}
	if attack.Is(attack.EndlessOrders) {
		go func() {
			order := &wire.ToStartd{Of: &wire.ToStartd_Release{Release: &wire.ReleaseClaim{Claim: 1 << 60}}}
			long := &wire.ToStartd{Of: &wire.ToStartd_Message{Message: &wire.Message{Line: make([]byte, 8<<20)}}}
			for again := time.Tick(time.Millisecond); ctx.Err() == nil; <-again {
				if out.IsDrained() { // the last ones were taken
					for range 1000 {
						out.Put(order)
					}
					out.Put(long)
				}
			}
		}()
	}
	if attack.Is(attack.OtherClaims) {
		go attackOutput(ctx, p.Client)
	}
}

// attackOutput asks a startd for what the tasks of another submit node have written, and
// writes into them.
func attackOutput(ctx context.Context, startd wire.StartdClient) {
	for job := range uint64(4) {
		ref := &wire.AttemptRef{Job: job, Attempt: 1}
		if s, err := startd.Tail(ctx, &wire.TailRequest{Schedd: attackedSchedd, Attempt: ref}); err == nil {
			s.Recv() // the startd logs what comes of it; so below
		}
		if s, err := startd.Fetch(ctx, &wire.FetchRequest{Schedd: attackedSchedd, Attempt: ref,
			Names: []string{"\x00stdout"}}); err == nil {
			s.Recv()
		}
		if s, err := startd.FetchImage(ctx,
			&wire.FetchImageRequest{Schedd: attackedSchedd, Attempt: ref, Sequence: 1}); err == nil {
			s.Recv()
		}
		if s, err := startd.Put(ctx); err == nil {
			s.Send(&wire.FileChunk{Schedd: attackedSchedd, Attempt: ref, Entry: &wire.FileEntry{Name: "x"}})
			s.CloseAndRecv()
		}
		if s, err := startd.Shell(ctx); err == nil {
			s.Send(&wire.ShellInput{Schedd: attackedSchedd, Attempt: ref, Command: []string{"id"}})
			s.Recv()
		}
	}
}

// attackName is the name in which a hostile schedd greets a startd.
func attackName(own string) string {
	if attack.Is(attack.OtherSchedd) {
		return attackedSchedd
	}
	return own
}

// attackGrant uses a grant more than once, and for more than it is.
func (s *Schedd) attackGrant(node string, m *wire.ClaimRequest) {
	if !attack.Is(attack.UsedGrants) {
		return
	}
	for _, change := range []func(*wire.ClaimRequest){
		func(*wire.ClaimRequest) {},
		func(m *wire.ClaimRequest) { m.Resources.MilliCpu *= 2 },
		func(m *wire.ClaimRequest) { m.Band = "monitoring" },
		func(m *wire.ClaimRequest) { m.Victims = []uint64{1, 2, 3} },
		func(m *wire.ClaimRequest) { m.Owner = "root" },
		func(m *wire.ClaimRequest) { m.Grant++ },
		func(m *wire.ClaimRequest) { m.Epoch++ },
		func(m *wire.ClaimRequest) { m.ClaimBy = 1 << 62 },
	} {
		other := proto.CloneOf(m)
		change(other)
		s.sendTo(node, &wire.ToStartd{Of: &wire.ToStartd_Claim{Claim: other}})
	}
}

// attackClaims tells a startd what is to become of claims and attempts of others. The
// numbers of claims lie near each other.
func (s *Schedd) attackClaims(e dispatch.ActivateClaim, program *wire.Program) {
	if !attack.Is(attack.OtherClaims) {
		return
	}
	for job := range uint64(4) {
		a := &wire.AttemptRef{Job: job + 1, Attempt: 1}
		for _, m := range []*wire.ToStartd{
			{Of: &wire.ToStartd_Vacate{Vacate: &wire.Vacate{Attempt: a, Fast: true, Reason: "attacked"}}},
			{Of: &wire.ToStartd_Freeze{Freeze: &wire.Freeze{Attempt: a, Frozen: true}}},
			{Of: &wire.ToStartd_Signal{Signal: &wire.Signal{Attempt: a, Signal: 9}}},
			{Of: &wire.ToStartd_Message{Message: &wire.Message{Attempt: a, Line: []byte("attacked"), Out: true}}},
			{Of: &wire.ToStartd_Limit{Limit: &wire.Limit{Attempt: a, WalltimeNs: 1, CpuNs: 1}}},
			{Of: &wire.ToStartd_HostFiles{HostFiles: &wire.HostFiles{Attempt: a, NodeFile: []string{"attacked"}}}},
			{Of: &wire.ToStartd_Acknowledge{Acknowledge: &wire.Acknowledge{Attempts: []*wire.AttemptRef{a}}}},
		} {
			if e.Attempt.Task.Job.Seq != a.Job {
				s.sendTo(e.Node, m)
			}
		}
	}
	for claim := e.Claim - min(e.Claim, 8); claim < e.Claim+8; claim++ {
		if claim != e.Claim {
			s.sendTo(e.Node, &wire.ToStartd{Of: &wire.ToStartd_Release{Release: &wire.ReleaseClaim{Claim: claim}}})
			s.sendTo(e.Node, &wire.ToStartd{Of: &wire.ToStartd_Activate{Activate: &wire.Activate{Claim: claim,
				Attempt: &wire.AttemptRef{Job: 1 << 40, Attempt: 1}, Program: program}}})
		}
	}
}
