package hrm

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/negotiation"
)

// shrinkInterval is how often the leader hears that less is wanted than before, as
// schedds do it.
const shrinkInterval = 50 * time.Millisecond

// initialContainers is the ad of all jobs.
const initialContainers = `[Requirements = TARGET.Arch == "X86_64" && TARGET.OpSys == "LINUX"]`

// scheddNode is one with its jobs: it places them, if it is to, and tells the leader what
// they want.
type scheddNode struct {
	*simulation
	number        int
	name          string
	selfPlacement *negotiation.SelfPlacer
	out           []*wire.FromSchedd
	busy          bool
	lastGrant     uint64 // the highest grant
	jobs          map[int]*scheddJob
}

// scheddJob is one as its schedd knows it.
type scheddJob struct {
	*JobResult
	granted          int // containers, of which the claims were not refused
	claimed          int
	ended            int
	places           map[string]int // that were proposed, by machine: so many
	announced        bool
	announcedWanted  int // as the leader was told
	announcedAt      time.Duration
	reductionPending bool // the leader will be told less soon
}

func newSchedd(w *simulation, i int) *scheddNode {
	s := &scheddNode{simulation: w, number: i, name: fmt.Sprintf("schedd%d", i+1), jobs: map[int]*scheddJob{}}
	s.selfPlacement = negotiation.NewSelfPlacer(s.name)
	return s
}

func (s *scheddNode) submit(i int) {
	j := &scheddJob{JobResult: &s.simulation.jobs[i], places: map[string]int{}}
	j.Submitted = s.eventLoop.Now()
	s.jobs[i] = j
	s.reportWanted(i)
}

// reportWanted tells the leader what a job wants, if that has changed.
func (s *scheddNode) reportWanted(i int) {
	j := s.jobs[i]
	wanted := s.Containers - j.granted
	unclaimed := wanted == 0 && j.claimed < s.Containers
	switch {
	case j.announced && wanted > 0 && wanted <= j.announcedWanted && s.eventLoop.Now()-j.announcedAt < shrinkInterval:
		if !j.reductionPending {
			j.reductionPending = true
			s.scheduleAfter(shrinkInterval-(s.eventLoop.Now()-j.announcedAt), leaderWake, s.number, func() {
				j.reductionPending = false
				s.reportWanted(i)
			})
		}
		return
	case j.announced && wanted == j.announcedWanted && wanted == 0 && unclaimed:
		return
	}
	seen := s.lastGrant
	m := &wire.RequestUpdate{
		Id: uint64(i + 1), Owner: fmt.Sprintf("user%d", i+1), Band: roost.BatchBand.String(),
		Oldest: startTime.Add(j.Submitted).UnixNano(), Wanted: uint32(wanted),
		Resources: wire.FromResources(containerResources), GrantsSeen: &seen,
	}
	if unclaimed {
		m.Claims = 1 // it is not to be forgotten before it is known that nothing was refused
	}
	if !j.announced {
		m.Ad = initialContainers
	}
	j.announced, j.announcedWanted, j.announcedAt = true, wanted, s.eventLoop.Now()
	s.out = append(s.out, &wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: m}})
	s.sendReports()
}

// sendReports has places proposed for what is to be told, if the leader wants that, and
// sends it.
func (s *scheddNode) sendReports() {
	if s.busy || len(s.out) == 0 {
		return
	}
	s.busy = true
	out := s.out
	s.out = nil
	s.runStep(SelfPlacement, s.number, func() {
		s.selfPlacement.Propose(s.now(), out)
	}, func() int { return proposedUnits(out) }, func() {
		s.busy = false
		s.scheduleAfter(s.MessageDelay, messageArrived, -1, func() {
			s.leader.enqueue(leaderMessage{do: func() {
				s.leaderReceived(out)
			}, things: len(out), proposes: proposedUnits(out) > 0})
		})
		s.sendReports()
	})
	s.recordProposed(out)
}

// proposedUnits counts the containers that messages propose places for.
func proposedUnits(all []*wire.FromSchedd) (n int) {
	for _, m := range all {
		for _, p := range m.GetRequest().GetProposals() {
			n += int(p.GetUnits())
		}
	}
	return n
}

// recordProposed notes what was proposed with the first word on a job.
func (s *scheddNode) recordProposed(out []*wire.FromSchedd) {
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

// leaderReceived is the leader taking messages in.
func (s *scheddNode) leaderReceived(all []*wire.FromSchedd) {
	for _, m := range all {
		if err := s.leader.core.HandleMessage(s.now(), s.leader.sessions[s.number], m); err != nil {
			s.failure = err
		}
	}
}

// handleLeader takes in what the leader says, in its order.
func (s *scheddNode) handleLeader(all []*wire.ToSchedd) {
	changed := map[int]bool{}
	for _, m := range all {
		s.handlePlacement(m)
		g := m.GetGrant()
		if g == nil {
			continue
		}
		i := int(g.GetRequest()) - 1
		s.lastGrant = max(s.lastGrant, g.GetId())
		s.jobs[i].granted++
		changed[i] = true
		s.scheduleAfter(s.MessageDelay, messageArrived, s.number, func() { s.claimGrant(i, g) })
	}
	for _, m := range all { // in the order of the grants
		if i := int(m.GetGrant().GetRequest()) - 1; changed[i] {
			delete(changed, i)
			s.reportWanted(i)
		}
	}
}

// handlePlacement lets the placing take a message in. To look at the whole cell is to be
// the only one that places.
func (s *scheddNode) handlePlacement(m *wire.ToSchedd) {
	if p := m.GetPolicy(); p != nil && s.Style == WholeCell {
		m = &wire.ToSchedd{Of: &wire.ToSchedd_Policy{Policy: &wire.Policy{Distributed: p.GetDistributed(), Parts: 1}}}
	}
	s.selfPlacement.LeaderMessage(m)
}

// handleMachineAd takes in a machine's ad, of which it needs a copy.
func (s *scheddNode) handleMachineAd(name string, sequence uint64, ad *classad.Ad) {
	if s.Style != LeaderOnly {
		s.selfPlacement.MachineUpdated(name, 1, sequence, ad.Copy())
	}
}

// claimGrant is a machine being asked for what was granted, and the answer.
func (s *scheddNode) claimGrant(i int, g *wire.Grant) {
	j := s.jobs[i]
	m := s.machineNamed(g.GetNode())
	answer := &wire.GrantResult{Grant: g.GetId(), Epoch: g.GetEpoch()}
	if m.startClaim(i, g.GetId(), func() { s.containerEnded(i) }) {
		answer.Claimed, answer.AdSequence = true, m.sequence
		if j.FirstStarted == 0 {
			j.FirstStarted = s.eventLoop.Now()
		}
		j.LastStarted = s.eventLoop.Now()
		if j.places[m.name] > 0 {
			j.places[m.name]--
		} else if j.Proposed > 0 {
			j.Conflicts++
		}
	} else {
		answer.AdSequence, answer.Reason = m.sequence, "it has no core free"
	}
	s.scheduleAfter(s.MessageDelay, messageArrived, s.number, func() {
		if answer.Claimed {
			j.claimed++
		} else {
			j.granted--
		}
		s.out = append(s.out, &wire.FromSchedd{Of: &wire.FromSchedd_Result{Result: answer}})
		s.reportWanted(i)
		s.sendReports()
	})
}

// containerEnded notes that a container has.
func (s *scheddNode) containerEnded(i int) {
	j := s.jobs[i]
	if j.ended++; j.ended == s.Containers {
		j.Ended = s.eventLoop.Now()
		s.unfinished--
	}
}
