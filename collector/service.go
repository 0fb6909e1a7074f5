package collector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/collector/adstore"
	"github.com/roost-batch/roost/collector/dns"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// grpcService answers the calls of wire.Collector.
type grpcService struct {
	wire.UnimplementedCollectorServer
	storeLoop *storeLoop
	isRevoked func(serial string) bool // whether the certificate with a serial number is revoked; nil: none is
	exporter  *metrics.Exporter
	dns       *dns.Server // nil: none
}

// Advertise accepts updates until the stream ends. The ads then stay until their leases
// expire, because a daemon that lost its connection still exists. If the stream was cut
// because the node's certificate was revoked, its ads are removed.
func (s *grpcService) Advertise(stream grpc.BidiStreamingServer[wire.AdUpdate, wire.AdAck]) error {
	ctx := stream.Context()
	caller, _ := peer.FromContext(ctx)
	ads := streamAds{}
	defer func() { s.withdrawAds(ctx, caller, ads) }()
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		u := adstore.AdUpdate{
			Type: m.GetType(), Name: m.GetName(), Sequence: m.GetSequence(), Started: m.GetStarted(),
			Node: caller.Name, Serial: caller.Serial, From: senderAddress(ctx),
			Lease: time.Duration(m.GetLeaseMs()) * time.Millisecond,
			Ad:    m.GetAd(), Private: m.GetPrivate(), Invalidate: m.GetInvalidate(),
		}
		if caller.CellQueue != "" && u.Name == caller.CellQueue {
			u.Node = caller.CellQueue // the ad of the cell's queue comes from whichever member leads
		}
		began := s.storeLoop.metrics.UpdateTime.Now()
		outcome, err := s.applyUpdate(ctx, caller, u)
		if err != nil {
			return err
		}
		s.storeLoop.metrics.UpdateTime.ObserveSince(began)
		ads.addUpdate(u, outcome)
		if err := stream.Send(&wire.AdAck{Sequence: u.Sequence, Resend: outcome == adstore.ResendAd}); err != nil {
			return err
		}
	}
}

func (s *grpcService) applyUpdate(ctx context.Context, caller peer.Peer,
	u adstore.AdUpdate) (outcome adstore.UpdateOutcome, err error) {
	if !mayAdvertiseType(caller, u.Type) {
		return outcome, fmt.Errorf("ad of %s %q: %w: the certificate of %s is for %v", u.Type, u.Name,
			roost.PermissionDenied, caller.Name, caller.Certified)
	}
	if !mayAdvertiseName(caller, u.Name) {
		return outcome, fmt.Errorf("ad of %s %q: %w: %s may only advertise what is on it", u.Type, u.Name,
			roost.PermissionDenied, caller.Name)
	}
	if err := checkPilotAd(caller, u); err != nil {
		return outcome, err
	}
	if derr := s.storeLoop.runInLoop(ctx, func() {
		if serial, ok := s.storeLoop.store.NodeWithSameName(u.Node); ok && s.isRevoked != nil && s.isRevoked(serial) {
			s.storeLoop.store.ReleaseName(u.Node)
		}
		outcome, err = s.storeLoop.store.Update(time.Now(), u)
		s.storeLoop.renewNames(u, outcome)
	}); derr != nil {
		return outcome, derr
	}
	if err != nil {
		rpc.LogRefusal(ctx, "", err)
	}
	return outcome, err
}

// mayAdvertiseType reports whether a peer has the role that an ad of a type requires.
// Schedds send jobs to any machine that is advertised.
func mayAdvertiseType(p peer.Peer, adType string) bool {
	switch adType {
	case "Machine":
		return p.Plays(peer.Startd) || p.Plays(peer.Pilot)
	case "Negotiator":
		return p.Plays(peer.Negotiator)
	case "Scheduler":
		return p.Plays(peer.Schedd)
	}
	return p.Local
}

