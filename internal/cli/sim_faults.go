package cli

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
	"github.com/roost-batch/roost/internal/sim/fault"
	"github.com/roost-batch/roost/internal/sim/storm"
)

func simFaults() (branch, []ucli.Flag) {
	return branch{name: "faults", brief: "break pools, and hold them against what Roost promises", do: faults}, []ucli.Flag{
		seedsFlag(),
		&ucli.Uint64Flag{Name: "from", Usage: "faults: the first of them: `SEED`"},
		&ucli.StringFlag{Name: "kinds", Usage: "faults: only faults of these `KINDS`, with commas between them"},
		&ucli.IntFlag{Name: "incidents", Usage: "faults: at most `N` in a run; a partition is one, and may be many faults"},
		&ucli.IntFlag{Name: "jobs", Usage: "faults: at most `N` in a run"},
		machinesFlag(),
		&ucli.IntFlag{Name: "schedds", Usage: "faults: at most `N` submit nodes in a run"},
		&ucli.IntFlag{Name: "managers", Usage: "faults: `N` central managers in a run, or one"},
		&ucli.StringFlag{Name: "calm", Usage: "faults: all faults are over after this `DURATION`"},
		untilFlag(), onceFlag(),
		jsonFlag(),
	}
}

// seedsFlag is of all that is done for several seeds.
func seedsFlag() ucli.Flag {
	return &ucli.IntFlag{Name: "seeds", Usage: "pack, compact: of so many random orders; faults: try so many seeds: `N`"}
}

// someSeeds is how many are tried if nobody says how many, from the first on.
const (
	someSeeds = 100
	fromSeed  = 1
)

// atOnce is how many runs are under way.
const atOnce = 2

// shortenFor is how often a run that broke a promise is played again to find a shorter one.
const shortenFor = 2000

func faults(c *call, _ []string) error {
	size, err := c.stormSize()
	if err != nil {
		return err
	}
	seeds, from := c.count("seeds"), c.flags.Uint64("from")
	if !c.given("seeds") {
		seeds = someSeeds
	}
	if !c.given("from") {
		from = fromSeed
	}
	if seeds < 1 {
		return usage("--seeds %d: there must be one at least", seeds)
	}
	h := &hunt{call: c, size: size, play: storm.Twice, from: from, seeds: seeds, began: time.Now()}
	if c.flag("once") {
		h.play = storm.Play
	}
	h.start()
	seed, broken := h.run()
	h.end()
	if c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	if c.json() {
		if err := h.json(seed, broken); err != nil {
			return err
		}
	} else {
		h.print(c.stdout)
		if broken != nil {
			h.story(c.stdout, seed, broken)
		}
	}
	if broken != nil {
		return exit(1)
	}
	return nil
}

// stormSize reads what bounds the runs.
func (c *call) stormSize() (s storm.Size, err error) {
	s = storm.DefaultSize()
	for _, one := range []struct {
		flag string
		to   *int
	}{{"managers", &s.Managers}, {"schedds", &s.Schedds}, {"machines", &s.Machines}, {"jobs", &s.Jobs}, {"incidents", &s.Faults}} {
		if !c.given(one.flag) {
			continue
		}
		if *one.to = c.count(one.flag); *one.to < 1 || *one.to > 1000 {
			return s, usage("--%s %d: it is from 1 to 1000", one.flag, *one.to)
		}
	}
	if s.Managers%2 == 0 {
		return s, advise(usage("--managers %d: an even number of replicas stands no more losses than one less", s.Managers), "it is 1, 3 or 5")
	}
	if s.Calm, err = c.span("calm", s.Calm); err != nil {
		return s, err
	}
	if s.Until, err = c.span("until", s.Until); err != nil {
		return s, err
	}
	if s.Until <= s.Calm {
		return s, usage("--until %v: that is not after --calm %v, and there would be no time to recover", s.Until, s.Calm)
	}
	if c.text("kinds") == "" {
		return s, nil
	}
	for _, word := range strings.Split(c.text("kinds"), ",") {
		k, err := faultKind(strings.TrimSpace(word))
		if err != nil {
			return s, err
		}
		s.Kinds = append(s.Kinds, k)
	}
	return s, nil
}

// span reads a flag that is a duration of a second at least.
func (c *call) span(name string, otherwise time.Duration) (time.Duration, error) {
	if !c.given(name) {
		return otherwise, nil
	}
	d, err := roost.ParseDuration(c.text(name))
	if err == nil && d < time.Second {
		err = fmt.Errorf("it is a second at least")
	}
	if err != nil {
		return 0, usage("--%s %s: %v", name, c.text(name), err)
	}
	return d, nil
}

func faultKind(word string) (fault.Kind, error) {
	var names []string
	for _, k := range storm.Kinds() {
		if strings.ReplaceAll(k.String(), " ", "-") == word {
			return k, nil
		}
		names = append(names, strings.ReplaceAll(k.String(), " ", "-"))
	}
	return 0, advise(usage("--kinds %s: there are no such faults", printable(word)), "there are "+strings.Join(names, ", "))
}

