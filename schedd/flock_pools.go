package schedd

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/relay"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/flock"
	"github.com/roost-batch/roost/schedd/negotiation"
	"github.com/roost-batch/roost/schedd/peers"
	"github.com/roost-batch/roost/schedd/queue"
)

// hostPool is another pool in which this schedd may run tasks. Below the line it belongs
// to the loop.
type hostPool struct {
	name   string
	number int // for flock.TagEpoch
	wait   time.Duration
	joined chan flock.Host // the newest certificate
	left   chan error

	// ---- owned by the loop ----
	host   *flock.Host             // nil: it has no certificate there
	leader *negotiation.LeaderConn // nil: likewise
	reason string                  // why it has none
}

// defaultFlockWait is how long tasks find no room at home before another pool is asked.
const defaultFlockWait = time.Minute

// openFlock makes the pools that the node file names. The queue of the cell stays at
// home.
func openFlock(s *Schedd) {
	s.flock = nil
	if s.replicated != nil {
		return
	}
	wait := s.node.Schedd.FlockWait
	if wait <= 0 {
		wait = defaultFlockWait
	}
	for i, name := range s.node.Schedd.Flock {
		s.flock = append(s.flock, &hostPool{name: name, number: i + 1, wait: wait * time.Duration(i+1),
			joined: make(chan flock.Host, 1), left: make(chan error, 1), reason: "no certificate was asked for yet"})
	}
}

// run looks after the membership in a pool, and follows its leader, until ctx ends.
func (h *hostPool) run(ctx context.Context, s *Schedd) {
	m := &flock.Membership{Pool: h.name, Dir: filepath.Join(s.stateDir(), "flock", h.name),
		Authority: s.node.AuthorityAt,
		Identity:  s.identity, Log: s.log,
		Joined: func(host flock.Host) { replaceIn(h.joined, host) },
		Left:   func(reason error) { replaceIn(h.left, reason) }}
	stopped := make(chan struct{})
	go func() { defer close(stopped); m.Run(ctx) }()
	defer func() { <-stopped }()
	stop := func() {}
	defer func() { stop() }()
	for {
		select {
		case <-ctx.Done():
			return
		case host := <-h.joined:
			stop()
			stop = h.follow(ctx, s, host)
		case reason := <-h.left:
			stop()
			stop = func() {}
			s.callLoop(ctx, func(time.Time) { h.host, h.leader, h.reason = nil, nil, reason.Error() })
		}
	}
}

// replaceIn puts the newest value into a channel with room for one.
func replaceIn[T any](c chan T, v T) {
	select {
	case <-c:
	default:
	}
	c <- v
}

// follow begins to follow the leader of a pool, and returns what ends that.
func (h *hostPool) follow(ctx context.Context, s *Schedd, host flock.Host) (stop func()) {
	host.Identity.DialRelay = relay.NewDialer(host.Identity).Dial
	loop := loopAdapter{s}
	leader := negotiation.New(negotiation.Config{
		Host: host.Schedd, Started: s.started, Negotiators: host.Negotiators, Identity: host.Identity,
		Log: s.log.With("pool", h.name), Queue: s.queue, Dispatch: s.dispatch, Loop: loop, Calls: loop,
		Reasons: noReasons{}, Groups: s.users, Admins: new(peers.JobAdmins), AttackPeers: func(context.Context) {},
		Guest: &negotiation.Guest{Pool: h.name, Number: h.number, Wait: h.wait},
	})
	if err := s.callLoop(ctx, func(time.Time) { h.host, h.leader, h.reason = &host, leader, "" }); err != nil {
		return func() {}
	}
	own, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); leader.RunLeaderTracker(own) }()
	return func() { cancel(); <-ended }
}

// noReasons is for a leader whose explanations lists do not show.
type noReasons struct{}

func (noReasons) SetReason(queue.RequestID, *wire.Explanation) {}
func (noReasons) DeleteReason(queue.RequestID)                 {}
func (noReasons) ClearReasons()                                {}

// hostPoolOf returns the pool of a machine. It is nil for a machine of this pool, and of
// one that the node file does not name.
func hostPoolOf(s *Schedd, node string) *hostPool {
	_, pool := flock.ParseMachine(node)
	for _, h := range s.flock {
		if h.name == pool {
			return h
		}
	}
	return nil
}

