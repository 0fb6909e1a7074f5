package negotiator

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/script"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
)

var testKey = []byte("the key of every machine in here")

// TestStories runs the scripts in testdata: events of the cell, and the messages that it
// then sends to schedds. Commands:
//
//	machine NAME sequence=N [start=N] cpus=N [free=N] [clock=DURATION]
//	        [licences=NAME:N] [prod=OWNER:CPUS]
//	                             an ad, perhaps with a claim of a core that has
//	                             limits, or of production
//	gone NAME
//	synced
//	join SCHEDD [tells] [lists] [GRANT[=SEQUENCE]...]
//	                             with the grants that it has, and those that are claims
//	told SCHEDD                  it has reported all requests
//	leave SCHEDD
//	request SCHEDD ID owner=NAME wanted=N [cpus=N] [claims=N] [seen=N] [band=B]
//	        [lost=N] [gang=N] [propose=NODE:N,…]      with the ad as input
//	result SCHEDD GRANT claimed|refused [sequence=N]
//	usage SCHEDD OWNER cpus=N
//	demand SCHEDD owner=NAME [group=NAME] [band=B] cpus=N [tasks=N] [open=N]
//	        [queue=Q] [seen=ID]
//	admit SCHEDD ID …            as demand: a submission with this demand
//	why SCHEDD ID                a user asks
//	set KIND                     by an administrator, with the object as input
//	outcome SCHEDD NODE good|failed|spoiled OWNER TASK...
//	                             attempts of request 1 end after a second; the job is
//	                             the task up to its "["
//	setting NAME VALUE, undrain NODE
//	                             commands of an administrator
//	limits                       prints the use of each limit
//	drains                       prints the drains and avoid pairs in the log
//	tick DURATION
//	stall                        nothing is committed any more
//	commit                       everything waiting is committed, and what follows at once
//	lead                         another negotiator leads: what waits is lost
//
// After each command the cell runs a cycle if anything has changed or is due, and prints
// what it sends.
func TestStories(t *testing.T) {
	script.Run(t, "testdata/*.txt", func(t *testing.T) func(script.ScriptCommand) string {
		p := &scriptRunner{
			t: t, now: time.Unix(1000, 0), sendQueue: map[string]*sendQueue{},
		}
		p.makeLeader()
		return p.runCommand
	})
}

type scriptRunner struct {
	t              *testing.T
	cell           *leaderState
	now            time.Time
	sendQueue      map[string]*sendQueue
	pendingEntries []pendingEntry // not committed, oldest first
	stalled        bool
}

// runCommand executes a command, and returns what the schedds get then.
func (p *scriptRunner) runCommand(s script.ScriptCommand) string {
	play, ok := scriptCommands()[s.Command]
	if !ok {
		p.t.Fatalf("unknown command %s", s.Command)
	}
	out := play(p, scriptLine{s, pairsOf(s.Args)})
	if out != "" {
		return out
	}
	if p.cell.markDue(p.now); p.cell.changed {
		p.cell.runCycle(p.now)
	}
	if d, ok := p.cell.takePendingEntry(p.now); ok {
		p.pendingEntries = append(p.pendingEntries, d)
	}
	p.checkGrants()
	if !p.stalled {
		p.commitOldest()
	}
	p.checkGrants()
	return p.sentText()
}

func (p *scriptRunner) commitOldest() {
	for _, d := range p.pendingEntries {
		commitEntry(p.t, p.cell, p.now, d)
	}
	p.pendingEntries = nil
}

// makeLeader creates the state of a new leader.
func (p *scriptRunner) makeLeader() {
	known := newInventory()
	record := newLedgerStore(func(uint64) {})
	if p.cell != nil {
		known, record = p.cell.machineInventory, p.cell.ledgerStore
		p.cell.endStreams(errStopping)
	}
	p.cell, p.pendingEntries, p.stalled = commitLeader(p.t, p.now, known, record), nil, false
}

// commitLeader commits a leadership entry, and returns the leader's state.
func commitLeader(t testing.TB, now time.Time, known *machineInventory, r *ledgerStore) *leaderState {
	e := ledger.LogEntry{At: now.UnixNano(), Lead: "head"}
	result := r.Apply(0, e.Encode(nil)).(ledger.EntryResult)
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	c := newCell(result.Epoch, known, r, slog.New(slog.DiscardHandler))
	c.loadFromLedger(now)
	return c
}

// commitEntry applies a pending entry as it is written to the log.
func commitEntry(t *testing.T, c *leaderState, now time.Time, d pendingEntry) {
	e := c.logEntry(d)
	e.At = now.UnixNano()
	result := c.ledgerStore.Apply(0, e.Encode(nil)).(ledger.EntryResult)
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	c.sendCommitted(now, d)
}

func (p *scriptRunner) receiveMessage(name string, m *wire.FromSchedd) {
	if err := p.cell.handleMessage(p.now, name, p.sendQueue[name], m); err != nil {
		p.t.Fatal(err)
	}
}

