package rpc

import (
	"log/slog"
	"net"
	"sync"
	"time"
)

// How often the same refusal of the same peer is told: whoever is refused may come again a thousand times a second, and the log is no place to fill a
// disk from.
const (
	tellAgain = time.Minute
	maxTold   = 4096 // pairs of refusal and peer that are remembered; when there are more, all are forgotten
	maxLines  = 500  // of all kinds and peers at once, and then
	moreLines = 5    // a second: a network has more addresses than a log has room
)

// told remembers what was logged about whom.
type told struct {
	mu   sync.Mutex
	last map[[2]string]*telling

	full time.Time // when there is room for maxLines again
	left int       // refusals that were left out since the last that was told, because there were too many
}

type telling struct {
	at   time.Time
	more int // refusals since that were not told
}

// tell logs a refusal, once a minute for each kind and peer. A kind is a few words that no peer can choose.
func (t *told) tell(kind, peer string, more ...any) {
	if more = t.due(time.Now(), kind, peer, more); more != nil {
		slog.Warn(kind, more...)
	}
}

// due returns what to log, and nil if nothing is.
func (t *told) due(now time.Time, kind, peer string, more []any) []any {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := [2]string{kind, peer}
	last := t.last[key]
	if last != nil && now.Sub(last.at) < tellAgain && !now.Before(last.at) {
		last.more++
		return nil
	}
	const room = maxLines * time.Second / moreLines
	if t.full.Before(now) || t.full.Sub(now) > 2*room { // the clock was set back
		t.full = now
	}
	if t.full.Sub(now) >= room {
		t.left++
		return nil
	}
	t.full = t.full.Add(time.Second / moreLines)
	if last == nil {
		if t.last == nil || len(t.last) >= maxTold {
			t.last = map[[2]string]*telling{}
		}
		last = &telling{}
		t.last[key] = last
	}
	more = append([]any{"peer", peer}, more...)
	if last.more > 0 {
		more = append(more, "times_before", last.more)
	}
	if t.left > 0 {
		more = append(more, "others_left_out", t.left)
	}
	t.left, *last = 0, telling{at: now}
	return more
}

// host is a peer's address without the port, which is another one each time.
func host(addr net.Addr) string {
	h, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	return h
}
