package negotiator

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// TestLimitsNeverExceeded checks concurrency limits over random histories. They are never
// exceeded, whatever is delayed, however long schedds are stopped with grants, and
// although leaders change. When the faults are over, they are used fully again.
func TestLimitsNeverExceeded(t *testing.T) {
	most := 0
	for seed := range uint64(150) {
		w := newTestPool(t, seed)
		for range 300 {
			w.runStep()
		}
		w.endFaults()
		most = max(most, w.lateClaims)
	}
	if most == 0 {
		t.Error("no machine has ever refused a claim because it came too late: nothing was put to the test")
	}
}

const matlabLimit = 3

// testPool is a leader, machines and schedds, with all messages in transit.
type testPool struct {
	*testing.T
	seed       uint64
	rng        *rand.Rand
	now        time.Time
	cell       *leaderState
	machines   []*testMachine
	schedds    []*testSchedd
	lateClaims int // claims that were refused because their grants had expired
}

// testMachine accepts claims as a startd does.
type testMachine struct {
	name          string
	clockAhead    time.Duration // how far its clock is ahead
	sequence      uint64
	claims        map[uint64]bool // by grant: a task runs
	claimRequests []*wire.Grant   // in transit to it
	owners        map[uint64]*testSchedd
	adsUnderway   []adclient.AdChange // in transit from it
}

// testSchedd requests claims as a schedd does. While it is stopped, its messages wait.
type testSchedd struct {
	name      string
	sendQueue *sendQueue
	stopped   bool
	received  map[uint64]*wire.Grant
	claims    map[uint64]uint64 // by grant of its claims: sequence of the ad that shows it
	epochs    map[uint64]uint64 // epochs of those grants
	replies   []*wire.GrantResult
	seen      uint64
}

func newTestPool(t *testing.T, seed uint64) *testPool {
	w := &testPool{T: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 7)), now: time.Unix(1000, 0)}
	w.cell = commitLeader(t, w.now, newInventory(), newLedgerStore(func(uint64) {}))
	e := ledger.LogEntry{At: w.now.UnixNano(), Epoch: w.cell.epoch, Commands: []ledger.AdminCommand{{
		Trusted: true, Verb: ledger.VerbSet, Kind: ledger.KindLimit,
		Object: fmt.Appendf(nil, `{"name": "matlab", "count": %d}`, matlabLimit),
	}}}
	if err := w.cell.ledgerStore.Apply(0, e.Encode(nil)).(ledger.EntryResult).Commands[0]; err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		m := &testMachine{name: fmt.Sprint("n", i), clockAhead: time.Duration(i*i) * time.Hour,
			claims: map[uint64]bool{}, owners: map[uint64]*testSchedd{}}
		w.machines = append(w.machines, m)
		w.schedds = append(w.schedds, &testSchedd{name: fmt.Sprint("s", i), received: map[uint64]*wire.Grant{},
			claims: map[uint64]uint64{}, epochs: map[uint64]uint64{}})
		w.advertiseMachine(m)
		w.deliverAd(m)
	}
	w.cell.updateMachines(w.now, nil, true)
	return w
}

// runStep makes one random event, and lets the leader process it.
func (w *testPool) runStep() {
	w.now = w.now.Add(time.Duration(w.rng.IntN(300)) * time.Millisecond)
	if w.rng.IntN(20) == 0 {
		w.now = w.now.Add(time.Duration(w.rng.IntN(12)) * time.Second)
	}
	m, s := w.machines[w.rng.IntN(3)], w.schedds[w.rng.IntN(3)]
	switch w.rng.IntN(20) {
	case 0:
		w.advertiseMachine(m)
	case 1, 2:
		w.deliverAd(m)
	case 3, 4, 5, 6, 7:
		w.answerClaim(m)
	case 8:
		s.stopped = !s.stopped && w.rng.IntN(2) == 0
	case 9, 10, 11, 12, 13, 14, 15:
		w.runSchedd(s)
	case 16, 17:
		w.endTask(m)
	case 18:
		if w.rng.IntN(4) == 0 { // another negotiator leads
			w.cell.endStreams(errStopping)
			w.cell = commitLeader(w.T, w.now, w.cell.machineInventory, w.cell.ledgerStore)
		}
	case 19:
		if s.sendQueue != nil && w.rng.IntN(4) == 0 {
			w.cell.removeStream(w.now, s.name, s.sendQueue)
		}
	}
	w.changeLeader()
	running := 0
	for _, m := range w.machines {
		running += len(m.claims)
	}
	if running > matlabLimit {
		w.Fatalf("seed %d: %d tasks use a licence, and there are %d", w.seed, running, matlabLimit)
	}
}

func (w *testPool) changeLeader() {
	if w.cell.markDue(w.now); w.cell.changed {
		w.cell.runCycle(w.now)
	}
	if d, ok := w.cell.takePendingEntry(w.now); ok {
		commitEntry(w.T, w.cell, w.now, d)
	}
}

func (w *testPool) machineClock(m *testMachine) time.Duration {
	return m.clockAhead + w.now.Sub(time.Unix(0, 0))
}

