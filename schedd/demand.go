package schedd

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/plant"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/queue"
)

// negotiation is what the loop knows of the present conversation with the negotiator.
type negotiation struct {
	out       *outbox[*wire.FromSchedd]
	epoch     uint64
	address   string
	seen      uint64 // the highest grant that was taken in
	told      map[queue.RequestID]*told
	why       map[queue.RequestID]*wire.Explanation
	asking    map[queue.RequestID][]chan struct{} // closed with the next explanation
	dirty     map[queue.RequestID]bool
	whole     bool // the negotiator is to be told everything
	usage     map[submitter]roost.Resources
	admission admission

	outcomes map[alike]time.Time                // when one of a kind was last told
	blamed   map[uint64]map[int]queue.RequestID // by job, the tasks of which was told that they failed
}

// told is what the negotiator was last told of a request.
type told struct {
	wanted uint32
	noWait uint32 // of wanted
	gang   uint32
	claims uint32
	seen   uint64
	at     time.Time
	anew   bool // all is to be said again
}

// submitter is whom fair share counts.
type submitter struct{ owner, group string }

func (s submitter) compare(o submitter) int {
	return cmp.Or(cmp.Compare(s.owner, o.owner), cmp.Compare(s.group, o.group))
}

func newNegotiation(n negotiatorUp) *negotiation {
	return &negotiation{
		out: n.out, epoch: n.epoch, address: n.address, told: make(map[queue.RequestID]*told), why: make(map[queue.RequestID]*wire.Explanation),
		asking: make(map[queue.RequestID][]chan struct{}),
		dirty:  make(map[queue.RequestID]bool), usage: make(map[submitter]roost.Resources), whole: true,
		outcomes: make(map[alike]time.Time), blamed: make(map[uint64]map[int]queue.RequestID), admission: admission{open: make(map[uint64]chan error), later: make(map[uint64]uint64), asked: make(map[uint64]bool)},
	}
}

// maxWanted bounds what is asked for at once: a queue of a million tasks is not a million claims.
const maxWanted = 10_000

// lessEvery is how often the negotiator hears that less is wanted than before. Too much of a wish costs a refused grant; a word for each of a
// thousand tasks that start every second would cost more.
const lessEvery = 50 * time.Millisecond

// publish tells the negotiator what has changed in what is wanted.
func (s *Schedd) publish(now time.Time) {
	n := s.negotiator
	if n == nil {
		return
	}
	whole := n.whole
	if n.whole && !plant.Is(plant.Unannounced) {
		s.reportUsage() // before what is wanted, or its tasks would seem to hold nothing
		for _, r := range s.queue.Requests() {
			n.dirty[r] = true
		}
		n.whole = false
	}
	for _, id := range sortedKeys(n.dirty) {
		if s.publishRequest(n, id, now) {
			delete(n.dirty, id)
		}
	}
	if whole && n.admission.policy != nil { // before that nobody knows what is counted
		n.out.put(&wire.FromSchedd{Of: &wire.FromSchedd_Told{Told: &wire.Told{}}})
	}
}

