package schedd

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/history"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/notify"
	"github.com/roost-batch/roost/schedd/queue"
)

// Beyond is what a Core has done by others.
type Beyond interface {
	// Connect begins to keep up a session with a node, until Disconnect.
	Connect(node, address string)
	Disconnect(node string)
	// Collect brings the output of an attempt home, which Core.Collected is to be told of.
	Collect(node string, a roost.AttemptID, exited *wire.Exited)
	// Past says whether a job is in the history, and whether it ended well.
	Past(seq uint64) (succeeded, known bool)
	// PastKey lists the jobs in the history that were submitted with a key.
	PastKey(key string) []roost.JobID
	// Bury puts jobs into the history, which Core.Buried is to be told of.
	Bury(b *Burial)
	// Secret makes that of the keys of a job's images.
	Secret() []byte
}

// Burial is jobs on their way from the queue into the history.
type Burial struct {
	records []history.Record
	before  map[uint64]int
}

// Each calls f with the number of each job, and the key that it was submitted with.
func (b *Burial) Each(f func(seq uint64, key string)) {
	for i := range b.records {
		f(b.records[i].Seq, b.records[i].Key)
	}
}

// Core is a schedd without its goroutines, its network, its disk and its clocks: the daemon's own loop, as one turns it by hand. The simulator does, so that
// what it plays is what runs. Each method that has a Moment begins a turn; at its end Turn is called, and then Batch says what is to be written, if anything
// is: nothing that a turn has decided leaves before that is on disk, and Committed was called.
//
// What a Core leaves out is what happens around the loop: users' files, images of processes, notices, lists of jobs, neighbours, distributed placement.
type Core struct {
	s      *Schedd
	beyond Beyond
	later  []op
	since  time.Time // since when facts for which nobody waits wait for the disk; zero: there are none
}

// Moment is one instant on the schedd's two clocks.
type Moment struct {
	Now  time.Time
	Boot dispatch.Instant // CLOCK_BOOTTIME
}

// Session is one conversation with a startd.
type Session struct {
	of   *session
	node string
}

// Talk is one conversation with the leader of the negotiators.
type Talk struct{ out *outbox[*wire.FromSchedd] }

// NewCore returns a schedd that has read q from its log. Starts counts its starts, so that the sessions of this one are numbered above those of all before.
// past is the highest number of a job in the history, and started is when this start was. Leases are renewed after renew at the latest; 0: after the usual time.
func NewCore(name, domain string, lease, renew time.Duration, q *queue.Queue, starts, past uint64, started time.Time, beyond Beyond) *Core {
	node := &config.Node{Name: name, FileSystemDomain: domain, Schedd: &config.Schedd{Socket: name, JobLease: lease}}
	s := newSchedd(node, nil, slog.New(slog.DiscardHandler), started)
	s.life, s.queue, s.lastPastSeq, s.notifier, s.users = context.Background(), q, past, new(notify.Notifier), newUserAgents()
	s.sessions.Store(starts << incarnationBits)
	opt := dispatch.DefaultOptions()
	if renew > 0 {
		opt.RenewEvery = renew
	}
	s.dispatch = dispatch.New(work{s}, opt)
	c := &Core{s: s, beyond: beyond}
	s.outside = driven{c}
	return c
}

// Resume takes up what the log knows as under way. It is called once, before anything else.
func (c *Core) Resume(m Moment) {
	c.at(m)
	c.s.resume()
	c.wait(m)
}

// driven is what the loop of a Core has done elsewhere.
type driven struct{ *Core }

func (d driven) connect(node, address string) *peerNode {
	d.beyond.Connect(node, address)
	return &peerNode{name: node, address: address, stop: func() { d.beyond.Disconnect(node) }}
}

func (d driven) again(o op) { d.later = append(d.later, o) }

