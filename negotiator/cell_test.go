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
	"github.com/roost-batch/roost/internal/story"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/share"
)

var testKey = []byte("the key of every machine in here")

// TestStories runs the scripts in testdata: what the cell hears, and what it then puts into the schedds' mailboxes. Commands:
//
//	machine NAME sequence=N [start=N] cpus=N [free=N] [clock=DURATION] [licences=NAME:N] [prod=OWNER:CPUS]    an ad, perhaps with a claim of a core that has licences, or of production
//	gone NAME
//	synced
//	join SCHEDD [tells] [lists] [GRANT[=SEQUENCE]...]    with the grants that it has in hand, and those that are claims
//	told SCHEDD                                  it has told of all requests
//	leave SCHEDD
//	request SCHEDD ID owner=NAME wanted=N [cpus=N] [claims=N] [seen=N] [band=B] [lost=N] [gang=N] [propose=NODE:N,…]    with the ad as input
//	result SCHEDD GRANT claimed|refused [sequence=N]
//	usage SCHEDD OWNER cpus=N
//	demand SCHEDD owner=NAME [group=NAME] [band=B] cpus=N [tasks=N] [open=N] [queue=Q] [seen=ID]
//	admit SCHEDD ID …    likewise: somebody submits what asks for so much
//	why SCHEDD ID    somebody asks
//	set KIND                     by an administrator, with the object as input
//	outcome SCHEDD NODE good|failed|spoiled OWNER TASK...    attempts of request 1 end after a second; the job is the task up to its "["
//	setting NAME VALUE, undrain NODE    what an administrator does
//	limits           prints what is in use of each
//	drains           prints what the log says of drains, and of tasks that are kept apart
//	tick DURATION
//	stall                        nothing is committed any more
//	commit                       all that waits is committed, and what comes after it at once
//	lead                         another negotiator leads: what waits to be committed is lost
//
// After each the cell makes a cycle if anything has changed, or is due, and prints what it sends.
func TestStories(t *testing.T) {
	story.Run(t, "testdata/*.txt", func(t *testing.T) func(story.Step) string {
		p := &player{
			t: t, now: time.Unix(1000, 0), mail: map[string]*mailbox{},
		}
		p.lead()
		return p.play
	})
}

type player struct {
	t       *testing.T
	cell    *cell
	now     time.Time
	mail    map[string]*mailbox
	drafts  []draft // that are not committed, oldest first
	stalled bool
}

// play carries out a command, and says what the schedds get then.
func (p *player) play(s story.Step) string {
	play, ok := commands()[s.Command]
	if !ok {
		p.t.Fatalf("unknown command %s", s.Command)
	}
	out := play(p, line{s, pairsOf(s.Args)})
	if out != "" {
		return out
	}
	if p.cell.stir(p.now); p.cell.changed {
		p.cell.cycle(p.now)
	}
	if d, ok := p.cell.take(p.now); ok {
		p.drafts = append(p.drafts, d)
	}
	p.check()
	if !p.stalled {
		p.commit()
	}
	p.check()
	return p.sent()
}

func (p *player) commit() {
	for _, d := range p.drafts {
		commit(p.t, p.cell, p.now, d)
	}
	p.drafts = nil
}

// lead makes a cell for whoever leads now.
func (p *player) lead() {
	known := newInventory()
	record := newRecord(func(uint64) {})
	if p.cell != nil {
		known, record = p.cell.inventory, p.cell.record
		p.cell.end(errStopping)
	}
	p.cell, p.drafts, p.stalled = leader(p.t, p.now, known, record), nil, false
}

// leader commits an entry by which somebody leads, and returns its cell.
func leader(t testing.TB, now time.Time, known *inventory, r *record) *cell {
	e := ledger.Entry{At: now.UnixNano(), Lead: "head"}
	result := r.Apply(0, e.Encode(nil)).(ledger.Result)
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	c := newCell(result.Epoch, known, r, slog.New(slog.DiscardHandler))
	c.inherit(now)
	return c
}

// commit puts a draft through the log, as it stands there.
func commit(t *testing.T, c *cell, now time.Time, d draft) {
	e := c.entry(d)
	e.At = now.UnixNano()
	result := c.record.Apply(0, e.Encode(nil)).(ledger.Result)
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	c.committed(now, d)
}

