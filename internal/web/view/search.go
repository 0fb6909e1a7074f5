package view

import (
	"errors"
	"fmt"
	"strings"

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
	Kind string `json:"kind"` // "job" or "node"
	ID   string `json:"id"`
	Text string `json:"text"` // what it is, in a few words
}

// Bounds of a search.
const (
	maxHits       = 20
	maxSearchWord = 128
)

// Search finds jobs by id or name, and nodes by a part of their name.
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
	_, err := queryPool(c, &wire.PoolQuery{Query: query}, func(s *wire.JobStatus) error {
		text := s.GetName() + ", " + document.StateOf(s) + ", of " + s.GetOwner()
		r.Hits = append(r.Hits, Hit{"job", s.GetId(), text})
		return nil
	})
	if err != nil && !errors.Is(err, roost.NotFound) && !errors.Is(err, roost.Invalid) {
		return nil, err
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
