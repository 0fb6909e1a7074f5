package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/guard"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

func mineCommand() *command {
	return &command{
		name: "mine", group: groupOwner, summary: "what the pool does on your machine", maxOperands: 0, run: showMine,
		description: "Shows what runs on this machine now, for whom and with what; what it gave today, how often " +
			"tasks had to stop for you and how long the slowest stop took; whether it is paused; and each source by " +
			"which it notices you. It works with the pool down.",
		examples: []commandExample{
			{"roost mine", "look at your machine"},
			{"roost mine --json", "the same, for programs"},
		},
		flags: []ucli.Flag{jsonFlag()},
	}
}

func showMine(c *invocation) error {
	g, err := c.nearestGuard()
	if err != nil {
		return err
	}
	return c.withGuard(g, func(ctx context.Context, w wire.GuardClient) error {
		m, err := w.Mine(ctx, &wire.MineRequest{})
		if err != nil {
			return err
		}
		if c.wantsJSON() {
			return c.mineJSON(m)
		}
		c.mineText(m)
		return nil
	}, func(error) error {
		if p, err := guard.OfflinePause(g.dir); err == nil && p != nil && !c.wantsJSON() {
			fmt.Fprintln(c.stdout, c.pauseText(p))
		}
		return g.noGuard()
	})
}

// donatedStats sums up what the startds of a machine have given.
type donatedStats struct {
	coreHours         float64
	interruptions     uint32
	worstInterruption time.Duration
}

func donatedStatsOf(m *wire.MineReply) (g donatedStats) {
	for _, s := range m.GetStartds() {
		g.coreHours += s.GetGiven() / 3600
		g.interruptions += s.GetInterruptions()
		g.worstInterruption = max(g.worstInterruption, time.Duration(s.GetWorstFreeze()))
	}
	return g
}

func (c *invocation) mineText(m *wire.MineReply) {
	signs := m.GetSigns()
	fmt.Fprintf(c.stdout, "%s\n", c.out.colourText(bold, c.machineState(signs)))
	if why := unavailableReason(m); why != "" {
		fmt.Fprintf(c.stdout, "not lent: %s\n", printableText(why))
	}
	if signs.GetPause().GetReason() == guard.NotAccepted {
		fmt.Fprintln(c.stdout, "say yes with: roost resume")
	}
	if m.GetPolicy() != "" {
		fmt.Fprintf(c.stdout, "policy: %s\n", printableText(m.GetPolicy()))
	}
	g := donatedStatsOf(m)
	fmt.Fprintf(c.stdout, "today: %.1f core hours given, tasks stopped for you %s", g.coreHours,
		timesText(int(g.interruptions)))
	if g.worstInterruption > 0 && g.interruptions > 0 { // without: how long it took to see that there was none to stop
		fmt.Fprintf(c.stdout, ", at worst within %v", g.worstInterruption.Round(100*time.Microsecond))
	}
	fmt.Fprintln(c.stdout)
	tenants := &textTable{columns: []tableColumn{{head: "TASK"}, {head: "JOB", minWidth: 8}, {head: "FOR", minWidth: 6},
		{head: "STATE"}, {head: "CPUS", rightAligned: true}, {head: "MEMORY", rightAligned: true},
		{head: "GPUS", rightAligned: true}, {head: "SINCE"}}}
	for _, s := range m.GetStartds() {
		for _, t := range s.GetTenants() {
			gpus := ""
			if t.GetGpus() > 0 {
				gpus = fmt.Sprint(t.GetGpus())
			}
			tenants.addRow(tableCell{t.GetTask(), ""}, tableCell{printableText(t.GetName()), ""},
				tableCell{printableText(t.GetOwner()), ""}, tableCell{t.GetState(), ""},
				tableCell{fmt.Sprintf("%.1f", float64(t.GetMilliCpu())/1000), ""},
				tableCell{roost.Bytes(t.GetMemory()).String(), ""}, tableCell{gpus, ""},
				tableCell{c.agoText(t.GetSince()), ""})
		}
	}
	fmt.Fprintln(c.stdout)
	if len(tenants.rows) == 0 {
		fmt.Fprintln(c.stdout, "nothing of the pool runs here")
	} else {
		tenants.dropEmptyColumns("GPUS")
		tenants.print(c.stdout, c.out)
	}
	fmt.Fprintln(c.stdout)
	c.sourceTable(signs).print(c.stdout, c.out)
}

