package schedd

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

	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// maxNegotiators bounds how many are watched: those of the node file, and one that these call the leader and the node file does not know.
const maxNegotiators = 16

// sighting is what one negotiator says of who leads; nil news: it does not answer.
type sighting struct {
	of   *watched
	news *wire.LeaderNews
	mute bool // it has said nothing for longer than it promised: the connection is of no use any more
}

// errMute ends the watch of a negotiator that has broken its promise to speak.
var errMute = errors.New("negotiator: it is silent for longer than it promised")

// watched is one negotiator that is asked who leads.
type watched struct {
	conn *grpc.ClientConn
	stop context.CancelFunc
	news *wire.LeaderNews // nil: it does not answer
}

// pursuit follows the leader of the negotiators: every one of them is watched, and there is a conversation with the one that leads with the
// highest epoch. Naively one would try them by turns and go on when a conversation breaks. But a leader that was cut off from the others, or whose
// host is gone, breaks nothing for half a minute; the first word of its successor does. And where it is the schedd that was cut off, TCP tries again at
// ever longer intervals, so that news come late by as much as the cut took: a negotiator that is silent is connected to anew.
type pursuit struct {
	*Schedd
	seen    map[string]*watched
	told    chan sighting
	running sync.WaitGroup

	present *conversation // nil: there is none
	last    conversation  // the one before
	ended   chan struct{} // the present one has; has room for it
	retry   time.Time     // no other is begun with the same leader before
	wait    time.Duration // from the end of one until then, if it is short
}

// conversation is one with a leader.
type conversation struct {
	address string
	epoch   uint64
	began   time.Time
	stop    context.CancelFunc
}

// keepNegotiating holds one conversation after the other with whichever negotiator leads, until ctx ends.
func (s *Schedd) keepNegotiating(ctx context.Context) {
	p := &pursuit{Schedd: s, seen: map[string]*watched{}, told: make(chan sighting), ended: make(chan struct{}, 1)}
	defer p.running.Wait()
	for {
		p.watch(ctx)
		p.follow(ctx)
		p.describe()
		var again <-chan time.Time
		if p.present == nil && !p.retry.IsZero() {
			again = time.After(time.Until(p.retry))
		}
		select {
		case <-ctx.Done():
			return
		case t := <-p.told:
			if t.of.news = t.news; t.mute {
				p.forget(t.of)
			}
		case <-p.ended:
			p.over()
		case <-again:
			p.retry = time.Time{}
		}
	}
}

// over takes note that the present conversation has ended. A leader that ends each one at once is not asked ever faster.
func (p *pursuit) over() {
	if p.wait = max(2*p.wait, firstRetry); time.Since(p.present.began) > lastRetry {
		p.wait = firstRetry
	}
	p.wait = min(p.wait, lastRetry)
	p.last, p.present, p.retry = *p.present, nil, time.Now().Add(p.wait)
}

// watch begins to watch the negotiators that are not watched yet, and lets go of leaders that are none any more.
func (p *pursuit) watch(ctx context.Context) {
	wanted := slices.Clone(p.node.Negotiators)
	for _, address := range slices.Sorted(maps.Keys(p.seen)) {
		if leader := p.seen[address].news.GetLeader(); leader != "" && !slices.Contains(wanted, leader) {
			wanted = append(wanted, leader)
		}
	}
	wanted = wanted[:min(len(wanted), maxNegotiators)]
	for address, w := range p.seen {
		if !slices.Contains(wanted, address) && (p.present == nil || p.present.address != address) {
			w.stop()
			delete(p.seen, address)
		}
	}
	for _, address := range wanted {
		if p.seen[address] != nil {
			continue
		}
		conn, err := rpc.Dial(address, p.identity, auth.Negotiator)
		if err != nil {
			p.log.Error("cannot follow a negotiator", "address", address, "error", err)
			p.seen[address] = &watched{stop: func() {}}
			continue
		}
		own, stop := context.WithCancel(ctx)
		w := &watched{conn: conn, stop: stop}
		p.seen[address] = w
		p.running.Go(func() {
			defer conn.Close()
			p.ask(own, address, w)
		})
	}
}

