package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/enroll"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Times of a pilot.
const (
	minPilotMargin = time.Minute      // before the end of the allocation
	leaveTimeout   = 10 * time.Second // for the authority to answer at the end
)

// PilotCommand returns roost pilot: run your tasks in an allocation of another batch
// system.
func PilotCommand() *frame.Command {
	return &frame.Command{
		Name: "pilot", Group: frame.GroupPool, Summary: "run your tasks in an allocation of another batch system",
		MaxOperands: 0, Run: runPilot,
		Description: "Lends this machine to your pool for as long as an allocation of another batch system lasts: " +
			"write it into a job of Slurm, PBS or whatever there is. It needs no root and no open port: it opens " +
			"the connections to the pool itself. It runs your tasks only, and none that may not end before the " +
			"allocation does. When it has nothing to do, or its time has come, it leaves the pool and ends.",
		Examples: []frame.Example{
			{Line: "roost pilot --token-file pilot.token --walltime 12h",
				Description: "in a job of twelve hours; roost token --pilots has written the file"},
			{Line: "srun --ntasks-per-node=1 roost pilot --token-file pilot.token",
				Description: "on each node of a job of Slurm, whose end it knows"},
		},
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "token-file", Usage: "the `FILE` with the line of roost token --pilots, which " +
				"only you may read"},
			&ucli.StringFlag{Name: "walltime", Usage: "how `LONG` the allocation lasts from now; of a job of Slurm " +
				"it is known"},
			&ucli.StringFlag{Name: "margin", Usage: "be gone this `LONG` before the allocation ends, for " +
				"checkpoints; 2 percent of the walltime and at least 1m unless given"},
			&ucli.BoolFlag{Name: "any-length", Usage: "also run tasks that may not end before the allocation does; " +
				"they are ended with it, and start again elsewhere"},
			&ucli.StringFlag{Name: "idle", Usage: "end after so `LONG` without tasks; 0 is never", Value: "5m"},
			&ucli.StringFlag{Name: "first-idle", Usage: "likewise before the first task", Value: "20m"},
			&ucli.StringFlag{Name: "cpus", Usage: "lend `N` cores, instead of those that this process may use"},
			&ucli.StringFlag{Name: "memory", Usage: "lend this `SIZE` of memory, instead of what the allocation has"},
			&ucli.StringFlag{Name: "scratch", Usage: "work below `DIR`; $TMPDIR unless given"},
			&ucli.StringFlag{Name: "provider", Usage: "the `NAME` of the provider, for display"},
			&ucli.StringFlag{Name: "key", Usage: "the `KEY` of the allocation, for display"},
		},
	}
}

// pilotToken prints what pilots need to join.
func pilotToken(c *frame.Invocation) error {
	if len(c.Args) > 0 {
		return frame.UsageErrorf("roost token --pilots takes no arguments")
	}
	life, err := roost.ParseDuration(c.StringFlag("expires"))
	if err != nil {
		return frame.UsageErrorf("--expires: %v", err)
	}
	uses := c.CountFlag("pilots")
	if uses < 1 {
		return frame.UsageErrorf("--pilots: at least one pilot joins")
	}
	made := &scheddapi.PilotTokenReply{}
	if owner := c.StringFlag("owner"); owner != "" {
		client, err := authority(c)
		if err != nil {
			return err
		}
		reply, err := client.MakeToken(c.Context, &wire.MakeTokenRequest{Part: "pilot", Uses: uint32(uses),
			Owner: owner, Life: int64(life)})
		if err != nil {
			return authorityUnanswered(err)
		}
		made.Address, made.Token, made.Owner = reply.GetAddress(), reply.GetToken(), reply.GetInfo().GetOwner()
		made.Expires = reply.GetInfo().GetExpires()
	} else if err := c.CallSchedd(frame.AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) (err error) {
		made, err = s.PilotToken(ctx, &scheddapi.PilotTokenQuery{Life: int64(life), Uses: uint32(uses)})
		return err
	}); err != nil {
		return err
	}
	fmt.Fprintf(c.Stderr, "Put this line into a file that only you may read, and name it to roost pilot --token-file "+
		"before %s. %d pilots of %s can join with it.\n\n",
		time.Unix(0, made.GetExpires()).Format("Mon 15:04"), uses, made.GetOwner())
	_, err = fmt.Fprintf(c.Stdout, "%s %s\n", made.GetAddress(), made.GetToken())
	return err
}

