package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/roost-batch/roost/bench/gauge"
)

// gridEngine is a cell of one host: the qmaster, and an execution daemon with 16 slots.
type gridEngine struct {
	*agent
}

// Debian puts a script before each command, which finds out where they are; we know.
const (
	sgeRoot  = "/var/lib/gridengine"
	sgeBin   = "/usr/lib/gridengine/"
	messages = "/var/spool/gridengine/qmaster/messages"
)

func (g *gridEngine) begin(ctx context.Context) error {
	if err := g.write("queue", conf("gridengine.queue"), 0o644); err != nil {
		return err
	}
	if err := g.write("gridengine.sh", conf("gridengine.sh"), 0o755); err != nil {
		return err
	}
	profile := "fast"
	if g.Stock {
		profile = "stock"
	}
	if _, err := g.admin(ctx, "bash", g.file("gridengine.sh"), g.file("queue"), profile, fmt.Sprint(g.Cell)); err != nil {
		return err
	}
	if g.Cell > 0 {
		return nil
	}
	return until(ctx, 200*time.Millisecond, "Grid Engine's host says nothing", func() bool {
		out, err := g.do(ctx, sgeBin+"qstat", "-f")
		return err == nil && strings.Contains(out, "main.q@") && !strings.Contains(out, "-NA-")
	})
}

func (g *gridEngine) end() {}

func (g *gridEngine) version(ctx context.Context) string {
	out, _ := g.do(ctx, sgeBin+"qstat", "-help")
	line, _, _ := strings.Cut(out, "\n")
	if f := strings.Fields(line); len(f) > 1 {
		return f[len(f)-1]
	}
	return "?"
}

var sgeSubmit = []string{sgeBin + "qsub", "-terse", "-b", "y", "-shell", "n", "-o", "/dev/null", "-e", "/dev/null"}

func (g *gridEngine) one(argv ...string) ([]string, error) {
	return append(sgeSubmit[:10:10], argv...), nil
}

func (g *gridEngine) array(n int, argv ...string) ([]string, error) {
	return append(append(sgeSubmit[:10:10], "-t", fmt.Sprintf("1-%d", n)), argv...), nil
}

func (g *gridEngine) held() string { return strings.Join(sgeSubmit, " ") + " -h /bin/true" }

func (g *gridEngine) heldArray(ctx context.Context, n int) error {
	_, err := g.do(ctx, append(sgeSubmit[:10:10], "-h", "-t", fmt.Sprintf("1-%d", n), "/bin/true")...)
	return err
}

func (g *gridEngine) heldEach(ctx context.Context, n int) error { return g.crowd(ctx, g.held(), n) }

func (g *gridEngine) list() []string { return []string{sgeBin + "qstat", "-u", "bench"} }

func (g *gridEngine) clear() []string { return []string{sgeBin + "qdel", "-u", "bench"} }

func (g *gridEngine) role(p gauge.Process) string {
	if p.Command == "sge_qmaster" {
		return "qmaster"
	}
	return ""
}

func (g *gridEngine) queue() string { return "qmaster" }

func (g *gridEngine) revive(ctx context.Context) error {
	_, err := g.admin(ctx, "env", "SGE_MASTER_PIDFILE=/run/gridengine/qmaster.pid", "sge_qmaster")
	return err
}

// match lets jobs that are held go, all at once, in a cell whose hosts the qmaster only imagines, and reads in its log how long the scheduler took for
// them. A job asks for a time here, as an imagined host has no memory to ask for.
func (g *gridEngine) match(ctx context.Context, s sizes) (ans answer, err error) {
	ans.Values = map[string][]float64{}
	each := s.Jobs / s.Kinds
	for range s.Matches {
		for kind := range s.Kinds {
			argv := append(sgeSubmit[:10:10], "-h", "-t", fmt.Sprintf("1-%d", each), "-l", fmt.Sprintf("h_rt=%d", 36000+kind), "/bin/sleep", "36000")
			if _, err := g.do(ctx, argv...); err != nil {
				return ans, err
			}
		}
		before, err := os.Stat(messages)
		if err != nil {
			return ans, err
		}
		began := time.Now()
		if _, err := g.do(ctx, sgeBin+"qrls", "-u", "bench"); err != nil {
			return ans, err
		}
		err = until(ctx, 200*time.Millisecond, "not all jobs get a host", func() bool {
			out, err := g.do(ctx, sgeBin+"qstat", "-u", "bench", "-s", "r")
			return err == nil && strings.Count(out, "main.q@") >= each*s.Kinds
		})
		if err != nil {
			return ans, err
		}
		ans.add("match", time.Since(began).Seconds())
		text, _ := os.ReadFile(messages)
		ans.Note = fmt.Sprintf("until %d jobs have an imagined host", each*s.Kinds)
		if n := min(int64(len(text)), before.Size()); len(text) > 0 {
			if took := dispatching(string(text[n:])); took > 0 {
				ans.Note += fmt.Sprintf("; its scheduler says %.2f s", took)
			}
		}
		if err := g.wipe(ctx); err != nil {
			return ans, err
		}
	}
	return ans, nil
}
