package negotiator

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

// scheddState is the state of one schedd. Its requests live as long as its session. Its
// usage is stored longer, because its tasks run on while it is away.
type scheddState struct {
	name              string
	sendQueue         *sendQueue // nil: it is away
	awaySince         time.Time
	requests          map[uint64]*scheddRequest
	avoidPairs        map[uint64]avoidPairs // by request, also where a request wants nothing at present
	adBytes           int                   // size of the requests' ads
	usage             map[fairshare.Submitter]roost.Resources
	elsewhere         map[fairshare.Submitter]roost.Resources // what its claims in other pools hold
	unansweredGrants  int                                     // number of unanswered grants
	demand            map[quotaAccount]resourceDemand
	admitted          []admittedDemand
	sentPolicy        *wire.Policy  // policy that it was sent
	sentPolicyVersion policyVersion // version of that policy
	confirmsPolicy    bool          // it confirms each policy
	awaitedPolicy     uint64        // version of the last policy that it was sent in this session
	confirmedPolicy   uint64        // version of the last policy that it has confirmed
	sentAllRequests   bool          // it has reported all requests in this session
	namesSubmitHosts  bool          // it has jobs of other submit nodes, and may say of which
	// what ran at the end of its last session, until it has reported all requests in this
	// one
	lastRunning []cellstate.RunningTasks
	// full queues that refused its jobs, for which it wants a message when there is room
	fullQueues map[string]bool
}

// updateUsage takes in what a submitter's claims hold. An error ends the schedd's
// session.
func (s *scheddState) updateUsage(who fairshare.Submitter, u *wire.Usage) error {
	if len(s.usage) >= maxRequests || len(s.elsewhere) >= maxRequests {
		return fmt.Errorf("schedd %s: %w: usage of %d submitters", s.name, roost.Exhausted, maxRequests)
	}
	putHeld(s.usage, who, u.GetHeld().Vector())
	putHeld(s.elsewhere, who, u.GetElsewhere().Vector())
	return nil
}

func putHeld(all map[fairshare.Submitter]roost.Resources, who fairshare.Submitter, held roost.Resources) {
	if held.IsNegative() || held == (roost.Resources{}) {
		delete(all, who)
	} else {
		all[who] = held
	}
}

// scheddRequest is one request of a connected schedd.
type scheddRequest struct {
	cellstate.PendingRequest
	wanted    int // tasks wanted, as the schedd last reported
	noWait    int // of those, tasks that must not wait in node queues
	lostTasks int // of those, tasks whose node was lost

	atPriority        int                      // of wanted, tasks with the request's priority
	newTasks          int                      // tasks in this cycle that are not lost ones; they go first
	unseenGrants      []uint64                 // grants not yet subtracted from wanted, in order
	reportsSeenGrants bool                     // the schedd reports which grants it has subtracted
	refusals          map[string]*claimRefusal // by machine
	problem           string                   // why the request is invalid

	lastWaitedPlan    int       // the last plan in which some of it had to wait
	explainedAt       time.Time // when it was last explained
	explainedReason   int       // index of the reason that excludes most machines, for the metrics
	sentExplanation   string    // the last explanation sent, in a comparable form
	explanationWanted bool      // a user has asked

	selfPlacements []match.SelfPlacement // for the next cycle: where its schedd proposes to place it

	noRoomSince time.Time // stream: since when there is no room for it; zero: there may be some
	waitRefused bool      // stream, or to run now: its schedd was told to stop waiting
}

// claimRefusal records that a machine refused a claim. The same claim is not tried again
// until the machine has changed.
type claimRefusal struct {
	reason   string
	times    int
	until    time.Time
	sequence uint64 // an ad of a higher sequence ends the refusal
	started  int64  // an ad of another start ends it, too
}

// maxRefusalsByAd is the number of refusals in a row that the machine's next ad still
// ends. After more, only time ends the refusal.
const maxRefusalsByAd = 3