// publishRequest tells what is wanted for one request, and reports whether nothing is left to be said.
func (s *Schedd) publishRequest(n *negotiation, id queue.RequestID, now time.Time) bool {
	r, ok := s.queue.Request(id)
	last := n.told[id]
	wanted, noWait, gang, lead := uint32(0), uint32(0), uint32(0), uint64(0)
	behind := s.queue.Behind(id)
	if ok && !behind {
		noWait = uint32(min(s.dispatch.Restless(s.at.boot, dispatch.RequestID(id)), maxWanted))
		wanted = noWait + uint32(min(max(r.Ready-s.dispatch.Held(dispatch.RequestID(id)), 0), maxWanted))
		if size, ok := s.queue.Gang(id); ok {
			gang = uint32(size)
			if at, mixed := s.queue.Lead(id); !mixed || gang == 0 {
				wanted = gangsIn(wanted, gang)
			} else {
				lead = uint64(at)
			}
		}
	}
	// While all that is ready has a grant, of which some may yet be refused, the negotiator must not forget the request: with it, it would
	// forget who refused, and offer the same again for ever.
	tries := ok && wanted == 0 && r.Ready > 0 && !behind
	claims := uint32(0)
	if ok && n.counted(r.Queue) {
		claims = uint32(s.dispatch.Claims(dispatch.RequestID(id)))
	}
	if tries {
		claims = max(claims, 1)
	}
	switch {
	case last == nil && wanted == 0 && claims == 0:
		return true
	case last != nil && !last.anew && wanted == last.wanted && noWait == last.noWait && gang == last.gang && claims == last.claims && n.seen == last.seen:
		return true
	case last != nil && wanted > 0 && wanted < last.wanted && now.Sub(last.at) < lessEvery:
		return false // soon
	}
	m := &wire.RequestUpdate{Id: uint64(id), Wanted: wanted, NoWait: noWait, GrantsSeen: proto.Uint64(n.seen), Lost: min(uint32(s.lost[id]), wanted)}
	if ok {
		m.Owner, m.Group, m.Band, m.Priority = r.Owner, r.Group, r.Band.String(), int32(r.Priority)
		m.Oldest, m.Resources = r.Oldest.UnixNano(), wire.FromResources(r.Resources)
		m.Gang, m.Lead, m.Reservation = gang, lead, r.Reservation
		m.Now = r.Now
		m.WalltimeS, m.PredictedS = int64(r.Walltime/time.Second), int64(r.Predicted/time.Second)
		if last == nil || last.anew {
			m.Ad = r.Ad
		}
		m.Counting = counting(s.queue.Counting(id))
		m.Queue, m.Claims, m.UnixGroup = r.Queue, claims, s.users.groupName(r.GID)
		n.told[id] = &told{wanted: wanted, noWait: noWait, gang: gang, claims: claims, seen: n.seen, at: now}
	}
	if wanted == 0 && claims == 0 { // the negotiator forgets it: the next word on it is a whole one
		delete(n.told, id)
		delete(n.why, id)
		s.view.reasons.Delete(uint64(id))
		delete(s.lost, id)
		n.answer(id)
	}
	n.out.put(&wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: m}})
	return true
}

// counting is how the wire says as what limits count a request's tasks.
func counting(c queue.Counting) wire.RequestUpdate_Counting {
	switch c {
	case queue.Together:
		return wire.RequestUpdate_TOGETHER
	case queue.Elsewhere:
		return wire.RequestUpdate_ELSEWHERE
	}
	return wire.RequestUpdate_EACH
}

// gangsIn is how much of what is wanted is whole gangs. One of a size of its own, of which some tasks have ended, comes before those behind it.
func gangsIn(wanted, size uint32) uint32 {
	switch size {
	case 0:
		return 0
	case 1:
		return min(wanted, 1) // what is left of one; those behind it start together
	}
	return wanted / size * size
}

// maxAsking bounds how many may wait for one answer.
const maxAsking = 1000

// ask asks why a request waits, and reports whether an answer is to be expected: answered is closed when it is there, or when nothing waits any more.
func (n *negotiation) ask(id queue.RequestID, answered chan struct{}) bool {
	if n.told[id] == nil || len(n.asking[id]) >= maxAsking {
		return false
	}
	n.asking[id] = append(n.asking[id], answered)
	n.out.put(&wire.FromSchedd{Of: &wire.FromSchedd_Why{Why: &wire.WhyWaiting{Request: uint64(id)}}})
	return true
}

// answer lets those go on who have asked about a request.
func (n *negotiation) answer(id queue.RequestID) {
	for _, answered := range n.asking[id] {
		close(answered)
	}
	delete(n.asking, id)
}

// kept turns the negotiator's times into this machine's.
func (t moment) kept(m *wire.Kept) []dispatch.Kept {
	began := t.now.Add(-t.boot)
	all := make([]dispatch.Kept, len(m.GetNodes()))
	for i, k := range m.GetNodes() {
		all[i] = dispatch.Kept{Node: k.GetNode(), From: time.Unix(k.GetFrom(), 0).Sub(began), Reservation: k.GetReservation()}
		if k.GetUntil() != 0 {
			all[i].Until = time.Unix(k.GetUntil(), 0).Sub(began)
		}
	}
	return all
}

