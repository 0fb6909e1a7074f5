package sim

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	ucli "github.com/urfave/cli/v2"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/sim/faults"
	"github.com/roost-batch/roost/internal/sim/fuzz"
)

func faultsSubcommand() (frame.Subcommand, []ucli.Flag) {
	return frame.Subcommand{Name: "faults", Summary: "break pools, and hold them against what Roost promises",
			Run: faultRuns}, []ucli.Flag{
			seedsFlag(),
			&ucli.Uint64Flag{Name: "from", Usage: "faults: the first of them: `SEED`"},
			&ucli.StringFlag{Name: "kinds", Usage: "faults: only faults of these `KINDS`, with commas between them"},
			&ucli.IntFlag{Name: "incidents",
				Usage: "faults: at most `N` in a run; a partition is one, and may be many faults"},
			&ucli.IntFlag{Name: "jobs", Usage: "faults: at most `N` in a run"},
			machinesFlag(),
			&ucli.IntFlag{Name: "schedds", Usage: "faults: at most `N` submit nodes in a run"},
			&ucli.IntFlag{Name: "managers", Usage: "faults: `N` central managers in a run, or one"},
			&ucli.StringFlag{Name: "calm", Usage: "faults: all faults are over after this `DURATION`"},
			untilFlag(), onceFlag(),
			frame.JSONFlag(),
		}
}

// seedsFlag is of all that is done for several seeds.
func seedsFlag() ucli.Flag {
	return &ucli.IntFlag{Name: "seeds",
		Usage: "pack, compact: of so many random orders; faults: try so many seeds: `N`"}
}

// defaultSeeds is how many are tried if nobody says how many, from the first on.
const (
	defaultSeeds     = 100
	defaultFirstSeed = 1
)

// defaultParallel is how many runs are under way.
const defaultParallel = 2

// minimizeTimeout is how often a run that broke a promise is played again to find a
// shorter one.
const minimizeTimeout = 2000

func faultRuns(c *frame.Invocation, _ []string) error {
	size, err := faultLimits(c)
	if err != nil {
		return err
	}
	seeds, from := c.CountFlag("seeds"), c.Flags.Uint64("from")
	if !c.IsFlagSet("seeds") {
		seeds = defaultSeeds
	}
	if !c.IsFlagSet("from") {
		from = defaultFirstSeed
	}
	if seeds < 1 {
		return frame.UsageErrorf("--seeds %d: there must be one at least", seeds)
	}
	h := &fuzzCampaign{Invocation: c, size: size, playSeed: fuzz.RunTwice, firstSeed: from, seeds: seeds,
		began: time.Now()}
	if c.Flag("once") {
		h.playSeed = fuzz.RunCase
	}
	h.startBar()
	seed, broken := h.runSeeds()
	h.endBar()
	if c.Context.Err() != nil {
		return c.Context.Err()
	}
	if c.WantsJSON() {
		if err := h.json(seed, broken); err != nil {
			return err
		}
	} else {
		h.print(c.Stdout)
		if broken != nil {
			h.minimizedScript(c.Stdout, seed, broken)
		}
	}
	if broken != nil {
		return frame.ExitError(1)
	}
	return nil
}

// faultLimits reads what bounds the runs.
func faultLimits(c *frame.Invocation) (s fuzz.DrawLimits, err error) {
	s = fuzz.DefaultSize()
	for _, one := range []struct {
		flag string
		to   *int
	}{{"managers", &s.Managers}, {"schedds", &s.Schedds}, {"machines", &s.Machines}, {"jobs", &s.Jobs},
		{"incidents", &s.Faults}} {
		if !c.IsFlagSet(one.flag) {
			continue
		}
		if *one.to = c.CountFlag(one.flag); *one.to < 1 || *one.to > 1000 {
			return s, frame.UsageErrorf("--%s %d: it is from 1 to 1000", one.flag, *one.to)
		}
	}
	if s.Managers%2 == 0 {
		return s, frame.WithHint(frame.UsageErrorf(
			"--managers %d: an even number of replicas stands no more losses than one less",
			s.Managers), "it is 1, 3 or 5")
	}
	if s.FaultsEnd, err = durationFlag(c, "calm", s.FaultsEnd); err != nil {
		return s, err
	}
	if s.RunEnd, err = durationFlag(c, "until", s.RunEnd); err != nil {
		return s, err
	}
	if s.RunEnd <= s.FaultsEnd {
		return s, frame.UsageErrorf("--until %v: that is not after --calm %v, and there would be no time to recover",
			s.RunEnd, s.FaultsEnd)
	}
	if c.StringFlag("kinds") == "" {
		return s, nil
	}
	for _, word := range strings.Split(c.StringFlag("kinds"), ",") {
		k, err := faultKindName(strings.TrimSpace(word))
		if err != nil {
			return s, err
		}
		s.Kinds = append(s.Kinds, k)
	}
	return s, nil
}

