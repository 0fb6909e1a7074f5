package negotiator

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/advertise"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// TestLicencesOnce holds, over random histories, that tasks never use more of a licence than there are: whatever is delayed, however long schedds are
// stopped with grants in hand, and though leaders change meanwhile. And that all licences are in use again when the trouble is over.
func TestLicencesOnce(t *testing.T) {
	most := 0
	for seed := range uint64(150) {
		w := newWorld(t, seed)
		for range 300 {
			w.step()
		}
		w.calm()
		most = max(most, w.late)
	}
	if most == 0 {
		t.Error("no machine has ever refused a claim because it came too late: nothing was put to the test")
	}
}

const matlabs = 3

// world is a leader, machines and schedds, with all that is on its way between them.
type world struct {
	*testing.T
	seed     uint64
	rng      *rand.Rand
	now      time.Time
	cell     *cell
	machines []*worldMachine
	schedds  []*worldSchedd
	late     int // claims that were refused because their grants had ended
}

// worldMachine takes claims as a startd does.
type worldMachine struct {
	name     string
	ahead    time.Duration // its clock
	sequence uint64
	claims   map[uint64]bool // by grant: a task runs
	asked    []*wire.Grant   // on their way to it
	owners   map[uint64]*worldSchedd
	ads      []advertise.Change // on their way from it
}

// worldSchedd asks for claims as a schedd does. While it is stopped, what comes for it waits.
type worldSchedd struct {
	name    string
	mail    *mailbox
	stopped bool
	inHand  map[uint64]*wire.Grant
	has     map[uint64]uint64 // its claims: by grant, the sequence of the ad that shows each
	epochs  map[uint64]uint64 // of those grants
	replies []*wire.GrantResult
	seen    uint64
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{T: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 7)), now: time.Unix(1000, 0)}
	w.cell = leader(t, w.now, newInventory(), newRecord(func(uint64) {}))
	e := ledger.Entry{At: w.now.UnixNano(), Epoch: w.cell.epoch, Commands: []ledger.Command{{
		Trusted: true, Verb: ledger.Set, Kind: ledger.KindLimit, Object: fmt.Appendf(nil, `{"name": "matlab", "count": %d}`, matlabs),
	}}}
	if err := w.cell.record.Apply(0, e.Encode(nil)).(ledger.Result).Commands[0]; err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		m := &worldMachine{name: fmt.Sprint("n", i), ahead: time.Duration(i*i) * time.Hour, claims: map[uint64]bool{}, owners: map[uint64]*worldSchedd{}}
		w.machines = append(w.machines, m)
		w.schedds = append(w.schedds, &worldSchedd{name: fmt.Sprint("s", i), inHand: map[uint64]*wire.Grant{}, has: map[uint64]uint64{}, epochs: map[uint64]uint64{}})
		w.advertise(m)
		w.show(m)
	}
	w.cell.machinesChanged(w.now, nil, true)
	return w
}

// step lets one thing happen, and the leader do what follows.
func (w *world) step() {
	w.now = w.now.Add(time.Duration(w.rng.IntN(300)) * time.Millisecond)
	if w.rng.IntN(20) == 0 {
		w.now = w.now.Add(time.Duration(w.rng.IntN(12)) * time.Second)
	}
	m, s := w.machines[w.rng.IntN(3)], w.schedds[w.rng.IntN(3)]
	switch w.rng.IntN(20) {
	case 0:
		w.advertise(m)
	case 1, 2:
		w.show(m)
	case 3, 4, 5, 6, 7:
		w.carve(m)
	case 8:
		s.stopped = !s.stopped && w.rng.IntN(2) == 0
	case 9, 10, 11, 12, 13, 14, 15:
		w.act(s)
	case 16, 17:
		w.end(m)
	case 18:
		if w.rng.IntN(4) == 0 { // another leads
			w.cell.end(errStopping)
			w.cell = leader(w.T, w.now, w.cell.inventory, w.cell.record)
		}
	case 19:
		if s.mail != nil && w.rng.IntN(4) == 0 {
			w.cell.left(w.now, s.name, s.mail)
		}
	}
	w.lead()
	running := 0
	for _, m := range w.machines {
		running += len(m.claims)
	}
	if running > matlabs {
		w.Fatalf("seed %d: %d tasks use a licence, and there are %d", w.seed, running, matlabs)
	}
}

func (w *world) lead() {
	if w.cell.stir(w.now); w.cell.changed {
		w.cell.cycle(w.now)
	}
	if d, ok := w.cell.take(w.now); ok {
		commit(w.T, w.cell, w.now, d)
	}
}

func (w *world) clock(m *worldMachine) time.Duration { return m.ahead + w.now.Sub(time.Unix(0, 0)) }

