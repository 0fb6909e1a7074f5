package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/owner"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
)

// examineGuard names each source of idleness of this machine, and how it is. A machine
// without a guard has no owner whom it could trouble. Where its policy asks for one, a
// guard that does not answer is the reason why nothing is lent.
func examineGuard(c *frame.Invocation, n *config.Node) (findings []checkResult) {
	g, err := owner.NearestGuard(c)
	if err != nil {
		return nil
	}
	err = owner.WithGuard(c, g, func(ctx context.Context, w wire.GuardClient) error {
		m, err := w.Mine(ctx, &wire.MineRequest{})
		for _, s := range m.GetSigns().GetSources() {
			f := checkResult{"owner", levelOK, fmt.Sprintf("%s: %s", s.GetName(), s.GetText()), ""}
			if s.GetHealth() == wire.IdleSource_BROKEN {
				f.Level = levelWarning
				if at := strings.LastIndex(f.Text, "; "); at >= 0 {
					f.Text, f.Hint = f.Text[:at], f.Text[at+len("; "):]
				}
			}
			findings = append(findings, f)
		}
		if busy := m.GetSigns().GetBusy(); busy != "" {
			findings = append(findings, checkResult{"owner", levelWarning, "the machine is not lent: " + busy, ""})
		}
		return err
	}, func(err error) error { return err })
	if n != nil && n.NeedsGuard() && errors.Is(err, roost.Unavailable) {
		return []checkResult{guardSilentFinding(n, g.Socket)}
	}
	return findings
}

// guardSilentFinding is for a machine whose policy asks for a guard that does not answer.
func guardSilentFinding(n *config.Node, socket string) checkResult {
	f := checkResult{Check: "guard", Level: levelError,
		Text: "the guard of this machine does not answer at " + socket + ": nothing is lent until it does",
		Hint: "start it: systemctl start roost-guard; if it does not stay, look at guard.log in " + n.Dir + "/log"}
	if n.Dir != config.SystemDir {
		f.Hint = "the pool's master starts it again; if it does not stay, look at guard.log in " + n.Dir + "/log"
	}
	return f
}
