package schedd

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/sendqueue"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/history"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/negotiation"
	"github.com/roost-batch/roost/schedd/notify"
	"github.com/roost-batch/roost/schedd/queue"
	"github.com/roost-batch/roost/schedd/transfer"
)

// EffectRunner is what a LoopCore has done by others.
type EffectRunner interface {
	// Connect begins to keep up a session with a node, until Disconnect.
	Connect(node, address string)
	Disconnect(node string)
	// Collect brings the output of an attempt home, which LoopCore.OutputFetched is to be
	// told of.
	Collect(node string, a roost.AttemptID, exited *wire.Exited)
	// Past says whether a job is in the history, and whether it ended well.
	Past(seq uint64) (succeeded, known bool)
	// PastKey lists the jobs in the history that were submitted with a key.
	PastKey(key string) []roost.JobID
	// Archive puts jobs into the history, which LoopCore.Archived is to be told of.
	Archive(b *PendingArchive)
	// Secret makes that of the keys of a job's images.
	Secret() []byte
}

// PendingArchive is jobs on their way from the queue into the history.
type PendingArchive struct {
	records  []history.JobRecord
	firstSeq map[uint64]int
}

// Each calls f with the number of each job, and the key that it was submitted with.
func (b *PendingArchive) Each(f func(seq uint64, key string)) {
	for i := range b.records {
		f(b.records[i].Seq, b.records[i].Key)
	}
}

// LoopCore is a schedd without its goroutines, its network, its disk and its clocks. It
// is the daemon's own loop, and its caller runs each turn. The simulator uses it, so that
// it simulates the code that runs. Each method that has a ClockReading begins a turn. At
// the end of a turn the caller calls RunTurn, and then Batch returns what to write, if
// anything. Nothing that a turn has decided leaves before the batch is on disk, and
// Committed was called.
//
// A LoopCore leaves out what happens around the loop: users' files, images of processes,
// notices, lists of jobs, neighbours, distributed placement.
type LoopCore struct {
	schedd       *Schedd
	effects      EffectRunner
	pendingCalls []loopCall
}

// ClockReading is one instant on the schedd's two clocks.
type ClockReading struct {
	Now  time.Time
	Boot roost.BootTime // CLOCK_BOOTTIME
}

// StartdSession is one conversation with a startd.
type StartdSession struct {
	stream *startdSession
	node   string
}

// NegotiatorSession is one conversation with the leader of the negotiators.
type NegotiatorSession struct {
	out *sendqueue.Queue[*wire.FromSchedd]
}

// NewCore returns a schedd that has read q from its log. Starts counts its starts, so
// that the sessions of this one are numbered above those of all before. past is the
// highest number of a job in the history, and started is when this start was. Leases are
// renewed after renew at the latest; 0: after the usual time.
func NewCore(name, domain string, lease, renew time.Duration, q *queue.Queue, starts, past uint64, started time.Time,
	beyond EffectRunner) *LoopCore {
	return newCore(nil, name, domain, lease, renew, q, starts, past, started, beyond)
}

// NewReplicatedCore is NewCore for the schedd of a replicated queue, while its host
// leads. Starts is the number of the start among those of all hosts.
func NewReplicatedCore(name, domain string, lease, renew time.Duration, q *queue.Queue, starts, past uint64,
	started time.Time, beyond EffectRunner) *LoopCore {
	return newCore(&ReplicatedLog{Incarnation: starts}, name, domain, lease, renew, q, starts, past, started, beyond)
}

func newCore(log *ReplicatedLog, name, domain string, lease, renew time.Duration, q *queue.Queue, starts, past uint64,
	started time.Time, beyond EffectRunner) *LoopCore {
	node := &config.Node{Name: name, FileSystemDomain: domain,
		Schedd: &config.ScheddSettings{Socket: name, JobLease: lease}}
	s := newSchedd(node, nil, slog.New(slog.DiscardHandler), started)
	s.replicated = log
	s.daemonContext, s.queue, s.lastHistorySeq, s.notifier, s.users = context.Background(), q, past,
		new(notify.Notifier), transfer.NewUserAgents()
	s.sessions.Store(starts << incarnationBits)
	opt := dispatch.DefaultOptions()
	if renew > 0 {
		opt.RenewEvery = renew
	}
	s.dispatch = dispatch.New(jobQueueAdapter{s}, opt)
	c := &LoopCore{schedd: s, effects: beyond}
	s.effects, s.fetcher, s.pastJobs = simEffects{c}, simEffects{c}, c.setPastJobs
	s.assemble()
	s.transfers.Start(s.daemonContext)
	s.service.Start(s.daemonContext)
	return c
}

// ResumeLogged takes up what the log knows as under way. It is called once, before
// anything else.
func (c *LoopCore) ResumeLogged(m ClockReading) {
	c.setClock(m)
	c.schedd.resumeLogged()
}

// simEffects is what the loop of a LoopCore has done elsewhere.
type simEffects struct{ *LoopCore }

