package hrm

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	places "github.com/roost-batch/roost/schedd"
)

// lessEvery is how often the leader hears that less is wanted than before, as schedds do it.
const lessEvery = 50 * time.Millisecond

// wants is the ad of all jobs.
const wants = `[Requirements = TARGET.Arch == "X86_64" && TARGET.OpSys == "LINUX"]`

// schedd is one with its jobs: it places them, if it is to, and tells the leader what they want.
type schedd struct {
	*world
	number  int
	name    string
	placing *places.Placing
	out     []*wire.FromSchedd
	busy    bool
	seen    uint64 // the highest grant
	jobs    map[int]*job
}

// job is one as its schedd knows it.
type job struct {
	*Job
	granted  int // containers, of which the claims were not refused
	claimed  int
	over     int
	places   map[string]int // that were proposed, by machine: so many
	told     bool
	wanted   int // as the leader was told
	at       time.Duration
	reminded bool // the leader will be told less soon
}

func newSchedd(w *world, i int) *schedd {
	s := &schedd{world: w, number: i, name: fmt.Sprintf("schedd%d", i+1), jobs: map[int]*job{}}
	s.placing = places.NewPlacing(s.name)
	return s
}

func (s *schedd) submit(i int) {
	j := &job{Job: &s.world.jobs[i], places: map[string]int{}}
	j.Submitted = s.k.Now()
	s.jobs[i] = j
	s.publish(i)
}

// publish tells the leader what a job wants, if that has changed.
func (s *schedd) publish(i int) {
	j := s.jobs[i]
	wanted := s.Containers - j.granted
	unclaimed := wanted == 0 && j.claimed < s.Containers
	switch {
	case j.told && wanted > 0 && wanted <= j.wanted && s.k.Now()-j.at < lessEvery:
		if !j.reminded {
			j.reminded = true
			s.after(lessEvery-(s.k.Now()-j.at), wake, s.number, func() {
				j.reminded = false
				s.publish(i)
			})
		}
		return
	case j.told && wanted == j.wanted && wanted == 0 && unclaimed:
		return
	}
	seen := s.seen
	m := &wire.RequestUpdate{
		Id: uint64(i + 1), Owner: fmt.Sprintf("user%d", i+1), Band: roost.Batch.String(), Oldest: begin.Add(j.Submitted).UnixNano(), Wanted: uint32(wanted),
		Resources: wire.FromResources(container), GrantsSeen: &seen,
	}
	if unclaimed {
		m.Claims = 1 // it is not to be forgotten before it is known that nothing was refused
	}
	if !j.told {
		m.Ad = wants
	}
	j.told, j.wanted, j.at = true, wanted, s.k.Now()
	s.out = append(s.out, &wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: m}})
	s.send()
}

// send has places proposed for what is to be told, if the leader wants that, and sends it.
func (s *schedd) send() {
	if s.busy || len(s.out) == 0 {
		return
	}
	s.busy = true
	out := s.out
	s.out = nil
	s.takes(Propose, s.number, func() { s.placing.Propose(s.now(), out) }, func() int { return units(out) }, func() {
		s.busy = false
		s.after(s.Delay, arrive, -1, func() {
			s.leader.take(message{do: func() { s.received(out) }, things: len(out), proposes: units(out) > 0})
		})
		s.send()
	})
	s.proposed(out)
}

// units counts the containers that messages propose places for.
func units(all []*wire.FromSchedd) (n int) {
	for _, m := range all {
		for _, p := range m.GetRequest().GetProposals() {
			n += int(p.GetUnits())
		}
	}
	return n
}

// proposed notes what was proposed with the first word on a job.
func (s *schedd) proposed(out []*wire.FromSchedd) {
	for _, m := range out {
		if r := m.GetRequest(); r.GetAd() != "" {
			j := s.jobs[int(r.GetId())-1]
			for _, p := range r.GetProposals() {
				j.Proposed += int(p.GetUnits())
				j.places[p.GetNode()] += int(p.GetUnits())
			}
		}
	}
}

// received is the leader taking messages in.
func (s *schedd) received(all []*wire.FromSchedd) {
	for _, m := range all {
		if err := s.leader.core.Hear(s.now(), s.leader.talks[s.number], m); err != nil {
			s.broken = err
		}
	}
}

// heard takes in what the leader says, in its order.
func (s *schedd) heard(all []*wire.ToSchedd) {
	changed := map[int]bool{}
	for _, m := range all {
		s.hear(m)
		g := m.GetGrant()
		if g == nil {
			continue
		}
		i := int(g.GetRequest()) - 1
		s.seen = max(s.seen, g.GetId())
		s.jobs[i].granted++
		changed[i] = true
		s.after(s.Delay, arrive, s.number, func() { s.claim(i, g) })
	}
	for _, m := range all { // in the order of the grants
		if i := int(m.GetGrant().GetRequest()) - 1; changed[i] {
			delete(changed, i)
			s.publish(i)
		}
	}
}

// hear lets the placing take a message in. To look at the whole cell is to be the only one that places.
func (s *schedd) hear(m *wire.ToSchedd) {
	if p := m.GetPolicy(); p != nil && s.Style == Whole {
		m = &wire.ToSchedd{Of: &wire.ToSchedd_Policy{Policy: &wire.Policy{Distributed: p.GetDistributed(), Parts: 1}}}
	}
	s.placing.Hear(m)
}

// told takes in a machine's ad, of which it needs a copy.
func (s *schedd) told(name string, sequence uint64, ad *classad.Ad) {
	if s.Style != Central {
		s.placing.Machine(name, 1, sequence, ad.Copy())
	}
}

// claim is a machine being asked for what was granted, and the answer.
func (s *schedd) claim(i int, g *wire.Grant) {
	j := s.jobs[i]
	m := s.machineNamed(g.GetNode())
	answer := &wire.GrantResult{Grant: g.GetId(), Epoch: g.GetEpoch()}
	if m.take(i, g.GetId(), func() { s.ended(i) }) {
		answer.Claimed, answer.AdSequence = true, m.sequence
		if j.First == 0 {
			j.First = s.k.Now()
		}
		j.Placed = s.k.Now()
		if j.places[m.name] > 0 {
			j.places[m.name]--
		} else if j.Proposed > 0 {
			j.Conflicts++
		}
	} else {
		answer.AdSequence, answer.Reason = m.sequence, "it has no core free"
	}
	s.after(s.Delay, arrive, s.number, func() {
		if answer.Claimed {
			j.claimed++
		} else {
			j.granted--
		}
		s.out = append(s.out, &wire.FromSchedd{Of: &wire.FromSchedd_Result{Result: answer}})
		s.publish(i)
		s.send()
	})
}

// ended notes that a container has.
func (s *schedd) ended(i int) {
	j := s.jobs[i]
	if j.over++; j.over == s.Containers {
		j.Ended = s.k.Now()
		s.left--
	}
}
