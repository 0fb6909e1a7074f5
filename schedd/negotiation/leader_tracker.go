package negotiation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/flock"
)

// maxNegotiators limits how many negotiators the schedd watches. These are the
// negotiators of the node file, and one that they call the leader and the node file does
// not list.
const maxNegotiators = 16

// How soon a stream that has ended is opened again: at once, then at growing distances.
const (
	minStreamRetry = 20 * time.Millisecond
	maxStreamRetry = 2 * time.Second
)

// leaderReport is what one negotiator says of who leads; nil news: it does not answer.
type leaderReport struct {
	negotiator    *watchedNegotiator
	report        *wire.LeaderNews
	isUnreachable bool // it has said nothing for longer than it promised: the connection is of no use any more
}

// errHeartbeatLost ends the watch of a negotiator that has broken its promise to speak.
var errHeartbeatLost = errors.New("negotiator: it is silent for longer than it promised")

// watchedNegotiator is one negotiator that is asked who leads.
type watchedNegotiator struct {
	conn   *grpc.ClientConn
	stop   context.CancelFunc
	report *wire.LeaderNews // nil: it does not answer
}

// leaderTracker watches every negotiator, and has a conversation with the one that leads
// with the highest epoch. A simple alternative would try the negotiators in turn and go
// on when a conversation breaks. But a leader that is cut off from the others, or whose
// host is down, breaks no connection for half a minute. The first message of its
// successor arrives earlier. Where the schedd itself was cut off, TCP retries at
// increasing intervals. Messages are then late by as much time as the cut lasted. The
// schedd therefore opens a new connection to a negotiator that is silent.
type leaderTracker struct {
	leader           *LeaderConn
	daemonContext    context.Context
	watchedAddresses map[string]*watchedNegotiator
	reports          chan leaderReport
	running          sync.WaitGroup

	stream      *leaderStream // nil: there is none
	lastStream  leaderStream  // the one before
	streamEnded chan struct{} // the present one has; has room for it
	retryAt     time.Time     // no other is begun with the same leader before
	retryWait   time.Duration // from the end of one until then, if it is short
}

// leaderStream is one with a leader.
type leaderStream struct {
	address string
	epoch   uint64
	beganAt time.Time
	stop    context.CancelFunc
}

// RunLeaderTracker holds one conversation after the other with whichever negotiator
// leads, until ctx ends.
func (l *LeaderConn) RunLeaderTracker(ctx context.Context) {
	p := &leaderTracker{leader: l, daemonContext: ctx, watchedAddresses: map[string]*watchedNegotiator{},
		reports:     make(chan leaderReport),
		streamEnded: make(chan struct{}, 1)}
	defer p.running.Wait()
	for {
		p.watchNegotiators(ctx)
		p.followLeader(ctx)
		p.describeNegotiators()
		var again <-chan time.Time
		if p.stream == nil && !p.retryAt.IsZero() {
			again = time.After(time.Until(p.retryAt))
		}
		select {
		case <-ctx.Done():
			return
		case t := <-p.reports:
			if t.negotiator.report = t.report; t.isUnreachable {
				p.stopWatching(t.negotiator)
			}
		case <-p.streamEnded:
			p.onStreamEnded()
		case <-again:
			p.retryAt = time.Time{}
		}
	}
}

// onStreamEnded takes note that the present conversation has ended. A leader that ends
// each one at once is not asked ever faster.
func (p *leaderTracker) onStreamEnded() {
	if p.retryWait = max(2*p.retryWait, minStreamRetry); time.Since(p.stream.beganAt) > maxStreamRetry {
		p.retryWait = minStreamRetry
	}
	p.retryWait = min(p.retryWait, maxStreamRetry)
	p.lastStream, p.stream, p.retryAt = *p.stream, nil, time.Now().Add(p.retryWait)
}

// watchNegotiators begins to watch the negotiators that are not watched yet. It stops
// watching leaders that lead no more.
func (p *leaderTracker) watchNegotiators(ctx context.Context) {
	wanted := slices.Clone(p.leader.negotiators)
	for _, address := range slices.Sorted(maps.Keys(p.watchedAddresses)) {
		if leader := p.watchedAddresses[address].report.GetLeader(); leader != "" && !slices.Contains(wanted, leader) {
			wanted = append(wanted, leader)
		}
	}
	if p.leader.guest != nil { // another pool cannot have this schedd call its own host
		wanted = slices.DeleteFunc(wanted, func(address string) bool { return !flock.IsRemote(address) })
	}
	wanted = wanted[:min(len(wanted), maxNegotiators)]
	for address, w := range p.watchedAddresses {
		if !slices.Contains(wanted, address) && (p.stream == nil || p.stream.address != address) {
			w.stop()
			delete(p.watchedAddresses, address)
		}
	}
	for _, address := range wanted {
		if p.watchedAddresses[address] != nil {
			continue
		}
		conn, err := rpc.Dial(address, p.leader.identity, peer.Negotiator)
		if err != nil {
			p.leader.log.Error("cannot follow a negotiator", "address", address, "error", err)
			p.watchedAddresses[address] = &watchedNegotiator{stop: func() {}}
			continue
		}
		own, stop := context.WithCancel(ctx)
		w := &watchedNegotiator{conn: conn, stop: stop}
		p.watchedAddresses[address] = w
		p.running.Go(func() {
			defer conn.Close()
			p.watchNegotiator(own, address, w)
		})
	}
}

