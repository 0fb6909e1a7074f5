package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/bench/gauge"
	"github.com/roost-batch/roost/internal/e2e"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// roostSystem is the pool that "roost up" makes of this machine for root. It has the
// central daemons, and two nodes of 8 cores each.
type roostSystem struct {
	*systemAgent
	pool *e2e.Pool
}

func (r *roostSystem) startSystem(ctx context.Context) (err error) {
	opt := e2e.PoolOptions{Roost: r.Roost, Dir: r.filePath("pool"), Nodes: 2, CPUs: sleepers}
	if r.Cell > 0 {
		opt.Nodes, opt.CPUs = 1, 1
	}
	r.pool, err = e2e.Start(ctx, opt)
	return err
}

// stopSystem stops it as Ctrl-C does, because its control groups are this machine's.
func (r *roostSystem) stopSystem() {
	if r.pool == nil {
		return
	}
	if err := r.pool.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "peers: roost:", err)
	}
}

func (r *roostSystem) version(ctx context.Context) string {
	out, _ := r.runAsUser(ctx, "roost", "version")
	if f := strings.Fields(out); len(f) > 1 {
		return f[1]
	}
	return "?"
}

var qsubArgs = []string{"qsub", "-l", "select=1:ncpus=1:mem=16mb", "-o", "/dev/null", "-e", "/dev/null"}

func (r *roostSystem) submitJob(argv ...string) ([]string, error) {
	return append(append(qsubArgs[:7:7], "--"), argv...), nil
}

func (r *roostSystem) submitArray(n int, argv ...string) ([]string, error) {
	return append(append(qsubArgs[:7:7], "-J", fmt.Sprintf("1-%d", n), "--"), argv...), nil
}

func (r *roostSystem) submitHeld() string { return strings.Join(qsubArgs, " ") + " -h -- /bin/true" }

func (r *roostSystem) submitHeldArray(ctx context.Context, n int) error {
	_, err := r.runAsUser(ctx, append(qsubArgs[:7:7], "-h", "-J", fmt.Sprintf("1-%d", n), "--", "/bin/true")...)
	return err
}

// submitBatch is the number of jobs in one call.
const submitBatch = 1000

// submitHeldJobs submits what qsub would, many jobs in a call, each a job of its own.
func (r *roostSystem) submitHeldJobs(ctx context.Context, n int) error {
	made, err := qsub.ParseQsub(append(qsubArgs[1:7:7], "-h", "--", "/bin/true"), qsub.QsubCaller{
		Dir: r.Work, Home: "/root", User: "root", Group: "root", Host: hostName, Environ: r.environment(),
		Stdin: func() ([]byte, error) {
			return nil, nil
		}, LookPath: func(p string) (string, error) { return p, nil }, IsDir: func(string) bool { return false },
	})
	if err != nil {
		return err
	}
	spec := &wire.JobSpec{Ad: made.Job.Ad.String(), Count: uint32(made.Job.Count)}
	for n > 0 {
		request := &wire.SubmitRequest{Key: strconv.FormatUint(rand.Uint64(), 36)}
		for range min(n, submitBatch) {
			request.Jobs = append(request.Jobs, spec)
		}
		if _, err := wire.SendSubmission(ctx, r.pool.Client, request); err != nil {
			return rpc.FromStatus(err)
		}
		n -= len(request.Jobs)
	}
	return nil
}

func (r *roostSystem) listCommand() []string { return []string{"qselect"} }

func (r *roostSystem) clearQueue() []string { return []string{"roost", "rm", "--force", "all"} }

func (r *roostSystem) daemonRole(p gauge.ProcessStat) string {
	for word, role := range map[string]string{"up": "master", "collector": "collector", "negotiator": "negotiator",
		"schedd": "schedd"} {
		if p.IsDaemon(word) {
			return role
		}
	}
	return ""
}

func (r *roostSystem) queueDaemon() string { return "schedd" }

func (r *roostSystem) restartDaemon(context.Context) error { return nil } // the master restarts it