// advertiseMachine makes an ad and sends it.
func (w *testPool) advertiseMachine(m *testMachine) {
	m.sequence++
	var claims []string
	for id := range m.claims {
		claims = append(claims, fmt.Sprintf(`[Id = %d; Owner = "ann"; Band = "batch"; Cpus = 1; %s = "matlab"]`, id,
			roost.AttrLimits))
	}
	m.adsUnderway = append(m.adsUnderway, adclient.AdChange{
		Name: m.name, Sequence: m.sequence, Started: 1,
		Ad: fmt.Sprintf("[Cpus = %d; TotalCpus = 16; Claims = {%s}]", 16-len(claims), strings.Join(claims, ", ")),
		Private: map[string]string{grantKey: hex.EncodeToString(testKey),
			clockKey: fmt.Sprint(int64(w.machineClock(m)))},
	})
}

// deliverAd delivers the latest ad.
func (w *testPool) deliverAd(m *testMachine) {
	if n := len(m.adsUnderway); n > 0 {
		w.cell.updateMachines(w.now, []machineUpdate{parseMachineUpdate(w.now, m.adsUnderway[n-1], w.cell.log)}, false)
		m.adsUnderway = nil
	}
}

// answerClaim lets a machine answer its first claim request.
func (w *testPool) answerClaim(m *testMachine) {
	if len(m.claimRequests) == 0 {
		return
	}
	g := m.claimRequests[0]
	m.claimRequests = m.claimRequests[1:]
	r := &wire.GrantResult{Grant: g.GetId(), Epoch: g.GetEpoch(), Reason: "too late"}
	if w.machineClock(m) <= time.Duration(g.GetClaimBy()) {
		m.claims[g.GetId()] = true
		w.advertiseMachine(m)
		r.Claimed, r.AdSequence = true, m.sequence
	} else {
		w.lateClaims++
	}
	s := m.owners[g.GetId()]
	s.replies = append(s.replies, r)
}

// endTask ends a task, which its schedd learns at once.
func (w *testPool) endTask(m *testMachine) {
	for _, s := range w.schedds {
		for id := range s.claims {
			if m.claims[id] && !s.stopped {
				delete(m.claims, id)
				delete(s.claims, id)
				w.advertiseMachine(m)
				return
			}
		}
	}
}

// runSchedd lets a schedd process all its messages, also grants of a deposed leader that
// it does not know of.
func (w *testPool) runSchedd(s *testSchedd) {
	if s.stopped {
		return
	}
	var ended error
	if s.sendQueue != nil {
		var messages []*wire.ToSchedd
		messages, _, ended = s.sendQueue.takeAll()
		for _, m := range messages {
			if g := m.GetGrant(); g != nil {
				s.received[g.GetId()], s.epochs[g.GetId()], s.seen = g, g.GetEpoch(), max(s.seen, g.GetId())
				for _, m := range w.machines {
					if m.name == g.GetNode() {
						m.claimRequests, m.owners[g.GetId()] = append(m.claimRequests, g), s
					}
				}
			}
		}
	}
	for _, r := range s.replies {
		if delete(s.received, r.GetGrant()); r.GetClaimed() {
			s.claims[r.GetGrant()] = r.GetAdSequence()
		}
		if s.sendQueue != nil && ended == nil {
			w.sendMessage(s, &wire.FromSchedd{Of: &wire.FromSchedd_Result{Result: r}})
		}
	}
	s.replies = nil
	if here := w.cell.schedds[s.name]; here == nil || here.sendQueue == nil || here.sendQueue != s.sendQueue {
		w.joinSchedd(s)
	}
	w.sendMessage(s, &wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: &wire.RequestUpdate{
		Id: 1, Owner: s.name, Wanted: 2, GrantsSeen: &s.seen, Ad: `[ConcurrencyLimits = "matlab"]`,
		Resources: wire.FromResources(roost.Resources{CPU: 1000}),
	}}})
}

func (w *testPool) sendMessage(s *testSchedd, m *wire.FromSchedd) {
	if err := w.cell.handleMessage(w.now, s.name, s.sendQueue, m); err != nil {
		w.Fatal(err)
	}
}

// joinSchedd begins a session. One in four schedds has just started, and does not know
// its grants.
func (w *testPool) joinSchedd(s *testSchedd) {
	hello := &wire.ScheddHello{Name: s.name, Lists: w.rng.IntN(4) > 0}
	for id := range s.received {
		hello.Grants = append(hello.Grants, &wire.HeldGrant{Grant: id, Epoch: s.epochs[id]})
	}
	for id, sequence := range s.claims {
		hello.Grants = append(hello.Grants,
			&wire.HeldGrant{Grant: id, Epoch: s.epochs[id], Claimed: true, AdSequence: sequence})
	}
	if !hello.Lists {
		hello.Grants = nil
	}
	s.sendQueue, s.seen = newSendQueue(), 0
	w.cell.addStream(w.now, hello, s.sendQueue)
}

// endFaults ends all faults, and checks that a minute later every limit is fully used.
func (w *testPool) endFaults() {
	for range 12 {
		w.now = w.now.Add(5 * time.Second)
		for i, m := range w.machines {
			w.schedds[i].stopped = false
			for len(m.claimRequests) > 0 {
				w.answerClaim(m)
			}
			w.advertiseMachine(m)
			w.deliverAd(m)
			w.runSchedd(w.schedds[i])
			w.changeLeader()
		}
	}
	running := 0
	for _, m := range w.machines {
		running += len(m.claims)
	}
	if running != matlabLimit || len(w.cell.pendingByID) > 0 {
		w.Fatalf("seed %d: a minute later %d of %d licences are in use, and %d grants pending", w.seed, running,
			matlabLimit, len(w.cell.pendingByID))
	}
}