func (d driven) collect(c *collection) {
	if err := c.announced(); err != nil {
		d.again(func(now time.Time) { d.s.outputStored(outputStored{c.peer.name, c.attempt, c.exited, err, nil}, now) })
		return
	}
	d.beyond.Collect(c.peer.name, c.attempt, c.exited)
}

func (d driven) bury(records []history.Record, before map[uint64]int) {
	d.beyond.Bury(&Burial{records, before})
}

func (c *Core) at(m Moment) { c.s.at = moment{m.Now, m.Boot} }

// tell takes one piece of news in.
func (c *Core) tell(m Moment, news any) {
	c.at(m)
	c.s.take(news, m.Now)
}

// Greeting is the first message of a session with a machine.
func (c *Core) Greeting(machine string) *wire.SessionHello {
	return c.s.greeting(machine)
}

// Opened takes in that somebody has answered the greeting; nil: it is another than the node that was wanted, and there is no session.
func (c *Core) Opened(m Moment, node string, welcome *wire.SessionWelcome) *Session {
	if welcomed(node, welcome) != nil {
		return nil
	}
	v := &Session{&session{out: newOutbox[*wire.ToStartd]()}, node}
	c.tell(m, sessionUp{node, v.of, welcome})
	return v
}

// Heard takes in one message of a session, and Broken its end.
func (c *Core) Heard(m Moment, v *Session, message *wire.FromStartd) {
	c.tell(m, sessionNews{v.node, v.of, message, 0})
}

// Broken takes in the end of a session.
func (c *Core) Broken(m Moment, v *Session) { c.tell(m, sessionDown{v.node, v.of, roost.Unavailable}) }

// Take returns what is to be sent on a session.
func (v *Session) Take() []*wire.ToStartd { return v.of.out.take() }

// Hello is the first message of a conversation with a negotiator.
func (c *Core) Hello() *wire.ScheddHello { return c.s.hello() }

// Joined takes in that the leader has answered the hello.
func (c *Core) Joined(m Moment, epoch uint64, name, address string) *Talk {
	t := &Talk{newOutbox[*wire.FromSchedd]()}
	c.tell(m, negotiatorUp{epoch, name, address, t.out})
	return t
}

// Advised takes in one message of the leader, and Parted the end of the conversation.
func (c *Core) Advised(m Moment, t *Talk, message *wire.ToSchedd) {
	c.tell(m, negotiatorNews{t.out, message})
}

// Parted takes in the end of a conversation with the leader.
func (c *Core) Parted(m Moment, t *Talk) { c.tell(m, negotiatorDown{t.out, roost.Unavailable}) }

// Take returns what is to be sent to the leader.
func (t *Talk) Take() []*wire.FromSchedd { return t.out.take() }

// Submit takes jobs in; done is called with their ids when they are on disk. Where administrators have set quotas it refuses: the leader would have to be
// asked first.
func (c *Core) Submit(m Moment, who queue.Submitter, key string, specs []queue.Spec, done func(ids []roost.JobID, repeated bool)) error {
	c.at(m)
	s, limits := c.s, c.limits()
	if n := s.negotiator; !s.queue.Known(who, key, limits) {
		e := &entry{who: who, groups: func() []string { return nil }, full: map[string]bool{}, policy: s.policy()}
		if n == nil || n.admission.policy == nil {
			unasked(specs)
		} else if e.policy.GetAdmission() {
			return roost.Unavailable
		}
		if err := e.enqueue(specs); err != nil {
			return err
		}
	}
	events, ids, repeated, err := s.queue.Submit(m.Now, who, key, specs, limits)
	if err != nil {
		return err
	}
	s.decide(events...)
	s.then(func() { done(ids, repeated) })
	return nil
}

func (c *Core) limits() queue.Limits {
	l := c.s.limits()
	l.Secret, l.Key = c.beyond.Secret, c.beyond.PastKey
	l.Past = func(seq uint64) (ended, succeeded, known bool) {
		succeeded, known = c.beyond.Past(seq)
		return known, succeeded, known
	}
	return l
}

