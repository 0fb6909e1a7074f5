package condor

import (
	"context"
	"fmt"
	"slices"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/condor"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// jobSelection is which jobs a command line chooses.
type jobSelection struct {
	ids        []condor.JobID
	owners     []string
	constraint condor.Constraint
	isMine     bool // without ids and owners: only those of the caller
}

// selectionOf reads the operands, which are ids and names of users, and the constraints.
func selectionOf(c *frame.Invocation, l condor.CommandLine) (s jobSelection, err error) {
	for _, text := range l.Operands {
		if id, ok := condor.ParseJobID(text); ok {
			s.ids = append(s.ids, id)
		} else if text != "" && (text[0] < '0' || text[0] > '9') {
			s.owners = append(s.owners, text)
		} else {
			return s, fmt.Errorf("%q is no id of a job: an id is CLUSTER or CLUSTER.PROC", text)
		}
	}
	s.owners = append(s.owners, l.Values("submitter")...)
	s.constraint, err = condor.NewConstraint(l.Values("constraint"), c.Now())
	return s, err
}

// includes reports whether a job is among those chosen.
func (s jobSelection) includes(ad *classad.Ad) bool {
	cluster, _ := ad.Int("ClusterId")
	proc, _ := ad.Int("ProcId")
	owner, _ := ad.Str("Owner")
	chosen := len(s.ids)+len(s.owners) == 0 || slices.Contains(s.owners, owner) ||
		slices.ContainsFunc(s.ids, func(id condor.JobID) bool {
			return id.Matches(condor.JobID{Cluster: uint64(cluster), Proc: int(proc)})
		})
	return chosen && s.constraint.Admits(ad)
}

// queryAds returns the ads of the chosen jobs, the oldest first. With ended they are also
// those that have left the queue.
func queryAds(c *frame.Invocation, s jobSelection, ended bool) ([]*classad.Ad, error) {
	found, own, err := queryTasks(c, s, ended)
	if err != nil {
		return nil, err
	}
	byCluster := map[uint64]condor.JobID{}
	for _, id := range s.ids {
		if known, ok := byCluster[id.Cluster]; ok && known != id {
			id.Proc = condor.WholeCluster // several of its procs: includes tells which
		}
		byCluster[id.Cluster] = id
	}
	now := c.Now()
	var ads []*classad.Ad
	for _, status := range found {
		id := condor.IDOf(status)
		if wanted, ok := byCluster[id.Cluster]; ok && len(s.owners) == 0 && !wanted.Matches(id) {
			continue
		}
		if ad := own.JobAd(status, now); s.includes(ad) {
			ads = append(ads, ad)
		}
	}
	return ads, nil
}

// queryTasks asks the schedd for the tasks of the jobs that may be chosen. The ads of
// these jobs come with them, one for each job.
func queryTasks(c *frame.Invocation, s jobSelection, ended bool) ([]*scheddapi.JobStatus, condor.OwnAds, error) {
	req := &scheddapi.QueryRequest{Selection: &scheddapi.Selection{}, Tasks: true, History: ended}
	byID := len(s.ids) > 0 && len(s.owners) == 0
	if byID { // those that there are not are rows of their own
		req.Table, req.History = true, true
		clusters := map[uint64]bool{}
		for _, id := range s.ids {
			if !clusters[id.Cluster] {
				clusters[id.Cluster] = true
				req.Selection.Selectors = append(req.Selection.Selectors,
					condor.JobID{Cluster: id.Cluster, Proc: condor.WholeCluster}.String())
			}
		}
	}
	req.Selection.Mine = s.isMine && len(s.ids)+len(s.owners) == 0
	found, err := queryHere(c, req)
	if err != nil {
		return nil, nil, err
	}
	// An ad with each task would be most of the answer: those of the jobs come apart.
	req.Tasks, req.Ads = false, true
	whole, err := queryHere(c, req)
	if err != nil {
		return nil, nil, err
	}
	own := condor.OwnAds{}
	for _, status := range whole {
		own.Add(status)
	}
	found = slices.DeleteFunc(found, func(s *scheddapi.JobStatus) bool {
		return s.GetRefused() != nil || s.GetService() != nil && s.GetState() == ""
	})
	slices.SortStableFunc(found, func(a, b *scheddapi.JobStatus) int {
		x, y := condor.IDOf(a), condor.IDOf(b)
		switch {
		case x.Cluster < y.Cluster || x.Cluster == y.Cluster && x.Proc < y.Proc:
			return -1
		case x == y:
			return 0
		}
		return 1
	})
	return found, own, nil
}

// queryHere asks for jobs in the queue of the command's schedd. A question to the pool is
// answered in batches, which for many jobs is much faster than a message for each.
func queryHere(c *frame.Invocation, req *scheddapi.QueryRequest) ([]*scheddapi.JobStatus, error) {
	node := ""
	err := c.CallSchedd(frame.AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) error {
		h, err := s.Health(ctx, &scheddapi.HealthRequest{Brief: true})
		node = h.GetName()
		return err
	})
	if err != nil {
		return nil, err
	}
	found, missing, err := c.QueryPool(node, req)
	if err == nil {
		err = frame.UnreachableError(missing)
	}
	return found, err
}
