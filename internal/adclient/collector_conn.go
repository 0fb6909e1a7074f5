package adclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// collectorConn is the client's connection to one collector.
type collectorConn struct {
	client *Client
	addr   string
}

// The waits between two tries to reach a collector. A call waits for the connection
// itself, so these matter only for calls that end early.
const (
	minRetry        = 20 * time.Millisecond
	maxRetry        = 2 * time.Second
	withdrawTimeout = time.Second // for withdrawing the ad at the end

	logInterval = 2 * time.Second // longer than a restart takes
)

func (l collectorConn) run(ctx context.Context) {
	log := l.client.config.Log.With("collector", l.addr)
	conn, err := rpc.Dial(l.addr, l.client.config.Identity, peer.Collector)
	if err != nil {
		log.Error("cannot advertise", "err", err)
		return
	}
	defer conn.Close()
	var complaints sync.WaitGroup
	complaints.Go(func() { l.logUnreachable(ctx, conn, log) })
	defer complaints.Wait()
	retry, lastLogged := minRetry, ""
	for ctx.Err() == nil {
		began := time.Now()
		err := l.stream(ctx, conn)
		if ctx.Err() != nil {
			return
		}
		level := slog.LevelDebug
		if text := fmt.Sprint(err); !errors.Is(err, roost.Unavailable) && text != lastLogged {
			level, lastLogged = slog.LevelWarn, text
		}
		log.Log(ctx, level, "advertising interrupted", "err", err)
		if time.Since(began) > maxRetry {
			retry = minRetry
		}
		if !sleep(ctx, retry) {
			return
		}
		retry = min(2*retry, maxRetry)
	}
}

// logUnreachable logs why a collector cannot be reached, once for each reason. A call
// that waits for the connection does not return the reason, so a node whose certificate
// the others refuse would wait without a message.
func (l collectorConn) logUnreachable(ctx context.Context, conn *grpc.ClientConn, log *slog.Logger) {
	lastLogged := ""
	for sleep(ctx, logInterval) {
		switch conn.GetState() {
		case connectivity.Ready:
			lastLogged = ""
		case connectivity.TransientFailure:
			own, cancel := context.WithCancel(ctx)
			_, err := wire.NewCollectorClient(conn).Advertise(own) // fails at once, with the reason
			cancel()
			if err != nil && ctx.Err() == nil && err.Error() != lastLogged {
				lastLogged = err.Error()
				log.Warn("the collector cannot be reached", "err", rpc.FromStatus(err))
			}
		}
	}
}

// stream advertises over one stream until it breaks or ctx ends. The stream has a context
// of its own, so that the ad can still be withdrawn after ctx has ended.
func (l collectorConn) stream(ctx context.Context, conn *grpc.ClientConn) error {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	opened := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-opened: // the loop below withdraws the ad and ends
		default:
			cancel()
		}
	})
	defer stop()
	stream, err := wire.NewCollectorClient(conn).Advertise(own, grpc.WaitForReady(true))
	close(opened)
	if err != nil {
		return rpc.FromStatus(err)
	}
	acks := make(chan *wire.AdAck)
	broken := make(chan error, 1)
	go receive(own, stream, acks, broken)
	err = l.exchange(ctx, stream, acks, broken)
	if ctx.Err() != nil && err == nil {
		l.withdrawAd(stream, acks, broken)
	}
	return err
}

func receive(ctx context.Context, stream grpc.BidiStreamingClient[wire.AdUpdate, wire.AdAck], acks chan<- *wire.AdAck,
	broken chan<- error) {
	for {
		ack, err := stream.Recv()
		if err != nil {
			broken <- rpc.FromStatus(err)
			return
		}
		select {
		case acks <- ack:
		case <-ctx.Done():
			broken <- ctx.Err()
			return
		}
	}
}

// exchange sends the ad whenever it has changed or the collector requests it, and
// renewals in between. At most one update is unacknowledged at a time, so changes faster
// than the collector's answers are sent once.
func (l collectorConn) exchange(ctx context.Context, stream grpc.BidiStreamingClient[wire.AdUpdate, wire.AdAck],
	acks <-chan *wire.AdAck, broken <-chan error) error {
	_, every, _ := l.client.currentVersion()
	renew := time.NewTicker(every)
	defer renew.Stop()
	var sent uint64 // sequence of the last whole ad sent to the collector
	waiting := false
	for {
		current, renewal, changed := l.client.currentVersion()
		if renewal != every {
			every = renewal
			renew.Reset(every)
		}
		if !waiting && current.sequence > sent {
			if err := l.send(stream, current, true); err != nil {
				return err
			}
			sent, waiting = current.sequence, true
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-broken:
			return err
		case <-changed:
		case ack := <-acks:
			waiting = false
			if ack.GetResend() {
				sent = 0
			}
		case <-renew.C:
			if sent > 0 && !waiting {
				if err := l.send(stream, current, false); err != nil {
					return err
				}
				waiting = true
			}
		}
	}
}

func (l collectorConn) send(stream grpc.BidiStreamingClient[wire.AdUpdate, wire.AdAck], v adVersion, whole bool) error {
	c := l.client.config
	u := &wire.AdUpdate{
		Type: c.Type, Name: c.Name, Sequence: v.sequence, Started: l.client.started,
		LeaseMs: uint32(c.Lease.Milliseconds()),
	}
	if whole {
		u.Ad, u.Private = v.ad, v.private
	}
	err := stream.Send(u)
	if err == io.EOF { // Recv returns the reason
		return nil
	}
	return rpc.FromStatus(err)
}

// withdrawAd tells the collector that the daemon shuts down, and waits briefly for its
// answer.
func (l collectorConn) withdrawAd(stream grpc.BidiStreamingClient[wire.AdUpdate, wire.AdAck], acks <-chan *wire.AdAck,
	broken <-chan error) {
	current, _, _ := l.client.currentVersion()
	if current.sequence == 0 {
		return
	}
	c := l.client.config
	u := &wire.AdUpdate{Type: c.Type, Name: c.Name, Sequence: current.sequence, Started: l.client.started,
		Invalidate: true}
	if stream.Send(u) != nil || stream.CloseSend() != nil {
		return
	}
	late := time.NewTimer(withdrawTimeout)
	defer late.Stop()
	for {
		select {
		case <-acks:
		case <-broken: // the collector has read everything and ended the stream
			return
		case <-late.C:
			return
		}
	}
}

// sleep sleeps for d, and returns false if ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
