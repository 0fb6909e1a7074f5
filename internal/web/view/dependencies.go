package view

import (
	"errors"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// maxGraphJobs bounds the jobs of a graph. Each is a query.
const maxGraphJobs = 100

// ShowDependencies shows what a job waits for and what waits for it.
func ShowDependencies(c *route.Call) (any, error) {
	id, err := idOf(c)
	if err != nil {
		return nil, err
	}
	find := func(id string) (*wire.JobStatus, error) { return findJob(c, id, true) }
	start, err := find(id)
	if err != nil {
		return nil, err
	}
	return traceDependencies(start, find)
}

// traceDependencies follows the dependencies of a job in both directions. The statuses
// have ads. find returns an error of kind roost.NotFound for a job that is not shown.
func traceDependencies(start *wire.JobStatus, find func(id string) (*wire.JobStatus, error)) (document.JobGraph,
	error) {
	g := document.JobGraph{Version: document.Version, Job: document.JobOf(start, false)}
	statuses := map[string]*wire.JobStatus{document.PlainJobID(start.GetId()): start}
	edges := map[document.JobDependency]bool{}
	order := []string{document.PlainJobID(start.GetId())}
	for i := 0; i < len(order); i++ {
		s, ok := statuses[order[i]]
		if !ok {
			if i >= maxGraphJobs {
				g.Cut = true
				break
			}
			var err error
			if s, err = find(order[i]); err != nil && !errors.Is(err, roost.NotFound) {
				return g, err
			}
			statuses[order[i]] = s
		}
		list, conditions := dependenciesOf(s)
		if i == 0 {
			g.Conditions = conditions
		}
		for _, d := range list {
			edges[d] = true
			for _, id := range []string{d.From, d.To} {
				if !slices.Contains(order, id) {
					order = append(order, id)
				}
			}
		}
	}
	for _, id := range order {
		if s, ok := statuses[id]; ok {
			g.Jobs = append(g.Jobs, graphJob(id, s))
		}
	}
	for d := range edges {
		of := d // the other job's text does not say that so many tasks are waited for
		if of.Type = strings.Replace(d.Type+"array", "afterarray", "afterstartarray", 1); edges[of] {
			continue
		}
		if _, from := statuses[d.From]; from {
			if _, to := statuses[d.To]; to {
				g.Dependencies = append(g.Dependencies, d)
			}
		}
	}
	g.Arrange()
	return g, nil
}

// graphJob returns the job with an id, of which the status is nil if it is not shown.
func graphJob(id string, s *wire.JobStatus) document.GraphJob {
	if s == nil {
		return document.GraphJob{ID: id}
	}
	j := document.JobOf(s, false)
	return document.GraphJob{ID: j.ID, Name: j.Name, Owner: j.Owner, State: j.State}
}

// dependenciesOf returns the dependencies of a job, and its conditions that name no other
// job. What has been fulfilled is in the ad only, and what others say in the status only.
func dependenciesOf(s *wire.JobStatus) (list []document.JobDependency, conditions []string) {
	if s == nil {
		return nil, nil
	}
	texts := s.GetDepends()
	if ad, err := classad.Parse(s.GetAd()); err == nil {
		submitted, _ := ad.Strings(roost.AttrDependsOn)
		texts = append(slices.Clone(submitted), texts...)
	}
	own := document.PlainJobID(s.GetId())
	_, host, _ := strings.Cut(own, ".")
	for _, text := range texts {
		text = strings.TrimPrefix(text, "?")
		kind, job, found := strings.Cut(text, ":")
		if !found {
			kind, job = "afterok", text
		}
		job, _, _ = strings.Cut(job, "+") // a time after its start
		if kind == "on" || kind == "synccount" {
			if !slices.Contains(conditions, text) {
				conditions = append(conditions, text)
			}
			continue
		}
		job = document.PlainJobID(document.PlainJobID(job)) // "12[][3].host" has a count, too
		id, err := roost.ParseJobID(job, host)
		if err != nil || id.String() == own {
			continue
		}
		d := document.JobDependency{From: id.String(), To: own, Type: kind}
		if after, ok := strings.CutPrefix(kind, "before"); ok {
			d = document.JobDependency{From: own, To: id.String(), Type: "after" + after}
		}
		if kind == "runone" && d.From > d.To { // it holds for both alike
			d.From, d.To = d.To, d.From
		}
		list = append(list, d)
	}
	return list, conditions
}
