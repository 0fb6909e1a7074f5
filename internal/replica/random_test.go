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

// op is what a client asked for: to read where write is "".
type op struct{ write string }

// seen is what came of it. A write is answered with how many there were, a read with that and the last of them.
type seen struct {
	value   string
	count   int
	unknown bool // the answer never came
}

// oneRegister is what the replicas together are to look like: a register with a counter, on one machine.
var oneRegister = porcupine.Model{
	Init: func() any { return seen{} },
	Step: func(state, input, output any) (bool, any) {
		was, asked, got := state.(seen), input.(op), output.(seen)
		if asked.write == "" {
			return got == was, was
		}
		is := seen{value: asked.write, count: was.count + 1}
		return got.unknown || got.count == is.count, is
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// TestRandomFaults lets clients write and read on whichever replica leads, while links are cut one way and both ways, replicas die, lose their
// disks, and return. The history is to be one that a single register could have had, and when the faults end all are the same.
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
	c.write(c.leader(), "begin")
	h := &history{begun: time.Now(), cell: c}
	h.add(porcupine.Operation{Input: op{"begin"}, Output: seen{count: 1}, Return: 1})
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for client := range 6 {
		pace := rand.New(rand.NewPCG(random.Uint64(), 0))
		clients.Go(func() { h.client(1+client, pace, stop) })
	}
	for range 25 {
		c.fault(random)
		time.Sleep(time.Duration(random.IntN(2500)) * time.Millisecond)
		h.oneLeader(t)
	}
	c.net.heal()
	for _, a := range c.addrs {
		if c.at(a) == nil {
			c.start(a)
		}
	}
	c.leader()
	close(stop)
	clients.Wait()
	c.write(c.leader(), "end")
	c.same(c.leader().state.now().Count)
	h.check(t)
	c.stopAll()
}

// fault lets one thing go wrong, or right again. A majority is kept on its feet, and no more than one disk is lost before the cell is whole.
func (c *cell) fault(random *rand.Rand) {
	a, b := c.addrs[random.IntN(len(c.addrs))], c.addrs[random.IntN(len(c.addrs))]
	switch random.IntN(8) {
	case 0, 1:
		c.net.set(a, b, a != b)
	case 2:
		c.net.isolate(a, c.addrs, true)
	case 3, 4:
		c.net.heal()
	case 5, 6:
		if c.at(a) == nil {
			c.start(a)
		} else if c.running() == len(c.addrs) && random.IntN(2) == 0 {
			c.kill(a)
		} else if c.running() == len(c.addrs) {
			c.stop(a)
		}
	case 7:
		if c.at(a) != nil && c.running() == len(c.addrs) && c.whole() {
			c.kill(a)
			c.wipe(a)
			c.start(a)
		}
	}
}

// whole reports whether every member votes and is who it was.
func (c *cell) whole() bool {
	for _, n := range c.all() {
		if n.leads() {
			s := n.Survey(c.t.Context())
			return len(s.Members) == len(c.addrs) && s.Spare() == len(c.addrs)-(len(c.addrs)/2+1)
		}
	}
	return false
}

// history is what clients saw, in real (that is, fake) time.
type history struct {
	cell  *cell
	begun time.Time

	mu  sync.Mutex
	ops []porcupine.Operation
}

func (h *history) add(o porcupine.Operation) {
	h.mu.Lock()
	h.ops = append(h.ops, o)
	h.mu.Unlock()
}

// client writes and reads until it is stopped.
func (h *history) client(id int, pace *rand.Rand, stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(pace.IntN(120)) * time.Millisecond):
		}
		all := h.cell.all()
		if len(all) == 0 {
			continue
		}
		n := all[pace.IntN(len(all))]
		o := porcupine.Operation{ClientId: id, Call: int64(time.Since(h.begun))}
		if pace.IntN(2) == 0 {
			if !n.leads() || n.Verify(h.cell.t.Context()) != nil {
				continue
			}
			s := n.state.now()
			o.Input, o.Output = op{}, seen{value: s.Value, count: s.Count}
		} else {
			value := fmt.Sprintf("%d.%d", id, i)
			result, err := n.put(value)
			o.Input = op{value}
			if err != nil {
				if refused(err) {
					continue // it never came into a log
				}
				o.Output, o.Return = seen{unknown: true}, math.MaxInt64
				h.add(o)
				continue
			}
			o.Output = seen{count: result.(int)}
		}
		o.Return = int64(time.Since(h.begun))
		h.add(o)
	}
}

// refused reports whether an entry that ended so never came into any log.
func refused(err error) bool {
	return errors.Is(err, raft.ErrNotLeader) || errors.Is(err, roost.Exhausted)
}

// oneLeader holds that no two replicas lead in the same term.
func (h *history) oneLeader(t *testing.T) {
	t.Helper()
	terms := map[uint64]string{}
	for _, n := range h.cell.all() {
		n.mu.Lock()
		l := n.lead
		n.mu.Unlock()
		if l.Leads {
			if other := terms[l.Term]; other != "" {
				t.Fatalf("%s and %s both lead in term %d", other, n.cfg.Address, l.Term)
			}
			terms[l.Term] = n.cfg.Address
		}
	}
}

func (h *history) check(t *testing.T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	unknown := 0
	for _, o := range h.ops {
		if o.Output.(seen).unknown {
			unknown++
		}
	}
	t.Logf("%d operations, %d of them without an answer", len(h.ops), unknown)
	if got := porcupine.CheckOperationsTimeout(oneRegister, h.ops, 0); got != porcupine.Ok {
		t.Errorf("no single register behaves like this: %v", got)
		for _, o := range h.ops {
			t.Logf("%d..%d %s", o.Call, o.Return, oneRegister.DescribeOperation(o.Input, o.Output))
		}
	}
}