// hunt is the runs of some seeds.
type hunt struct {
	*call
	size  storm.Size
	play  func(*storm.Case) *storm.Outcome
	from  uint64
	seeds int
	began time.Time

	mu    sync.Mutex
	next  int
	tally storm.Tally
	found *storm.Outcome // of the lowest seed that broke a promise
	seed  uint64

	pool *mpb.Progress
	bar  *mpb.Bar
}

// run plays the seeds, and returns the first that breaks a promise, if one does.
func (h *hunt) run() (seed uint64, broken *storm.Outcome) {
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for seed, ok := h.take(h.ctx); ok; seed, ok = h.take(h.ctx) {
				h.done(seed, h.play(storm.Draw(seed, h.size)))
			}
		})
	}
	all.Wait()
	return h.seed, h.found
}

// take is the next seed, until one has broken something: those below it are played to their end, so that the first is found.
func (h *hunt) take(ctx context.Context) (seed uint64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.next >= h.seeds || h.found != nil || ctx.Err() != nil {
		return 0, false
	}
	h.next++
	return h.from + uint64(h.next-1), true
}

func (h *hunt) done(seed uint64, o *storm.Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tally.Add(seed, o)
	if len(o.Breaches) > 0 && (h.found == nil || seed < h.seed) {
		h.found, h.seed = o, seed
	}
	if h.bar != nil {
		h.bar.SetCurrent(int64(h.tally.Seeds))
	} else if !h.flag("json") && h.tally.Seeds%max(h.seeds/10, 1) == 0 && h.seeds >= 1000 {
		fmt.Fprintf(h.stderr, "%d of %d seeds, %s\n", h.tally.Seeds, h.seeds, span(time.Since(h.began)))
	}
}

// start draws a bar, on a terminal.
func (h *hunt) start() {
	if !h.err.terminal || h.flag("json") {
		return
	}
	h.pool = mpb.NewWithContext(h.ctx, mpb.WithOutput(h.stderr), mpb.WithAutoRefresh(), mpb.WithRefreshRate(100*time.Millisecond))
	h.bar = h.pool.New(int64(h.seeds), mpb.BarStyle().Lbound(" ").Rbound(" ").Filler("━").Tip("━").Padding("─"), mpb.BarWidth(max(min(h.err.width-48, 40), 10)),
		mpb.PrependDecorators(decor.Name("seeds")),
		mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string {
			return fmt.Sprintf("%d/%d  %s", s.Current, s.Total, span(time.Since(h.began)))
		})))
}

func (h *hunt) end() {
	if h.pool == nil {
		return
	}
	if h.bar.Current() < int64(h.seeds) {
		h.bar.Abort(false)
	}
	h.pool.Wait()
}

func (h *hunt) print(w io.Writer) {
	t := &h.tally
	took := time.Since(h.began)
	fmt.Fprintf(w, "%s, %d broke a promise; %s came to their end under %s\n", plural(t.Seeds, "seed"), len(t.Broken), plural(t.Tasks, "task"), plural(t.Faults(), "fault"))
	var kinds []string
	for _, k := range fault.Kinds() {
		if n := t.Injected[k]; n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %v", n, k))
		}
	}
	fmt.Fprintf(w, "  %s\n", strings.Join(kinds, ", "))
	if h.flag("once") {
		fmt.Fprintf(w, "  %d events in %s, %.0f events/s\n", t.Events, span(took), float64(t.Events)/took.Seconds())
	} else {
		fmt.Fprintf(w, "  %d events, each twice, in %s, %.0f events/s\n", t.Events, span(took), 2*float64(t.Events)/took.Seconds())
	}
}

// story tells the shortest story of a seed that it can find.
func (h *hunt) story(w io.Writer, seed uint64, broken *storm.Outcome) {
	fmt.Fprintf(w, "\nSeed %d: %v is broken. The shortest story of it:\n\n", seed, broken.Breaches[0].Promise)
	c, o := storm.Shrink(storm.Draw(seed, h.size), broken, h.play, shortenFor)
	fmt.Fprint(w, storm.Story(c, o))
	fmt.Fprintf(w, "\nTo play it again: %s\n", h.again(seed))
}

// again is the command that plays one seed.
func (h *hunt) again(seed uint64) string {
	text := fmt.Sprintf("roost sim faults --seeds 1 --from %d", seed)
	for _, name := range []string{"kinds", "incidents", "jobs", "machines", "schedds", "managers", "calm", "until"} {
		if h.given(name) {
			text += fmt.Sprintf(" --%s %v", name, h.flags.Value(name))
		}
	}
	return text
}

func (h *hunt) json(seed uint64, broken *storm.Outcome) error {
	t := &h.tally
	injected := document{}
	for _, k := range fault.Kinds() {
		injected[strings.ReplaceAll(k.String(), " ", "_")] = t.Injected[k]
	}
	took := time.Since(h.began)
	doc := document{"seeds": t.Seeds, "broken": len(t.Broken), "tasks": t.Tasks, "faults": injected, "events": t.Events, "took_seconds": took.Seconds()}
	if broken != nil {
		var story strings.Builder
		h.story(&story, seed, broken)
		doc["seed"], doc["promise"], doc["story"] = seed, int(broken.Breaches[0].Promise), story.String()
	}
	return printJSON(h.stdout, doc)
}
