package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/owner"
	"github.com/roost-batch/roost/internal/config/pooldir"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Command returns roost doctor: check that the pool and this machine are well.
func Command() *frame.Command {
	return &frame.Command{
		Name: "doctor", Group: frame.GroupPool, Summary: "check that the pool and this machine are well",
		MaxOperands: 0,
		Run:         runChecks,
		Description: "Checks the daemons of the pool, its directory, and what this machine's kernel offers to jobs. " +
			"Each line says ok, warn or fail, and what to do about it. The exit status is 0 if nothing fails and 1 " +
			"if something does.",
		Examples: []frame.Example{
			{Line: "roost doctor", Description: "check everything"},
			{Line: "roost doctor --json", Description: "the same, for a monitor"},
			{Line: "roost doctor --repair --dry-run",
				Description: "say what of this node's files is damaged, and what a repair would take out"},
			{Line: "roost doctor --bundle bundle.tar.gz",
				Description: "collect what who helps you has to see, without secrets"},
		},
		Flags: []ucli.Flag{
			frame.JSONFlag(),
			&ucli.BoolFlag{Name: "repair",
				Usage: "take out of this node's files what is damaged; its daemons must be stopped"},
			&ucli.StringFlag{Name: "bundle", Usage: "also write logs, settings, ads and what the kernel says into " +
				"this `FILE`, a tar.gz, without secrets"},
			&ucli.BoolFlag{Name: "dry-run", Usage: "with --repair, only say what would be taken out"},
			&ucli.BoolFlag{Name: "pilot",
				Usage: "in an allocation of another batch system: check what a pilot could do there, and nothing else"},
			&ucli.StringSliceFlag{Name: "to", Usage: "with --pilot, connect to this `HOST:PORT` of the pool; may be " +
				"repeated"},
			&ucli.StringFlag{Name: "scratch", Usage: "with --pilot, work below `DIR`; $TMPDIR unless given"},
			&ucli.StringFlag{Name: "config", Usage: "with --repair, the node `FILE` of the node that is meant"},
		},
	}
}

func runChecks(c *frame.Invocation) error {
	if c.Flag("repair") {
		return repairFiles(c)
	}
	if c.Flag("dry-run") {
		return frame.UsageErrorf("--dry-run says what --repair would do: give both")
	}
	if c.Flag("pilot") {
		return report(c, examinePilot(c))
	}
	if len(c.StringsFlag("to")) > 0 || c.StringFlag("scratch") != "" {
		return frame.UsageErrorf("--to and --scratch are for --pilot: give it, too")
	}
	findings, dir := examinePool(c)
	findings = append(findings, examineDirectory(dir)...)
	written, node := examineFiles(c)
	findings = append(findings, written...)
	findings = append(findings, examineGuard(c, node)...)
	findings = append(findings, examineAccounts(c, node)...)
	findings = append(findings, examineSiteScripts(node)...)
	findings = append(findings, examineWeb(c, node)...)
	findings = append(findings, examineAccountant(c, node)...)
	findings = append(findings, examineCheckpointServer(c, node)...)
	findings = append(findings, examineDNS(c.Context, node)...)
	findings = append(findings, examinePorts(node, "/proc/sys/net/ipv4")...)
	findings = append(findings, examinePrograms(programDirectory()))
	findings = append(findings, examineMachine(c.Context, dir == "" || owner.OwnsPool(dir))...)
	if file := c.StringFlag("bundle"); file != "" {
		if err := writeBundle(c, file, findings, node); err != nil {
			return err
		}
	}
	return report(c, findings)
}

// report prints what was found. The error is an exit status of 1 if something fails.
func report(c *frame.Invocation, findings []checkResult) error {
	failed := false
	for _, f := range findings {
		failed = failed || f.Level == levelError
	}
	if c.WantsJSON() {
		if err := frame.PrintJSON(c.Stdout, frame.JSONDocument{"findings": findings, "ok": !failed}); err != nil {
			return err
		}
	} else {
		printFindings(c, findings)
	}
	if failed {
		return frame.ExitError(1)
	}
	return nil
}

func printFindings(c *frame.Invocation, findings []checkResult) {
	colours := map[checkLevel]string{levelOK: frame.Green, levelWarning: frame.Yellow, levelError: frame.Red}
	for _, f := range findings {
		pad := strings.Repeat(" ", 4-len(f.Level))
		lines := strings.Split(f.Text, "\n")
		fmt.Fprintf(c.Stdout, "%s%s  %-11s %s\n", c.OutScreen.ColourText(colours[f.Level], string(f.Level)), pad,
			f.Check,
			wrapBeside(c, document.PrintableText(lines[0])))
		for _, line := range lines[1:] {
			fmt.Fprintf(c.Stdout, "%*s%s\n", findingColumn, "", document.PrintableText(line))
		}
		if f.Hint != "" {
			fmt.Fprintf(c.Stdout, "%*s%s\n", findingColumn, "",
				c.OutScreen.ColourText(frame.Dim, wrapBeside(c, "→ "+f.Hint)))
		}
	}
}

// findingColumn is where the words of a finding begin.
const findingColumn = 18

