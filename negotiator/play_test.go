package negotiator

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/advertise"
	"github.com/roost-batch/roost/internal/story"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// commands are those of the scripts, which TestStories lists. What one returns is printed in place of what the schedds get.
func commands() map[string]func(*player, line) string {
	return map[string]func(*player, line) string{
		"machine": (*player).machine,
		"gone":    quiet(func(p *player, s line) { p.cell.machinesChanged(p.now, []machineNews{{name: s.Args[0]}}, false) }),
		"synced":  quiet(func(p *player, _ line) { p.cell.machinesChanged(p.now, nil, true) }),
		"join": quiet(func(p *player, s line) {
			p.mail[s.Args[0]] = newMailbox()
			p.cell.joined(p.now, p.hello(s.Args), p.mail[s.Args[0]])
		}),
		"leave":   quiet(func(p *player, s line) { p.cell.left(p.now, s.Args[0], p.mail[s.Args[0]]) }),
		"request": (*player).request,
		"result":  (*player).result,
		"usage": quiet(func(p *player, s line) {
			u := &wire.Usage{Owner: s.Args[1], Held: wire.FromResources(roost.Resources{CPU: 1000 * roost.MilliCPU(s.number("cpus"))})}
			p.hear(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Usage{Usage: u}})
		}),
		"demand": quiet(func(p *player, s line) {
			p.hear(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Demand{Demand: s.demand()}})
		}),
		"admit": quiet(func(p *player, s line) {
			p.hear(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Admit{Admit: &wire.Admit{Id: s.id(), Asks: []*wire.Demand{s.demand()}, Moved: s.pairs["moved"] != ""}}})
		}),
		"why": quiet(func(p *player, s line) {
			p.hear(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Why{Why: &wire.WhyWaiting{Request: s.id()}}})
		}),
		"told": quiet(func(p *player, s line) {
			p.hear(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Told{Told: &wire.Told{}}})
		}),
		"set":     (*player).set,
		"outcome": (*player).outcome,
		"setting": quiet(func(p *player, s line) {
			p.administer(ledger.Command{Verb: ledger.Set, Kind: ledger.KindSetting, Object: fmt.Appendf(nil, `{"name": %q, "value": %q}`, s.Args[0], s.Args[1])})
		}),
		"undrain": quiet(func(p *player, s line) {
			p.administer(ledger.Command{Verb: ledger.Remove, Kind: ledger.KindDrain, Name: s.Args[0]})
		}),
		"limits": (*player).limits,
		"drains": func(p *player, _ line) string { return p.drains() },
		"stall":  quiet(func(p *player, _ line) { p.stalled = true }),
		"commit": quiet(func(p *player, _ line) { p.stalled = false }),
		"lead":   quiet(func(p *player, _ line) { p.lead() }),
		"tick": quiet(func(p *player, s line) {
			d, err := time.ParseDuration(s.Args[0])
			if err != nil {
				p.t.Fatal(err)
			}
			p.now = p.now.Add(d)
		}),
	}
}

// quiet is a command that prints nothing of its own.
func quiet(do func(*player, line)) func(*player, line) string {
	return func(p *player, s line) string {
		do(p, s)
		return ""
	}
}

// line is a command with its arguments of the form key=value.
type line struct {
	story.Step
	pairs map[string]string
}

func pairsOf(args []string) map[string]string {
	pairs := map[string]string{}
	for _, a := range args {
		if k, v, ok := strings.Cut(a, "="); ok {
			pairs[k] = v
		}
	}
	return pairs
}

// number is the value of a key, 0 if it is not there.
func (s line) number(key string) int64 {
	n, _ := strconv.ParseInt(s.pairs[key], 10, 64)
	return n
}

// id is the second argument, a number.
func (s line) id() uint64 {
	n, _ := strconv.ParseUint(s.Args[1], 10, 64)
	return n
}

// demand is what jobs may hold at once.
func (s line) demand() *wire.Demand {
	number := func(key string, otherwise int64) int64 {
		if _, ok := s.pairs[key]; !ok {
			return otherwise
		}
		return s.number(key)
	}
	tasks := number("tasks", 1)
	return &wire.Demand{
		Owner: s.pairs["owner"], Group: s.pairs["group"], Band: cmp.Or(s.pairs["band"], "batch"), Queue: s.pairs["queue"], Tasks: uint32(tasks),
		Open: uint32(number("open", tasks)), Held: wire.FromResources(roost.Resources{CPU: 1000 * roost.MilliCPU(s.number("cpus"))}),
		Seen: uint64(s.number("seen")), UnixGroup: s.pairs["unix"], OpenHeld: wire.FromResources(roost.Resources{CPU: 1000 * roost.MilliCPU(s.number("cpus"))}),
	}
}

