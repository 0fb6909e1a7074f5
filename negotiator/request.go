package negotiator

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
	"github.com/roost-batch/roost/negotiator/share"
)

// schedd is what is known of one schedd. Its requests live as long as its stream; what it holds is remembered for a while longer, because its
// tasks run on while it is away.
type schedd struct {
	name       string
	mail       *mailbox // nil: it is away
	away       time.Time
	requests   map[uint64]*request
	adBytes    int // of these
	held       map[share.Submitter]roost.Resources
	unanswered int // grants
	demand     map[payer]demand
	admitted   []admitted
	announced  *wire.Policy      // that it was told
	notice     notice            // likewise
	told       bool              // it has told of all requests in this conversation
	ran        []picture.Running // what ran when its last conversation ended, until it has told all in this one
	full       map[string]bool   // queues that were too full for its jobs, of which it wants to hear when there is room
}

// request is one request of a connected schedd.
type request struct {
	picture.Ask
	wanted int // as the schedd last said
	noWait int // of those, likewise
	lost   int // of those, for tasks whose node was lost

	fresh   int // of those that it may get in this cycle, for other tasks: they go first
	apart   apart
	unseen  []uint64            // grants that wanted does not take into account yet, in order
	counts  bool                // the schedd says which grants it has seen
	refused map[string]*refusal // by machine
	problem string              // why it cannot be matched at all

	waited    int       // the last plan in which some of it had to wait
	explained time.Time // when it was last explained
	told      string    // the explanation that the schedd has, in a form that can be compared
	asked     bool      // somebody wants to know

	propose []match.Proposal // for the next cycle: where its schedd would have it

	short   time.Time // stream: since when no room was found for it; zero while there may be some
	refusal bool      // stream, or to run now: its schedd was told that it is to wait no longer
}

// refusal remembers that a machine refused a claim: the same claim is not tried again until the machine has changed.
type refusal struct {
	reason   string
	times    int
	until    time.Time
	sequence uint64 // the refusal is over with an ad of a higher sequence
	started  int64  // or of another start
}

// stubborn is after how many refusals in a row a machine's next ad does not end the refusal any more, and only time does.
const stubborn = 3

// update takes in what the schedd says of a request. It returns an error that the schedd's stream ends with.
func (s *schedd) update(m *wire.RequestUpdate) error {
	r := s.requests[m.GetId()]
	if m.GetWanted() == 0 && m.GetClaims() == 0 {
		if r != nil {
			s.adBytes -= len(r.Text)
		}
		delete(s.requests, m.GetId())
		return nil
	}
	if r == nil {
		if len(s.requests) >= maxRequests {
			return fmt.Errorf("schedd %s: %w: %d requests at once", s.name, roost.Exhausted, maxRequests)
		}
		r = &request{refused: map[string]*refusal{}}
		r.Key = match.Key{Schedd: s.name, ID: m.GetId()}
		s.requests[m.GetId()] = r
	}
	if len(m.GetAd()) > roost.MaxAdBytes {
		return fmt.Errorf("schedd %s: %w: the ad of a request has %d bytes, and %d is the most", s.name, roost.Exhausted, len(m.GetAd()), roost.MaxAdBytes)
	}
	if m.GetAd() != "" {
		if s.adBytes += len(m.GetAd()) - len(r.Text); s.adBytes > maxAdBytes {
			return fmt.Errorf("schedd %s: %w: the ads of its requests have %d bytes, and %d is the most", s.name, roost.Exhausted, s.adBytes, maxAdBytes)
		}
	}
	r.wanted = int(min(m.GetWanted(), roost.MaxTasks))
	r.noWait = int(min(m.GetNoWait(), m.GetWanted()))
	r.lost = int(min(m.GetLost(), m.GetWanted()))
	r.Claims, r.Queue, r.UnixGroup = int(min(m.GetClaims(), roost.MaxTasks)), m.GetQueue(), m.GetUnixGroup()
	r.Now = m.GetNow()
	r.Counting = picture.Counting(m.GetCounting())
	r.see(m)
	r.plans(m)
	r.proposals(m)
	r.Priority, r.Oldest = m.GetPriority(), m.GetOldest()
	if m.GetAd() != "" || r.Class == nil && r.problem == "" || r.Class != nil && r.Class.Resources != m.GetResources().Vector() {
		r.define(m)
	}
	return nil
}

// define makes the request's class anew.
func (r *request) define(m *wire.RequestUpdate) {
	if m.GetAd() != "" {
		r.Text = m.GetAd()
	}
	r.Submitter = share.Submitter{Group: m.GetGroup(), Owner: m.GetOwner()}
	r.Class, r.problem = nil, ""
	r.refused = map[string]*refusal{}
	r.told, r.explained = "", time.Time{}
	if m.GetOwner() == "" {
		r.problem = "the request names no owner"
		return
	}
	band := roost.Batch
	var err error
	if m.GetBand() != "" {
		if band, err = roost.ParseBand(m.GetBand()); err != nil {
			r.problem = err.Error()
			return
		}
	}
	r.Band = band
	class, err := match.NewClass(r.Text, r.Submitter, band, m.GetResources().Vector())
	if err != nil {
		r.problem = err.Error()
		return
	}
	r.Class = class
}

// see strikes the grants that the schedd had taken into account when it counted what it wants. One that does not say is taken to know those that
// it has answered.
func (r *request) see(m *wire.RequestUpdate) {
	if r.counts = m.GrantsSeen != nil; r.counts {
		r.unseen = slices.DeleteFunc(r.unseen, func(id uint64) bool { return id <= m.GetGrantsSeen() })
	}
}

// strike forgets one grant, and reports whether it was there.
func (r *request) strike(id uint64) bool {
	i, found := slices.BinarySearch(r.unseen, id)
	if found {
		r.unseen = slices.Delete(r.unseen, i, i+1)
	}
	return found
}

// refuse remembers a refusal by a machine of which the latest ad is known, if any.
func (r *request) refuse(now time.Time, name string, latest *machine, result *wire.GrantResult) {
	f := r.refused[name]
	if f == nil {
		f = &refusal{}
		r.refused[name] = f
	}
	f.times++
	f.reason, f.until, f.sequence = result.GetReason(), now.Add(grantLife), 0
	if n := result.GetAdSequence(); n > 0 {
		f.sequence = n - 1 // that ad shows the reason
	} else if f.until = now.Add(time.Second); f.times < stubborn {
		f.until = now // the machine was not asked, or could not be: this may be chance
	}
	if latest != nil {
		f.sequence, f.started = max(f.sequence, latest.Sequence), latest.Started
	}
}

// avoid lists the machines that are not to be tried now, and forgets refusals that are over.
func (r *request) avoid(now time.Time, machines map[string]*machine) map[string]string {
	if len(r.refused) == 0 {
		return nil
	}
	names := map[string]string{}
	for name, f := range r.refused {
		m := machines[name]
		changed := m != nil && (m.Sequence > f.sequence || m.Started != f.started)
		switch {
		case !now.Before(f.until.Add(grantLife)): // long ago: it counts no more
			delete(r.refused, name)
		case !now.Before(f.until), changed && f.times < stubborn:
		default:
			names[name] = f.reason
		}
	}
	return names
}
