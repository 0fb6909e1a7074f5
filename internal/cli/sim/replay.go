package sim

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/sim"
	"github.com/roost-batch/roost/internal/sim/trace"
	"github.com/roost-batch/roost/internal/suggest"
)

func replaySubcommand() (frame.Subcommand, []ucli.Flag) {
	return frame.Subcommand{
			Name: "replay", Summary: "play a log of jobs", MinOperands: 1, MaxOperands: 1,
			OperandNames: "a log in the Standard Workload Format, or - for standard input", Run: replayTrace,
		}, append([]ucli.Flag{
			&ucli.StringFlag{Name: "order", Usage: "replay: who may start before whom: `fcfs|easy|sjbf`",
				Value: "easy"},
			&ucli.StringFlag{Name: "expect", Usage: "replay: how long jobs are expected to take: as long as " +
				"they `asked|known|last-two`", Value: "asked"},
			&ucli.StringFlag{Name: "correct", Usage: "replay: how long those that have outlived that: as long " +
				"as they asked for, or a little longer each time: `asked|steps`", Value: "asked"},
			processorsFlag(),
			&ucli.BoolFlag{Name: "unasked",
				Usage: "replay: a job that asked for no time has asked for as long as it ran"},
			onceFlag(),
			outputFlag(),
		}, resultFlags()...)
}

func onceFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "once",
		Usage: "replay, run, faults: play it once only, and not again to see whether it comes out the same"}
}

// processorsFlag and outputFlag are of all that reads or writes logs.
func processorsFlag() ucli.Flag {
	return &ucli.IntFlag{Name: "processors",
		Usage: "of a log: how many there are, in place of what its header says; model: of the machine: `N`"}
}

func outputFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "output", Aliases: []string{"o"},
		Usage: "replay: write what became of each job to this `FILE`, as a log in the same format, or a table if it " +
			"ends with .csv or .json; model: write the log"}
}

// The words of roost sim replay.
var (
	simOrders      = []string{"fcfs", "easy", "sjbf"}
	simExpects     = []string{"asked", "known", "last-two"}
	simCorrections = []string{"asked", "steps"}
)

// choiceFlag is the place of a flag's value in a list of words.
func choiceFlag(c *frame.Invocation, flag string, words []string) (int, error) {
	for i, w := range words {
		if w == c.StringFlag(flag) {
			return i, nil
		}
	}
	cure := "there are " + strings.Join(words, ", ")
	if near := suggest.Nearest(c.StringFlag(flag), words); near != "" {
		cure += "; did you mean " + near + "?"
	}
	return 0, frame.WithHint(frame.UsageErrorf("--%s %s: there is no such word", flag, c.StringFlag(flag)), cure)
}

func replayTrace(c *frame.Invocation, args []string) error {
	order, err := choiceFlag(c, "order", simOrders)
	if err != nil {
		return err
	}
	expect, err := choiceFlag(c, "expect", simExpects)
	if err != nil {
		return err
	}
	correct, err := choiceFlag(c, "correct", simCorrections)
	if err != nil {
		return err
	}
	opt := sim.ReplayOptions{Order: sim.QueueOrder(order), Estimate: sim.RuntimeEstimate(expect),
		Correction: sim.PredictionCorrection(correct), Processors: int64(c.CountFlag("processors")),
		AssumeRuntime: c.Flag("unasked")}
	shown := document.PrintableText(args[0])
	log, err := readLog(c, args[0])
	if err != nil {
		return err
	}
	if !c.IsFlagSet("processors") {
		if opt.Processors, err = log.Processors(); err != nil {
			return frame.WithHint(frame.KindErrorf(roost.Invalid, "%s: %v", shown, err),
				"say how many processors the machine has with --processors")
		}
	}
	began := time.Now()
	played, err := sim.Replay(log, opt)
	if err != nil {
		return frame.KindErrorf(roost.Invalid, "%s: %v", shown, err)
	}
	took := time.Since(began)
	if err := checkPlayable(shown, played); err != nil {
		return err
	}
	if !c.Flag("once") {
		again, err := sim.Replay(log, opt)
		if err != nil || again.Digest != played.Digest {
			return frame.KindErrorf(roost.Internal,
				"%s: played again, it came out differently: %016x and %016x; please "+
					"tell us, with the log", shown, played.Digest, again.Digest)
		}
	}
	if out := c.StringFlag("output"); out != "" {
		if err := writeOutcomes(c, out, log, played, opt); err != nil {
			return err
		}
	}
	head, rows := courseTable(sim.NewTimeSeries(played, tableRows, simUsers))
	if err := writeTable(c, head, rows); err != nil {
		return err
	}
	if err := writeCharts(c, courseCharts(sim.NewTimeSeries(played, chartPoints, simUsers), played,
		opt.Processors)...); err != nil {
		return err
	}
	r := replayResult{played: played, summary: sim.Summarize(played, opt.Processors), opt: opt, duration: took,
		runOnce: c.Flag("once")}
	if c.WantsJSON() {
		return r.json(c)
	}
	r.print(c.Stdout, filepath.Base(shown))
	return nil
}

// maxLogBytes bounds a log, unpacked. The largest of the archive have some hundred
// megabytes.
const maxLogBytes = 4 << 30

// readLog reads a log, packed by gzip or not.
func readLog(c *frame.Invocation, file string) (log *trace.Log, err error) {
	err = openMaybeGzip(c, file, func(_ string, r io.Reader) (err error) {
		log, err = trace.Read(r)
		return err
	})
	return log, err
}