// leaderOf returns the connection to the leader of a pool, "" for this one; nil: there is
// none.
func leaderOf(s *Schedd, pool string) *negotiation.LeaderConn {
	if pool == "" {
		return s.leader
	}
	for _, h := range s.flock {
		if h.name == pool {
			return h.leader
		}
	}
	return nil
}

// leaderOfGrant returns the connection to the leader whose grant has an epoch.
func leaderOfGrant(s *Schedd, epoch uint64) *negotiation.LeaderConn {
	_, number := flock.SplitEpoch(epoch)
	switch {
	case number == 0:
		return s.leader
	case number <= len(s.flock):
		return s.flock[number-1].leader
	}
	return nil
}

// grantOf returns the id here of a grant that a machine names.
func grantOf(s *Schedd, node string, epoch, id uint64) roost.GrantID {
	if h := hostPoolOf(s, node); h != nil {
		epoch = flock.TagEpoch(epoch, h.number)
	}
	return roost.GrantID{Epoch: epoch, ID: id}
}

// identityFor returns the identity with which a machine is called, and the pool of a
// machine of another pool.
func identityFor(s *Schedd, node string) (*rpc.Identity, *flock.Host, error) {
	if !flock.IsElsewhere(node) {
		return s.identity, nil, nil
	}
	h := hostPoolOf(s, node)
	if h == nil || h.host == nil {
		return nil, nil, fmt.Errorf("machine %s: %w: this schedd has no certificate of that pool now", node,
			roost.Unavailable)
	}
	return h.host.Identity, h.host, nil
}

// claimElsewhere writes a request for a claim as a machine of another pool expects it. It
// has the user, the group and the band of the grant.
func claimElsewhere(s *Schedd, node string, m *wire.ClaimRequest) {
	h := hostPoolOf(s, node)
	if h == nil || h.host == nil {
		return
	}
	m.Epoch, _ = flock.SplitEpoch(m.Epoch)
	m.Owner, m.Group, m.Band = h.host.User(m.Owner), h.host.Group(), roost.FreeBand.String()
	m.Job, m.GroupChosen = "", false
}

// boundEndElsewhere returns the end of an attempt in another pool with a bounded time. It
// cannot have run for longer than since its start, by the clock of this schedd.
func boundEndElsewhere(s *Schedd, a roost.AttemptID, e *wire.Exited, now time.Time) *wire.Exited {
	st, ok := s.queue.TaskStatus(a.Task)
	if !ok || st.Task.Started == 0 || e.GetStatus() == nil {
		return e
	}
	const slack = int64(time.Minute) // its start is noticed after it has started
	if most := max(now.UnixNano()-st.Task.Started, 0) + slack; e.GetStatus().GetWall() > most {
		e = proto.CloneOf(e)
		e.Status.Wall = most
	}
	return e
}

// markFlockDirty has the leaders of other pools hear of a request.
func markFlockDirty(s *Schedd, id queue.RequestID) {
	for _, h := range s.flock {
		if h.leader != nil {
			h.leader.MarkDirty(id)
		}
	}
}

// sendFlockUpdates sends the leaders of other pools what has changed.
func sendFlockUpdates(s *Schedd, now time.Time) {
	for _, h := range s.flock {
		if h.leader != nil {
			h.leader.SendRequestUpdates(now)
		}
	}
}

// offerFlock offers tasks to other pools that have waited long enough. It tries machines
// again for which there was no certificate.
func offerFlock(s *Schedd, now time.Time) {
	for _, h := range s.flock {
		if h.leader != nil {
			h.leader.OfferDue(now)
		}
	}
	if len(s.flock) == 0 {
		return
	}
	for node, p := range s.peers {
		if p.conn == nil && flock.IsElsewhere(node) {
			if h := hostPoolOf(s, node); h != nil && h.host != nil {
				s.connectNode(node, p.address)
			}
		}
	}
}

// explainFlock returns how the tasks of a request fare in other pools, a line for each.
func explainFlock(s *Schedd, id queue.RequestID) (all []string) {
	for _, h := range s.flock {
		text := h.reason
		if h.leader != nil {
			text = h.leader.GuestStatus(id, s.clock.now)
		} else {
			text = "not asked: " + text
		}
		if text != "" {
			all = append(all, fmt.Sprintf("pool %s: %s", h.name, text))
		}
	}
	return all
}
