package negotiation

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/dispatch"
	"github.com/roost-batch/roost/schedd/flock"
	"github.com/roost-batch/roost/schedd/queue"
)

// A schedd may be a guest of other pools. It has a LeaderConn for each of them, which
// asks for machines for tasks that have found no room at home for a while. The leader of
// a host is not trusted: it grants machines of its own pool and explains, and nothing
// else that it says has an effect. Both pools may grant a machine for one task: the
// dispatcher refuses what is more than tasks are ready.

// Guest says of which host pool a leader is, and when it is asked.
type Guest struct {
	Pool   string        // the name of the host pool
	Number int           // of the pool, from 1, for flock.TagEpoch
	Wait   time.Duration // how long tasks find no room elsewhere before
}

// guestState is what a LeaderConn knows as a guest.
type guestState struct {
	Guest
	unplaced map[queue.RequestID]time.Time // since when some of its tasks find no room
}

func newGuestState(g Guest) *guestState {
	return &guestState{g, make(map[queue.RequestID]time.Time)}
}

// elseZero returns n for the leader of this pool, which has no guest state, and otherwise
// 0.
func (g *guestState) elseZero(n uint32) uint32 {
	if g != nil {
		return 0
	}
	return n
}

// pool returns the name of the leader's pool, "" for this one.
func (l *LeaderConn) pool() string {
	if l.guest == nil {
		return ""
	}
	return l.guest.Pool
}

// mayLeave returns why the tasks of a request run at home only, "" if they may run in
// another pool.
func mayLeave(r *queue.Request) string {
	switch {
	case r.Service != nil:
		return "services run at home"
	case r.IsAlloc || r.Inside.Alloc != 0:
		return "allocs run at home"
	case r.Now:
		return "tasks that are to run now run at home"
	case r.Reservation != "":
		return "its reservation is at home"
	case len(r.Ports) > 0:
		return "tasks with ports run at home"
	case r.IsGang():
		return "gangs run at home"
	case strings.Contains(r.Ad, "TARGET."+roost.AttrHasCheckpoint+" =?= true"):
		return "it goes on from a checkpoint that was taken at home"
	case strings.Contains(r.Ad, roost.AttrLimits+" = "):
		return "its licences are those of this pool"
	case strings.Contains(r.Ad, queue.StaysHomeText):
		return "its job says flock = false, or has secrets, images, packages or objects, or files that are not " +
			"transferred"
	}
	return ""
}

// isOffered reports whether the leader of the host is asked for machines for a request.
func (l *LeaderConn) isOffered(r *queue.Request, now time.Time) bool {
	id := r.ID
	if r.Ready <= l.dispatch.ClaimCounts(dispatch.RequestID(id)) {
		if l.stream.lastUpdates[id] == nil || r.Ready == 0 {
			delete(l.guest.unplaced, id)
			return false
		}
		return true
	}
	since, known := l.guest.unplaced[id]
	if !known {
		if mayLeave(r) != "" || len(l.guest.unplaced) >= maxUnplaced {
			return false
		}
		since = now
		l.guest.unplaced[id] = now
	}
	return now.Sub(since) >= l.guest.Wait
}

// maxUnplaced bounds the requests for which a host is asked.
const maxUnplaced = 10_000

// OfferDue has the requests sent to the host that have waited long enough. It is called
// every second.
func (l *LeaderConn) OfferDue(now time.Time) {
	if l.stream == nil {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(l.guest.unplaced)) {
		if _, ok := l.queue.Request(id); !ok {
			delete(l.guest.unplaced, id)
		} else if now.Sub(l.guest.unplaced[id]) >= l.guest.Wait && l.stream.lastUpdates[id] == nil {
			l.stream.dirty[id] = true
		}
	}
}

