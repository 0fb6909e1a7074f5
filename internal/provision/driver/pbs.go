package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/provision/plan"
)

// pbs is a server of OpenPBS or PBS Professional (qsub(1B), qstat(1B), qselect(1B),
// qdel(1B)). Torque, which has no JSON, is not.
type pbs struct {
	Shell
	options []string
}

func (p pbs) Submit(ctx context.Context, job Job) (string, error) {
	chunk := "select=" + strconv.Itoa(job.Nodes)
	if cpus := job.Node.CPU; cpus > 0 {
		chunk += ":ncpus=" + strconv.FormatInt(int64(cpus+999)/1000, 10)
	}
	if m := job.Node.Memory; m > 0 {
		chunk += fmt.Sprintf(":mem=%dmb", (m+roost.MiB-1)/roost.MiB)
	}
	if job.Node.GPUs > 0 {
		chunk += ":ngpus=" + strconv.Itoa(job.Node.GPUs)
	}
	place := "scatter"
	if job.Node.CPU == 0 {
		place += ":excl"
	}
	args := []string{"qsub", "-N", job.Key, "-l", chunk, "-l", "place=" + place, "-l",
		"walltime=" + strconv.Itoa(int(job.Walltime.Seconds())), "-r", "n", "-j", "oe", "-o", job.Output, "-m", "n",
		"-S", "/bin/sh"}
	if job.IsHeld {
		args = append(args, "-h")
	}
	args = append(args, p.options...)
	out, err := p.Run(ctx, "qsub", withInput(quoteAll(args), job.Script))
	if err != nil {
		return "", submitError(err)
	}
	return checkID(lastLine(out))
}

// pbsJob is what qstat prints of a job.
type pbsJob struct {
	State    string            `json:"job_state"`
	ExecHost string            `json:"exec_host"`
	Comment  string            `json:"comment"`
	Used     map[string]any    `json:"resources_used"`
	Exit     json.RawMessage   `json:"Exit_status"`
	Other    map[string]string `json:"-"`
}

func (p pbs) Status(ctx context.Context, ids []string) (map[string]plan.OuterStatus, error) {
	out, err := p.Run(ctx, "qstat", "qstat -x -f -F json "+quoteAll(ids)+" </dev/null")
	var failed *ExitError
	if errors.As(err, &failed) && isPBSUnknown(failed.Text) {
		err = nil // it does not know one of them, and prints the others
	}
	if err != nil {
		return nil, err
	}
	var answer struct {
		Jobs map[string]pbsJob
	}
	if i := strings.IndexByte(out, '{'); i >= 0 {
		if err := json.NewDecoder(strings.NewReader(out[i:])).Decode(&answer); err != nil {
			return nil, fmt.Errorf("qstat: %w: its JSON: %w", roost.Unavailable, err)
		}
	}
	answers := map[string]plan.OuterStatus{}
	for id, j := range answer.Jobs {
		s := plan.OuterStatus{ID: id, State: pbsState(j.State), Text: strings.TrimSpace(j.State + " " + j.Comment)}
		if s.State != plan.OuterQueued {
			if walltime, ok := j.Used["walltime"].(string); ok {
				if d, err := roost.ParseDuration(walltime); err == nil {
					s.Started = sinceElapsed(d)
				}
			}
			s.Hosts = pbsHosts(j.ExecHost)
		}
		for _, asked := range ids { // qstat may print a longer form of the id
			if asked == id || strings.HasPrefix(id, asked+".") || strings.HasPrefix(asked, id+".") {
				answers[asked] = s
			}
		}
	}
	return answers, nil
}

func isPBSUnknown(text string) bool {
	return strings.Contains(text, "Unknown Job Id") || strings.Contains(text, "has finished")
}

func pbsState(letter string) plan.OuterState {
	switch letter {
	case "Q", "H", "W", "T", "M":
		return plan.OuterQueued
	case "R", "E", "B", "S", "U":
		return plan.OuterRunning
	}
	return plan.OuterEnded
}

// pbsHosts reads hosts such as "n1/0*4+n2/0".
func pbsHosts(text string) (hosts []string) {
	for _, part := range strings.Split(text, "+") {
		if host, _, _ := strings.Cut(part, "/"); host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

func (p pbs) Cancel(ctx context.Context, ids []string) error {
	_, err := p.Run(ctx, "qdel", "qdel "+quoteAll(ids)+" </dev/null")
	var failed *ExitError
	if errors.As(err, &failed) && isPBSUnknown(failed.Text) {
		return nil
	}
	return err
}

func (p pbs) Find(ctx context.Context, key string) (string, error) {
	out, err := p.Run(ctx, "qselect", `qselect -x -u "$(id -un)" -N `+Quote(key)+" </dev/null")
	if err != nil || strings.TrimSpace(out) == "" {
		return "", err
	}
	return checkID(lastLine(out))
}

func (p pbs) CanHold() bool { return true }
