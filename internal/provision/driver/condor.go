package driver

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/provision/plan"
)

// condor is a pool of HTCondor (condor_submit(1), condor_q(1), condor_rm(1) of HTCondor
// 23).
type condor struct {
	Shell
	options []string // lines of the submit description
}

// keyAttribute is the attribute of jobs that has the key of the allocation.
const keyAttribute = "RoostPilotKey"

func (c condor) Submit(ctx context.Context, job Job) (string, error) {
	if job.Nodes > 1 {
		return "", fmt.Errorf("%w: HTCondor has no allocations of several nodes for each user: set nodes_each = 1",
			roost.BadConfig)
	}
	script := job.Directory + "/" + job.Key + ".sh"
	lines := []string{"universe = vanilla", "executable = " + script, "output = " + job.Output,
		"error = " + job.Output, "log = " + job.Directory + "/" + job.Key + ".log", "getenv = false",
		"should_transfer_files = no", "+" + keyAttribute + ` = "` + job.Key + `"`,
		"+JobBatchName = \"" + job.Key + `"`,
		// HTCondor has no walltime of its own
		fmt.Sprintf("periodic_remove = JobStatus == 2 && time() - EnteredCurrentStatus > %d",
			int(job.Walltime.Seconds())),
		fmt.Sprintf("+JobMaxVacateTime = %d", int(job.Margin.Seconds())), "max_retries = 0"}
	if cpus := job.Node.CPU; cpus > 0 {
		lines = append(lines, "request_cpus = "+strconv.FormatInt(int64(cpus+999)/1000, 10))
	}
	if m := job.Node.Memory; m > 0 {
		lines = append(lines, fmt.Sprintf("request_memory = %d", (m+roost.MiB-1)/roost.MiB))
	}
	if job.Node.Disk > 0 {
		lines = append(lines, fmt.Sprintf("request_disk = %d", (job.Node.Disk+roost.KiB-1)/roost.KiB))
	}
	if job.Node.GPUs > 0 {
		lines = append(lines, "request_gpus = "+strconv.Itoa(job.Node.GPUs))
	}
	if job.IsHeld {
		lines = append(lines, "hold = true")
	}
	if len(job.Exclude) > 0 {
		var conditions []string
		for _, host := range job.Exclude {
			conditions = append(conditions, fmt.Sprintf("TARGET.Machine =!= %q", host))
		}
		lines = append(lines, "requirements = "+strings.Join(conditions, " && "))
	}
	lines = append(append(lines, c.options...), "queue 1", "")
	out, err := c.Run(ctx, "condor_submit", "umask 077\n"+withInput("cat > "+Quote(script), job.Script)+
		"\nchmod 700 "+Quote(script)+" && "+withInput("condor_submit -terse -", strings.Join(lines, "\n")))
	if err != nil {
		return "", submitError(err)
	}
	first, _, _ := strings.Cut(lastLine(out), " ")
	return checkID(first) // "12.0 - 12.0"
}

// condorJob is what condor_q prints of a job.
type condorJob struct {
	Cluster    int    `json:"ClusterId"`
	Proc       int    `json:"ProcId"`
	Status     int    `json:"JobStatus"`
	Key        string `json:"RoostPilotKey"`
	Host       string `json:"RemoteHost"`
	Start      int64  `json:"JobCurrentStartDate"`
	Now        int64  `json:"ServerTime"`
	HoldReason string
	HoldCode   int `json:"HoldReasonCode"`
}

func (j *condorJob) id() string { return fmt.Sprintf("%d.%d", j.Cluster, j.Proc) }

// query asks for all jobs that are allocations: one question, however many there are.
func (c condor) query(ctx context.Context, constraint string) (jobs []condorJob, err error) {
	out, err := c.Run(ctx, "condor_q", "condor_q -json -attributes ClusterId,ProcId,JobStatus,"+keyAttribute+
		",RemoteHost,JobCurrentStartDate,ServerTime,HoldReason,HoldReasonCode -constraint "+Quote(constraint)+
		" </dev/null")
	if err != nil {
		return nil, err
	}
	if i := strings.IndexByte(out, '['); i >= 0 { // without jobs it prints nothing
		if err := json.NewDecoder(strings.NewReader(out[i:])).Decode(&jobs); err != nil {
			return nil, fmt.Errorf("condor_q: %w: its JSON: %w", roost.Unavailable, err)
		}
	}
	return jobs, nil
}

// submittedHeld is the hold code of jobs that were submitted with a hold.
const submittedHeld = 15

func (c condor) Status(ctx context.Context, ids []string) (map[string]plan.OuterStatus, error) {
	jobs, err := c.query(ctx, keyAttribute+" isnt undefined")
	if err != nil {
		return nil, err
	}
	answers := map[string]plan.OuterStatus{}
	for _, j := range jobs {
		s := plan.OuterStatus{ID: j.id(), State: plan.OuterEnded}
		switch j.Status {
		case 1:
			s.State, s.Text = plan.OuterQueued, "idle"
		case 2, 6, 7:
			s.State, s.Text = plan.OuterRunning, "running"
			if j.Start > 0 && j.Now > j.Start {
				s.Started = sinceElapsed(time.Duration(j.Now-j.Start) * time.Second)
			}
			_, host, found := strings.Cut(j.Host, "@")
			if !found {
				host = j.Host
			}
			if host != "" {
				s.Hosts = []string{host}
			}
		case 5: // also how a pool ends a job that uses too much memory
			s.Text, s.IsRemnant = "held: "+j.HoldReason, true
			if j.HoldCode == submittedHeld {
				s.State, s.IsRemnant = plan.OuterQueued, false
			}
		default:
			s.Text = "removed or completed"
		}
		answers[s.ID] = s
	}
	return answers, nil
}

func (c condor) Cancel(ctx context.Context, ids []string) error {
	_, err := c.Run(ctx, "condor_rm", "condor_rm "+quoteAll(ids)+" </dev/null")
	if failed, ok := err.(*ExitError); ok && (strings.Contains(failed.Text, "Couldn't find") ||
		strings.Contains(failed.Text, "not found")) {
		return nil
	}
	return err
}

func (c condor) Find(ctx context.Context, key string) (string, error) {
	jobs, err := c.query(ctx, keyAttribute+` == "`+key+`"`)
	if err != nil || len(jobs) == 0 {
		return "", err
	}
	return jobs[0].id(), nil
}

func (c condor) CanHold() bool { return true }
