package replica

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/hashicorp/raft"

	"github.com/roost-batch/roost"
)

// clientRequest is a request of a client: a read if write is "".
type clientRequest struct{ write string }

// clientResult is the result of a request. A write returns the number of writes, a read
// returns that and the last value.
type clientResult struct {
	value   string
	count   int
	unknown bool // no answer came
}

// oneRegister models the replicas together: a register with a counter, on one machine.
var oneRegister = porcupine.Model{
	Init: func() any { return clientResult{} },
	Step: func(state, input, output any) (bool, any) {
		was, asked, got := state.(clientResult), input.(clientRequest), output.(clientResult)
		if asked.write == "" {
			return got == was, was
		}
		is := clientResult{value: asked.write, count: was.count + 1}
		return got.unknown || got.count == is.count, is
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// TestRandomFaults lets clients write and read on the leader during random faults. Links
// are cut in one or both directions, and replicas die, lose their disks, and return. The
// history must be possible for a single register, and after the faults all replicas must
// be equal.
func TestRandomFaults(t *testing.T) {
	seeds := uint64(4)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomFaults(t, rand.New(rand.NewPCG(seed, 5)), 3+2*int(seed%2)) })
		})
	}
}

func randomFaults(t *testing.T, random *rand.Rand, replicas int) {
	c := newCell(t, replicas)
	c.startAll()
	c.commitEntries(c.waitForLeader(), "begin")
	h := &clientHistory{startedAt: time.Now(), cell: c}
	h.addRequest(porcupine.Operation{Input: clientRequest{"begin"}, Output: clientResult{count: 1}, Return: 1})
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for client := range 6 {
		pace := rand.New(rand.NewPCG(random.Uint64(), 0))
		clients.Go(func() { h.runClient(1+client, pace, stop) })
	}
	for range 25 {
		c.injectFault(random)
		time.Sleep(time.Duration(random.IntN(2500)) * time.Millisecond)
		h.checkOneLeader(t)
	}
	c.network.healAll()
	for _, a := range c.addresses {
		if c.nodeAt(a) == nil {
			c.startReplica(a)
		}
	}
	c.waitForLeader()
	close(stop)
	clients.Wait()
	c.commitEntries(c.waitForLeader(), "end")
	c.waitForSameState(c.waitForLeader().state.currentState().Count)
	h.checkLinearizable(t)
	c.stopAll()
}

// injectFault causes or ends one fault. A majority stays alive, and no second disk is
// lost before the cell is whole again.
func (c *testCell) injectFault(random *rand.Rand) {
	a, b := c.addresses[random.IntN(len(c.addresses))], c.addresses[random.IntN(len(c.addresses))]
	switch random.IntN(8) {
	case 0, 1:
		c.network.setLink(a, b, a != b)
	case 2:
		c.network.isolateAddress(a, c.addresses, true)
	case 3, 4:
		c.network.healAll()
	case 5, 6:
		if c.nodeAt(a) == nil {
			c.startReplica(a)
		} else if c.runningAddresses() == len(c.addresses) && random.IntN(2) == 0 {
			c.killReplica(a)
		} else if c.runningAddresses() == len(c.addresses) {
			c.stopReplica(a)
		}
	case 7:
		if c.nodeAt(a) != nil && c.runningAddresses() == len(c.addresses) && c.isWhole() {
			c.killReplica(a)
			c.wipeDisk(a)
			c.startReplica(a)
		}
	}
}

// isWhole reports whether every member is a voter with its own id.
func (c *testCell) isWhole() bool {
	for _, n := range c.runningNodes() {
		if n.isLeader() {
			s := n.Survey(c.t.Context())
			return len(s.Members) == len(c.addresses) && s.SpareVoters() == len(c.addresses)-(len(c.addresses)/2+1)
		}
	}
	return false
}

// clientHistory records what clients saw, in fake time.
type clientHistory struct {
	cell      *testCell
	startedAt time.Time

	mu       sync.Mutex
	requests []porcupine.Operation
}

func (h *clientHistory) addRequest(o porcupine.Operation) {
	h.mu.Lock()
	h.requests = append(h.requests, o)
	h.mu.Unlock()
}

// runClient writes and reads until it is stopped.
func (h *clientHistory) runClient(id int, pace *rand.Rand, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(pace.IntN(120)) * time.Millisecond):
		}
		all := h.cell.runningNodes()
		if len(all) == 0 {
			continue
		}
		n := all[pace.IntN(len(all))]
		o := porcupine.Operation{ClientId: id, Call: int64(time.Since(h.startedAt))}
		if pace.IntN(2) == 0 {
			if !n.isLeader() || n.Verify(h.cell.t.Context()) != nil {
				continue
			}
			s := n.state.currentState()
			o.Input, o.Output = clientRequest{}, clientResult{value: s.Value, count: s.Count}
		} else {
			value := fmt.Sprintf("%d.%d", id, i)
			result, err := n.commitEntry(value)
			o.Input = clientRequest{value}
			if err != nil {
				if neverCommitted(err) {
					continue // the entry never came into a log
				}
				o.Output, o.Return = clientResult{unknown: true}, math.MaxInt64
				h.addRequest(o)
				continue
			}
			o.Output = clientResult{count: result.(int)}
		}
		o.Return = int64(time.Since(h.startedAt))
		h.addRequest(o)
	}
}

// neverCommitted reports whether an error means that an entry never came into any log.
func neverCommitted(err error) bool {
	return errors.Is(err, raft.ErrNotLeader) || errors.Is(err, roost.Exhausted)
}

// checkOneLeader checks that no two replicas lead in the same term.
func (h *clientHistory) checkOneLeader(t *testing.T) {
	t.Helper()
	terms := map[uint64]string{}
	for _, n := range h.cell.runningNodes() {
		n.mu.Lock()
		l := n.lead
		n.mu.Unlock()
		if l.IsLeader {
			if other := terms[l.Term]; other != "" {
				t.Fatalf("%s and %s both lead in term %d", other, n.config.Address, l.Term)
			}
			terms[l.Term] = n.config.Address
		}
	}
}

func (h *clientHistory) checkLinearizable(t *testing.T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	unknown := 0
	for _, o := range h.requests {
		if o.Output.(clientResult).unknown {
			unknown++
		}
	}
	t.Logf("%d operations, %d of them without an answer", len(h.requests), unknown)
	if got := porcupine.CheckOperationsTimeout(oneRegister, h.requests, 0); got != porcupine.Ok {
		t.Errorf("no single register behaves like this: %v", got)
		for _, o := range h.requests {
			t.Logf("%d..%d %s", o.Call, o.Return, oneRegister.DescribeOperation(o.Input, o.Output))
		}
	}
}
