package operate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/nodeaccess"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/master"
)

// Bounds of the time of a measurement.
const (
	minMeasureTime = 500 * time.Millisecond
	maxMeasureTime = 5 * time.Minute
)

// DiagnoseCommand returns roost diagnose: measure what makes this node slow.
func DiagnoseCommand() *frame.Command {
	return &frame.Command{
		Name: "diagnose", Group: frame.GroupPool, Summary: "measure what makes the daemons of this machine slow",
		MaxOperands: 0, Run: diagnose,
		Description: "Measures the daemons of this machine for a few seconds: their CPU time, how long they wait " +
			"for a CPU, their memory and files, how fast the schedd answers, how long their disks take to store " +
			"data for good, and what the machine itself is short of. It says what is slow, and what to do about " +
			"it. Only root and the account of the daemons can run it.",
		Examples: []frame.Example{
			{Line: "roost diagnose", Description: "measure for three seconds"},
			{Line: "roost diagnose --for 1m --json", Description: "measure for longer, for a monitor"},
		},
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "for", Usage: "measure for this `TIME`, from 500ms to 5m", Value: "3s"},
			&ucli.StringFlag{Name: "config", Usage: "the node's `FILE`, see roost-node(5)"}, frame.JSONFlag(),
		},
	}
}

func diagnose(c *frame.Invocation) error {
	span, err := roost.ParseDuration(c.StringFlag("for"))
	if err != nil || span < minMeasureTime || span > maxMeasureTime {
		return frame.UsageErrorf("--for: %q is no time from 500ms to 5m; write it as 3s or 1m", c.StringFlag("for"))
	}
	n, err := nodeaccess.ReadNodeFile(c)
	if errors.Is(err, fs.ErrPermission) {
		return notPermitted("the node file of this machine")
	}
	if err != nil {
		return err
	}
	if err := checkOwner(n); err != nil {
		return err
	}
	state, running, err := master.ReadState(n.Dir)
	if err != nil || !running {
		return frame.KindErrorf(roost.Unavailable, "no master runs in %s on this machine, so there is nothing to "+
			"measure", n.Dir)
	}
	m, err := measure(c, n, state, span)
	if err != nil {
		return err
	}
	return printDiagnosis(c, m, judge(m))
}

// checkOwner refuses everybody but root and the account of the daemons. How busy daemons
// are says what other users do.
func checkOwner(n *config.Node) error {
	var st unix.Stat_t
	if err := unix.Stat(n.RunDir(), &st); errors.Is(err, fs.ErrNotExist) {
		return frame.KindErrorf(roost.Unavailable, "no master has ever run in %s on this machine", n.Dir)
	} else if err != nil {
		return notPermitted(n.RunDir())
	}
	if uid := os.Geteuid(); uid != 0 && uid != int(st.Uid) {
		return notPermitted(n.Dir)
	}
	return nil
}

func notPermitted(what string) error {
	return frame.WithHint(frame.KindErrorf(roost.PermissionDenied, "only root and the account of the daemons can "+
		"measure them: %s belongs to another account", document.PrintableText(what)), "ask as root")
}

// printDiagnosis prints what was measured and found. The error is an exit status of 1 if
// something fails.
func printDiagnosis(c *frame.Invocation, m *measurement, findings []finding) error {
	failed := false
	for _, f := range findings {
		failed = failed || f.Level == levelFail
	}
	if c.WantsJSON() {
		if err := frame.PrintJSON(c.Stdout, frame.JSONDocument{"seconds": m.Seconds, "machine": m.Machine,
			"daemons": m.Daemons, "disks": m.Disks, "findings": append([]finding{}, findings...)}); err != nil {
			return err
		}
	} else {
		printMeasurement(c, m)
		printFindings(c, findings)
	}
	if failed {
		return frame.ExitError(1)
	}
	return nil
}

func printMeasurement(c *frame.Invocation, m *measurement) {
	fmt.Fprintf(c.Stdout, "measured for %.3gs; %d cores; something waits for a CPU %.0f %%, a disk %.0f %%, memory "+
		"%.0f %% of the last 10 s\n\n", m.Seconds, m.Machine.Cores, m.Machine.CPUPressure, m.Machine.DiskPressure,
		m.Machine.MemoryPressure)
	fmt.Fprintf(c.Stdout, "%-20s %7s %7s %9s %7s %9s\n", "DAEMON", "CPU", "WAITS", "MEMORY", "FILES", "ANSWERS")
	for _, d := range m.Daemons {
		answers := "-"
		if d.Answer != nil {
			answers = millis(d.Answer.Median)
		}
		fmt.Fprintf(c.Stdout, "%-20s %6.0f%% %6.0f%% %9s %7d %9s\n", document.PrintableText(d.title()), 100*d.CPU,
			100*d.CPUWait, roost.Bytes(d.MemoryBytes), d.Files, answers)
		for _, t := range d.OwnTimes {
			fmt.Fprintf(c.Stdout, "  %-34s %9s on average of %.0f\n", t.Name, millis(t.Mean), t.Count)
		}
	}
	for _, d := range m.Disks {
		fmt.Fprintf(c.Stdout, "%-20s fsync %s, %s at most; %s free\n", document.PrintableText(d.Directory),
			millis(d.Fsync.Median), millis(d.Fsync.Max), roost.Bytes(d.FreeBytes))
	}
	fmt.Fprintln(c.Stdout)
}

func printFindings(c *frame.Invocation, findings []finding) {
	if len(findings) == 0 {
		fmt.Fprintln(c.Stdout, c.OutScreen.ColourText(frame.Green, "ok")+"    nothing that was measured is slow")
	}
	colours := map[findingLevel]string{levelWarn: frame.Yellow, levelFail: frame.Red}
	for _, f := range findings {
		fmt.Fprintf(c.Stdout, "%s  %s: %s\n", c.OutScreen.ColourText(colours[f.Level], string(f.Level)),
			document.PrintableText(f.What), document.PrintableText(f.Text))
		for line := range strings.Lines(f.Cure) {
			fmt.Fprintf(c.Stdout, "      %s\n", c.OutScreen.ColourText(frame.Dim, "→ "+strings.TrimSpace(line)))
		}
	}
}

// millis writes seconds as milliseconds.
func millis(seconds float64) string { return fmt.Sprintf("%.3g ms", 1000*seconds) }