// advertise makes an ad, and puts it on its way.
func (w *world) advertise(m *worldMachine) {
	m.sequence++
	var claims []string
	for id := range m.claims {
		claims = append(claims, fmt.Sprintf(`[Id = %d; Owner = "ann"; Band = "batch"; Cpus = 1; %s = "matlab"]`, id, roost.AttrLimits))
	}
	m.ads = append(m.ads, advertise.Change{
		Name: m.name, Sequence: m.sequence, Started: 1, Ad: fmt.Sprintf("[Cpus = %d; TotalCpus = 16; Claims = {%s}]", 16-len(claims), strings.Join(claims, ", ")),
		Private: map[string]string{grantKey: hex.EncodeToString(testKey), clockKey: fmt.Sprint(int64(w.clock(m)))},
	})
}

// show delivers the latest ad.
func (w *world) show(m *worldMachine) {
	if n := len(m.ads); n > 0 {
		w.cell.machinesChanged(w.now, []machineNews{readMachine(w.now, m.ads[n-1], w.cell.log)}, false)
		m.ads = nil
	}
}

// carve lets a machine answer the first that asks.
func (w *world) carve(m *worldMachine) {
	if len(m.asked) == 0 {
		return
	}
	g := m.asked[0]
	m.asked = m.asked[1:]
	r := &wire.GrantResult{Grant: g.GetId(), Epoch: g.GetEpoch(), Reason: "too late"}
	if w.clock(m) <= time.Duration(g.GetClaimBy()) {
		m.claims[g.GetId()] = true
		w.advertise(m)
		r.Claimed, r.AdSequence = true, m.sequence
	} else {
		w.late++
	}
	s := m.owners[g.GetId()]
	s.replies = append(s.replies, r)
}

// end lets a task end, which its schedd hears at once.
func (w *world) end(m *worldMachine) {
	for _, s := range w.schedds {
		for id := range s.has {
			if m.claims[id] && !s.stopped {
				delete(m.claims, id)
				delete(s.has, id)
				w.advertise(m)
				return
			}
		}
	}
}

// act lets a schedd take in all that waits for it: also grants of a leader that leads no more, of which it has not heard.
func (w *world) act(s *worldSchedd) {
	if s.stopped {
		return
	}
	var ended error
	if s.mail != nil {
		var messages []*wire.ToSchedd
		messages, _, ended = s.mail.take()
		for _, m := range messages {
			if g := m.GetGrant(); g != nil {
				s.inHand[g.GetId()], s.epochs[g.GetId()], s.seen = g, g.GetEpoch(), max(s.seen, g.GetId())
				for _, m := range w.machines {
					if m.name == g.GetNode() {
						m.asked, m.owners[g.GetId()] = append(m.asked, g), s
					}
				}
			}
		}
	}
	for _, r := range s.replies {
		if delete(s.inHand, r.GetGrant()); r.GetClaimed() {
			s.has[r.GetGrant()] = r.GetAdSequence()
		}
		if s.mail != nil && ended == nil {
			w.say(s, &wire.FromSchedd{Of: &wire.FromSchedd_Result{Result: r}})
		}
	}
	s.replies = nil
	if here := w.cell.schedds[s.name]; here == nil || here.mail == nil || here.mail != s.mail {
		w.join(s)
	}
	w.say(s, &wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: &wire.RequestUpdate{
		Id: 1, Owner: s.name, Wanted: 2, GrantsSeen: &s.seen, Ad: `[ConcurrencyLimits = "matlab"]`, Resources: wire.FromResources(roost.Resources{CPU: 1000}),
	}}})
}

func (w *world) say(s *worldSchedd, m *wire.FromSchedd) {
	if err := w.cell.heard(w.now, s.name, s.mail, m); err != nil {
		w.Fatal(err)
	}
}

// join begins a conversation. Of four schedds one has just started, and does not know what it has.
func (w *world) join(s *worldSchedd) {
	hello := &wire.ScheddHello{Name: s.name, Lists: w.rng.IntN(4) > 0}
	for id := range s.inHand {
		hello.Grants = append(hello.Grants, &wire.HeldGrant{Grant: id, Epoch: s.epochs[id]})
	}
	for id, sequence := range s.has {
		hello.Grants = append(hello.Grants, &wire.HeldGrant{Grant: id, Epoch: s.epochs[id], Claimed: true, AdSequence: sequence})
	}
	if !hello.Lists {
		hello.Grants = nil
	}
	s.mail, s.seen = newMailbox(), 0
	w.cell.joined(w.now, hello, s.mail)
}

// calm ends all trouble, and holds that a minute later every licence is in use.
func (w *world) calm() {
	for range 12 {
		w.now = w.now.Add(5 * time.Second)
		for i, m := range w.machines {
			w.schedds[i].stopped = false
			for len(m.asked) > 0 {
				w.carve(m)
			}
			w.advertise(m)
			w.show(m)
			w.act(w.schedds[i])
			w.lead()
		}
	}
	running := 0
	for _, m := range w.machines {
		running += len(m.claims)
	}
	if running != matlabs || len(w.cell.pending) > 0 {
		w.Fatalf("seed %d: a minute later %d of %d licences are in use, and %d grants pending", w.seed, running, matlabs, len(w.cell.pending))
	}
}