// advised takes in a message of the negotiator.
func (s *Schedd) advised(m *wire.ToSchedd) {
	switch m := m.GetOf().(type) {
	case *wire.ToSchedd_Grant:
		g := m.Grant
		s.negotiator.seen = max(s.negotiator.seen, g.GetId())
		s.negotiator.dirty[queue.RequestID(g.GetRequest())] = true
		where := located(g.GetNode(), g.GetHost(), g.GetAddress())
		if p := s.peers[g.GetNode()]; p != nil && p.elsewhere(where) {
			s.answer(dispatch.Answer{
				Grant: dispatch.GrantID{Epoch: g.GetEpoch(), ID: g.GetId()}, Request: dispatch.RequestID(g.GetRequest()),
				Reason: "another node says that the machine is its own, and what runs here on that of before may not have ended",
			})
			return
		}
		s.dispatch.Granted(s.at.boot, dispatch.Grant{
			GrantID: dispatch.GrantID{Epoch: g.GetEpoch(), ID: g.GetId()}, Request: dispatch.RequestID(g.GetRequest()), Node: g.GetNode(),
			Address: where, Resources: g.GetResources().Vector(), Capability: g.GetCapability(),
			ClaimBy: time.Duration(g.GetClaimBy()), MayWait: g.GetWaiting(), Gang: g.GetGang(), GangSize: int(g.GetGangSize()), Victims: g.GetVictims(), Why: g.GetWhy(),
		})
	case *wire.ToSchedd_Admitted:
		if asked := s.negotiator.admission.routes.asked; asked != 0 && asked == m.Admitted.GetId() {
			s.toldRoute(s.at.now, m.Admitted)
		} else if seq, later := s.negotiator.admission.later[m.Admitted.GetId()]; later {
			s.toldLater(seq, m.Admitted)
		} else {
			s.negotiator.admitted(m.Admitted)
		}
	case *wire.ToSchedd_Policy:
		s.negotiator.ruled(m.Policy)
		s.admins.set(m.Policy.GetJobAdmins())
		s.rules = m.Policy
		if len(m.Policy.GetDeleting()) > 0 {
			s.removeReserved(s.queue.Match(queue.Filter{}), s.at.now)
		}
		s.negotiator.admission.routes.full = nil
		s.tryAll()
	case *wire.ToSchedd_Room:
		s.hasRoom(m.Room.GetQueue())
	case *wire.ToSchedd_Kept:
		s.dispatch.Keep(s.at.kept(m.Kept))
	case *wire.ToSchedd_Unplaced:
		id := queue.RequestID(m.Unplaced.GetRequest())
		if refused := m.Unplaced.GetRefused(); refused != "" {
			if events := s.queue.DenyRun(s.at.now, id, refused); len(events) > 0 {
				s.decide(events...)
				return
			}
			s.decide(s.queue.Refuse(s.at.now, id, refused)...)
			return
		}
		s.negotiator.why[id] = m.Unplaced.GetExplanation()
		s.view.reason(id, m.Unplaced.GetExplanation())
		s.negotiator.answer(id)
	}
}

// answer tells the negotiator what became of a grant, which may be one of the leader before.
func (s *Schedd) answer(a dispatch.Answer) {
	if s.negotiator == nil {
		return
	}
	s.negotiator.dirty[queue.RequestID(a.Request)] = true
	s.negotiator.out.put(&wire.FromSchedd{Of: &wire.FromSchedd_Result{Result: &wire.GrantResult{
		Grant: a.Grant.ID, Epoch: a.Grant.Epoch, Claimed: a.Claimed, Waiting: a.Waiting, AdSequence: a.AdSequence, Reason: a.Reason,
	}}})
}

// reportUsage tells the negotiator what each submitter holds, where that has changed.
func (s *Schedd) reportUsage() {
	n := s.negotiator
	if n == nil {
		return
	}
	held := make(map[submitter]roost.Resources)
	s.dispatch.Totals(func(id dispatch.RequestID, t dispatch.Total) {
		if r, ok := s.queue.Request(queue.RequestID(id)); ok {
			who := submitter{r.Owner, r.Group}
			held[who] = held[who].Add(t.Resources)
		}
	})
	for who := range n.usage {
		if _, ok := held[who]; !ok {
			held[who] = roost.Resources{}
		}
	}
	for _, who := range slices.SortedFunc(maps.Keys(held), submitter.compare) {
		res := held[who]
		if n.usage[who] == res {
			continue
		}
		n.usage[who] = res
		n.out.put(&wire.FromSchedd{Of: &wire.FromSchedd_Usage{Usage: &wire.Usage{Owner: who.owner, Group: who.group, Held: wire.FromResources(res)}}})
	}
}

func sortedKeys(m map[queue.RequestID]bool) []queue.RequestID {
	keys := make([]queue.RequestID, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
