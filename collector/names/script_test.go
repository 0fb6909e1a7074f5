package names

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/script"
)

// TestScripts runs the scripts in testdata. Commands:
//
//	machine NAME ADDRESS [local]   with an endpoint in each line of the input: either the
//	                               text of an ad, or "JOB/OWNER/NAME INDEX.ATTEMPT rREVISION
//	                               STATE ADDRESS PORT=NUMBER..."
//	text NAME ADDRESS              with the text of the ad as input
//	renew NAME, remove NAME, tick DURATION
//	lookup NAME TYPE [MOST]        names are below the zone unless they end in a dot
//	watch ID OWNER NAME, take ID, end ID; - means all owners or names
//
// Answers are sorted: their order is random.
func TestScripts(t *testing.T) {
	script.Run(t, "testdata/*.txt", func(t *testing.T) func(script.ScriptCommand) string {
		p := &zoneScript{zone: New(Config{Domain: "roost.internal", Cell: "Cell"}), now: time.Unix(0, 0),
			watches: map[string]*Watch{}}
		return func(s script.ScriptCommand) string {
			out := p.run(s)
			p.zone.Check()
			return out
		}
	})
}

type zoneScript struct {
	zone    *Zone
	now     time.Time
	watches map[string]*Watch
}

func (p *zoneScript) run(s script.ScriptCommand) string {
	switch s.Command {
	case "machine", "text":
		ad := MachineAd{Name: s.Args[0], Node: s.Args[0], Addresses: []netip.Addr{netip.MustParseAddr(s.Args[1])},
			Local: slices.Contains(s.Args, "local"), Lease: DefaultLease, Text: strings.Join(s.Input, "\n")}
		if s.Command == "machine" {
			ad.Text = adText(ad.Name, s.Input)
		}
		if err := p.zone.SetMachine(p.now, p.zone.ReadMachine(p.now, ad)); err != nil {
			return err.Error()
		}
	case "renew":
		p.zone.RenewLease(p.now, s.Args[0], DefaultLease)
	case "remove":
		p.zone.RemoveMachine(p.now, s.Args[0])
	case "tick":
		d, err := time.ParseDuration(s.Args[0])
		if err != nil {
			return err.Error()
		}
		p.now = p.now.Add(d)
		p.zone.Expire(p.now)
	case "lookup":
		return p.lookup(s.Args)
	case "watch":
		p.watches[s.Args[0]] = p.zone.StartWatch(Selection{Owner: strings.Trim(s.Args[1], "-"),
			Name: strings.Trim(s.Args[2], "-")})
	case "take":
		return updateText(p.zone.Take(p.watches[s.Args[0]]))
	case "end":
		p.zone.EndWatch(p.watches[s.Args[0]])
	default:
		return "unknown command"
	}
	return fmt.Sprintf("version %d", p.zone.Version())
}

// adText returns the text of a machine ad with endpoints in the short form of scripts.
func adText(machine string, lines []string) string {
	var elements []string
	for _, line := range lines {
		if !strings.HasPrefix(line, "[") {
			line = endpointAd(strings.Fields(line))
		}
		elements = append(elements, line)
	}
	return fmt.Sprintf(`[ MyType = "Machine"; Name = %q; Endpoints = { %s }; Cpus = 8 ]`, machine,
		strings.Join(elements, ", "))
}

func endpointAd(words []string) string {
	job := strings.Split(words[0], "/")
	index, attempt, _ := strings.Cut(words[1], ".")
	return fmt.Sprintf("[ Job = %q; Owner = %q; Name = %q; Index = %s; Attempt = %s; Revision = %s; State = %q; "+
		"Address = %q; Ports = [ %s ] ]", job[0], job[1], job[2], index, attempt, words[2][1:], words[3], words[4],
		strings.Join(words[5:], "; "))
}

func (p *zoneScript) lookup(args []string) string {
	name, most := args[0], 100
	if !strings.HasSuffix(name, ".") {
		name += ".cell.roost.internal."
	}
	if len(args) > 2 {
		fmt.Sscan(args[2], &most)
	}
	types := map[string]RecordType{"A": IPv4Records, "AAAA": IPv6Records, "SRV": ServiceRecords, "TXT": TextRecords}
	a := p.zone.Lookup(name, types[args[1]], most, func(n int) int { return n / 2 })
	var lines []string
	for _, address := range a.Addresses {
		lines = append(lines, address.String())
	}
	for _, r := range a.Services {
		lines = append(lines, fmt.Sprintf("%d %d %s %v", r.Weight, r.Port, r.Target, r.Address))
	}
	lines = append(lines, a.Text...)
	slices.Sort(lines)
	if len(lines) == 0 {
		lines = []string{[...]string{"not in the zone", "no such name", "no data", "origin"}[a.Status]}
	}
	return strings.Join(lines, "\n")
}

func updateText(u Update) string {
	var out strings.Builder
	fmt.Fprintf(&out, "version %d", u.Version)
	if u.Full {
		out.WriteString(" full")
	}
	for _, e := range u.Endpoints {
		fmt.Fprintf(&out, "\n%d.%s.%s %s attempt %d %v %v", e.Index, e.Name, e.Owner, e.Job, e.Attempt, e.State,
			e.Address)
	}
	for _, k := range u.Removed {
		fmt.Fprintf(&out, "\n%d.%s.%s %s gone", k.Index, k.Name, k.Owner, k.Job)
	}
	return out.String()
}
