package notify

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/schedd/queue"
)

// Bounds.
const (
	maxSpooled     = 10_000             // notices in the outbox
	maxDigest      = 200                // notices in one message
	retention      = 3 * 24 * time.Hour // what cannot be delivered
	maxBurst       = 5                  // messages to one person, before they come
	burstRefill    = 10 * time.Second   // so seldom
	programTimeout = 20 * time.Second   // with a program
	minRetry       = time.Minute        // until what was not taken is offered again; then twice as long, and so on
	maxRetry       = time.Hour
	rescanInterval = time.Second
)

// defaultMail is where sendmail is (Filesystem Hierarchy Standard, 4.11).
const defaultMail = "/usr/sbin/sendmail"

// Notifier tells people of their jobs.
type Notifier struct {
	ownUID config.NotifySettings
	host   string
	groups func(uid uint32) []uint32
	log    *slog.Logger
	spool  *notificationSpool
	wake   chan struct{}

	mu      sync.Mutex
	digests int
	arrived []*queuedNotification // that Run has not seen
}

// DeliveryOptions say how.
type DeliveryOptions struct {
	Dir    string // of the outbox
	OwnUID config.NotifySettings
	Host   string                    // of the schedd
	Groups func(uid uint32) []uint32 // of a user
	Log    *slog.Logger
}

// Open reads what an earlier start has not delivered.
func Open(o DeliveryOptions) (*Notifier, error) {
	n := &Notifier{ownUID: o.OwnUID, host: o.Host, groups: o.Groups, log: o.Log, wake: make(chan struct{}, 1)}
	switch n.ownUID.Mail {
	case "none":
		n.ownUID.Mail = ""
	case "":
		if _, err := os.Stat(defaultMail); err == nil {
			n.ownUID.Mail = defaultMail
		}
	}
	if !n.IsConfigured() {
		return n, nil
	}
	spool, left, err := openSpool(o.Dir)
	if spool == nil {
		return nil, err
	}
	if err != nil {
		n.log.Error("notices are lost", "err", err)
	}
	n.spool, n.arrived, n.digests = spool, left, len(left)
	return n, nil
}

// IsConfigured reports whether there is any way to tell people anything.
func (n *Notifier) IsConfigured() bool { return n.ownUID.Mail != "" || n.ownUID.Hook != "" }

// Enqueue writes notices down. They are delivered from when the caller calls what it
// returns. It is to be called by one goroutine.
func (n *Notifier) Enqueue(notices []queue.JobNotification) (deliver func()) {
	n.mu.Lock()
	room := maxSpooled - n.digests
	n.mu.Unlock()
	if room < len(notices) {
		n.log.Error("nobody takes notices, and some are dropped", "dropped", len(notices)-max(room, 0), "kept",
			maxSpooled)
		notices = notices[:max(room, 0)]
	}
	if len(notices) == 0 {
		return func() {}
	}
	all, err := n.spool.write(notices)
	if err != nil {
		n.log.Error("notices are lost", "count", len(notices), "err", err)
		return func() {}
	}
	return func() {
		n.mu.Lock()
		n.arrived, n.digests = append(n.arrived, all...), n.digests+len(all)
		n.mu.Unlock()
		select {
		case n.wake <- struct{}{}:
		default:
		}
	}
}

// messageRecipient is one who is told: an owner, with the addresses that a job names.
type messageRecipient struct {
	uid, gid uint32
	users    string
}

// recipientDigest is what one person is to be told, in order.
type recipientDigest struct {
	queued    []*queuedNotification
	burstUsed float64       // of the burst
	usedAt    time.Time     // when
	retryWait time.Duration // after the last failure; 0: there was none
	retryAt   time.Time
}

// burstSpent is how much of the burst is used up; it falls by one in every so often.
func (p *recipientDigest) burstSpent(now time.Time) float64 {
	return max(p.burstUsed-float64(now.Sub(p.usedAt))/float64(burstRefill), 0)
}

// allowMessage reports whether one more message may go.
func (p *recipientDigest) allowMessage(now time.Time) bool {
	used := p.burstSpent(now)
	if used > maxBurst-1 {
		return false
	}
	p.burstUsed, p.usedAt = used+1, now
	return true
}

// Run delivers until ctx ends. One that is slow to take delays only others who are told.
func (n *Notifier) Run(ctx context.Context) {
	if !n.IsConfigured() {
		return
	}
	piles := map[messageRecipient]*recipientDigest{}
	var waiting []messageRecipient // those with letters, in the order in which they got their first
	for {
		fresh := n.waitForNotifications(ctx, len(waiting) > 0)
		if ctx.Err() != nil {
			return
		}
		for _, l := range fresh {
			who := messageRecipient{l.UID, l.GID, l.Users}
			p := piles[who]
			if p == nil {
				p = &recipientDigest{}
				piles[who] = p
			}
			if len(p.queued) == 0 {
				waiting = append(waiting, who)
			}
			p.queued = append(p.queued, l)
		}
		waiting = slices.DeleteFunc(waiting, func(who messageRecipient) bool {
			n.sendNext(ctx, who, piles[who])
			return len(piles[who].queued) == 0
		})
		if len(waiting) == 0 {
			now := time.Now()
			maps.DeleteFunc(piles, func(_ messageRecipient, p *recipientDigest) bool { return p.burstSpent(now) == 0 })
		}
	}
}

// waitForNotifications waits for new letters, or while others wait, for a moment.
func (n *Notifier) waitForNotifications(ctx context.Context, others bool) []*queuedNotification {
	n.mu.Lock()
	all := n.arrived
	n.arrived = nil
	n.mu.Unlock()
	if len(all) > 0 {
		return all
	}
	var again <-chan time.Time
	if others {
		again = time.After(rescanInterval)
	}
	select {
	case <-ctx.Done():
	case <-n.wake:
	case <-again:
	}
	return nil
}

// sendNext sends one person the next message, if it is time for it.
func (n *Notifier) sendNext(ctx context.Context, who messageRecipient, p *recipientDigest) {
	now := time.Now()
	if now.Before(p.retryAt) || !p.allowMessage(now) || ctx.Err() != nil {
		return
	}
	some := p.queued[:min(len(p.queued), maxDigest)]
	m := userMessage{recipients: recipients(&some[0].JobNotification)}
	for _, l := range some {
		m.notifications = append(m.notifications, l.JobNotification)
	}
	err := n.deliverMessage(ctx, who, &m)
	old := now.Sub(time.Unix(0, some[0].Time)) > retention
	switch {
	case err != nil && ctx.Err() != nil:
		return
	case err != nil && !old:
		p.retryWait = min(max(2*p.retryWait, minRetry), maxRetry)
		p.retryAt = now.Add(p.retryWait)
		n.log.Warn("somebody cannot be told", "to", m.recipients, "notices", len(some), "err", err)
		return
	case err != nil:
		n.log.Error("somebody was not told for days, and is not any more", "to", m.recipients, "notices", len(some),
			"err", err)
	}
	p.retryWait = 0
	p.queued = append([]*queuedNotification(nil), p.queued[len(some):]...)
	for _, l := range some {
		if *l.remaining--; *l.remaining == 0 {
			n.spool.remove(l.file)
		}
	}
	n.mu.Lock()
	n.digests -= len(some)
	n.mu.Unlock()
}
