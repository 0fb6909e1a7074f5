package sim

import (
	"fmt"
	"hash/fnv"
	"runtime"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/sim/hrm"
)

func hrmSubcommand() (frame.Subcommand, []ucli.Flag) {
	return frame.Subcommand{Name: "hrm", Summary: "place by one scheduler and by six, as HRM's authors did",
			Run: runHRMStudy}, append([]ucli.Flag{
			&ucli.StringFlag{Name: "costs", Usage: "hrm: what the schedulers' steps take, in time of the processor: " +
				"as `measured|stated`", Value: "measured"},
			&ucli.StringFlag{Name: "sizes", Usage: "hrm: how many jobs come at once, as in `N,N,…`",
				Value: "60,120,180"},
			&ucli.StringFlag{Name: "rates", Usage: "hrm: how many jobs come in a second where they come one by one, " +
				"as in `N,N,…`; \"\" for not at all", Value: "10,20,50,100,1000,10000"},
			seedFlag(),
		}, resultFlags()...)
}

var hrmCosts = []string{"measured", "stated"}

// hrmRow is one run of it.
type hrmRow struct {
	options hrm.SimulationOptions
	rate    int // jobs in a second; 0: all at once
	figures hrm.RunFigures
	steps   []hrmStep
	digest  uint64
}

type hrmStep struct {
	step  hrm.CostStep
	spent hrm.StepTotal
}

// hrmStudy is all of them.
type hrmStudy struct {
	call        *frame.Invocation
	statedCosts bool
	rows        []hrmRow
	events      uint64
}

// hrmArriving is how many jobs come one by one.
const hrmArriving = 120

func runHRMStudy(c *frame.Invocation, _ []string) error {
	costs, err := choiceFlag(c, "costs", hrmCosts)
	if err != nil {
		return err
	}
	sizes, err := numbersFlag(c, "sizes", 2000)
	if err != nil {
		return err
	}
	rates, err := numbersFlag(c, "rates", 100_000)
	if err != nil {
		return err
	}
	if len(sizes)+len(rates) == 0 {
		return frame.WithHint(frame.UsageErrorf("there is nothing to play"), "give --sizes or --rates a number")
	}
	s := &hrmStudy{call: c, statedCosts: hrmCosts[costs] == "stated"}
	paper := hrm.PaperOptions(60, hrm.LeaderOnly)
	s.printf("%d machines of %d cores, %s; jobs of %s\n", paper.Machines, paper.Cores,
		document.Plural(paper.Schedds, "schedd"),
		document.Plural(paper.Containers, "container"))
	s.printf("costs %s; a message takes %v, and %v until an entry is on disk: both stated\n", hrmCosts[costs],
		paper.MessageDelay, paper.CommitDelay)
	if len(sizes) > 0 {
		s.printf("\nall at once\n%s  the paper\n", hrmHeader("jobs"))
	}
	for _, jobs := range sizes {
		if err := s.runStyles(jobs, 0); err != nil {
			return err
		}
	}
	if len(rates) > 0 {
		s.printf("\n%s, one by one\n%s  the paper\n", document.Plural(hrmArriving, "job"), hrmHeader("jobs/s"))
	}
	for _, rate := range rates {
		if err := s.runStyles(hrmArriving, rate); err != nil {
			return err
		}
	}
	s.printf("\nA job's delay is from its submission until the last of its containers has started; busy is the part " +
		"of the jobs in the cell that wait for the scheduler.\n")
	s.printf("%d runs of %d events, each played twice, digest %016x both times\n", len(s.rows), s.events, s.digest())
	head, rows := s.table()
	if err := writeTable(c, head, rows); err != nil {
		return err
	}
	if err := writeCharts(c, s.charts()...); err != nil {
		return err
	}
	if c.WantsJSON() {
		return s.json(hrmCosts[costs])
	}
	return nil
}

// numbersFlag are those of a flag that lists some, from 1 to most.
func numbersFlag(c *frame.Invocation, flag string, most int) (list []int, err error) {
	if c.StringFlag(flag) == "" {
		return nil, nil
	}
	for _, word := range strings.Split(c.StringFlag(flag), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil || n < 1 || n > most {
			return nil, frame.WithHint(frame.UsageErrorf("--%s %s: %q is no number from 1 to %d", flag,
				c.StringFlag(flag), word,
				most), "as in --"+flag+" 10,20")
		}
		list = append(list, n)
	}
	if len(list) > 100 {
		return nil, frame.UsageErrorf("--%s: %d numbers, and 100 are the most", flag, len(list))
	}
	return list, nil
}

