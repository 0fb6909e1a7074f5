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
	"github.com/roost-batch/roost/internal/spool"
	"github.com/roost-batch/roost/schedd/queue"
)

// Bounds.
const (
	maxSpooled     = 10_000             // notifications in the spool
	maxDigest      = 200                // notifications in one message
	retention      = 3 * 24 * time.Hour // age at which undelivered notifications are dropped
	maxBurst       = 5                  // messages to one recipient before the rate limit applies
	burstRefill    = 10 * time.Second   // interval of messages to one recipient under the rate limit
	programTimeout = 20 * time.Second   // bounds one run of a program
	minRetry       = time.Minute        // first wait before a repeated delivery; each failure doubles it
	maxRetry       = time.Hour
	rescanInterval = time.Second
)

// defaultMail is the path of sendmail (Filesystem Hierarchy Standard, 4.11).
const defaultMail = "/usr/sbin/sendmail"

// queuedNotification is a notification in the spool.
type queuedNotification = spool.Entry[queue.JobNotification]

// Notifier delivers notifications about jobs to users.
type Notifier struct {
	ownUID config.NotifySettings
	host   string
	groups func(uid uint32) []uint32
	log    *slog.Logger
	spool  *spool.Spool[queue.JobNotification]
	wake   chan struct{}

	mu      sync.Mutex
	digests int
	arrived []*queuedNotification // not taken over by Run yet
}

// DeliveryOptions configure a Notifier.
type DeliveryOptions struct {
	Dir    string // of the spool
	OwnUID config.NotifySettings
	Host   string                    // name of the schedd's host
	Groups func(uid uint32) []uint32 // returns the groups of a user
	Log    *slog.Logger
}

// Open opens the spool and reads the notifications that an earlier run has not delivered.
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
	opened, left, err := spool.Open[queue.JobNotification](o.Dir)
	if opened == nil {
		return nil, err
	}
	if err != nil {
		n.log.Error("notices are lost", "err", err)
	}
	n.spool, n.arrived, n.digests = opened, left, len(left)
	return n, nil
}

// IsConfigured reports whether a mail program or a hook is configured.
func (n *Notifier) IsConfigured() bool { return n.ownUID.Mail != "" || n.ownUID.Hook != "" }

// Enqueue writes notifications to the spool. Their delivery starts when the caller calls
// deliver. Only one goroutine may call it.
func (n *Notifier) Enqueue(notices []queue.JobNotification) (deliver func()) {
	n.mu.Lock()
	room := maxSpooled - n.digests
	n.mu.Unlock()
	if room < len(notices) {
		n.log.Error("notices are not delivered fast enough, and some are dropped",
			"dropped", len(notices)-max(room, 0), "kept",
			maxSpooled)
		notices = notices[:max(room, 0)]
	}
	if len(notices) == 0 {
		return func() {}
	}
	all, err := n.spool.Write(notices)
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

// messageRecipient is a recipient: the owner of jobs with the addresses that they name.
type messageRecipient struct {
	uid, gid uint32
	users    string
}

// recipientDigest contains the undelivered notifications to one recipient, in order.
type recipientDigest struct {
	queued    []*queuedNotification
	burstUsed float64       // messages of the burst that were used at usedAt
	usedAt    time.Time     // time of the latest message
	retryWait time.Duration // after the last failure; 0: there was none
	retryAt   time.Time
}

// burstSpent returns how much of the burst is used. It decreases by one every
// burstRefill.
func (p *recipientDigest) burstSpent(now time.Time) float64 {
	return max(p.burstUsed-float64(now.Sub(p.usedAt))/float64(burstRefill), 0)
}

// allowMessage reports whether one more message may be sent, and counts it.
func (p *recipientDigest) allowMessage(now time.Time) bool {
	used := p.burstSpent(now)
	if used > maxBurst-1 {
		return false
	}
	p.burstUsed, p.usedAt = used+1, now
	return true
}

// Run delivers notifications until ctx ends. A slow mail program delays only the other
// recipients, not the schedd.
func (n *Notifier) Run(ctx context.Context) {
	if !n.IsConfigured() {
		return
	}
	piles := map[messageRecipient]*recipientDigest{}
	var waiting []messageRecipient // recipients with undelivered notifications, longest waiting first
	for {
		fresh := n.waitForNotifications(ctx, len(waiting) > 0)
		if ctx.Err() != nil {
			return
		}
		for _, l := range fresh {
			who := messageRecipient{l.Value.UID, l.Value.GID, l.Value.Users}
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

// waitForNotifications waits for new notifications, or, with others, at most
// rescanInterval.
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

// sendNext sends the next message to one recipient, if it is due.
func (n *Notifier) sendNext(ctx context.Context, who messageRecipient, p *recipientDigest) {
	now := time.Now()
	if now.Before(p.retryAt) || !p.allowMessage(now) || ctx.Err() != nil {
		return
	}
	some := p.queued[:min(len(p.queued), maxDigest)]
	m := userMessage{recipients: recipients(&some[0].Value)}
	for _, l := range some {
		m.notifications = append(m.notifications, l.Value)
	}
	err := n.deliverMessage(ctx, who, &m)
	old := now.Sub(time.Unix(0, some[0].Value.Time)) > retention
	switch {
	case err != nil && ctx.Err() != nil:
		return
	case err != nil && !old:
		p.retryWait = min(max(2*p.retryWait, minRetry), maxRetry)
		p.retryAt = now.Add(p.retryWait)
		n.log.Warn("a user cannot be notified", "to", m.recipients, "notices", len(some), "err", err)
		return
	case err != nil:
		n.log.Error("a user could not be notified for days, and the notices are dropped",
			"to", m.recipients, "notices", len(some),
			"err", err)
	}
	p.retryWait = 0
	p.queued = append([]*queuedNotification(nil), p.queued[len(some):]...)
	for _, l := range some {
		l.Delivered()
	}
	n.mu.Lock()
	n.digests -= len(some)
	n.mu.Unlock()
}
