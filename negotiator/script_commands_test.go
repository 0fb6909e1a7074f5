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
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/internal/script"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// scriptCommands are the commands of the scripts, which TestStories lists. A command's
// result is printed in place of what the schedds get.
func scriptCommands() map[string]func(*scriptRunner, scriptLine) string {
	return map[string]func(*scriptRunner, scriptLine) string{
		"machine": (*scriptRunner).machine,
		"gone": silentCommand(func(p *scriptRunner, s scriptLine) {
			p.cell.updateMachines(p.now, []machineUpdate{{name: s.Args[0]}}, false)
		}),
		"synced": silentCommand(func(p *scriptRunner, _ scriptLine) { p.cell.updateMachines(p.now, nil, true) }),
		"join": silentCommand(func(p *scriptRunner, s scriptLine) {
			p.sendQueue[s.Args[0]] = newSendQueue()
			p.cell.addStream(p.now, p.readHello(s.Args), p.sendQueue[s.Args[0]])
		}),
		"leave": silentCommand(func(p *scriptRunner, s scriptLine) {
			p.cell.removeStream(p.now, s.Args[0], p.sendQueue[s.Args[0]])
		}),
		"request": (*scriptRunner).request,
		"result":  (*scriptRunner).resultText,
		"usage": silentCommand(func(p *scriptRunner, s scriptLine) {
			u := &wire.Usage{Owner: s.Args[1],
				Held: wire.FromResources(roost.Resources{CPU: 1000 * roost.MilliCPU(s.numberOf("cpus"))})}
			p.receiveMessage(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Usage{Usage: u}})
		}),
		"demand": silentCommand(func(p *scriptRunner, s scriptLine) {
			p.receiveMessage(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Demand{Demand: s.resourceDemand()}})
		}),
		"admit": silentCommand(func(p *scriptRunner, s scriptLine) {
			p.receiveMessage(s.Args[0],
				&wire.FromSchedd{Of: &wire.FromSchedd_Admit{Admit: &wire.Admit{Id: s.numericID(),
					Asks: []*wire.Demand{s.resourceDemand()}, Moved: s.pairs["moved"] != ""}}})
		}),
		"why": silentCommand(func(p *scriptRunner, s scriptLine) {
			p.receiveMessage(s.Args[0],
				&wire.FromSchedd{Of: &wire.FromSchedd_Why{Why: &wire.WhyWaiting{Request: s.numericID()}}})
		}),
		"told": silentCommand(func(p *scriptRunner, s scriptLine) {
			p.receiveMessage(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Told{Told: &wire.Told{}}})
		}),
		"set":     (*scriptRunner).setObject,
		"outcome": (*scriptRunner).endAttempt,
		"setting": silentCommand(func(p *scriptRunner, s scriptLine) {
			p.commitAdmin(ledger.AdminCommand{Verb: ledger.VerbSet, Kind: ledger.KindSetting,
				Object: fmt.Appendf(nil, `{"name": %q, "value": %q}`, s.Args[0], s.Args[1])})
		}),
		"undrain": silentCommand(func(p *scriptRunner, s scriptLine) {
			p.commitAdmin(ledger.AdminCommand{Verb: ledger.VerbRemove, Kind: ledger.KindDrain, Name: s.Args[0]})
		}),
		"limits": (*scriptRunner).limits,
		"drains": func(p *scriptRunner, _ scriptLine) string { return p.drains() },
		"stall":  silentCommand(func(p *scriptRunner, _ scriptLine) { p.stalled = true }),
		"commit": silentCommand(func(p *scriptRunner, _ scriptLine) { p.stalled = false }),
		"lead":   silentCommand(func(p *scriptRunner, _ scriptLine) { p.makeLeader() }),
		"tick": silentCommand(func(p *scriptRunner, s scriptLine) {
			d, err := time.ParseDuration(s.Args[0])
			if err != nil {
				p.t.Fatal(err)
			}
			p.now = p.now.Add(d)
		}),
	}
}

// silentCommand returns a command that prints nothing of its own.
func silentCommand(do func(*scriptRunner, scriptLine)) func(*scriptRunner, scriptLine) string {
	return func(p *scriptRunner, s scriptLine) string {
		do(p, s)
		return ""
	}
}

