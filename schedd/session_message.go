package schedd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/attack"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Bounds of what a node may say: it is somebody else's, and what it says stays in memory here.
const (
	maxWelcome   = 1 << 16     // claims that it may tell of at the beginning of a session
	welcomeBytes = 64 << 20    // with what it says of them
	sessionBytes = 8 << 20     // that wait for the loop, or one message
	takeTime     = time.Minute // for it to take a message
)

// receiveWelcome receives the welcome of a node, which may come in parts.
func receiveWelcome(node string, recv func() (*wire.FromStartd, error)) (*wire.SessionWelcome, error) {
	var whole *wire.SessionWelcome
	for size := 0; ; {
		m, err := recv()
		if err != nil {
			return nil, err
		}
		part := m.GetWelcome()
		size += proto.Size(m)
		switch {
		case part == nil:
			return nil, fmt.Errorf("node %s: %w: a message comes before its welcome is complete", node, roost.Invalid)
		case whole == nil:
			whole = part
		default:
			whole.Claims = append(whole.Claims, part.GetClaims()...)
		}
		if !part.GetMore() {
			return whole, nil
		}
		if len(part.GetClaims()) == 0 || len(whole.GetClaims()) > maxWelcome || size > welcomeBytes {
			return nil, fmt.Errorf("node %s: %w: its welcome has no end", node, roost.Exhausted)
		}
	}
}

// deliver sends a message to a node. One that cannot be sent is left out: what it was about ends by its own time-out, and the session goes on.
func (s *Schedd) deliver(node string, m *wire.ToStartd, send func(*wire.ToStartd) error) error {
	if err := rpc.Deliverable(m); err != nil && !attack.Is(attack.LongOrders) {
		s.log.Warn("a message cannot be sent", "node", node, "error", err)
		return nil
	}
	return send(m)
}

// sendInTime has a session end when its node does not take a message: what is meant for it would wait here, more and more of it.
func sendInTime(end context.CancelCauseFunc, send func(*wire.ToStartd) error) func(*wire.ToStartd) error {
	return func(m *wire.ToStartd) error {
		late := time.AfterFunc(takeTime, func() { end(untakenError{}) })
		defer late.Stop()
		return send(m)
	}
}

// untakenError says why a session has ended.
type untakenError struct{}

func (untakenError) Error() string {
	return fmt.Sprintf("the node has not taken what was said to it for %v", takeTime)
}

// endAgain is how often the same end of a session is told of.
const endAgain = time.Minute

// sessionEnds tells how sessions with a node end.
type sessionEnds struct {
	text string // of the last that was told of
	at   time.Time
}

// tell logs the end of a session. That a node goes away is usual; another end is a fault that people have to hear of, though not each time.
func (e *sessionEnds) tell(log *slog.Logger, node string, err error) {
	err = rpc.FromStatus(err)
	level := slog.LevelDebug
	if err != nil && !usualEnd(err) && (err.Error() != e.text || time.Since(e.at) >= endAgain) {
		e.text, e.at, level = err.Error(), time.Now(), slog.LevelWarn
	}
	log.Log(context.Background(), level, "session ended", "node", node, "error", err)
}

// usualEnd reports whether a session has ended because one of the two went away, or was overtaken by a newer one.
func usualEnd(err error) bool {
	return errors.Is(err, roost.Unavailable) || errors.Is(err, roost.Stale) || errors.Is(err, context.Canceled) || errors.Is(err, io.EOF)
}
