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

// slurm is a cluster of one host: slurmctld, and a slurmd with 16 CPUs.
type slurm struct {
	*agent
}

func (s *slurm) begin(ctx context.Context) error {
	text := conf("slurm.conf")
	if !s.Stock {
		text += conf("slurm-fast.conf")
	}
	if s.Cell > 0 {
		text += conf("slurm-match.conf") + cloud(s.Cell)
	} else {
		text += conf("slurm-node.conf")
	}
	for file, text := range map[string]string{"/etc/slurm/slurm.conf": text, "/etc/slurm/cgroup.conf": "CgroupPlugin=disabled\n"} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if _, err := s.admin(ctx, "sh", "-c", `cd /var && rm -rf spool/slurmctld spool/slurmd log/slurm &&
		mkdir -p spool/slurmctld spool/slurmd log/slurm /run/munge log/munge lib/munge &&
		chown slurm spool/slurmctld log/slurm && chown munge: /run/munge log/munge lib/munge && chmod 755 /run/munge &&
		runuser -u munge -- munged --force && slurmctld`); err != nil {
		return err
	}
	if s.Cell > 0 {
		return until(ctx, 200*time.Millisecond, "slurmctld does not answer", func() bool {
			_, err := s.do(ctx, s.list()...)
			return err == nil
		})
	}
	if _, err := s.admin(ctx, "slurmd"); err != nil {
		return err
	}
	return until(ctx, 200*time.Millisecond, "Slurm has no idle node", func() bool {
		out, err := s.do(ctx, "sinfo", "-h")
		return err == nil && strings.Contains(out, "idle")
	})
}

// cloud describes the machines that jobs are matched with, in a partition that is shut at first.
func cloud(machines int) string {
	var text strings.Builder
	from := 0
	for i, n := range groups(machines) {
		if n > 0 {
			fmt.Fprintf(&text, "NodeName=m[%05d-%05d] CPUs=1 RealMemory=%d State=CLOUD\n", from, from+n-1, memory[i])
		}
		from += n
	}
	return text.String() + "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=DOWN\n"
}

func (s *slurm) end() {}

func (s *slurm) version(ctx context.Context) string {
	out, _ := s.do(ctx, "slurmctld", "-V")
	if f := strings.Fields(out); len(f) > 1 {
		return f[1]
	}
	return "?"
}

var sbatch = []string{"sbatch", "--parsable", "-o", "/dev/null"}

func (s *slurm) one(argv ...string) ([]string, error) {
	return append(sbatch[:4:4], "--wrap", "exec "+strings.Join(argv, " ")), nil
}

func (s *slurm) array(n int, argv ...string) ([]string, error) {
	return append(sbatch[:4:4], "--array", fmt.Sprintf("1-%d", n), "--wrap", "exec "+strings.Join(argv, " ")), nil
}

func (s *slurm) held() string { return strings.Join(sbatch, " ") + " --hold --wrap /bin/true" }

func (s *slurm) heldArray(ctx context.Context, n int) error {
	_, err := s.do(ctx, append(sbatch[:4:4], "--hold", "--array", fmt.Sprintf("1-%d", n), "--wrap", "/bin/true")...)
	return err
}

func (s *slurm) heldEach(ctx context.Context, n int) error { return s.crowd(ctx, s.held(), n) }

func (s *slurm) list() []string { return []string{"squeue", "-h"} }

func (s *slurm) clear() []string { return []string{"scancel", "-u", "bench"} }

func (s *slurm) role(p gauge.Process) string {
	if p.Command == "slurmctld" || p.Command == "munged" {
		return p.Command
	}
	return ""
}

func (s *slurm) queue() string { return "slurmctld" }

func (s *slurm) revive(ctx context.Context) error {
	_, err := s.admin(ctx, "slurmctld")
	return err
}

// match opens the partition while the jobs wait in it. When all have been granted a node is asked of the controller, as its own figure of a cycle does
// not say what the cycle did.
func (s *slurm) match(ctx context.Context, size sizes) (ans answer, err error) {
	ans.Values = map[string][]float64{}
	for range size.Matches {
		for kind := range size.Kinds {
			argv := append(sbatch[:4:4], "--array", fmt.Sprintf("1-%d", size.Jobs/size.Kinds), "--mem", strconv.Itoa(kindMemory(kind)), "--wrap", "/bin/true")
			if _, err := s.do(ctx, argv...); err != nil {
				return ans, err
			}
		}
		if err := pause(ctx, settle); err != nil {
			return ans, err
		}
		began := time.Now()
		if _, err := s.admin(ctx, "scontrol", "update", "partitionname=main", "state=up"); err != nil {
			return ans, err
		}
		granted := 0
		err = until(ctx, 20*time.Millisecond, "not all jobs get a node", func() bool {
			out, err := s.do(ctx, "squeue", "-h", "-r", "-o", "%T")
			granted = strings.Count(out, "CONFIGURING") + strings.Count(out, "RUNNING")
			return err == nil && granted >= size.Jobs/size.Kinds*size.Kinds
		})
		if err != nil {
			return ans, fmt.Errorf("%w; %d have one", err, granted)
		}
		ans.add("match", time.Since(began).Seconds())
		ans.Note = fmt.Sprintf("until %d jobs have a node of a cloud", granted)
		if _, err := s.admin(ctx, "scontrol", "update", "partitionname=main", "state=down"); err != nil {
			return ans, err
		}
		if err := s.wipe(ctx); err != nil {
			return ans, err
		}
		if err := pause(ctx, settle); err != nil {
			return ans, err
		}
	}
	return ans, nil
}