// forget lets go of a negotiator, and with it of its connection. Where it is wanted, watch connects to it anew.
func (p *pursuit) forget(mute *watched) {
	mute.stop()
	maps.DeleteFunc(p.seen, func(_ string, w *watched) bool { return w == mute })
}

// ask hears one negotiator until ctx ends, or until it is mute.
func (p *pursuit) ask(ctx context.Context, address string, w *watched) {
	tell := func(news *wire.LeaderNews, mute bool) {
		select {
		case p.told <- sighting{w, news, mute}:
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		err := hear(ctx, w.conn, func(news *wire.LeaderNews) { tell(news, false) })
		if err == errMute {
			p.log.Warn("negotiator is silent, connecting anew", "address", address)
			tell(nil, true)
			return
		}
		tell(nil, false)
		p.log.Debug("negotiator gone", "address", address, "error", rpc.FromStatus(err))
		select {
		case <-ctx.Done():
		case <-time.After(firstRetry):
		}
	}
}

// hear passes on what a negotiator says until it ends that, ctx ends, or it breaks its promise to speak.
func hear(ctx context.Context, conn *grpc.ClientConn, tell func(*wire.LeaderNews)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stream, err := wire.NewNegotiatorClient(conn).Watch(ctx, &wire.WatchLeader{}, grpc.WaitForReady(true))
	late := time.AfterFunc(time.Hour, func() { cancel(errMute) })
	late.Stop() // until there is a promise
	for err == nil {
		var news *wire.LeaderNews
		news, err = stream.Recv()
		if late.Stop(); err == nil {
			tell(news)
			if within := news.GetWithinMs(); within > 0 {
				late.Reset(time.Duration(within) * time.Millisecond)
			}
		}
	}
	if context.Cause(ctx) == errMute {
		return errMute
	}
	return err
}

// follow begins a conversation with the leader where there is none, and ends one with a negotiator that leads no more.
func (p *pursuit) follow(ctx context.Context) {
	var highest uint64
	leader := ""
	for _, address := range slices.Sorted(maps.Keys(p.seen)) {
		news := p.seen[address].news
		if news.GetEpoch() > highest {
			highest, leader = news.GetEpoch(), ""
		}
		if news.GetLeads() && news.GetEpoch() == highest && leader == "" {
			leader = address
		}
	}
	if c := p.present; c != nil {
		if c.epoch < highest {
			c.stop() // its grants are refused from now on
		}
		return
	}
	if leader == "" {
		return
	}
	if leader == p.last.address && highest == p.last.epoch && !p.retry.IsZero() {
		return
	}
	own, stop := context.WithCancel(ctx)
	c := &conversation{address: leader, epoch: highest, began: time.Now(), stop: stop}
	p.present, p.retry = c, time.Time{}
	conn := p.seen[leader].conn
	p.running.Go(func() {
		defer func() { p.ended <- struct{}{} }()
		defer stop()
		err := p.negotiate(own, conn, leader)
		p.log.Debug("conversation with the negotiator ended", "address", leader, "epoch", c.epoch, "error", rpc.FromStatus(err))
	})
}

// describe puts into words how the negotiators are, for those who ask.
func (p *pursuit) describe() {
	var parts []string
	for _, address := range slices.SortedFunc(maps.Keys(p.seen), strings.Compare) {
		switch news := p.seen[address].news; {
		case news == nil:
			parts = append(parts, address+" does not answer")
		case news.GetLeads():
			parts = append(parts, fmt.Sprintf("%s leads with epoch %d", address, news.GetEpoch()))
		case news.GetLeader() != "":
			parts = append(parts, fmt.Sprintf("%s follows %s", address, news.GetLeader()))
		default:
			parts = append(parts, address+" knows no leader")
		}
	}
	text := strings.Join(parts, "; ")
	p.leadership.Store(&text)
}

// leaders says who leads and how the other negotiators are.
func (s *Schedd) leaders() string {
	if text := s.leadership.Load(); text != nil && *text != "" {
		return *text
	}
	return "the node file names none"
}