// durationFlag reads a flag that is a duration of a second at least.
func durationFlag(c *frame.Invocation, name string, otherwise time.Duration) (time.Duration, error) {
	if !c.IsFlagSet(name) {
		return otherwise, nil
	}
	d, err := roost.ParseDuration(c.StringFlag(name))
	if err == nil && d < time.Second {
		err = fmt.Errorf("it is a second at least")
	}
	if err != nil {
		return 0, frame.UsageErrorf("--%s %s: %v", name, c.StringFlag(name), err)
	}
	return d, nil
}

func faultKindName(word string) (faults.InjectionKind, error) {
	var names []string
	for _, k := range fuzz.FaultKinds() {
		if strings.ReplaceAll(k.String(), " ", "-") == word {
			return k, nil
		}
		names = append(names, strings.ReplaceAll(k.String(), " ", "-"))
	}
	return 0, frame.WithHint(frame.UsageErrorf("--kinds %s: there are no such faults", document.PrintableText(word)),
		"there are "+strings.Join(names, ", "))
}

// fuzzCampaign is the runs of some seeds.
type fuzzCampaign struct {
	*frame.Invocation
	size      fuzz.DrawLimits
	playSeed  func(*fuzz.PoolCase) *fuzz.RunOutcome
	firstSeed uint64
	seeds     int
	began     time.Time

	mu           sync.Mutex
	upcomingSeed int
	tally        fuzz.RunStats
	failure      *fuzz.RunOutcome // of the lowest seed that broke a promise
	seed         uint64

	pool *mpb.Progress
	bar  *mpb.Bar
}

// runSeeds plays the seeds, and returns the first that breaks a promise, if one does.
func (h *fuzzCampaign) runSeeds() (seed uint64, broken *fuzz.RunOutcome) {
	var all sync.WaitGroup
	for range defaultParallel {
		all.Go(func() {
			for seed, ok := h.takeSeed(h.Context); ok; seed, ok = h.takeSeed(h.Context) {
				h.seedDone(seed, h.playSeed(fuzz.DrawCase(seed, h.size)))
			}
		})
	}
	all.Wait()
	return h.seed, h.failure
}

// takeSeed returns the next seed, until one has broken a promise. Lower seeds are played
// to their end, so that the first failure is found.
func (h *fuzzCampaign) takeSeed(ctx context.Context) (seed uint64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.upcomingSeed >= h.seeds || h.failure != nil || ctx.Err() != nil {
		return 0, false
	}
	h.upcomingSeed++
	return h.firstSeed + uint64(h.upcomingSeed-1), true
}

func (h *fuzzCampaign) seedDone(seed uint64, o *fuzz.RunOutcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tally.Add(seed, o)
	if len(o.Violations) > 0 && (h.failure == nil || seed < h.seed) {
		h.failure, h.seed = o, seed
	}
	if h.bar != nil {
		h.bar.SetCurrent(int64(h.tally.Seeds))
	} else if !h.Flag("json") && h.tally.Seeds%max(h.seeds/10, 1) == 0 && h.seeds >= 1000 {
		fmt.Fprintf(h.Stderr, "%d of %d seeds, %s\n", h.tally.Seeds, h.seeds, document.SpanText(time.Since(h.began)))
	}
}

