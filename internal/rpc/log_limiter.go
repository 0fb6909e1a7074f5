package rpc

import (
	"log/slog"
	"net"
	"sync"
	"time"
)

// How often the same refusal of the same peer is logged. A refused peer may try again a
// thousand times a second, and must not fill the disk through the log.
const (
	logRepeatInterval = time.Minute
	maxRemembered     = 4096 // pairs of refusal and peer that are remembered; when there are more, all are forgotten
	maxLogBurst       = 500  // records of all kinds and peers at once
	logRate           = 5    // records a second after a burst: a network has too many addresses to log each
)

// logLimiter remembers what was logged about each peer.
type logLimiter struct {
	mu   sync.Mutex
	last map[[2]string]*logRecord

	fullAt  time.Time // when there is room for maxLogBurst again
	omitted int       // refusals left out since the last record because there were too many
}

type logRecord struct {
	at      time.Time
	repeats int // refusals since then that were not logged
}

// log logs a refusal, once a minute for each kind and peer. A kind is a short text that
// no peer can choose.
func (t *logLimiter) log(kind, peer string, more ...any) {
	if more = t.recordDue(time.Now(), kind, peer, more); more != nil {
		slog.Warn(kind, more...)
	}
}

// recordDue returns what to log, or nil.
func (t *logLimiter) recordDue(now time.Time, kind, peer string, more []any) []any {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := [2]string{kind, peer}
	last := t.last[key]
	if last != nil && now.Sub(last.at) < logRepeatInterval && !now.Before(last.at) {
		last.repeats++
		return nil
	}
	const room = maxLogBurst * time.Second / logRate
	if t.fullAt.Before(now) || t.fullAt.Sub(now) > 2*room { // the clock was set back
		t.fullAt = now
	}
	if t.fullAt.Sub(now) >= room {
		t.omitted++
		return nil
	}
	t.fullAt = t.fullAt.Add(time.Second / logRate)
	if last == nil {
		if t.last == nil || len(t.last) >= maxRemembered {
			t.last = map[[2]string]*logRecord{}
		}
		last = &logRecord{}
		t.last[key] = last
	}
	more = append([]any{"peer", peer}, more...)
	if last.repeats > 0 {
		more = append(more, "times_before", last.repeats)
	}
	if t.omitted > 0 {
		more = append(more, "others_left_out", t.omitted)
	}
	t.omitted, *last = 0, logRecord{at: now}
	return more
}

// hostOf returns a peer's address without the port, which differs each time.
func hostOf(addr net.Addr) string {
	h, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	return h
}