// wrapBeside breaks words that stand in a column of their own, where the window would
// break them anywhere.
func wrapBeside(c *frame.Invocation, text string) string {
	if c.OutScreen.Width <= findingColumn+20 {
		return text
	}
	return strings.ReplaceAll(frame.WrapText(text, c.OutScreen.Width-findingColumn-1), "\n",
		"\n"+strings.Repeat(" ", findingColumn))
}

// examinePool asks the schedd how the daemons are, and returns where the pool keeps its
// files.
func examinePool(c *frame.Invocation) (findings []checkResult, dir string) {
	var h *scheddapi.HealthReply
	err := c.CallSchedd(frame.AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) (err error) {
		h, err = s.Health(ctx, &scheddapi.HealthRequest{})
		return err
	})
	if err != nil {
		if !c.IsConnected() {
			if findings, dir, ok := examineNode(c); ok {
				return findings, dir
			}
		}
		cure := pooldir.StartAdvice(c.StringFlag("dir"), c.Getenv)
		if c.IsConnected() {
			cure = "look at the logs in the pool's directory; " + cure
		}
		if errors.Is(frame.DecodeError(err), roost.PermissionDenied) {
			cure = "ask the pool's owner, or start your own with: roost up"
		}
		return []checkResult{{"schedd", levelError, firstLine(frame.ErrorText(err)), cure}}, ""
	}
	findings = append(findings, checkResult{"schedd", levelOK,
		fmt.Sprintf("%s answers, version %s, up for %s; %d tasks queued, %d running",
			h.GetName(), h.GetVersion(), document.SpanText(c.Now().Sub(document.TimeOfNanos(h.GetStarted()))),
			h.GetQueuedTasks(),
			h.GetRunningTasks()), ""})
	if v := h.GetVersion(); v != "" && v != roost.Version {
		findings = append(findings, checkResult{"version", levelWarning,
			fmt.Sprintf("the schedd is of version %s and this program of %s", v, roost.Version), "restart the pool"})
	}
	collector := h.GetCollector()
	if h.GetCollectorOk() {
		collector = "answers at " + collector
	}
	findings = append(findings, daemonFinding("collector", h.GetCollectorOk(), collector), negotiatorFinding(h))
	findings = append(findings, examineNodes(c, h))
	if h.GetCollectorOk() {
		findings = append(append(findings, examineGPUs(c)...), examineNames(c)...)
	}
	for _, p := range h.GetProblems() {
		findings = append(findings, checkResult{"pool", levelWarning, p, ""})
	}
	return findings, h.GetDirectory()
}

func daemonFinding(name string, ok bool, text string) checkResult {
	if ok {
		return checkResult{name, levelOK, text, ""}
	}
	if frame.IsCertificateRefused(text) {
		return checkResult{name, levelError, text,
			"it refuses this node's certificate, which was revoked or has ended: " + frame.NewCertificate}
	}
	return checkResult{name, levelError, text,
		"its master restarts it; if it does not come back, look at " + name + ".log in the pool's log directory"}
}

// negotiatorFinding judges what the schedd has heard of all negotiators: one that is away
// is no trouble yet.
func negotiatorFinding(h *scheddapi.HealthReply) checkResult {
	f := daemonFinding("negotiator", h.GetNegotiatorOk(), h.GetNegotiator())
	switch away := strings.Contains(f.Text, "does not answer"); {
	case h.GetNegotiatorOk() && away:
		f.Level, f.Hint = levelWarning,
			"the pool goes on without it; see on a central manager how many more may fail: roost doctor"
	case !h.GetNegotiatorOk():
		f.Hint = "nothing new starts until one leads, and what runs goes on; ask on a central manager what is wrong: " +
			"roost doctor"
	}
	return f
}

func examineNodes(c *frame.Invocation, h *scheddapi.HealthReply) checkResult {
	if !h.GetCollectorOk() {
		return checkResult{"nodes", levelWarning, "unknown while no collector answers", ""}
	}
	ads, err := c.QueryAds(&scheddapi.AdQuery{Type: "Machine",
		Projection: []string{roost.AttrName, roost.AttrEnforces, roost.AttrHasSandbox, roost.AttrHasCheckpoint}})
	switch {
	case err != nil:
		return checkResult{"nodes", levelError, firstLine(frame.ErrorText(err)), ""}
	case len(ads) == 0:
		return checkResult{"nodes", levelError, "no execute node has reported, so nothing can run",
			"look at startd.log in the pool's log directory"}
	}
	limited, shut, saved := 0, 0, 0
	for _, text := range ads {
		ad, err := classad.Parse(text)
		if err != nil {
			continue
		}
		if names, _ := ad.Strings(roost.AttrEnforces); slices.Contains(names, "memory") {
			limited++
		}
		if yes, _ := ad.Bool(roost.AttrHasSandbox); yes {
			shut++
		}
		if yes, _ := ad.Bool(roost.AttrHasCheckpoint); yes {
			saved++
		}
	}
	return checkResult{"nodes", levelOK, fmt.Sprintf("%s: with limits of memory %d, sandboxes %d, checkpoints %d",
		document.Plural(len(ads), "execute node"), limited, shut, saved), ""}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSuffix(line, " at")
}