// updateRequest handles a schedd's update of a request. An error ends the schedd's
// session.
func (s *scheddState) updateRequest(m *wire.RequestUpdate) error {
	r := s.requests[m.GetId()]
	if m.GetWanted() == 0 && m.GetClaims() == 0 {
		if r != nil {
			s.adBytes -= len(r.AdText)
		}
		delete(s.requests, m.GetId())
		return nil
	}
	if r == nil {
		if len(s.requests) >= maxRequests {
			return fmt.Errorf("schedd %s: %w: %d requests at once", s.name, roost.Exhausted, maxRequests)
		}
		r = &scheddRequest{refusals: map[string]*claimRefusal{}}
		r.Key = match.RequestKey{Schedd: s.name, ID: m.GetId()}
		s.requests[m.GetId()] = r
	}
	if len(m.GetAd()) > roost.MaxAdBytes {
		return fmt.Errorf("schedd %s: %w: the ad of a request has %d bytes, and %d is the most", s.name,
			roost.Exhausted, len(m.GetAd()), roost.MaxAdBytes)
	}
	if m.GetAd() != "" {
		if s.adBytes += len(m.GetAd()) - len(r.AdText); s.adBytes > maxAdBytes {
			return fmt.Errorf("schedd %s: %w: the ads of its requests have %d bytes, and %d is the most", s.name,
				roost.Exhausted, s.adBytes, maxAdBytes)
		}
	}
	r.wanted = int(min(m.GetWanted(), roost.MaxTasks))
	r.noWait = int(min(m.GetNoWait(), m.GetWanted()))
	r.atPriority = int(min(m.GetAtPriority(), m.GetWanted(), roost.MaxTasks))
	r.lostTasks = int(min(m.GetLost(), m.GetWanted()))
	r.Claims, r.Queue, r.UnixGroup = int(min(m.GetClaims(), roost.MaxTasks)), m.GetQueue(), m.GetUnixGroup()
	r.Now = m.GetNow()
	r.Counting = cellstate.LimitCounting(m.GetCounting())
	r.dropSeenGrants(m)
	r.readRuntimes(m)
	r.readSelfPlacements(m)
	r.Priority, r.Oldest = min(max(m.GetPriority(), roost.MinPriority), roost.MaxPriority), m.GetOldest()
	if m.GetAd() != "" || r.Class == nil && r.problem == "" ||
		r.Class != nil && r.Class.Resources != m.GetResources().Vector() {
		s.defineClass(r, m)
	}
	return nil
}

// defineClass computes the request's class anew.
func (s *scheddState) defineClass(r *scheddRequest, m *wire.RequestUpdate) {
	if m.GetAd() != "" {
		r.AdText = m.GetAd()
	}
	r.Submitter = fairshare.Submitter{Group: m.GetGroup(), Owner: m.GetOwner()}
	r.Class, r.problem = nil, ""
	r.refusals = map[string]*claimRefusal{}
	r.sentExplanation, r.explainedAt = "", time.Time{}
	if r.problem = s.submitterProblem(r.Submitter); r.problem != "" {
		return
	}
	band := roost.BatchBand
	var err error
	if m.GetBand() != "" {
		if band, err = roost.ParsePriorityBand(m.GetBand()); err != nil {
			r.problem = err.Error()
			return
		}
	}
	r.Band = band
	class, err := match.NewClass(s.requestAd(r.AdText), r.Submitter, band, m.GetResources().Vector())
	if err != nil {
		r.problem = err.Error()
		return
	}
	if r.Submitter.IsGuest() && len(class.Limits) > 0 {
		r.problem = "the licences and limits of this pool are not for guests"
		return
	}
	r.Class = class
}

// dropSeenGrants removes the grants that the schedd had subtracted from what it wants. If
// it does not report that, it counts as knowing those that it has answered.
func (r *scheddRequest) dropSeenGrants(m *wire.RequestUpdate) {
	if r.reportsSeenGrants = m.GrantsSeen != nil; r.reportsSeenGrants {
		r.unseenGrants = slices.DeleteFunc(r.unseenGrants, func(id uint64) bool { return id <= m.GetGrantsSeen() })
	}
}

// removeUnseen removes one grant, and reports whether it was there.
func (r *scheddRequest) removeUnseen(id uint64) bool {
	i, found := slices.BinarySearch(r.unseenGrants, id)
	if found {
		r.unseenGrants = slices.Delete(r.unseenGrants, i, i+1)
	}
	return found
}

// addRefusal records a refusal by a machine. latest is the machine's latest known ad, if
// any.
func (r *scheddRequest) addRefusal(now time.Time, name string, latest *inventoryMachine, result *wire.GrantResult) {
	f := r.refusals[name]
	if f == nil {
		f = &claimRefusal{}
		r.refusals[name] = f
	}
	f.times++
	f.reason, f.until, f.sequence = result.GetReason(), now.Add(grantTTL), 0
	if n := result.GetAdSequence(); n > 0 {
		f.sequence = n - 1 // that ad shows the reason
	} else if f.until = now.Add(time.Second); f.times < maxRefusalsByAd {
		f.until = now // the machine was not or could not be asked: this may be chance
	}
	if latest != nil {
		f.sequence, f.started = max(f.sequence, latest.Sequence), latest.Started
	}
}

// avoidedMachines lists the machines that are not to be tried now, and drops refusals
// that are over.
func (r *scheddRequest) avoidedMachines(now time.Time, machines map[string]*inventoryMachine) map[string]string {
	if len(r.refusals) == 0 {
		return nil
	}
	names := map[string]string{}
	for name, f := range r.refusals {
		m := machines[name]
		changed := m != nil && (m.Sequence > f.sequence || m.Started != f.started)
		switch {
		case !now.Before(f.until.Add(grantTTL)): // too old to count
			delete(r.refusals, name)
		case !now.Before(f.until), changed && f.times < maxRefusalsByAd:
		default:
			names[name] = f.reason
		}
	}
	return names
}