// Act does what a user wishes; done is called when it is on disk.
func (c *Core) Act(m Moment, verb wire.ActRequest_Verb, who queue.Submitter, t queue.Target, done func()) error {
	c.at(m)
	events, err := c.s.wish(&wire.ActRequest{Verb: verb}, t, who, m.Now)
	if err != nil {
		return err
	}
	c.s.decide(events...)
	c.s.then(done)
	return nil
}

// Collected takes in that the output of an attempt is here, or why it is not.
func (c *Core) Collected(m Moment, node string, a roost.AttemptID, exited *wire.Exited, err error) {
	c.tell(m, outputStored{node: node, attempt: a, exited: exited, err: err})
}

// Buried takes in that jobs are in the history.
func (c *Core) Buried(m Moment, b *Burial) {
	c.at(m)
	c.s.moved(m.Now, b.records, b.before, nil)
}

// Turn does what follows from the news since the last.
func (c *Core) Turn(m Moment) {
	c.at(m)
	later := c.later
	c.later = nil
	for _, o := range later {
		o(m.Now)
	}
	c.s.follow(m.Now)
	c.wait(m)
}

// wait notes since when something waits for the disk.
func (c *Core) wait(m Moment) {
	if c.since.IsZero() && !c.s.pending.empty() {
		c.since = m.Now
	}
}

// Restless reports whether ops wait for another turn.
func (c *Core) Restless() bool { return len(c.later) > 0 }

// Tick does what time asks for.
func (c *Core) Tick(m Moment) {
	c.at(m)
	c.s.tick()
	c.wait(m)
}

// Wait is how long after m Tick is due if nothing happens before, and no longer than so long; 0: than a daemon sleeps, which is a second.
func (c *Core) Wait(m Moment, most time.Duration) time.Duration {
	return c.s.untilTick(moment{m.Now, m.Boot}, cmp.Or(most, tickSeldom))
}

// Stirred reports, once, whether a claim has become idle: then the time of the next tick has to be asked for anew.
func (c *Core) Stirred() bool { return c.s.dispatch.Stirred() }

// Batch is what is to be committed together.
type Batch struct{ of *batch }

// Events are the facts of a batch, and Snapshots what a checkpoint of the log writes with them, by job: nil for one that has left the queue.
func (b *Batch) Events() []queue.Event { return b.of.events }

// Checkpoint is what is to be written with the events, if the log is to begin anew; nil if it is not.
func (b *Batch) Checkpoint() *journal.Checkpoint { return b.of.checkpoint }

// Nodes are those to whom something is said that rests on a batch, in order.
func (b *Batch) Nodes() []string {
	var all []string
	for _, m := range b.of.sends {
		all = append(all, m.node)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Batch returns what is to be committed now, nil if nothing is or it can wait for company: then until when, and false if there is nothing at all. As long as a
// batch is being written no other is to be taken.
func (c *Core) Batch(now time.Time) (b *Batch, by time.Time, waits bool) {
	p := c.s.pending
	if p.empty() {
		return nil, by, false
	}
	if by = c.since.Add(lazyFor); !p.urgent && now.Before(by) {
		return nil, by, true
	}
	c.s.pending, c.since = &batch{}, time.Time{}
	return &Batch{p}, by, false
}

// Committed is called when a batch is on disk, and says how large the log is since its last checkpoint, in bytes. What rests on the batch is in the sessions
// with its Nodes then.
func (c *Core) Committed(b *Batch, size int) {
	c.s.logSize.Store(int64(size))
	for _, m := range b.of.sends {
		m.to.out.put(m.message)
	}
	for _, f := range b.of.after {
		f()
	}
}

// Queue and Dispatch are the books. The caller only reads them.
func (c *Core) Queue() *queue.Queue { return c.s.queue }

// Dispatch is what is known of the claims. The caller only reads it.
func (c *Core) Dispatch() *dispatch.Dispatcher { return c.s.dispatch }
