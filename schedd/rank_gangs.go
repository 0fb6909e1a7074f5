package schedd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pmi"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/api"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
)

// The ranks of an MPI program exchange keys by way of the schedd, which knows the
// machines of the gang. A task speaks for itself only: its connection is that of the
// machine that holds its claim, by the machine's certificate.
//
//	ranks of a task ── socket ──▶ startd ── session: come, ticket ──▶ schedd
//	                                │ ◀────── Reach, ticket ───────────┘ one collector a gang
//
// Nothing of it is in the log. A schedd that has just started knows all again when the
// tasks have connected, as package pmi says.

// rankGangs is the gangs of MPI programs whose ranks have connected. The map belongs to
// the loop.
type rankGangs struct {
	byHead map[roost.TaskID]*rankGang
	keys   keyBudget
}

// rankGang is one gang.
type rankGang struct {
	members []queue.HostProcesses
	ranks   []int // of each member
	timeout time.Duration
	began   time.Time
	log     func(text string)

	mu        sync.Mutex
	collector *pmi.Collector
	conns     []*rankConn // by member; nil: it is not connected
	keys      *keyBudget  // of all gangs
	incoming  int         // bytes of messages that are not complete
	charged   int         // bytes that keys has of this gang
	failure   func()      // what is done once all are connected, or after a while
}

// rankConn is the connection to the ranks of a task.
type rankConn struct {
	queue  chan pmi.Message
	cancel context.CancelFunc
}

// The bounds of these connections.
const (
	rankQueueSize = 64               // messages to a task that are not sent yet
	failureDelay  = 10 * time.Second // for the others of a gang, of which a machine may be lost
)

// timedOutStatus is the exit code of a gang whose ranks do not all start, as timeout(1)
// has it.
const timedOutStatus = 124

// attachRanks takes in that the ranks of an attempt want to be connected.
func attachRanks(s *Schedd, p *nodeConn, a roost.AttemptID, ticket uint64) {
	place := queue.RanksOfAttempt(s.queue, a)
	if place == nil {
		return
	}
	head := a.Task
	head.Index -= place.Index
	gangs := &s.rankGangs
	if gangs.byHead == nil {
		gangs.byHead = map[roost.TaskID]*rankGang{}
	}
	g := gangs.byHead[head]
	if g == nil || g.members[place.Index].Attempt != a {
		for id, old := range gangs.byHead {
			live := func(m queue.HostProcesses) bool { return s.queue.IsLive(m.Attempt) }
			if !slices.ContainsFunc(old.members, live) {
				old.end()
				delete(gangs.byHead, id)
			}
		}
		g = newRankGang(place)
		g.keys = &gangs.keys
		g.log = func(text string) { s.log.Info("the gang of an MPI program ends", "task", head, "reason", text) }
		gangs.byHead[head] = g
		context.AfterFunc(s.daemonContext, g.end)
		time.AfterFunc(g.timeout, g.onStartTimeout)
	}
	go func() {
		if err := g.serve(s.daemonContext, p, a, place.Index, ticket); err != nil && s.daemonContext.Err() == nil {
			s.log.Info("the ranks of a task are not connected any more", "attempt", a, "error", rpc.FromStatus(err))
		}
	}()
}

func newRankGang(place *queue.GangRanks) *rankGang {
	n := len(place.Members)
	g := &rankGang{members: place.Members, timeout: place.StartTimeout, began: time.Now(),
		collector: pmi.NewCollector(n), conns: make([]*rankConn, n)}
	for i, m := range place.Members {
		g.ranks = append(g.ranks, m.Processes)
		if place.Done[i] {
			g.collector.MarkEnded(i)
		}
	}
	return g
}

// serve passes messages between the ranks of a task and the collector.
func (g *rankGang) serve(ctx context.Context, p *nodeConn, a roost.AttemptID, member int, ticket uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := p.Client.Reach(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&wire.ReachOutput{Attempt: codec.AttemptRef(a), Ticket: ticket}); err != nil {
		return err
	}
	c := &rankConn{queue: make(chan pmi.Message, rankQueueSize), cancel: cancel}
	g.connect(member, c)
	defer g.disconnect(member, c)
	go c.send(ctx, stream)
	var joiner pmi.MessageJoiner
	part := 0 // bytes of a message that is not complete
	defer func() { g.release(part) }()
	for {
		in, err := stream.Recv()
		if err != nil {
			return err
		}
		m, ok := pmi.DecodeMessage(in.GetRanks())
		if !ok {
			return fmt.Errorf("node %s: %w: that is no message of ranks", p.Name, roost.Invalid)
		}
		part += len(m.Data)
		if err := g.reserve(len(m.Data)); err != nil {
			return fmt.Errorf("node %s: %w", p.Name, err)
		}
		if whole, complete, _ := joiner.Join(m, pmi.MaxGangKeys); complete {
			g.apply(member, whole, part)
			part = 0
		}
	}
}