func (d simEffects) connect(node, address string) *nodeConn {
	d.effects.Connect(node, address)
	return &nodeConn{StartdNode: transfer.StartdNode{Name: node}, address: address,
		stop: func() { d.effects.Disconnect(node) }}
}

func (d simEffects) postLater(o loopCall) { d.pendingCalls = append(d.pendingCalls, o) }

// FetchOutput implements OutputFetcher.
func (d simEffects) FetchOutput(c *transfer.OutputFetch) {
	if err := c.CheckManifest(); err != nil {
		d.postLater(func(now time.Time) {
			d.schedd.transfers.OnOutputStored(transfer.OutputStored{Node: c.Peer.Name, Attempt: c.Attempt,
				Exited: c.Exited, Err: err, SpoolReason: nil}, now)
		})
		return
	}
	d.effects.Collect(c.Peer.Name, c.Attempt, c.Exited)
}

func (d simEffects) archive(records []history.JobRecord, before map[uint64]int) {
	d.effects.Archive(&PendingArchive{records, before})
}

func (c *LoopCore) setClock(m ClockReading) { c.schedd.clock = clockReading{m.Now, m.Boot} }

// handleEvent takes one piece of news in.
func (c *LoopCore) handleEvent(m ClockReading, event any) {
	c.setClock(m)
	c.schedd.handle(event, m.Now)
}

// GreetingMessage is the first message of a session with a machine.
func (c *LoopCore) GreetingMessage(machine string) *wire.SessionHello {
	return c.schedd.greetingMessage(machine)
}

// SessionOpened processes the answer to a greeting. It returns nil, and there is no
// session, if another node than the wanted one answered.
func (c *LoopCore) SessionOpened(m ClockReading, node string, welcome *wire.SessionWelcome) *StartdSession {
	if checkWelcome(node, welcome) != nil {
		return nil
	}
	v := &StartdSession{&startdSession{out: sendqueue.New[*wire.ToStartd]()}, node}
	c.handleEvent(m, sessionOpened{node, v.stream, welcome})
	return v
}

// StartdReport takes in one message of a session, and SessionClosed its end.
func (c *LoopCore) StartdReport(m ClockReading, v *StartdSession, message *wire.FromStartd) {
	c.handleEvent(m, startdMessage{v.node, v.stream, message, 0})
}

// SessionClosed takes in the end of a session.
func (c *LoopCore) SessionClosed(m ClockReading, v *StartdSession) {
	c.handleEvent(m, sessionClosed{v.node, v.stream, roost.Unavailable})
}

// TakeMessages returns what is to be sent on a session.
func (v *StartdSession) TakeMessages() []*wire.ToStartd { return v.stream.out.Take() }

// HelloMessage is the first message of a conversation with a negotiator.
func (c *LoopCore) HelloMessage() *wire.ScheddHello { return c.schedd.leader.HelloMessage() }

// NegotiatorConnected takes in that the leader has answered the hello.
func (c *LoopCore) NegotiatorConnected(m ClockReading, epoch uint64, name, address string) *NegotiatorSession {
	t := &NegotiatorSession{sendqueue.New[*wire.FromSchedd]()}
	c.handleEvent(m, negotiation.LeaderConnected{Epoch: epoch, Name: name, Address: address, Out: t.out})
	return t
}

// NegotiatorReport takes in one message of the leader, and NegotiatorDisconnected the end
// of the conversation.
func (c *LoopCore) NegotiatorReport(m ClockReading, t *NegotiatorSession, message *wire.ToSchedd) {
	c.handleEvent(m, negotiation.LeaderMessage{Out: t.out, Message: message})
}

// NegotiatorDisconnected takes in the end of a conversation with the leader.
func (c *LoopCore) NegotiatorDisconnected(m ClockReading, t *NegotiatorSession) {
	c.handleEvent(m, negotiation.LeaderDisconnected{Out: t.out, Err: roost.Unavailable})
}

// TakeMessages returns what is to be sent to the leader.
func (t *NegotiatorSession) TakeMessages() []*wire.FromSchedd { return t.out.Take() }

// Submit takes jobs in; done is called with their ids when they are on disk. Where
// administrators have set quotas it refuses: the leader would have to be asked first.
func (c *LoopCore) Submit(m ClockReading, who queue.CallerIdentity, key string, specs []queue.SubmitSpec,
	done func(ids []roost.JobID, repeated bool)) error {
	c.setClock(m)
	s, limits := c.schedd, c.schedd.submitLimits()
	if !s.queue.HasSubmission(who, key, limits) {
		if err := s.leader.AdmitWithoutLeader(m.Now, who, specs); err != nil {
			return err
		}
	}
	events, ids, repeated, err := s.queue.SubmitJobs(m.Now, who, key, specs, limits)
	if err != nil {
		return err
	}
	s.commitEvents(events...)
	s.afterCommit(func() { done(ids, repeated) })
	return nil
}