// stopWatching lets go of a negotiator, and with it of its connection. Where it is
// wanted, watch connects to it anew.
func (p *leaderTracker) stopWatching(unreachable *watchedNegotiator) {
	unreachable.stop()
	maps.DeleteFunc(p.watchedAddresses, func(_ string, w *watchedNegotiator) bool { return w == unreachable })
}

// watchNegotiator hears one negotiator until ctx ends, or until it is mute.
func (p *leaderTracker) watchNegotiator(ctx context.Context, address string, w *watchedNegotiator) {
	notify := func(event *wire.LeaderNews, unreachable bool) {
		select {
		case p.reports <- leaderReport{w, event, unreachable}:
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		err := receiveLeaderReports(ctx, w.conn, func(event *wire.LeaderNews) { notify(event, false) })
		if err == errHeartbeatLost {
			p.leader.log.Warn("negotiator is silent, connecting anew", "address", address)
			notify(nil, true)
			return
		}
		notify(nil, false)
		p.leader.log.Debug("negotiator gone", "address", address, "error", rpc.FromStatus(err))
		select {
		case <-ctx.Done():
		case <-time.After(minStreamRetry):
		}
	}
}

// receiveLeaderReports passes on what a negotiator says until it ends that, ctx ends, or
// it breaks its promise to speak.
func receiveLeaderReports(ctx context.Context, conn *grpc.ClientConn, notify func(*wire.LeaderNews)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stream, err := wire.NewNegotiatorClient(conn).Watch(ctx, &wire.WatchLeader{}, grpc.WaitForReady(true))
	late := time.AfterFunc(time.Hour, func() { cancel(errHeartbeatLost) })
	late.Stop() // until there is a promise
	for err == nil {
		var event *wire.LeaderNews
		event, err = stream.Recv()
		if late.Stop(); err == nil {
			notify(event)
			if within := event.GetWithinMs(); within > 0 {
				late.Reset(time.Duration(within) * time.Millisecond)
			}
		}
	}
	if context.Cause(ctx) == errHeartbeatLost {
		return errHeartbeatLost
	}
	return err
}

// followLeader begins a conversation with the leader where there is none. It ends a
// conversation with a negotiator that leads no more.
func (p *leaderTracker) followLeader(ctx context.Context) {
	var highest uint64
	leader := ""
	for _, address := range slices.Sorted(maps.Keys(p.watchedAddresses)) {
		event := p.watchedAddresses[address].report
		if event.GetEpoch() > highest {
			highest, leader = event.GetEpoch(), ""
		}
		if event.GetLeads() && event.GetEpoch() == highest && leader == "" {
			leader = address
		}
	}
	if c := p.stream; c != nil {
		if c.epoch < highest {
			c.stop() // its grants are refused from now on
		}
		return
	}
	if leader == "" {
		return
	}
	if leader == p.lastStream.address && highest == p.lastStream.epoch && !p.retryAt.IsZero() {
		return
	}
	own, stop := context.WithCancel(ctx)
	c := &leaderStream{address: leader, epoch: highest, beganAt: time.Now(), stop: stop}
	p.stream, p.retryAt = c, time.Time{}
	conn := p.watchedAddresses[leader].conn
	p.running.Go(func() {
		defer func() { p.streamEnded <- struct{}{} }()
		defer stop()
		err := p.runNegotiatorStream(own, conn, leader)
		p.leader.log.Debug("conversation with the negotiator ended", "address", leader, "epoch", c.epoch, "error",
			rpc.FromStatus(err))
	})
}

// describeNegotiators puts into words how the negotiators are, for those who ask.
func (p *leaderTracker) describeNegotiators() {
	var parts []string
	for _, address := range slices.SortedFunc(maps.Keys(p.watchedAddresses), strings.Compare) {
		switch event := p.watchedAddresses[address].report; {
		case event == nil:
			parts = append(parts, address+" does not answer")
		case event.GetLeads():
			parts = append(parts, fmt.Sprintf("%s leads with epoch %d", address, event.GetEpoch()))
		case event.GetLeader() != "":
			parts = append(parts, fmt.Sprintf("%s follows %s", address, event.GetLeader()))
		default:
			parts = append(parts, address+" knows no leader")
		}
	}
	text := strings.Join(parts, "; ")
	p.leader.leadership.Store(&text)
}

// LeaderStatus says who leads and how the other negotiators are.
func (l *LeaderConn) LeaderStatus() string {
	if text := l.leadership.Load(); text != nil && *text != "" {
		return *text
	}
	return "the node file names none"
}