// scriptLine is a command with its key=value arguments.
type scriptLine struct {
	script.ScriptCommand
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

// numberOf returns the value of a key, 0 if it is not there.
func (s scriptLine) numberOf(key string) int64 {
	n, _ := strconv.ParseInt(s.pairs[key], 10, 64)
	return n
}

// numericID returns the second argument, a number.
func (s scriptLine) numericID() uint64 {
	n, _ := strconv.ParseUint(s.Args[1], 10, 64)
	return n
}

// resourceDemand returns the demand that a command describes.
func (s scriptLine) resourceDemand() *wire.Demand {
	number := func(key string, otherwise int64) int64 {
		if _, ok := s.pairs[key]; !ok {
			return otherwise
		}
		return s.numberOf(key)
	}
	tasks := number("tasks", 1)
	return &wire.Demand{
		Owner: s.pairs["owner"], Group: s.pairs["group"], Band: cmp.Or(s.pairs["band"], "batch"),
		Queue: s.pairs["queue"], Tasks: uint32(tasks),
		Open: uint32(number("open", tasks)),
		Held: wire.FromResources(roost.Resources{CPU: 1000 * roost.MilliCPU(s.numberOf("cpus"))}),
		Seen: uint64(s.numberOf("seen")), UnixGroup: s.pairs["unix"],
		OpenHeld: wire.FromResources(roost.Resources{CPU: 1000 * roost.MilliCPU(s.numberOf("cpus"))}),
	}
}

func (p *scriptRunner) machine(s scriptLine) string {
	change := adclient.AdChange{
		Name: s.Args[0], Sequence: uint64(s.numberOf("sequence")), Started: 1 + s.numberOf("start"),
		Ad: fmt.Sprintf(`[Name = "%s"; Cpus = %s; TotalCpus = %s; MyAddress = "unix:/x"]`,
			s.Args[0], cmp.Or(s.pairs["free"], s.pairs["cpus"]), s.pairs["cpus"]),
		Private: map[string]string{grantKey: hex.EncodeToString(testKey)},
	}
	if d, err := time.ParseDuration(s.pairs["clock"]); err == nil {
		change.Private[clockKey] = fmt.Sprint(int64(d))
	}
	if text := s.pairs["licences"]; text != "" {
		change.Ad = strings.TrimSuffix(change.Ad, "]") +
			fmt.Sprintf(`; Claims = {[Id = 1; Owner = "ann"; Band = "batch"; Cpus = 1; %s = "%s"]}]`,
				roost.AttrLimits, text)
	}
	if text := s.pairs["prod"]; text != "" {
		owner, cpus, _ := strings.Cut(text, ":")
		change.Ad = strings.TrimSuffix(change.Ad, "]") +
			fmt.Sprintf(`; Claims = {[Id = 1; Owner = %q; Band = "production"; Cpus = %s]}]`, owner, cpus)
	}
	if job := s.pairs["runs"]; job != "" {
		change.Ad = strings.TrimSuffix(change.Ad, "]") +
			fmt.Sprintf(`; Claims = {[Id = 1; Owner = "ann"; Band = "batch"; Cpus = 1; %s = "%s"]}]`,
				roost.AttrJob, job)
	}
	p.cell.updateMachines(p.now, []machineUpdate{parseMachineUpdate(p.now, change, p.cell.log)}, false)
	return ""
}

func (p *scriptRunner) request(s scriptLine) string {
	u := &wire.RequestUpdate{
		Id: s.numericID(), Now: s.pairs["now"] == "yes", Queue: s.pairs["queue"], Owner: s.pairs["owner"],
		Group: s.pairs["group"], Band: s.pairs["band"], UnixGroup: s.pairs["unix"],
		Wanted: uint32(s.numberOf("wanted")), Claims: uint32(s.numberOf("claims")),
		Counting: wire.RequestUpdate_Counting(wire.RequestUpdate_Counting_value[strings.ToUpper(s.pairs["counting"])]),
		Lost:     uint32(s.numberOf("lost")), Gang: uint32(s.numberOf("gang")), Lead: uint64(s.numberOf("lead")),
		Resources: wire.FromResources(roost.Resources{CPU: 1000 * roost.MilliCPU(max(1, s.numberOf("cpus")))}),
		Ad:        strings.Join(s.Input, "\n"),
	}
	for _, text := range strings.FieldsFunc(s.pairs["propose"], func(c rune) bool { return c == ',' }) {
		node, units, _ := strings.Cut(text, ":")
		n, _ := strconv.ParseUint(units, 10, 32)
		u.Proposals = append(u.Proposals, &wire.Proposal{Node: node, Units: uint32(n)})
	}
	if _, ok := s.pairs["seen"]; ok {
		seen := uint64(s.numberOf("seen"))
		u.GrantsSeen = &seen
	}
	p.receiveMessage(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Request{Request: u}})
	return ""
}