// pilotOptions reads the flags of roost pilot, and what the other batch system says of
// its allocation.
func pilotOptions(c *frame.Invocation, now time.Time) (p enroll.PilotOptions, err error) {
	if c.StringFlag("token-file") == "" {
		return p, frame.UsageErrorf("--token-file is needed: roost token --pilots prints what is in it")
	}
	if p.Authority, p.Token, err = enroll.ReadPilotToken(c.StringFlag("token-file")); err != nil {
		return p, err
	}
	var walltime, margin time.Duration
	for name, to := range map[string]*time.Duration{"walltime": &walltime, "margin": &margin, "idle": &p.Idle,
		"first-idle": &p.FirstIdle} {
		if text := c.StringFlag(name); text != "" {
			if *to, err = roost.ParseDuration(text); err != nil {
				return p, frame.UsageErrorf("--%s: %v", name, err)
			}
		}
	}
	if end, err := strconv.ParseInt(c.Getenv("SLURM_JOB_END_TIME"), 10, 64); err == nil && end > now.Unix() {
		if left := time.Unix(end, 0).Sub(now); walltime == 0 || left < walltime {
			walltime = left
		}
	}
	if walltime > 0 {
		margin = cmp.Or(margin, max(minPilotMargin, walltime/50))
		if margin >= walltime {
			return p, frame.UsageErrorf("the allocation lasts %v, and the pilot has to be gone %v before: it has no "+
				"time for tasks; ask for a longer one, or give a shorter --margin", walltime.Round(time.Second), margin)
		}
		p.Until = now.Add(walltime - margin)
	}
	if p.Resources, err = pilotResources(c); err != nil {
		return p, err
	}
	p.AnyLength = c.Flag("any-length")
	p.Host, p.Provider, p.Key = config.HostName(), c.StringFlag("provider"), c.StringFlag("key")
	return p, nil
}

// pilotResources returns what of the machine the allocation has. Zero is what its batch
// system does not say; the startd measures it.
func pilotResources(c *frame.Invocation) (r roost.Resources, err error) {
	if text := c.StringFlag("cpus"); text != "" {
		if r.CPU, err = admin.ParseCores(text); err != nil {
			return r, err
		}
	} else if n, err := strconv.Atoi(c.Getenv("SLURM_CPUS_ON_NODE")); err == nil && n > 0 {
		r.CPU = roost.MilliCPU(n) * 1000
	}
	if text := c.StringFlag("memory"); text != "" {
		if r.Memory, err = roost.ParseBytes(text); err != nil {
			return r, frame.UsageErrorf("--memory: %v", err)
		}
	} else if n, err := strconv.ParseInt(c.Getenv("SLURM_MEM_PER_NODE"), 10, 64); err == nil && n > 0 {
		r.Memory = roost.Bytes(n) * roost.MiB
	} else if n, err := strconv.ParseInt(c.Getenv("SLURM_MEM_PER_CPU"), 10, 64); err == nil && n > 0 && r.CPU > 0 {
		r.Memory = roost.Bytes(n) * roost.MiB * roost.Bytes(r.CPU/1000)
	}
	return r, nil
}

// runPilot joins the pool, runs the startd until it ends, and leaves the pool.
func runPilot(c *frame.Invocation) error {
	p, err := pilotOptions(c, c.Now())
	if err != nil {
		return err
	}
	base := cmp.Or(c.StringFlag("scratch"), os.TempDir())
	if p.Dir, err = os.MkdirTemp(base, "roost-pilot-"); err != nil {
		return fmt.Errorf("pilot: %w: it cannot write below %s: name another directory with --scratch: %w",
			roost.NoOutput, base, err)
	}
	defer os.RemoveAll(p.Dir)
	n, err := enroll.JoinPilot(c.Context, p)
	if err != nil {
		return fmt.Errorf("pilot: %w", err)
	}
	fmt.Fprintf(c.Stderr, "%s runs tasks of %s in the pool %s%s.\n", n.Name, n.Startds[0].Pilot.Owner, n.Pool,
		untilText(p.Until))
	err = superviseStartd(c, n)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context), leaveTimeout)
	defer cancel()
	if lerr := enroll.LeavePilot(ctx, n); lerr != nil {
		fmt.Fprintf(c.Stderr, "%s has not left the pool in order (%v); its certificate ends by itself.\n", n.Name, lerr)
	}
	return err
}

func untilText(until time.Time) string {
	if until.IsZero() {
		return ""
	}
	return " until " + until.Format("Mon 15:04")
}

// superviseStartd runs the startd of a pilot, and passes the signals on by which a batch
// system announces the end. It returns when no task is left.
func superviseStartd(c *frame.Invocation, n *config.Node) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("own program: %w: %w", roost.NoInput, err)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP)
	defer signal.Stop(signals)
	startd := exec.Command(filepath.Join(filepath.Dir(self), frame.DaemonProgram), "startd", "--config", n.File,
		"--name", n.Name)
	startd.Stdout, startd.Stderr = c.Stderr, c.Stderr
	startd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	runtime.LockOSThread() // the signal of Pdeathsig comes when this thread ends
	if err := startd.Start(); err != nil {
		return fmt.Errorf("startd: %w: %w", roost.NoInput, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- startd.Wait() }()
	for {
		select {
		case err := <-ended:
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return fmt.Errorf("startd: %w: %w", roost.Unavailable, err)
			}
			return err
		case <-signals:
			startd.Process.Signal(syscall.SIGTERM)
		}
	}
}