// openMaybeGzip lets a file be read that may be packed by gzip; - is the standard input.
// What is wrong with it is said with its name, once.
func openMaybeGzip(c *frame.Invocation, file string, read func(shown string, r io.Reader) error) error {
	in, shown := c.Stdin, "standard input"
	if file != "-" {
		shown = document.PrintableText(file)
		f, err := os.Open(c.AbsolutePath(file))
		if err != nil {
			var path *fs.PathError
			errors.As(err, &path)
			return frame.KindErrorf(roost.NoInput, "%s: %v", shown, path.Err)
		}
		defer f.Close()
		in = f
	}
	buffered := bufio.NewReaderSize(in, 1<<16)
	var text io.Reader = buffered
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(buffered)
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			err = errors.New("the file is cut off")
		}
		if err != nil {
			return frame.KindErrorf(roost.Invalid, "%s: %v", shown, err)
		}
		text = z
	}
	if err := read(shown, io.LimitReader(text, maxLogBytes)); err != nil {
		return frame.KindErrorf(roost.Invalid, "%s: %s", shown, strings.TrimPrefix(err.Error(), shown+": "))
	}
	return nil
}

// checkPlayable refuses a log of which nothing could be played.
func checkPlayable(shown string, played *sim.Result) error {
	switch {
	case len(played.Jobs) > 0:
		return nil
	case played.SkippedNoRequest > 0:
		return frame.WithHint(frame.KindErrorf(roost.Invalid,
			"%s: no job of it can be played: of %d, %d asked for no time", shown,
			played.Skipped, played.SkippedNoRequest), "with --unasked those have asked for as long as they ran")
	}
	return frame.KindErrorf(roost.Invalid, "%s: no job of it can be played: of %d, none has both a length "+
		"and a size that "+
		"the machine has", shown, played.Skipped)
}

// replayResult is what there is to say of a replay.
type replayResult struct {
	played   *sim.Result
	summary  sim.ReplaySummary
	opt      sim.ReplayOptions
	duration time.Duration
	runOnce  bool
}

func (r *replayResult) print(w io.Writer, name string) {
	s := &r.summary
	fmt.Fprintf(w, "%s: %s on %s\n\n", name, document.Plural(s.Jobs, "job"),
		document.Plural(int(r.opt.Processors), "processor"))
	if r.played.Skipped > 0 {
		fmt.Fprintf(w, "  left out      %s without a length or a size, or too large for the machine",
			document.Plural(r.played.Skipped, "job"))
		if n := r.played.SkippedNoRequest; n > 0 {
			fmt.Fprintf(w, "; %d asked for no time", n)
		}
		fmt.Fprintln(w)
	}
	wait := &s.Wait
	fmt.Fprintf(w, "  waits         %s on the mean, median %s, 95 %% up to %s, 99 %% up to %s, the longest %s\n",
		secondsText(int64(wait.Mean)), secondsText(wait.Median), secondsText(wait.P95), secondsText(wait.P99),
		secondsText(wait.Max))
	fmt.Fprintf(w, "  slowdown      %.2f on the mean, bounded at 10s\n", s.Slowdown)
	fmt.Fprintf(w, "  utilisation   %.1f %% of the processors in %s\n", 100*s.Utilisation, secondsText(s.Makespan))
	fmt.Fprintf(w, "  out of turn   %s\n", document.Plural(s.Early, "job"))
	if s.Outlived > 0 {
		fmt.Fprintf(w, "  outlived      %s what was expected\n", document.Plural(s.Outlived, "job"))
	}
	if s.WaitKnown > 0 {
		fmt.Fprintf(w, "  as the log    %d waited as long as it says\n", s.WaitEqual)
	}
	times := "played twice, digest %016x both times"
	if r.runOnce {
		times = "played once, digest %016x"
	}
	fmt.Fprintf(w, "\n%d events, %.0f jobs/s; "+times+"\n", r.played.Events, float64(s.Jobs)/r.duration.Seconds(),
		r.played.Digest)
}

// secondsText is a number of seconds for people.
func secondsText(seconds int64) string {
	if seconds < 60 {
		return fmt.Sprintf("%ds", seconds)
	}
	return document.SpanText(time.Duration(seconds) * time.Second)
}

func (r *replayResult) json(c *frame.Invocation) error {
	s := &r.summary
	return frame.PrintJSON(c.Stdout, frame.JSONDocument{
		"log": c.Args[1], "order": c.StringFlag("order"), "expect": c.StringFlag("expect"),
		"correct": c.StringFlag("correct"), "processors": r.opt.Processors,
		"jobs": s.Jobs, "left_out": r.played.Skipped, "asked_for_no_time": r.played.SkippedNoRequest,
		"wait_seconds": frame.JSONDocument{"mean": s.Wait.Mean, "median": s.Wait.Median, "p95": s.Wait.P95,
			"p99":  s.Wait.P99,
			"most": s.Wait.Max},
		"slowdown": s.Slowdown, "utilisation": s.Utilisation, "makespan_seconds": s.Makespan,
		"out_of_turn": s.Early, "outlived": s.Outlived, "same_wait": s.WaitEqual,
		"events": r.played.Events, "digest": fmt.Sprintf("%016x", r.played.Digest),
		"took_seconds": r.duration.Seconds(),
	})
}
