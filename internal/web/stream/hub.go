package stream

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/web/session"
)

// Bounds of a hub and of a client.
const (
	maxRing    = 10_000           // events that can be resumed from
	ringSpan   = 60 * time.Second // how old they are at most
	maxWaiting = 256 << 10        // bytes of events that wait for one browser
	maxTopics  = 200              // of one stream
	hubLinger  = ringSpan         // how long a hub without clients can be resumed from
)

// event is one change, ready to be sent.
type event struct {
	seq   uint64
	at    time.Time
	topic string
	text  []byte // as a browser reads it, without its id
}

// Hubs has the hub of each user.
type Hubs struct {
	log     *slog.Logger
	resyncs *metrics.Counter
	epoch   string // of this start of the daemon: events of another are not resumed from

	mu sync.Mutex
	of map[string]*hub
}

// New returns hubs without users, which count how often browsers have to read everything
// again.
func New(log *slog.Logger, resyncs *metrics.Counter) *Hubs {
	return &Hubs{log: log, resyncs: resyncs, epoch: fmt.Sprintf("%x", time.Now().UnixNano()), of: map[string]*hub{}}
}

// hub has the events of one user's streams.
type hub struct {
	hubs *Hubs
	user string

	mu      sync.Mutex
	seq     uint64
	ring    []event
	last    map[string][]byte // of each topic that is wanted, its last event
	clients map[*client]bool
	changed chan struct{} // holds one token while the wanted topics have changed
	stop    context.CancelFunc
	idle    *time.Timer // drops the hub; nil: it has clients
}

// client is one stream.
type client struct {
	session *session.Session
	topics  map[string]bool

	mu      sync.Mutex
	waiting []event
	size    int  // bytes of waiting
	resync  bool // events were lost
	signal  chan struct{}
}

// join adds a stream to the hub of its user. The browser has seen the event with the id
// after last; empty: none.
func (h *Hubs) join(s *session.Session, topics []string, after string) (*hub, *client) {
	c := &client{session: s, topics: map[string]bool{}, signal: make(chan struct{}, 1)}
	for _, t := range topics {
		c.topics[t] = true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	u := h.of[s.User]
	if u == nil {
		ctx, cancel := context.WithCancel(context.Background())
		u = &hub{hubs: h, user: s.User, last: map[string][]byte{}, clients: map[*client]bool{},
			changed: make(chan struct{}, 1), stop: cancel}
		h.of[s.User] = u
		go u.run(ctx)
	}
	u.add(c, h.epoch, after)
	return u, c
}

// add adds a client, and gives it the events that it has missed.
func (u *hub) add(c *client, epoch, after string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.idle != nil {
		u.idle.Stop()
		u.idle = nil
	}
	u.clients[c] = true
	if after != "" && !u.resume(c, epoch, after) {
		c.lose()
	}
	u.signalChange()
}

// resume gives a client the events behind one, and reports whether all are there.
func (u *hub) resume(c *client, epoch, after string) bool {
	of, number, ok := strings.Cut(after, ".")
	var seq uint64
	if n, err := fmt.Sscan(number, &seq); !ok || of != epoch || err != nil || n != 1 || seq > u.seq {
		return false
	}
	if len(u.ring) == 0 {
		return seq == u.seq
	}
	if u.ring[0].seq > seq+1 {
		return false
	}
	for _, e := range u.ring {
		if e.seq > seq {
			c.put(e)
		}
	}
	return true
}

// leave removes a stream. A hub without streams is dropped after a while.
func (u *hub) leave(c *client) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.clients, c)
	u.signalChange()
	if len(u.clients) == 0 {
		u.idle = time.AfterFunc(hubLinger, u.drop)
	}
}

func (u *hub) drop() {
	u.hubs.mu.Lock()
	defer u.hubs.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.clients) == 0 && u.hubs.of[u.user] == u {
		delete(u.hubs.of, u.user)
		u.stop()
	}
}

func (u *hub) signalChange() {
	select {
	case u.changed <- struct{}{}:
	default:
	}
}

// wanted returns the topics that any stream wants, and a session to ask with; nil: there
// is none.
func (u *hub) wanted() (topics []string, s *session.Session) {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := map[string]bool{}
	for c := range u.clients {
		maps.Copy(all, c.topics)
		select {
		case <-c.session.Ended():
		default:
			s = c.session
		}
	}
	for topic := range u.last {
		if !all[topic] {
			delete(u.last, topic)
		}
	}
	return slices.Sorted(maps.Keys(all)), s
}

// publish sends an event to the streams that want its topic, unless it says what the last
// one said.
func (u *hub) publish(topic, kind string, data []byte) {
	text := fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, data)
	u.mu.Lock()
	defer u.mu.Unlock()
	if bytes.Equal(u.last[topic], text) {
		return
	}
	u.last[topic] = text
	u.seq++
	e := event{u.seq, time.Now(), topic, text}
	u.ring = append(u.ring, e)
	old := 0
	for old < len(u.ring) && (len(u.ring)-old > maxRing || e.at.Sub(u.ring[old].at) > ringSpan) {
		old++
	}
	u.ring = slices.Delete(u.ring, 0, old)
	for c := range u.clients {
		c.put(e)
	}
}

// initial gives a new stream what is known of its topics already.
func (u *hub) initial(c *client) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for topic := range c.topics {
		if text := u.last[topic]; text != nil {
			c.put(event{u.seq, time.Now(), topic, text})
		}
	}
}

// put adds an event for a browser. One that does not keep up loses all that waits.
func (c *client) put(e event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.topics[e.topic] || c.resync {
		return
	}
	if c.size+len(e.text) > maxWaiting {
		c.loseLocked()
		return
	}
	c.waiting, c.size = append(c.waiting, e), c.size+len(e.text)
	c.wake()
}

// lose drops what waits and has the browser read everything again.
func (c *client) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loseLocked()
}

func (c *client) loseLocked() {
	c.waiting, c.size, c.resync = nil, 0, true
	c.wake()
}

func (c *client) wake() {
	select {
	case c.signal <- struct{}{}:
	default:
	}
}

// take takes what waits.
func (c *client) take() (events []event, resync bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	events, resync = c.waiting, c.resync
	c.waiting, c.size, c.resync = nil, 0, false
	return events, resync
}
