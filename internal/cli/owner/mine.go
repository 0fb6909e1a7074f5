package owner

import (
	"context"
	"fmt"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/desktop/guard"
	"github.com/roost-batch/roost/startd/desktop/idle"
)

// MineCommand returns roost mine: what the pool does on your machine.
func MineCommand() *frame.Command {
	return &frame.Command{
		Name: "mine", Group: frame.GroupOwner, Summary: "what the pool does on your machine", MaxOperands: 0,
		Run: showMine,
		Description: "Shows what runs on this machine now, for whom and with what; what it gave today, how often " +
			"tasks had to stop for you and how long the slowest stop took; whether it is paused; and each source by " +
			"which it notices you. It works with the pool down. With --web it shows this on a page, which has " +
			"buttons to pause and resume, and prints a link to it that can be used once; it serves the page until " +
			"Ctrl-C, or until nobody has looked for half an hour.",
		Examples: []frame.Example{
			{Line: "roost mine", Description: "look at your machine"},
			{Line: "roost mine --json", Description: "the same, for programs"},
			{Line: "roost mine --web", Description: "the same, as a page"},
		},
		Flags: []ucli.Flag{&ucli.BoolFlag{Name: "web", Usage: "serve a page for this user, on this machine alone"},
			frame.JSONFlag()},
	}
}

func showMine(c *frame.Invocation) error {
	g, err := NearestGuard(c)
	if err != nil {
		return err
	}
	if c.Flag("web") {
		return serveMine(c, g)
	}
	return WithGuard(c, g, func(ctx context.Context, w wire.GuardClient) error {
		m, err := w.Mine(ctx, &wire.MineRequest{})
		if err != nil {
			return err
		}
		if c.WantsJSON() {
			return frame.PrintDocument(c.Stdout, ownMachine(c, m))
		}
		mineText(c, m)
		return nil
	}, func(error) error {
		if p, err := guard.OfflinePause(g.dir); err == nil && p != nil && !c.WantsJSON() {
			fmt.Fprintln(c.Stdout, pauseText(c, p))
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

func mineText(c *frame.Invocation, m *wire.MineReply) {
	signs := m.GetSigns()
	fmt.Fprintf(c.Stdout, "%s\n", c.OutScreen.ColourText(frame.Bold, machineState(c, signs)))
	if why := unavailableReason(m); why != "" {
		fmt.Fprintf(c.Stdout, "not lent: %s\n", document.PrintableText(why))
	}
	if signs.GetPause().GetReason() == guard.NotAccepted {
		fmt.Fprintln(c.Stdout, "say yes with: roost resume")
	}
	if m.GetPolicy() != "" {
		fmt.Fprintf(c.Stdout, "policy: %s\n", document.PrintableText(m.GetPolicy()))
	}
	g := donatedStatsOf(m)
	fmt.Fprintf(c.Stdout, "today: %.1f core hours given, tasks stopped for you %s", g.coreHours,
		timesText(int(g.interruptions)))
	if g.worstInterruption > 0 && g.interruptions > 0 { // without: how long it took to see that there was none to stop
		fmt.Fprintf(c.Stdout, ", at worst within %v", g.worstInterruption.Round(100*time.Microsecond))
	}
	fmt.Fprintln(c.Stdout)
	tenants := &frame.TextTable{Columns: []frame.TableColumn{{Head: "TASK"}, {Head: "JOB", MinWidth: 8},
		{Head: "FOR", MinWidth: 6},
		{Head: "STATE"}, {Head: "CPUS", RightAligned: true}, {Head: "MEMORY", RightAligned: true},
		{Head: "GPUS", RightAligned: true}, {Head: "SINCE"}}}
	for _, s := range m.GetStartds() {
		for _, t := range s.GetTenants() {
			gpus := ""
			if t.GetGpus() > 0 {
				gpus = fmt.Sprint(t.GetGpus())
			}
			tenants.AddRow(frame.TableCell{Text: t.GetTask()},
				frame.TableCell{Text: document.PrintableText(t.GetName())},
				frame.TableCell{Text: document.PrintableText(t.GetOwner())}, frame.TableCell{Text: t.GetState()},
				frame.TableCell{Text: fmt.Sprintf("%.1f", float64(t.GetMilliCpu())/1000)},
				frame.TableCell{Text: roost.Bytes(t.GetMemory()).String()}, frame.TableCell{Text: gpus},
				frame.TableCell{Text: c.AgoText(t.GetSince())})
		}
	}
	fmt.Fprintln(c.Stdout)
	if len(tenants.Rows) == 0 {
		fmt.Fprintln(c.Stdout, "nothing of the pool runs here")
	} else {
		tenants.DropEmptyColumns("GPUS")
		tenants.Print(c.Stdout, c.OutScreen)
	}
	fmt.Fprintln(c.Stdout)
	sourceTable(c, signs).Print(c.Stdout, c.OutScreen)
}

// unavailableReason is why the machine is not lent though nobody uses it. It is empty
// where the machine is lent, or where its state says so already. Each startd has its own
// policy.
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
func machineState(c *frame.Invocation, s *wire.GuardSigns) string {
	switch {
	case s.GetPause() != nil:
		return pauseText(c, s.GetPause())
	case s.GetBusy() != "":
		return "yours: " + document.PrintableText(s.GetBusy())
	case s.GetAsleep():
		return "yours: it goes to sleep, or has just woken"
	case s.GetGame():
		return "yours: a program runs that wants the machine for itself"
	case s.GetForeignBusySince() != 0:
		return fmt.Sprintf("yours: programs of its own keep %.1f cores busy", s.GetForeignCpu())
	}
	text := "nobody has touched it since it is watched"
	if s.GetInput() != 0 {
		text = "last touched " + document.SpanText(sinceBootTime(s.GetInput())) + " ago"
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
func sinceBootTime(at int64) time.Duration { return max(boottime.Now()-time.Duration(at), 0) }

func sourceTable(c *frame.Invocation, s *wire.GuardSigns) *frame.TextTable {
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "SOURCE"}, {Head: "HEALTH"},
		{Head: "LAST", RightAligned: true},
		{Head: "WHAT IT SEES", MinWidth: 20}}}
	for _, source := range s.GetSources() {
		last, colour := "", ""
		if source.GetLast() != 0 {
			last = document.SpanText(sinceBootTime(source.GetLast())) + " ago"
		}
		if source.GetHealth() == wire.IdleSource_BROKEN {
			colour = frame.Red
		}
		t.AddRow(frame.TableCell{Text: document.PrintableText(source.GetName())},
			frame.TableCell{Text: idle.SourceHealth(source.GetHealth()).String(), Colour: colour},
			frame.TableCell{Text: last},
			frame.TableCell{Text: document.PrintableText(source.GetText()), Colour: frame.Dim})
	}
	t.DropEmptyColumns("LAST")
	return t
}
