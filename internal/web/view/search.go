package view

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// SearchResult is what a word was found in.
type SearchResult struct {
	Version int   `json:"v"`
	Hits    []Hit `json:"hits"`

	Word string `json:"-"`
}

// Hit is one thing that was found.
type Hit struct {
	Kind string `json:"kind"` // "job", "user" or "node"
	ID   string `json:"id"`
	Text string `json:"text"` // what it is, in a few words
}

// Bounds of a search.
const (
	maxHits       = 20
	maxSearchWord = 128
	// how far back jobs that have ended are found by name
	searchSpan = 7 * 24 * time.Hour
)

// Search finds jobs by id or name, users with jobs, and nodes by a part of their name.
func (p *Pool) Search(c *route.Call) (any, error) {
	word := strings.TrimSpace(c.QueryValue("q"))
	if len(word) > maxSearchWord {
		return nil, fmt.Errorf("q: %w: it has more than %d characters", roost.Invalid, maxSearchWord)
	}
	r := SearchResult{Version: document.Version, Hits: []Hit{}, Word: word}
	if word == "" {
		return r, nil
	}
	query := &wire.QueryRequest{Newest: true, NamePart: word, Limit: maxHits}
	if word[0] >= '0' && word[0] <= '9' {
		query = &wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{word}}, History: true, Limit: maxHits}
	}
	err := r.addJobs(c, query)
	if err == nil && len(r.Hits) < maxHits && query.GetNamePart() != "" { // also those that have ended
		query.History, query.Since = true, time.Now().Add(-searchSpan).UnixNano()
		r.Hits = r.Hits[:0]
		err = r.addJobs(c, query)
	}
	if err != nil {
		return nil, err
	}
	if text, err := findUser(c, word); err != nil {
		return nil, err
	} else if text != "" {
		r.Hits = slices.Insert(r.Hits, 0, Hit{"user", word, text})
	}
	pool, err := p.snapshot(c)
	if err != nil {
		return r, nil // without a collector there are no nodes to find
	}
	for _, n := range pool.nodes {
		if len(r.Hits) < maxHits && strings.Contains(strings.ToLower(n.Name), strings.ToLower(word)) {
			r.Hits = append(r.Hits, Hit{"node", n.Name, n.State})
		}
	}
	return r, nil
}

// addJobs adds the jobs that a query finds.
func (r *SearchResult) addJobs(c *route.Call, query *wire.QueryRequest) error {
	_, err := queryPool(c, &wire.PoolQuery{Query: query}, func(s *wire.JobStatus) error {
		if len(r.Hits) < maxHits {
			text := s.GetName() + ", " + document.StateOf(s) + ", of " + s.GetOwner()
			r.Hits = append(r.Hits, Hit{"job", s.GetId(), text})
		}
		return nil
	})
	if errors.Is(err, roost.NotFound) || errors.Is(err, roost.Invalid) {
		return nil
	}
	return err
}

// findUser describes the user of a name in a few words. It returns "" if nobody of that
// name has jobs that the caller may see.
func findUser(c *route.Call, name string) (text string, err error) {
	query := &wire.QueryRequest{Newest: true, Owners: []string{name}, Limit: 1}
	_, err = queryPool(c, &wire.PoolQuery{Query: query}, func(s *wire.JobStatus) error {
		if text == "" && s.GetOwner() == name {
			text = "a user; the newest job is " + s.GetId()
		}
		return nil
	})
	if errors.Is(err, roost.NotFound) || errors.Is(err, roost.Invalid) {
		err = nil
	}
	return text, err
}
