package hrm

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/negotiation"
)

// shrinkInterval is how often a schedd reports a smaller demand to the leader, as in
// production.
const shrinkInterval = 50 * time.Millisecond

// initialContainers is the ad of all jobs.
const initialContainers = `[Requirements = TARGET.Arch == "X86_64" && TARGET.OpSys == "LINUX"]`

// scheddNode is a schedd with its jobs. It reports their demand to the leader, and in the
// distributed styles places them itself.
type scheddNode struct {
	*simulation
	number        int
	name          string
	selfPlacement *negotiation.SelfPlacer
	out           []*wire.FromSchedd
	busy          bool
	lastGrant     uint64 // highest id of a grant
	jobs          map[int]*scheddJob
}

// scheddJob is a schedd's state of a job.
type scheddJob struct {
	*JobResult
	granted          int // containers granted, without refused claims
	claimed          int
	ended            int
	places           map[string]int // by machine: number of containers proposed
	announced        bool
	announcedWanted  int // demand last reported to the leader
	announcedAt      time.Duration
	reductionPending bool // a smaller demand will be reported soon
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

// reportWanted reports a job's demand to the leader if it has changed.
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
		m.Claims = 1 // the leader must not forget the request before all claims are answered
	}
	if !j.announced {
		m.Ad = initialContainers
	}
	j.announced, j.announcedWanted, j.announcedAt = true, wanted, s.eventLoop.Now()
	s.out = append(s.out, &wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: m}})
	s.sendReports()
}

// sendReports adds proposals of places to the pending reports, if the leader wants them,
// and sends them.
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

// proposedUnits counts the containers with proposals in some messages.
func proposedUnits(all []*wire.FromSchedd) (n int) {
	for _, m := range all {
		for _, p := range m.GetRequest().GetProposals() {
			n += int(p.GetUnits())
		}
	}
	return n
}

// recordProposed counts the containers that the first report of a job proposes places
// for.
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

// leaderReceived passes messages to the leader.
func (s *scheddNode) leaderReceived(all []*wire.FromSchedd) {
	for _, m := range all {
		if err := s.leader.core.HandleMessage(s.now(), s.leader.sessions[s.number], m); err != nil {
			s.failure = err
		}
	}
}

// handleLeader handles messages of the leader, in order.
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

// handlePlacement passes a message to the self-placer. For style WholeCell it pretends
// that the cell has one part.
func (s *scheddNode) handlePlacement(m *wire.ToSchedd) {
	if p := m.GetPolicy(); p != nil && s.Style == WholeCell {
		m = &wire.ToSchedd{Of: &wire.ToSchedd_Policy{Policy: &wire.Policy{Distributed: p.GetDistributed(), Parts: 1}}}
	}
	s.selfPlacement.LeaderMessage(m)
}

// handleMachineAd passes a copy of a machine's ad to the self-placer.
func (s *scheddNode) handleMachineAd(name string, sequence uint64, ad *classad.Ad) {
	if s.Style != LeaderOnly {
		s.selfPlacement.MachineUpdated(name, 1, sequence, ad.Copy())
	}
}

// claimGrant claims a grant at its machine and sends the answer to the leader.
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

// containerEnded records that a container has ended.
func (s *scheddNode) containerEnded(i int) {
	j := s.jobs[i]
	if j.ended++; j.ended == s.Containers {
		j.Ended = s.eventLoop.Now()
		s.unfinished--
	}
}