// checkPilotAd checks the ad of a pilot, which is a machine that a user has brought. It
// has to name its owner, as its certificate does, and ask for no tasks of others.
func checkPilotAd(p peer.Peer, u adstore.AdUpdate) error {
	if p.Local || !p.Plays(peer.Pilot) || u.Ad == "" {
		return nil
	}
	owner, err := roost.ParsePilotOwner(p.Owner)
	if err != nil {
		return fmt.Errorf("ad of %s: the certificate: %w", u.Name, err)
	}
	ad, err := classad.Parse(u.Ad)
	if err != nil {
		return fmt.Errorf("ad of %s: %w", u.Name, err)
	}
	wanted := classad.New()
	if err := wanted.SetExpr(roost.AttrRequirements, owner.Requirements()); err != nil {
		return fmt.Errorf("ad of %s: %w", u.Name, err)
	}
	claimed, _ := ad.Str(roost.AttrPilotOwner)
	if claimed != owner.String() || exprText(ad) != exprText(wanted) {
		return fmt.Errorf("ad of %s: %w: it is a pilot of %s, and its ad asks for tasks of others", u.Name,
			roost.PermissionDenied, owner)
	}
	return nil
}

// exprText returns the text of the Requirements of an ad.
func exprText(ad *classad.Ad) string {
	expr, ok := ad.Lookup(roost.AttrRequirements)
	if !ok {
		return ""
	}
	return expr.String()
}

// mayAdvertiseName reports whether a peer may advertise under a name. A node may use its
// own name and those of what is on it: "node", "slot1.node" and "daemon@node". Local
// daemons may use any name: they have no identity but their user, who owns the collector.
func mayAdvertiseName(p peer.Peer, name string) bool {
	if p.Local {
		return true
	}
	return p.SpeaksFor(name) || p.Name != "" && (strings.HasSuffix(name, "."+p.Name) ||
		strings.HasSuffix(name, "@"+p.Name))
}

// Watch sends every ad of a type, then the mark that these were all, then each change as
// it happens. Private attributes are for negotiators only.
func (s *grpcService) Watch(req *wire.WatchAds, stream grpc.ServerStreamingServer[wire.AdDelta]) error {
	ctx := stream.Context()
	caller, _ := peer.FromContext(ctx)
	trusted := caller.Plays(peer.Negotiator)
	if req.GetType() == "" {
		return fmt.Errorf("watch: %w: the type of ad is missing", roost.Invalid)
	}
	var feed *adstore.TypeFeed
	var err error
	if derr := s.storeLoop.runInLoop(ctx, func() {
		feed, err = s.storeLoop.store.StartFeed(req.GetType())
	}); derr != nil {
		return derr
	}
	if err != nil {
		return err
	}
	defer s.storeLoop.endFeed(feed)
	reply := make(chan feedReply, 1)
	for {
		t, err := s.storeLoop.waitForDeltas(ctx, feed, reply)
		if err != nil {
			return err
		}
		for _, d := range t.deltas {
			if err := stream.Send(deltaMessage(d, trusted)); err != nil {
				return err
			}
		}
	}
}

func deltaMessage(d adstore.AdChange, trusted bool) *wire.AdDelta {
	switch {
	case d.Synced:
		return &wire.AdDelta{Synced: true}
	case d.Entry == nil:
		return &wire.AdDelta{Name: d.Name, Removed: true}
	}
	m := &wire.AdDelta{Name: d.Name, Ad: d.Entry.Text, Sequence: d.Entry.Sequence, Started: d.Entry.Started,
		Node: d.Entry.Node}
	if trusted {
		m.Private = d.Entry.Private
	}
	return m
}

// Query sends the ads that meet a constraint. Entries never change, so the constraint is
// evaluated here and not in the owner's goroutine.
func (s *grpcService) Query(req *wire.AdQuery, stream grpc.ServerStreamingServer[wire.AdText]) error {
	ctx := stream.Context()
	query, err := adstore.CompileQuery(req.GetConstraint(), req.GetProjection(), int(req.GetLimit()))
	if err != nil {
		return err
	}
	var entries []*adstore.StoredAd
	if err := s.storeLoop.runInLoop(ctx, func() { entries = s.storeLoop.store.List(req.GetType()) }); err != nil {
		return err
	}
	query.Select(entries, &classad.EvalEnv{Now: time.Now()}, func(text string) bool {
		if err = ctx.Err(); err == nil {
			err = stream.Send(&wire.AdText{Ad: text})
		}
		return err == nil
	})
	return err
}