// setPastJobs has a submission held against the history that the caller of the core has.
func (c *LoopCore) setPastJobs(l *queue.SubmitLimits) {
	l.NewSecret, l.JobsByKey = c.effects.Secret, c.effects.PastKey
	l.PastJob = func(seq uint64) (ended, succeeded, known bool) {
		succeeded, known = c.effects.Past(seq)
		return known, succeeded, known
	}
}

// Act does what a user wishes; done is called when it is on disk.
func (c *LoopCore) Act(m ClockReading, req *wire.ActRequest, who queue.CallerIdentity, t queue.TaskSelector,
	done func()) error {
	c.setClock(m)
	events, err := c.schedd.service.DecideVerb(req, t, who, m.Now)
	if err != nil {
		return err
	}
	c.schedd.commitEvents(events...)
	c.schedd.afterCommit(done)
	return nil
}

// OutputFetched takes in that the output of an attempt is here, or why it is not.
func (c *LoopCore) OutputFetched(m ClockReading, node string, a roost.AttemptID, exited *wire.Exited, err error) {
	c.handleEvent(m, transfer.OutputStored{Node: node, Attempt: a, Exited: exited, Err: err})
}

// Archived takes in that jobs are in the history.
func (c *LoopCore) Archived(m ClockReading, b *PendingArchive) {
	c.setClock(m)
	c.schedd.archive.removeArchived(m.Now, b.records, b.firstSeq, nil)
}

// RunTurn does what follows from the news since the last.
func (c *LoopCore) RunTurn(m ClockReading) {
	c.setClock(m)
	later := c.pendingCalls
	c.pendingCalls = nil
	for _, o := range later {
		o(m.Now)
	}
	c.schedd.react(m.Now)
}

// HasPendingCalls reports whether ops wait for another turn.
func (c *LoopCore) HasPendingCalls() bool { return len(c.pendingCalls) > 0 }

// Tick does what time asks for.
func (c *LoopCore) Tick(m ClockReading) {
	c.setClock(m)
	c.schedd.tick()
}

// NextTick is the time from m until Tick is due if nothing happens before, and at most
// most. If most is 0, the limit is the longest sleep of a daemon, one second.
func (c *LoopCore) NextTick(m ClockReading, most time.Duration) time.Duration {
	return c.schedd.tickDelay(clockReading{m.Now, m.Boot}, cmp.Or(most, maxTick))
}

// BecameIdle reports, once, whether a claim has become idle. The caller then has to ask
// for the time of the next tick again.
func (c *LoopCore) BecameIdle() bool { return c.schedd.dispatch.BecameIdle() }

// CommitBatch is what is to be committed together.
type CommitBatch struct{ batch *commitBatch }

// Events are the facts of a batch.
func (b *CommitBatch) Events() []queue.JobEvent { return b.batch.events }

// Checkpoint is what to write after the first covered events, in place of all that is in
// the log then. It is nil if the log only grows.
func (b *CommitBatch) Checkpoint() (c *journal.QueueCheckpoint, covered int) {
	return b.batch.checkpoint, b.batch.covered
}

// NeedsConfirmation reports whether a leader must be confirmed before what waits for the
// batch leaves. The queue is a replicated one.
func (b *CommitBatch) NeedsConfirmation() bool { return b.batch.needsConfirmation() }

// Nodes are those to whom something is said that rests on a batch, in order.
func (b *CommitBatch) Nodes() []string {
	var all []string
	for _, m := range b.batch.messages {
		all = append(all, m.node)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Batch returns what to commit now, or nil if there is nothing or it can wait for more.
// If it can wait, by says until when, and waits is true. If there is nothing at all,
// waits is false. While a batch is being written the caller takes no other.
func (c *LoopCore) Batch(now time.Time) (b *CommitBatch, by time.Time, waits bool) {
	p := c.schedd.pending
	if p.isEmpty() {
		return nil, by, false
	}
	if by = p.dueAt; !p.urgent && now.Before(by) {
		return nil, by, true
	}
	c.schedd.pending = &commitBatch{}
	return &CommitBatch{p}, by, false
}

// Committed records that a batch is on disk. The size is that of the log since its last
// checkpoint, in bytes. Afterwards the messages that depend on the batch are in the
// sessions with its Nodes.
func (c *LoopCore) Committed(b *CommitBatch, size int) {
	c.schedd.logSize.Store(int64(size))
	if b.batch.checkpoint != nil {
		c.schedd.checkpointing.Store(false)
	}
	for _, m := range b.batch.messages {
		m.to.out.Put(m.message)
	}
	for _, f := range b.batch.callbacks {
		f()
	}
}

// Queue and Dispatch are the books. The caller only reads them.
func (c *LoopCore) Queue() *queue.Queue { return c.schedd.queue }

// Dispatch is what is known of the claims. The caller only reads it.
func (c *LoopCore) Dispatch() *dispatch.Dispatcher { return c.schedd.dispatch }
