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
	"github.com/roost-batch/roost/internal/pbs"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// roostSystem is what "roost up" makes of this machine for root: the central daemons, and two nodes of 8 cores each.
type roostSystem struct {
	*agent
	pool *e2e.Pool
}

func (r *roostSystem) begin(ctx context.Context) (err error) {
	opt := e2e.Options{Roost: r.Roost, Dir: r.file("pool"), Nodes: 2, CPUs: sleepers}
	if r.Cell > 0 {
		opt.Nodes, opt.CPUs = 1, 1
	}
	r.pool, err = e2e.Start(ctx, opt)
	return err
}

// end lets it go as Ctrl-C does: its control groups are this machine's.
func (r *roostSystem) end() {
	if r.pool == nil {
		return
	}
	if err := r.pool.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "peers: roost:", err)
	}
}

func (r *roostSystem) version(ctx context.Context) string {
	out, _ := r.do(ctx, "roost", "version")
	if f := strings.Fields(out); len(f) > 1 {
		return f[1]
	}
	return "?"
}

var qsub = []string{"qsub", "-l", "select=1:ncpus=1:mem=16mb", "-o", "/dev/null", "-e", "/dev/null"}

func (r *roostSystem) one(argv ...string) ([]string, error) {
	return append(append(qsub[:7:7], "--"), argv...), nil
}

func (r *roostSystem) array(n int, argv ...string) ([]string, error) {
	return append(append(qsub[:7:7], "-J", fmt.Sprintf("1-%d", n), "--"), argv...), nil
}

func (r *roostSystem) held() string { return strings.Join(qsub, " ") + " -h -- /bin/true" }

func (r *roostSystem) heldArray(ctx context.Context, n int) error {
	_, err := r.do(ctx, append(qsub[:7:7], "-h", "-J", fmt.Sprintf("1-%d", n), "--", "/bin/true")...)
	return err
}

// atOnce is how many jobs one call submits.
const atOnce = 1000

// heldEach submits what qsub would, many jobs in a call, each a job of its own.
func (r *roostSystem) heldEach(ctx context.Context, n int) error {
	made, err := pbs.ParseQsub(append(qsub[1:7:7], "-h", "--", "/bin/true"), pbs.Caller{
		Dir: r.Work, Home: "/root", User: "root", Group: "root", Host: hostName, Environ: r.environment(),
		Stdin: func() ([]byte, error) { return nil, nil }, Look: func(p string) (string, error) { return p, nil }, IsDir: func(string) bool { return false },
	})
	if err != nil {
		return err
	}
	spec := &wire.JobSpec{Ad: made.Job.Ad.String(), Count: uint32(made.Job.Count)}
	for n > 0 {
		request := &wire.SubmitRequest{Key: strconv.FormatUint(rand.Uint64(), 36)}
		for range min(n, atOnce) {
			request.Jobs = append(request.Jobs, spec)
		}
		if _, err := wire.Submit(ctx, r.pool.Client, request); err != nil {
			return rpc.FromStatus(err)
		}
		n -= len(request.Jobs)
	}
	return nil
}

func (r *roostSystem) list() []string { return []string{"qselect"} }

func (r *roostSystem) clear() []string { return []string{"roost", "rm", "--force", "all"} }

func (r *roostSystem) role(p gauge.Process) string {
	for word, role := range map[string]string{" up ": "master", " collector ": "collector", " negotiator ": "negotiator", " schedd ": "schedd"} {
		if p.Command == "roost" && strings.Contains(p.Args, "roost"+word) {
			return role
		}
	}
	return ""
}

func (r *roostSystem) queue() string { return "schedd" }

func (r *roostSystem) revive(context.Context) error { return nil } // the master does it
