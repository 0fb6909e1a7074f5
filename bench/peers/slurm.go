package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/bench/gauge"
)

// slurmSystem is a cluster of one host: slurmctld, and a slurmd with 16 CPUs.
type slurmSystem struct {
	*systemAgent
}

func (s *slurmSystem) startSystem(ctx context.Context) error {
	text := configText("slurm.conf")
	if !s.Stock {
		text += configText("slurm-fast.conf")
	}
	if s.Cell > 0 {
		text += configText("slurm-match.conf") + cloudNodes(s.Cell)
	} else {
		text += configText("slurm-node.conf")
	}
	for file, text := range map[string]string{"/etc/slurm/slurm.conf": text,
		"/etc/slurm/cgroup.conf": "CgroupPlugin=disabled\n"} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if _, err := s.runAsAdmin(ctx, "sh", "-c", `cd /var && rm -rf spool/slurmctld spool/slurmd log/slurm &&
		mkdir -p spool/slurmctld spool/slurmd log/slurm /run/munge log/munge lib/munge &&
		chown slurm spool/slurmctld log/slurm && chown munge: /run/munge log/munge lib/munge && chmod 755 /run/munge &&
		runuser -u munge -- munged --force && slurmctld`); err != nil {
		return err
	}
	if s.Cell > 0 {
		return pollUntil(ctx, 200*time.Millisecond, "slurmctld does not answer", func() bool {
			_, err := s.runAsUser(ctx, s.listCommand()...)
			return err == nil
		})
	}
	if _, err := s.runAsAdmin(ctx, "slurmd"); err != nil {
		return err
	}
	return pollUntil(ctx, 200*time.Millisecond, "Slurm has no idle node", func() bool {
		out, err := s.runAsUser(ctx, "sinfo", "-h")
		return err == nil && strings.Contains(out, "idle")
	})
}

// cloudNodes configures the machines to match, in a partition that is closed at first.
func cloudNodes(machines int) string {
	var text strings.Builder
	from := 0
	for i, n := range machineGroups(machines) {
		if n > 0 {
			fmt.Fprintf(&text, "NodeName=m[%05d-%05d] CPUs=1 RealMemory=%d State=CLOUD\n", from, from+n-1,
				memorySizes[i])
		}
		from += n
	}
	return text.String() + "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=DOWN\n"
}

func (s *slurmSystem) stopSystem() {}

func (s *slurmSystem) version(ctx context.Context) string {
	out, _ := s.runAsUser(ctx, "slurmctld", "-V")
	if f := strings.Fields(out); len(f) > 1 {
		return f[1]
	}
	return "?"
}

var sbatch = []string{"sbatch", "--parsable", "-o", "/dev/null"}

func (s *slurmSystem) submitJob(argv ...string) ([]string, error) {
	return append(sbatch[:4:4], "--wrap", "exec "+strings.Join(argv, " ")), nil
}

func (s *slurmSystem) submitArray(n int, argv ...string) ([]string, error) {
	return append(sbatch[:4:4], "--array", fmt.Sprintf("1-%d", n), "--wrap", "exec "+strings.Join(argv, " ")), nil
}

func (s *slurmSystem) submitHeld() string {
	return strings.Join(sbatch, " ") + " --hold --wrap /bin/true"
}

func (s *slurmSystem) submitHeldArray(ctx context.Context, n int) error {
	_, err := s.runAsUser(ctx, append(sbatch[:4:4], "--hold", "--array", fmt.Sprintf("1-%d", n), "--wrap",
		"/bin/true")...)
	return err
}

func (s *slurmSystem) submitHeldJobs(ctx context.Context, n int) error {
	return s.submitInParallel(ctx, s.submitHeld(), n)
}

func (s *slurmSystem) listCommand() []string { return []string{"squeue", "-h"} }

func (s *slurmSystem) clearQueue() []string { return []string{"scancel", "-u", "bench"} }

func (s *slurmSystem) daemonRole(p gauge.ProcessStat) string {
	if p.Command == "slurmctld" || p.Command == "munged" {
		return p.Command
	}
	return ""
}

func (s *slurmSystem) queueDaemon() string { return "slurmctld" }

func (s *slurmSystem) restartDaemon(ctx context.Context) error {
	_, err := s.runAsAdmin(ctx, "slurmctld")
	return err
}

// matchJobs opens the partition while the jobs wait in it. It asks the controller when
// all jobs have a node, because the controller's own time of a cycle does not show what
// the cycle did.
func (s *slurmSystem) matchJobs(ctx context.Context, size workSizes) (ans measureResult, err error) {
	ans.Values = map[string][]float64{}
	for range size.Matches {
		for kind := range size.Kinds {
			argv := append(sbatch[:4:4], "--array", fmt.Sprintf("1-%d", size.Jobs/size.Kinds), "--mem",
				strconv.Itoa(memoryOfKind(kind)), "--wrap", "/bin/true")
			if _, err := s.runAsUser(ctx, argv...); err != nil {
				return ans, err
			}
		}
		if err := sleepContext(ctx, quiesceTime); err != nil {
			return ans, err
		}
		began := time.Now()
		if _, err := s.runAsAdmin(ctx, "scontrol", "update", "partitionname=main", "state=up"); err != nil {
			return ans, err
		}
		granted := 0
		err = pollUntil(ctx, 20*time.Millisecond, "not all jobs get a node", func() bool {
			out, err := s.runAsUser(ctx, "squeue", "-h", "-r", "-o", "%T")
			granted = strings.Count(out, "CONFIGURING") + strings.Count(out, "RUNNING")
			return err == nil && granted >= size.Jobs/size.Kinds*size.Kinds
		})
		if err != nil {
			return ans, fmt.Errorf("%w; %d have one", err, granted)
		}
		ans.addValue("match", time.Since(began).Seconds())
		ans.Note = fmt.Sprintf("until %d jobs have a node of a cloud", granted)
		if _, err := s.runAsAdmin(ctx, "scontrol", "update", "partitionname=main", "state=down"); err != nil {
			return ans, err
		}
		if err := s.removeAllJobs(ctx); err != nil {
			return ans, err
		}
		if err := sleepContext(ctx, quiesceTime); err != nil {
			return ans, err
		}
	}
	return ans, nil
}
