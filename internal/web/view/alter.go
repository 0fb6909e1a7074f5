package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/pbs/qalter"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// alterVerb changes what jobs ask for, as qalter -l does. Each job is changed by itself,
// as the change depends on what it asks for now.
const alterVerb = "alter"

// Bounds of an alteration.
const (
	maxAltered      = 100 // jobs
	maxResources    = 1000
	maxAlterRetries = 5 // somebody else may alter a job meanwhile
)

// alterJobs changes what jobs ask for.
func alterJobs(c *route.Call, r ActRequest) (done ActResults, err error) {
	done = ActResults{Version: document.Version, Results: []ActResult{}}
	rows, err := alteredJobs(c, r)
	if err != nil {
		return done, err
	}
	for _, row := range rows {
		result, err := alterJob(c, row, r.Resources)
		if err != nil {
			return done, err
		}
		done.add(result)
	}
	return done, nil
}

// alteredJobs asks for the jobs with their ads.
func alteredJobs(c *route.Call, r ActRequest) (rows []*wire.JobStatus, err error) {
	for _, s := range actSelections(r) {
		query := &wire.QueryRequest{Selection: s, Ads: true, Limit: maxAltered + 1}
		if _, err := queryPool(c, &wire.PoolQuery{Query: query}, func(row *wire.JobStatus) error {
			rows = append(rows, row)
			return nil
		}); err != nil {
			return nil, err
		}
	}
	if len(rows) > maxAltered {
		return nil, fmt.Errorf("select: %w: at most %d jobs are altered at once", roost.Exhausted, maxAltered)
	}
	return rows, nil
}

// alterJob changes one job, anew if it was altered meanwhile.
func alterJob(c *route.Call, row *wire.JobStatus, resources string) (*wire.ActReply_Result, error) {
	id := row.GetId()
	for range maxAlterRetries {
		change, err := alterationOf(row, resources)
		if err != nil {
			return &wire.ActReply_Result{Id: id, Kind: uint32(roost.Invalid), Error: err.Error()}, nil
		}
		var reply *wire.ActReply
		if err := ask(c, func(ctx context.Context, s wire.ScheddClient) (err error) {
			reply, err = s.Act(ctx, &wire.ActRequest{Verb: wire.ActRequest_ALTER, Alteration: change,
				Selection: &wire.Selection{Selectors: []string{id}}})
			return err
		}); err != nil {
			return nil, err
		}
		if len(reply.GetResults()) != 1 {
			return nil, fmt.Errorf("job %s: %w: the schedd gave %d results", id, roost.Internal,
				len(reply.GetResults()))
		}
		result := reply.GetResults()[0]
		if result.GetError() == "" { // the schedd counts the tasks of other changes only
			result.Tasks = row.GetTasks()
		}
		if roost.ErrorKind(result.GetKind()) != roost.Stale {
			return result, nil
		}
		if row, err = findJob(c, id, true); err != nil {
			return nil, err
		}
	}
	return &wire.ActReply_Result{Id: id, Kind: uint32(roost.Stale),
		Error: "somebody else alters it all the time: try again"}, nil
}

// alterationOf is the change that qalter -l would make of a job. Of a job of somebody
// else, whose ad is not whole, the schedd says what is wrong.
func alterationOf(row *wire.JobStatus, resources string) (*wire.Alteration, error) {
	ad, err := classad.Parse(row.GetAd())
	if err != nil {
		return nil, fmt.Errorf("its ad: %w", err)
	}
	if row.GetDiscreet() {
		return &wire.Alteration{Changes: "[]", Basis: -1}, nil
	}
	_, host, _ := strings.Cut(row.GetId(), ".")
	a, err := qalter.ParseQalter([]string{"-l", resources, row.GetId()}, alterCaller(host))
	if err != nil {
		return nil, alterRefusal(err)
	}
	change, err := a.ChangeFor(qalter.CurrentJob{Ad: ad, Owner: row.GetOwner(), Host: host,
		Tasks: int(row.GetTasks()), Array: row.GetArray(), Runs: !row.GetArray() && runsNow(row)}, row.GetId())
	if err != nil {
		return nil, alterRefusal(err)
	}
	m := &wire.Alteration{Changes: change.Ad.String(), Count: uint32(change.Count)}
	m.Basis, _ = ad.Int(roost.AttrAlterations)
	for _, col := range change.Columns {
		m.Columns = append(m.Columns, &wire.Column{Name: col.Name, Values: col.Values})
	}
	return m, nil
}

// alterCaller is who alters a job by resources alone. Nothing is read of the files, the
// directory and the environment of a user.
func alterCaller(host string) qsub.QsubCaller {
	none := func() ([]byte, error) { return nil, fmt.Errorf("%w: there is no script", roost.Invalid) }
	return qsub.QsubCaller{Dir: "/", Home: "/", Host: host, Now: time.Now(), Stdin: none,
		Read:     func(string) ([]byte, error) { return none() },
		IsDir:    func(string) bool { return false },
		LookPath: func(program string) (string, error) { return program, nil }}
}

// alterRefusal is an error with the text of a refusal of qalter.
func alterRefusal(err error) error {
	if refused, ok := errors.AsType[*qsub.RefusalError](err); ok {
		text := strings.Join(strings.Fields(refused.Text), " ")
		return fmt.Errorf("resources: %w: %s", roost.Invalid, strings.TrimPrefix(text, "qalter: "))
	}
	return err
}

// runsNow reports whether a task of a job has a machine.
func runsNow(s *wire.JobStatus) bool {
	return slices.ContainsFunc([]roost.TaskState{roost.Starting, roost.Running, roost.Suspended},
		func(state roost.TaskState) bool { return s.GetCounts()[state.String()] > 0 })
}
