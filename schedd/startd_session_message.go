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

// Bounds of what a node may say: it is somebody else's, and what it says stays in memory
// here.
const (
	maxWelcome   = 1 << 16     // claims that it may tell of at the beginning of a session
	welcomeBytes = 64 << 20    // with what it says of them
	sessionBytes = 8 << 20     // that wait for the loop, or one message
	sendTimeout  = time.Minute // for it to take a message
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

// sendToNode sends a message to a node. One that cannot be sent is left out: what it was
// about ends by its own time-out, and the session goes on.
func sendToNode(log *slog.Logger, node string, m *wire.ToStartd, send func(*wire.ToStartd) error) error {
	if err := rpc.CheckDeliverable(m); err != nil && !attack.Is(attack.LongOrders) {
		log.Warn("a message cannot be sent", "node", node, "error", err)
		return nil
	}
	return send(m)
}

// sendInTime ends a session if its node does not take a message in time. Otherwise more
// and more messages for the node would wait here.
func sendInTime(end context.CancelCauseFunc, send func(*wire.ToStartd) error) func(*wire.ToStartd) error {
	return func(m *wire.ToStartd) error {
		late := time.AfterFunc(sendTimeout, func() { end(sendTimeoutError{}) })
		defer late.Stop()
		return send(m)
	}
}

// sendTimeoutError says why a session has ended.
type sendTimeoutError struct{}

func (sendTimeoutError) Error() string {
	return fmt.Sprintf("the node has not taken what was said to it for %v", sendTimeout)
}

// sessionEndLogInterval is how often the same end of a session is told of.
const sessionEndLogInterval = time.Minute

// sessionEndLog tells how sessions with a node end.
type sessionEndLog struct {
	lastText string // of the last that was told of
	loggedAt time.Time
}

// logEnd logs the end of a session. That a node goes away is usual; another end is a
// fault that people have to hear of, though not each time.
func (e *sessionEndLog) logEnd(log *slog.Logger, node string, err error) {
	err = rpc.FromStatus(err)
	level := slog.LevelDebug
	if err != nil && !isExpectedEnd(err) &&
		(err.Error() != e.lastText || time.Since(e.loggedAt) >= sessionEndLogInterval) {
		e.lastText, e.loggedAt, level = err.Error(), time.Now(), slog.LevelWarn
	}
	log.Log(context.Background(), level, "session ended", "node", node, "error", err)
}

// isExpectedEnd reports whether a session ended because one side went away or a newer
// session replaced it.
func isExpectedEnd(err error) bool {
	return errors.Is(err, roost.Unavailable) || errors.Is(err, roost.Stale) || errors.Is(err, context.Canceled) ||
		errors.Is(err, io.EOF)
}