func (p *scriptRunner) resultText(s scriptLine) string {
	r := &wire.GrantResult{Grant: s.numericID(), Claimed: s.Args[2] == "claimed",
		AdSequence: uint64(s.numberOf("sequence")), Reason: "no"}
	if known := p.cell.pendingByID[r.Grant]; known != nil {
		r.Epoch = known.epoch
	}
	p.receiveMessage(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Result{Result: r}})
	return ""
}

// setObject sets an object, and prints why it is refused.
func (p *scriptRunner) setObject(s scriptLine) string {
	e := ledger.LogEntry{At: p.now.UnixNano(), Epoch: p.cell.epoch, Commands: []ledger.AdminCommand{{
		Trusted: true, Verb: ledger.VerbSet, Kind: ledger.ObjectKind(s.Args[0]),
		Object: []byte(strings.Join(s.Input, "\n")),
	}}}
	if err := p.cell.ledgerStore.Apply(0, e.Encode(nil)).(ledger.EntryResult).Commands[0]; err != nil {
		return err.Error()
	}
	p.cell.changed = true
	return ""
}

func (p *scriptRunner) endAttempt(s scriptLine) string {
	for _, task := range s.Args[4:] {
		job, _, _ := strings.Cut(task, "[")
		p.receiveMessage(s.Args[0], &wire.FromSchedd{Of: &wire.FromSchedd_Outcome{Outcome: &wire.Outcome{
			Node: s.Args[1], Verdict: wire.Outcome_Verdict(wire.Outcome_Verdict_value[strings.ToUpper(s.Args[2])]),
			Owner:   s.Args[3],
			Request: 1, Task: task, Job: job, Ran: int64(time.Second), Reason: "exit 1",
		}}})
	}
	return ""
}

// commitAdmin commits a command of an administrator.
func (p *scriptRunner) commitAdmin(command ledger.AdminCommand) {
	command.Who, command.Trusted = "root@head", true
	e := ledger.LogEntry{At: p.now.UnixNano(), Epoch: p.cell.epoch, Commands: []ledger.AdminCommand{command}}
	result := p.cell.ledgerStore.Apply(0, e.Encode(nil)).(ledger.EntryResult)
	if err := errors.Join(append(result.Commands, result.Err)...); err != nil {
		p.t.Fatal(err)
	}
	p.cell.changed = true
}

func (p *scriptRunner) drains() string {
	var b strings.Builder
	p.cell.ledgerStore.view(func(l *ledger.Ledger) {
		for _, d := range l.Drains() {
			fmt.Fprintf(&b, "%s for %v: %s\n", d.Node, d.Until.Sub(p.now), d.Reason)
		}
		for _, pair := range l.AvoidPairs() {
			fmt.Fprintf(&b, "%s not on %s for %v: %s\n", pair.Task, pair.Machine, pair.Until.Sub(p.now), pair.Reason)
		}
	})
	return b.String()
}

// readHello returns a schedd's first message, as a command describes it.
func (p *scriptRunner) readHello(args []string) *wire.ScheddHello {
	m := &wire.ScheddHello{Name: args[0]}
	for _, a := range args[1:] {
		if a == "tells" {
			m.Tells = true
			continue
		}
		id, sequence, claimed := strings.Cut(a, "=")
		g := &wire.HeldGrant{Claimed: claimed}
		g.Grant, _ = strconv.ParseUint(id, 10, 64)
		if known := p.cell.pendingByID[g.Grant]; known != nil {
			g.Epoch = known.epoch
		}
		g.AdSequence, _ = strconv.ParseUint(sequence, 10, 64)
		if m.Lists = true; a != "lists" {
			m.Grants = append(m.Grants, g)
		}
	}
	return m
}

func (p *scriptRunner) limits(scriptLine) string {
	var b strings.Builder
	var all map[string]match.ConcurrencyLimit
	p.cell.ledgerStore.view(func(l *ledger.Ledger) { all = p.cell.cellState(p.now).Snapshot(l).Limits })
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s: %d of %d\n", name, all[name].Used, all[name].Total)
	}
	return b.String()
}
