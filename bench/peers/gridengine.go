package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/roost-batch/roost/bench/gauge"
)

// gridEngineSystem is a cell of one host: the qmaster, and an execution daemon with 16
// slots.
type gridEngineSystem struct {
	*systemAgent
}

// Debian wraps each command in a script that finds these paths; here they are known.
const (
	sgeRoot           = "/var/lib/gridengine"
	sgeBin            = "/usr/lib/gridengine/"
	schedulerMessages = "/var/spool/gridengine/qmaster/messages"
)

func (g *gridEngineSystem) startSystem(ctx context.Context) error {
	if err := g.writeFile("queue", configText("gridengine.queue"), 0o644); err != nil {
		return err
	}
	if err := g.writeFile("gridengine.sh", configText("gridengine.sh"), 0o755); err != nil {
		return err
	}
	profile := "fast"
	if g.Stock {
		profile = "stock"
	}
	if _, err := g.runAsAdmin(ctx, "bash", g.filePath("gridengine.sh"), g.filePath("queue"), profile,
		fmt.Sprint(g.Cell)); err != nil {
		return err
	}
	if g.Cell > 0 {
		return nil
	}
	return pollUntil(ctx, 200*time.Millisecond, "Grid Engine's host says nothing", func() bool {
		out, err := g.runAsUser(ctx, sgeBin+"qstat", "-f")
		return err == nil && strings.Contains(out, "main.q@") && !strings.Contains(out, "-NA-")
	})
}

func (g *gridEngineSystem) stopSystem() {}

func (g *gridEngineSystem) version(ctx context.Context) string {
	out, _ := g.runAsUser(ctx, sgeBin+"qstat", "-help")
	line, _, _ := strings.Cut(out, "\n")
	if f := strings.Fields(line); len(f) > 1 {
		return f[len(f)-1]
	}
	return "?"
}

var sgeSubmit = []string{sgeBin + "qsub", "-terse", "-b", "y", "-shell", "n", "-o", "/dev/null", "-e", "/dev/null"}

func (g *gridEngineSystem) submitJob(argv ...string) ([]string, error) {
	return append(sgeSubmit[:10:10], argv...), nil
}

func (g *gridEngineSystem) submitArray(n int, argv ...string) ([]string, error) {
	return append(append(sgeSubmit[:10:10], "-t", fmt.Sprintf("1-%d", n)), argv...), nil
}

func (g *gridEngineSystem) submitHeld() string { return strings.Join(sgeSubmit, " ") + " -h /bin/true" }

func (g *gridEngineSystem) submitHeldArray(ctx context.Context, n int) error {
	_, err := g.runAsUser(ctx, append(sgeSubmit[:10:10], "-h", "-t", fmt.Sprintf("1-%d", n), "/bin/true")...)
	return err
}

func (g *gridEngineSystem) submitHeldJobs(ctx context.Context, n int) error {
	return g.submitInParallel(ctx, g.submitHeld(), n)
}

func (g *gridEngineSystem) listCommand() []string { return []string{sgeBin + "qstat", "-u", "bench"} }

func (g *gridEngineSystem) clearQueue() []string { return []string{sgeBin + "qdel", "-u", "bench"} }

func (g *gridEngineSystem) daemonRole(p gauge.ProcessStat) string {
	if p.Command == "sge_qmaster" {
		return "qmaster"
	}
	return ""
}

func (g *gridEngineSystem) queueDaemon() string { return "qmaster" }

func (g *gridEngineSystem) restartDaemon(ctx context.Context) error {
	_, err := g.runAsAdmin(ctx, "env", "SGE_MASTER_PIDFILE=/run/gridengine/qmaster.pid", "sge_qmaster")
	return err
}

// matchJobs releases held jobs, all at once, in a cell whose hosts do not exist. It reads
// in the scheduler's log how long that took. A job requests a time here, because a host
// that does not exist has no memory to request.
func (g *gridEngineSystem) matchJobs(ctx context.Context, s workSizes) (ans measureResult, err error) {
	ans.Values = map[string][]float64{}
	each := s.Jobs / s.Kinds
	for range s.Matches {
		for kind := range s.Kinds {
			argv := append(sgeSubmit[:10:10], "-h", "-t", fmt.Sprintf("1-%d", each), "-l",
				fmt.Sprintf("h_rt=%d", 36000+kind), "/bin/sleep", "36000")
			if _, err := g.runAsUser(ctx, argv...); err != nil {
				return ans, err
			}
		}
		before, err := os.Stat(schedulerMessages)
		if err != nil {
			return ans, err
		}
		began := time.Now()
		if _, err := g.runAsUser(ctx, sgeBin+"qrls", "-u", "bench"); err != nil {
			return ans, err
		}
		err = pollUntil(ctx, 200*time.Millisecond, "not all jobs get a host", func() bool {
			out, err := g.runAsUser(ctx, sgeBin+"qstat", "-u", "bench", "-s", "r")
			return err == nil && strings.Count(out, "main.q@") >= each*s.Kinds
		})
		if err != nil {
			return ans, err
		}
		ans.addValue("match", time.Since(began).Seconds())
		text, _ := os.ReadFile(schedulerMessages)
		ans.Note = fmt.Sprintf("until %d jobs have an imagined host", each*s.Kinds)
		if n := min(int64(len(text)), before.Size()); len(text) > 0 {
			if took := dispatchTime(string(text[n:])); took > 0 {
				ans.Note += fmt.Sprintf("; its scheduler says %.2f s", took)
			}
		}
		if err := g.removeAllJobs(ctx); err != nil {
			return ans, err
		}
	}
	return ans, nil
}