// unavailableReason is why the machine is not lent though nobody uses it; empty where it
// is, or where whose it is says so already. Each startd has its own policy.
func unavailableReason(m *wire.MineReply) string {
	s := m.GetSigns()
	if s.GetPause() != nil || s.GetBusy() != "" || s.GetAsleep() || s.GetGame() {
		return ""
	}
	var all []string
	for _, d := range m.GetStartds() {
		if why := d.GetNotLent(); why != "" && len(m.GetStartds()) > 1 {
			all = append(all, d.GetStartd()+": "+why)
		} else if why != "" {
			all = append(all, why)
		}
	}
	return strings.Join(all, "; ")
}

// timesText is how often something happened.
func timesText(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// machineState says in one line whose the machine is now.
func (c *invocation) machineState(s *wire.GuardSigns) string {
	switch {
	case s.GetPause() != nil:
		return c.pauseText(s.GetPause())
	case s.GetBusy() != "":
		return "yours: " + printableText(s.GetBusy())
	case s.GetAsleep():
		return "yours: it goes to sleep, or has just woken"
	case s.GetGame():
		return "yours: a program runs that wants the machine for itself"
	case s.GetForeignBusySince() != 0:
		return fmt.Sprintf("yours: programs of its own keep %.1f cores busy", s.GetForeignCpu())
	}
	text := "nobody has touched it since it is watched"
	if s.GetInput() != 0 {
		text = "last touched " + spanText(sinceBootTime(s.GetInput())) + " ago"
	}
	if s.GetOnBattery() {
		text += ", on battery"
	}
	if s.GetHot() {
		text += ", hot"
	}
	return text
}

// sinceBootTime is how long an instant of CLOCK_BOOTTIME is past.
func sinceBootTime(at int64) time.Duration { return max(idle.Now()-time.Duration(at), 0) }

func (c *invocation) sourceTable(s *wire.GuardSigns) *textTable {
	t := &textTable{columns: []tableColumn{{head: "SOURCE"}, {head: "HEALTH"}, {head: "LAST", rightAligned: true},
		{head: "WHAT IT SEES", minWidth: 20}}}
	for _, source := range s.GetSources() {
		last, colour := "", ""
		if source.GetLast() != 0 {
			last = spanText(sinceBootTime(source.GetLast())) + " ago"
		}
		if source.GetHealth() == wire.IdleSource_BROKEN {
			colour = red
		}
		t.addRow(tableCell{printableText(source.GetName()), ""},
			tableCell{idle.SourceHealth(source.GetHealth()).String(), colour}, tableCell{last, ""},
			tableCell{printableText(source.GetText()), dim})
	}
	t.dropEmptyColumns("LAST")
	return t
}

func (c *invocation) mineJSON(m *wire.MineReply) error {
	type tenant struct {
		Task   string  `json:"task"`
		Name   string  `json:"name"`
		Owner  string  `json:"owner"`
		State  string  `json:"state"`
		CPUs   float64 `json:"cpus"`
		Memory int64   `json:"memory_bytes"`
		GPUs   uint32  `json:"gpus"`
		Since  string  `json:"since"`
	}
	type sourceText struct {
		Name     string   `json:"name"`
		Health   string   `json:"health"`
		Text     string   `json:"text"`
		Hardware bool     `json:"hardware"`
		Idle     *float64 `json:"idle_seconds,omitempty"`
	}
	ago := func(at int64) *float64 {
		if at == 0 {
			return nil
		}
		s := sinceBootTime(at).Seconds()
		return &s
	}
	s, g := m.GetSigns(), donatedStatsOf(m)
	tenants, sources := []tenant{}, []sourceText{}
	for _, d := range m.GetStartds() {
		for _, t := range d.GetTenants() {
			tenants = append(tenants, tenant{t.GetTask(), t.GetName(), t.GetOwner(), t.GetState(),
				float64(t.GetMilliCpu()) / 1000, t.GetMemory(), t.GetGpus(), timestamp(t.GetSince())})
		}
	}
	for _, x := range s.GetSources() {
		sources = append(sources, sourceText{x.GetName(), idle.SourceHealth(x.GetHealth()).String(), x.GetText(),
			x.GetHardware(), ago(x.GetLast())})
	}
	return printJSON(c.stdout, jsonDocument{
		"pause": pauseDocument(s.GetPause()), "busy": s.GetBusy(), "idle_seconds": ago(s.GetInput()),
		"policy": m.GetPolicy(), "not_lent": unavailableReason(m),
		"foreign_cpus": s.GetForeignCpu(), "memory_pressure": s.GetMemoryPressure(), "on_battery": s.GetOnBattery(),
		"hot": s.GetHot(), "game": s.GetGame(), "asleep": s.GetAsleep(),
		"today": jsonDocument{"core_hours": g.coreHours, "interruptions": g.interruptions,
			"worst_freeze_seconds": g.worstInterruption.Seconds()}, "tasks": tenants, "sources": sources,
	})
}
