package negotiator

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/advertise"
	"github.com/roost-batch/roost/internal/story"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/share"
)

var testKey = []byte("the key of every machine in here")

// TestStories runs the scripts in testdata: what the cell hears, and what it then puts into the schedds' mailboxes. Commands:
//
//	machine NAME sequence=N [start=N] cpus=N [free=N]    an ad
//	gone NAME
//	synced
//	join SCHEDD, leave SCHEDD
//	request SCHEDD ID owner=NAME wanted=N [cpus=N] [claims=N] [seen=N] [band=B] [lost=N] [gang=N] [propose=NODE:N,…]    with the ad as input
//	result SCHEDD GRANT claimed|refused [sequence=N]
//	usage SCHEDD OWNER cpus=N
//	demand SCHEDD owner=NAME [group=NAME] [band=B] cpus=N [tasks=N] [open=N] [queue=Q] [seen=ID]
//	admit SCHEDD ID …    likewise: somebody submits what asks for so much
//	why SCHEDD ID    somebody asks
//	set KIND                     by an administrator, with the object as input
//	outcome SCHEDD NODE good|failed|spoiled OWNER TASK...    attempts of request 1 end after a second; the job is the task up to its "["
//	setting NAME VALUE, undrain NODE    what an administrator does
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

func (p *player) play(s story.Step) string {
	pairs := map[string]string{}
	for _, a := range s.Args {
		if k, v, ok := strings.Cut(a, "="); ok {
			pairs[k] = v
		}
	}
	number := func(key string) int64 {
		n, _ := strconv.ParseInt(pairs[key], 10, 64)
		return n
	}
	switch s.Command {
	case "machine":
		if pairs["free"] == "" {
			pairs["free"] = pairs["cpus"]
		}
		change := advertise.Change{
			Name: s.Args[0], Sequence: uint64(number("sequence")), Started: 1 + number("start"),
			Ad:      fmt.Sprintf(`[Name = "%s"; Cpus = %s; TotalCpus = %s; MyAddress = "unix:/x"]`, s.Args[0], pairs["free"], pairs["cpus"]),
			Private: map[string]string{grantKey: hex.EncodeToString(testKey)},
		}
		p.cell.machinesChanged([]machineNews{readMachine(change, p.cell.log)}, false)
	case "gone":
		p.cell.machinesChanged([]machineNews{{name: s.Args[0]}}, false)
	case "synced":
		p.cell.machinesChanged(nil, true)
	case "join":
		p.mail[s.Args[0]] = newMailbox()
		p.cell.joined(p.now, s.Args[0], p.mail[s.Args[0]])
	case "leave":
		p.cell.left(p.now, s.Args[0], p.mail[s.Args[0]])
	case "request":
		u := &wire.RequestUpdate{
			Queue: pairs["queue"], Owner: pairs["owner"], Group: pairs["group"], Wanted: uint32(number("wanted")), Claims: uint32(number("claims")), Band: pairs["band"], Lost: uint32(number("lost")),
			Gang:      uint32(number("gang")),
			Resources: wire.FromResources(roost.Resources{CPU: 1000 * roost.MilliCPU(max(1, number("cpus")))}), Ad: strings.Join(s.Input, "\n"),
		}
		u.Id, _ = strconv.ParseUint(s.Args[1], 10, 64)
		for _, text := range strings.FieldsFunc(pairs["propose"], func(c rune) bool { return c == ',' }) {
			node, units, _ := strings.Cut(text, ":")
			n, _ := strconv.ParseUint(units, 10, 32)
			u.Proposals = append(u.Proposals, &wire.Proposal{Node: node, Units: uint32(n)})
		}
		if _, ok := pairs["seen"]; ok {
			seen := uint64(number("seen"))
			u.GrantsSeen = &seen
		}
		p.hear(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: u}})
	case "result":
		r := &wire.GrantResult{Claimed: s.Args[2] == "claimed", AdSequence: uint64(number("sequence")), Reason: "no"}
		r.Grant, _ = strconv.ParseUint(s.Args[1], 10, 64)
		p.hear(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Result{Result: r}})
	case "usage":
		u := &wire.Usage{Owner: s.Args[1], Held: wire.FromResources(roost.Resources{CPU: 1000 * roost.MilliCPU(number("cpus"))})}
		p.hear(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Usage{Usage: u}})
	case "demand":
		p.hear(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Demand{Demand: p.ask(pairs)}})
	case "admit":
		m := &wire.Admit{}
		m.Id, _ = strconv.ParseUint(s.Args[1], 10, 64)
		m.Asks = []*wire.Demand{p.ask(pairs)}
		p.hear(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Admit{Admit: m}})
	case "why":
		id, _ := strconv.ParseUint(s.Args[1], 10, 64)
		p.hear(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Why{Why: &wire.WhyWaiting{Request: id}}})
	case "set":
		e := ledger.Entry{At: p.now.UnixNano(), Epoch: p.cell.epoch, Commands: []ledger.Command{{
			Trusted: true, Verb: ledger.Set, Kind: ledger.Kind(s.Args[0]), Object: []byte(strings.Join(s.Input, "\n")),
		}}}
		if err := p.cell.record.Apply(0, e.Encode(nil)).(ledger.Result).Commands[0]; err != nil {
			return err.Error()
		}
		p.cell.changed = true
	case "outcome":
		for _, task := range s.Args[4:] {
			job, _, _ := strings.Cut(task, "[")
			p.hear(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Outcome{Outcome: &wire.Outcome{
				Node: s.Args[1], Verdict: wire.Outcome_Verdict(wire.Outcome_Verdict_value[strings.ToUpper(s.Args[2])]), Owner: s.Args[3],
				Request: 1, Task: task, Job: job, Ran: int64(time.Second), Reason: "exit 1",
			}}})
		}
	case "setting":
		p.administer(ledger.Command{Verb: ledger.Set, Kind: ledger.KindSetting, Object: fmt.Appendf(nil, `{"name": %q, "value": %q}`, s.Args[0], s.Args[1])})
	case "undrain":
		p.administer(ledger.Command{Verb: ledger.Remove, Kind: ledger.KindDrain, Name: s.Args[0]})
	case "drains":
		return p.drains()
	case "stall":
		p.stalled = true
	case "commit":
		p.stalled = false
	case "lead":
		p.lead()
	case "tick":
		d, err := time.ParseDuration(s.Args[0])
		if err != nil {
			p.t.Fatal(err)
		}
		p.now = p.now.Add(d)
	default:
		p.t.Fatalf("unknown command %s", s.Command)
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