// startBar draws a bar, on a terminal.
func (h *fuzzCampaign) startBar() {
	if !h.ErrScreen.Terminal || h.Flag("json") {
		return
	}
	h.pool = mpb.NewWithContext(h.Context, mpb.WithOutput(h.Stderr), mpb.WithAutoRefresh(),
		mpb.WithRefreshRate(100*time.Millisecond))
	h.bar = h.pool.New(int64(h.seeds), mpb.BarStyle().Lbound(" ").Rbound(" ").Filler("━").Tip("━").Padding("─"),
		mpb.BarWidth(max(min(h.ErrScreen.Width-48, 40), 10)),
		mpb.PrependDecorators(decor.Name("seeds")),
		mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string {
			return fmt.Sprintf("%d/%d  %s", s.Current, s.Total, document.SpanText(time.Since(h.began)))
		})))
}

func (h *fuzzCampaign) endBar() {
	if h.pool == nil {
		return
	}
	if h.bar.Current() < int64(h.seeds) {
		h.bar.Abort(false)
	}
	h.pool.Wait()
}

func (h *fuzzCampaign) print(w io.Writer) {
	t := &h.tally
	took := time.Since(h.began)
	fmt.Fprintf(w, "%s, %d broke a promise; %s came to their end under %s\n", document.Plural(t.Seeds, "seed"),
		len(t.Violating),
		document.Plural(t.Tasks, "task"), document.Plural(t.FaultCount(), "fault"))
	var kinds []string
	for _, k := range faults.AllKinds() {
		if n := t.Injected[k]; n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %v", n, k))
		}
	}
	fmt.Fprintf(w, "  %s\n", strings.Join(kinds, ", "))
	if h.Flag("once") {
		fmt.Fprintf(w, "  %d events in %s, %.0f events/s\n", t.Events, document.SpanText(took),
			float64(t.Events)/took.Seconds())
	} else {
		fmt.Fprintf(w, "  %d events, each twice, in %s, %.0f events/s\n", t.Events, document.SpanText(took),
			2*float64(t.Events)/took.Seconds())
	}
}

// minimizedScript tells the shortest story of a seed that it can find.
func (h *fuzzCampaign) minimizedScript(w io.Writer, seed uint64, broken *fuzz.RunOutcome) {
	fmt.Fprintf(w, "\nSeed %d: %v is broken. The shortest story of it:\n\n", seed, broken.Violations[0].Guarantee)
	c, o := fuzz.Minimize(fuzz.DrawCase(seed, h.size), broken, h.playSeed, minimizeTimeout)
	fmt.Fprint(w, fuzz.Describe(c, o))
	fmt.Fprintf(w, "\nTo play it again: %s\n", h.replayCommand(seed))
}

// replayCommand is the command that plays one seed.
func (h *fuzzCampaign) replayCommand(seed uint64) string {
	text := fmt.Sprintf("roost sim faults --seeds 1 --from %d", seed)
	for _, name := range []string{"kinds", "incidents", "jobs", "machines", "schedds", "managers", "calm", "until"} {
		if h.IsFlagSet(name) {
			text += fmt.Sprintf(" --%s %v", name, h.Flags.Value(name))
		}
	}
	return text
}

func (h *fuzzCampaign) json(seed uint64, broken *fuzz.RunOutcome) error {
	t := &h.tally
	injected := frame.JSONDocument{}
	for _, k := range faults.AllKinds() {
		injected[strings.ReplaceAll(k.String(), " ", "_")] = t.Injected[k]
	}
	took := time.Since(h.began)
	doc := frame.JSONDocument{"seeds": t.Seeds, "broken": len(t.Violating), "tasks": t.Tasks, "faults": injected,
		"events": t.Events, "took_seconds": took.Seconds()}
	if broken != nil {
		var text strings.Builder
		h.minimizedScript(&text, seed, broken)
		doc["seed"], doc["promise"], doc["story"] = seed, int(broken.Violations[0].Guarantee), text.String()
	}
	return frame.PrintJSON(h.Stdout, doc)
}
