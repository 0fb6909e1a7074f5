package driver

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/provision/plan"
)

// gridEngine is a cell of Grid Engine, of version 8 or another that comes from version 6.
// The options and answers of its qsub, qstat and qdel are not those of PBS.
type gridEngine struct {
	Shell
	options []string
}

// findEnvironment is a shell program that sets pe to the first parallel environment whose
// slots are all on one host. Their names are the site's.
const findEnvironment = `for e in $(qconf -spl </dev/null); do
	[ "$(qconf -sp "$e" </dev/null | awk '$1 == "allocation_rule" {print $2}')" = '$pe_slots' ] && { pe=$e; break; }
done
[ -n "$pe" ] || {
	echo 'it has no parallel environment with the allocation rule $pe_slots, and pilots of several cores need one' >&2
	exit 1
}`

func (g gridEngine) Submit(ctx context.Context, job Job) (string, error) {
	if job.Nodes > 1 {
		return "", fmt.Errorf("%w: how to get several hosts differs from one Grid Engine to the next: set "+
			"nodes_each = 1", roost.BadConfig)
	}
	args := []string{"qsub", "-terse", "-N", job.Key, "-S", "/bin/sh", "-r", "n", "-m", "n", "-j", "y", "-o",
		job.Output, "-notify", "-l", "h_rt=" + strconv.Itoa(int(job.Walltime.Seconds()))}
	if m := job.Node.Memory; m > 0 {
		args = append(args, "-l", fmt.Sprintf("mem_free=%dM", (m+roost.MiB-1)/roost.MiB))
	}
	if len(job.Exclude) > 0 {
		args = append(args, "-l", "hostname=!("+strings.Join(job.Exclude, "|")+")")
	}
	if job.IsHeld {
		args = append(args, "-h")
	}
	line, cores := quoteAll(args), int(job.Node.CPU+999)/1000
	if cores > 1 && !slices.Contains(g.options, "-pe") {
		line = "(" + findEnvironment + "\n" + line + " -pe \"$pe\" " + strconv.Itoa(cores)
	} else {
		line = "(" + line
	}
	out, err := g.Run(ctx, "qsub", withInput(line+" "+quoteAll(g.options)+" )", job.Script))
	if err != nil {
		return "", submitError(err)
	}
	return checkID(lastLine(out))
}

// gridEngineJob is what qstat prints of a job.
type gridEngineJob struct {
	ID      string `xml:"JB_job_number"`
	Name    string `xml:"JB_name"`
	State   string `xml:"state"`
	Started string `xml:"JAT_start_time"`
	Queue   string `xml:"queue_name"`
}

// query returns all jobs of the user that have not ended, and what the clock there shows.
// The times in the answer have no zone.
func (g gridEngine) query(ctx context.Context) (jobs []gridEngineJob, now time.Time, err error) {
	out, err := g.Run(ctx, "qstat", "date +%Y-%m-%dT%H:%M:%S\n"+`qstat -xml -u "$(id -un)" </dev/null`)
	if err != nil {
		return nil, now, err
	}
	start := strings.Index(out, "<?xml")
	if start < 0 {
		return nil, now, fmt.Errorf("qstat: %w: it printed no XML: %s", roost.Unavailable, shorten(out))
	}
	now, _ = time.Parse(gridEngineTime, lastLine(out[:start]))
	var answer struct {
		Running []gridEngineJob `xml:"queue_info>job_list"`
		Waiting []gridEngineJob `xml:"job_info>job_list"`
	}
	if err := xml.Unmarshal([]byte(out[start:]), &answer); err != nil {
		return nil, now, fmt.Errorf("qstat: %w: its XML: %w", roost.Unavailable, err)
	}
	return append(answer.Running, answer.Waiting...), now, nil
}

// gridEngineTime is the form of times.
const gridEngineTime = "2006-01-02T15:04:05"

func (g gridEngine) Status(ctx context.Context, ids []string) (map[string]plan.OuterStatus, error) {
	jobs, now, err := g.query(ctx)
	if err != nil {
		return nil, err
	}
	answers := map[string]plan.OuterStatus{}
	for _, j := range jobs {
		if slices.Contains(ids, j.ID) {
			answers[j.ID] = j.status(now)
		}
	}
	return answers, nil
}

// status reads the letters of a job's state.
func (j *gridEngineJob) status(now time.Time) plan.OuterStatus {
	s := plan.OuterStatus{ID: j.ID, State: plan.OuterQueued, Text: j.State}
	switch {
	case strings.Contains(j.State, "E"): // its start failed; it stays in the queue and never runs
		s.State, s.IsRemnant, s.Text = plan.OuterEnded, true, j.State+": it could not be started"
	case strings.ContainsAny(j.State, "rtsST"):
		s.State = plan.OuterRunning
		started, err := time.Parse(gridEngineTime, j.Started)
		if err == nil && !now.IsZero() {
			s.Started = sinceElapsed(now.Sub(started))
		}
		if _, host, ok := strings.Cut(j.Queue, "@"); ok {
			s.Hosts = []string{host}
		}
	}
	return s
}

func (g gridEngine) Cancel(ctx context.Context, ids []string) error {
	_, err := g.Run(ctx, "qdel", "qdel "+quoteAll(ids)+" </dev/null")
	var failed *ExitError
	if errors.As(err, &failed) && strings.Contains(failed.Text, "does not exist") {
		return nil
	}
	return err
}

// Find also looks into the accounting file for a job that has ended. Only some hosts have
// one.
func (g gridEngine) Find(ctx context.Context, key string) (string, error) {
	jobs, _, err := g.query(ctx)
	if err != nil {
		return "", err
	}
	for _, j := range jobs {
		if j.Name == key {
			return checkID(j.ID)
		}
	}
	out, err := g.Run(ctx, "qacct", "qacct -j "+Quote(key)+
		" 2>/dev/null </dev/null | awk '$1 == \"jobnumber\" {print $2}'")
	if err != nil || strings.TrimSpace(out) == "" {
		return "", err
	}
	return checkID(lastLine(out))
}

func (g gridEngine) CanHold() bool { return true }