func (p *player) machine(s line) string {
	change := advertise.Change{
		Name: s.Args[0], Sequence: uint64(s.number("sequence")), Started: 1 + s.number("start"),
		Ad: fmt.Sprintf(`[Name = "%s"; Cpus = %s; TotalCpus = %s; MyAddress = "unix:/x"]`,
			s.Args[0], cmp.Or(s.pairs["free"], s.pairs["cpus"]), s.pairs["cpus"]),
		Private: map[string]string{grantKey: hex.EncodeToString(testKey)},
	}
	if d, err := time.ParseDuration(s.pairs["clock"]); err == nil {
		change.Private[clockKey] = fmt.Sprint(int64(d))
	}
	if text := s.pairs["licences"]; text != "" {
		change.Ad = strings.TrimSuffix(change.Ad, "]") + fmt.Sprintf(`; Claims = {[Id = 1; Owner = "ann"; Band = "batch"; Cpus = 1; %s = "%s"]}]`, roost.AttrLimits, text)
	}
	if text := s.pairs["prod"]; text != "" {
		owner, cpus, _ := strings.Cut(text, ":")
		change.Ad = strings.TrimSuffix(change.Ad, "]") + fmt.Sprintf(`; Claims = {[Id = 1; Owner = %q; Band = "production"; Cpus = %s]}]`, owner, cpus)
	}
	if job := s.pairs["runs"]; job != "" {
		change.Ad = strings.TrimSuffix(change.Ad, "]") + fmt.Sprintf(`; Claims = {[Id = 1; Owner = "ann"; Band = "batch"; Cpus = 1; %s = "%s"]}]`, roost.AttrJob, job)
	}
	p.cell.machinesChanged(p.now, []machineNews{readMachine(p.now, change, p.cell.log)}, false)
	return ""
}

func (p *player) request(s line) string {
	u := &wire.RequestUpdate{
		Id: s.id(), Now: s.pairs["now"] == "yes", Queue: s.pairs["queue"], Owner: s.pairs["owner"], Group: s.pairs["group"], Band: s.pairs["band"], UnixGroup: s.pairs["unix"],
		Wanted: uint32(s.number("wanted")), Claims: uint32(s.number("claims")), Counting: wire.RequestUpdate_Counting(wire.RequestUpdate_Counting_value[strings.ToUpper(s.pairs["counting"])]), Lost: uint32(s.number("lost")), Gang: uint32(s.number("gang")), Lead: uint64(s.number("lead")),
		Resources: wire.FromResources(roost.Resources{CPU: 1000 * roost.MilliCPU(max(1, s.number("cpus")))}), Ad: strings.Join(s.Input, "\n"),
	}
	for _, text := range strings.FieldsFunc(s.pairs["propose"], func(c rune) bool { return c == ',' }) {
		node, units, _ := strings.Cut(text, ":")
		n, _ := strconv.ParseUint(units, 10, 32)
		u.Proposals = append(u.Proposals, &wire.Proposal{Node: node, Units: uint32(n)})
	}
	if _, ok := s.pairs["seen"]; ok {
		seen := uint64(s.number("seen"))
		u.GrantsSeen = &seen
	}
	p.hear(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: u}})
	return ""
}

func (p *player) result(s line) string {
	r := &wire.GrantResult{Grant: s.id(), Claimed: s.Args[2] == "claimed", AdSequence: uint64(s.number("sequence")), Reason: "no"}
	if known := p.cell.pending[r.Grant]; known != nil {
		r.Epoch = known.epoch
	}
	p.hear(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Result{Result: r}})
	return ""
}

// set prints why it is refused.
func (p *player) set(s line) string {
	e := ledger.Entry{At: p.now.UnixNano(), Epoch: p.cell.epoch, Commands: []ledger.Command{{
		Trusted: true, Verb: ledger.Set, Kind: ledger.Kind(s.Args[0]), Object: []byte(strings.Join(s.Input, "\n")),
	}}}
	if err := p.cell.record.Apply(0, e.Encode(nil)).(ledger.Result).Commands[0]; err != nil {
		return err.Error()
	}
	p.cell.changed = true
	return ""
}

func (p *player) outcome(s line) string {
	for _, task := range s.Args[4:] {
		job, _, _ := strings.Cut(task, "[")
		p.hear(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Outcome{Outcome: &wire.Outcome{
			Node: s.Args[1], Verdict: wire.Outcome_Verdict(wire.Outcome_Verdict_value[strings.ToUpper(s.Args[2])]), Owner: s.Args[3],
			Request: 1, Task: task, Job: job, Ran: int64(time.Second), Reason: "exit 1",
		}}})
	}
	return ""
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

// hello is what a schedd says first, in the words of the script.
func (p *player) hello(args []string) *wire.ScheddHello {
	m := &wire.ScheddHello{Name: args[0]}
	for _, a := range args[1:] {
		if a == "tells" {
			m.Tells = true
			continue
		}
		id, sequence, claimed := strings.Cut(a, "=")
		g := &wire.HeldGrant{Claimed: claimed}
		g.Grant, _ = strconv.ParseUint(id, 10, 64)
		if known := p.cell.pending[g.Grant]; known != nil {
			g.Epoch = known.epoch
		}
		g.AdSequence, _ = strconv.ParseUint(sequence, 10, 64)
		if m.Lists = true; a != "lists" {
			m.Grants = append(m.Grants, g)
		}
	}
	return m
}

func (p *player) limits(line) string {
	var b strings.Builder
	var all map[string]match.Limit
	p.cell.record.look(func(l *ledger.Ledger) { all = p.cell.picture(p.now).Snapshot(l).Limits })
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s: %d of %d\n", name, all[name].Used, all[name].Total)
	}
	return b.String()
}
