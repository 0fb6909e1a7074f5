package cli

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
	"github.com/roost-batch/roost/internal/sim"
	"github.com/roost-batch/roost/internal/spell"
	"github.com/roost-batch/roost/internal/swf"
)

func simReplay() (branch, []ucli.Flag) {
	return branch{
			name: "replay", brief: "play a log of jobs", least: 1, most: 1, wants: "a log in the Standard Workload Format, or - for standard input", do: replay,
		}, append([]ucli.Flag{
			&ucli.StringFlag{Name: "order", Usage: "replay: who may start before whom: `fcfs|easy|sjbf`", Value: "easy"},
			&ucli.StringFlag{Name: "expect", Usage: "replay: how long jobs are expected to take: as long as they `asked|known|last-two`", Value: "asked"},
			&ucli.StringFlag{Name: "correct", Usage: "replay: how long those that have outlived that: as long as they asked for, or a little longer each time: `asked|steps`", Value: "asked"},
			processorsFlag(),
			&ucli.BoolFlag{Name: "unasked", Usage: "replay: a job that asked for no time has asked for as long as it ran"},
			onceFlag(),
			outputFlag(),
		}, resultFlags()...)
}

func onceFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "once", Usage: "replay, run, faults: play it once only, and not again to see whether it comes out the same"}
}

// processorsFlag and outputFlag are of all that reads or writes logs.
func processorsFlag() ucli.Flag {
	return &ucli.IntFlag{Name: "processors", Usage: "of a log: how many there are, in place of what its header says; model: of the machine: `N`"}
}

func outputFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "replay: write what became of each job to this `FILE`, as a log in the same format, or a table if it ends with .csv or .json; model: write the log"}
}

// The words of roost sim replay.
var (
	simOrders      = []string{"fcfs", "easy", "sjbf"}
	simExpects     = []string{"asked", "known", "last-two"}
	simCorrections = []string{"asked", "steps"}
)

// choice is the place of a flag's value in a list of words.
func (c *call) choice(flag string, words []string) (int, error) {
	for i, w := range words {
		if w == c.text(flag) {
			return i, nil
		}
	}
	cure := "there are " + strings.Join(words, ", ")
	if near := spell.Nearest(c.text(flag), words); near != "" {
		cure += "; did you mean " + near + "?"
	}
	return 0, advise(usage("--%s %s: there is no such word", flag, c.text(flag)), cure)
}

func replay(c *call, args []string) error {
	order, err := c.choice("order", simOrders)
	if err != nil {
		return err
	}
	expect, err := c.choice("expect", simExpects)
	if err != nil {
		return err
	}
	correct, err := c.choice("correct", simCorrections)
	if err != nil {
		return err
	}
	opt := sim.Options{Order: sim.Order(order), Estimate: sim.Estimate(expect), Correction: sim.Correction(correct), Processors: int64(c.count("processors")), Unasked: c.flag("unasked")}
	shown := printable(args[0])
	log, err := c.readLog(args[0])
	if err != nil {
		return err
	}
	if !c.given("processors") {
		if opt.Processors, err = log.Processors(); err != nil {
			return advise(problem(roost.Invalid, "%s: %v", shown, err), "say how many processors the machine has with --processors")
		}
	}
	began := time.Now()
	played, err := sim.Replay(log, opt)
	if err != nil {
		return problem(roost.Invalid, "%s: %v", shown, err)
	}
	took := time.Since(began)
	if err := playable(shown, played); err != nil {
		return err
	}
	if !c.flag("once") {
		again, err := sim.Replay(log, opt)
		if err != nil || again.Digest != played.Digest {
			return problem(roost.Internal, "%s: played again, it came out differently: %016x and %016x; please tell us, with the log", shown, played.Digest, again.Digest)
		}
	}
	if out := c.text("output"); out != "" {
		if err := c.writeOutcomes(out, log, played, opt); err != nil {
			return err
		}
	}
	if err := c.writeTable(courseTable(sim.NewCourse(played, tableSpans, simUsers))); err != nil {
		return err
	}
	if err := c.writePicture(courseCharts(sim.NewCourse(played, pictureSpans, simUsers), played, opt.Processors)...); err != nil {
		return err
	}
	r := replayed{played: played, summary: sim.Summarise(played, opt.Processors), opt: opt, took: took, once: c.flag("once")}
	if c.json() {
		return r.json(c)
	}
	r.print(c.stdout, filepath.Base(shown))
	return nil
}

// maxLogBytes bounds a log, unpacked. The largest of the archive have some hundred megabytes.
const maxLogBytes = 4 << 30