// checkGrants checks that the tables of grants are consistent.
func (p *scriptRunner) checkGrants() {
	unanswered, pendingCount := map[string]int{}, 0
	for _, g := range p.cell.pendingByID {
		if g.stage != claimed {
			unanswered[g.request.Schedd]++
		}
	}
	for _, list := range p.cell.pendingByMachine {
		pendingCount += len(list)
	}
	open := 0
	for _, d := range append(p.pendingEntries, p.cell.pendingEntry) {
		open += len(d.grants)
	}
	for _, g := range p.cell.pendingByID {
		if g.stage == uncommitted {
			open--
		}
	}
	if open != 0 {
		p.t.Fatalf("%d more grants wait to be committed than are pending", open)
	}
	if pendingCount != len(p.cell.pendingByID) {
		p.t.Fatalf("%d grants are pending, and %d by machine", len(p.cell.pendingByID), pendingCount)
	}
	for name, s := range p.cell.schedds {
		if s.unansweredGrants != unanswered[name] {
			p.t.Fatalf("%s: %d grants count as not answered, and %d are", name, s.unansweredGrants, unanswered[name])
		}
	}
}

// policyText formats a policy, if there is one, without empty kinds of names.
func policyText(m *wire.Policy) string {
	if m == nil {
		return ""
	}
	message := proto.CloneOf(m)
	message.Version = 0
	for _, names := range []**wire.Names{&message.Groups, &message.Reservations, &message.Limits} {
		if len((*names).GetName()) == 0 {
			*names = nil
		}
	}
	return strings.ReplaceAll(message.String(), "  ", " ")
}

func (p *scriptRunner) sentText() string {
	var b strings.Builder
	for _, name := range []string{"s1", "s2"} {
		if p.sendQueue[name] == nil {
			continue
		}
		messages, _, ended := p.sendQueue[name].takeAll()
		greeted := false
		for _, m := range messages {
			if g := m.GetGrant(); g != nil {
				fmt.Fprintf(&b, "%s: grant %d: %v of %s for request %d", name, g.GetId(), g.GetResources().Vector(),
					g.GetNode(), g.GetRequest())
				if g.GetGang() != 0 {
					fmt.Fprintf(&b, ", of gang %d", g.GetGang())
				}
				b.WriteString("\n")
				if !wire.CheckClaimToken(testKey, g, "") || g.GetEpoch() != p.cell.epoch {
					b.WriteString("  with a bad capability\n")
				}
			}
			if a := m.GetAdmitted(); a != nil {
				fmt.Fprintf(&b, "%s: admit %d: %s\n", name, a.GetId(), cmp.Or(a.GetError(), "yes"))
			}
			if r := m.GetRoom(); r != nil {
				fmt.Fprintf(&b, "%s: room in %s\n", name, r.GetQueue())
			}
			greeted = greeted || m.GetHello() != nil
			// an empty policy is sent first, and not printed
			if text := policyText(m.GetPolicy()); m.GetPolicy() != nil && (text != "" || !greeted) {
				fmt.Fprintf(&b, "%s: policy: %s\n", name, text)
			}
			if u := m.GetUnplaced(); u.GetRefused() != "" {
				fmt.Fprintf(&b, "%s: request %d is refused: %s\n", name, u.GetRequest(), u.GetRefused())
			} else if u != nil {
				fmt.Fprintf(&b, "%s: request %d waits: %s\n", name, u.GetRequest(), u.GetExplanation().GetSummary())
			}
		}
		if ended != nil {
			fmt.Fprintf(&b, "%s: the conversation ends\n", name)
			delete(p.sendQueue, name)
		}
	}
	return b.String()
}

// usedInLog returns a submitter's usage by the log.
func usedInLog(c *leaderState, now time.Time, who fairshare.Submitter) (coreSeconds float64) {
	c.ledgerStore.view(func(l *ledger.Ledger) { coreSeconds = l.Accountant().CoreSeconds(now, who) })
	return coreSeconds
}

// TestUsage checks that usage is charged, also while the schedd is away, but not forever.
func TestUsage(t *testing.T) {
	now, ann := time.Unix(1, 0), fairshare.Submitter{Owner: "ann"}
	c := commitLeader(t, now, newInventory(), newLedgerStore(func(uint64) {}))
	c.updateMachines(now, nil, true)
	mail := newSendQueue()
	c.addStream(now, &wire.ScheddHello{Name: "s"}, mail)
	usage := &wire.Usage{Owner: "ann", Held: wire.FromResources(roost.Resources{CPU: 4000})}
	if err := c.handleMessage(now, "s", mail, &wire.FromSchedd{Of: &wire.FromSchedd_Usage{Usage: usage}}); err != nil {
		t.Fatal(err)
	}
	expireAll := func() {
		if d, ok := c.takePendingEntry(now.Add(usageCommitInterval)); ok {
			commitEntry(t, c, now, d)
		}
	}
	expireAll()
	now = now.Add(time.Hour)
	if got := usedInLog(c, now, ann); got != 4*3600 {
		t.Errorf("after an hour: %v core-seconds", got)
	}
	c.removeStream(now, "s", mail)
	now = now.Add(absentUsageTTL)
	c.chargeAll(now)
	expireAll()
	total := usedInLog(c, now, ann)
	if want := 4 * (time.Hour + absentUsageTTL).Seconds(); total != want {
		t.Errorf("while away: %v core-seconds, want %v", total, want)
	}
	if got := usedInLog(c, now.Add(time.Hour), ann); got != total {
		t.Errorf("after it was given up: %v core-seconds, want %v", got, total)
	}
}