func (p *player) hear(name string, m *wire.FromSchedd) {
	if err := p.cell.heard(p.now, name, p.mail[name], m); err != nil {
		p.t.Fatal(err)
	}
}

// check holds the books of grants against each other.
func (p *player) check() {
	unanswered, promised := map[string]int{}, 0
	for _, g := range p.cell.pending {
		if g.stage != claimed {
			unanswered[g.request.Schedd]++
		}
	}
	for _, list := range p.cell.promised {
		promised += len(list)
	}
	open := 0
	for _, d := range append(p.drafts, p.cell.draft) {
		open += len(d.grants)
	}
	for _, g := range p.cell.pending {
		if g.stage == drafted {
			open--
		}
	}
	if open != 0 {
		p.t.Fatalf("%d more grants wait to be committed than are pending", open)
	}
	if promised != len(p.cell.pending) {
		p.t.Fatalf("%d grants are pending, and %d by machine", len(p.cell.pending), promised)
	}
	for name, s := range p.cell.schedds {
		if s.unanswered != unanswered[name] {
			p.t.Fatalf("%s: %d grants count as not answered, and %d are", name, s.unanswered, unanswered[name])
		}
	}
}

// policyText is a policy, if there is one, without the kinds of names of which there are none.
func policyText(m *wire.Policy) string {
	if m == nil {
		return ""
	}
	said := proto.CloneOf(m)
	for _, names := range []**wire.Names{&said.Groups, &said.Reservations, &said.Limits} {
		if len((*names).GetName()) == 0 {
			*names = nil
		}
	}
	return strings.ReplaceAll(said.String(), "  ", " ")
}

func (p *player) sent() string {
	var b strings.Builder
	for _, name := range []string{"s1", "s2"} {
		if p.mail[name] == nil {
			continue
		}
		messages, _, ended := p.mail[name].take()
		greeted := false
		for _, m := range messages {
			if g := m.GetGrant(); g != nil {
				fmt.Fprintf(&b, "%s: grant %d: %v of %s for request %d", name, g.GetId(), g.GetResources().Vector(), g.GetNode(), g.GetRequest())
				if g.GetGang() != 0 {
					fmt.Fprintf(&b, ", of gang %d", g.GetGang())
				}
				b.WriteString("\n")
				if !wire.CheckCapability(testKey, g, "") || g.GetEpoch() != p.cell.epoch {
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
			if text := policyText(m.GetPolicy()); m.GetPolicy() != nil && (text != "" || !greeted) { // that nothing is set is told first, and not printed
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
			delete(p.mail, name)
		}
	}
	return b.String()
}

// used is what the log says that a submitter has used.
func used(c *cell, now time.Time, who share.Submitter) (coreSeconds float64) {
	c.record.look(func(l *ledger.Ledger) { coreSeconds = l.Book().Used(now, who) })
	return coreSeconds
}

// TestUsage holds that what is held is charged, also while the schedd is away, and not for ever.
func TestUsage(t *testing.T) {
	now, ann := time.Unix(1, 0), share.Submitter{Owner: "ann"}
	c := leader(t, now, newInventory(), newRecord(func(uint64) {}))
	c.machinesChanged(now, nil, true)
	mail := newMailbox()
	c.joined(now, &wire.ScheddHello{Name: "s"}, mail)
	usage := &wire.Usage{Owner: "ann", Held: wire.FromResources(roost.Resources{CPU: 4000})}
	if err := c.heard(now, "s", mail, &wire.FromSchedd{Of: &wire.FromSchedd_Usage{Usage: usage}}); err != nil {
		t.Fatal(err)
	}
	settle := func() {
		if d, ok := c.take(now.Add(holdsEvery)); ok {
			commit(t, c, now, d)
		}
	}
	settle()
	now = now.Add(time.Hour)
	if got := used(c, now, ann); got != 4*3600 {
		t.Errorf("after an hour: %v core-seconds", got)
	}
	c.left(now, "s", mail)
	now = now.Add(heldFor)
	c.charge(now)
	settle()
	total := used(c, now, ann)
	if want := 4 * (time.Hour + heldFor).Seconds(); total != want {
		t.Errorf("while away: %v core-seconds, want %v", total, want)
	}
	if got := used(c, now.Add(time.Hour), ann); got != total {
		t.Errorf("after it was given up: %v core-seconds, want %v", got, total)
	}
}
