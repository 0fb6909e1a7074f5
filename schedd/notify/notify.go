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
	maxKept   = 10_000             // notices in the outbox
	maxDigest = 200                // notices in one message
	keepFor   = 3 * 24 * time.Hour // what cannot be delivered
	burst     = 5                  // messages to one person, before they come
	every     = 10 * time.Second   // so seldom
	patience  = 20 * time.Second   // with a program
	firstWait = time.Minute        // until what was not taken is offered again; then twice as long, and so on
	lastWait  = time.Hour
	lookAgain = time.Second
)

// usualMail is where sendmail is (Filesystem Hierarchy Standard, 4.11).
const usualMail = "/usr/sbin/sendmail"

// Notifier tells people of their jobs.
type Notifier struct {
	own    config.Notify
	host   string
	groups func(uid uint32) []uint32
	log    *slog.Logger
	box    *outbox
	wake   chan struct{}

	mu   sync.Mutex
	kept int
	new  []*letter // that Run has not seen
}

// Options say how.
type Options struct {
	Dir    string // of the outbox
	Own    config.Notify
	Host   string                    // of the schedd
	Groups func(uid uint32) []uint32 // of a user
	Log    *slog.Logger
}

// Open reads what an earlier start has not delivered.
func Open(o Options) (*Notifier, error) {
	n := &Notifier{own: o.Own, host: o.Host, groups: o.Groups, log: o.Log, wake: make(chan struct{}, 1)}
	switch n.own.Mail {
	case "none":
		n.own.Mail = ""
	case "":
		if _, err := os.Stat(usualMail); err == nil {
			n.own.Mail = usualMail
		}
	}
	if !n.Wanted() {
		return n, nil
	}
	box, left, err := openOutbox(o.Dir)
	if box == nil {
		return nil, err
	}
	if err != nil {
		n.log.Error("notices are lost", "err", err)
	}
	n.box, n.new, n.kept = box, left, len(left)
	return n, nil
}

// Wanted reports whether there is any way to tell people anything.
func (n *Notifier) Wanted() bool { return n.own.Mail != "" || n.own.Hook != "" }

// Keep writes notices down. They are delivered from when the caller calls what it returns. It is to be called by one goroutine.
func (n *Notifier) Keep(notices []queue.Notice) (deliver func()) {
	n.mu.Lock()
	room := maxKept - n.kept
	n.mu.Unlock()
	if room < len(notices) {
		n.log.Error("nobody takes notices, and some are dropped", "dropped", len(notices)-max(room, 0), "kept", maxKept)
		notices = notices[:max(room, 0)]
	}
	if len(notices) == 0 {
		return func() {}
	}
	all, err := n.box.put(notices)
	if err != nil {
		n.log.Error("notices are lost", "count", len(notices), "err", err)
		return func() {}
	}
	return func() {
		n.mu.Lock()
		n.new, n.kept = append(n.new, all...), n.kept+len(all)
		n.mu.Unlock()
		select {
		case n.wake <- struct{}{}:
		default:
		}
	}
}

// person is one who is told: an owner, with the addresses that a job names.
type person struct {
	uid, gid uint32
	users    string
}

// pile is what one person is to be told, in order.
type pile struct {
	letters []*letter
	used    float64       // of the burst
	at      time.Time     // when
	wait    time.Duration // after the last failure; 0: there was none
	until   time.Time
}

// spent is how much of the burst is used up; it falls by one in every so often.
func (p *pile) spent(now time.Time) float64 {
	return max(p.used-float64(now.Sub(p.at))/float64(every), 0)
}

// allow reports whether one more message may go.
func (p *pile) allow(now time.Time) bool {
	used := p.spent(now)
	if used > burst-1 {
		return false
	}
	p.used, p.at = used+1, now
	return true
}

// Run delivers until ctx ends. One that is slow to take delays only others who are told.
func (n *Notifier) Run(ctx context.Context) {
	if !n.Wanted() {
		return
	}
	piles := map[person]*pile{}
	var waiting []person // those with letters, in the order in which they got their first
	for {
		fresh := n.fresh(ctx, len(waiting) > 0)
		if ctx.Err() != nil {
			return
		}
		for _, l := range fresh {
			who := person{l.UID, l.GID, l.Users}
			p := piles[who]
			if p == nil {
				p = &pile{}
				piles[who] = p
			}
			if len(p.letters) == 0 {
				waiting = append(waiting, who)
			}
			p.letters = append(p.letters, l)
		}
		waiting = slices.DeleteFunc(waiting, func(who person) bool {
			n.tell(ctx, who, piles[who])
			return len(piles[who].letters) == 0
		})
		if len(waiting) == 0 {
			now := time.Now()
			maps.DeleteFunc(piles, func(_ person, p *pile) bool { return p.spent(now) == 0 })
		}
	}
}

// fresh waits for new letters, or while others wait, for a moment.
func (n *Notifier) fresh(ctx context.Context, others bool) []*letter {
	n.mu.Lock()
	all := n.new
	n.new = nil
	n.mu.Unlock()
	if len(all) > 0 {
		return all
	}
	var again <-chan time.Time
	if others {
		again = time.After(lookAgain)
	}
	select {
	case <-ctx.Done():
	case <-n.wake:
	case <-again:
	}
	return nil
}

// tell sends one person the next message, if it is time for it.
func (n *Notifier) tell(ctx context.Context, who person, p *pile) {
	now := time.Now()
	if now.Before(p.until) || !p.allow(now) || ctx.Err() != nil {
		return
	}
	some := p.letters[:min(len(p.letters), maxDigest)]
	m := message{to: recipients(&some[0].Notice)}
	for _, l := range some {
		m.notices = append(m.notices, l.Notice)
	}
	err := n.deliver(ctx, who, &m)
	old := now.Sub(time.Unix(0, some[0].Time)) > keepFor
	switch {
	case err != nil && ctx.Err() != nil:
		return
	case err != nil && !old:
		p.wait = min(max(2*p.wait, firstWait), lastWait)
		p.until = now.Add(p.wait)
		n.log.Warn("somebody cannot be told", "to", m.to, "notices", len(some), "err", err)
		return
	case err != nil:
		n.log.Error("somebody was not told for days, and is not any more", "to", m.to, "notices", len(some), "err", err)
	}
	p.wait = 0
	p.letters = append([]*letter(nil), p.letters[len(some):]...)
	for _, l := range some {
		if *l.left--; *l.left == 0 {
			n.box.remove(l.file)
		}
	}
	n.mu.Lock()
	n.kept -= len(some)
	n.mu.Unlock()
}