// send sends the messages of the queue until the connection ends.
func (c *rankConn) send(ctx context.Context, stream grpc.BidiStreamingClient[wire.ReachOutput, wire.ReachCall]) {
	for {
		select {
		case m := <-c.queue:
			for _, part := range m.Split() {
				if stream.Send(&wire.ReachOutput{Ranks: part.Append(nil)}) != nil {
					c.cancel()
					return
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// connect replaces the connection of a member.
func (g *rankGang) connect(member int, c *rankConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if old := g.conns[member]; old != nil {
		old.cancel()
	}
	g.conns[member] = c
	if g.failure != nil && g.allConnected() {
		g.failure()
	}
}

func (g *rankGang) disconnect(member int, c *rankConn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conns[member] == c {
		g.conns[member] = nil
	}
}

// allConnected reports whether all members are connected.
func (g *rankGang) allConnected() bool { return !slices.Contains(g.conns, nil) }

// apply takes in a message of a member. A rank that fails while a member is not connected
// may fail because that machine is lost: the queue then starts the gang again. So such a
// failure waits until all are connected, or for a while.
// size is what was reserved for it.
func (g *rankGang) apply(member int, m pmi.Message, size int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.incoming -= size
	defer g.recount()
	if m.Kind == pmi.Failed {
		m.Text = fmt.Sprintf("on %s %s", g.members[member].Node, api.SanitizeSentence(m.Text))
	}
	if m.Kind != pmi.Failed || g.allConnected() {
		g.deliver(g.collector.Apply(member, m))
		return
	}
	if g.failure != nil {
		return
	}
	g.failure = func() { g.deliver(g.collector.Apply(member, m)) }
	time.AfterFunc(failureDelay, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.failure()
	})
}

// deliver puts messages into the queues of the members. One that takes none is
// disconnected: it connects again.
func (g *rankGang) deliver(effects []pmi.Effect) {
	defer g.recount()
	for _, e := range effects {
		if e.Message.Kind == pmi.Stop && e.To < 0 {
			g.log(e.Message.Text)
		}
		if e.Message.Kind == pmi.Finish && e.To < 0 && g.collector.SpokeNever() {
			e.Message.Text = fmt.Sprintf("the %d processes have ended without MPI_Init over PMI-1: each has run as a "+
				"program of one rank; is the program built with the MPI library that mpi names?", sum(g.ranks))
		}
		for i, c := range g.conns {
			if c == nil || e.To >= 0 && e.To != i {
				continue
			}
			select {
			case c.queue <- e.Message:
			default:
				c.cancel()
			}
		}
	}
}

// sum adds numbers.
func sum(list []int) (n int) {
	for _, k := range list {
		n += k
	}
	return n
}

// onStartTimeout ends the gang if not all ranks are beyond their first barrier.
func (g *rankGang) onStartTimeout() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if missing := g.missing(); missing != "" {
		g.deliver(g.collector.Stop(timedOutStatus, fmt.Sprintf("after the start_timeout of %v %s", g.timeout, missing)))
	}
}

// missing says which ranks are not beyond their first barrier; empty if all are, or if
// the gang has ended.
func (g *rankGang) missing() string {
	if g.collector.Outcome() != nil || g.collector.HasStarted(g.ranks) {
		return ""
	}
	what, missing := "have not called MPI_Init", g.collector.Missing(g.ranks, pmi.Initialised)
	if len(missing) == 0 {
		what, missing = "have called MPI_Init, but not come to its barrier", g.collector.Missing(g.ranks, pmi.InBarrier)
	}
	var parts []string
	first := 0
	for i, n := range g.ranks {
		if list := missing[i]; len(list) > 0 {
			for k := range list {
				list[k] += first
			}
			node := g.members[i].Node
			if g.conns[i] == nil {
				node += ", which is not connected"
			}
			parts = append(parts, fmt.Sprintf("%s (on %s)", pmi.RankList(list), node))
		}
		first += n
	}
	return fmt.Sprintf("these ranks %s: %s", what, shorten(parts))
}

// maxMissingParts bounds how many machines a sentence names.
const maxMissingParts = 8

func shorten(parts []string) string {
	if n := len(parts) - maxMissingParts; n > 0 {
		parts = append(parts[:maxMissingParts:maxMissingParts], fmt.Sprintf("and those on %d more", n))
	}
	return strings.Join(parts, "; ")
}

// end closes all connections.
func (g *rankGang) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.conns {
		if c != nil {
			c.cancel()
		}
	}
	g.collector.Stop(1, "the gang has ended")
	g.recount()
}

// rankGangOf returns the gang of an attempt; nil if its ranks have never connected.
func rankGangOf(s *Schedd, a roost.AttemptID) *rankGang {
	place := queue.RanksOfAttempt(s.queue, a)
	if place == nil {
		return nil
	}
	head := a.Task
	head.Index -= place.Index
	if g := s.rankGangs.byHead[head]; g != nil && g.members[place.Index].Attempt == a {
		return g
	}
	return nil
}

// noteRanksEnded takes in the end of an attempt before it is recorded. The others of its
// gang end with it, and its end has the reason of the gang's.
func noteRanksEnded(s *Schedd, a roost.AttemptID, status *wire.ExitStatus) {
	g := rankGangOf(s, a)
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if status.GetCause() != wire.Cause_CAUSE_EXITED {
		return // the queue ends the others
	}
	i := slices.IndexFunc(g.members, func(m queue.HostProcesses) bool { return m.Attempt == a })
	code := max(status.GetCode(), 1)
	if status.GetSignal() != 0 {
		code = 128 + status.GetSignal()
	}
	g.deliver(g.collector.Stop(code, fmt.Sprintf("task %d of the gang, on %s, has ended before the others", i,
		g.members[i].Node)))
	if o := g.collector.Outcome(); status.GetReason() == "" && o.Kind == pmi.Stop && status.GetCode() != 0 {
		status.Reason = o.Text
	}
}