// GuestStatus returns how the tasks of a request fare at the host, in words.
func (l *LeaderConn) GuestStatus(id queue.RequestID, now time.Time) string {
	r, ok := l.queue.Request(id)
	if !ok {
		return ""
	}
	if why := mayLeave(r); why != "" {
		return "not asked: " + why
	}
	if l.stream == nil {
		return "its negotiators do not answer: " + l.LeaderStatus()
	}
	since, known := l.guest.unplaced[id]
	switch left := l.guest.Wait - now.Sub(since); {
	case !known:
		return "not asked: its tasks have room"
	case left > 0:
		return "asked in " + left.Round(time.Second).String() + " if it finds no room at home"
	}
	if e := l.stream.explanations[id]; e != nil {
		return "asked: " + e.GetSummary()
	}
	return "asked: no machine was offered yet"
}

// onHostMessage takes in a message of the leader of the host.
func (l *LeaderConn) onHostMessage(m *wire.ToSchedd) {
	switch m := m.GetOf().(type) {
	case *wire.ToSchedd_Grant:
		l.onHostGrant(m.Grant)
	case *wire.ToSchedd_Policy:
		l.stream.out.Put(&wire.FromSchedd{Of: &wire.FromSchedd_PolicySeen{
			PolicySeen: &wire.PolicySeen{Version: m.Policy.GetVersion()}}})
	case *wire.ToSchedd_Unplaced:
		if id := queue.RequestID(m.Unplaced.GetRequest()); l.stream.lastUpdates[id] != nil {
			l.stream.explanations[id] = m.Unplaced.GetExplanation()
		}
	}
}

// maxMachineName bounds the name of a machine of a host, in bytes.
const maxMachineName = 255

// grantProblem returns why a grant of the host is refused, "" if it is not. A host could
// grant what nobody has asked it for: then tasks would run there that stay at home.
func (l *LeaderConn) grantProblem(g *wire.Grant) string {
	id := queue.RequestID(g.GetRequest())
	r, ok := l.queue.Request(id)
	if !ok || l.stream.lastUpdates[id] == nil {
		return "nobody has asked for it"
	}
	if why := mayLeave(r); why != "" {
		return why
	}
	given := g.GetResources().Vector()
	switch {
	case given.IsNegative() || !r.Resources.FitsIn(given):
		return "it is less than was asked for"
	case given != r.Resources && !strings.Contains(r.Ad, roost.AttrExclusive+" = true"):
		return "it is more than was asked for, and its user would be charged for it"
	case !isMachineName(g.GetNode()) || g.GetHost() != "" && !isMachineName(g.GetHost()):
		return "no machine of another pool can have that name"
	case !flock.IsRemote(g.GetAddress()):
		return "its address is none that another host can have"
	}
	return ""
}

// isMachineName reports whether a machine of a host may be called that here, where the
// name of its pool follows.
func isMachineName(name string) bool {
	return name != "" && len(name) <= maxMachineName && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r == '@' || r == '/' || r == 0x7f || r == utf8.RuneError
	})
}

// onHostGrant takes in a grant of a machine of the host.
func (l *LeaderConn) onHostGrant(g *wire.Grant) {
	l.stream.lastGrant = max(l.stream.lastGrant, g.GetId())
	l.stream.dirty[queue.RequestID(g.GetRequest())] = true
	node := flock.MachineName(g.GetNode(), l.guest.Pool)
	host := g.GetHost()
	if host == "" {
		host = g.GetNode()
	}
	where := host + "@" + g.GetAddress()
	grant := roost.GrantID{Epoch: flock.TagEpoch(g.GetEpoch(), l.guest.Number), ID: g.GetId()}
	refused := l.grantProblem(g)
	if refused == "" && l.loop.HasMoved(node, where) {
		refused = "another node has said that the machine is its own, and what runs there may not have ended"
	}
	if refused != "" {
		l.SendGrantResult(dispatch.GrantResult{Grant: grant, Request: dispatch.RequestID(g.GetRequest()),
			Reason: refused})
		return
	}
	l.dispatch.Granted(l.loop.BootTime(), dispatch.Grant{
		GrantID: grant, Request: dispatch.RequestID(g.GetRequest()), Node: node, Address: where,
		Resources: g.GetResources().Vector(), Token: g.GetCapability(), ClaimBy: time.Duration(g.GetClaimBy()),
		MayWait: g.GetWaiting(),
	})
}
