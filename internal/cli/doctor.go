package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire"
)

func doctorCommand() *command {
	return &command{
		name: "doctor", group: groupPool, summary: "check that the pool and this machine are well", maxOperands: 0,
		run: runChecks,
		description: "Checks the daemons of the pool, its directory, and what this machine's kernel offers to jobs. " +
			"Each line says ok, warn or fail, and what to do about it. The exit status is 0 if nothing fails and 1 " +
			"if something does.",
		examples: []commandExample{
			{"roost doctor", "check everything"},
			{"roost doctor --json", "the same, for a monitor"},
			{"roost doctor --repair --dry-run",
				"say what of this node's files is damaged, and what a repair would take out"},
		},
		flags: []ucli.Flag{
			jsonFlag(),
			&ucli.BoolFlag{Name: "repair",
				Usage: "take out of this node's files what is damaged; its daemons must be stopped"},
			&ucli.BoolFlag{Name: "dry-run", Usage: "with --repair, only say what would be taken out"},
			&ucli.StringFlag{Name: "config", Usage: "with --repair, the node `FILE` of the node that is meant"},
		},
	}
}

func runChecks(c *invocation) error {
	if c.flag("repair") {
		return c.repairFiles()
	}
	if c.flag("dry-run") {
		return usageErrorf("--dry-run says what --repair would do: give both")
	}
	findings, dir := c.examinePool()
	findings = append(findings, examineDirectory(dir)...)
	written, node := c.examineFiles()
	findings = append(findings, written...)
	findings = append(findings, c.examineGuard(node)...)
	findings = append(findings, c.examineAccounts(node)...)
	findings = append(findings, examineMachine(c.ctx, dir == "" || ownsPool(dir))...)
	failed := false
	for _, f := range findings {
		failed = failed || f.Level == levelError
	}
	if c.wantsJSON() {
		if err := printJSON(c.stdout, jsonDocument{"findings": findings, "ok": !failed}); err != nil {
			return err
		}
	} else {
		c.printFindings(findings)
	}
	if failed {
		return exitError(1)
	}
	return nil
}

func (c *invocation) printFindings(findings []checkResult) {
	colours := map[checkLevel]string{levelOK: green, levelWarning: yellow, levelError: red}
	for _, f := range findings {
		pad := strings.Repeat(" ", 4-len(f.Level))
		lines := strings.Split(f.Text, "\n")
		fmt.Fprintf(c.stdout, "%s%s  %-11s %s\n", c.out.colourText(colours[f.Level], string(f.Level)), pad, f.Check,
			c.wrapBeside(printableText(lines[0])))
		for _, line := range lines[1:] {
			fmt.Fprintf(c.stdout, "%*s%s\n", findingColumn, "", printableText(line))
		}
		if f.Hint != "" {
			fmt.Fprintf(c.stdout, "%*s%s\n", findingColumn, "", c.out.colourText(dim, c.wrapBeside("→ "+f.Hint)))
		}
	}
}

// findingColumn is where the words of a finding begin.
const findingColumn = 18

// wrapBeside breaks words that stand in a column of their own, where the window would
// break them anywhere.
func (c *invocation) wrapBeside(text string) string {
	if c.out.width <= findingColumn+20 {
		return text
	}
	return strings.ReplaceAll(wrapText(text, c.out.width-findingColumn-1), "\n",
		"\n"+strings.Repeat(" ", findingColumn))
}

// examinePool asks the schedd how the daemons are, and returns where the pool keeps its
// files.
func (c *invocation) examinePool() (findings []checkResult, dir string) {
	var h *wire.HealthReply
	err := c.callSchedd(askTimeout, func(ctx context.Context, s wire.ScheddClient) (err error) {
		h, err = s.Health(ctx, &wire.HealthRequest{})
		return err
	})
	if err != nil {
		if !c.isConnected() {
			if findings, dir, ok := c.examineNode(); ok {
				return findings, dir
			}
		}
		cure := "look at the logs in the pool's directory, or start it again with: roost up"
		if !c.isConnected() {
			cure = "start one with: roost up"
		}
		if errors.Is(decodeError(err), roost.PermissionDenied) {
			cure = "ask the pool's owner, or start your own with: roost up"
		}
		return []checkResult{{"schedd", levelError, firstLine(errorText(err)), cure}}, ""
	}
	findings = append(findings, checkResult{"schedd", levelOK,
		fmt.Sprintf("%s answers, version %s, up for %s; %d tasks queued, %d running",
			h.GetName(), h.GetVersion(), spanText(c.now().Sub(timeOfNanos(h.GetStarted()))), h.GetQueuedTasks(),
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
	findings = append(findings, c.examineNodes(h))
	if h.GetCollectorOk() {
		findings = append(findings, c.examineGPUs()...)
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
	if isCertificateRefused(text) {
		return checkResult{name, levelError, text,
			"it refuses this node's certificate, which was revoked or has ended: " + newCertificate}
	}
	return checkResult{name, levelError, text,
		"its master restarts it; if it does not come back, look at " + name + ".log in the pool's log directory"}
}

// negotiatorFinding judges what the schedd has heard of all negotiators: one that is away
// is no trouble yet.
func negotiatorFinding(h *wire.HealthReply) checkResult {
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

func (c *invocation) examineNodes(h *wire.HealthReply) checkResult {
	if !h.GetCollectorOk() {
		return checkResult{"nodes", levelWarning, "unknown while no collector answers", ""}
	}
	ads, err := c.queryAds(&wire.AdQuery{Type: "Machine",
		Projection: []string{roost.AttrName, roost.AttrEnforces, roost.AttrHasSandbox, roost.AttrHasCheckpoint}})
	switch {
	case err != nil:
		return checkResult{"nodes", levelError, firstLine(errorText(err)), ""}
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
		plural(len(ads), "execute node"), limited, shut, saved), ""}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSuffix(line, " at")
}