// printf prints as it goes: a study takes a while.
func (s *hrmStudy) printf(format string, args ...any) {
	if !s.call.WantsJSON() {
		fmt.Fprintf(s.call.Stdout, format, args...)
	}
}

// hrmStyles are who places, as the tables say it.
var hrmStyles = []struct {
	style hrm.SchedulingStyle
	words string
}{{hrm.LeaderOnly, "the leader"}, {hrm.CellParts, "six schedds, parts"}, {hrm.WholeCell, "six schedds, whole"}}

func hrmHeader(first string) string {
	return fmt.Sprintf("%6s  %-18s  %9s  %9s  %9s  %9s  %6s  %9s", first, "placed by", "mean", "95 %", "worst",
		"job ends", "busy", "conflicts")
}

// runStyles plays one size or rate in each style.
func (s *hrmStudy) runStyles(jobs, rate int) error {
	for i, one := range hrmStyles {
		r, err := s.runTwice(jobs, rate, one.style)
		if err != nil {
			return err
		}
		first, conflicts := "", "-"
		switch {
		case i > 0:
		case rate > 0:
			first = strconv.Itoa(rate)
		default:
			first = strconv.Itoa(jobs)
		}
		f := &r.figures
		if one.style != hrm.LeaderOnly {
			conflicts = fmt.Sprintf("%.1f %%", 100*f.ConflictRatio())
		}
		s.printf("%6s  %-18s  %9s  %9s  %9s  %9s  %6s  %9s  %s\n", first, one.words, millisText(f.MeanDelay),
			millisText(f.P95Delay), millisText(f.MaxDelay), fmt.Sprintf("%.1f s", f.LastEnd.Seconds()),
			fmt.Sprintf("%.2f %%", 100*f.Busy), conflicts, publishedText(jobs, rate, one.style))
	}
	return nil
}

// publishedText is what the paper says in its section 6.1.3 of the same, as far as it
// does in numbers.
func publishedText(jobs, rate int, style hrm.SchedulingStyle) string {
	switch {
	case rate == 0 && jobs == 60 && style != hrm.CellParts:
		return "about 50 ms; jobs about 25 s"
	case rate == 0 && jobs == 180 && style == hrm.LeaderOnly:
		return "worst 14 s"
	case rate == 0 && jobs == 180 && style == hrm.WholeCell:
		return "worst 2.5 s"
	case rate == 10_000 && style == hrm.LeaderOnly:
		return "at ten times the rate more than double the delay"
	case rate == 100 && style == hrm.WholeCell:
		return "at ten times the rate up to 45 %"
	}
	return ""
}

// millisText is a delay for people.
func millisText(d time.Duration) string {
	if d >= 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.1f ms", d.Seconds()*1000)
}

// runTwice plays one run, and again with the same costs.
func (s *hrmStudy) runTwice(jobs, rate int, style hrm.SchedulingStyle) (*hrmRow, error) {
	o := hrm.PaperOptions(jobs, style)
	o.Seed = uint64(s.call.CountFlag("seed"))
	if rate > 0 {
		o.SubmitInterval = time.Second / time.Duration(rate)
	}
	measured := &hrm.MeasuredCosts{Clock: threadTime}
	var costs, same hrm.StepCosts = measured, hrm.DefaultCosts()
	if s.statedCosts {
		costs = same
	}
	runtime.LockOSThread() // its processor time is the clock
	defer runtime.UnlockOSThread()
	r, err := hrm.Simulate(o, costs)
	if err != nil {
		return nil, err
	}
	if !s.statedCosts {
		same = &hrm.ReplayedCosts{Taken: measured.Taken}
	}
	again, err := hrm.Simulate(o, same)
	if err != nil || again.Digest != r.Digest {
		return nil, frame.KindErrorf(roost.Internal,
			"%d jobs, %v: played again, it came out differently: please tell us",
			jobs, style)
	}
	s.events += r.Events
	s.rows = append(s.rows, hrmRow{o, rate, r.Figures(), hrmSteps(r), r.Digest})
	return &s.rows[len(s.rows)-1], nil
}

// threadTime is the processor time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // this clock is always there
	return time.Duration(t.Nano())
}

// hrmSteps is what a run's steps took.
func hrmSteps(r *hrm.RunResult) (list []hrmStep) {
	for i := range r.Steps {
		if r.Steps[i].Count > 0 {
			list = append(list, hrmStep{hrm.CostStep(i), r.Steps[i]})
		}
	}
	return list
}

// digest is of all runs.
func (s *hrmStudy) digest() uint64 {
	h := fnv.New64a()
	for i := range s.rows {
		fmt.Fprintf(h, "%x", s.rows[i].digest)
	}
	return h.Sum64()
}
