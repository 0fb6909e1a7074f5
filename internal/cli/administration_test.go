package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// TestAdministration holds what the commands of administrators print, against one cell.
func TestAdministration(t *testing.T) {
	f := clitest.SampleJobs()
	dir := f.Serve(t)
	var b strings.Builder
	for _, line := range []string{
		"roost quota", "roost quota set root --cpus 64 --memory 256GiB",
		"roost quota set each --band production --tasks 100 --from 2026-04-01T00:00:00Z --until 2026-05-01T00:00:00Z",
		"roost quota set nobody-of-that-name --cpus 1", "roost quota set nobody-of-that-name --cpus 1 --force",
		"roost quota set root --cpus -1", "roost quota set root --cpus NaN", "roost quota set root --gpus 1.5",
		"roost quota set root --memory 1e999G", "roost quota set root --band free --cpus 1", "roost quota set root",
		"roost quota set", "roost quota set --group sci --cpus 3", "roost quota set root --cpus 1 --until soon",
		"roost quota", "roost quota --json", "roost quota rm each --band production",
		"roost quota rm each --band production --from 2026-04-01T00:00:00Z", "roost quota rn",
		"roost quota set rooot --cpus 1", "roost quota rm root --cpus 1", "roost quota --cpus 1",
		"roost quota set root --memory 4",
		"roost group set sci --cores 100 --surplus on", "roost group set sci.chem --fraction 0.4",
		"roost group set sci.phys --fraction 0.7", "roost group set sci.bio --cores 101",
		"roost group set sci --surplus maybe", "roost group", "roost group rm sci",
		"roost limit set matlab 20", "roost limit set matlab many", "roost limit set matlab 20 3", "roost limit",
		"roost limit --color never", "roost limit rm abaqus",
		"roost queue set fast --band production --max-walltime 1h --max-cpus 8 --running-per-user 4 --users root",
		"roost queue stop fast", "roost queue stop slow", "roost queue stop fst", "roost queue rm fast --band batch",
		"roost queue set fast --max-cpus none --min-walltime 2h", "roost queue", "roost queue --json",
		"roost shares", "roost shares set root --factor 10", "roost shares set sci.chem.root --ceiling 5",
		"roost shares set root", "roost shares set root --factor 1e999", "roost shares reset root",
		"roost admin give ann@n1 quotas drains", "roost admin give ann@n1 limits", "roost admin take ann@n1 drains",
		"roost admin take ann@n1 drains", "roost admin", "roost admin give ann@n1 quota",
		"roost admin give ann@n1@n2 quotas", "roost admin capabilities",
		"roost drain", "roost drain n7 --reason memory", "roost drain n8 --from 2026-04-01T00:00:00Z --wait",
		"roost drain", "roost drain n8 --reason fan --from 2026-05-01T00:00:00Z", "roost drain n8", "roost drain",
		"roost drain --wait", "roost undrain n7 n9",
		"roost reservation set class --users root --nodes n1,n2 --from 2026-04-01T08:00:00Z --until " +
			"2026-04-01T12:00:00Z", "roost reservation set class --cpus 4",
		"roost reservation set none --users root --cpus 0 --from 2d --until 4d",
		"roost reservation set late --groups sci --cpus 64 --gpus 2 --from 2d --until 4d", "roost reservation",
		"roost cell", "roost cell settings", "roost cell set backfill off", "roost cell set backfill maybe",
		"roost cell unset backfill", "roost cell unset backfill", "roost cell set backfil off",
		"roost cell sett backfill off",
		"roost words -- queue ''", "roost words -- cell ''",
	} {
		a, stdout, stderr := newFullApp(t, dir)
		args := strings.Fields(line)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "''", "")
		}
		code := a.Run(t.Context(), args)
		fmt.Fprintf(&b, "$ %s\n%s", line, stdout)
		for _, l := range strings.SplitAfter(stderr.String(), "\n") {
			if l != "" {
				b.WriteString("! " + l)
			}
		}
		if code != 0 {
			fmt.Fprintf(&b, "[exit status %d]\n", code)
		}
		b.WriteString("\n")
	}
	clitest.CompareGolden(t, "administer", strings.ReplaceAll(b.String(), dir, "/pool"))
	if got := f.Ledger.Drains(); !slices.ContainsFunc(got, func(d ledger.MachineDrain) bool { return d.Node == "n8" }) {
		t.Errorf("drains: %v", got)
	}
}