// readLog reads a log, packed by gzip or not.
func (c *call) readLog(file string) (log *swf.Log, err error) {
	err = c.unpacked(file, func(_ string, r io.Reader) (err error) {
		log, err = swf.Read(r)
		return err
	})
	return log, err
}

// unpacked lets a file be read that may be packed by gzip; - is the standard input. What is wrong with it is said with its name, once.
func (c *call) unpacked(file string, read func(shown string, r io.Reader) error) error {
	in, shown := c.stdin, "standard input"
	if file != "-" {
		shown = printable(file)
		f, err := os.Open(c.path(file))
		if err != nil {
			var path *fs.PathError
			errors.As(err, &path)
			return problem(roost.NoInput, "%s: %v", shown, path.Err)
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
			return problem(roost.Invalid, "%s: %v", shown, err)
		}
		text = z
	}
	if err := read(shown, io.LimitReader(text, maxLogBytes)); err != nil {
		return problem(roost.Invalid, "%s: %s", shown, strings.TrimPrefix(err.Error(), shown+": "))
	}
	return nil
}

// playable refuses a log of which nothing could be played.
func playable(shown string, played *sim.Played) error {
	switch {
	case len(played.Jobs) > 0:
		return nil
	case played.NoRequest > 0:
		return advise(problem(roost.Invalid, "%s: no job of it can be played: of %d, %d asked for no time", shown, played.LeftOut, played.NoRequest), "with --unasked those have asked for as long as they ran")
	}
	return problem(roost.Invalid, "%s: no job of it can be played: of %d, none has both a length and a size that the machine has", shown, played.LeftOut)
}

// replayed is what there is to say of a replay.
type replayed struct {
	played  *sim.Played
	summary sim.Summary
	opt     sim.Options
	took    time.Duration
	once    bool
}

func (r *replayed) print(w io.Writer, name string) {
	s := &r.summary
	fmt.Fprintf(w, "%s: %s on %s\n\n", name, plural(s.Jobs, "job"), plural(int(r.opt.Processors), "processor"))
	if r.played.LeftOut > 0 {
		fmt.Fprintf(w, "  left out      %s without a length or a size, or too large for the machine", plural(r.played.LeftOut, "job"))
		if n := r.played.NoRequest; n > 0 {
			fmt.Fprintf(w, "; %d asked for no time", n)
		}
		fmt.Fprintln(w)
	}
	wait := &s.Wait
	fmt.Fprintf(w, "  waits         %s on the mean, median %s, 95 %% up to %s, 99 %% up to %s, the longest %s\n",
		spoken(int64(wait.Mean)), spoken(wait.Median), spoken(wait.P95), spoken(wait.P99), spoken(wait.Most))
	fmt.Fprintf(w, "  slowdown      %.2f on the mean, bounded at 10s\n", s.Slowdown)
	fmt.Fprintf(w, "  utilisation   %.1f %% of the processors in %s\n", 100*s.Utilisation, spoken(s.Makespan))
	fmt.Fprintf(w, "  out of turn   %s\n", plural(s.Early, "job"))
	if s.Outlived > 0 {
		fmt.Fprintf(w, "  outlived      %s what was expected\n", plural(s.Outlived, "job"))
	}
	if s.Told > 0 {
		fmt.Fprintf(w, "  as the log    %d waited as long as it says\n", s.Same)
	}
	times := "played twice, digest %016x both times"
	if r.once {
		times = "played once, digest %016x"
	}
	fmt.Fprintf(w, "\n%d events, %.0f jobs/s; "+times+"\n", r.played.Events, float64(s.Jobs)/r.took.Seconds(), r.played.Digest)
}

// spoken is a number of seconds for people.
func spoken(seconds int64) string {
	if seconds < 60 {
		return fmt.Sprintf("%ds", seconds)
	}
	return span(time.Duration(seconds) * time.Second)
}

func (r *replayed) json(c *call) error {
	s := &r.summary
	return printJSON(c.stdout, document{
		"log": c.args[1], "order": c.text("order"), "expect": c.text("expect"), "correct": c.text("correct"), "processors": r.opt.Processors,
		"jobs": s.Jobs, "left_out": r.played.LeftOut, "asked_for_no_time": r.played.NoRequest,
		"wait_seconds": document{"mean": s.Wait.Mean, "median": s.Wait.Median, "p95": s.Wait.P95, "p99": s.Wait.P99, "most": s.Wait.Most},
		"slowdown":     s.Slowdown, "utilisation": s.Utilisation, "makespan_seconds": s.Makespan, "out_of_turn": s.Early, "outlived": s.Outlived, "same_wait": s.Same,
		"events": r.played.Events, "digest": fmt.Sprintf("%016x", r.played.Digest), "took_seconds": r.took.Seconds(),
	})
}