// administer has a command of somebody else's committed.
func (p *player) administer(command ledger.Command) {
	command.Who, command.Trusted = "root@head", true
	e := ledger.Entry{At: p.now.UnixNano(), Epoch: p.cell.epoch, Commands: []ledger.Command{command}}
	result := p.cell.record.Apply(0, e.Encode(nil)).(ledger.Result)
	if err := errors.Join(append(result.Commands, result.Err)...); err != nil {
		p.t.Fatal(err)
	}
	p.cell.changed = true
}

func (p *player) drains() string {
	var b strings.Builder
	p.cell.record.look(func(l *ledger.Ledger) {
		for _, d := range l.Drains() {
			fmt.Fprintf(&b, "%s for %v: %s\n", d.Node, d.Until.Sub(p.now), d.Reason)
		}
		for _, pair := range l.Pairs() {
			fmt.Fprintf(&b, "%s not on %s for %v: %s\n", pair.Task, pair.Machine, pair.Until.Sub(p.now), pair.Reason)
		}
	})
	return b.String()
}

// ask is what jobs may hold at once.
func (p *player) ask(pairs map[string]string) *wire.Demand {
	number := func(key string, otherwise int64) int64 {
		n, err := strconv.ParseInt(pairs[key], 10, 64)
		if err != nil {
			return otherwise
		}
		return n
	}
	tasks := number("tasks", 1)
	return &wire.Demand{
		Owner: pairs["owner"], Group: pairs["group"], Band: cmp.Or(pairs["band"], "batch"), Queue: pairs["queue"], Tasks: uint32(tasks),
		Open: uint32(number("open", tasks)), Held: wire.FromResources(roost.Resources{CPU: 1000 * roost.MilliCPU(number("cpus", 0))}),
		Seen: uint64(number("seen", 0)),
	}
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
				if !wire.CheckCapability(testKey, g) || g.GetEpoch() != p.cell.epoch {
					b.WriteString("  with a bad capability\n")
				}
			}
			if a := m.GetAdmitted(); a != nil {
				fmt.Fprintf(&b, "%s: admit %d: %s\n", name, a.GetId(), cmp.Or(a.GetError(), "yes"))
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
	c.machinesChanged(nil, true)
	mail := newMailbox()
	c.joined(now, "s", mail)
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
